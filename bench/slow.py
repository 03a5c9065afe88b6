#!/usr/bin/env python3
"""slow.py [--build BUILD] [--armhf BUILD]: instructions of the client for one command on slow processors.

- The nano client on a Cortex-M3, by QEMU's mps2-an385, over TCP and TLS. Needs LWIP and MBEDTLS (tests/emulated).
- libspancl on armhf, by qemu-arm, over TCP: the whole process, with the C library. Needs `cmake --preset armhf` and
  its target spancl.

A plugin of QEMU (count.c) counts. Two runs differ only in the number of commands. The difference of their counts,
divided by the additional commands, is the cost of one. The server's time counts only in loops that wait."""

import argparse
import array
import os
import re
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests/nano"), str(ROOT / "tests/emulated")]
import cross  # noqa: E402
import firmware  # noqa: E402
from servers import Servers  # noqa: E402

FLASH = 128 << 10
FEW, MANY = 200, 1000  # commands
ARM_FEW, ARM_MANY = 1000, 5000
TRIES = 3  # waits cost more on a busy host, so the least counts
KINDS = ("launch, 8 before each clFinish", "launch and clFinish", "write of 64 bytes, blocking",
         "read of 64 bytes, blocking")
PARTS = {"nano": "client", "session": "client", "proto": "client", "base": "client", "tls": "TLS", "library": "TLS"}
ARMHF = ("launch", "finish", "args", "write")
ARM_GCC = "arm-linux-gnueabihf-gcc"


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **more)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}")
    return done.stdout


def plugin(folder):
    to = f"{folder}/count.so"
    run(["cc", "-O2", "-shared", "-fPIC", "-o", to, f"{ROOT}/bench/count.c"])
    return to


def counts(path):
    numbers = array.array("Q")
    numbers.frombytes(Path(path).read_bytes())
    return numbers


def places(map_file):
    """The part of each two bytes of flash, by the linker's map."""
    where = ["rest"] * (FLASH // 2 + 1)
    text = map_file.read_text().split("Linker script and memory map")[1]
    for begin, size, path in re.findall(r"^ \.text\S*\s+0x([0-9a-f]+)\s+0x([0-9a-f]+) (\S+)$",
                                        re.sub(r"\n (\.\S+)\n\s+0x", r"\n \1 0x", text), re.MULTILINE):
        found = re.match(r"(\w+)-", Path(path).name)
        part = "C library" if path.endswith(")") else PARTS.get(found[1] if found else "", "lwIP, driver")
        first = int(begin, 16) // 2
        for i in range(first, min(first + int(size, 16) // 2, FLASH // 2)):
            where[i] = part
    return where


def on_cortex(folder, count, elf, where, kind, commands, port, key):
    out = f"{folder}/counts"
    command = firmware.command(elf, port, secrets.randbits(31), key, kind, commands)
    said = run([*command, "-plugin", f"{count},counts={out},base=0,size={FLASH}"], stdin=subprocess.DEVNULL)
    assert said.endswith("done\n"), said
    sums = {}
    for part, n in zip(where, counts(out)):
        sums[part] = sums.get(part, 0) + n
    return sums


def cortex(build, folder, count):
    elf = firmware.build(build / "nano-commands", ROOT / "bench/nano.c")
    where = places(elf.parent / "map")
    keys = ("--keys", f"{folder}/keys")
    options = ("--backend", "reference", "--log", "info", *keys)
    ways = [("TCP", "-", ())]
    if cross.mbedtls():
        said = cross.run(build / "bin/spancld", "pair", "--nano", "board", *keys)
        ways.append(("TLS", re.search("^[0-9a-f]{64}$", said, re.MULTILINE)[0], ("--listen", "tls:127.0.0.1:0")))
    for way, key, listens in ways:
        with Servers(build, 1, (*options, *listens), transport="unix" if listens else "tcp") as servers:
            port = re.findall(r"listening on 127\.0\.0\.1:(\d+)", servers.log_text())[-1]
            for kind, name in enumerate(KINDS):
                few, many = (on_cortex(folder, count, elf, where, kind, n, port, key) for n in (FEW, MANY))
                each = {part: (many[part] - few.get(part, 0)) / (MANY - FEW) for part in sorted(many)}
                print(f"Cortex-M3, {way}, {name}:", ", ".join(f"{part} {n:.0f}" for part, n in each.items() if n),
                      flush=True)


def armhf(build, arm, folder, count):
    program = f"{folder}/commands"
    run([ARM_GCC, "-O2", "-w", "-D_GNU_SOURCE", "-DCL_TARGET_OPENCL_VERSION=300", f"-I{ROOT}/include", "-idirafter",
         "/usr/include", "-o", program, f"{ROOT}/bench/commands.c", f"-L{arm}/lib", "-lspancl", f"-Wl,-rpath,{arm}/lib"])
    with Servers(build, 1, ("--backend", "reference")) as servers:
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env.update(SPANCL_SERVERS=servers.address(0), SPANCL_SPIN="0", SPANCL_DISCOVERY="none")
        for mode in ARMHF:
            out = f"{folder}/counts"
            n = {}
            for commands in (ARM_FEW, ARM_MANY) * TRIES:
                run(["qemu-arm", "-L", "/usr/arm-linux-gnueabihf", "-plugin", f"{count},counts={out},base=0,size=0",
                     program, mode, str(commands)], env=env)
                n[commands] = min(counts(out)[0], n.get(commands, 1 << 64))
            print(f"armhf, TCP, {mode}: {(n[ARM_MANY] - n[ARM_FEW]) / (ARM_MANY - ARM_FEW):.0f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--armhf", default="build/armhf")
    args = parser.parse_args()
    build, arm = Path(args.build).resolve(), Path(args.armhf).resolve()
    with tempfile.TemporaryDirectory() as folder:
        count = plugin(folder)
        if (arm / "lib/libspancl.so").exists():
            armhf(build, arm, folder, count)
        else:
            print("no libspancl for armhf: cmake --preset armhf, and its target spancl")
        cortex(build, folder, count)


if __name__ == "__main__":
    main()
