#!/usr/bin/env python3
"""peers.py BUILD [NAME...]: claims about servers among themselves, over real processes: links that break,
hosts that can't reach each other, a client that stands still. tests/api/migrate.c is the program: it
checks each byte. Claims that need hosts of their own make network namespaces, where that is permitted."""

import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest.mock
from pathlib import Path

import claims
from daemon import (BUILD, HANG_S, ROOT, VENDORS, Relay, at, children, client_env, kept_port, servers,
                    wait_for)

sys.path.insert(0, str(ROOT / "bench"))
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import Servers, dialler  # noqa: E402

PROGRAM = str(BUILD / "bin/api_migrate")
MOVER = str(BUILD / "bin/system_mover")
SPREAD = str(BUILD / "bin/system_spread")
WARNING = "can't reach each other"


def start(where, program=PROGRAM, prefix=(), args=(), **more):
    return subprocess.Popen([*prefix, program, *args], env=client_env(where, **more), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def passes(client):
    out, err = client.communicate(timeout=HANG_S)
    assert client.returncode == 0, f"status {client.returncode}: {out}{err}"
    return err


# --- Links ----------------------------------------------------------------------------------------

def links_between_servers_that_are_cut_change_nothing():
    cuts, chance = 0, random.Random(1)
    with servers(3) as s:
        relays = [Relay(port) for port in s.ports]
        where = " ".join(f"{at(p)}#{at(r.port)}" for p, r in zip(s.ports, relays))
        for _ in range(3):
            client = start(where)
            while client.poll() is None:
                time.sleep(chance.uniform(0.01, 0.06))
                chance.choice(relays).cut()
            passes(client)
        for relay in relays:
            cuts += relay.cuts
            relay.close()
    assert cuts > 3, cuts
    return f"{cuts} cuts"


def bulk_data_between_servers_may_be_cut_at_any_byte():
    chance = random.Random(2)
    with servers(2) as s:
        relays = [Relay(port) for port in s.ports]
        client = start(" ".join(f"{at(p)}#{at(r.port)}" for p, r in zip(s.ports, relays)), MOVER)
        while client.poll() is None:
            time.sleep(0.01)
            for relay in relays:
                if relay.left is None:
                    relay.left = int(2 ** chance.uniform(0, 24))
        try:
            passes(client)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{s.log_text()}") from error
        cuts, carried = (sum(getattr(r, k) for r in relays) for k in ("cuts", "carried"))
        for relay in relays:
            relay.close()
    assert cuts > 10 and carried > 80 << 20, (cuts, carried)  # the program moves 84 MiB with ThreadSanitizer
    return f"{cuts} cuts in {carried >> 20} MiB"


def data_that_a_lost_server_was_to_forward_comes_from_another():
    size, passed_on = 6 << 20, 0
    for victim in (1, 2, 3):
        with servers(5, "--log", "info") as s:
            relays = [Relay(port, rate=3 << 20) for port in s.ports]
            where = " ".join(f"{at(p)}#{at(r.port)}" for p, r in zip(s.ports, relays))
            client = start(where, SPREAD, args=(str(size), str(victim)), SPANCL_LOG="info")
            while client.poll() is None and relays[victim].carried < size // 4:
                time.sleep(0.02)
            assert client.poll() is None, client.communicate()
            for pid in children(s.processes[victim].pid):
                os.kill(pid, signal.SIGKILL)
            passed_on += passes(client).count("was to come to")
            for relay in relays:
                relay.close()
    assert passed_on, "nothing was under way"
    return f"{passed_on} times"


def the_other_side_connects_when_one_cannot():
    for wrong in range(2):
        with servers(2) as s:
            where = [at(s.ports[0]), at(s.ports[1])]
            where[wrong] += f"#{at(kept_port())}"
            assert WARNING not in passes(start(" ".join(where)))


def the_client_relays_what_cannot_go_directly():
    with servers(3) as s, tempfile.NamedTemporaryFile() as stats:
        where = " ".join(f"{at(p)}#{at(kept_port())}" for p in s.ports)
        err = passes(start(where, SPANCL_STATS=stats.name))
        assert err.count(WARNING) == 3, err  # once for each two


def the_client_relays_between_itself_and_a_server_that_it_alone_reaches():
    with servers(1) as s:
        passes(start(f"in-process {at(s.ports[0])}#{at(kept_port())}",
                     OCL_ICD_VENDORS=str(BUILD / "etc/vendors")))


def top_tells_what_is_relayed():
    with servers(2) as s:
        where = " ".join(f"{at(p)}#{at(kept_port())}" for p in s.ports)
        client = start(where)
        seen = ""
        while client.poll() is None and "through the client" not in seen:
            seen = subprocess.run([str(BUILD / "bin/spancl"), "top", "--once"], env=client_env(where),
                                  stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=False).stdout
        passes(client)
        assert "through the client" in seen, seen


def servers_of_one_host_reach_each_other_over_shared_memory():
    def carried_by(where, *options):
        with servers(2, "--log", "info", *options) as s:
            assert WARNING not in passes(start(where(s.ports)))
            log = s.log_text()
            return {t for t in ("shm", "unix", "tcp") if f"a peer attached lane 0 (peer, {t})" in log}

    def plain(ports):
        return " ".join(map(at, ports))

    assert carried_by(plain) == {"shm"}
    assert carried_by(plain, "--shared-memory", "off") == {"tcp"}
    # A user who says where servers reach each other means it.
    assert carried_by(lambda ports: " ".join(f"{at(p)}#{at(p)}" for p in ports)) == {"tcp"}


def workers_of_another_user_reach_servers_of_their_host_over_shared_memory():
    if os.geteuid():
        return "skipped: not root"
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        vendors, cache = Path(folder) / "vendors", Path(folder) / "cache"
        vendors.mkdir()
        cache.mkdir()
        cache.chmod(0o777)
        for icd in Path(VENDORS).glob("*.icd"):
            (vendors / icd.name).write_text(icd.read_text())
        environment = {"POCL_CACHE_DIR": str(cache)}
        # A sanitizer in a worker reads its suppressions, but that user may not be let in where they lie.
        for options in {"LSAN_OPTIONS", "TSAN_OPTIONS"} & set(os.environ):
            (Path(folder) / "run").mkdir(exist_ok=True)
            for supp in (ROOT / "tests/run").glob("*.supp"):  # not with their modes
                (Path(folder) / "run" / supp.name).write_text(supp.read_text())
            environment[options] = os.environ[options].replace(str(ROOT / "tests/run"), f"{folder}/run")
        with unittest.mock.patch.dict(os.environ, environment), \
                Servers(BUILD, 2, ("--user", "nobody", "--log", "info"), vendors=str(vendors)) as s:
            assert WARNING not in passes(start(" ".join(map(at, s.ports))))
            log = s.log_text()
    assert "a peer attached lane 0 (peer, shm)" in log and "workers run as root" not in log, log
    return None


def servers_that_encrypt_reach_each_other():
    """With and without the kernel's TLS: the keys have moved from the dialler to the worker."""
    with tempfile.TemporaryDirectory() as folder:
        keys = Path(folder) / "keys"
        subprocess.run([str(BUILD / "bin/spancl"), "keys", str(keys)], check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL)
        seen = set()
        for ktls in ("off", "auto"):
            with servers(2, "--log", "info", "--keys", str(keys / "server"), "--shared-memory", "off",
                         "--ktls", ktls, "--lanes", "3") as s:
                where = " ".join(f"tls:{at(p)}" for p in s.ports)
                assert WARNING not in passes(start(where, SPANCL_KEYS=str(keys / "client")))
                log = s.log_text()
            seen |= set(re.findall(r"a peer attached lane 1 \(peer, (\w+)", log))
            assert ktls != "off" or seen == {"tls"}, seen
        return " and ".join(sorted(seen))


def links_are_made_again_after_the_dialler_was_killed():
    with servers(2, "--shared-memory", "off", "--log", "info") as s:
        relays = [Relay(port) for port in s.ports]
        client = start(" ".join(f"{at(p)}#{at(r.port)}" for p, r in zip(s.ports, relays)), MOVER,
                       args=("1000000", "small"))
        rounds = [client.stdout.readline()]
        for process in s.processes:
            killed = dialler(process.pid)
            os.kill(killed, signal.SIGKILL)
            for relay in relays:
                relay.cut()
            wait_for(lambda: dialler(process.pid) not in (None, killed), "no dialler any more")
            rounds.append(client.stdout.readline())
        client.kill()
        for relay in relays:
            relay.close()
        assert rounds == ["round\n"] * 3, (rounds, client.communicate())
        assert s.log_text().count("the dialler has ended") == 2, s.log_text()


def the_dialler_ends_with_its_supervisor():
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with servers(1) as s:
            wait_for(lambda: dialler(s.processes[0].pid), "no dialler")
            pid = dialler(s.processes[0].pid)
            s.processes[0].send_signal(sign)
            s.processes[0].wait(timeout=HANG_S)
            wait_for(lambda: not Path(f"/proc/{pid}").exists() or
                     "Z" in Path(f"/proc/{pid}/stat").read_text().split(")")[1][:3], "it goes on")


def names_are_resolved_as_the_files_of_today_say():
    with tempfile.TemporaryDirectory() as folder:
        etc = Path(folder) / "etc"
        shutil.copytree("/etc/ssl", etc / "ssl", symlinks=True, ignore_dangling_symlinks=True,
                        ignore=lambda *_: {"private", "certs"})
        for name in ("nsswitch.conf", "ld.so.cache", "passwd", "OpenCL"):
            if (there := Path("/etc") / name).exists():
                (shutil.copytree if there.is_dir() else shutil.copy)(there, etc / name)

        def replace_hosts(more=""):
            (etc / "new").write_text("127.0.0.1 localhost\n" + more)
            (etc / "new").rename(etc / "hosts")

        replace_hosts()
        prefix = ("unshare", *(() if os.geteuid() == 0 else ("-r",)), "--mount", "sh", "-c",
                  f"mount --bind {etc} /etc && exec \"$@\"", "-")
        if subprocess.run([*prefix, "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            return "skipped: mount namespaces are not permitted here"
        with Servers(BUILD, 2, ("--shared-memory", "off", "--log", "info"), prefix=prefix, vendors=VENDORS) as s:
            where = " ".join(f"tcp:{at(p)}#named.example:{p}" for p in s.ports)
            assert WARNING in passes(start(where))
            replace_hosts("127.0.0.1 named.example\n")
            for _ in range(3):  # the first may find that the dialler is to be another
                if WARNING not in passes(start(where)):
                    break
            else:
                raise AssertionError(s.log_text())
            assert "the dialler restarts" in s.log_text(), s.log_text()
    return None


class Service:
    """A service that is no server: it keeps what each connection says, and answers it."""

    def __init__(self, answer):
        self.said = []
        self.answer = answer
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                there, _ = self.listener.accept()
                with there:
                    there.settimeout(1)
                    self.said.append(there.recv(1 << 16))
                    there.sendall(self.answer)
        except OSError:
            pass


def other_programs_receive_nothing_of_a_session():
    service = Service(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    with servers(2) as s:
        for _ in range(2):
            # Both ways: it is asked by each server, for sessions with random names and tokens.
            passes(start(" ".join(f"{at(p)}#{at(service.port)}" for p in s.ports)))
    service.listener.close()
    assert len(service.said) >= 2 and len(set(service.said)) == 1, service.said
    return f"{len(service.said)} times the same {len(service.said[0])} bytes"


def _client_links(where, name, count):
    """Bytes of the client's links, and messages that it got, for bench_peers' measurement."""
    with tempfile.NamedTemporaryFile() as stats:
        done = subprocess.run([str(BUILD / "bin/bench_peers"), "--only", name, "--count", str(count)],
                              env=client_env(where, SPANCL_STATS=stats.name), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 0, done.stderr
        links = json.loads(stats.read())["links"]
    return (sum(l["bytes"] + l["bulk_bytes"] for l in links if "client" in (l["from"], l["to"])),
            sum(l["messages"] for l in links if l["to"] == "client"))


def traffic_between_servers_costs_the_client_next_to_nothing():
    with servers(2) as s:
        where = " ".join(map(at, s.ports))
        migrations = [_client_links(where, "migrate_16m", n) for n in (1, 11)]
        hops = [_client_links(where, "event_hop", n) for n in (1, 11)]
    each = (migrations[1][0] - migrations[0][0]) / 10
    assert each < 1024, each
    told = (hops[1][1] - hops[0][1]) / 10 / 200  # bench_peers' chains have 200 kernels
    assert told < 1 / 8, told
    return f"{each:.0f} bytes for a migration, {told:.3f} messages for a hop"


# --- Hosts of their own ---------------------------------------------------------------------------

def _two_hosts(more=()):
    """A client c that reaches a and b, and whatever else joins these."""
    hosts = Hosts("abc", [("c", "a", "10.77.1"), ("c", "b", "10.77.2"), *more])
    for host in "ab":
        hosts.spancld(BUILD, host, vendors=VENDORS)
    return hosts


IPV4 = "tcp:10.77.1.2:7777 tcp:10.77.2.2:7777"


def hosts_without_a_way_to_each_other_are_relayed():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    with _two_hosts() as hosts:
        assert WARNING in passes(start(IPV4, prefix=hosts.inside("c")))
    return None


def it_is_enough_when_one_host_can_connect():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    for dialler, other, k in (("a", "b", 2), ("b", "a", 1)):
        with _two_hosts([("a", "b", "10.77.3")]) as hosts:
            hosts.ip(dialler, "route", "add", f"10.77.{k}.2/32", "via", f"10.77.3.{k}")
            assert WARNING not in passes(start(IPV4, prefix=hosts.inside("c"))), (dialler, other)
    return None


def servers_reach_each_other_by_names_of_their_own_also_over_ipv6():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    with _two_hosts([("a", "b", "10.77.3")]) as hosts:
        for way in ("tcp:10.77.1.2:7777#10.77.3.1:7777 tcp:10.77.2.2:7777#10.77.3.2:7777",
                    "tcp:[fd77:1::2]:7777#[fd77:3::1]:7777 tcp:[fd77:2::2]:7777#[fd77:3::2]:7777"):
            assert WARNING not in passes(start(way, prefix=hosts.inside("c"))), way
    return None


def a_link_that_goes_down_for_a_while_changes_nothing():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    with _two_hosts([("a", "b", "10.77.3")]) as hosts:
        where = "tcp:10.77.1.2:7777#10.77.3.1:7777 tcp:10.77.2.2:7777#10.77.3.2:7777"
        client = start(where, prefix=hosts.inside("c"))
        downs = 0
        while client.poll() is None and downs < 3:
            time.sleep(0.3)
            hosts.ip("a", "link", "set", "tob", "down")
            time.sleep(0.2)
            hosts.ip("a", "link", "set", "tob", "up")
            hosts.ip("a", "addr", "replace", "fd77:3::1/64", "dev", "tob", "nodad")
            downs += 1
        passes(client)
    return None


def hosts_that_are_relayed_reach_each_other_as_soon_as_there_is_a_way():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    with _two_hosts([("a", "b", "10.77.3")]) as hosts:
        client = start(IPV4, MOVER, prefix=hosts.inside("c"), args=("1000000", "small"))
        lines = []
        said = threading.Thread(target=lambda: lines.extend(client.stderr))
        said.start()
        wait_for(lambda: any(WARNING in l for l in lines), "not relayed")
        rounds = [client.stdout.readline() for _ in range(2)]
        for k, host in enumerate("ab"):
            hosts.ip(host, "route", "add", f"10.77.{2 - k}.2/32", "via", f"10.77.3.{2 - k}")
        wait_for(lambda: any("reach each other now" in l for l in lines), "still relayed")
        rounds += [client.stdout.readline() for _ in range(2)]
        # And back again.
        for k, host in enumerate("ab"):
            hosts.ip(host, "route", "del", f"10.77.{2 - k}.2/32")
        wait_for(lambda: sum(WARNING in l for l in lines) == 2, "not relayed again")
        rounds += [client.stdout.readline() for _ in range(2)]
        client.kill()
        said.join()
        assert rounds == ["round\n"] * 6, (rounds, lines)
    return None


def hosts_that_are_relayed_find_a_way_that_goes_in_one_direction_only():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    with _two_hosts([("a", "b", "10.77.3")]) as hosts:
        client = start(IPV4, MOVER, prefix=hosts.inside("c"), args=("1000000", "small"))
        lines, rounds = [], []
        said = threading.Thread(target=lambda: lines.extend(client.stderr))
        said.start()
        ways = {"a": ("10.77.2.2/32", "via", "10.77.3.2"), "b": ("10.77.1.2/32", "via", "10.77.3.1")}
        try:
            for k, dialler in enumerate("ab"):
                wait_for(lambda: sum(WARNING in l for l in lines) == k + 1, "not relayed")
                rounds.append(client.stdout.readline())
                hosts.ip(dialler, "route", "add", *ways[dialler])
                wait_for(lambda: sum("reach each other now" in l for l in lines) == k + 1, "still relayed")
                rounds.append(client.stdout.readline())
                hosts.ip(dialler, "route", "del", *ways[dialler])
        finally:
            client.kill()
            said.join()
        assert rounds == ["round\n"] * 4, (rounds, lines)
    return None


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
