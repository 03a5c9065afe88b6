#!/usr/bin/env python3
"""Floor, native and SpanCL side by side, in one run, and against the goals.

Machines differ and are noisy, so nothing here is judged by its absolute value: the three are
taken in turn, round after round, and each goal is made of values of the same run. Prints a
table and the goals, writes everything as JSON. Ends with 0 whatever the figures are, with
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
from servers import Servers, children, native_vendors  # noqa: E402

DELAY_MS = 30


def with_round_trip(name, gpu_us, cpu_us, **more):
    """Native, one raw round trip and so much more; the wire is awake where there is a core for that."""
    return (name, True, name, {
        "gpu": lambda f, n: n[name] + f.get("tcp_round_trip_spinning", f["tcp_round_trip"]) + gpu_us,
        "cpu": lambda f, n: n[name] + f["tcp_round_trip"] + cpu_us, **more})


def times_native(name, gpu, cpu, one=None):
    return (name, True, name, {"gpu": lambda f, n: gpu * n[name], "cpu": lambda f, n: cpu * n[name],
                               "one": lambda f, n: (one or cpu) * n[name]})


def share_of_stream(name, stream, gpu, cpu):
    return (name, False, name, {"gpu": lambda f, n: gpu * min(n[name], f[stream]),
                                "cpu": lambda f, n: cpu * min(n[name], f[stream])})


def near_native(name, gpu_us, cpu_us, **more):
    """Over shared memory: native and so much more."""
    return (name, True, name, {"gpu": lambda f, n: n[name] + gpu_us, "cpu": lambda f, n: n[name] + cpu_us, **more})


def share_of_native(name, gpu, cpu):
    return (name, False, name, {"gpu": lambda f, n: gpu * n[name], "cpu": lambda f, n: cpu * n[name]})


def always(what, smaller, name, limit):
    return (what, smaller, name, {"gpu": limit, "cpu": limit})


# Each goal has a name, whether smaller is better, the measurement, and limits. The limits are functions of the
# floor's and the native values of the same run. "gpu" is for a machine with a GPU and cores to spare. "cpu" is for
# one with few cores and a CPU device; "one" replaces it on one CPU alone, where that differs.
GOALS = [
    with_round_trip("empty_kernel_finish", 3, 6, one=lambda f, n: n["empty_kernel_finish"] + 7.2),
    times_native("pipelined_kernel", 1.15, 1.5, one=2.5 / 0.87),
    times_native("event_chain_kernel", 1.2, 1.5),
    times_native("args8_kernel", 1.2, 1.5),
    *(always(name, True, name, lambda f, n: 2.0) for name in
      ("create_release_buffer", "create_release_kernel", "create_release_queue")),
    with_round_trip("write_4b", 3, 6),
    with_round_trip("read_4b", 3, 6),
    *(share_of_stream(f"{way}_{size}", f"tcp_stream_{size}", gpu, cpu)
      for size, gpu, cpu in (("1m", 0.75, 0.7), ("16m", 0.9, 0.85), ("256m", 0.9, 0.85))
      for way in ("write", "read")),
    always("first_context", True, "first_context", lambda f, n: n["first_context"] + 30),
    always("build that is cached", True, "build", lambda f, n: 3.0),
    always("client CPU time of an empty kernel", True, "empty_kernel_finish_cpu",
           lambda f, n: n["empty_kernel_finish_cpu"]),
    always("client CPU time, pipelined", True, "pipelined_kernel_cpu",
           lambda f, n: n["pipelined_kernel_cpu"]),
    ("lbm_64", False, "lbm_64",
     {"gpu": lambda f, n: 0.9 * n["lbm_64"], "cpu": lambda f, n: 0.95 * n["lbm_64"]}),
    ("lbm_256", False, "lbm_256", {"gpu": lambda f, n: 0.99 * n["lbm_256"]}),
    always(f"1000 launches and one finish, {DELAY_MS} ms away", True, "loop_far",
           lambda f, n: 1.05 * n["loop_far"] + 2 * DELAY_MS),
]

# Where they are others over shared memory.
GOALS_SHM = {goal[0]: goal for goal in (
    near_native("empty_kernel_finish", 2, 4, one=lambda f, n: n["empty_kernel_finish"] + 7.2),
    *(share_of_native(f"{way}_{size}", 0.7, 0.6) for size in ("16m", "256m") for way in ("write", "read")),
)}


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


def lbm(build, prefix, size, steps, env):
    """Of examples/lbm, which checks its result."""
    done = subprocess.run([*prefix, f"{build}/bin/lbm", "--size", str(size), "--steps", str(steps)], env=env,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600,
                          check=False)
    if done.returncode != 0:
        raise RuntimeError(f"lbm: status {done.returncode}\n{done.stderr}")
    value = float(done.stdout.split()[-2])
    return {f"lbm_{size}": {"unit": "MLUPs", "n": 1, "median": value, "p10": value, "p90": value}}


class Far:
    """The servers as they look from afar: their ports through a wire that takes its time."""

    def __init__(self, servers):
        script = Path(__file__).resolve().parent / "delay.py"
        self.process = subprocess.Popen([sys.executable, script, str(DELAY_MS),
                                         *(str(p) for p in servers.ports)],
                                        stdout=subprocess.PIPE, text=True)
        ports = self.process.stdout.readline().split()
        self.environment = {**servers.environment(),
                            "SPANCL_SERVERS": " ".join(f"localhost:{p}" for p in ports)}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def loop(build, prefix, env):
    """1000 launches and one clFinish."""
    return {"loop_far": measure([*prefix, f"{build}/bin/bench_far", "1000"], env)["loop"]}


def private_kib(pid):
    """Memory that a process adds: its proportional share, and what is its own alone."""
    wanted = {"Pss:": 0, "Private_Clean:": 0, "Private_Dirty:": 0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        words = line.split()
        if words and words[0] in wanted:
            wanted[words[0]] = int(words[1])
    return {"pss_kib": wanted["Pss:"],
            "private_kib": wanted["Private_Clean:"] + wanted["Private_Dirty:"]}


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


def judge(kind, transport, floor, native, spancl):
    f, n, s = ({k: v["median"] for k, v in x.items()} for x in (floor, native, spancl))
    verdicts = []
    for goal in GOALS:
        what, smaller, name, limits = GOALS_SHM.get(goal[0], goal) if transport in ("shm", "in-process") else goal
        limit = limits.get(kind) or (limits.get("cpu") if kind == "one" else None)
        if not limit or name not in n or name not in s:
            continue
        try:
            limit = limit(f, n)
        except KeyError:
            continue
        value = s[name]
        verdicts.append({"goal": what, "unit": spancl[name]["unit"], "smaller": smaller,
                         "native": n[name], "value": value, "limit": limit,
                         "met": value <= limit if smaller else value >= limit})
    return verdicts


def print_goals(verdicts):
    print(f"{'goal':<48}{'native':>12}{'measured':>12}{'goal':>15}")
    for v in verdicts:
        limit = f"{'<=' if v['smaller'] else '>='} {v['limit']:.4g}"
        print(f"{v['goal']:<48}{v['native']:>12.4g}{v['value']:>12.4g}{limit:>15}  {v['unit']:<6}"
              f"{'met' if v['met'] else 'missed'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--scale", type=int, default=50, help="percent of the full sample counts")
    parser.add_argument("--only", default="", help="only measurements that begin so")
    parser.add_argument("--max-mib", type=int, default=256)
    parser.add_argument("--pin", help="CPU list on which everything runs (taskset -c)")
    parser.add_argument("--transport", choices=("tcp", "unix", "shm", "in-process"), default="tcp")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--goals", choices=("gpu", "cpu"), default="cpu",
                        help="goals for a GPU and cores to spare, or a CPU device (with one CPU in --pin: for that)")
    parser.add_argument("--lbm", default="64", help="sizes for examples/lbm, with commas; none: ''")
    parser.add_argument("--lbm-steps", type=int, default=200)
    parser.add_argument("--json", help="file for the results")
    parser.add_argument("--plot", help="file for a picture of the results (SVG)")
    args = parser.parse_args()

    prefix = ["taskset", "-c", args.pin] if args.pin else []
    floor_command = [*prefix, f"{args.build}/bin/bench_floor"]
    opencl_command = [*prefix, f"{args.build}/bin/bench_opencl", "--scale", str(args.scale),
                      "--only", args.only, "--max-mib", str(args.max_mib)]
    sizes = [int(size) for size in args.lbm.split(",") if size]
    floors, natives, spancls = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        vendors = native_vendors(folder)
        native_env = {**os.environ, "OCL_ICD_VENDORS": vendors}
        # A round that warms file caches and kernel caches on both sides, not counted.
        measure([*opencl_command, "--only", "empty"], native_env)
        with Servers(args.build, prefix=prefix, vendors=vendors,
                     transport=args.transport) as servers, Far(servers) as far:
            try:
                measure([*opencl_command, "--only", "empty"], servers.environment())
                for env in (native_env, far.environment):
                    loop(args.build, prefix, env)
                for i in range(args.rounds):
                    floors.append(measure(floor_command))
                    natives.append(measure(opencl_command, native_env))
                    spancls.append(measure(opencl_command, servers.environment()))
                    for size in sizes:
                        for rounds, env in ((natives, native_env), (spancls, servers.environment())):
                            rounds[-1].update(lbm(args.build, prefix, size, args.lbm_steps, env))
                    natives[-1].update(loop(args.build, prefix, native_env))
                    spancls[-1].update(loop(args.build, prefix, far.environment))
                    print(f"round {i + 1} of {args.rounds}", file=sys.stderr)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(error, file=sys.stderr)
                print(servers.log_text()[-4000:], file=sys.stderr)
                return 1
        idle = None if args.no_memory else memory(args.build, vendors)

    floor, native, spancl = collect(floors), collect(natives), collect(spancls)
    one = args.pin is not None and args.pin.isdigit()
    verdicts = judge("one" if one else args.goals, args.transport, floor, native, spancl)
    table(floor, native, spancl)
    print()
    print_goals(verdicts)
    if idle:
        for name in ("session_workers", "warm_workers"):
            if idle[name]:
                pss = statistics.median(m["pss_kib"] for m in idle[name]) / 1024
                private = statistics.median(m["private_kib"] for m in idle[name]) / 1024
                print(f"{name}: {pss:.1f} MiB PSS, {private:.1f} MiB private each")
    results = json.dumps({"machine": machine(), "rounds": args.rounds, "pin": args.pin,
                          "transport": args.transport, "floor": floor, "native": native,
                          "spancl": spancl, "goals": verdicts, "memory": idle}, indent=1)
    if args.json:
        Path(args.json).parent.mkdir(parents=True, exist_ok=True)
        Path(args.json).write_text(results + "\n")
    if args.plot:
        subprocess.run([f"{args.build}/bin/spancl", "bench", "--plot", args.plot, "--results", "/dev/stdin"],
                       input=results, text=True, check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
