#!/usr/bin/env python3
"""survive.py BUILD [NAME...]: claims about sessions that outlive their connections, and clients that
outlive their servers; on real processes. Each function is one claim."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import claims
from daemon import BUILD, HANG_S, VENDORS, Relay, at, children, client_env, servers, session_worker, wait_for
from servers import kept_port
from told import Told

ACTOR = str(BUILD / "bin/system_actor")


class Actor(Told):
    """A client that does what it is told (actor.c)."""

    def __init__(self, where, *options, prefix=(), stderr=None, **more):
        super().__init__([*prefix, ACTOR, *options], HANG_S, env=client_env(where, **{"SPANCL_ON_LOSS": "fail", **more}),
                         stderr=stderr)

    def answer(self):
        said = self.line()
        assert said.startswith("ok"), said
        return said[2:].strip()

    def do(self, words):
        self.tell(words)
        return self.answer()

    def leave(self):
        self.tell("leave")
        super().leave()


def kept(count=1, *options):
    """Servers whose ports are free when the servers end."""
    return servers(count, *options, ports=[kept_port() for _ in range(count)])


def anew(s, *options):
    """Another server at the address of one that has ended."""
    return servers(1, *options, ports=s.ports[:1])


# --- Servers that are started anew ----------------------------------------------------------------

def restarted_server_serves_new_contexts(ending=signal.SIGKILL, *options):
    client_options = ("builtin",) if options else ()
    with kept(1, *options) as s, Actor(at(s.ports[0]), *client_options) as client:
        here = client.do("devices")
        client.do("begin")
        client.do("compute")
        client.do("enqueue")
        s.processes[0].send_signal(ending)
        s.processes[0].wait()
        client.do("until " + "0" * len(here))
        with anew(s, *options):
            client.do("until " + here)
            assert int(client.do("notices")) >= 1
            client.do("settled")
            client.do("refused")  # what is of the old session stays with it
            client.do("end")
            client.do("begin")
            client.do("compute")
            client.do("end")
            client.leave()


def server_that_ends_in_order_and_comes_back_serves_new_contexts():
    restarted_server_serves_new_contexts(signal.SIGTERM)


def restarted_server_serves_again_and_again():
    with kept(1, "--backend", "reference") as s, Actor(at(s.ports[0]), "builtin") as client:
        running = s
        for _ in range(70):  # more than a client has numbers for servers
            client.do("until 11")
            client.do("begin")
            client.do("compute")
            running.processes[0].kill()
            running.processes[0].wait()
            client.do("until 00")
            client.do("end")
            running = anew(s, "--backend", "reference")
        client.do("until 11")
        client.leave()
        running.stop()


def sigterm_is_told_to_a_new_session_that_is_busy():
    program = BUILD / "bin/outage"
    if not program.exists():
        return "the examples are not built"
    with kept() as s, tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile("w+") as said:
        frames = subprocess.Popen([str(program), "--frames", "0", "--size", "64x48"], text=True,
                                  env=client_env(f"{at(s.ports[0])} in-process",
                                                 OCL_ICD_VENDORS=beside_native(folder)),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said)

        def until(quality):
            least = 20
            while least:
                least -= frames.stdout.readline().split()[2] == quality

        until("full")
        for _ in range(10):
            s.processes[0].send_signal(signal.SIGTERM)
            s.processes[0].wait()
            until("lower")
            s.processes = anew(s).processes
            until("full")
        frames.stdin.close()
        frames.stdout.read()
        assert frames.wait(HANG_S) == 0
        said.seek(0)
        log = said.read()
        assert log.count("the server is being shut down") == 10 and "tries to reconnect" not in log, log
    return None


def device_that_is_gone_stays_unavailable():
    with kept(1, "--backend", "reference") as s, Actor(at(s.ports[0]), "builtin") as client:
        client.do("begin")
        client.do("compute")
        for filter_, devices in (("1", "01"), ("0", "10"), ("0,1", "11")):
            s.processes[0].kill()
            s.processes[0].wait()
            client.do("until 00")
            other = anew(s, "--backend", "reference", "--devices", filter_)
            s.processes = other.processes
            client.do("until " + devices)
            client.do("refused")
            client.do("end")
            client.do("begin")
            client.do("compute")
        client.leave()


def one_of_two_servers_comes_back():
    with kept(2) as s, Actor(f"{at(s.ports[0])} {at(s.ports[1])}") as client:
        client.do("begin")
        client.do("compute")
        s.processes[0].kill()
        s.processes[0].wait()
        client.do("until 01")
        with anew(s):
            client.do("until 11")
            client.do("end")
            client.do("begin")
            client.do("compute")
            client.leave()


# --- The application is told ----------------------------------------------------------------------

def idle_application_is_told_that_devices_go_and_come():
    # In the end it watches nothing, but it polls, so it keeps its session.
    with kept(1, "--backend", "reference") as s, Actor(at(s.ports[0]), "builtin", SPANCL_IDLE="3000") as client:
        client.do("watch")
        s.processes[0].kill()
        s.processes[0].wait()
        assert client.do("told 2") == "2"  # it has two devices, and did nothing itself
        assert client.do("devices") == "00"
        with anew(s, "--backend", "reference"):
            assert client.do("told 4") == "4"
            assert client.do("devices") == "11"
            client.do("unwatch")
        client.do("until 00")
        assert client.do("told 4") == "4"
        client.leave()


def outage_that_is_over_is_told_all_the_same():
    with servers(2) as s:
        relay = Relay(s.ports[0])
        with Actor(f"{at(relay.port)} {at(s.ports[1])}") as client:
            client.do("begin")
            client.do("watch")
            relay.hold(True)
            client.do("told 1")
            client.do("hold")
            relay.hold(False)
            client.do("told 2")  # and the call does not return: nothing more is told
            relay.hold(True)
            client.do("reads 01")
            relay.hold(False)
            client.do("reads 11")
            client.do("go")
            assert client.do("told 4") == "4"
            client.do("end")
            client.leave()
        relay.close()


def idle_application_is_told_that_a_link_is_cut_and_made_again():
    with servers() as s:
        relay = Relay(s.ports[0])
        with Actor(at(relay.port)) as client:
            client.do("begin")
            client.do("watch")
            client.do("compute")
            for round_ in range(1, 4):
                relay.cut()
                client.do(f"told {2 * round_}")
            assert int(client.do("notices")) >= 6
            client.do("compute")  # of the same session
            client.do("end")
            client.leave()
        relay.close()


# --- A server that drains -------------------------------------------------------------------------

def drain(where, prefix=()):
    return subprocess.run([*prefix, str(BUILD / "bin/spancl"), "drain", where], env=client_env(None), text=True,
                          capture_output=True, timeout=HANG_S)


def server_that_drains_keeps_its_session_and_refuses_others():
    with servers(1, "--backend", "reference", "--log", "info") as s:
        relay = Relay(s.ports[0])
        # The client may not know yet that it is connected again when the server does.
        with Actor(at(relay.port), "builtin", SPANCL_ON_LOSS="wait") as client:
            here = client.do("devices")
            away = "0" * len(here)
            client.do("begin")
            client.do("watch")
            client.do("compute")
            done = drain(at(s.ports[0]))
            assert done.returncode == 0 and "no new sessions" in done.stdout, done
            client.do("until " + away)  # for new contexts
            client.do(f"told {len(here)}")
            client.do("compute")
            s.processes[0].send_signal(signal.SIGUSR1)  # it drains already
            assert drain(at(s.ports[0])).returncode == 0
            other = subprocess.run([str(BUILD / "bin/spancl"), "list"], env=client_env(at(s.ports[0])), text=True,
                                   capture_output=True, timeout=HANG_S)
            assert other.returncode and "this server drains" in other.stderr + other.stdout, other
            top = subprocess.run([str(BUILD / "bin/spancl"), "top", "--once"], env=client_env(at(s.ports[0])),
                                 text=True, capture_output=True, timeout=HANG_S)
            assert "1 of" in top.stdout and "it drains" in top.stdout, top
            relay.cut()
            wait_for(lambda: s.log_text().count("attached lane 0") == 2, "the client does not come back")
            client.do("compute")  # of the same session
            assert client.do("devices") == away and client.do("told 0") == str(len(here))
            assert s.processes[0].poll() is None
            client.do("end")
            # Nothing uses the session any more: the client ends it, and finds what follows.
            assert s.processes[0].wait(HANG_S) == 0
            with servers(1, "--backend", "reference") as after:
                relay.target = after.ports[0]
                client.do("until " + here)
                client.do("begin")
                client.do("compute")
                client.do("end")
                client.leave()
        log = s.log_text()
        assert log.count("spancld drains") == 1 and "spancld is drained" in log, log
        relay.close()


def server_that_drains_is_left_by_a_client_without_contexts():
    with kept(1, "--backend", "reference") as s, Actor(at(s.ports[0]), "builtin") as client:
        here = client.do("devices")
        assert drain(at(s.ports[0])).returncode == 0
        assert s.processes[0].wait(HANG_S) == 0
        with anew(s, "--backend", "reference"):
            client.do("until " + here)
            client.leave()


def only_the_user_of_a_server_drains_it():
    if os.geteuid():
        return "skipped: it takes two users"
    path = Path(tempfile.mkdtemp())
    path.chmod(0o755)
    options = ("--backend", "reference", "--socket", f"{path}/socket", "--socket-users", "any")
    with servers(1, *options) as s:
        prefix = ("setpriv", "--reuid=65534", "--clear-groups")
        for where in (f"unix:{path}/socket", at(s.ports[0])):
            other = drain(where, prefix)
            assert other.returncode == 1 and "takes no new" not in other.stdout, other
        assert "may drain it" in drain(f"unix:{path}/socket", prefix).stderr
        with Actor(at(s.ports[0]), "builtin") as client:
            client.do("begin")
            client.do("compute")
            client.leave()
        assert drain(f"unix:{path}/socket").returncode == 0
        assert s.processes[0].wait(HANG_S) == 0
    path.rmdir()
    return None


def server_without_sessions_that_drains_ends():
    with servers(1, "--backend", "reference") as s:
        s.processes[0].send_signal(signal.SIGUSR1)
        assert s.processes[0].wait(HANG_S) == 0


def server_that_drains_obeys_sigterm():
    with servers(1, "--backend", "reference") as s, Actor(at(s.ports[0]), "builtin") as client:
        client.do("begin")
        client.do("compute")
        s.processes[0].send_signal(signal.SIGUSR1)
        wait_for(lambda: "spancld drains" in s.log_text(), "spancld does not say that it drains")
        s.processes[0].send_signal(signal.SIGTERM)
        assert s.processes[0].wait(HANG_S) == 0


def sigterm_with_grace_waits_for_the_last_session():
    with servers(1, "--backend", "reference", "--grace", "3600", "--log", "info") as s, \
            Actor(at(s.ports[0]), "builtin") as client:
        client.do("begin")
        client.do("compute")
        s.processes[0].send_signal(signal.SIGTERM)
        wait_for(lambda: "spancld drains" in s.log_text(), "spancld does not say that it drains")
        other = subprocess.run([str(BUILD / "bin/spancl"), "list"], env=client_env(at(s.ports[0])), text=True,
                               capture_output=True, timeout=HANG_S, check=False)
        assert other.returncode and "this server drains" in other.stderr + other.stdout, other
        client.do("compute")
        assert s.processes[0].poll() is None
        client.do("end")
        assert s.processes[0].wait(HANG_S) == 0 and "spancld is drained" in s.log_text()
        client.leave()


def grace_ends_in_time_and_with_a_second_sigterm():
    for seconds, times, last in ("1", 1, "the time of --grace is over"), ("3600", 2, "spancld drains"):
        with servers(1, "--backend", "reference", "--grace", seconds) as s, Actor(at(s.ports[0]), "builtin") as client:
            client.do("begin")
            client.do("compute")
            for _ in range(times):
                s.processes[0].send_signal(signal.SIGTERM)
                wait_for(lambda: "spancld drains" in s.log_text(), "spancld does not say that it drains")
            assert s.processes[0].wait(HANG_S) == 0 and last in s.log_text(), s.log_text()


# --- While a server is disconnected -----------------------------------------------------------------------

def calls_that_need_a_server_that_is_disconnected_fail_and_nothing_hangs():
    for options, server in (((), ()), (("builtin",), ("--backend", "reference"))):
        with servers(1, *server) as s:
            relay = Relay(s.ports[0])
            with Actor(at(relay.port), *options) as client:
                here = client.do("devices")
                client.do("begin")
                client.do("compute")
                for _ in range(2):
                    client.do("enqueue")
                    relay.hold(True)
                    client.do("until " + "0" * len(here))
                    client.do("refused")
                    relay.hold(False)
                    client.do("until " + here)
                    assert client.do("settled") == "0"  # what was in flight has gone on
                    client.do("compute")
                client.do("end")
                client.leave()
            relay.close()


def session_that_is_not_resumed_in_time_ends_on_both_sides():
    for loss in ("fail", "wait"):
        with servers(1, "--linger", "1") as s:
            relay = Relay(s.ports[0])
            with Actor(at(relay.port), SPANCL_ON_LOSS=loss, SPANCL_RECONNECT="1") as client:
                client.do("begin")
                client.do("compute")
                worker = session_worker(s, set())
                client.do("enqueue")
                relay.hold(True)
                if loss == "fail":
                    client.do("until 0")
                    client.do("refused")
                client.do("settled")  # when the session is over
                wait_for(lambda: worker not in children(s.processes[0].pid), "the worker goes on")
                client.do("refused")
                relay.hold(False)
                client.do("until 1")
                client.do("refused")
                client.do("end")
                client.do("begin")
                client.do("compute")
                client.leave()
            relay.close()


# --- Clients that end -----------------------------------------------------------------------------

def killed_client_is_freed_at_once_unless_it_may_come_back():
    for transport in ("tcp", "shm"):
        with servers(1, "--linger", "86400", "--log", "info", transport=transport) as s, Actor(s.address(0)) as client:
            client.do("begin")
            client.do("compute")
            worker = session_worker(s, set())
            client.process.kill()
            wait_for(lambda: worker not in children(s.processes[0].pid), "the worker goes on")
            said = s.log_text()
            assert "process has ended" in said and "waiting 86400 s" not in said, said
    for options in ((), ("--linger-ended", "86400")):  # a proxy closes connections for other reasons, too
        with servers(1, "--linger", "2", *options) as s:
            relay = Relay(s.ports[0])
            with Actor(at(s.ports[0]) if options else at(relay.port)) as client:
                client.do("begin")
                client.do("compute")
                worker = session_worker(s, set())
                begin = time.monotonic()
                client.process.kill()
                wait_for(lambda: worker not in children(s.processes[0].pid), "the worker goes on")
                assert time.monotonic() - begin > 1.9
            relay.close()


def client_that_ends_is_freed_at_once():
    with servers(1, "--linger", "86400") as s, Actor(at(s.ports[0])) as client:
        client.do("begin")
        client.do("compute")
        worker = session_worker(s, set())
        client.leave()  # without releasing anything
        wait_for(lambda: worker not in children(s.processes[0].pid), "the worker goes on")


def program_that_has_its_results_is_not_warned():
    for ending in ("end", "refused"):
        with servers() as s:
            with Actor(at(s.ports[0]), stderr=subprocess.PIPE) as client:
                client.do("begin")
                client.do("compute")
                s.processes[0].kill()
                s.processes[0].wait()
                client.do("until 0")
                client.do(ending)
                client.leave()
                said = client.process.stderr.read()
                assert ("localhost" in said) == (ending == "refused"), said


# --- Going on without a server (docs/FALLBACK.md) --------------------------------------------------

def beside_native(folder):
    """SpanCL's ICD file beside the native ones, as on a real system: for in-process devices."""
    for icd in [*Path(VENDORS).glob("*.icd"), BUILD / "etc/vendors/spancl.icd"]:
        os.symlink(icd.resolve(), f"{folder}/{icd.name}")
    return folder


def no_frame_is_lost_in_outages():
    program = BUILD / "bin/outage"
    if not program.exists():
        return "the examples are not built"
    with kept() as s, tempfile.TemporaryDirectory() as folder:
        relay = Relay(s.ports[0])
        frames = subprocess.Popen([str(program), "--frames", "0", "--size", "64x48"], text=True,
                                  env=client_env(f"{at(relay.port)} in-process",
                                                 OCL_ICD_VENDORS=beside_native(folder)),
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        number, counts = 0, {"full": 0, "lower": 0}

        def until(quality, least=5):
            """Frames, none left out, until so many were of that quality."""
            nonlocal number
            while least:
                line = frames.stdout.readline()
                assert line.startswith(f"frame {number}: "), f"frame {number}: {line!r}"
                number += 1
                got = line.split()[2]
                counts[got] += 1
                least -= got == quality

        until("full")
        for _ in range(5):  # the connection alone: the session goes on
            relay.hold(True)
            until("lower")
            relay.hold(False)
            until("full")
        for _ in range(5):  # cut at any moment, and at once made again
            relay.cut()
            until("full", 3)
        for _ in range(3):  # the server itself
            s.processes[0].kill()
            s.processes[0].wait()
            until("lower")
            s.processes = anew(s).processes
            until("full")
        frames.stdin.close()
        rest = frames.stdout.read()
        assert frames.wait(HANG_S) == 0
        relay.close()
        assert f"{number + rest.count('frame ')} frames" in rest, rest
        return f"{counts['full']} frames of full quality, {counts['lower']} of lower"


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
