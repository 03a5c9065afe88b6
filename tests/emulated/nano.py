#!/usr/bin/env python3
"""nano.py BUILD: firmware with the nano client and lwIP computes on a spancld of this host. It runs on an emulated
microcontroller (QEMU's mps2-an385, a Cortex-M3 with a LAN9118). The test cuts its connections. The firmware itself
compares every byte.

The variable LWIP names the folder of lwIP's sources. Without them, QEMU or the compiler the test is skipped."""

import os
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/nano"), str(ROOT / "tests/emulated")]
import cross  # noqa: E402
from kernel import skip  # noqa: E402
from relay import Relay  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HERE = ROOT / "tests/emulated/nano"
PICTURES = 200
FLASH_MAX, RAM_MAX = 128 << 10, 64 << 10
HANG_S = 600  # a watchdog


def lwip():
    """The folder of lwIP's sources."""
    folder = Path(os.environ.get("LWIP", "")) / "src"
    if not (folder / "core/tcp.c").exists():
        skip("LWIP does not name a folder with lwIP's sources (on Debian: apt source lwip)")
    return folder


def firmware():
    folder, stack = BUILD / "nano-firmware", lwip()
    core = [p for p in sorted((stack / "core").glob("*.c")) if p.stem not in ("dns", "udp", "raw", "altcp", "altcp_tcp",
                                                                              "altcp_alloc", "stats", "sys")]
    ipv4 = [stack / f"core/ipv4/{name}.c" for name in ("etharp", "icmp", "ip4", "ip4_addr")]
    flags = [*cross.FLAGS, f"-I{HERE}", f"-I{ROOT}/tests", f"-I{stack}/include"]
    objects = cross.client(folder)
    objects += cross.compile_all(folder / "lwip", [*core, *ipv4, stack / "netif/ethernet.c"],
                                 [f for f in flags if not f.startswith("-W")])
    objects += cross.compile_all(folder, [HERE / "board.c", HERE / "main.c"], flags)
    objects += cross.compile_all(folder / "port", [ROOT / "nano/lwip/transport.c"], flags)
    elf = folder / "firmware.elf"
    cross.run(cross.GCC, *cross.CPU, *objects, "-nostartfiles", "-Wl,--gc-sections", f"-Wl,-T{HERE}/mps2.ld",
              "--specs=nosys.specs", f"-Wl,-Map={folder}/map", "-o", elf)
    text, data, bss = map(int, cross.run("arm-none-eabi-size", elf).splitlines()[1].split()[:3])
    print(f"firmware: {text + data} bytes of flash, {data + bss} of RAM with 4096 of stack", flush=True)
    assert text + data <= FLASH_MAX and data + bss <= RAM_MAX
    return elf


def main():
    cross.compiler()
    if not shutil.which("qemu-system-arm"):
        skip("no qemu-system-arm")
    elf = firmware()
    with tempfile.TemporaryDirectory() as folder, Servers(BUILD, 1, (), vendors=native_vendors(folder)) as servers:
        relay = Relay(servers.ports[0])
        arguments = ",".join(f"arg={a}" for a in ("nano", relay.port, PICTURES, secrets.randbits(31)))
        command = ["qemu-system-arm", "-M", "mps2-an385", "-kernel", elf, "-nic", "user,model=lan9118", "-display", "none",
                   "-monitor", "none", "-serial", "stdio", "-semihosting-config", f"enable=on,target=native,{arguments}"]
        with subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as machine:
            said = []
            for line in machine.stdout:
                said.append(line)
                if line.startswith("picture"):
                    relay.cut()
                    relay.left = 1 + 1777 * relay.cuts  # and once more, anywhere in the next pictures
            status = machine.wait(HANG_S)
        relay.close()
    assert status == 0, "".join(said)
    end = re.fullmatch(r"resumed (\d+) stack (\d+)\n", said[-1])
    print(f"{PICTURES} pictures, bit-exact; {end[1]} times resumed; {end[2]} bytes of stack")
    assert int(end[1]) >= PICTURES / 10 and int(end[2]) < 4096, said[-1]


if __name__ == "__main__":
    main()
