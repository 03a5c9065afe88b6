#!/usr/bin/env python3
"""A client with 1 to 256 servers: the time of its first query of devices, its memory, and a round trip beside servers
that nothing uses, at first and when their sessions have ended, if they had any (--sessions); and the time until an
idle server has one. All servers are one process (bench_fleet), so the figures are the client's."""

import argparse
import json
import os
import subprocess
from pathlib import Path
from statistics import median

COUNTS = (1, 4, 16, 64, 256)


def measure(build, count, devices, rounds, sessions=False):
    results = []
    for _ in range(rounds):
        with subprocess.Popen([build / "bin/bench_fleet", str(devices), *["sessions"] * sessions], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              text=True) as fleet:
            port = fleet.stdout.readline().strip()
            env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
            env["SPANCL_IDLE"] = "1000"
            env["OCL_ICD_VENDORS"] = str(build / "etc/vendors")
            env["SPANCL_SERVERS"] = " ".join(f"127.0.{i // 200}.{i % 200 + 1}:{port}" for i in range(count))
            done = subprocess.run([build / "bin/bench_platform"], env=env, stdout=subprocess.PIPE, check=True)
            results.append(json.loads(done.stdout))
            fleet.stdin.close()
    assert all(r["devices"] == count * devices for r in results), results
    return {key: median(r[key] for r in results) for key in results[0]}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--devices", type=int, nargs="+", default=[1, 2, 4], choices=[1, 2, 4])
    parser.add_argument("--sessions", action="store_true", help="the servers describe no devices, and begin sessions")
    args = parser.parse_args()
    print("| servers | devices of each | first query, ms | second, us | KiB for each server: resident | allocated | "
          "read of 4 bytes, us | idle: resident | allocated | read of 4 bytes, us | context, ms |")
    print("|---" * 11 + "|")
    for devices in args.devices:
        base = None
        for count in COUNTS:
            r = measure(args.build.resolve(), count, devices, args.rounds, args.sessions)
            base = base or r
            kib = [(r[k] - base[k]) / (count - 1) if count > 1 else r[k]
                   for k in ("memory_kib", "heap_kib", "idle_memory_kib", "idle_heap_kib")]
            print(f"| {count} | {devices} | {r['first_ms']:.1f} | {r['second_us']:.1f} | {kib[0]:.1f} | {kib[1]:.1f} | "
                  f"{r['read_4_us']:.1f} | {kib[2]:.1f} | {kib[3]:.1f} | {r['idle_read_4_us']:.1f} | "
                  f"{r['again_ms']:.1f} |", flush=True)


if __name__ == "__main__":
    main()
