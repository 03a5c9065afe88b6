#!/usr/bin/env python3
"""Dependencies between the folders of src/ run one way; every #include is checked.

    os <- base <- proto <- session <- {core, engine}; api -> core; transport and backend know only base;
    every folder may use os, which knows nothing but the status codes;
    config (options and variables) knows only base: core, loop, sandbox and the programs read it,
    engine and backend the options;
    loop joins sessions and transports; programs (daemon, cli) may use everything.

PORTABLE folders reach the operating system through os alone: they include no header of POSIX.
A folder has at most FOLDER_MAX .c files.
Each header also compiles alone."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

ALLOWED = {
    "os": {"os"},
    "base": {"base"},
    "config": {"base", "config"},
    "trace": {"base", "trace"},
    "proto": {"base", "proto"},
    "session": {"base", "proto", "session"},
    "transport": {"base", "transport"},
    "tls": {"base"},
    "backend": {"base", "backend"},
    "loop": {"base", "config", "proto", "session", "transport", "loop"},
    "engine": {"base", "proto", "session", "engine"},
    "core": {"base", "config", "proto", "session", "core"},
    "api": {"base", "core", "api"},
    "sandbox": {"base", "config", "sandbox"},
}
# Single headers that more may see: contracts and value types.
HEADERS = {
    "os": {"base/status.h"},
    "tls": {"transport/crypto.h"},
    "transport": {"config/variables.h"},
    "sandbox": {"transport/fabric.h"},
    "backend": {"config/options.h", "proto/args.h", "proto/image.h", "proto/info.h"},
    "engine": {"backend/backend.h", "backend/bounds.h", "config/options.h"},
    "core": {"loop/link.h", "loop/dial.h", "transport/transport.h"},
    # The loop drives an engine on one side; on the other it implements what the core asks for.
    "loop": {"engine/engine.h", "backend/backend.h", "core/link/io.h"},
    "api": {"proto/args.h", "proto/info.h", "proto/object_id.h", "proto/option.h",
            "proto/wire.h", "session/session.h"},
}
PORTABLE = {"core", "engine", "session", "proto", "api"}
STANDARD = {f"{name}.h" for name in
            "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp stdalign"
            " stdarg stdatomic stdbool stddef stdint stdio stdlib stdnoreturn string tgmath uchar wchar"
            " wctype".split()}  # without those of clocks, signals and threads
OTHERS = ("CL/", "spancl/", "sanitizer/")  # other headers in angle brackets
FOLDER_MAX = 25
PROGRAMS = {"daemon", "cli", "emulator"}


def includes():
    bad = 0
    for path in sorted(SOURCE.rglob("*")):
        if path.suffix not in (".c", ".h", ".def"):
            continue
        folder = path.relative_to(SOURCE).parts[0]
        for number, line in enumerate(path.read_text().splitlines(), 1):
            where = f"{path.relative_to(ROOT)}:{number}"
            match = re.match(r'\s*#\s*include\s+<([^>]+)>', line)
            if (match and folder in PORTABLE and match.group(1) not in STANDARD and
                    not match.group(1).startswith(OTHERS)):
                print(f"{where}: <{match.group(1)}> is not of the C standard; src/os wraps POSIX")
                bad += 1
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1)
            other = target.split("/")[0]
            if "/" not in target:
                if not (path.parent / target).exists() and not target.startswith("CL"):
                    print(f"{where}: \"{target}\" is named without its folder")
                    bad += 1
                continue
            if folder in PROGRAMS or other == "CL":
                continue
            if other == "os" or other in ALLOWED.get(folder, set()):
                continue
            if other == "trace" and folder not in ("os", "base"):
                continue
            if target in HEADERS.get(folder, set()):
                continue
            print(f"{where}: {folder} must not include {target}")
            bad += 1
    return bad


def headers_alone(compiler="cc"):
    bad = 0
    for path in sorted(SOURCE.rglob("*.h")):
        done = subprocess.run(
            [compiler, "-std=gnu17", "-D_GNU_SOURCE", "-DCL_TARGET_OPENCL_VERSION=300",
             "-DSPANCL_VERSION=\"0\"", "-fsyntax-only", "-x", "c", f"-I{SOURCE}",
             f"-I{ROOT / 'include'}", "-include", "stddef.h", str(path)],
            capture_output=True, text=True, check=False)
        if done.returncode != 0:
            print(f"{path.relative_to(ROOT)} does not compile alone:\n{done.stderr}")
            bad += 1
    return bad


def rooms():
    """No folder is so full that nobody sees its parts, and each layer that stands here exists."""
    bad = 0
    for folder in sorted(p for p in SOURCE.rglob("*") if p.is_dir()):
        count = len(list(folder.glob("*.c")))
        if count > FOLDER_MAX:
            print(f"{folder.relative_to(ROOT)}: {count} .c files, {FOLDER_MAX} are allowed")
            bad += 1
    for name in {*ALLOWED, *HEADERS, *PROGRAMS, *PORTABLE}:
        if not (SOURCE / name).is_dir():
            print(f"tools/layers.py names src/{name}, which does not exist")
            bad += 1
    return bad


def main():
    bad = includes() + rooms()
    bad += headers_alone()
    print(f"{bad} violations")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
