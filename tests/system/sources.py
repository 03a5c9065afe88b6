#!/usr/bin/env python3
"""sources.py BUILD [NAME...]: claims about the programs that find servers, with the real avahi-daemon, in network
namespaces. Each function is one claim. Status 77: namespaces are not permitted here, or a daemon is missing."""

import json
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from hashlib import md5
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from discovery import Client  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import Servers, every_child, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
LIBEXEC = BUILD / "libexec/spancl"
HANG_S = 120  # a watchdog, not a claim about speed
KEY = "ab" * 32

BUS = """<!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
<busconfig><type>system</type><listen>unix:path={folder}/bus</listen><auth>EXTERNAL</auth>
<policy context="default"><allow user="*"/><allow own="*"/><allow send_destination="*" eavesdrop="true"/>
<allow eavesdrop="true"/></policy></busconfig>
"""
AVAHI = """[server]
host-name={host}
use-ipv4=yes
use-ipv6=yes
disallow-other-stacks=no
enable-dbus=yes
[publish]
publish-hinfo=no
publish-workstation=no
"""


def wait_for(condition, what):
    """Until the condition holds. `what` tells why it does not."""
    deadline = time.monotonic() + HANG_S
    while not condition():
        assert time.monotonic() < deadline, what()
        time.sleep(0.05)


class Lines:
    """A source that runs, and the lines that it writes."""

    def __init__(self, command, env):
        self.err = tempfile.TemporaryFile()
        self.process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self.err)
        self.lines = queue.Queue()
        self.seen = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def next(self):
        line = self.lines.get(timeout=HANG_S)
        assert line is not None, f"the source ended: {self.log()}"
        assert len(line) <= 8192 and line.endswith(b"\n"), line
        text = line.decode()  # UTF-8, or an exception
        assert all(c.isprintable() for c in text[:-1]), text
        self.seen.append(json.loads(text))
        return self.seen[-1]

    def until(self, wanted, **members):
        """The next line of that event, with these members."""
        while True:
            got = self.next()
            if got["event"] == wanted and all(got.get(k) == v for k, v in members.items()):
                return got

    def log(self):
        self.err.seek(0)
        return self.err.read().decode(errors="replace")

    def memory_mib(self):
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    def end(self):
        self.process.terminate()
        self.process.wait(HANG_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


class Network:
    """Hosts "near" and "far", which a wire joins, each with a D-Bus and an avahi-daemon of its own."""

    def __init__(self, daemons=("near", "far")):
        self.folder = tempfile.TemporaryDirectory()
        os.chmod(self.folder.name, 0o755)
        self.hosts = Hosts(["near", "far"], [("near", "far", "10.77.1")])
        self.buses, self.avahi, self.others = {}, {}, []
        try:
            for host in daemons:
                self.start_bus(host)
                self.start_avahi(host)
            for host in daemons:
                self.await_avahi(host)
        except BaseException:
            self.__exit__()
            raise

    def env(self, host):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env["DBUS_SYSTEM_BUS_ADDRESS"] = f"unix:path={self.folder.name}/{host}/bus"
        return env

    def inside(self, host, *command):
        return [*self.hosts.inside(host), *map(str, command)]

    def join_again(self):
        """A second wire, with addresses and interfaces of its own."""
        near, far = (self.hosts.names[h] for h in ("near", "far"))
        subprocess.run(["ip", "link", "add", "two", "netns", near, "type", "veth", "peer", "two", "netns", far], check=True,
                       timeout=HANG_S)
        for k, host in enumerate(("near", "far")):
            self.hosts.ip(host, "addr", "add", f"10.77.2.{k + 1}/24", "dev", "two")
            self.hosts.ip(host, "link", "set", "two", "up")

    def start_bus(self, host):
        folder = Path(self.folder.name) / host
        (folder / "services").mkdir(parents=True)
        (folder / "bus.conf").write_text(BUS.format(folder=folder))
        (folder / "avahi.conf").write_text(AVAHI.format(host=host))
        bus = self.buses[host] = subprocess.Popen(
            ["dbus-daemon", f"--config-file={folder}/bus.conf", "--nofork", "--print-address"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert bus.stdout.readline(), "dbus-daemon does not start"

    def start_avahi(self, host):
        """Its folders of /run and of static services are the process's own: each host has a daemon."""
        folder = Path(self.folder.name) / host
        self.avahi[host] = subprocess.Popen(
            self.inside(host, "sh", "-c", "mkdir -p /run/avahi-daemon && mount -t tmpfs none /run/avahi-daemon && "
                        f"mount --bind {folder}/services /etc/avahi/services && "
                        f"exec avahi-daemon --no-drop-root --no-chroot --no-rlimits -f {folder}/avahi.conf"),
            env=self.env(host), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def await_avahi(self, host):
        """Until it has its host's name."""
        ask = ["dbus-send", f"--bus=unix:path={self.folder.name}/{host}/bus", "--print-reply",
               "--dest=org.freedesktop.Avahi", "/", "org.freedesktop.Avahi.Server.GetState"]
        deadline = time.monotonic() + HANG_S
        while "int32 2" not in subprocess.run(ask, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                              timeout=HANG_S, check=False).stdout:
            assert time.monotonic() < deadline and self.avahi[host].poll() is None, "avahi-daemon does not start"
            time.sleep(0.05)

    def stop_avahi(self, host):
        self.avahi[host].terminate()
        self.avahi[host].wait(HANG_S)

    def source(self, name="discover-mdns", host="near", **more):
        return Lines(self.inside(host, LIBEXEC / name), {**self.env(host), **more})

    def publish(self, name, *txt, kind="_spancl._tcp", port=7777, host="far"):
        process = subprocess.Popen(self.inside(host, "avahi-publish", "-s", name, kind, str(port), *txt),
                                   env=self.env(host), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.others.append(process)
        return process

    def spancld(self, *options, host="far", backend="reference", insecure=True):
        prefix = [*self.hosts.inside(host), "env", f"DBUS_SYSTEM_BUS_ADDRESS={self.env(host)['DBUS_SYSTEM_BUS_ADDRESS']}",
                  "POCL_EXTRA_BUILD_FLAGS=-cl-opt-disable"]  # nothing runs for long, so compiling is what takes time
        return Servers(BUILD, 1, ("--backend", backend, *(("--insecure",) if insecure else ()), "--log", "info", "--keys",
                                  f"{self.folder.name}/keys", *options), prefix=prefix,
                       vendors=native_vendors(self.folder.name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.others, *self.avahi.values(), *self.buses.values()]:
            process.terminate()
            process.wait(HANG_S)
        self.hosts.__exit__()
        self.folder.cleanup()


# --- mDNS -----------------------------------------------------------------------------------------

def a_service_appears_and_goes():
    with Network() as net, net.source() as found:
        found.until("settled")
        service = net.publish("gpu1", "v=1", "types=gpu,cpu", f"key={KEY}", "load=3", "other=x")
        got = found.until("appears", name="gpu1")
        while len(got["addresses"]) < 2:  # IPv4 and IPv6 are resolved one after the other
            got = found.until("changes", id=got["id"])
        assert "10.77.1.2" in got["addresses"], got
        assert any(":" in a for a in got["addresses"]), got
        assert got["port"] == 7777 and got["types"] == "gpu,cpu" and got["key"] == KEY, got
        assert got["protocol"] == 1 and got["load"] == 3 and got["kind"] == "spancl", got
        service.terminate()
        found.until("gone", id=got["id"])


def a_service_that_is_there_comes_before_settled():
    with Network() as net:
        net.publish("gpu1", "v=1")
        with net.source() as early:
            early.until("appears", name="gpu1")
        with net.source() as found:
            found.until("settled")
            assert any(l["event"] == "appears" for l in found.seen), found.seen


def a_server_of_pocl_is_listed_as_such():
    with Network() as net, net.source() as found:
        net.publish("other", "anything", kind="_pocl._tcp", port=10998)
        got = found.until("appears", name="other")
        assert got["kind"] == "pocl" and got["port"] == 10998, got


def a_wrong_record_is_refused_with_a_line():
    bad = {f"bad{n}": [txt] for n, txt in enumerate(
        ("key=1234", "types=gpu,toaster", "load=-1", "v=99999999999", "key=" + "A" * 64))}
    bad["long"] = ["x" * 250 + str(i) for i in range(5)] + ["x" * 100]  # more than 1300 bytes, and less than a packet
    with Network() as net, net.source() as found:
        def is_named(name):
            return f"\"{name}\": the TXT record is refused" in found.log()

        for name, txt in bad.items():
            deadline = time.monotonic() + HANG_S
            while not is_named(name):  # a record within a second of another line has none
                assert time.monotonic() < deadline, found.log()
                service, again = net.publish(name, *txt), time.monotonic() + 5
                while not is_named(name) and time.monotonic() < again:
                    time.sleep(0.05)
                service.terminate()
                time.sleep(1)
        net.publish("good", "load=1")
        found.until("appears", name="good")
        assert all(l.get("name", "good") == "good" for l in found.seen), found.seen


def names_can_not_forge_lines():
    name = 'a"}\n{"event":"gone"\t\x1b[2J\x7f\u0085\\é'
    with Network() as net, net.source() as found:
        net.publish(name)
        got = found.until("appears")
        assert got["name"] == name, got


def a_service_has_the_addresses_of_all_interfaces_that_are_up():
    with Network() as net, net.source() as found:
        def switch(device, state):
            net.hosts.ip("near", "link", "set", device, state)

        net.join_again()
        net.publish("gpu1", "load=1")
        got = found.until("appears", name="gpu1")
        while not {"10.77.1.2", "10.77.2.2"} <= set(got["addresses"]):
            got = found.until("changes", id=got["id"])
        switch("two", "down")
        while "10.77.2.2" in got["addresses"]:
            got = found.until("changes", id=got["id"])
        assert "10.77.1.2" in got["addresses"], got
        switch("tofar", "down")
        found.until("gone", id=got["id"])
        switch("two", "up")
        got = found.until("appears", name="gpu1")
        while "10.77.2.2" not in got["addresses"]:
            got = found.until("changes", id=got["id"])


def services_survive_a_restart_of_the_daemon():
    with Network() as net, net.source() as found:
        net.publish("gpu1", "load=1")
        got = found.until("appears", name="gpu1")
        net.stop_avahi("near")
        wait_for(lambda: "not there" in found.log(), found.log)
        net.start_avahi("near")
        net.await_avahi("near")
        net.publish("gpu2")
        found.until("appears", name="gpu2")
        assert not any(l["event"] == "gone" for l in found.seen), found.seen
        net.others[0].terminate()
        found.until("gone", id=got["id"])


def without_a_daemon_the_source_settles_and_says_so():
    with Network(daemons=()) as net, net.source() as found:
        assert found.next()["event"] == "settled"
        assert "avahi-daemon is not there" in found.log(), found.log()
        net.start_bus("near")
        net.start_avahi("near")
        net.await_avahi("near")
        net.publish("gpu1", host="near")
        found.until("appears", name="gpu1")


def a_silent_bus_ends_the_source():
    """libdbus would wait for it without a limit, and each program would leave a process behind."""
    with Network(daemons=()) as net, socket.socket(socket.AF_UNIX) as bus:
        (Path(net.folder.name) / "near").mkdir()
        bus.bind(f"{net.folder.name}/near/bus")
        os.chmod(f"{net.folder.name}/near/bus", 0o777)  # the source is nobody's process
        bus.listen()
        with net.source() as found:
            assert found.process.wait(HANG_S) == 1 and "does not answer" in found.log(), found.log()


def a_source_ends_with_its_reader():
    with Network() as net:
        found = net.source()
        read_end, write_end = os.pipe()
        other = subprocess.Popen(net.inside("near", LIBEXEC / "discover-mdns"), env=net.env("near"), stdout=write_end)
        os.close(write_end)
        os.read(read_end, 1)
        os.close(read_end)
        assert other.wait(HANG_S) == 0
        found.end()


def _make_keys(net):
    """The server's keys where net.spancld looks for them, and the client's: the folder "pair/client"."""
    folder = Path(net.folder.name)
    subprocess.run([BUILD / "bin/spancl", "keys", folder / "pair"], check=True, timeout=HANG_S, stdout=subprocess.DEVNULL)
    (folder / "pair/server").rename(folder / "keys")


# --- spancld --advertise --------------------------------------------------------------------------

ALL = ("--listen", "*:7777", "--advertise")


def advertiser(server):
    """The process of a server that publishes it."""
    return next((p for p in every_child(server.processes[0].pid)
                 if b"advertise-mdns" in Path(f"/proc/{p}/cmdline").read_bytes()), None)


def is_running(pid):
    """Nobody may collect the process: it can stay as a zombie."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def a_server_that_advertises_appears_and_goes():
    with Network() as net, net.source() as found:
        found.until("settled")
        begin = time.monotonic()
        with net.spancld(*ALL) as s:
            got = found.until("appears")
            assert "key" not in got, got
            appeared = time.monotonic() - begin
            while len(got["addresses"]) < 2:
                got = found.until("changes", id=got["id"])
            assert got["name"] == socket.gethostname().partition(".")[0], got
            assert "10.77.1.2" in got["addresses"] and got["port"] == 7777, got
            assert got["protocol"] >= 1 and got["load"] == 0, got
            while got.get("types") != "custom":  # of the reference backend; a worker tells them
                got = found.until("changes", id=got["id"])
            maps = Path(f"/proc/{s.processes[0].pid}/maps").read_text()
            assert "avahi" not in maps and "dbus" not in maps, "the supervisor has loaded a library of discovery"
            begin = time.monotonic()
            s.processes[0].terminate()
            found.until("gone", id=got["id"])
            return f"appears after {appeared:.2f} s, is gone after {time.monotonic() - begin:.2f} s"


# Prints each packet of multicast DNS, in hexadecimal digits.
LISTEN = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.bind(("224.0.0.251", 5353))
s.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("224.0.0.251") + socket.inet_aton("10.77.1.1"))
print("ready", flush=True)
while True:
    print(s.recv(9000).hex(), flush=True)
"""
LEAVES = b"\x07_leaves\x04_sub"
SRV_WITHDRAWN = struct.pack(">HHI", 33, 0x8001, 0)  # type, class, and a life of 0


def a_server_says_that_it_leaves_before_it_withdraws_its_record():
    """The order of the packets shows it, because caches keep a withdrawn record for a second. This is tried again, because an
    avahi-daemon that gets no CPU for some time sends one packet for both."""
    with Network() as net, net.source() as found, Lines(net.inside("near", sys.executable, "-c", LISTEN), None) as packets:
        def next_with(*texts):
            while True:
                packet = bytes.fromhex(packets.lines.get(timeout=HANG_S).decode())
                if any(text in packet for text in texts):
                    return packet

        def ends():
            with net.spancld(*ALL):
                found.until("appears")
            found.until("gone")
            packet = next_with(LEAVES, SRV_WITHDRAWN)
            if SRV_WITHDRAWN in packet:
                return False
            return next_with(SRV_WITHDRAWN)

        assert packets.lines.get(timeout=HANG_S) == b"ready\n"
        wait_for(ends, lambda: "each time, it was withdrawn first")


def a_server_that_leaves_is_gone_while_its_record_lives():
    """If nothing has withdrawn the record, the server is back some time later, because anybody can publish that a server
    leaves."""
    with Network(daemons=("near",)) as net, net.source() as found:
        found.until("settled")
        _send(net, _service(b"gpu1", "10.77.1.2"))
        got = found.until("appears", name="gpu1")
        kind = _dns_name(b"_spancl", b"_tcp", b"local")
        name = _dns_name(b"_leaves", b"_sub")[:-1] + kind
        _send(net, _packet([_record(name, 12, _dns_name(b"other")[:-1] + kind, False),
                            _record(name, 12, _dns_name(b"gpu1")[:-1] + kind, False)]))
        found.until("gone", id=got["id"])
        found.until("appears", id=got["id"])


def a_server_that_has_left_does_not_come_back_for_a_moment():
    """avahi-daemon first forgets that the server leaves, and then its record. This is tried again, because an avahi-daemon that gets no
    CPU for seconds is late."""
    browse = ["avahi-browse", "--parsable", "--terminate", "_spancl._tcp"]

    def is_forgotten(net):
        return not subprocess.run(net.inside("near", *browse), env=net.env("near"), stdout=subprocess.PIPE, timeout=HANG_S,
                                  check=True).stdout

    def leaves_once():
        with Network() as net, net.source() as found:
            with net.spancld(*ALL):
                found.until("appears")
            found.until("gone")
            wait_for(lambda: is_forgotten(net), lambda: "avahi-daemon still has the record")
            net.publish("last", host="near")
            return found.until("appears")["name"] == "last"

    wait_for(leaves_once, lambda: "each time, it came back")


def a_server_that_drains_withdraws_its_record():
    with Network() as net, net.source() as found, net.spancld(*ALL) as s:
        got = found.until("appears")
        s.processes[0].send_signal(signal.SIGUSR1)  # without sessions it also ends
        found.until("gone", id=got["id"])
        assert s.processes[0].wait(HANG_S) == 0


def a_server_that_knows_clients_publishes_its_key():
    with Network() as net, net.source() as found:
        subprocess.run([BUILD / "bin/spancld", "pair", "--keys", f"{net.folder.name}/keys"], check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL)
        with net.spancld(*ALL, insecure=False):
            assert len(found.until("appears")["key"]) == 64


def a_paired_server_is_found_without_configuration():
    """No variable names a server: the user's key is enough, and without it nobody sees the platform. clinfo lists its
    device, and hashcat finds a word there."""
    with Network() as net:
        folder = Path(net.folder.name)
        _make_keys(net)
        (folder / "user").mkdir()
        (folder / "pair/client").rename(folder / "user/spancl")
        env = {**net.env("near"), "OCL_ICD_VENDORS": str(BUILD / "etc/vendors"), "SPANCL_DISCOVERY_WAIT": "60000"}

        def output(config, *command):
            return subprocess.run(net.inside("near", *command), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env={**env, **{f"XDG_{n}_HOME": str(folder / config) for n in ("CONFIG", "DATA", "CACHE")}},
                                  stdin=subprocess.DEVNULL, timeout=claims.HANG_S, check=False).stdout

        def clinfo(config):
            return output(config, "clinfo", "-l")

        with net.spancld("--listen", "*:7777", "--advertise", backend="native", insecure=False):
            with net.source() as found:
                found.until("appears")
            shown = clinfo("user")
            assert "SpanCL" in shown and "Device #0" in shown and "spancl[" not in shown, shown
            if shutil.which("hashcat"):
                shown = output("user", "hashcat", "--force", "-D", "1", "-m", "0", "-a", "3", "--potfile-disable",
                               "--restore-disable", "--outfile-autohex-disable", md5(b"cl42").hexdigest(), "cl?d?d")
                assert "Status...........: Cracked" in shown and ":cl42" in shown, shown
            assert "SpanCL" not in clinfo("stranger") and "spancl[" not in clinfo("stranger")
        net.stop_avahi("near")
        assert "avahi" not in clinfo("user") and "spancl" not in clinfo("user"), clinfo("user")


def readme_finds_a_server_by_two_lines():
    """Runs the lines of README.md unchanged, with clinfo as the program, and with the default folders of keys of user and
    server. clinfo waits for the default time, so on a busy host it is run again."""
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n### Find\n")[1].split("\n### ")[0]
    there, here = section.split("```text\n")[1].split("```")[0].splitlines()
    assert here.startswith("any-opencl-program ") and "# here" in here and there.endswith("# there"), section
    with Network() as net:
        folder = Path(net.folder.name)
        _make_keys(net)
        for name, keys in ("there", "keys"), ("here", "pair/client"):
            (folder / name / ".config").mkdir(parents=True)
            (folder / keys).rename(folder / name / ".config/spancl")

        def start(name, host, line, **more):
            env = {"HOME": str(folder / name), "PATH": f"{BUILD}/bin:{os.environ['PATH']}", "LANG": "C.UTF-8", **more,
                   "DBUS_SYSTEM_BUS_ADDRESS": net.env(host)["DBUS_SYSTEM_BUS_ADDRESS"]}
            return subprocess.Popen(net.inside(host, "bash", "-c", f"exec {line}"), env=env, text=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

        def is_found():
            shown = start("here", "near", here.replace("any-opencl-program", "clinfo -l"),
                          OCL_ICD_VENDORS=str(BUILD / "etc/vendors")).communicate(timeout=claims.HANG_S)[0]
            assert server.poll() is None, server.communicate()[0]
            return "SpanCL" in shown and "Device #0" in shown

        server = start("there", "far", there, OCL_ICD_VENDORS=native_vendors(folder))
        try:
            claims.wait_for(is_found, "clinfo does not find the server")
        finally:
            server.terminate()
        log = server.communicate(timeout=claims.HANG_S)[0]
        assert server.returncode == 0, log


def link_local_addresses_of_ipv6_alone_are_enough():
    """Such an address needs its interface. The server is found, and used."""
    with Network() as net:
        folder = Path(net.folder.name)
        for k, (host, device) in enumerate((("near", "tofar"), ("far", "tonear"))):
            net.hosts.ip(host, "addr", "del", f"10.77.1.{k + 1}/24", "dev", device)
            net.hosts.ip(host, "addr", "del", f"fd77:1::{k + 1}/64", "dev", device)
        _make_keys(net)
        with net.spancld(*ALL, insecure=False) as s:
            with net.source() as found:
                got = found.until("appears")
                while not got["addresses"]:
                    got = found.until("changes", id=got["id"])
                assert all(a.startswith("fe80::") and a.endswith("%tofar") for a in got["addresses"]), got
            done = subprocess.run(net.inside("near", BUILD / "bin/spancl", "list", "--discover"), text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=claims.HANG_S, check=False,
                                  env={**net.env("near"), "SPANCL_DISCOVERY": "mdns", "SPANCL_DISCOVERY_WAIT": "60000",
                                       "SPANCL_KEYS": str(folder / "pair/client")})
            assert done.returncode == 0 and "%tofar]:7777" in done.stdout, done.stdout + done.stderr
            assert "takes a new session" in s.log_text(), s.log_text()


def a_name_that_another_host_has_is_not_taken():
    with Network() as net, net.source() as found:
        name = socket.gethostname().partition(".")[0]
        net.publish(name, "load=7", host="near")
        first = found.until("appears", name=name)
        with net.spancld("--listen", "*:7788", "--advertise"):
            second = found.until("appears", name=f"{name} #2")
            assert first["port"] == 7777 and second["port"] == 7788, (first, second)


def a_server_publishes_only_the_address_that_it_listens_on():
    with Network() as net, net.source() as found, net.spancld("--listen", "10.77.1.2:7788", "--advertise=mdns"):
        got = found.until("appears")
        assert got["addresses"] == ["10.77.1.2"] and got["port"] == 7788, got


def a_server_of_loopback_is_published_to_its_own_host():
    with Network() as net, net.source() as other, net.source(host="far") as own, net.spancld("--advertise"):
        got = own.until("appears")
        assert got["addresses"][0] in ("127.0.0.1", "::1"), got
        other.until("settled")
        assert len(other.seen) == 1, other.seen


DEMO = """
eval "$(sed -n '/^over_found()/,/^}/p; /^devices_seen()/,/^}/p; /^are_found()/,/^}/p' "$0")"
build=$1 run_tmp=$2 server_ports=("$3" "$4")
over_servers() {
        SPANCL_SERVERS="localhost:${server_ports[0]} localhost:${server_ports[1]}" OCL_ICD_VENDORS=$build/etc/vendors SPANCL_KEYS=$run_tmp/pair/client "$@"
}
are_found && devices_seen over_found
"""


def the_demo_finds_its_two_servers():
    """By the functions of ./demo, which gives up after some time and then names its servers."""
    with Network(daemons=("far",)) as net:
        folder = Path(net.folder.name)
        (folder / "demo").mkdir()
        subprocess.run([BUILD / "bin/spancl", "keys", folder / "demo/pair"], check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL)
        (folder / "demo/pair/server").rename(folder / "keys")
        with net.spancld("--advertise", backend="native", insecure=False) as s, \
                net.spancld("--advertise", backend="native", insecure=False) as t:
            def found():
                return subprocess.run(net.inside("far", "bash", "-c", DEMO, ROOT / "demo", BUILD, folder / "demo", s.ports[0],
                                                 t.ports[0]), env=net.env("far"), text=True, stdout=subprocess.PIPE,
                                      timeout=claims.HANG_S, check=False).stdout.strip()

            claims.wait_for(lambda: found() == "2", "./demo does not find both servers")


def servers_of_one_host_have_different_names():
    with Network() as net, net.source() as found, net.spancld(*ALL), net.spancld("--listen", "*:7788", "--advertise"):
        first, second = found.until("appears"), found.until("appears")
        assert first["name"] != second["name"] and {first["port"], second["port"]} == {7777, 7788}, (first, second)


def the_publisher_is_started_again():
    with Network() as net, net.source() as found, net.spancld(*ALL) as s:
        got = found.until("appears")
        os.kill(advertiser(s), signal.SIGKILL)
        found.until("gone", id=got["id"])
        found.until("appears", id=got["id"])
        pid = advertiser(s)
        status = Path(f"/proc/{pid}/status").read_text()
        assert "NoNewPrivs:\t1" in status and "Uid:\t0" not in status, status
        s.processes[0].kill()  # without a word
        found.until("gone", id=got["id"])
        wait_for(lambda: not is_running(pid), s.log_text)


def sessions_change_the_load():
    with Network() as net, net.source() as found, net.spancld(*ALL, "--linger", "0", backend="native"):
        got = found.until("appears", load=0)
        client = subprocess.Popen(net.inside("far", BUILD / "bin/bench_opencl", "--only", "empty", "--scale", "1000000"),
                                  env={**net.env("far"), "SPANCL_SERVERS": "localhost:7777",
                                       "OCL_ICD_VENDORS": str(BUILD / "etc/vendors")},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        net.others.append(client)
        found.until("changes", id=got["id"], load=1)
        client.terminate()
        found.until("changes", id=got["id"], load=0)


def a_file_publishes_a_server_that_can_not_reach_avahi():
    with Network() as net, net.source() as found:
        def printed(*options):
            return subprocess.run([BUILD / "bin/spancld", "--print-avahi", "--keys", f"{net.folder.name}/keys", *options],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)

        subprocess.run([BUILD / "bin/spancld", "pair", "--keys", f"{net.folder.name}/keys"], check=True, timeout=HANG_S,
                       stdout=subprocess.DEVNULL)
        for options in ((), ("--listen", "localhost"), ("--listen", "192.0.2.9")):
            done = printed(*options)
            assert done.returncode == 2 and not done.stdout and "--print-avahi" in done.stderr, (options, done)
        net.stop_avahi("far")
        (Path(net.folder.name) / "far/services/spancl.service").write_text(printed("--listen", "*:7788").stdout)
        net.start_avahi("far")
        net.await_avahi("far")
        got = found.until("appears")
        assert got["name"] == "far" and got["port"] == 7788 and len(got["key"]) == 64 and got["protocol"] >= 1, got


def a_server_says_that_avahi_is_not_there():
    with Network(daemons=()) as net, net.spancld(*ALL) as s:
        wait_for(lambda: "avahi-daemon is not there" in s.log_text(), s.log_text)
        net.start_bus("far")
        net.start_avahi("far")
        net.await_avahi("far")
        with net.source(host="far") as found:
            found.until("appears")


# --- Unicast DNS ----------------------------------------------------------------------------------

class Zone:
    """A dnsmasq with the records of a domain, on a port of loopback."""

    def __init__(self):
        self.held = []
        while len(self.held) < 2:
            self.release()
            self.port = 0
            try:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    self.hold(kind)
            except OSError:
                pass  # somebody has the port of UDP
        self.process = None

    def hold(self, kind):
        """Keep others from the port. dnsmasq sets SO_REUSEADDR, too, and gets all data from others than port 9."""
        s = socket.socket(socket.AF_INET, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", self.port))
        self.port = s.getsockname()[1]
        if kind == socket.SOCK_DGRAM:
            s.connect(("127.0.0.1", 9))
        self.held.append(s)

    def release(self):
        while self.held:
            self.held.pop().close()

    def serve(self, *records):
        """These records, and no others, from now on."""
        self.stop()
        self.process = subprocess.Popen(
            ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--pid-file=",
             "--bind-interfaces", "--listen-address=127.0.0.1", f"--port={self.port}", "--local-ttl=1", "--user=",
             "--local=/lab.example/", *records], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port)).close()
            except OSError:
                assert time.monotonic() < deadline and self.process.poll() is None, "dnsmasq does not start"
                time.sleep(0.05)

    def source(self):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env.update(SPANCL_SEARCH_DOMAINS="lab.example", SPANCL_DNS_SERVERS=f"127.0.0.1:{self.port}")
        return Lines([LIBEXEC / "discover-dns"], env)

    def stop(self):
        if self.process:
            self.process.terminate()
            self.process.wait(HANG_S)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.release()


def listed(name, *txt, port=7777, host="gpu1.lab.example", kind="_spancl._tcp", priority=0, weight=0):
    full = f"{name}.{kind}.lab.example"
    return [f"--ptr-record={kind}.lab.example,{full}", f"--srv-host={full},{host},{port},{priority},{weight}",
            *([f"--txt-record={full},{','.join(txt)}"] if txt else [])]


HOST = "--host-record=gpu1.lab.example,192.0.2.5,2001:db8::5"


def a_domain_lists_its_servers():
    with Zone() as zone:
        zone.serve(HOST, *listed("gpu1", "v=1", f"key={KEY}", "types=gpu", "load=2"),
                   *listed("other", kind="_pocl._tcp", port=10998))
        with zone.source() as found:
            found.until("settled")
            got = {l["name"]: l for l in found.seen if l["event"] == "appears"}
            assert set(got) == {"gpu1", "other"} and got["other"]["kind"] == "pocl", got
            assert sorted(got["gpu1"]["addresses"]) == ["192.0.2.5", "2001:db8::5"], got
            assert got["gpu1"]["key"] == KEY and got["gpu1"]["load"] == 2 and got["gpu1"]["port"] == 7777, got


def changes_of_a_domain_follow_the_life_of_its_records():
    with Zone() as zone:
        zone.serve(HOST, *listed("gpu1", "load=1"), *listed("gpu2"))
        with zone.source() as found:
            found.until("settled")
            zone.serve(HOST, *listed("gpu1", "load=5"))
            assert {found.next()["event"], found.next()["event"]} == {"changes", "gone"}, found.seen
            zone.stop()
            time.sleep(3)  # a server that is away says nothing about its services
            zone.serve(HOST, *listed("gpu1", "load=6"))
            found.until("changes", load=6)
            assert sum(l["event"] == "gone" for l in found.seen) == 1, found.seen


def the_server_of_the_best_priority_is_taken():
    with Zone() as zone:
        zone.serve(HOST, "--host-record=spare.lab.example,192.0.2.6", *listed("gpu1", priority=20, port=1),
                   *listed("gpu1", priority=10, weight=1, host="spare.lab.example", port=2),
                   *listed("gpu1", priority=10, weight=9, host="nowhere.lab.example", port=3))
        with zone.source() as found:
            got = found.until("appears")
            assert got["addresses"] == ["192.0.2.6"] and got["port"] == 2, got


def a_domain_can_not_lead_to_loopback():
    with Zone() as zone:
        zone.serve("--host-record=gpu1.lab.example,127.0.0.1", "--host-record=any.lab.example,0.0.0.0",
                   *listed("gpu1"), *listed("any", host="any.lab.example"))
        with zone.source() as found:
            assert found.next()["event"] == "settled"
            assert "another host" in found.log(), found.log()


def printed_records_lead_to_the_server():
    """dnsmasq serves what --print-dns prints."""
    with tempfile.TemporaryDirectory() as keys, Zone() as zone:
        done = subprocess.run([BUILD / "bin/spancld", "--print-dns", "lab.example", "--listen", "192.0.2.9:7788",
                               "--keys", keys], stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=True)
        options = []
        for line in done.stdout.splitlines():
            name, _, _, kind, *data = line.replace(". ", " ").rstrip(".").split()
            if kind == "SRV":
                options.append(f"--srv-host={name},{data[3]},{data[2]},{data[0]},{data[1]}")
            else:
                word = {"PTR": "ptr-record", "TXT": "txt-record", "A": "host-record"}[kind]
                options.append(f"--{word}={name},{','.join(d.strip(chr(34)) for d in data)}")
        zone.serve(*options)
        with zone.source() as found:
            got = found.until("appears")
            assert got["addresses"] == ["192.0.2.9"] and got["port"] == 7788 and got["protocol"] >= 1 and "key" not in got, got
        subprocess.run([BUILD / "bin/spancld", "pair", "--keys", keys], check=True, timeout=HANG_S, stdout=subprocess.DEVNULL)
        done = subprocess.run([BUILD / "bin/spancld", "--print-dns", "lab.example", "--listen", "192.0.2.9:7788",
                               "--keys", keys], stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=True)
        assert '"key=' in done.stdout, "a server that takes clients has a key"


def a_dot_behind_the_domain_changes_nothing():
    with tempfile.TemporaryDirectory() as keys:
        texts = [subprocess.run([BUILD / "bin/spancld", "--print-dns", domain, "--listen", "192.0.2.9:7788", "--keys", keys],
                                stdout=subprocess.PIPE, text=True, timeout=HANG_S, check=True).stdout
                 for domain in ("lab.example", "lab.example.")]
    assert texts[0] == texts[1] and ".." not in texts[0], texts


def records_are_printed_for_a_domain_and_a_network_only():
    for options in (("x y", "--listen", "*:7777"), ("a..b", "--listen", "*:7777"), (".", "--listen", "*:7777"),
                    ("a..", "--listen", "*:7777"), ("lab.example",),
                    ("lab.example", "--listen", "localhost")):
        done = subprocess.run([BUILD / "bin/spancld", "--print-dns", *options], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 2 and not done.stdout and "--print-dns" in done.stderr, (options, done)


def a_domain_with_thousands_of_services_is_bounded():
    with Zone() as zone:
        zone.serve(HOST, *(r for n in range(2000) for r in listed(f"s{n}")))
        with zone.source() as found:
            found.until("settled")
            count = sum(l["event"] == "appears" for l in found.seen)
            assert 0 < count <= 1024 and found.memory_mib() < 64, (count, found.memory_mib())
            return f"{count} of 2000 listed, {found.memory_mib():.1f} MiB"


class LargeTxt:
    """A server of DNS whose TXT records fill a message: 65,535 bytes. UDP has no room for them."""

    def __init__(self):
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.large = 0  # answers of that size
        for loop in (self._serve_udp, self._serve_tcp):
            threading.Thread(target=loop, daemon=True).start()

    def _answer(self, query, room):
        end = query.index(b"\0", 12) + 5
        question, kind = query[12:end], struct.unpack(">H", query[end - 4:end - 2])[0]
        service = [b"large", b"_spancl", b"_tcp", b"lab", b"example"]
        data, name = {12: (_dns_name(*service), _dns_name(*service[1:])),
                      33: (struct.pack(">HHH", 0, 0, 7777) + _dns_name(b"gpu1", b"lab", b"example"), _dns_name(*service)),
                      1: (socket.inet_aton("192.0.2.5"), _dns_name(b"gpu1", b"lab", b"example"))}.get(kind, (b"", b""))
        if kind == 16:
            name = _dns_name(*service)
            size = 65535 - 12 - len(question) - len(name) - 10
            data = b"".join(bytes([min(255, size - at - 1)]) + b"x" * min(255, size - at - 1) for at in range(0, size, 256))
        head, known = query[:2], name and question[:-4].lower() == name.lower()
        answer = _record(name, kind, data, False) if known else b""
        short = len(answer) + 12 + len(question) > room
        self.large += known and kind == 16 and not short
        return head + struct.pack(">HHHHH", 0x8780 if short else 0x8580, 1, 0 if short or not known else 1, 0, 0) + \
            question + (b"" if short else answer)

    def _serve_udp(self):
        while True:
            try:
                query, client = self.udp.recvfrom(4096)
            except OSError:
                return
            self.udp.sendto(self._answer(query, 512), client)

    def _serve_tcp(self):
        while True:
            try:
                client, _ = self.tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_client, args=(client,), daemon=True).start()

    def _serve_client(self, client):
        with client, client.makefile("rb") as said:
            while len(head := said.read(2)) == 2:
                answer = self._answer(said.read(struct.unpack(">H", head)[0]), 65535)
                client.sendall(struct.pack(">H", len(answer)) + answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.tcp.shutdown(socket.SHUT_RDWR)
        self.tcp.close()
        self.udp.close()


def a_txt_record_of_64_kib_is_refused():
    with LargeTxt() as server:
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env.update(SPANCL_SEARCH_DOMAINS="lab.example", SPANCL_DNS_SERVERS=f"127.0.0.1:{server.port}")
        with Lines([LIBEXEC / "discover-dns"], env) as found:
            found.until("settled")
            assert server.large, "it did not ask by TCP"
            assert len(found.seen) == 1 and "TXT record is refused" in found.log(), (found.seen, found.log())
            assert found.memory_mib() < 64, found.memory_mib()


def without_a_server_of_dns_the_source_settles():
    with Zone() as zone, zone.source() as found:
        assert found.next()["event"] == "settled"


# --- Floods ---------------------------------------------------------------------------------------

def _dns_name(*labels):
    return b"".join(bytes([len(label)]) + label for label in labels) + b"\0"


def _record(name, kind, data, unique, life_s=120):
    return name + struct.pack(">HHIH", kind, 0x8001 if unique else 1, life_s, len(data)) + data


def _packet(records):
    """With its length before it."""
    packet = struct.pack(">HHHHHH", 0, 0x8400, 0, len(records), 0, 0) + b"".join(records)
    return struct.pack(">H", len(packet)) + packet


def _service(name, address, life_s=120):
    """The records of one service, as a host that answers no query has sent them."""
    kind, host = _dns_name(b"_spancl", b"_tcp", b"local"), _dns_name(name + b"-host", b"local")
    name = _dns_name(name, b"_spancl", b"_tcp", b"local")
    return _packet([_record(kind, 12, name, False, life_s),
                    _record(name, 33, struct.pack(">HHH", 0, 0, 7777) + host, True, life_s),
                    _record(name, 16, bytes([6]) + b"load=1", True, life_s),
                    _record(host, 1, socket.inet_aton(address), True, life_s)])


def _forged(n):
    """The records of one service, on a host of its own."""
    kind = _dns_name(b"_spancl", b"_tcp", b"local")
    name = _dns_name(b"forged\x01\n\"%d" % n, b"_spancl", b"_tcp", b"local")
    host = _dns_name(b"h%d" % n, b"local")
    return [_record(kind, 12, name, False), _record(name, 33, struct.pack(">HHH", 0, 0, 7777) + host, True),
            _record(name, 16, bytes([6]) + b"load=1", True), _record(host, 1, bytes([10, 77, n >> 8 & 255, n & 255]), True)]


FLOOD = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 255)
s.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, socket.inet_aton("10.77.1.2"))
s.bind(("", 5353))
data = sys.stdin.buffer.read()
while data:
    n = int.from_bytes(data[:2], "big")
    s.sendto(data[2:2 + n], ("224.0.0.251", 5353))
    data = data[2 + n:]
    time.sleep(0.001)
"""


def _send(net, packets):
    subprocess.run(net.inside("far", sys.executable, "-c", FLOOD), input=packets, timeout=HANG_S, check=True)


def a_server_that_falls_silent_goes_when_its_records_expire():
    with Network(daemons=("near",)) as net, net.source() as found:
        found.until("settled")
        begin = time.monotonic()
        _send(net, _service(b"gpu1", "10.77.1.2", life_s=6))
        got = found.until("appears", name="gpu1")
        found.until("gone", id=got["id"])
        return f"its records live for 6 s, and it is gone after {time.monotonic() - begin:.1f} s"


def no_host_can_announce_a_server_of_loopback():
    with Network(daemons=("near",)) as net, net.source() as found:
        found.until("settled")
        for address in ("127.0.0.1", "0.0.0.0", "224.0.0.1"):
            _send(net, _service(b"bad " + address.replace(".", "-").encode(), address))
        wait_for(lambda: "can't be another host's" in found.log(), found.log)
        _send(net, _service(b"good", "10.77.1.2"))
        found.until("appears", name="good")
        assert {l["name"] for l in found.seen if l["event"] == "appears"} == {"good"}, found.seen


def _flood(first, end):
    return b"".join(_packet([r for n in range(at, at + 8) for r in _forged(n)]) for at in range(first, end, 8))


def a_flood_of_forged_services_harms_no_paired_server():
    """The flood has 10,000 services. A program uses one server from before the flood, and finds another one after 400
    services. When the flood has taken all places, it hides further servers, but these two stay."""
    if not (BUILD / "bin/system_finder").exists():
        return "no OpenCL loader in this build"
    with Network() as net, net.source() as found:
        folder = Path(net.folder.name)
        found.until("settled")
        before = found.memory_mib()

        def spancld(port):
            return net.spancld("--listen", f"*:{port}", "--advertise", "--devices", "0", insecure=False)

        def fills_all():
            """A busy host can drop packets. A busy avahi-daemon needs some time for them."""
            _send(net, _flood(400, 10000))
            again = time.monotonic() + 20
            while "oo many" not in found.log() and time.monotonic() < again:  # objects of avahi-daemon, or services
                time.sleep(0.05)
            return "oo many" in found.log()

        _make_keys(net)
        with spancld(7777):
            client = Client("mdns", prefix=net.inside("near"), SPANCL_KEYS=str(folder / "pair/client"),
                            DBUS_SYSTEM_BUS_ADDRESS=net.env("near")["DBUS_SYSTEM_BUS_ADDRESS"])
            client.expect("until a", "a")
            client.expect("use", "ok")
            _send(net, _flood(0, 400))
            while "forged" not in found.until("appears")["name"]:
                pass
            with spancld(7788):
                client.expect("until ab", "ab")
                claims.wait_for(fills_all, found.log)
                client.expect("list", "ab")
                client.expect("compute", "ok")  # on the first one
                client.expect("drop", "ok")
                client.expect("use b", "ok")
                client.expect("compute", "ok")
                memory = found.memory_mib() - before
                client.end()
        names, most = set(), 0
        while not found.lines.empty():
            found.next()
        for line in found.seen:
            (names.add if line["event"] == "appears" else names.discard)(line.get("id"))
            most = max(most, len(names))
        assert most <= 1024 and memory < 64, (most, memory)
        return f"{most} of 10,002 are listed, {memory:.1f} MiB more"


def main():
    tools = ("dnsmasq", "dbus-daemon", "dbus-send", "avahi-daemon", "avahi-publish", "clinfo", "ip")
    missing = [t for t in tools if not shutil.which(t, path=os.environ["PATH"] + ":/usr/sbin:/sbin")]
    if missing or not may_make_hosts():
        print("skipped:", f"no {', '.join(missing)}" if missing else "no network namespaces")
        return 77
    return claims.run(globals())


if __name__ == "__main__":
    sys.exit(main())
