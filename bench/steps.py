#!/usr/bin/env python3
"""The pace of a program that waits after each step, natively and over links with a long round trip, in turn, round
after round. The program is bench_steps, with SPANCL_FINISH=wait and =optimistic, or with --solver bench_cg, with and
without SPANCL_PREFETCH=1. Prints times of a step in microseconds, and how they compare. Ends with 0 whatever the
figures are, with 1 when a measurement could not be taken."""

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


def step_us(command, environment):
    done = subprocess.run([str(c) for c in command], env=environment, stdout=subprocess.PIPE, timeout=600, check=True)
    return json.loads(done.stdout)["step"]


def steps_commands(build, args):
    """By a name: the command for a number of steps."""
    program = build / "bin/bench_steps"
    return {f"{queues} queue{'s'[:queues - 1]}": lambda steps, q=queues: [program, steps, q, args.work]
            for queues in (1, 2)}


def solver_commands(build, args):
    return {how: lambda steps, h=how: [build / "bin/bench_cg", steps, h, args.side]
            for how in ("read", "finish", "norms")}


def report(delay, name, middle, solver):
    times = ", ".join(f"{kind} {us:.1f} us" for kind, us in middle.items())
    if solver:
        more = f"{middle['prefetch'] - 1000 * float(delay) - middle['native']:.0f} us over round trip and native step"
    else:
        more = f"{100 * middle['native'] / middle['optimistic']:.0f} % of native pace"
    print(f"{delay:>4} ms, {name}: {times}; {more}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--waits", type=int, default=100, help="steps that take a round trip or more each")
    parser.add_argument("--work", type=int, default=20, help="rounds of each kernel's loop")
    parser.add_argument("--solver", action="store_true", help="run bench_cg")
    parser.add_argument("--side", type=int, default=128, help="of the solver's grid")
    parser.add_argument("--delays", default="1,10,50", help="round trips in milliseconds")
    args = parser.parse_args()
    build = Path(args.build).resolve()
    try:
        with tempfile.TemporaryDirectory() as folder:
            vendors = native_vendors(folder)
            native = {**os.environ, "OCL_ICD_VENDORS": vendors}
            native.pop("OCL_ICD_FILENAMES", None)
            with Servers(build, 1, (), vendors=vendors) as s:
                for delay in args.delays.split(","):
                    proxy = subprocess.Popen([sys.executable, str(Path(__file__).with_name("delay.py")), delay,
                                              *map(str, s.ports)], stdout=subprocess.PIPE, text=True)
                    port = proxy.stdout.readline().split()[0]
                    far = {**s.environment(), "SPANCL_SERVERS": f"127.0.0.1:{port}"}
                    kinds = [("native", native, args.steps), ("wait", far, args.waits)]
                    if args.solver:
                        kinds.append(("prefetch", {**far, "SPANCL_PREFETCH": "1"}, args.waits))
                    else:
                        kinds.append(("optimistic", {**far, "SPANCL_FINISH": "optimistic"}, args.steps))
                    commands = (solver_commands if args.solver else steps_commands)(build, args)
                    for name, command in commands.items():
                        rounds = {kind: [] for kind, _, _ in kinds}
                        for _ in range(args.rounds):
                            for kind, environment, steps in kinds:
                                rounds[kind].append(step_us(command(steps), environment))
                        report(delay, name, {kind: statistics.median(r) for kind, r in rounds.items()}, args.solver)
                    proxy.kill()
                    proxy.wait()
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
