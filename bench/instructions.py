#!/usr/bin/env python3
"""Instructions of one command, from the application's call to its completion, all layers on both sides.

The client and the engine run in one process over the in-process transport on the reference backend,
under valgrind's callgrind, so the machine's noise does not matter. Two runs that differ in the number
of commands only; their difference is what commands cost. Threads that miss each other more often, on a
busy machine, only add to it, so what exceeds its budget is measured again. Fails when it exceeds it each time."""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BUDGETS = {  # 6 to 8 % above a quiet machine's: beside other work up to 5 % more were seen
    "launch": 5450,
    "finish": 17200,
    "args": 6850,
    "chain": 9250,
    "write": 9450,
    "marker": 14700,  # and the launch before it; thousands in flight
}
FEW, MANY = 1000, 5000
TRIES = 3


def count(build, mode, commands, output):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    env.update(OCL_ICD_VENDORS=f"{build}/etc/vendors", SPANCL_SERVERS="in-process:reference",
               SPANCL_SPIN="0")  # a thread that spins counts, too
    done = subprocess.run(
        ["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}",
         f"{build}/bin/bench_commands", mode, str(commands)],
        env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"{mode}: status {done.returncode}\n{done.stderr}")
    return int(found.group(1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--only", choices=BUDGETS)
    parser.add_argument("--keep", help="folder for callgrind's files (callgrind_annotate)")
    args = parser.parse_args()
    if not shutil.which("valgrind"):
        print("valgrind is not installed")
        return 77
    build = Path(args.build).resolve()
    exceeded = False
    with tempfile.TemporaryDirectory() as folder:
        for mode, budget in BUDGETS.items():
            if args.only and mode != args.only:
                continue
            for _ in range(TRIES):
                few, many = (count(build, mode, n, Path(args.keep or folder) / f"{mode}.{n}")
                             for n in (FEW, MANY))
                each = (many - few) / (MANY - FEW)
                print(f"{mode}: {each:.0f} instructions a command, budget {budget}")
                if each <= budget:
                    break
            exceeded |= each > budget
    return 1 if exceeded else 0


if __name__ == "__main__":
    sys.exit(main())
