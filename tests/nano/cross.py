"""Builds the nano client for a Cortex-M3 with Debian's gcc-arm-none-eabi and newlib, and measures it."""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NANO = ROOT / "nano"
GCC = "arm-none-eabi-gcc"
CPU = ["-mcpu=cortex-m3", "-mthumb"]
SECTIONS = ["-ffunction-sections", "-fdata-sections"]
FLAGS = [*CPU, *SECTIONS, "-std=c99", "-ffreestanding", "-Os", "-g", "-Wall", "-Wextra", "-Werror",
         "-Wno-missing-field-initializers", "-Wno-unused-parameter", f"-I{NANO}/port", f"-I{NANO}", f"-I{ROOT}/src"]


def shared():
    """The files of src/ that the client shares with the large one, as the host's build lists them."""
    text = (NANO / "build.cmake").read_text()
    files = re.findall(r"src/(?:base|proto)/\w+\.c", text)
    session = re.search(r"foreach\(name ([\w ]+)\)", text)[1].split()
    return [ROOT / name for name in files] + [ROOT / f"src/session/{name}.c" for name in session]


def compiler():
    """Ends the test as skipped if there is no compiler or C library."""
    if not shutil.which(GCC):
        print("skipped: no gcc-arm-none-eabi")
        sys.exit(77)
    probe = subprocess.run([GCC, *CPU, "-fsyntax-only", "-xc", "-"], input="#include <string.h>\n", text=True,
                           capture_output=True, check=False)
    if probe.returncode:
        print("skipped: no libnewlib-arm-none-eabi")
        sys.exit(77)


def run(*command):
    done = subprocess.run([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}"
    return done.stdout


def compile_all(folder, sources, flags=FLAGS):
    """Returns the objects, with names that show the folder of the source."""
    folder.mkdir(parents=True, exist_ok=True)

    def one(source):
        to = folder / f"{source.parent.name}-{source.stem}.o"
        run(GCC, *flags, "-c", source, "-o", to)
        return to
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(one, sources))


def client(folder):
    """The objects of client, session and proto."""
    return compile_all(folder, [*sorted(NANO.glob("*.c")), *shared()], [*FLAGS, "-include", NANO / "port/names.h"])


def mbedtls():
    """The options to compile nano/tls with, and the sources of mbedTLS that it needs. None: the variable MBEDTLS does
    not name the folder of mbedTLS's sources."""
    folder = Path(os.environ.get("MBEDTLS", "none"))
    names = ("chacha20", "chachapoly", "constant_time", "platform_util", "poly1305", "sha256")
    if not (folder / "library/chachapoly.c").exists():
        return None
    return ([f"-DMBEDTLS_CONFIG_FILE=<{NANO}/port/mbedtls.h>", "-isystem", str(folder / "include"), "-DHAVE_NANO_TLS"],
            [folder / f"library/{name}.c" for name in names])


def tls(folder):
    """The objects of TLS and of mbedTLS; none without its sources."""
    have = mbedtls()
    if not have:
        return []
    options, sources = have
    return (compile_all(folder, sorted((NANO / "tls").glob("*.c")), [*FLAGS, *options]) +
            compile_all(folder / "mbedtls", sources, [f for f in [*FLAGS, *options] if not f.startswith("-W")]))


def sizes(map_file):
    """From a linker's map: bytes of flash and of RAM for each object."""
    found = {}
    text = re.sub(r"\n (\S+)\n\s+0x", r"\n \1 0x", map_file.read_text().split("Linker script and memory map")[1])
    for kind, size, path in re.findall(r"^ \.?(text|rodata|data|bss|ARM\.exidx)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+)$", text,
                                       re.MULTILINE):
        flash, ram = found.get(path, (0, 0))
        n = int(size, 16)
        found[path] = (flash + (n if kind != "bss" else 0), ram + (n if kind in ("data", "bss") else 0))
    return found


def symbols(elf):
    return set(re.findall(r" (\S+)$", run("arm-none-eabi-nm", elf), re.MULTILINE))
