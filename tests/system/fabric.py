#!/usr/bin/env python3
"""fabric.py BUILD [NAME...]: claims about what goes between servers by libfabric, over its providers tcp and shm.
tests/system/mover.c is the program: it checks each byte. Status 77: there is no libfabric here."""

import ctypes
import os
import random
import re
import signal
import subprocess
import sys
import time

import claims
import daemon
from daemon import BUILD, HANG_S, ROOT, VENDORS, Relay, at, client_env, servers

sys.path.insert(0, str(ROOT / "bench"))
from hosts import Hosts, may_make_hosts  # noqa: E402

MOVER = str(BUILD / "bin/system_mover")
LIBRARY = "libfabric.so.1"


def _providers():
    """tcp from 1.18 on, see src/transport/rma.c."""
    try:
        version = ctypes.CDLL(LIBRARY).fi_version()
    except OSError:
        return ()
    return ("tcp", "shm") if (version >> 16, version & 0xffff) >= (1, 18) else ("shm",)


PROVIDERS = _providers()
CARRIED = re.compile(r"by fabric +([\d.]+) (\w*B) +([\d.]+) (\w*B)")


def where(s):
    return " ".join(map(at, s.ports))


def start(places, rounds=1, prefix=()):
    return subprocess.Popen([*prefix, MOVER, str(rounds)], env=client_env(places, SPANCL_RECONNECT="1"), stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def passes(client, s=None):
    out, err = client.communicate(timeout=HANG_S)
    assert client.returncode == 0, f"status {client.returncode}: {out}{err}{s.log_text() if s else ''}"


def top(places):
    return subprocess.run([str(BUILD / "bin/spancl"), "top", "--once"], env=client_env(places),
                          stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=False).stdout


def end(client):
    """A client that has said enough."""
    client.send_signal(signal.SIGTERM)
    client.communicate(timeout=HANG_S)


# --- What goes well -------------------------------------------------------------------------------

def every_byte_arrives_with_two_servers_and_with_three():
    for provider in PROVIDERS:
        for count in (2, 3):
            with servers(count, f"--fabric={provider}", "--log=info") as s:
                passes(start(where(s)))
                assert "lane 1 (peer, fabric)" in s.log_text(), s.log_text()


def top_tells_what_a_fabric_carried():
    for provider in PROVIDERS:
        with servers(2, f"--fabric={provider}") as s:
            client = start(where(s), rounds=1000)
            assert client.stdout.readline() == "round\n", client.communicate(timeout=HANG_S)
            seen = top(where(s))
            end(client)
        carried = CARRIED.findall(seen)
        assert len(carried) == 2, seen  # each of the two tells of its link
        for sent, unit, received, other in carried:
            assert unit == other == "MiB" and float(sent) > 80 and float(received) > 80, seen


def without_a_fabric_there_is_none():
    for option in ("--fabric=off", "--fabric=auto"):
        with servers(2, option, "--log=info") as s:
            passes(start(where(s)))
            if option == "--fabric=off" or not os.path.exists("/sys/class/infiniband"):
                assert "fabric" not in s.log_text(), s.log_text()


# --- What does not --------------------------------------------------------------------------------

def a_provider_that_does_not_exist_is_named_and_tcp_carries_all():
    with servers(2, "--fabric=no-such", "--log=info") as s:
        passes(start(where(s)))
        text = s.log_text()
        assert "--fabric=no-such: libfabric has no such provider" in text and "fi_info -l" in text, text
        assert "lane 1 (peer, tcp)" in text, text


def one_that_only_one_side_has_is_not_used():
    with servers(1, "--fabric=off", "--log=info") as s, servers(1, "--fabric=shm", "--log=info") as t:
        passes(start(f"{where(s)} {where(t)}"))
        assert "fabric" not in s.log_text() + t.log_text(), s.log_text() + t.log_text()


def links_that_are_cut_lose_nothing():
    told, chance = [], random.Random(1)
    for provider in PROVIDERS:
        with servers(2, f"--fabric={provider}") as s:
            relays = [Relay(port) for port in s.ports]
            where_relayed = " ".join(f"{at(p)}#{at(r.port)}" for p, r in zip(s.ports, relays))
            while sum(r.cuts for r in relays) <= 3:
                client = start(where_relayed)
                while client.poll() is None:
                    time.sleep(chance.uniform(0.02, 0.2))
                    chance.choice(relays).cut()
                passes(client, s)
            assert "TCP from now on" not in s.log_text(), s.log_text()
            told.append(f"{provider}: {sum(r.cuts for r in relays)} cuts")
            for relay in relays:
                relay.close()
    return ", ".join(told)


def a_server_that_is_killed_is_a_lost_device():
    for provider in PROVIDERS:
        with servers(2, f"--fabric={provider}") as s:
            client = start(where(s), rounds=1000)
            assert client.stdout.readline() == "round\n", client.communicate(timeout=HANG_S)
            time.sleep(random.uniform(0, 0.3))
            for child in daemon.children(s.processes[1].pid):
                os.kill(child, signal.SIGKILL)
            s.processes[1].kill()
            out, err = client.communicate(timeout=HANG_S)
            assert client.returncode == 1 and re.search(r": -\d+, not 0", err), (client.returncode, out, err)
            passes(start(at(s.ports[0])))  # the other one is as it was


def a_fabric_that_fails_leaves_the_rest_to_tcp():
    """Its own connections are refused by a firewall."""
    if not may_make_hosts():
        return "skipped: no network namespaces"
    if "tcp" not in PROVIDERS:
        return "skipped: libfabric's tcp is older than 1.18"
    with Hosts("abc", [("c", "a", "10.77.1"), ("c", "b", "10.77.2"), ("a", "b", "10.77.3")]) as hosts:
        for host in "ab":
            hosts.spancld(BUILD, host, vendors=VENDORS, options=("--fabric=tcp", "--log=info"))
            for rule in ("add table inet t", "add chain inet t in { type filter hook input priority 0; }",
                         "add rule inet t in iif != lo tcp dport != 7777 tcp flags & (syn | ack) == syn "
                         "reject with tcp reset"):
                done = subprocess.run([*hosts.inside(host), "nft", rule], timeout=HANG_S, check=False)
                if done.returncode:
                    return "skipped: no nftables"
        client = start("tcp:10.77.1.2:7777#10.77.3.1:7777 tcp:10.77.2.2:7777#10.77.3.2:7777", rounds=2,
                       prefix=hosts.inside("c"))
        passes(client)
        text = "".join(s.log_text() for s in hosts.servers)
        assert "lane 1 (peer, fabric)" in text, text
        assert 1 <= text.count("TCP from now on") <= 2, text  # each side at most once
        assert "lane 1 (peer, tcp)" in text, text
    return None


if __name__ == "__main__":
    if not PROVIDERS:
        print("skipped: there is no libfabric here")
        sys.exit(77)
    sys.exit(claims.run(globals()))
