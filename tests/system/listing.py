#!/usr/bin/env python3
"""listing.py BUILD [NAME...]: claims about programs that list the devices of several servers and use some of them.
Each function is one claim."""

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
from contextlib import ExitStack, contextmanager
from pathlib import Path

import claims
from claims import wait_for
from security import BUILD, HANG_S, Place, works
from servers import Servers, children, kept_port
from told import Told

LISTER = str(BUILD / "bin/system_lister")
VENDORS = str(BUILD / "etc/vendors")
NOT_AVAILABLE = "-2"


def env_of(where, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    return {**env, "OCL_ICD_VENDORS": VENDORS, "SPANCL_SERVERS": where, "SPANCL_LOG": "warn",
            "SPANCL_CONNECT_TIMEOUT": str(HANG_S * 1000), **more}


class Lister(Told):
    """A program that lists devices (lister.c)."""

    def __init__(self, where, **more):
        super().__init__([LISTER], HANG_S, env=env_of(where, **more))
        self.count = int(self.line())

    def use(self, device):
        self.tell(str(device))
        return self.line()


@contextmanager
def several(count, *options, transports=("tcp",)):
    """Servers that are ready for a session each, and their addresses."""
    with ExitStack() as stack:
        all_ = [stack.enter_context(Servers(BUILD, 1, ("--backend", "reference", "--log", "info", *options),
                                            transport=transports[i % len(transports)], ports=[kept_port()]))
                for i in range(count)]
        for s in all_:
            wait_for(lambda s=s: "is ready, " in s.log_text(), s.log_text)
        yield all_, " ".join(s.address(0) for s in all_)


def sessions(s):
    return s.log_text().count("takes a new session")


def have_begun(all_, counts):
    """The server logs a session right after its worker has it."""
    wait_for(lambda: all(sessions(s) >= n for s, n in zip(all_, counts)), all_[0].log_text)
    return [sessions(s) for s in all_] == counts


def listings(s):
    return s.log_text().count("lists the devices")


def shown_sessions(where):
    """As spancl top shows them."""
    done = works(subprocess.run([str(BUILD / "bin/spancl"), "top", "--once", "--server", where], env=env_of(where),
                                text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False))
    return done.stdout.count("lister")


def list_by_clinfo(where):
    """A program that knows nothing of our sanitizers has to load their libraries first. Without -l it makes contexts."""
    needs = subprocess.run(["ldd", str(BUILD / "bin/spancld")], stdout=subprocess.PIPE, text=True, check=True)
    runtime = re.search(r"\S*/lib[at]san\S*", needs.stdout)
    more = {"LD_PRELOAD": runtime.group(), "ASAN_OPTIONS": "detect_leaks=0:use_sigaltstack=0"} if runtime else {}
    works(subprocess.run(["clinfo", "-l"], env=env_of(where, **more), text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, timeout=HANG_S, check=False))


def a_listing_begins_no_session_and_a_context_begins_one():
    with several(3, transports=("tcp", "unix", "shm")) as (all_, where):
        workers = [children(s.processes[0].pid) for s in all_]
        list_by_clinfo(where)
        assert [listings(s) for s in all_] == [1, 1, 1]
        with Lister(where) as program:
            assert program.count == 6
            assert [listings(s) for s in all_] == [2, 2, 2]
            assert have_begun(all_, [0, 0, 0])
            assert [children(s.processes[0].pid) for s in all_] == workers, "a worker was taken"
            assert [shown_sessions(s.address(0)) for s in all_] == [0, 0, 0]
            for device in (2, 3):  # of the second server
                assert program.use(device) == "ok"
                assert have_begun(all_, [0, 1, 0])
            assert [shown_sessions(s.address(0)) for s in all_] == [0, 1, 0]
            assert [program.use(d) for d in (0, 4)] == ["ok", "ok"]
            assert have_begun(all_, [1, 1, 1])
            program.leave()
        assert [listings(s) for s in all_] == [2, 2, 2]


class Cutter:
    """A server's address at which its first connections are cut behind so many bytes of what the server sends."""

    def __init__(self, port, *cuts):
        self.port, self.cuts = port, list(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        self.count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            self.count += 1
            ends = client, socket.create_connection(("127.0.0.1", self.port))
            cut = self.cuts.pop(0) if self.cuts else None
            for to_client in (False, True):
                threading.Thread(target=self._pass, args=(ends, to_client, cut), daemon=True).start()

    @staticmethod
    def _pass(ends, to_client, cut):
        source, target = reversed(ends) if to_client else ends
        left = cut if to_client and cut is not None else 1 << 62
        try:
            while data := source.recv(65536):
                target.sendall(data[:left])
                left -= len(data)
                if left <= 0:
                    break
        except OSError:
            pass
        for end in ends:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def a_client_that_is_cut_off_while_it_lists_tries_again():
    """Before the answer, within it, and between the descriptions."""
    with several(2) as ((s, other), _):
        for cut in (0, 10, 2000):
            for is_found in (False, True):
                before = sessions(s), sessions(other)
                with Cutter(s.ports[0], cut) as cutter:
                    more, where = {}, f"{cutter.address} {other.address(0)}"
                    if is_found:
                        s.ports[0], port = int(cutter.address.split(":")[1]), s.ports[0]
                        folder, more = found(s, other)
                        s.ports[0] = port
                        where = "in-process:reference"
                    with Lister(where, **more) as program:
                        assert program.count == (6 if is_found else 4), (cut, is_found, program.count)
                        assert cutter.count == 2, (cut, is_found, cutter.count)
                        assert (sessions(s), sessions(other)) == before
                        program.leave()
                    if is_found:
                        folder.cleanup()


def one_server_has_its_session_at_once():
    with several(1) as ((s,), where), Lister(where) as program:
        assert program.count == 2 and have_begun([s], [1]) and listings(s) == 0
        assert program.use(0) == "ok" and have_begun([s], [1])
        program.leave()


def found(*all_):
    """Where a program finds these servers."""
    folder = tempfile.TemporaryDirectory()
    records = [json.dumps({"name": f"server {i}", "addresses": ["127.0.0.1"], "port": s.ports[0]})
               for i, s in enumerate(all_)]
    Path(folder.name, "servers").write_text("\n".join(records) + "\n")
    return folder, {"SPANCL_DISCOVERY": f"file:{folder.name}/servers", "SPANCL_DISCOVERY_WAIT": "60000"}


def one_found_server_has_its_session_at_once_and_several_are_listed():
    with several(2) as (all_, _):
        for servers in (all_[:1], all_):
            folder, more = found(*servers)
            one = len(servers) == 1
            # A server inside the process, so that the program does not try the default.
            with folder, Lister("in-process:reference", **more) as program:
                assert program.count == 2 + 2 * len(servers)
                assert [listings(s) for s in all_] == ([0, 0] if one else [1, 1])
                assert have_begun(all_, [1, 0])
                if one:
                    assert program.use(2) == "ok" and have_begun(all_, [1, 0])
                program.leave()


def sessions_begin_at_once_if_they_never_end():
    with several(2) as (all_, where), Lister(where, SPANCL_IDLE="0") as program:
        assert program.count == 4 and have_begun(all_, [1, 1])
        program.leave()


def a_full_server_lists_its_devices():
    with several(2, "--sessions", "1") as ((full, other), where), Lister(full.address(0)) as first:
        assert first.use(0) == "ok"
        with Lister(where) as program:
            assert program.count == 4
            assert program.use(0) == NOT_AVAILABLE
            assert program.use(2) == "ok" and have_begun([other], [1])
            first.leave()
            wait_for(lambda: program.use(1) == "ok", full.log_text)
            assert have_begun([full], [2])
            program.leave()


def a_server_may_be_started_anew_between_listing_and_context():
    with several(2) as ((first, other), where), Lister(where) as program:
        port = first.ports[0]
        first.stop()
        assert program.use(0) == NOT_AVAILABLE
        with Servers(BUILD, 1, ("--backend", "reference", "--log", "info"), ports=[port]) as again:
            wait_for(lambda: program.use(1) == "ok", again.log_text)
            assert program.use(0) == "ok" and have_begun([again], [1])
            assert program.use(2) == "ok" and have_begun([other], [1])
            program.leave()


def a_client_lists_its_own_devices_and_a_stranger_none():
    with Place() as p, Place() as stranger, p.spancld("--log", "info") as s, \
            p.spancld("--log", "info") as t:
        where = " ".join(f"tls:localhost:{x.ports[0]}" for x in (s, t))
        for x in (s, t):
            p.pair(x.ports[0])
        with Lister(where, SPANCL_KEYS=str(p.client)) as program:
            assert program.count == 4
            program.leave()
        name = (p.server / "clients").read_text().split()[1]
        works(subprocess.run([str(BUILD / "bin/spancld"), "clients", "limits", name, "devices=1", "--keys",
                              str(p.server)], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             timeout=HANG_S, check=False))
        for _ in range(2):  # first a worker describes them; then they are known
            with Lister(where, SPANCL_KEYS=str(p.client)) as program:
                assert program.count == 2
                assert have_begun([s, t], [0, 0])
                program.leave()
        with Lister(where, SPANCL_KEYS=str(p.client)) as program:
            assert program.use(1) == "ok" and have_begun([s, t], [0, 1])
            program.leave()
        before = listings(s)
        with Lister(where, SPANCL_KEYS=str(stranger.client), SPANCL_LOG="error") as program:
            assert program.count == 0
            program.leave()
        assert listings(s) == before and sessions(s) == 0


def many_clients_with_devices_of_their_own_are_described_once_each():
    """More than sixteen, and one that has two devices by its filter. No later listing costs a worker."""
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder, str(i)) for i in range(20)]
        for place in places:
            works(subprocess.run([str(BUILD / "bin/spancl"), "keys", str(place)], text=True, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, timeout=HANG_S, check=False))
        clients = [(place / "server/clients").read_text().split()[0] for place in places]
        (places[0] / "server/clients").write_text("".join(
            f"{key} c{i} devices={'1' if i else '0,1'}\n" for i, key in enumerate(clients)))
        for place in places[1:]:
            (place / "client/servers").write_text((places[0] / "client/servers").read_text())
        with several(2, "--keys", str(places[0] / "server")) as ((s, t), _):
            where = " ".join(f"tls:localhost:{x.ports[0]}" for x in (s, t))

            def list_all():
                for i, place in enumerate(places):
                    with Lister(where, SPANCL_KEYS=str(place / "client")) as program:
                        assert program.count == (2 if i else 4), (i, program.count)
                        program.leave()

            list_all()
            ready = s.log_text().count("is ready, ")
            assert ready > len(places)
            list_all()
            assert s.log_text().count("is ready, ") == ready
            assert listings(s) == 2 * len(places) and sessions(s) == 0


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
