"""Hosts of our own: network namespaces with links between them, and servers in them. Needs root."""

import os
import subprocess

from servers import Servers

HANG_S = 60


def _ip(*words, tool="ip"):
    subprocess.run([tool, *words], check=True, timeout=HANG_S)


class Hosts:
    """("a", "b", "10.77.1") joins hosts a, as 10.77.1.1, and b, as .2; over IPv6 they are fd77:N::1 and ::2 for
    link N, from 1 on. A `hub` is a network that all hosts are in: the K-th as 10.77.0.K, and with `rate` each
    sends no more than that. They have one file system, but their servers don't use that."""

    def __init__(self, names, links=(), hub=False, rate=None):
        self.names = {n: f"spancl-{os.getpid()}-{n}" for n in names}
        self.hub = f"spancl-{os.getpid()}-hub" if hub else None
        self.servers = []
        for n in names:
            _ip("netns", "add", self.names[n])
            self.ip(n, "link", "set", "lo", "up")
        if hub:
            self._connect_all(names, rate)
        for i, (a, b, net) in enumerate(links):
            _ip("link", "add", f"to{b}", "netns", self.names[a], "type", "veth", "peer", f"to{a}",
                "netns", self.names[b])
            for k, (host, other) in enumerate(((a, b), (b, a))):
                self.ip(host, "addr", "add", f"{net}.{k + 1}/24", "dev", f"to{other}")
                self.ip(host, "addr", "add", f"fd77:{i + 1}::{k + 1}/64", "dev", f"to{other}", "nodad")
                self.ip(host, "link", "set", f"to{other}", "up")

    def _connect_all(self, names, rate):
        _ip("netns", "add", self.hub)
        _ip("-n", self.hub, "link", "add", "hub", "type", "bridge")
        _ip("-n", self.hub, "link", "set", "hub", "up")
        for k, host in enumerate(names):
            _ip("link", "add", "net", "netns", self.names[host], "type", "veth", "peer", f"port{k}",
                "netns", self.hub)
            _ip("-n", self.hub, "link", "set", f"port{k}", "master", "hub", "up")
            self.ip(host, "addr", "add", f"10.77.0.{k + 1}/24", "dev", "net")
            self.ip(host, "link", "set", "net", "up")
            if rate:
                _ip("-n", self.names[host], "qdisc", "add", "dev", "net", "root", "tbf", "rate", rate,
                    "burst", "256k", "latency", "100ms", tool="tc")

    def ip(self, host, *words):
        _ip("-n", self.names[host], *words)

    def inside(self, host):
        return ["ip", "netns", "exec", self.names[host]]

    def spancld(self, build, host, vendors=None, options=()):
        self.servers.append(Servers(build, 1, ("--listen", "*:7777", "--insecure", "--shared-memory", "off",
                                               *options),
                                    prefix=self.inside(host), vendors=vendors))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for s in self.servers:
            s.stop()
        for name in [*self.names.values(), *([self.hub] if self.hub else [])]:
            _ip("netns", "del", name)


def may_make_hosts():
    if os.geteuid():
        return False
    try:
        with Hosts(["x"]):
            return True
    except (OSError, subprocess.SubprocessError):
        return False
