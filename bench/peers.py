#!/usr/bin/env python3
"""What servers do among themselves, beside what the wire between them can do, against the goals.

Takes the floor and bench_peers in turn, round after round, over two servers on loopback; counts what the client's
links carry for a migration; and, where network namespaces may be made, spreads a buffer over servers whose links are
limited. Each goal is made of values of the same run. Ends with 0 whatever the figures are, with 1 when a
measurement could not be taken.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

GOALS = [
    # The measured value, whether smaller is better, and the limit as a function of the other values.
    ("event_hop", True, lambda v: v["tcp_round_trip"] / 2 + v["kernel_chain"] + 5),
    ("migrate_4b", True, lambda v: 2 * v["tcp_round_trip"] + v["kernel_chain"] + 15),
    ("migrate_16m", False, lambda v: 0.85 * v["tcp_stream_16m"]),
    ("migrate_128m", False, lambda v: 0.85 * v["tcp_stream_256m"]),
    ("migrate_256m", False, lambda v: 0.85 * v["tcp_stream_256m"]),
    ("client_bytes_128m", True, lambda v: 1024),
    ("broadcast", True, lambda v: 1.5 * v["send"]),
]


def measure(command, env=None):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=600,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n"
                           + done.stderr.decode(errors="replace"))
    return {name: m["median"] for name, m in json.loads(done.stdout).items()}


def transport_options(name):
    """What spancld is told so that servers of one host exchange their data that way."""
    if name == "local_path":
        return ()
    return ("--shared-memory", "off", *(() if name == "tcp" else (f"--fabric={name}",)))


def compare(args, vendors, bench, names):
    """How many times as fast large migrations are by the one transport as by the other, both in turn."""
    whats = ("migrate_16m", "migrate_128m", "migrate_256m")
    values = {}
    with Servers(args.build, 2, transport_options(names[0]), vendors=vendors) as a, \
            Servers(args.build, 2, transport_options(names[1]), vendors=vendors) as b:
        for _ in range(args.rounds):
            for what in whats:
                for name, servers in zip(names, (a, b)):
                    got = measure([bench, "--only", what, "--scale", str(args.scale)], servers.environment())
                    values.setdefault((what, name), []).append(got[what])
    for what in whats:
        first, second = (statistics.median(values[what, name]) for name in names)
        print(f"{what:<16}{names[0]} {first:.3g}, {names[1]} {second:.3g}: {first / second:.2f} times as fast")


def client_bytes(bench, env):
    """What crosses the client's links for one migration more."""
    counted = []
    with tempfile.NamedTemporaryFile() as stats:
        for count in (1, 11):
            measure([bench, "--only", "migrate_128m", "--count", str(count)],
                    {**env, "SPANCL_STATS": stats.name})
            links = json.loads(Path(stats.name).read_text())["links"]
            counted.append(sum(l["bytes"] + l["bulk_bytes"] for l in links if "client" in (l["from"], l["to"])))
    return (counted[1] - counted[0]) / 10


def spread(build, vendors, bench, count, rate, mib):
    """One send, one to all, and one from all others, between hosts whose links are limited."""
    names = ["client", *(f"s{i}" for i in range(count + 1))]
    with Hosts(names, hub=True, rate=rate) as hosts:
        for name in names[1:]:
            hosts.spancld(build, name, vendors=vendors)
        env = {**hosts.servers[0].environment(),
               "SPANCL_SERVERS": " ".join(f"tcp:10.77.0.{i + 2}:7777" for i in range(count + 1))}
        values = {}
        for what in ("send", "broadcast", "join"):
            name = f"{what}_{mib}m"
            values[what] = measure([*hosts.inside("client"), bench, "--only", name, "--scale", "40"], env)[name]
        return values


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=50, help="percent of the full sample counts")
    parser.add_argument("--spread", type=int, default=8, help="servers that a buffer goes to; 0: leave that out")
    parser.add_argument("--rate", default="1gbit", help="of their links")
    parser.add_argument("--mib", type=int, choices=(64, 256), default=256, help="of the buffer")
    parser.add_argument("--transport", default="local_path",
                        help="between the servers: local_path (shared memory), tcp, or a provider of libfabric")
    parser.add_argument("--against", help="another one: large migrations by both, in turn, and nothing else")
    parser.add_argument("--json", help="file for the results")
    args = parser.parse_args()
    bench = str(Path(args.build).resolve() / "bin/bench_peers")
    rounds, values = [], {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            vendors = native_vendors(folder)
            if args.against:
                compare(args, vendors, bench, (args.transport, args.against))
                return 0
            with Servers(args.build, 2, transport_options(args.transport), vendors=vendors) as servers:
                env = servers.environment()
                for i in range(args.rounds):
                    rounds.append({**measure([f"{args.build}/bin/bench_floor"]),
                                   **measure([bench, "--scale", str(args.scale)], env)})
                    print(f"round {i + 1} of {args.rounds}", file=sys.stderr)
                values = {name: statistics.median(r[name] for r in rounds) for name in rounds[0]}
                values["client_bytes_128m"] = client_bytes(bench, env)
            if args.spread and may_make_hosts():
                values.update(spread(args.build, vendors, bench, args.spread, args.rate, args.mib))
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    for name, value in values.items():
        print(f"{name:<28}{value:>12.4g}")
    print(f"\n{'goal':<28}{'measured':>12}{'goal':>15}")
    for name, smaller, limit in GOALS:
        if name not in values:
            continue
        bound = limit(values)
        met = values[name] <= bound if smaller else values[name] >= bound
        print(f"{name:<28}{values[name]:>12.4g}{'<=' if smaller else '>=':>5}{bound:>10.4g}  "
              f"{'met' if met else 'missed'}")
    if args.json:
        Path(args.json).write_text(json.dumps(values, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
