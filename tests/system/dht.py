#!/usr/bin/env python3
"""dht.py BUILD [NAME...]: claims about servers in a distributed hash table, by the real OpenDHT, in network namespaces.
Each function is one claim. Status 77: namespaces are not permitted here."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import Servers, every_child, native_vendors  # noqa: E402
from sources import BUILD, HANG_S, LIBEXEC, Lines, is_running, wait_for  # noqa: E402

PORT = 4222
KEY = "lab key"
LIFE_S = 1500  # of a record (DHT_LIFE_S)


class Node:
    """A node of the table, on a port of its own."""

    def __init__(self, net, host, port, bootstrap):
        self.process = subprocess.Popen([*net.hosts.inside(host), BUILD / "bin/system_dht_node", str(port), KEY, *bootstrap],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        word, self.key = self.process.stdout.readline().split()
        assert word == "ready"
        self.expect("met", len(bootstrap))

    def send(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def expect(self, word, count=1):
        for _ in range(count):
            answer = self.process.stdout.readline()
            assert answer == word + "\n", answer

    def store(self, line):
        self.send(line)
        self.expect("stored")

    def kill(self):
        self.process.kill()
        self.process.wait(HANG_S)


class Network:
    """Hosts "near" and "far", which a wire joins over IPv4 and IPv6, and nodes on "far"."""

    def __init__(self, count=1, family=4):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o755)
        self.hosts = Hosts(["near", "far"], [("near", "far", "10.77.1")])
        self.family, self.nodes, self.places = family, [], []
        try:
            for n in range(count):
                self.node("far", n)
        except BaseException:
            self.__exit__()
            raise

    def node(self, host, n):
        self.nodes.append(Node(self, host, PORT + n, list(self.places)))
        self.places.append(f"{self.address(host)}:{PORT + n}")
        return self.nodes[-1]

    def address(self, host):
        return ("10.77.1." if self.family == 4 else "fd77:1::") + ("1" if host == "near" else "2")

    def place(self, n=0):
        """Node N as a user names it."""
        address, _, port = self.places[n].rpartition(":")
        return f"[{address}]:{port}" if ":" in address else self.places[n]

    def source(self, bootstrap=None, host="near", **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPANCL_", "POCL_"))}
        env.update({"SPANCL_DHT_BOOTSTRAP": self.place() if bootstrap is None else bootstrap, "SPANCL_DHT_KEY": KEY}, **more)
        return Lines([*self.hosts.inside(host), LIBEXEC / "discover-dht"], env)

    def spancld(self, *options, port=4333):
        subprocess.run([BUILD / "bin/spancld", "pair", "--keys", f"{self.folder.name}/keys"], check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL)
        return Servers(BUILD, 1, ("--backend", "reference", "--log", "info", "--keys", f"{self.folder.name}/keys",
                                  "--listen", "*:7777", "--advertise=dht", "--dht-key", KEY, "--dht-port", str(port),
                                  "--dht-bootstrap", self.place(), *options),
                       prefix=self.hosts.inside("far"), vendors=native_vendors(self.folder.name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()
        self.hosts.__exit__()
        self.folder.cleanup()


def a_server_appears_and_goes():
    with Network() as net, net.source() as found:
        found.until("settled")
        begin = time.monotonic()
        with net.spancld() as s:
            got = found.until("appears")
            appeared = time.monotonic() - begin
            assert len(got["key"]) == 64 and got["id"] == got["key"], got
            assert sorted(got["addresses"]) == ["10.77.1.2", "fd77:1::2"] and got["port"] == 7777, got
            assert got["kind"] == "spancl" and got["protocol"] >= 1 and got["load"] == 0, got
            maps = Path(f"/proc/{s.processes[0].pid}/maps").read_text()
            assert "opendht" not in maps, "the supervisor has loaded the library"
            pid = next(p for p in every_child(s.processes[0].pid)
                       if b"advertise-dht" in Path(f"/proc/{p}/cmdline").read_bytes())
            status = Path(f"/proc/{pid}/status").read_text()
            assert "NoNewPrivs:\t1" in status and "Uid:\t0" not in status, status
            begin = time.monotonic()
        found.until("gone", id=got["id"])
        return f"appears after {appeared:.2f} s, is gone after {time.monotonic() - begin:.2f} s"


def a_server_that_is_killed_goes():
    """The publisher outlives it for a moment, and stores that the server has left."""
    with Network() as net, net.source() as found, net.spancld() as s:
        got = found.until("appears")
        s.processes[0].kill()
        found.until("gone", id=got["id"])


def a_record_is_found_when_half_of_the_nodes_are_dead():
    with Network(5) as net:
        for n in range(5, 10):
            net.node("near", n)
        for n, node in enumerate(net.nodes):  # they would need half a minute for it
            for place in net.places[n + 1:]:
                node.send(f"meet {place}")
            node.expect("met", 9 - n)
        writer = net.nodes[9]  # eight of the others store its record
        writer.store("record gpu1 192.0.2.5 7777 0")
        for node in [writer, *net.nodes[:4]]:
            node.kill()
        with net.source(",".join(net.place(n) for n in (4, 7))) as found:
            got = found.until("appears")
            assert got["id"] == writer.key and got["addresses"] == ["192.0.2.5"], got


def ipv6_alone_is_enough():
    with Network(3, family=6) as net:
        net.hosts.ip("near", "addr", "del", "10.77.1.1/24", "dev", "tofar")
        net.nodes[1].store("record gpu1 2001:DB8:0::5 7777 0")
        with net.source(net.place(2)) as found:
            assert found.until("appears")["addresses"] == ["2001:db8::5"]


def the_newest_record_of_a_key_counts_until_it_is_too_old():
    with Network(3) as net, net.source() as found:
        first, second = net.nodes[1:]
        first.store("record gpu1 192.0.2.5 7777 100")
        got = found.until("appears")
        first.store("record gpu1 192.0.2.6 7777 50")
        found.until("changes", id=got["id"], addresses=["192.0.2.6"])
        first.store("record gpu1 192.0.2.7 7777 90")  # an earlier one, which somebody has kept
        first.store("gone 60")
        second.store(f"record gpu2 192.0.2.8 7777 {LIFE_S - 4}")
        assert found.next()["name"] == "gpu2", found.seen
        assert found.next() == {"event": "gone", "id": second.key}, found.seen
        first.store("gone 40")
        assert found.next() == {"event": "gone", "id": first.key}, found.seen


def strangers_forge_no_server():
    magic = b"SPANCL-DHT 1\n"
    values = [b"x", magic, magic + bytes(200), magic + b"\xff" * 1400, b'{"event":"appears"}\n' * 40, bytes(60000),
              magic + bytes(60000)]
    lines = [f"put {v.hex()}" for v in values]
    lines += ["forged gpu1", "record gpu1 127.0.0.1 22 0", "record gpu1 ::1 22 0", "record gpu1 0.0.0.0 22 0",
              "record gpu1 224.0.0.1 22 0", "record gpu1 fe80::1 22 0", "record gpu1 gpu1.example 22 0",
              "record gpu1 192.0.2.5 0 0", "record gpu1 192.0.2.5 65536 0", "record gpu\xff 192.0.2.5 7777 0",
              f"record gpu1 192.0.2.5 7777 {LIFE_S}", "record gpu1 192.0.2.5 7777 -400"]
    with Network(2) as net, net.source() as found:
        found.until("settled")
        with net.nodes[1].process.stdin:
            stdin = net.nodes[1].process.stdin.buffer
            for line in lines:
                stdin.write(line.encode("latin-1") + b"\n")
            stdin.flush()
            for _ in lines:
                assert net.nodes[1].process.stdout.readline() in ("stored\n", "failed\n")
            net.node("far", 2).store("record gpu\x1b[2J\"} 192.0.2.5 7777 0")
            got = found.until("appears")
        assert len(found.seen) == 2 and got["id"] == net.nodes[2].key and got["name"] == "gpu\x1b[2J\"}", found.seen
        assert "a value of the hash table" in found.log(), found.log()


def a_flood_of_servers_is_bounded():
    with Network(3) as net, net.source() as found:
        found.until("settled")
        net.nodes[1].send("flood 1200")
        count = sum(net.nodes[1].process.stdout.readline() == "stored\n" for _ in range(1200))
        listed = 0
        while listed < min(count, 1024):
            listed += found.next()["event"] == "appears"
        wait_for(lambda: "too many services" in found.log(), found.log)
        assert found.lines.empty() and found.memory_mib() < 64, (found.seen[-1], found.memory_mib())
        return f"{listed} of {count} listed, {found.memory_mib():.1f} MiB"


def a_source_waits_for_its_first_node():
    """PoCL's variables name the node, and another program has the port."""
    first = f"10.77.1.2:{PORT}"
    with Network(0) as net, net.source(first) as other:
        with net.source("", POCL_REMOTE_DHT_BOOTSTRAP=first, POCL_REMOTE_DHT_KEY=KEY, POCL_REMOTE_DHT_PORT="4222",
                        SPANCL_DHT_KEY="") as found:
            net.node("far", 0)
            net.node("far", 1).store("record gpu1 192.0.2.5 7777 0")
            found.until("appears")
            other.until("appears")


def a_found_server_is_used_if_its_key_is_known():
    with Network() as net, net.spancld():
        folder = Path(net.folder.name)
        env = {**os.environ, "SPANCL_DISCOVERY": "dht", "SPANCL_DHT_BOOTSTRAP": net.place(), "SPANCL_DHT_KEY": KEY}

        def discover(home):
            return subprocess.run([*net.hosts.inside("near"), BUILD / "bin/spancl", "discover", "--json"], text=True,
                                  env={**env, "XDG_CONFIG_HOME": str(folder / home)}, stdout=subprocess.PIPE, timeout=HANG_S,
                                  check=True).stdout

        with net.source() as found:
            key = found.until("appears")["key"]
        (folder / "user/spancl").mkdir(parents=True, mode=0o700)
        (folder / "user/spancl/servers").write_text(f"{key} gpu1\n")
        (folder / "user/spancl/servers").chmod(0o600)
        assert '"state":"used' in discover("user") and '"state":"not paired' in discover("stranger")


def a_source_ends_with_its_reader():
    with Network(0) as net:
        read_end, write_end = os.pipe()
        source = subprocess.Popen([*net.hosts.inside("near"), LIBEXEC / "discover-dht"], stdout=write_end)
        os.close(write_end)
        os.read(read_end, 1)
        os.close(read_end)
        assert source.wait(HANG_S) == 0


def a_server_without_a_key_says_so():
    with Network(0) as net, tempfile.TemporaryDirectory() as keys:
        with Servers(BUILD, 1, ("--backend", "reference", "--insecure", "--keys", keys, "--listen", "*:7777",
                                "--advertise=dht"), prefix=net.hosts.inside("far")) as s:
            wait_for(lambda: "the server has no key to sign" in s.log_text(), s.log_text)


def main():
    if not may_make_hosts():
        print("skipped: no network namespaces")
        return 77
    return claims.run(globals())


if __name__ == "__main__":
    sys.exit(main())
