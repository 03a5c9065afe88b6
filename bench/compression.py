#!/usr/bin/env python3
"""What compression brings on links that are limited: bench_compression with SPANCL_COMPRESSION off and auto in turn,
round after round, between two hosts of our own (root), for data of several kinds. Ends with 0 whatever the figures
are, with 1 when a measurement could not be taken, with 77 where hosts can't be made."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import native_vendors  # noqa: E402

KINDS = ("words", "field", "half", "noise")


def measure(hosts, bench, kind, count, mode):
    env = {**hosts.servers[0].environment(), "SPANCL_SERVERS": "tcp:10.77.0.2:7777", "SPANCL_COMPRESSION": mode}
    done = subprocess.run([*hosts.inside("client"), bench, kind, str(count)], env=env, stdout=subprocess.PIPE,
                          timeout=600, check=True)
    return {name: m["median"] for name, m in json.loads(done.stdout).items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--count", type=int, default=5, help="transfers of each kind and size in a round")
    parser.add_argument("--rates", default="100mbit,1gbit,10gbit")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--json", help="file for the results")
    args = parser.parse_args()
    if not may_make_hosts():
        return 77
    bench = str(Path(args.build).resolve() / "bin/bench_compression")
    results = []
    try:
        with tempfile.TemporaryDirectory() as folder:
            vendors = native_vendors(folder)
            for rate in args.rates.split(","):
                with Hosts(["client", "server"], hub=True, rate=rate) as hosts:
                    hosts.spancld(args.build, "server", vendors=vendors)
                    for kind in args.kinds.split(","):
                        rounds = {"off": [], "auto": []}
                        for _ in range(args.rounds):
                            for mode, taken in rounds.items():
                                taken.append(measure(hosts, bench, kind, args.count, mode))
                        for name in rounds["off"][0]:
                            off, auto = (statistics.median(r[name] for r in rounds[m]) for m in rounds)
                            results.append({"rate": rate, "kind": kind, "what": name, "off": off, "auto": auto})
                            print(f"{rate:<10}{kind:<8}{name:<12}{off:>9.4g}{auto:>9.4g} MB/s"
                                  f"{auto / off:>8.2f}", flush=True)
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
