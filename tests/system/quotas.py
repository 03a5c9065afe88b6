#!/usr/bin/env python3
"""quotas.py BUILD [NAME...]: claims about what the sessions of one client may use together, over real processes (quota.c).
Users of the Unix socket are one client, connections to loopback another. Each function is one claim."""

import getpass
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
import scrape  # noqa: E402
from claims import wait_for  # noqa: E402
from security import Place, fails, works  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402
from top import top  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 120  # a watchdog, not a claim about speed
FULL = "-4"  # CL_MEM_OBJECT_ALLOCATION_FAILURE


class Server:
    """With a Unix socket and a port of loopback, on this host's devices."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory()
        self.servers = Servers(BUILD, 1, ("--linger", "0", "--log", "info", *options), transport="unix",
                               vendors=native_vendors(self.folder.name))
        self.port = self.servers.ports[0]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.servers.stop()
        self.folder.cleanup()

    def log(self):
        return self.servers.log_text()

    def session(self, other=False):
        return Session(self, f"localhost:{self.port}" if other else self.servers.address(0))


class Session:
    def __init__(self, server, address, keys=""):
        self.server = server
        self.process = subprocess.Popen([str(BUILD / "bin/system_quota")], text=True, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env={**server.servers.environment(), "SPANCL_SERVERS": address,
                                             "SPANCL_KEYS": str(keys)})

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline().strip()
        assert line, self.process.communicate()[1] + self.server.log()
        return line

    def do(self, line):
        self.ask(line)
        return self.answer()

    def end(self):
        """Return what it printed to standard error."""
        return self.process.communicate(timeout=HANG_S)[1]

    def kill(self):
        self.process.kill()
        self.process.communicate()


def says(session, words):
    """The error callback runs on another thread than the call that fails."""
    wait_for(lambda: words in session.do("said"), session.server.log)


def memory_is_shared_by_the_sessions_of_one_client():
    with Server("--client-memory", "64") as server:
        a, b, other = server.session(), server.session(), server.session(other=True)
        assert a.do("take 40") == "0", server.log()
        assert b.do("said") == "nothing"
        assert b.do("take 40") == FULL, server.log()
        says(b, "--client-memory")
        wait_for(lambda: "--client-memory" in server.log(), server.log)
        assert b.do("take 24") == "0", server.log()
        assert other.do("take 60") == "0", server.log()
        assert a.do("free") == "0"
        assert b.do("take 40") == "0", server.log()
        assert a.do("take 65") == FULL
        assert other.do("said") == "nothing"
        for session in (a, b, other):
            session.end()


def killed_sessions_leave_nothing_in_the_account():
    with Server("--client-memory", "64", "--client-sessions", "32") as server:
        for _ in range(12):
            session = server.session()
            assert session.do("take 60") in ("0", FULL), server.log()
            session.kill()
        # The last of them has ended by the time that there is room for all.
        wait_for(lambda: (s := server.session()).do("take 64") == "0" and s.end() is not None or s.kill(), server.log)


def more_sessions_than_a_client_may_have_are_refused():
    with Server("--client-sessions", "2") as server:
        sessions = [server.session(), server.session()]
        other = server.session(other=True)
        for session in (*sessions, other):
            assert session.do("take 1") == "0", server.log()
        third = server.session()
        assert "--client-sessions" in third.end(), server.log()
        assert third.process.returncode == 1
        assert "--client-sessions" in server.log(), server.log()
        for session in (*sessions, other):
            session.end()


def a_command_waits_for_memory_and_then_goes_on():
    with Server("--client-memory", "64", "--when-full", "wait:3600") as server:
        a, b = server.session(), server.session()
        assert a.do("take 40") == "0", server.log()
        b.ask("take 40")
        wait_for(lambda: "a command waits for device memory" in server.log(), server.log)
        assert b.process.poll() is None
        assert a.do("free") == "0"
        assert b.answer() == "0", server.log()
        # More than the limit is never there, so nothing waits for it.
        assert b.do("take 65") == FULL, server.log()
        # The end of a session makes room, too, also by a signal.
        a.ask("take 40")
        wait_for(lambda: server.log().count("a command waits for device memory") == 2, server.log)
        b.kill()
        assert a.answer() == "0", server.log()
        a.end()


def a_command_that_waits_too_long_fails():
    with Server("--client-memory", "64", "--when-full", "wait:1") as server:
        a, b = server.session(), server.session()
        assert a.do("take 40") == "0", server.log()
        begin = time.monotonic()
        assert b.do("take 40") == FULL, server.log()
        assert time.monotonic() - begin >= 1
        says(b, "--client-memory")
        assert b.do("take 20") == "0", server.log()
        a.end()
        b.end()


def kernels_wait_when_the_device_time_is_used_up():
    with Server("--client-time", "1/8") as server:
        a, other = server.session(), server.session(other=True)
        begin = time.monotonic()
        assert a.do("run 1500") == "0", server.log()  # or as long as it waits
        wait_for(lambda: "of device time in 8 s (--client-time)" in server.log(), server.log)
        assert other.do("run 1") == "0", server.log()
        assert a.do("run 1") == "0", server.log()  # in the next window
        assert time.monotonic() - begin >= 4, server.log()
        says(a, "--client-time")
        assert other.do("said") == "nothing"
        a.end()
        other.end()


def share_of(pid):
    """Returns a process's share of the processors as the kernel has it: its threads' nice values and its group's weight."""
    nice = {os.getpriority(os.PRIO_PROCESS, int(thread)) for thread in os.listdir(f"/proc/{pid}/task")}
    group = next((line[3:].strip("/") for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines()
                  if line.startswith("0::")), "")
    weight = Path("/sys/fs/cgroup") / group / "cpu.weight"
    return nice, weight.read_text().strip() if weight.exists() else None


def the_kernel_knows_the_priority_of_a_client():
    own = os.getpriority(os.PRIO_PROCESS, 0)
    for word, nice, weight in ("normal", own, None), ("low", 10, "20"), ("high", -5, "500"):
        if word == "high" and os.geteuid():
            return "high priorities need root"
        with Server("--client-priority", word) as server:
            a = server.session()
            assert a.do("take 1") == "0", server.log()
            (session,) = top(BUILD, server.servers.address(0))["sessions"]

            def given():
                values, of_group = share_of(session["worker"])
                return values == {nice} or (weight and of_group == weight)
            wait_for(given, lambda: f"{word}: {share_of(session['worker'])}\n{server.log()}")
            a.end()
    return None


def builds_of_one_client_take_turns():
    with Server("--client-builds", "1") as server:
        a, b, other = server.session(), server.session(), server.session(other=True)

        def waits():
            for session in (a, b):
                session.ask("build 2 1")
            assert (a.answer(), b.answer()) == ("0", "0"), server.log()
            return "--client-builds" in a.do("said") and "--client-builds" in b.do("said")

        wait_for(waits, server.log)
        assert "have 1 builds at work, and further ones wait: --client-builds" in server.log(), server.log()
        a.ask("build 6 1")
        b.ask("build 6 1")
        a.kill()  # its builds end with it
        assert b.answer() == "0", server.log()
        assert other.do("build 1 1") == "0" and other.do("said") == "nothing"
        b.end()
        other.end()


def a_client_has_a_cache_of_limited_size():
    with tempfile.TemporaryDirectory() as folder, Place() as p, \
            Server("--keys", str(p.server), "--cache", f"{folder}/cache", "--client-builds", "1") as s:
        alice, bob = (Client(p, name, s.port) for name in ("alice", "bob"))
        works(clients(p, "limits", "alice", "cache=1", "builds=0"))
        one, two = (Session(s, who.where, who.client) for who in (alice, bob))
        assert one.do("build 1 1200") == "0" and two.do("build 1 1200") == "0", s.log()
        says(one, "take more than 1 MiB, so those used least recently are not kept: --client-cache")
        assert "--client-builds" not in one.do("said") and "--client-cache" not in two.do("said")
        wait_for(lambda: "take more than 1 MiB" in s.log(), s.log)
        one.end()
        two.end()
        wait_for(lambda: " KiB are removed to keep 1 MiB" in s.log(), s.log)

        def size(client):
            own = Path(f"{folder}/cache-clients") / row_of(p, client)["fingerprint"]
            try:
                return sum(f.stat().st_size for f in own.rglob("*") if f.is_file())
            except FileNotFoundError:  # the janitor is at work
                return 1 << 40

        wait_for(lambda: size("alice") <= 1 << 20, s.log)
        assert size("bob") > 1 << 20, size("bob")


TWO = ("--backend", "reference", "--devices", "0,1")


class Client(Place):
    """One client of the server of `place`."""

    def __init__(self, place, name, port, folder=None):  # pylint: disable=super-init-not-called
        self.folder, self.server, self.client = place.folder, place.server, Path(place.folder.name) / (folder or name)
        self.where = f"tls:localhost:{port}"
        self.pair(port)
        works(clients(place, "rename", json.loads(works(clients(place, "list", "--json")).stdout.splitlines()[-1])["name"],
                      name))

    def listed(self, *how, where=None):
        done = self.spancl("list", "--quick", "--json", "--server", where or self.where, *how)
        return json.loads(works(done).stdout)

    def devices(self, where=None):
        return len(self.listed(where=where)["devices"])


def clients(place, *words):
    return subprocess.run([str(BUILD / "bin/spancld"), "clients", *words, "--keys", str(place.server)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False)


def row_of(place, name, *options):
    rows = map(json.loads, works(clients(place, "list", "--json", *options)).stdout.splitlines())
    return next(row for row in rows if row["name"] == name)


def a_reserved_device_is_for_its_client_alone():
    with Place() as p, Server("--keys", str(p.server), *TWO) as s:
        alice, bob = (Client(p, name, s.port) for name in ("alice", "bob"))
        unix = s.servers.address(0)
        before = Session(s, f"{unix}/1")
        assert before.do("take 1") == "0", s.log()
        told = works(clients(p, "reserve", "alice", "1:1d")).stdout
        assert "device 1 is reserved for alice until 2" in told and "now go on" in told, told
        wait_for(lambda: "is reserved for alice until 2" in s.log(), s.log)
        assert "; 1 sessions of others began before and keep it" in s.log(), s.log()
        assert before.do("take 1") == "0", s.log()

        # The others do not see it, on any way to the server; they are told for whom it is.
        assert alice.devices() == 2 and bob.devices() == 1 and bob.devices(where=unix) == 1, s.log()
        assert bob.devices(where=f"localhost:{s.port}") == 1, s.log()
        listed, = bob.listed()["reservations"]
        assert (listed["device"], listed["client"]) == (1, "alice") and listed["until"] > time.time(), listed
        assert "is reserved for alice until" in works(bob.spancl("list", "--quick", "--server", bob.where)).stdout
        assert json.loads(works(bob.spancl("top", "--once", "--json", "--server", bob.where)).stdout)["reservations"] == [listed]
        assert re.search(r"worker [0-9]+: device 1 .* is reserved for alice until 2.*: its session does not get it", s.log()), s.log()
        row = next(line for line in works(clients(p)).stdout.splitlines() if line.startswith("alice "))
        assert " reserve=1:2" in row, row
        assert row_of(p, "alice")["reservations"] == [{"device": 1, "until": listed["until"]}], row

        # Without any device for it a session is refused.
        works(clients(p, "reserve", "alice", "0"))
        for where in (bob.where, unix):
            fails(bob.spancl("list", "--server", where), "no device for this session", "is reserved for alice")
        assert "was refused: this server has no device for this session: device" in s.log(), s.log()
        assert alice.devices() == 2, s.log()
        # No client can reserve, by its name or key. A reservation follows its client's key and name.
        works(alice.spancl("pair", "--rotate"))
        assert alice.devices() == 2, s.log()
        works(clients(p, "rename", "alice", "alba"))
        assert alice.devices() == 2, s.log()
        fails(Client(p, "alice", s.port, "mallory").spancl("list", "--server", bob.where), "is reserved for alba")
        assert before.do("take 1") == "0", s.log()

        # It ends by the command, by its time, and with its client.
        works(clients(p, "release", "alba", "1"))
        assert bob.devices() == 1 and alice.devices() == 2, s.log()
        assert "also reserved for alba" in works(clients(p, "reserve", "bob", "0:1d")).stdout
        lengths = iter(range(1, HANG_S))

        def is_over():
            # A slow server sees a short reservation only when it is over: then a longer one follows.
            if not row_of(p, "bob")["reservations"]:
                clients(p, "reserve", "bob", f"0:{next(lengths)}s")
            return "the reservation of device 0 for bob is over" in s.log()

        clients(p, "reserve", "bob", "0:1s")
        wait_for(is_over, s.log)
        works(clients(p, "release", "bob"))
        works(clients(p, "reserve", "alba", "0:999d", "1"))
        fails(bob.spancl("list", "--server", bob.where), "is reserved for alba")
        works(clients(p, "remove", "alba"))
        assert bob.devices() == 2 and bob.devices(where=unix) == 2, s.log()
        before.end()

        for wrong in ("x", "0:", "0:8", "0:8weeks", "0:2020-01-01T00:00Z", "0:2026-13-01T00:00Z", "100000", "0,", "-1", ""):
            fails(clients(p, "reserve", "bob", wrong), wrong)
            fails(clients(p, "limits", "bob", f"reserve={wrong},"), "no limit")
        fails(clients(p, "release", "bob", "1"), "no device that is reserved")
        fails(clients(p, "reserve", "bob", *(f"{i}:1d" for i in range(30))), "too many")
        assert bob.devices() == 2


def a_device_is_reserved_for_a_user_of_the_socket():
    with Server("--reserve", f"1=user:{getpass.getuser()},0=token", *TWO) as s, Place() as p:
        bob = Place.__new__(Client)
        bob.client = p.client
        assert bob.devices(where=s.servers.address(0)) == 1, s.log()
        fails(bob.spancl("list", "--server", f"localhost:{s.port}"), "is reserved for user:")


class TwoDevices(Server):
    """Two devices of PoCL, in one native context or in two."""

    def __init__(self, contexts, *options):
        os.environ["POCL_DEVICES"] = "pthread basic"
        try:
            super().__init__("--contexts", contexts, *options)
        finally:
            del os.environ["POCL_DEVICES"]


def memory_of_one_device_is_limited(contexts):
    with TwoDevices(contexts, "--client-memory", "200,0=64") as server:
        a, b, other = server.session(), server.session(), server.session(other=True)
        assert (a.do("on 0"), a.do("take 40"), b.do("take 40")) == ("0", "0", FULL), server.log()
        full = (r"device 0 \(.+\) has 40.0 MiB of buffers and images of this client's sessions, 40.0 MiB more are needed, "
                r"and 64.0 MiB are allowed: --client-memory allows more")
        wait_for(lambda: re.search(full, b.do("said")) and re.search(full, server.log()), server.log)
        # The other device, and the other client, are not concerned. The limit of all devices holds, too.
        assert (b.do("on 1"), b.do("take 100"), b.do("take 70")) == ("0", "0", FULL), server.log()
        assert (other.do("take 60"), other.do("said")) == ("0", "nothing"), server.log()
        # An allocation of shared virtual memory takes its size, and no more.
        assert (other.do("free"), other.do("on 0"), other.do("svm 64")) == ("0", "0", "1"), server.log()
        # It is no matter in which context the memory is, and what was released makes room again.
        assert b.do("on 0") == "0" and b.do("spread 8 10") == "2", server.log()
        assert b.do("take 24") == "0" and b.do("spread 4 1") == "0", server.log()
        assert b.do("svm 1") == "0" and b.do("free") == "0" and b.do("svm 1") == "1", server.log()
        for _ in range(3):
            assert (a.do("free"), a.do("take 60"), a.do("free"), a.do("take 40")) == ("0",) * 4, server.log()  # b has a chunk for SVM
        for session in (a, b, other):
            session.end()


def memory_of_one_device_of_several_contexts_is_limited():
    memory_of_one_device_is_limited("device")


def memory_of_one_device_of_a_shared_context_is_limited():
    memory_of_one_device_is_limited("platform")


def a_shared_context_is_no_way_around_the_limit_of_a_device():
    for contexts in ("platform", "device"):
        with TwoDevices(contexts, "--client-memory", "0=64") as server:
            a = server.session()
            assert (a.do("shared 1"), a.do("take 50"), a.do("use")) == ("0", "0", "0"), server.log()
            assert (a.do("shared 0"), a.do("use"), a.do("take 50")) == ("0", "0", FULL), server.log()
            says(a, "device 0 (")
            assert (a.do("shared 1"), a.do("take 50"), a.do("use")) == ("0", "0", "0"), server.log()
            assert a.do("shared 0") == "0" and a.do("use") in (FULL, "-14"), server.log()  # the kernel's, or that of the copy before it
            a.end()


def a_sub_device_counts_as_its_device():
    with TwoDevices("auto", "--client-memory", "1=64") as server:
        a = server.session()
        assert (a.do("on 1"), a.do("part 40"), a.do("take 40"), a.do("part 40")) == ("0", "0", "0", FULL), server.log()
        says(a, "device 1 (")
        assert (a.do("free"), a.do("part 40")) == ("0", "0"), server.log()
        a.end()


def killed_sessions_give_the_memory_of_a_device_back():
    with TwoDevices("auto", "--client-memory", "0=64", "--client-sessions", "32") as server:
        for _ in range(8):
            session = server.session()
            assert session.do("take 60") in ("0", FULL), server.log()
            session.kill()
        wait_for(lambda: (s := server.session()).do("take 64") == "0" and s.end() is not None or s.kill(), server.log)


def a_command_waits_for_memory_of_one_device():
    with TwoDevices("auto", "--client-memory", "0=64", "--when-full", "wait:3600") as server:
        a, b = server.session(), server.session()
        assert a.do("take 40") == "0", server.log()
        b.ask("take 40")
        wait_for(lambda: "a command waits for device memory" in server.log(), server.log)
        assert a.do("on 1") == "0" and a.do("take 100") == "0", server.log()
        assert b.process.poll() is None
        a.kill()
        assert b.answer() == "0", server.log()
        assert b.do("take 65") == FULL, server.log()  # more than there ever is
        b.end()


def kernels_wait_when_the_time_of_a_device_is_used_up():
    with TwoDevices("auto", "--client-time", "0=1/8") as server:
        a, b, other = server.session(), server.session(), server.session(other=True)
        begin = time.monotonic()
        assert a.do("run 1500") == "0", server.log()  # or as long as it waits
        wait_for(lambda: re.search(r"has used its 1 s of device 0 \(.+\) in 8 s \(--client-time\): its kernels wait there", server.log()),
                 server.log)
        for session in (a, b):
            assert session.do("on 1") == "0" and session.do("run 1") == "0", server.log()
        assert other.do("run 1") == "0", server.log()
        for session in (b, a):
            assert session.do("on 0") == "0" and session.do("run 1") == "0", server.log()  # in the next window
        assert time.monotonic() - begin >= 4, server.log()
        says(a, "has used up its time on device 0 (")
        assert other.do("said") == "nothing"
        for session in (a, b, other):
            session.end()


def shares(s, name):
    """A client's use and limits, as the server tells them: by device, and by None of all together."""
    found = [c for c in top(BUILD, s.servers.address(0))["clients"] if c["client"] == name]
    return found[0], {d["number"]: d for d in found[0]["devices"]}


def use_and_limits_of_each_device_are_shown():
    who = f"user {os.getuid()}"
    with TwoDevices("auto", "--client-memory", "200,0=64", "--client-time", "1=1/3600", "--client-sessions", "8",
                    "--metrics", "localhost:0") as s:
        a, b = s.session(), s.session()
        assert (a.do("on 0"), a.do("take 40"), b.do("on 1"), b.do("take 30")) == ("0",) * 4, s.log()
        client, by = shares(s, who)
        assert (client["sessions"], client["sessions_max"]) == (2, 8) and set(by) == {None, 0, 1}, client
        assert (by[None]["memory_bytes"], by[None]["memory_max_bytes"]) == (70 << 20, 200 << 20), client
        assert (by[0]["memory_bytes"], by[0]["memory_max_bytes"], by[0]["time_max_ns"]) == (40 << 20, 64 << 20, None), client
        assert (by[1]["memory_bytes"], by[1]["memory_max_bytes"]) == (30 << 20, None), client
        assert (by[1]["time_max_ns"], by[1]["window_ns"], by[1]["paused"]) == (10**9, 3600 * 10**9, False), client
        assert 0 < by[1]["window_left_ns"] <= by[1]["window_ns"] and by[0]["name"] and by[None]["name"] is None, client
        where = scrape.address_in(s.log())
        value = lambda name, *labels: scrape.of(scrape.scrape(where), f"spancl_client_{name}", f'client="{who}"', *labels)
        zero, one = 'device="0"', 'device="1"'
        assert (value("sessions"), value("sessions_limit")) == (2, 8), s.log()
        assert (value("memory_bytes"), value("memory_limit_bytes")) == (70 << 20, 200 << 20), s.log()
        assert (value("device_memory_bytes", zero), value("device_memory_limit_bytes", zero)) == (40 << 20, 64 << 20), s.log()
        assert (value("device_time_limit_seconds", one), value("device_time_window_seconds", one)) == (1, 3600), s.log()

        b.ask("run 1500")  # or as long as it takes until it waits
        wait_for(lambda: shares(s, who)[1][1]["paused"], s.log)
        assert shares(s, who)[1][1]["time_ns"] >= 10**9
        wait_for(lambda: value("device_time_exceeded", one) == 1, s.log)  # the same text serves for a second
        assert value("device_time_seconds", one) >= 1, s.log()

        # A screen and a plain table show them, too.
        plain = subprocess.run([str(BUILD / "bin/spancl"), "top", "--once", "--server", s.servers.address(0)], text=True,
                               stdout=subprocess.PIPE, timeout=HANG_S, check=True).stdout
        assert re.search(rf"^  {who} +all devices 7[0-9].[0-9] MiB of 200.0 MiB$", plain, re.MULTILINE), plain
        assert re.search(rf"^  {who} +device 0    40.0 MiB of 64.0 MiB$", plain, re.MULTILINE), plain
        assert re.search(rf"^  {who} +device 1    [0-9.]+ s of 1 s in 1 h 0 min, WAITS$", plain, re.MULTILINE), plain
        a.end()
        wait_for(lambda: shares(s, who)[1][0]["memory_bytes"] == 0, s.log)
        b.kill()
        # Its time in the window stays, so the client is not forgotten.
        wait_for(lambda: shares(s, who)[0]["sessions"] == 0, s.log)
        assert shares(s, who)[1][1]["time_ns"] >= 10**9 and shares(s, who)[1][None]["memory_bytes"] == 0


def clients_have_limits_of_devices_of_their_own():
    with Place() as p, TwoDevices("auto", "--keys", str(p.server), "--client-memory", "500,0=64,1=500") as s:
        alice, bob = (Client(p, name, s.port) for name in ("alice", "bob"))
        works(clients(p, "limits", "alice", "memory=400,1=32", "time=0=600/3600,100"))
        assert works(clients(p, "limits", "alice")).stdout == "devices= memory=400,1=32 time=0=600/3600,100\n"
        row = row_of(p, "alice", "--client-memory", "500,0=64", "--client-sessions", "3")
        assert row["settings"] == {"memory": "400,1=32", "time": "0=600/3600,100"}, row
        told, one = row["limits"], {d["number"]: d for d in row["limits"]["devices"]}
        assert (told["sessions_max"], told["memory_max_bytes"], told["time_max_s"], told["window_s"]) == (3, 400 << 20, 100, 3600), row
        assert set(one) == {0, 1} and one[1]["memory_max_bytes"] == 32 << 20 and one[1]["time_max_s"] is None, row
        assert (one[0]["memory_max_bytes"], one[0]["time_max_s"], one[0]["window_s"]) == (None, 600, 3600), row
        one, two, three = (Session(s, who.where, who.client) for who in (alice, bob, alice))
        assert (two.do("take 70"), two.do("take 60"), two.do("on 1"), two.do("take 200")) == (FULL, "0", "0", "0"), s.log()
        assert (one.do("take 70"), one.do("on 1"), one.do("take 20"), one.do("take 20")) == ("0", "0", "0", FULL), s.log()
        says(one, "device 1 (")
        assert (three.do("take 200"), three.do("on 1"), three.do("take 20")) == ("0", "0", FULL), s.log()
        # A change holds for sessions that begin later, also of a client that has others.
        works(clients(p, "limits", "alice", "memory=0=300,7=1"))
        four = Session(s, alice.where, alice.client)
        assert (four.do("take 40"), four.do("on 1"), four.do("take 300"), one.do("take 20")) == (FULL, "0", "0", FULL), s.log()
        wait_for(lambda: "has a limit of device 7, which this server does not have" in s.log(), s.log)
        for session in (one, two, three, four):
            session.end()
        for wrong in ("", "x", "1=", "=1", "1=x", "1,2", "0=1,0=2", "0=1,00=2", "100000=1", "1=1=1", "1,", ",1", "-1=5", "0=1/5",
                      "1073741825", "99999999999999999999", ",".join(f"{i}=1" for i in range(33))):
            if wrong:
                fails(clients(p, "limits", "bob", f"memory={wrong}"), "is no limit")
            done = subprocess.run([str(BUILD / "bin/spancld"), "--client-memory", wrong], check=False, capture_output=True, text=True)
            assert done.returncode == 2 and "--client-memory" in done.stderr, (wrong, done.stderr)


def wrong_values_are_refused():
    for option, value in (("--when-full", "perhaps"), ("--client-time", "0=1/0"), ("--client-time", "0=1,0=2"),
                          ("--client-time", "0=1/2/3"), ("--client-time", "1,2"), ("--when-full", "wait:"), ("--when-full", "wait:99999"),
                          ("--client-time", "1/0"), ("--client-time", "x"), ("--client-time", "1/2/3"), ("--reserve", "0"),
                          ("--reserve", "0=alice"), ("--reserve", "x=token"), ("--reserve", "0=token,"),
                          ("--reserve", "0:1h=token"), ("--reserve", "0=user:")):
        done = subprocess.run([str(BUILD / "bin/spancld"), option, value], check=False, capture_output=True, text=True)
        assert done.returncode == 2 and option in done.stderr and value in done.stderr, (option, value, done.stderr)


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
