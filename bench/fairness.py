#!/usr/bin/env python3
"""fairness.py [--build DIR] [--rounds N]: what a greedy session costs another one on the same server. A client's
empty kernel is timed while the server has nothing else to do and, in turn, while a second client floods it: with
commands, with data, with kernels that keep all cores busy. Prints the ratios; judges nothing."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from servers import Servers, native_vendors  # noqa: E402

GOAL = 3.0  # times idle


def floods(build):
    """Programs that do not end by themselves."""
    client = str(build / "bin/bench_opencl")
    return {
        "commands": [client, "--only", "pipelined", "--scale", "100000000"],
        "events": [client, "--only", "event_chain", "--scale", "100000000"],
        "data": [client, "--only", "map", "--scale", "100000000", "--max-mib", "16"],
        "kernels": [str(build / "bin/lbm"), "--size", "64", "--steps", "100000000"],
    }


def latency(build, env, scale):
    done = subprocess.run([str(build / "bin/bench_opencl"), "--only", "empty", "--scale", str(scale)],
                          env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    measured = json.loads(done.stdout)["empty_kernel_finish"]
    return [measured[what] for what in ("median", "p90")]


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--build", default="build/release", type=Path)
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--scale", type=int, default=30)
    options.add_argument("--only", default="")
    options.add_argument("--json")
    given = options.parse_args()
    build = given.build.resolve()
    found = {}
    with tempfile.TemporaryDirectory() as folder, \
            Servers(build, 1, ("--log", "error"), vendors=native_vendors(folder)) as server:
        env = server.environment()
        for name, command in floods(build).items():
            if given.only and name != given.only:
                continue
            rounds = []
            for _ in range(given.rounds):
                idle = latency(build, env, given.scale)
                flood = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(1)
                if flood.poll() is not None:
                    sys.exit(f"the flood of {name} ended by itself: {flood.returncode}")
                rounds.append((idle, latency(build, env, given.scale)))
                flood.kill()
                flood.wait()
                time.sleep(0.5)
            found[name] = {}
            for i, what in enumerate(("median", "p90")):
                idle, flooded = (statistics.median(r[side][i] for r in rounds) for side in (0, 1))
                found[name][what] = {"idle_us": idle, "flooded_us": flooded}
                print(f"{name:10} {what:6} idle {idle:8.1f} us, flooded {flooded:8.1f} us: {flooded / idle:5.2f} times, "
                      f"goal {GOAL}: {'met' if flooded <= GOAL * idle else 'missed'}", flush=True)
    if given.json:
        Path(given.json).write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
