"""hashcat: its benchmark of six kinds of hashes, and passwords found by mask."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from readings import figure, part, result
from settings import DEVICES, QUICK

MODES = (0,) if QUICK else (0, 1000, 1400, 1800, 3200, 22000)
ROOT = Path(os.environ["BANK_ROOT"])
# hashcat would take CUDA where it finds it. --force: it warns of CPU devices.
OPTIONS = ("--force", "-D", "1,2,3", "--backend-ignore-cuda", "--backend-ignore-hip")


def unpack():
    """A program in a folder of its own has its files and caches there."""
    folder = Path.home() / "hashcat"
    folder.mkdir()
    shutil.copy(ROOT / "usr/bin/hashcat", folder)
    for entry in (ROOT / "usr/share/hashcat").iterdir():
        (folder / entry.name).symlink_to(entry)
    return folder / "hashcat"


def run(hashcat, *arguments):
    done = subprocess.run([hashcat, *OPTIONS, *map(str, arguments)], stdout=subprocess.PIPE, cwd=hashcat.parent,
                          stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {done.stdout[-1500:]}")
    return done.stdout


def benchmark(hashcat, mode):
    """A line a device: its number, the mode, two clocks, milliseconds, and hashes a second."""
    lines = [line.split(":") for line in run(hashcat, "-b", "-m", mode, "--machine-readable").splitlines()]
    lines = [f for f in lines if len(f) == 6 and f[0].isdigit() and f[1] == str(mode)]
    if len(lines) != DEVICES:
        raise RuntimeError(f"{len(lines)} devices were measured")
    figure(f"-m {mode}", sum(float(f[5]) for f in lines) / 1e6, "MH/s")


def crack(hashcat, mode, kind, mask, words):
    hashes = Path("hashes")
    hashes.write_text("".join(hashlib.new(kind, w.encode()).hexdigest() + "\n" for w in words))
    found = Path(f"found.{mode}").resolve()
    run(hashcat, "-m", mode, "-a", 3, "--potfile-disable", "--restore-disable", "--outfile", found,
        "--outfile-format", "1,2", hashes.resolve(), mask)
    result(f"passwords of -m {mode}", "\n".join(sorted(found.read_text().splitlines())))


program = unpack()
with part("passwords of -m 0"):
    if QUICK:
        crack(program, 0, "md5", "?l?l?l?l?d", ["able7", "zzzz9"])
    else:
        crack(program, 0, "md5", "?l?l?l?l?l?l?d", ["cables7", "spancl1", "zzzzzz9"])
if not QUICK:
    with part("passwords of -m 1400"):
        crack(program, 1400, "sha256", "?d?d?d?d?d?d?d?d", ["19077604", "00700700"])
for m in MODES:
    with part(f"-m {m}"):
        benchmark(program, m)
