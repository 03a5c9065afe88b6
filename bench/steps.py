#!/usr/bin/env python3
"""The pace of a program that waits after each step (bench_steps): natively, and over links with a long round trip with
SPANCL_FINISH=wait and =optimistic, in turn, round after round. Prints times of a step in microseconds and ratios to native.
Ends with 0 whatever the figures are, with 1 when a measurement could not be taken."""

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


def step_us(bench, steps, queues, work, environment):
    done = subprocess.run([bench, str(steps), str(queues), str(work)], env=environment, stdout=subprocess.PIPE, timeout=600,
                          check=True)
    return json.loads(done.stdout)["step"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--waits", type=int, default=100, help="steps with SPANCL_FINISH=wait, which takes long")
    parser.add_argument("--work", type=int, default=20, help="rounds of each kernel's loop")
    parser.add_argument("--delays", default="1,10,50", help="round trips in milliseconds")
    args = parser.parse_args()
    build = Path(args.build).resolve()
    bench = str(build / "bin/bench_steps")
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
                    kinds = [("native", native, args.steps), ("wait", far, args.waits),
                             ("optimistic", {**far, "SPANCL_FINISH": "optimistic"}, args.steps)]
                    for queues in (1, 2):
                        rounds = {name: [] for name, _, _ in kinds}
                        for _ in range(args.rounds):
                            for name, environment, steps in kinds:
                                rounds[name].append(step_us(bench, steps, queues, args.work, environment))
                        middle = {name: statistics.median(r) for name, r in rounds.items()}
                        pace = middle["native"] / middle["optimistic"]
                        print(f"{delay:>4} ms, {queues} queue{'s'[:queues - 1]}: " +
                              ", ".join(f"{name} {us:.1f} us" for name, us in middle.items()) +
                              f"; {100 * pace:.0f} % of native pace", flush=True)
                    proxy.kill()
                    proxy.wait()
    except (RuntimeError, OSError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
