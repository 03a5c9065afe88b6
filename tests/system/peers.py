#!/usr/bin/env python3
"""peers.py BUILD [NAME...]: claims about servers among themselves, over real processes: links that break,
hosts that can't reach each other, a client that stands still. tests/api/migrate.c is the program: it
checks each byte. What needs hosts of its own makes network namespaces, where that is permitted."""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import daemon
from daemon import BUILD, HANG_S, ROOT, VENDORS, Relay, at, client_env, closed_port, servers

sys.path.insert(0, str(ROOT / "bench"))
from hosts import Hosts, may_make_hosts  # noqa: E402

PROGRAM = str(BUILD / "bin/api_migrate")
WARNING = "can't reach each other"


def start(where, program=PROGRAM, prefix=(), **more):
    return subprocess.Popen([*prefix, program], env=client_env(where, **more), stdout=subprocess.PIPE,
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


def the_other_side_connects_when_one_cannot():
    for wrong in range(2):
        with servers(2) as s:
            where = [at(s.ports[0]), at(s.ports[1])]
            where[wrong] += f"#{at(closed_port())}"
            assert WARNING not in passes(start(" ".join(where)))


def the_client_relays_what_cannot_go_directly():
    with servers(3) as s, tempfile.NamedTemporaryFile() as stats:
        where = " ".join(f"{at(p)}#{at(closed_port())}" for p in s.ports)
        err = passes(start(where, SPANCL_STATS=stats.name))
        assert err.count(WARNING) == 3, err  # once for each two


def the_client_relays_between_itself_and_a_server_that_it_alone_reaches():
    with servers(1) as s:
        passes(start(f"in-process {at(s.ports[0])}#{at(closed_port())}",
                     OCL_ICD_VENDORS=str(BUILD / "etc/vendors")))


def top_tells_what_is_relayed():
    with servers(2) as s:
        where = " ".join(f"{at(p)}#{at(closed_port())}" for p in s.ports)
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
    # Who says where servers reach each other means it.
    assert carried_by(lambda ports: " ".join(f"{at(p)}#{at(p)}" for p in ports)) == {"tcp"}


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


def what_servers_exchange_costs_the_client_next_to_nothing():
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


if __name__ == "__main__":
    sys.exit(daemon.main(globals()))
