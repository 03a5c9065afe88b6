#!/usr/bin/env python3
"""attach.py BUILD [NAME...]: claims about `spancl trace --attach`, which records sessions that run already: what is in
the timeline, who may record whom, sessions that end meanwhile, and requests in great number."""

import collections
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers
from listing import Lister
from security import Place
from servers import kept_port
from timeline import Timeline
from told import Told
from top import top

FOLDER = tempfile.TemporaryDirectory()
os.chmod(FOLDER.name, 0o777)  # other users record, too
SPANCL, TICKER = str(BUILD / "bin/spancl"), str(BUILD / "bin/system_ticker")
LAUNCHES = 40
BAD_OBSERVER = str(BUILD / "bin/system_bad_observer")
NOBODY = 65534
OBSERVER = "spancl-observe"  # the name of a worker's thread


class Ticker(Told):
    """A program that launches kernels when it is told so (ticker.c)."""

    def __init__(self, where, **more):
        super().__init__([TICKER], daemon.HANG_S, env=daemon.client_env(where, **more))
        assert self.line() == "ready"

    def tick(self, words):
        self.tell(str(words))
        return int(self.line())


def observers(process):
    """How many threads of a session's process observe it."""
    found = 0
    for task in Path(f"/proc/{process}/task").iterdir():
        try:
            found += (task / "comm").read_text() == f"{OBSERVER}\n"
        except OSError:  # it has ended
            pass
    return found


class Recording:
    """`spancl trace --attach`, once it records `sessions` sessions."""

    def __init__(self, *words, sessions=1, file="attached.json", prefix=(), **more):
        self.path = Path(FOLDER.name) / file
        self.process = subprocess.Popen(
            [*prefix, SPANCL, "trace", "--attach", *words, "--output", str(self.path), "--json"], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=daemon.client_env(None, **more))
        self.said = []
        while sum(line.startswith("spancl: recording ") for line in self.said) < sessions:
            line = self.process.stderr.readline()
            assert line, "".join(self.said)
            self.said.append(line)

    def end(self):
        """Returns the valid timeline and its summary."""
        self.process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self):
        _, more = self.process.communicate(timeout=daemon.HANG_S)
        self.said += more.splitlines(keepends=True)
        assert self.process.returncode == 0, "".join(self.said)
        t = Timeline(self.path)
        t.validate()
        return t, json.loads(self.said[-1])


def attach(*words, prefix=(), file="none.json", **more):
    """A recording that may fail."""
    return subprocess.run([*prefix, SPANCL, "trace", "--attach", *words, "--output", f"{FOLDER.name}/{file}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=daemon.HANG_S, check=False,
                          env=daemon.client_env(None, **more))


def sessions(server):
    """The numbers of the processes that have a session of the ticker, the oldest first."""
    found = top(BUILD, server, daemon.client_env(None))["sessions"]
    return [s["worker"] for s in sorted(found, key=lambda s: -s["age_ns"]) if s["program"] == "system_ticker"]


@contextmanager
def public_socket():
    """A Unix socket for all users."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        with servers(1, "--socket", f"{folder}/socket", "--socket-users", "any", "--log", "info") as s:
            yield s, f"unix:{folder}/socket"


def kernels(t):
    return collections.Counter(t.process(e) for e in t.of("kernel", "tick"))


def a_running_session_is_recorded_by_its_server():
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        assert program.tick(3) == 3
        recording = Recording(at(s.ports[0]))
        assert program.tick(LAUNCHES) == 3 + LAUNCHES
        t, summary = recording.end()
        assert program.tick(2) == 5 + LAUNCHES, "it goes on"
        (process,) = sessions(at(s.ports[0]))
        program.leave()
    name = f"{at(s.ports[0])}: system_ticker ({process})"
    assert set(t.processes.values()) == {name, f"{name}: devices"}, t.processes
    assert kernels(t) == {f"{name}: devices": LAUNCHES}, kernels(t)
    # The queue was made before, so these are the server's times.
    assert all(e["args"]["times"] == "of the server" and e["args"]["global"] == "1" for e in t.of("kernel"))
    assert t.other["by_server"] == LAUNCHES + 1 == len(t.of("kernel")) + len(t.of("transfer")), t.other
    assert t.of("server", "message") and len(t.of("server", "submit")) == LAUNCHES + 1
    assert t.other["attached"] == 1 and t.other["missing"] == t.other["dropped"] == 0, t.other
    assert [c["server"] for c in t.other["clocks"]] == [name] and t.other["clocks"][0]["error_ns"] == 0, t.other
    assert summary["kernels"]["count"] == LAUNCHES, summary


def new_queues_have_the_times_of_the_device():
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        recording = Recording(at(s.ports[0]))
        assert program.tick(f"queue {LAUNCHES}") == LAUNCHES
        t, _ = recording.end()
        program.leave()
    assert len(t.of("kernel", "tick")) == LAUNCHES and t.other["by_server"] == 0, t.other
    submits = {e["args"]["event"]: e for e in t.of("server", "submit")}
    for e in t.of("kernel"):
        assert "times" not in e["args"] and submits[e["args"]["event"]]["ts"] <= e["ts"] + e["dur"], e


def only_the_time_of_the_recording_is_in_it():
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        for round_ in range(1, 4):
            recording = Recording(at(s.ports[0]))
            program.tick(f"queue {LAUNCHES}" if round_ == 2 else LAUNCHES)
            t, _ = recording.end()
            assert len(t.of("kernel", "tick")) == LAUNCHES, (round_, len(t.of("kernel")))
            program.tick(LAUNCHES)
        program.leave()


def two_sessions_stand_beside_each_other():
    with servers(2) as both, Ticker(at(both.ports[0])) as one, Ticker(at(both.ports[0])) as two, \
            Ticker(at(both.ports[1])) as three:
        first, second = at(both.ports[0]), at(both.ports[1])
        numbers = [*sessions(first), *sessions(second)]
        recording = Recording("--server", first, "--server", second, sessions=3)
        one.tick(LAUNCHES), two.tick(LAUNCHES + 1), three.tick(LAUNCHES + 2)
        t, _ = recording.end()
        wanted = {f"{where}: system_ticker ({number}): devices": LAUNCHES + i
                  for i, (where, number) in enumerate(zip((first, first, second), numbers))}
        assert kernels(t) == wanted, kernels(t)
        ids = collections.defaultdict(set)
        for e in t.events:
            if e["ph"] in "stf":
                ids[e["id"]].add(t.process(e).split(": devices")[0])
        assert all(len(processes) == 1 for processes in ids.values()), "arrows lead from one session to another"
        # One of them, by its number or its name.
        for words in ((str(numbers[1]), "--server", first), ("system_ticker", "--server", second)):
            recording = Recording(*words)
            t, _ = recording.end()
            assert t.other["attached"] == 1, t.other
        done = attach("1", "--server", first)
        assert done.returncode == 1 and "no session is 1" in done.stderr, done.stderr
        for program in one, two, three:
            program.leave()


def two_observers_see_the_same():
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        first = Recording(at(s.ports[0]), file="first.json")
        second = Recording(at(s.ports[0]), file="second.json")
        program.tick(LAUNCHES)
        (t, _), (u, _) = first.end(), second.end()
        assert len(t.of("kernel")) == len(u.of("kernel")) == LAUNCHES
        program.leave()


def a_session_that_ends_leaves_what_it_had():
    with servers(1) as s, Ticker(at(s.ports[0])) as short, Ticker(at(s.ports[0])) as long:
        number = sessions(at(s.ports[0]))[0]
        recording = Recording(at(s.ports[0]), sessions=2)
        short.tick(LAUNCHES)
        long.tick(LAUNCHES)
        short.leave()
        long.leave()
        t, _ = recording.wait()  # both have ended, and so does the recording
    assert list(kernels(t).values()) == [LAUNCHES, LAUNCHES], kernels(t)
    assert f"system_ticker ({number}) has ended meanwhile" in "".join(recording.said), recording.said


def a_session_that_crashes_is_said_to_be_lost():
    with servers(1) as s, Ticker(at(s.ports[0])) as program, Ticker(at(s.ports[0])) as other:
        number, _ = sessions(at(s.ports[0]))
        recording = Recording(at(s.ports[0]), sessions=2)
        other.tick(LAUNCHES)
        os.kill(number, signal.SIGKILL)
        claims.wait_for(lambda: len(sessions(at(s.ports[0]))) == 1, "its end")
        t, _ = recording.end()
        assert list(kernels(t).values()) == [LAUNCHES] and t.other["missing"] == 1, t.other
        assert f"({number}) is lost, with what it had recorded" in "".join(recording.said), recording.said
        program.process.kill()
        other.leave()


def a_time_limits_the_recording():
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        t, _ = Recording(at(s.ports[0]), "--for", "1s").wait()
        assert t.other["attached"] == 1
        for wrong in "0s", "x", "10y", "25h", "-1s", "":
            done = attach(at(s.ports[0]), f"--for={wrong}")
            assert done.returncode == 2 and "--for takes a duration" in done.stderr, (wrong, done.stderr)
        program.leave()
        claims.wait_for(lambda: not sessions(at(s.ports[0])), "its end")
        done = attach(at(s.ports[0]))
        assert done.returncode == 1 and "no session to record" in done.stderr, done.stderr
    done = attach(at(kept_port()))
    assert done.returncode == 1 and "refused" in done.stderr, done.stderr


def the_file_is_checked_before_the_recording():
    folder = Path(FOLDER.name)
    target, link = folder / "target", folder / "link.json"
    target.write_text("kept")
    link.symlink_to(target)
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        for file in "link.json", "no/such/folder.json":
            done = attach(at(s.ports[0]), "--for", "1s", file=file)
            assert done.returncode == 2 and "can't write" in done.stderr and "recording" not in done.stderr, done
        # The file that is written first must be no way around that.
        (folder / "attached.json.part").symlink_to(target)
        recording = Recording(at(s.ports[0]))
        assert recording.path.read_text() == "" and recording.path.stat().st_mode & 0o777 == 0o600, "it is there from the start"
        recording.process.send_signal(signal.SIGINT)
        _, said = recording.process.communicate(timeout=daemon.HANG_S)
        assert recording.process.returncode == 1 and "can't write" in said and not recording.path.exists(), said
        assert target.read_text() == "kept"
        (folder / "attached.json.part").unlink()
        # Neither an old file nor a new one looks like a recording that was not made.
        old = folder / "old.json"
        old.write_text("old")
        done = attach("1", "--server", at(s.ports[0]), file="old.json")
        assert done.returncode == 1 and "no session is 1" in done.stderr and not old.exists(), done
        Recording(f"--attach={at(s.ports[0])}", file="joined.json").end()
        assert (folder / "joined.json").stat().st_mode & 0o777 == 0o600
        program.leave()


def wrong_words_are_refused():
    for words in (("--ring", "4"), ("--svg", "x"), ("x", "--", "true")):
        done = attach(*words)
        assert done.returncode == 2 and "Usage: spancl trace" in done.stderr, done.stderr
    done = subprocess.run([SPANCL, "trace", "--for", "1s", "true"], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2, done.stderr


# --- Who may --------------------------------------------------------------------------------------

def others_may_not_observe():
    if os.geteuid():
        return "skipped: it takes two users"
    with public_socket() as (s, where), Ticker(at(s.ports[0])) as program:
        prefix = ("setpriv", f"--reuid={NOBODY}", "--clear-groups")
        for there in where, at(s.ports[0]):
            done = attach(there, prefix=prefix)
            assert done.returncode == 1 and "may observe the sessions of others" in done.stderr, done.stderr
        assert observers(sessions(where)[0]) == 0, "nobody observes it"
        assert program.tick(LAUNCHES) == LAUNCHES
        assert "observe worker" not in s.log_text()
        program.leave()
    return None


def a_user_observes_its_own_sessions_only():
    if os.geteuid():
        return "skipped: it takes two users"
    with public_socket() as (s, where), Ticker(where) as mine:
        prefix = ("setpriv", f"--reuid={NOBODY}", "--clear-groups")
        theirs = subprocess.Popen([*prefix, TICKER], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=daemon.client_env(where))
        assert theirs.stdout.readline() == "ready\n"
        number = sessions(where)[1]
        recording = Recording(where, prefix=prefix, file="theirs.json")
        mine.tick(LAUNCHES)
        theirs.stdin.write(f"{LAUNCHES}\n")
        theirs.stdin.flush()
        assert theirs.stdout.readline() == f"{LAUNCHES}\n"
        t, _ = recording.end()
        assert {name.split("(")[1].split(")")[0] for name in t.processes.values()} == {str(number)}, t.processes
        assert sum(kernels(t).values()) == LAUNCHES and t.other["missing"] == 1, t.other
        theirs.communicate()
        mine.leave()
    return None


def replace_clients(p, lines):
    """At once: a list that is cut short for a while ends sessions."""
    path = p.server / "clients.new"
    path.write_text("\n".join(lines) + "\n")
    path.chmod(0o600)
    path.replace(p.server / "clients")


def keys_decide_for_other_users():
    """Over TLS, as for other hosts. The server's user would be known on its host without a key."""
    if os.geteuid():
        return "skipped: it takes two users"
    prefix = ("setpriv", f"--reuid={NOBODY}", "--clear-groups")
    with Place() as p, p.spancld("--log", "info") as s:
        os.chmod(p.folder.name, 0o755)
        where = f"tls:localhost:{s.ports[0]}"

        def paired(name):
            """Two folders with the same keys: for the server's user, and for the other one."""
            p.client = Path(p.folder.name) / name
            p.pair(s.ports[0])
            theirs = Path(p.folder.name) / f"{name}-theirs"
            shutil.copytree(p.client, theirs)
            for path in theirs, *theirs.iterdir():
                os.chown(path, NOBODY, NOBODY)
            return {"SPANCL_KEYS": str(p.client)}, {"SPANCL_KEYS": str(theirs)}

        keys, same = paired("first")
        _, other = paired("second")
        with Lister(where, **keys) as program:  # it needs no compiler
            assert program.use(0) == "ok"
            number, = (session["worker"] for session in top(BUILD, where, daemon.client_env(None, **keys))["sessions"])
            words = str(number), "--server", where
            done = attach(*words, prefix=prefix, **other)
            assert done.returncode == 1 and "may observe the sessions of others" in done.stderr, done.stderr
            Recording(*words, prefix=prefix, file="same.json", **same).end()
            listed = (p.server / "clients").read_text().splitlines()
            replace_clients(p, [*listed[:-1], listed[-1] + " own"])
            Recording(*words, prefix=prefix, file="own.json", **other).end()

            # A key that is removed records no longer; that of another client does.
            mine = Recording(*words, prefix=prefix, file="same.json", **same)
            for _ in range(10):  # more than the supervisor remembers
                Recording(*words, prefix=prefix, file="again.json", **same).end()
            removed = Recording(*words, prefix=prefix, file="removed.json", **other)
            replace_clients(p, listed[:-1])
            _, said = removed.process.communicate(timeout=daemon.HANG_S)
            assert removed.process.returncode == 1 and "is lost, with what it had recorded" in said, said
            assert "drops observers: their key was removed" in s.log_text()
            mine.end()
            program.leave()
    return None


def a_client_with_a_new_key_observes_the_session_of_its_old_one():
    if os.geteuid():
        return "skipped: it takes two users"
    prefix = ("setpriv", f"--reuid={NOBODY}", "--clear-groups")
    os.chmod(FOLDER.name, 0o777)
    with Place() as p, p.spancld("--log", "info") as s:
        os.chmod(p.folder.name, 0o755)
        where = f"tls:localhost:{s.ports[0]}"
        theirs = Path(p.folder.name) / "theirs"
        p.pair(s.ports[0])

        def keys_of_other_user():
            """The keys as they are now, for a user that may observe nothing but by its key."""
            shutil.rmtree(theirs, ignore_errors=True)
            shutil.copytree(p.client, theirs)
            for path in theirs, *theirs.iterdir():
                os.chown(path, NOBODY, NOBODY)
            return {"SPANCL_KEYS": str(theirs)}

        with Lister(where, SPANCL_KEYS=str(p.client)) as program:
            assert program.use(0) == "ok"
            env = daemon.client_env(None, SPANCL_KEYS=str(p.client))
            number, = (session["worker"] for session in top(BUILD, where, env)["sessions"])
            words = str(number), "--server", where
            before = Recording(*words, prefix=prefix, file="before.json", **keys_of_other_user())
            assert p.spancl("pair", "--rotate").returncode == 0
            assert p.ping(s.ports[0]).returncode == 0
            # The new key is in the list now, and the old one is not.
            Recording(*words, prefix=prefix, file="after.json", **keys_of_other_user()).end()
            before.end()
            assert "drops observers" not in s.log_text(), s.log_text()
            program.leave()
    return None


# --- Too much -------------------------------------------------------------------------------------

def requests_in_great_number_disturb_nobody():
    with servers(1, "--log", "warn") as s, Ticker(at(s.ports[0])) as program:
        number = sessions(at(s.ports[0]))[0]
        some = [Recording(at(s.ports[0]), file=f"{i}.json") for i in range(4)]
        assert program.tick(LAUNCHES) == LAUNCHES
        for _ in range(20):
            done = attach(str(number), "--server", at(s.ports[0]))
            assert done.returncode == 1 and "as many as may do so" in done.stderr, done.stderr
        assert observers(number) == len(some)
        assert program.tick(LAUNCHES) == 2 * LAUNCHES
        for recording in some:
            t, _ = recording.end()
            assert len(t.of("kernel", "tick")) == 2 * LAUNCHES
        claims.wait_for(lambda: observers(number) == 0, "observers stay")
        Recording(at(s.ports[0])).end()
        program.leave()


def an_observer_that_goes_away_is_forgotten():
    with servers(1) as s, Ticker(at(s.ports[0])) as program:
        number = sessions(at(s.ports[0]))[0]
        for _ in range(3):
            recording = Recording(at(s.ports[0]))
            assert observers(number) > 0
            recording.process.kill()
            recording.process.communicate()
        claims.wait_for(lambda: observers(number) == 0, "observers stay")
        assert program.tick(LAUNCHES) == LAUNCHES
        program.leave()


class BadObserver(Told):
    """An observer that keeps its connection and does no more (bad_observer.c)."""

    def __init__(self, server, number, way):
        super().__init__([BAD_OBSERVER, server, str(number), way], daemon.HANG_S,
                         env=daemon.client_env(None))
        self.said = self.line()


def threads(number):
    return len(os.listdir(f"/proc/{number}/task"))


def resident_kib(number):
    (line,) = [line for line in Path(f"/proc/{number}/status").read_text().splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1])


def hostile_observers_are_dropped_and_the_session_goes_on():
    if not os.path.exists(BAD_OBSERVER):
        return "skipped: no cmocka"
    with public_socket() as (s, where), Ticker(where) as program:
        number, count = sessions(where)[0], 0
        before = threads(number)
        for way in ("query first", "query twice", "foreign", "inline data", "bulk frame", "garbage", "flood"):
            for _ in range(5):  # more than there are places
                done = subprocess.run([BAD_OBSERVER, where, str(number), way], text=True,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=daemon.HANG_S,
                                      check=False, env=daemon.client_env(None))
                assert done.stdout == "ended\n" and done.returncode == 0, (way, done)
                claims.wait_for(lambda: threads(number) == before, f"{way}: its place stays taken")
                count += LAUNCHES
                assert program.tick(LAUNCHES) == count, way
        t, _ = Recording(where).end()
        assert t.other["attached"] == 1
        program.leave()
    return None


def an_observer_that_reads_nothing_takes_bounded_memory():
    if not os.path.exists(BAD_OBSERVER) or BUILD.name in ("asan", "tsan"):
        return "skipped: no cmocka, or a sanitizer's own memory is most of it"
    with public_socket() as (s, where), Ticker(where) as program:
        number = sessions(where)[0]
        Recording(where).end()  # the rings of records are there from now on
        before = resident_kib(number)
        for _ in range(20):
            subprocess.run([BAD_OBSERVER, where, str(number), "flood"], stdout=subprocess.PIPE,
                           timeout=daemon.HANG_S, check=True, env=daemon.client_env(None))
        assert program.tick(LAUNCHES) == LAUNCHES
        # The window is 4 MiB. 20 floods have asked for 20 times as much.
        assert resident_kib(number) - before < 20 << 10, (before, resident_kib(number))
        program.leave()
    return None


def a_deaf_observer_delays_the_end_by_its_bound_only():
    """More records than the socket's buffers hold wait for an observer that reads nothing."""
    if not os.path.exists(BAD_OBSERVER):
        return "skipped: no cmocka"
    with public_socket() as (s, where), Ticker(where) as program:
        number = sessions(where)[0]
        with BadObserver(where, number, "deaf"):
            program.tick(3000)
            program.leave()
            claims.wait_for(lambda: not os.path.exists(f"/proc/{number}"), "the worker stays")
        assert "an observer does not take its records in time" in s.log_text(), s.log_text()
        with Ticker(where) as other:
            assert other.tick(LAUNCHES) == LAUNCHES
            other.leave()
    return None


def silent_observers_take_places_only():
    if not os.path.exists(BAD_OBSERVER):
        return "skipped: no cmocka"
    with public_socket() as (s, where), Ticker(where) as program:
        number = sessions(where)[0]
        before = threads(number)
        with BadObserver(where, number, "silent"), BadObserver(where, number, "deaf"):
            halves = [socket.create_connection(("127.0.0.1", s.ports[0])) for _ in range(8)]
            for i, half in enumerate(halves):
                half.sendall((b"SPANCL\r\n" + (64).to_bytes(4, "little") + b"\x01" + bytes(30))[:8 + 4 * i])
            assert program.tick(LAUNCHES) == LAUNCHES
            Recording(where).end()
            for half in halves:
                half.close()
        claims.wait_for(lambda: threads(number) == before, "their places stay taken")
        assert program.tick(LAUNCHES) == 2 * LAUNCHES
        program.leave()
    return None


def observers_that_stay_do_not_hold_up_the_end():
    """One has its records, one does not read them, one never asked for any."""
    if not os.path.exists(BAD_OBSERVER):
        return "skipped: no cmocka"
    with public_socket() as (s, where), Ticker(where) as program:
        number = sessions(where)[0]
        with BadObserver(where, number, "stays") as one, BadObserver(where, number, "deaf"), \
                BadObserver(where, number, "silent"):
            assert one.said == "answered"
            program.tick(LAUNCHES)
            program.leave()
            claims.wait_for(lambda: not os.path.exists(f"/proc/{number}"), "the worker stays")
        # The records lie in the sockets' buffers, so no farewell took its whole time.
        assert s.log_text().count("an observer has the session recorded") == 3, s.log_text()
        assert "does not take its records in time" not in s.log_text(), s.log_text()
    return None


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
