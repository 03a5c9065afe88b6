#!/usr/bin/env python3
"""multipath.py BUILD [NAME...]: claims about Multipath TCP, in network namespaces: a client with two ways to its server.
Each function is one claim. Status 77: namespaces or Multipath TCP are not permitted here."""

import subprocess
import sys
import tempfile
import time

import claims
from daemon import CLIENT, HANG_S, client_env
from network import SERVER, Network
from security import Place, works
from survive import Actor

ON = {"SPANCL_MULTIPATH": "on", "SPANCL_ON_LOSS": "wait", "SPANCL_LOG": "info"}
PATIENT = {**ON, "SPANCL_LINK_TIMEOUT": "60000"}  # a busy host is not a lost link
CARRIED = 4096  # bytes on a way that has been mended


class Ways(Network):
    """Both ways can be used at a time: the first one is the route, and the second one is an endpoint (ip-mptcp(8))."""

    def lay(self, delay_ms, ways):
        super().lay(delay_ms, ways)
        self.at_client("ip rule add from 10.77.2.9 table 99")
        self.at_client("ip route add 10.77.0.1 via 10.77.2.1 dev c2 table 99")
        for at in (self.at_client, self.at_server):
            at("ip mptcp limits set subflow 4 add_addr_accepted 4")
        self.at_client("ip mptcp endpoint add 10.77.2.9 dev c2 subflow")

    def __init__(self):
        super().__init__(ways=1)

    def cut(self, way):
        """What arrives over this way is dropped without a word."""
        for at, end in ((self.at_server, "s"), (self.at_client, "c")):
            for rule in ("add table ip t", "add chain ip t c { type filter hook input priority 0 ; }",
                         f"add rule ip t c iifname {end}{way} drop"):
                at("nft " + rule)

    def mend(self):
        for at in (self.at_server, self.at_client):
            at("nft delete table ip t")

    def sent(self, way):
        return int(self.at_client(f"cat /sys/class/net/c{way}/statistics/tx_bytes"))


def lost(said):
    said.seek(0)
    log = said.read()
    return log.count("can't be reached"), log


def way_that_is_cut_is_not_noticed_by_the_session():
    """Either of them, in the middle of small commands. The longest call stands for the pause."""
    pauses = []
    with Ways() as net, net.start("--multipath", "on", "--log", "info") as server, tempfile.TemporaryFile("w+") as said, \
            Actor(SERVER, prefix=net.prefix(), stderr=said, **PATIENT) as client:
        client.do("begin")
        assert "attached lane 0" in server.log_text() and ", mptcp)" in server.log_text(), server.log_text()
        for way in (1, 2, 1):
            client.tell("gap 4000")
            time.sleep(1)
            net.cut(way)
            pauses.append(int(client.answer()) / 1000)
            client.do("compute")
            net.mend()
            sent = net.sent(way)
            while net.sent(way) < sent + CARRIED:
                client.do("gap 100")
        client.leave()
        times, log = lost(said)
        assert not times, log
    return "the longest call: " + ", ".join(f"{ms:.0f} ms" for ms in pauses)


def interface_that_goes_down_is_not_noticed_by_the_session():
    with Ways() as net, net.start("--multipath", "on"), tempfile.TemporaryFile("w+") as said, \
            Actor(SERVER, prefix=net.prefix(), stderr=said, **PATIENT) as client:
        client.do("begin")
        client.do("gap 1000")
        client.tell("gap 4000")
        time.sleep(1)
        net.link(False)
        longest = int(client.answer()) / 1000
        client.do("compute")
        client.leave()
        times, log = lost(said)
        assert not times, log
    return f"the longest call: {longest:.0f} ms"


def both_ways_carry_bulk_data():
    with Ways() as net, net.start("--multipath", "on"):
        done = subprocess.run([*net.prefix(), CLIENT, "--only", "transfer", "--scale", "100", "--max-mib", "64"],
                              env=client_env(SERVER, **ON), capture_output=True, text=True, timeout=HANG_S, check=False)
        assert not done.returncode, done.stderr
        sent = [net.sent(way) for way in (1, 2)]
        assert min(sent) > 1 << 20, sent
    return f"{sent[0] >> 20} and {sent[1] >> 20} MiB"


def encrypted_link_survives_a_cut():
    with Ways() as net, Place() as p, \
            net.start("--multipath", "on", "--keys", str(p.server)), tempfile.TemporaryFile("w+") as said:
        works(p.spancl("pair", "10.77.0.1", p.code(), prefix=net.prefix()))
        with Actor("tls:10.77.0.1", prefix=net.prefix(), stderr=said, SPANCL_KEYS=str(p.client), **PATIENT) as client:
            client.do("begin")
            client.do("gap 1000")
            client.tell("gap 3000")
            time.sleep(1)
            net.cut(1)
            client.answer()
            client.do("compute")
            client.leave()
        times, log = lost(said)
        assert not times, log


def all_ways_cut_make_the_client_connect_again():
    with Ways() as net, net.start("--multipath", "on"), tempfile.TemporaryFile("w+") as said, \
            Actor(SERVER, prefix=net.prefix(), stderr=said, SPANCL_LINK_TIMEOUT="700", **ON) as client:
        client.do("begin")
        client.do("gap 500")
        client.tell("gap 6000")
        time.sleep(1)
        net.drop(True)
        time.sleep(2)
        net.drop(False)
        client.answer()
        client.do("compute")
        client.leave()
        times, log = lost(said)
        assert times, log


def either_side_without_it_has_tcp():
    for options, more in (((), ON), (("--multipath", "on"), {"SPANCL_LOG": "info"})):
        with Ways() as net, net.start("--log", "info", *options) as server, Actor(SERVER, prefix=net.prefix(), **more) as client:
            client.do("begin")
            client.do("compute")
            client.leave()
            log = server.log_text()
            assert "attached lane 0 (" in log and "mptcp" not in log, log


def permitted():
    try:
        with Ways(), open("/proc/sys/net/mptcp/enabled", encoding="ascii") as enabled:
            return enabled.read().strip() == "1"
    except (OSError, subprocess.SubprocessError) as e:
        print(e)
        return False


if __name__ == "__main__":
    if not permitted():
        sys.exit(77)
    sys.exit(claims.run(globals()))
