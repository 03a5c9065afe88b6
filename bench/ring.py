#!/usr/bin/env python3
"""The cost of the flight recorder (`spancl trace --ring`): bench_opencl with it and without it, with --times also with
devices' times, in turn, round after round. Prints medians of the runs' lowest tenths, their ratios in the same round,
and the ratio of the least ones.

With --processor-time instead: the processor time of a launch, of client and engine together, in one process on one
processor with the reference backend. Other work of the host only adds to it, so the least of all rounds counts. Ends
with 0 whatever the figures are, with 1 when a measurement could not be taken."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from servers import Servers, native_vendors  # noqa: E402

NAMES = "pipelined_kernel", "empty_kernel_finish"


def measure(bench, name, scale, environment):
    """The lowest tenth of the measurement, and of its processor time: other work of the host only adds to both."""
    done = subprocess.run([bench, "--only", name, "--scale", str(scale)], env=environment, stdout=subprocess.PIPE, timeout=600,
                          check=True)
    return {key: value["p10"] for key, value in json.loads(done.stdout).items() if key.startswith(name)}


def processor_time(build, more):
    """Returns the processor time of a launch in ns."""
    launches = 100000
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    env.update(OCL_ICD_VENDORS=f"{build}/etc/vendors", SPANCL_SERVERS="in-process:reference", SPANCL_SPIN="0", **more)
    one = min(os.sched_getaffinity(0))
    done = subprocess.run([f"{build}/bin/bench_commands", "time", str(launches)], env=env, timeout=600, check=True,
                          stdout=subprocess.PIPE, preexec_fn=lambda: os.sched_setaffinity(0, [one]))
    return float(done.stdout)


def report_processor_time(build, rounds, kinds):
    values = {kind: [] for kind in kinds}
    for _ in range(rounds):
        for kind, more in kinds.items():
            values[kind].append(processor_time(build, more))
    off = values["off"]
    for kind, all_of_it in values.items():
        ratios = [100 * a / b - 100 for a, b in zip(all_of_it, off)]
        low, middle, high = statistics.quantiles(ratios)
        print(f"{kind}: least {min(all_of_it):.0f} ns a launch ({100 * min(all_of_it) / min(off) - 100:+.1f} %), median "
              f"{statistics.median(all_of_it):.0f} ns; ratios {middle:+.1f} % (quarters {low:+.1f} to {high:+.1f} %)")


def report(values, base):
    for key in values[base][0]:
        print(f"{key}: " + ", ".join(f"{kind} {statistics.median(v[key] for v in rounds):.2f} us"
                                     for kind, rounds in values.items()))
        for kind in values:
            if kind == base:
                continue
            ratios = [100 * a[key] / b[key] - 100 for a, b in zip(values[kind], values[base]) if b[key]]
            if len(ratios) > 1:
                low, middle, high = statistics.quantiles(ratios)
                least, least_off = (min(v[key] for v in values[k]) for k in (kind, base))
                print(f"  {kind}: {middle:+.1f} % (quarters {low:+.1f} to {high:+.1f} %); least {least_off:.2f} and "
                      f"{least:.2f} us: {100 * least / least_off - 100:+.1f} %", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--scale", type=int, default=100, help="per cent of the commands that bench/run.py has")
    parser.add_argument("--processor-time", action="store_true")
    parser.add_argument("--times", action="store_true", help="also with SPANCL_TRACE_TIMES=on")
    parser.add_argument("--mib", type=int, default=16, help="of --ring")
    parser.add_argument("--transport", choices=("tcp", "unix", "shm"), default="tcp")
    args = parser.parse_args()
    build = Path(args.build).resolve()
    bench = str(build / "bin/bench_opencl")
    try:
        with tempfile.TemporaryDirectory() as folder:
            if args.processor_time:
                ring = {"SPANCL_TRACE": f"{folder}/ring.json", "SPANCL_TRACE_RING": str(args.mib),
                        "SPANCL_TRACE_TIMES": "off"}
                report_processor_time(build, args.rounds, {"off": {}, "ring": ring})
                return 0
            with Servers(build, 1, vendors=native_vendors(folder), transport=args.transport) as s:
                off = s.environment()
                ring = {**off, "SPANCL_TRACE": f"{folder}/ring.json", "SPANCL_TRACE_RING": str(args.mib)}
                kinds = {"off": off, "ring": {**ring, "SPANCL_TRACE_TIMES": "off"}}
                if args.times:
                    kinds["ring with times"] = {**ring, "SPANCL_TRACE_TIMES": "on"}
                for name in NAMES:
                    values = {kind: [] for kind in kinds}
                    for i in range(args.rounds):
                        turn = i % len(kinds)
                        for kind in [*kinds][turn:] + [*kinds][:turn]:
                            values[kind].append(measure(bench, name, args.scale, kinds[kind]))
                    report(values, "off")
    except (RuntimeError, OSError, subprocess.SubprocessError, KeyError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
