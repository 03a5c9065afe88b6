#!/usr/bin/env python3
"""Measures how exact `spancl profile --what-if` is. It profiles each program over loopback, with predictions for all links.
Then the program runs over each of these links (bench_link) without a profile, and the times are compared. Prints a table
in Markdown. Each figure is that of the shortest of several runs, because other work of the host only adds time. Short
programs run more often. Ends with 0 for any figures, and with 1 when a measurement could not be taken."""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from servers import Servers, native_vendors  # noqa: E402

LINKS = [(1, 1000), (10, 1000), (50, 1000), (1, 100), (10, 100), (50, 100)]  # round trip in ms, Mbit/s


def programs(build, scale):
    links, lbm = str(build / "bin/bench_links"), str(build / "bin/lbm")
    return {
        "launch, clFinish": [links, "finish", str(100 * scale)],
        "100 launches, clFinish": [links, "launches", str(50 * scale)],
        "transfers": [links, "transfers", "64" if scale > 3 else "16"],
        "solver": [links, "solver", str(50 * scale)],
        "lbm": [lbm, "--size", "32", "--steps", str(500 * scale), "--kernels", str(Path(__file__).parents[1] / "examples/lbm")],
    }


def predictions(build, environment, command):
    options = [x for rtt, mbit in LINKS for x in ("--what-if", f"rtt={rtt}ms,bw={mbit}Mbit")]
    done = subprocess.run([build / "bin/spancl", "profile", "--json", *options, "--", *command], env=environment,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=600, check=True)
    what_if = json.loads(done.stderr.splitlines()[-1])["what_if"]
    return [link["predicted_ns"] * 1e-9 for link in what_if["links"]], what_if["measured_ns"] * 1e-9


def run(environment, command):
    begin = time.monotonic()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, timeout=600, check=True)
    return time.monotonic() - begin


def outside(environment, command):
    """The part of a program's time that a prediction leaves out, before SpanCL begins and after it ends. Only the ledger
    has the time between."""
    with tempfile.NamedTemporaryFile() as ledger:
        whole = run({**environment, "SPANCL_PROFILE_FILE": ledger.name}, command)
        total = [line.split("\t") for line in Path(ledger.name).read_text().splitlines() if line.startswith("total\t")]
    return whole - int(total[0][1]) * 1e-9


def shortest(args, take, time_of):
    """Repeat a measurement for some seconds. Returns the one with the shortest time."""
    best, spent, count = None, 0, 0
    while count < args.rounds or (spent < args.seconds and count < 20):
        one = take()
        spent, count = spent + time_of(one), count + 1
        best = one if best is None or time_of(one) < time_of(best) else best
    return best


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5, help="repeat short programs for so long")
    parser.add_argument("--scale", type=int, default=4, help="how long the programs are")
    parser.add_argument("--only", help="programs whose names contain this")
    args = parser.parse_args()
    build = Path(args.build).resolve()
    worst = 0
    with tempfile.TemporaryDirectory() as folder, Servers(build, 1, (), vendors=native_vendors(folder)) as s:
        near = {**s.environment(), "SPANCL_SERVERS": f"127.0.0.1:{s.ports[0]}", "SPANCL_COMPRESSION": "off"}
        print("| program | round trip | Mbit/s | predicted | measured | error |\n|---|---|---|---|---|---|", flush=True)
        for name, command in programs(build, args.scale).items():
            if args.only and args.only not in name:
                continue
            run(near, command)  # the server's cache gets the build
            spare = min(outside(near, command) for _ in range(5))
            predicted_all, wall = shortest(args, lambda c=command: predictions(build, near, c), lambda p: p[1])
            print(f"| {name} | as recorded | | {predicted_all[0]:.3f} s | {wall:.3f} s | "
                  f"{100 * (predicted_all[0] / wall - 1):+.1f} % |", flush=True)
            plain = shortest(args, lambda c=command: run(near, c), lambda t: t) - spare
            print(f"| {name} | as recorded, without a profile | | | {plain:.3f} s | |", flush=True)
            for (rtt, mbit), predicted in zip(LINKS, predicted_all[1:]):
                link = subprocess.Popen([build / "bin/bench_link", str(rtt), str(mbit), str(s.ports[0])],
                                        stdout=subprocess.PIPE, text=True)
                far = {**near, "SPANCL_SERVERS": f"127.0.0.1:{link.stdout.readline().split()[0]}"}
                measured = shortest(args, lambda c=command, e=far: run(e, c), lambda t: t) - spare
                link.kill()
                link.wait()
                error = 100 * (predicted / measured - 1)
                worst = max(worst, abs(error))
                print(f"| {name} | {rtt} ms | {mbit} | {predicted:.3f} s | {measured:.3f} s | {error:+.1f} % |", flush=True)
    print(f"\nThe largest error is {worst:.1f} %.")


if __name__ == "__main__":
    try:
        main()
    except (subprocess.SubprocessError, OSError, KeyError, ValueError) as e:
        sys.exit(f"what_if.py: {e}")
