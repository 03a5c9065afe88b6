"""Builds and starts firmware with the nano client and lwIP for QEMU's mps2-an385, a Cortex-M3 with a LAN9118.

The variable LWIP names the folder of lwIP's sources, and MBEDTLS that of mbedTLS's, which TLS needs."""

import os
import shutil
from pathlib import Path

import cross
from kernel import skip

BOARD = cross.ROOT / "tests/emulated/nano"
WITHOUT = ("dns", "udp", "raw", "altcp", "altcp_tcp", "altcp_alloc", "stats", "sys")


def lwip():
    """The folder of lwIP's sources."""
    folder = Path(os.environ.get("LWIP", "")) / "src"
    if not (folder / "core/tcp.c").exists():
        skip("LWIP does not name a folder with lwIP's sources (on Debian: apt source lwip)")
    return folder


def build(folder, program):
    """Compile and link `program` with all that it needs. Returns the ELF file; its map is beside it."""
    cross.compiler()
    if not shutil.which("qemu-system-arm"):
        skip("no qemu-system-arm")
    stack = lwip()
    core = [p for p in sorted((stack / "core").glob("*.c")) if p.stem not in WITHOUT]
    ipv4 = [stack / f"core/ipv4/{name}.c" for name in ("etharp", "icmp", "ip4", "ip4_addr")]
    flags = [*cross.FLAGS, f"-I{BOARD}", f"-I{cross.ROOT}/tests", f"-I{stack}/include"]
    objects = cross.client(folder) + cross.tls(folder)
    flags += cross.mbedtls()[0] if cross.mbedtls() else []
    objects += cross.compile_all(folder / "lwip", [*core, *ipv4, stack / "netif/ethernet.c"],
                                 [f for f in flags if not f.startswith("-W")])
    objects += cross.compile_all(folder, [BOARD / "board.c", BOARD / "firmware.c", program], flags)
    objects += cross.compile_all(folder / "port", [cross.NANO / "lwip/transport.c"], flags)
    elf = folder / "firmware.elf"
    cross.run(cross.GCC, *cross.CPU, *objects, "-nostartfiles", "-Wl,--gc-sections", f"-Wl,-T{BOARD}/mps2.ld",
              "--specs=nosys.specs", f"-Wl,-Map={folder}/map", "-o", elf)
    return elf


def command(elf, *arguments):
    """The command that starts it with these arguments."""
    given = ",".join(f"arg={a}" for a in ("nano", *arguments))
    return ["qemu-system-arm", "-M", "mps2-an385", "-kernel", str(elf), "-nic", "user,model=lan9118", "-display", "none",
            "-monitor", "none", "-serial", "stdio", "-semihosting-config", f"enable=on,target=native,{given}"]
