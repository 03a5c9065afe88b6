#!/usr/bin/env python3
"""Measures examples/ar in all its places. The client is a host of its own, a network namespace, with a slice of a core
and a link like Wi-Fi 6, 5G or Ethernet; a server with a media device is the other end. Needs root.

The link's rate is limited by tbf. The delay is that of a TCP proxy before the server, since kernels without netem are
common. The slice is a quota of CPU time (cgroup v1 or v2) on one core, which the client is pinned to; without a cgroup
the client runs with nice 19. PoCL on the client has one thread, and SpanCL does not spin. Energy is the client's CPU
time times WATTS, an assumption, without radio and screen: compare it only with energies of other places.

A table has the latency from the camera's picture to the finished one. Bytes, CPU time and energy are the client's for
each frame."""

import argparse
import asyncio
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import delay  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import native_vendors  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
PLACES = "local,sort-host,sort-p2p,sort-content,points,layer,video"
LINKS = {"wifi6": ("600mbit", 3), "5g": ("100mbit", 10), "ethernet": ("1gbit", 0.2)}  # rate, round trip in ms
WATTS = 2.5  # of a core that computes
PORT, PERIOD_US = 7000, 10000  # short: a slow core is slow at all times


class Slice:
    """A cgroup whose processes get `percent` of a core."""

    def __init__(self, percent):
        name = f"spancl-ar-{os.getpid()}"
        self.folder, self.how = None, "nice 19: no cgroup"
        quota = PERIOD_US * percent // 100
        for folder, files in ((Path("/sys/fs/cgroup/cpu") / name, {"cpu.cfs_period_us": str(PERIOD_US),
                                                                   "cpu.cfs_quota_us": str(quota)}),
                              (Path("/sys/fs/cgroup") / name, {"cpu.max": f"{quota} {PERIOD_US}"})):
            with contextlib.suppress(OSError):
                if not folder.parent.is_dir() or not folder.parent.joinpath("cgroup.procs").exists():
                    continue
                folder.mkdir()
                self.folder = folder
                for file, text in files.items():
                    (folder / file).write_text(text)
                self.how = f"{percent} % of a core, by a quota"
                return

    def command(self):
        if not self.folder:
            return ["nice", "-n", "19"]
        core = max(os.sched_getaffinity(0))
        return ["sh", "-c", f'echo $$ > {self.folder}/cgroup.procs && exec taskset -c {core} "$@"', "sh"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.folder:
            self.folder.rmdir()


async def serve_delay(round_trip_ms):
    server = await asyncio.start_server(lambda r, w: delay.connect(7777, round_trip_ms / 2000, r, w), "0.0.0.0", PORT)
    print("ready", flush=True)
    async with server:
        await server.serve_forever()


@contextlib.contextmanager
def link(hosts, name):
    """Join the two hosts by a link of LINKS, with a proxy that delays."""
    rate, round_trip_ms = LINKS[name]
    for host, device in (("client", "toserver"), ("server", "toclient")):
        subprocess.run([*hosts.inside(host), "tc", "qdisc", "replace", "dev", device, "root", "tbf", "rate", rate,
                        "burst", "256k", "latency", "100ms"], check=True)
    with subprocess.Popen([*hosts.inside("server"), sys.executable, __file__, "--serve-delay", str(round_trip_ms)],
                          stdout=subprocess.PIPE) as proxy:
        proxy.stdout.readline()
        yield
        proxy.terminate()


def ar(build, options, where, prefix=(), **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    env.update(OCL_ICD_VENDORS=str(build / "etc/vendors"), SPANCL_SERVERS=where, SPANCL_MEDIA="on",
               POCL_MAX_PTHREAD_COUNT="1", **more)
    done = subprocess.run([*prefix, str(build / "bin/ar"), *options, "--figures"], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    if done.stderr:
        print(done.stderr, end="", file=sys.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def row(found, local):
    energy = found["cpu_ms"] / 1e3 * WATTS
    same = "the same" if found["same"] else f"{found['psnr_db']:.1f} dB"
    cells = (found["place"], f"{found['fps']:.2f}", f"{found['fps'] / local['fps']:.1f}", f"{found['latency_ms']:.0f}",
             f"{found['up_bytes'] / 1e3:.0f}", f"{found['down_bytes'] / 1e3:.0f}", f"{found['cpu_ms']:.0f}",
             f"{energy:.3f}", f"{100 * found['cpu_ms'] / local['cpu_ms']:.1f} %", same)
    return f"| {' | '.join(cells)} |"


HEAD = ("| place | frames/s | × local | latency, ms | up, kB | down, kB | CPU, ms | energy, J | of local | pictures |\n"
        + "|---" * 10 + "|")


def measure(build, arguments, options):
    """Prints a table for each link. Returns False if a place gave no figures."""
    complete = True
    with tempfile.TemporaryDirectory() as folder, Slice(arguments.slice) as part, \
            Hosts(["client", "server"], [("client", "server", "10.77.1")]) as hosts:
        pictures = str(Path(folder) / "local.rgba")
        ar(build, [*options, "--raw", pictures], "in-process")
        hosts.spancld(build, "server", vendors=native_vendors(folder), options=("--media", arguments.media))
        print(f"client: {part.how}; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
        for name in arguments.links.split(","):
            rate, round_trip_ms = LINKS[name]
            with link(hosts, name):
                found = ar(build, [*options, "--place", arguments.places, "--compare", pictures, "--link", "toserver"],
                           f"tcp:10.77.1.2:{PORT} in-process", [*part.command(), *hosts.inside("client")])
            print(f"\n{name}: {rate}/s, {round_trip_ms} ms\n\n{HEAD}", flush=True)
            if len(found) != len(arguments.places.split(",")):
                complete = False
                print(hosts.servers[0].log_text(), file=sys.stderr)
            for f in found:
                if f["place"] != "local" and not f["up_bytes"]:
                    print("the client did not use the server", file=sys.stderr)
                    return False
                print(row(f, found[0]), flush=True)
    return complete


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--slice", type=int, default=25, help="percents of a core that the client has")
    parser.add_argument("--media", default="on", help="the server's media device, as spancld's option")
    parser.add_argument("--links", default=",".join(LINKS))
    parser.add_argument("--places", default=PLACES, help="others are compared with the first one")
    parser.add_argument("--serve-delay", type=float, help=argparse.SUPPRESS)
    arguments, options = parser.parse_known_args()
    if arguments.serve_delay is not None:
        asyncio.run(serve_delay(arguments.serve_delay))
        return 0
    if not may_make_hosts():
        print("network namespaces can't be made here", file=sys.stderr)
        return 77
    return 0 if measure(Path(arguments.build).resolve(), arguments, options) else 1


if __name__ == "__main__":
    sys.exit(main())
