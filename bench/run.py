#!/usr/bin/env python3
"""Floor, native and SpanCL side by side, in one run.

Machines differ and are noisy, so nothing here is judged by its absolute value: the three are
taken in turn, round after round, and each target is a ratio of values of the same run. Prints a
table and the targets, writes everything as JSON. Ends with 0 whatever the figures are, with
1 when a measurement could not be taken.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from servers import Servers, native_vendors  # noqa: E402

TARGETS = [
    # (what, whether smaller is better, value, limit)
    ("empty kernel + finish <= native + round trip + 25 us", True,
     lambda f, n, s: s["empty_kernel_finish"],
     lambda f, n, s: n["empty_kernel_finish"] + f["tcp_round_trip"] + 25),
    ("pipelined kernel <= 4 x native", True,
     lambda f, n, s: s["pipelined_kernel"], lambda f, n, s: 4 * n["pipelined_kernel"]),
    ("write 16 MiB >= 50 % of the TCP stream", False,
     lambda f, n, s: s["write_16m"], lambda f, n, s: 0.5 * f["tcp_stream_16m"]),
    ("read 16 MiB >= 50 % of the TCP stream", False,
     lambda f, n, s: s["read_16m"], lambda f, n, s: 0.5 * f["tcp_stream_16m"]),
    ("first context <= native + 100 ms", True,
     lambda f, n, s: s["first_context"], lambda f, n, s: n["first_context"] + 100),
]


def measure(command, env=None):
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=600, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: status {done.returncode}\n"
                           + done.stderr.decode(errors="replace"))
    return json.loads(done.stdout)


def collect(rounds):
    """Medians over rounds of each round's median, and the spread between rounds."""
    result = {}
    for name in rounds[0]:
        values = [r[name]["median"] for r in rounds if name in r]
        result[name] = {"unit": rounds[0][name]["unit"], "median": statistics.median(values),
                        "lowest": min(values), "highest": max(values),
                        "p10": statistics.median(r[name]["p10"] for r in rounds),
                        "p90": statistics.median(r[name]["p90"] for r in rounds)}
    return result


def private_kib(pid):
    """Memory that a process adds: its proportional share, and what is its own alone."""
    wanted = {"Pss:": 0, "Private_Clean:": 0, "Private_Dirty:": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        words = line.split()
        if words and words[0] in wanted:
            wanted[words[0]] = int(words[1])
    return {"pss_kib": wanted["Pss:"],
            "private_kib": wanted["Private_Clean:"] + wanted["Private_Dirty:"]}


def children(pid):
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        found += [int(p) for p in (task / "children").read_text().split()]
    return found


def memory(build, vendors, sessions=3):
    """What an idle session that has built and run a kernel costs its server."""
    with Servers(build, vendors=vendors) as servers:
        pid = servers.processes[0].pid
        before = set(children(pid))
        idle = [private_kib(p) for p in before]
        clients = []
        for _ in range(sessions):
            client = subprocess.Popen([f"{build}/bin/bench_opencl", "--hold", "--scale", "5"],
                                      env=servers.environment(), stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True)
            clients.append(client)
            for line in client.stdout:
                if "empty_kernel_finish" in line:
                    break
        # Workers that served a session have grown; the one kept warm has not.
        workers = sorted((private_kib(p) for p in children(pid)), key=lambda m: -m["private_kib"])
        result = {"supervisor": private_kib(pid), "warm_workers": idle,
                  "session_workers": workers[:sessions]}
        for client in clients:
            client.stdin.close()
            client.stdout.read()
            client.wait(timeout=60)
    return result


def machine():
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.split(":", 1)[1].strip()
            break
    return {"cpu": model, "cores": os.cpu_count(), "kernel": platform.release()}


def table(floor, native, spancl):
    print(f"{'floor':<30}{'median':>12}{'p10':>12}{'p90':>12}")
    for name, m in floor.items():
        print(f"{name:<30}{m['median']:>12.4g}{m['p10']:>12.4g}{m['p90']:>12.4g}  {m['unit']}")
    print()
    print(f"{'':<30}{'native':>12}{'SpanCL':>12}{'p10':>12}{'p90':>12}{'ratio':>9}")
    for name, m in spancl.items():
        n = native.get(name)
        if not n:
            continue
        ratio = m["median"] / n["median"] if n["median"] else float("nan")
        print(f"{name:<30}{n['median']:>12.4g}{m['median']:>12.4g}{m['p10']:>12.4g}"
              f"{m['p90']:>12.4g}{ratio:>9.3g}  {m['unit']}")


def judge(floor, native, spancl):
    f, n, s = ({k: v["median"] for k, v in x.items()} for x in (floor, native, spancl))
    verdicts = []
    for what, smaller, value, limit in TARGETS:
        try:
            v, l = value(f, n, s), limit(f, n, s)
        except KeyError:
            continue
        verdicts.append({"target": what, "value": v, "limit": l,
                         "met": v <= l if smaller else v >= l})
    return verdicts


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=50, help="percent of the full sample counts")
    parser.add_argument("--only", default="", help="only measurements that begin so")
    parser.add_argument("--max-mib", type=int, default=256)
    parser.add_argument("--pin", help="CPU list on which everything runs (taskset -c)")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--json", help="file for the results")
    args = parser.parse_args()

    prefix = ["taskset", "-c", args.pin] if args.pin else []
    floor_command = [*prefix, f"{args.build}/bin/bench_floor"]
    opencl_command = [*prefix, f"{args.build}/bin/bench_opencl", "--scale", str(args.scale),
                      "--only", args.only, "--max-mib", str(args.max_mib)]
    floors, natives, spancls = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        vendors = native_vendors(folder)
        native_env = {**os.environ, "OCL_ICD_VENDORS": vendors}
        # A round that warms file caches and kernel caches on both sides, not counted.
        measure([*opencl_command, "--only", "empty"], native_env)
        with Servers(args.build, prefix=prefix, vendors=vendors) as servers:
            try:
                measure([*opencl_command, "--only", "empty"], servers.environment())
                for i in range(args.rounds):
                    floors.append(measure(floor_command))
                    natives.append(measure(opencl_command, native_env))
                    spancls.append(measure(opencl_command, servers.environment()))
                    print(f"round {i + 1} of {args.rounds}", file=sys.stderr)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(error, file=sys.stderr)
                print(servers.log_text()[-4000:], file=sys.stderr)
                return 1
        idle = None if args.no_memory else memory(args.build, vendors)

    floor, native, spancl = collect(floors), collect(natives), collect(spancls)
    verdicts = judge(floor, native, spancl)
    table(floor, native, spancl)
    print()
    for v in verdicts:
        print(f"{'met   ' if v['met'] else 'missed'}  {v['target']}: "
              f"{v['value']:.4g} (limit {v['limit']:.4g})")
    if idle:
        for name in ("session_workers", "warm_workers"):
            if idle[name]:
                pss = statistics.median(m["pss_kib"] for m in idle[name]) / 1024
                private = statistics.median(m["private_kib"] for m in idle[name]) / 1024
                print(f"{name}: {pss:.1f} MiB PSS, {private:.1f} MiB private each")
    if args.json:
        Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        Path(args.json).write_text(json.dumps({
            "machine": machine(), "rounds": args.rounds, "pin": args.pin, "floor": floor,
            "native": native, "spancl": spancl, "targets": verdicts, "memory": idle},
            indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
