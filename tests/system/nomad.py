#!/usr/bin/env python3
"""nomad.py BUILD [SECONDS [SEED]]: a client computes without a pause, and bit-exact, while servers are started,
drained, killed and moved to other addresses around it."""

import random
import signal
import subprocess
import sys
import time

from discovery import BUILD, HANG_S, Client, Folder, Server

SERVERS = 4


class World:
    """The servers that there are, and the file that names them."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.folder = Folder()
        self.servers = {}
        self.draining = []
        self.counts = dict.fromkeys(("start", "drain", "kill", "move"), 0)
        self.start("s0")

    def write(self):
        self.folder.write(*(s.record(name) for name, s in self.servers.items()))

    def start(self, name):
        self.servers[name] = Server()
        self.write()

    def take(self):
        name = self.random.choice(sorted(self.servers))
        return name, self.servers.pop(name)

    def drain(self):
        """By the verb or the signal. The record goes first, as that of --advertise does."""
        _, server = self.take()
        self.write()
        if self.random.random() < 0.5:
            server.processes[0].send_signal(signal.SIGUSR1)
        else:
            verb = subprocess.run([str(BUILD / "bin/spancl"), "drain", server.address(0)], text=True,
                                  capture_output=True, timeout=HANG_S)
            assert verb.returncode == 0, verb.stderr
        self.draining.append(server)

    def kill(self):
        """Its record stays for a moment."""
        _, server = self.take()
        server.processes[0].kill()
        server.processes[0].wait()
        self.pause()
        self.write()
        server.stop()

    def move(self):
        name, server = self.take()
        self.servers[name] = Server()
        if self.random.random() < 0.5:  # the old one goes before the new address is known
            server.stop()
            self.write()
        else:
            self.write()
            server.stop()

    def pause(self):
        time.sleep(self.random.uniform(0, 0.5))

    def step(self):
        missing = [n for n in (f"s{i}" for i in range(SERVERS)) if n not in self.servers]
        what = self.random.choice(("start", "drain", "kill", "move"))
        if len(self.servers) < 2:
            what = "start"
        elif what == "start" and not missing:
            what = "move"
        if what == "start":
            self.start(self.random.choice(missing))
        else:
            getattr(self, what)()
        self.counts[what] += 1
        self.draining = [s for s in self.draining if s.processes[0].poll() is None]
        self.pause()

    def end(self):
        for s in self.draining:  # the last client has gone
            assert s.processes[0].wait(HANG_S) == 0
        for s in self.servers.values():
            s.stop()


def main():
    seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 15
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    print(f"seed {seed}", flush=True)
    world = World(seed)
    client = Client(world.folder.source, program="system_nomad")
    try:
        assert client.process.stdout.readline() == "computes\n", client.log()
        until = time.monotonic() + seconds
        while time.monotonic() < until or not all(world.counts.values()):
            world.step()
            assert client.process.poll() is None, client.log()
        client.process.stdin.close()
        result = client.process.stdout.readline().split()
        assert client.process.wait(HANG_S) == 0, client.log()
    except BaseException:
        client.process.kill()
        print(client.log(), file=sys.stderr)
        raise
    figures = dict(zip(result[::2], map(int, result[1::2])))
    print(world.counts, figures)
    assert figures["devices"] > 1 and figures["new"] and figures["gone"], figures
    world.end()


if __name__ == "__main__":
    main()
