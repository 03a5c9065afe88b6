#!/usr/bin/env python3
"""clients.py BUILD [NAME...]: claims about `spancld clients`, over real processes. Each function is one claim."""

import fcntl
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import claims
from claims import wait_for
from security import BUILD, HANG_S, NOBODY, Place, fails, works
from servers import Servers, native_vendors

HEX = set("0123456789abcdef")
LIMIT = 1 << 20  # of the list, in bytes


def spancld(p, *words):
    return subprocess.run([str(BUILD / "bin/spancld"), "clients", *words, "--keys", str(p.server)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False)


def clients(p):
    return [json.loads(line) for line in works(spancld(p, "list", "--json")).stdout.splitlines()]


class Other(Place):
    """Another user of the same server."""

    def __init__(self, p, name):  # pylint: disable=super-init-not-called
        self.folder, self.server, self.client = p.folder, p.server, Path(p.folder.name) / name


@contextmanager
def session(p, port):
    """A program with a session; it ends with the block."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    env.update(SPANCL_KEYS=str(p.client), SPANCL_ON_LOSS="fail", SPANCL_CONNECT_TIMEOUT=str(HANG_S * 1000))
    with subprocess.Popen([str(BUILD / "bin/spancl"), "run", "--server", f"tls:localhost:{port}", "--",
                           str(BUILD / "bin/api_spancl_idle"), "wait"], env=env, text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout.readline(), program.stderr.read()
        try:
            yield program
        finally:
            program.kill()


def sessions(p, port):
    top = works(p.spancl("top", "--once", "--server", f"tls:localhost:{port}")).stdout
    return top.count("api_spancl_idle")


def clients_are_listed_renamed_limited_and_removed():
    with Place() as p, Servers(BUILD, 1, ("--keys", str(p.server), "--log", "info"),
                               vendors=native_vendors(p.folder.name)) as s:
        port = s.ports[0]
        assert "no clients" in works(spancld(p)).stderr
        p.pair(port)
        other = Other(p, "other")
        other.pair(port)
        first, second = clients(p)
        for c in (first, second):
            assert len(c["fingerprint"]) == 64 and set(c["fingerprint"]) <= HEX
            assert c["user"] and c["host"] and c["last_seen"] is None and c["settings"] == {}, c
        assert second["name"] == first["name"] + "-2", "two clients have one name"
        if os.geteuid() == 0:
            nobody = Other(p, "nobody")
            Path(p.folder.name).chmod(0o755)
            nobody.client.mkdir(0o700)
            os.chown(nobody.client, NOBODY, NOBODY)
            works(nobody.spancl("pair", f"localhost:{port}", p.code(),
                                prefix=("setpriv", f"--reuid={NOBODY}", "--clear-groups")))
            assert clients(p)[2]["user"] == "nobody" and clients(p)[2]["host"] == first["host"], clients(p)
            works(spancld(p, "remove", clients(p)[2]["fingerprint"]))

        works(p.ping(port))
        assert abs(clients(p)[0]["last_seen"] - time.time()) < HANG_S and clients(p)[1]["last_seen"] is None
        works(spancld(p, "rename", first["name"], "alice"))
        assert "s ago" in [line for line in works(spancld(p)).stdout.splitlines() if line.startswith("alice")][0]
        fails(spancld(p, "rename", "alice", second["name"]), "another client")
        fails(spancld(p, "rename", "alice", "a b"), "blanks")
        fails(spancld(p, "rename", "bob", "carol"), "no client bob")
        for wrong in ("device=0", "memory=lots", "sessions=-1", "time=1/0", "priority=highest"):
            fails(spancld(p, "limits", "alice", wrong), "no limit")
        works(spancld(p, "limits", "alice", "devices=no-such-device"))
        assert works(spancld(p, "limits", "alice")).stdout == "devices=no-such-device\n"
        p.pair(port)  # anew, with the same key: name and limits stay
        assert [c["name"] for c in clients(p)] == [second["name"], "alice"]
        fails(p.spancl("list", "--server", f"tls:localhost:{port}"), "none of its devices")
        works(spancld(p, "limits", first["fingerprint"][:8], "devices="))
        works(p.spancl("list", "--quick", "--server", f"tls:localhost:{port}"))
        works(p.ping(port, host="127.0.0.1"))  # the same key under another name

        # A removed client's sessions end; those of others go on, also under a new key.
        with session(p, port), session(other, port):
            works(other.spancl("pair", "--rotate"))
            works(other.ping(port))
            assert sessions(other, port) == 2
            works(spancld(p, "limits", "alice", "sessions=1", "memory=64", "time=10/60", "priority=low"))
            fails(p.spancl("list", "--server", f"tls:localhost:{port}"), "--client-sessions")
            works(other.spancl("list", "--server", f"tls:localhost:{port}"))
            works(spancld(p, "remove", "alice"))
            wait_for(lambda: sessions(other, port) == 1, "the session of a removed client goes on")
            fails(p.ping(port), "does not know this client")
            assert "its client was removed" in s.log_text()
            assert [c["name"] for c in clients(p)] == [second["name"]]
        works(p.spancl("unpair", f"localhost:{port}"))
        fails(p.ping(port), f"spancl pair localhost:{port}")


def keys_made_anew_are_no_new_clients():
    limit = ("--client-sessions", "1", "--log", "info")
    with Place() as p, Servers(BUILD, 1, ("--keys", str(p.server), *limit), vendors=native_vendors(p.folder.name)) as s:
        p.pair(s.ports[0])
        with session(p, s.ports[0]):
            works(p.spancl("pair", "--rotate"))
            lock = os.open(p.server, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)  # so the list can't be written
            fails(p.spancl("list", "--server", f"tls:localhost:{s.ports[0]}"), "--client-sessions")
            os.close(lock)
            assert "new key can't be kept" in s.log_text()
    with Place() as p, Servers(BUILD, 1, ("--keys", str(p.server), "--insecure", *limit),
                               vendors=native_vendors(p.folder.name)) as s:
        other = Other(p, "other")
        p.pair(s.ports[0])
        other.pair(s.ports[0])
        with session(p, s.ports[0]):
            fails(other.spancl("list", "--server", f"tls:localhost:{s.ports[0]}"), "--client-sessions")


def nothing_keeps_the_sessions_of_removed_clients():
    with Place() as p, Servers(BUILD, 1, ("--keys", str(p.server)), vendors=native_vendors(p.folder.name)) as s:
        def ended(count):
            (p.server / "other").write_text("")  # the folder never rests
            return s.log_text().count("its client was removed") == count

        p.pair(s.ports[0])
        path = p.server / "clients"
        mine = path.read_text()
        with session(p, s.ports[0]):
            path.unlink()
            wait_for(lambda: ended(1), "a session goes on without a list")
        path.write_text(mine)
        path.chmod(0o600)
        with session(p, s.ports[0]):
            path.chmod(0o666)
            path.write_text(mine)  # a list that others can write counts for nothing
            wait_for(lambda: "sessions of removed clients go on" in s.log_text(), s.log_text)
            assert ended(1)
            path.chmod(0o600)
            p.server.rename(p.server.with_name("moved"))
            wait_for(lambda: s.log_text().count("its client was removed") == 2, "a session goes on without a folder")


def no_program_and_no_flood_loses_clients():
    with Place() as p, p.spancld() as s:
        def temporary():
            return {f.name for f in p.server.iterdir() if f.name.startswith(".clients")}

        p.pair(s.ports[0])
        path = p.server / "clients"
        name = clients(p)[0]["name"]
        mine = path.read_text()
        path.write_text(mine + "".join(f"{i:064x} c{i} colour=\x1b[31m{i}\n" for i in range(1, 21)))
        path.chmod(0o600)
        # Programs that change the list at once, some of which are killed.
        running = [subprocess.Popen([str(BUILD / "bin/spancld"), "clients", "rename", f"{i:064x}", f"d{i}", "--keys",
                                     str(p.server)], stderr=subprocess.DEVNULL) for i in range(1, 21)]
        for program in running[::5]:
            program.kill()
        status = [program.wait(HANG_S) for program in running]
        left = clients(p)
        assert sorted(c["fingerprint"] for c in left)[:20] == [f"{i:064x}" for i in range(1, 21)], left
        for i, done in enumerate(status, 1):
            assert done or f"d{i}" in [c["name"] for c in left], f"the change of {i} is lost"
        assert {c["settings"].get("colour") for c in left} > {f"\x1b[31m{i}" for i in range(1, 21)}, left
        assert "\x1b" not in works(spancld(p)).stdout
        # A client with a setting that no server reads stays out.
        path.write_text(mine.rstrip("\n") + " memory-of=1\n")
        fails(p.ping(s.ports[0]), "does not know this client")
        assert "'memory-of='" in s.log_text()
        # A list that is full stays as it is, and valid.
        row = f"{1:064x} full\n"
        path.write_text(mine + row * ((LIMIT - len(mine)) // len(row)))
        full = path.read_text()
        other = Other(p, "other")
        before = temporary()  # of the programs that were killed
        fails(other.spancl("pair", f"localhost:{s.ports[0]}", p.code()), "can't write its list")
        assert path.read_text() == full and name in full
        works(p.ping(s.ports[0]))
        assert temporary() == before


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
