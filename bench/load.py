#!/usr/bin/env python3
"""load.py idle|active|soak [OPTIONS]: one server with many sessions.

idle    --sessions N sessions that do nothing: what each costs
active  --clients N programs at the same time, each of which checks what it computes
soak    a verified workload over and over for --seconds N, its connections cut every --every S seconds: whether memory,
        descriptors, threads and scratch folders of the server stay as they were

Prints what it saw as JSON. Ends with 1 when something was computed wrong or did not come to an end."""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from relay import Relay  # noqa: E402
from servers import Servers, children, native_vendors, zygote  # noqa: E402


def rollup(pid):
    """kB of a process: its share of what is shared, and what it alone has."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    values = {name: int(value) for name, value in re.findall(r"^(\w+):\s+(\d+) kB", text, re.M)}
    return values["Pss"], values["Private_Clean"] + values["Private_Dirty"]


def usage(pid):
    """What a server holds, its processes' resources included."""
    pids = [p for p in (pid, zygote(pid), *children(pid)) if p]
    found = {"processes": len(pids), "pss_kib": 0, "descriptors": 0, "threads": 0}
    for p in pids:
        try:
            found["pss_kib"] += rollup(p)[0]
            found["descriptors"] += len(os.listdir(f"/proc/{p}/fd"))
            found["threads"] += len(os.listdir(f"/proc/{p}/task"))
        except OSError:
            pass  # it has just ended
    return found


def settle(pid, seconds=30):
    """Until only the warm worker is left."""
    end = time.monotonic() + seconds
    while len(children(pid)) > 1 and time.monotonic() < end:
        time.sleep(0.2)
    time.sleep(1)


def idle(given, server, _env):
    address = f"tcp:127.0.0.1:{server.ports[0]}"
    pid = server.processes[0].pid
    begin = time.monotonic()
    holder = subprocess.Popen([str(given.build / "bin/bench_sessions"), address, str(given.sessions)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    count = int(holder.stdout.readline())
    took = time.monotonic() - begin
    time.sleep(2)
    workers = [rollup(p) for p in children(pid)]
    supervisor, shared = rollup(pid), zygote(pid)
    ping = subprocess.run([str(given.build / "bin/spancl"), "ping", address], stdout=subprocess.PIPE, text=True,
                          check=False, env={k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")})
    holder.communicate()
    end = time.monotonic()
    while len(children(pid)) > 2 and time.monotonic() < end + 120:
        time.sleep(0.2)
    settle(pid)
    return {"sessions": count, "began_in_s": took, "one_more_is_served": ping.returncode == 0,
            "worker_pss_kib": sum(w[0] for w in workers) / len(workers),
            "worker_private_kib": sum(w[1] for w in workers) / len(workers),
            "supervisor_private_kib": supervisor[1], "zygote_private_kib": shared and rollup(shared)[1], "left": usage(pid)}, count < given.sessions


def active(given, server, env):
    begin = time.monotonic()
    clients = [subprocess.Popen([str(given.build / "bin/bench_opencl"), "--only", only, "--scale", "20", "--max-mib", "1"],
                                env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
               for only in (["pipelined", "empty", "event_chain", "transfer"] * given.clients)[:given.clients]]
    wrong = []
    for client in clients:
        _, err = client.communicate()
        if client.returncode:
            wrong.append(err.strip())
    took = time.monotonic() - begin
    settle(server.processes[0].pid)
    return {"clients": len(clients), "wrong": wrong, "took_s": took,
            "left": usage(server.processes[0].pid)}, bool(wrong)


def soak(given, server, env):
    relay = Relay(server.ports[0])
    pid = server.processes[0].pid
    env = dict(env, SPANCL_SERVERS=f"localhost:{relay.port}", SPANCL_ON_LOSS="wait")
    end = time.monotonic() + given.seconds
    seen, runs, wrong = [], 0, []
    while time.monotonic() < end and not wrong:
        client = subprocess.Popen([str(given.build / "bin/bench_opencl"), "--scale", "200", "--max-mib", "16"], env=env,
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        at = time.monotonic()
        while client.poll() is None:
            time.sleep(0.05)
            if time.monotonic() >= at + given.every:
                at = time.monotonic()
                relay.cut()
        if client.returncode:
            wrong.append(client.stderr.read().strip())
        runs += 1
        settle(pid)
        seen.append(usage(pid))
    relay.close()
    return {"seconds": given.seconds, "runs": runs, "cuts": relay.cuts, "wrong": wrong, "first": seen[0],
            "last": seen[-1], "pss_kib": [s["pss_kib"] for s in seen]}, bool(wrong)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=("idle", "active", "soak"))
    options.add_argument("--build", default="build/release", type=Path)
    options.add_argument("--sessions", type=int, default=1000)
    options.add_argument("--clients", type=int, default=64)
    options.add_argument("--seconds", type=float, default=3600)
    options.add_argument("--every", type=float, default=3)
    options.add_argument("--backend", default="native")
    options.add_argument("--spancld", default="", metavar="OPTIONS", help="further options of spancld, in one text")
    given = options.parse_args()
    given.build = given.build.resolve()
    with tempfile.TemporaryDirectory() as folder, \
            Servers(given.build, 1, ("--backend", given.backend, "--sessions", "65536", "--linger", "20", *given.spancld.split()),
                    vendors=native_vendors(folder)) as server:
        run = {"idle": idle, "active": active, "soak": soak}[given.what]
        settle(server.processes[0].pid)
        before = usage(server.processes[0].pid)
        found, bad = run(given, server, server.environment())
    print(json.dumps({"before": before, **found}, indent=1))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
