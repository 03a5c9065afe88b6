#!/usr/bin/env python3
"""sizes.py BUILD: the nano client, built for a Cortex-M3, keeps its budget of flash and RAM, and needs no heap and no
stdio. Prints the figures of docs/NANO.md."""

import re
import sys
from pathlib import Path

import cross

FLASH_MAX, RAM_MAX = 40 << 10, 16 << 10
FORBIDDEN = re.compile(r"_?(malloc|calloc|realloc|free|sbrk|v?[fs]?n?i?printf|puts|abort|__assert_func)(_r)?")


def functions():
    """All that the header declares."""
    return re.findall(r"^\w[\w \*]*?\b((?:cl[A-Z]|spancl_nano_)\w+)\(", (cross.NANO / "spancl_nano.h").read_text(),
                      re.MULTILINE)


def tls_state(folder):
    """The size of struct spancl_nano_tls, which the application provides."""
    source = folder / "state.c"
    source.write_text('#include "tls/tls.h"\nstruct spancl_nano_tls state;\n')
    cross.run(cross.GCC, *cross.FLAGS, "-c", source, "-o", folder / "state.o")
    size = int(cross.run("arm-none-eabi-size", folder / "state.o").splitlines()[1].split()[2])
    print(f"{'tls':14} {size:6} bytes of RAM")
    return size


def main():
    cross.compiler()
    folder = Path(sys.argv[1]).resolve() / "nano-arm"
    objects = cross.client(folder)
    cross.run(cross.GCC, *cross.FLAGS, "-pedantic", "-fsyntax-only", cross.NANO / "spancl_nano.h")
    keeper = folder / "keeper.c"
    keeper.write_text("void start(void);\nvoid start(void) {}\n")
    names, elf, wanted = folder / "map", folder / "all.elf", functions()
    tls = cross.tls(folder)
    if tls:
        objects += tls
        wanted += ["spancl_nano_tls", "spancl_nano_tls_error"]
    cross.run(cross.GCC, *cross.FLAGS, keeper, *objects, "-nostartfiles", "-Wl,--gc-sections", "-Wl,-estart",
              *(f"-Wl,-u,{name}" for name in wanted), "--specs=nosys.specs", f"-Wl,-Map={names}", "-o", elf)
    arena = int(re.search(r"SPANCL_NANO_ARENA (\d+)", (cross.NANO / "spancl_nano.h").read_text())[1])
    parts, flash, ram = {}, 0, 0
    for path, (code, data) in cross.sizes(names).items():
        part = re.match(r"(nano|tls|library|session|proto|base)-", Path(path).name)
        if part:
            part = {"library": "mbedtls"}.get(part[1], part[1])
        else:
            part = "keeper" if "keeper" in path or path.startswith("/tmp") else "libc, libgcc"
        if part != "keeper":
            parts[part] = parts.get(part, 0) + code
            flash += code
            ram += data
    for part, size in sorted(parts.items()):
        print(f"{part:14} {size:6} bytes of flash")
    print(f"{'all':14} {flash:6} bytes of flash, {FLASH_MAX} allowed")
    if tls:
        ram += tls_state(folder)
    print(f"{'arena':14} {arena:6} bytes, beside it {ram} bytes of RAM; {RAM_MAX} allowed")
    assert 15000 < flash <= FLASH_MAX, flash
    assert ram + arena <= RAM_MAX, ram + arena
    bad = sorted(s for s in cross.symbols(elf) if FORBIDDEN.fullmatch(s))
    assert not bad, bad


if __name__ == "__main__":
    main()
