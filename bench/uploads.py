#!/usr/bin/env python3
"""Measures the upload cache. Three processes send the same data to a server: with the cache off, with an empty cache, and
again. A relay on this host limits the link to a number of bits per second. Prints the seconds of each write (the
program's clEnqueueWriteBuffer) and the bytes on the link. Ends with 1 when a measurement could not be taken."""

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from relay import Forwarder, shut_down  # noqa: E402
from servers import Servers  # noqa: E402

MIB = 1 << 20


class Link(Forwarder):
    """Both directions take `rate` bytes per second each, and count them."""

    def __init__(self, port, rate):
        self.rate, self.sent = rate, 0
        super().__init__(port)

    def _forward(self, client, server):
        for a, b, counts in ((client, server, True), (server, client, False)):
            for s in (a, b):
                s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._pass_on, args=(a, b, counts), daemon=True).start()

    def _pass_on(self, a, b, counts):
        free = time.monotonic()  # when the bytes so far have left
        try:
            while data := a.recv(MIB):
                free = max(free, time.monotonic()) + len(data) / self.rate
                ahead = free - time.monotonic()
                if ahead > 0.0005:
                    time.sleep(ahead)
                b.sendall(data)
                self.sent += len(data) if counts else 0
        except OSError:
            pass
        shut_down(a, b)


def upload(args, servers, link, keys, mode, seed):
    before = link.sent
    env = {**servers.environment(), "SPANCL_KEYS": keys, "SPANCL_UPLOAD_CACHE": mode,
           "SPANCL_SERVERS": f"tls:localhost:{link.port}", "SPANCL_COMPRESSION": "off"}
    done = subprocess.run([args.program, str(args.mib), str(seed), "unchecked"], env=env, text=True,
                          stdout=subprocess.PIPE, timeout=600, check=True)
    return float(done.stdout), link.sent - before


def stored(folder):
    files = list(Path(folder).glob("cache-uploads/*/[0-9a-f]*"))
    return sum(f.stat().st_size for f in files)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--mbit", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--backend", default="reference")
    parser.add_argument("--json", help="file for the results")
    args = parser.parse_args()
    build = Path(args.build).resolve()
    args.program = str(build / "bin/system_uploader")
    results = []
    with tempfile.TemporaryDirectory() as folder:
        keys = f"{folder}/client"
        options = ("--backend", args.backend, "--keys", f"{folder}/server", "--cache", f"{folder}/cache")
        with Servers(build, 1, options) as servers:
            link = Link(servers.ports[0], args.mbit * 1e6 / 8)
            code = subprocess.run([str(build / "bin/spancld"), "pair", "--keys", f"{folder}/server"], text=True,
                                  stdout=subprocess.PIPE, check=True).stdout
            code = next(w.strip(".,") for w in code.split() if w.count("-") == 2)
            subprocess.run([str(build / "bin/spancl"), "pair", f"localhost:{link.port}", code], check=True,
                           env={**os.environ, "SPANCL_KEYS": keys}, stdout=subprocess.DEVNULL)
            for seed in range(args.rounds):
                row = {"off": upload(args, servers, link, keys, "off", seed),
                       "empty": upload(args, servers, link, keys, "on", seed)}
                while stored(folder) < min(args.mib, 2048) * MIB:
                    time.sleep(0.05)
                row["again"] = upload(args, servers, link, keys, "on", seed)
                results.append(row)
                print("  ".join(f"{name} {s:.3f} s {sent / MIB:.2f} MiB" for name, (s, sent) in row.items()),
                      f" off / again {row['off'][0] / row['again'][0]:.1f}", flush=True)
                for f in Path(folder).glob("cache-uploads/*/*"):
                    f.unlink()
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
