#!/usr/bin/env python3
"""cross.py BUILD: each C file of src/ compiles for aarch64, with the warnings of the build: there other headers bring other
headers in, and char has no sign. Nothing is linked or kept. Status 77: the compiler is not installed."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
COMPILER = "aarch64-linux-gnu-gcc"
# The host's folders have headers that the cross compiler's C library lacks, such as OpenCL's.
HOST = [f for f in ("/usr/include", *map(str, Path("/usr/include").glob("*-linux-gnu"))) if Path(f).is_dir()]
X86_ONLY = "-DSPANCL_IPSEC_MB"


def command_of(entry):
    """The entry's command for the other compiler. Drops clang's warnings, the processor's and the sanitizers' options."""
    words = shlex.split(entry["command"])
    words = words[next(i for i, w in enumerate(words) if w.startswith("-")):words.index("-o")]
    kept = [w for w in words if not re.match(r"-m|-fsanitize|-fno-sanitize", w) and w != X86_ONLY]
    return [COMPILER, *kept, *(f"-idirafter{f}" for f in HOST), "-fsyntax-only", entry["file"]]


def compile_one(entry):
    done = subprocess.run(command_of(entry), cwd=entry["directory"], stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        print(done.stderr, flush=True)
    return done.returncode != 0


def main():
    if not shutil.which(COMPILER):
        print(f"{COMPILER} is not installed")
        return 77
    commands = json.loads((Path(sys.argv[1]) / "compile_commands.json").read_text())
    files = {e["file"]: e for e in commands if Path(e["file"]).is_relative_to(ROOT / "src")}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        bad = sum(pool.map(compile_one, files.values()))
    print(f"{len(files)} files, {bad} do not compile")
    return 1 if bad or not files else 0


if __name__ == "__main__":
    sys.exit(main())
