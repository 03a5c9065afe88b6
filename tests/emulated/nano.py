#!/usr/bin/env python3
"""nano.py BUILD [PICTURES]: firmware with the nano client and lwIP computes on a spancld of this host. It runs on an
emulated microcontroller (QEMU's mps2-an385, a Cortex-M3 with a LAN9118). The test cuts its connections. The firmware
itself compares every byte.

The variable LWIP names the folder of lwIP's sources. Without them, QEMU or the compiler the test is skipped. If the
variable MBEDTLS names the folder of mbedTLS's sources, the firmware computes the pictures a second time, over TLS."""

import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/nano"), str(ROOT / "tests/emulated")]
import cross  # noqa: E402
import firmware  # noqa: E402
from relay import Relay  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
PICTURES = int(sys.argv[2]) if len(sys.argv) > 2 else 200
TEN_PICTURES = 10 * 2 * 80 * 56
FLASH_MAX, RAM_MAX = 128 << 10, 64 << 10
HANG_S = 600  # a watchdog


def build():
    elf = firmware.build(BUILD / "nano-firmware", firmware.BOARD / "main.c")
    text, data, bss = map(int, cross.run("arm-none-eabi-size", elf).splitlines()[1].split()[:3])
    print(f"firmware: {text + data} bytes of flash, {data + bss} of RAM with 4096 of stack", flush=True)
    assert text + data <= FLASH_MAX and data + bss <= RAM_MAX
    return elf


def compute(elf, port, relay, key):
    """Run the firmware. Returns how often lost connections were made again, and the bytes of stack it used."""
    command = firmware.command(elf, port, secrets.randbits(31), key, PICTURES)
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True) as machine:
        said = []
        for line in machine.stdout:
            said.append(line)
            if line.startswith("picture"):
                relay.cut()
                # And once more, anywhere in the next pictures, which are TEN_PICTURES bytes at least.
                relay.left = 1 + 1777 * relay.cuts % TEN_PICTURES
        status = machine.wait(HANG_S)
    assert status == 0, "".join(said)
    return map(int, re.fullmatch(r"resumed (\d+) stack (\d+)\n", said[-1]).groups())


def check(elf, how, port, key="-"):
    relay = Relay(port)
    resumed, stack = compute(elf, relay.port, relay, key)
    relay.close()
    print(f"{how}: {PICTURES} pictures, bit-exact; {relay.cuts} cuts, {resumed} times resumed; {stack} bytes of stack",
          flush=True)
    assert resumed >= PICTURES / 10 and stack < 4096


def main():
    elf = build()
    with tempfile.TemporaryDirectory() as folder:
        vendors = native_vendors(folder)
        with Servers(BUILD, 1, (), vendors=vendors) as servers:
            check(elf, "TCP", servers.ports[0])
        if not cross.mbedtls():
            print("no TLS: MBEDTLS does not name a folder with mbedTLS's sources (on Debian: apt source mbedtls)")
            return
        keys = ("--keys", f"{folder}/keys")
        key = re.search("^[0-9a-f]{64}$", cross.run(BUILD / "bin/spancld", "pair", "--nano", "board", *keys), re.M)[0]
        options = ("--listen", "tls:127.0.0.1:0", "--log", "info", *keys)
        with Servers(BUILD, 1, options, vendors=vendors, transport="unix") as servers:
            port = re.findall(r"listening on 127\.0\.0\.1:(\d+)", servers.log_text())[-1]
            check(elf, "TLS", int(port), key)


if __name__ == "__main__":
    main()
