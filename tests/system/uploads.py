#!/usr/bin/env python3
"""uploads.py BUILD [NAME...]: claims about the upload cache, over real processes. A server keeps the data that a client has
sent, and the client does not send it again. A relay between them counts the bytes."""

import subprocess
import sys
import threading
from pathlib import Path

import claims
from security import BUILD, HANG_S, Place, works
from relay import Forwarder, shut_down

PROGRAM = str(BUILD / "bin/system_uploader")
MIB = 1 << 20


class Counter(Forwarder):
    """Forwards connections and counts the bytes to the server. Cuts all connections once, at byte `cut` of these."""

    def __init__(self, port):
        self.sent, self.cut, self.cuts, self.open = 0, None, 0, []
        self.lock = threading.Lock()
        super().__init__(port)

    def _forward(self, client, server):
        self.open += [client, server]
        for a, b, counts in ((client, server, True), (server, client, False)):
            threading.Thread(target=self._pass_on, args=(a, b, counts), daemon=True).start()

    def _pass_on(self, a, b, counts):
        try:
            while data := a.recv(65536):
                b.sendall(data)
                if counts:
                    self._count(len(data))
        except OSError:
            pass
        shut_down(a, b)

    def _count(self, size):
        with self.lock:
            self.sent += size
            if self.cut is None or self.sent < self.cut:
                return
            self.cut = None
            self.cuts += 1
            shut_down(*self.open)
            self.open.clear()


class Uploads(Place):
    """A server, a client whose key it knows, and a counter between them."""

    def __init__(self, *options):
        super().__init__()
        self.store = Path(self.folder.name) / "cache-uploads"
        self.options = ("--cache", f"{self.folder.name}/cache", *options)
        self.servers = self.counter = None

    def __enter__(self):
        self.begin()
        return self

    def begin(self):
        self.servers = self.spancld(*self.options)
        self.counter = Counter(self.servers.ports[0])
        self.pair(self.counter.port)

    def end(self):
        self.servers.stop()

    def __exit__(self, *_):
        self.end()
        self.folder.cleanup()

    def upload(self, mib, seed, *how, **env):
        """The program uploads once. Returns the bytes that went to the server."""
        before = self.counter.sent
        env = {**self.servers.environment(), "SPANCL_KEYS": str(self.client), "SPANCL_UPLOAD_CACHE": "on",
               "SPANCL_SERVERS": f"tls:localhost:{self.counter.port}", **env}
        works(subprocess.run([PROGRAM, str(mib), str(seed), *how], env=env, text=True, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, timeout=HANG_S, check=False))
        return self.counter.sent - before

    def files(self):
        return sorted(f for f in self.store.glob("*/*") if f.is_file())

    def await_files(self, count):
        """Wait until the server has stored the data. It may do so after the program's end."""
        claims.wait_for(lambda: len(self.files()) >= count, lambda: f"{len(self.files())} files of {count}")


def data_that_a_server_has_is_not_sent_again():
    with Uploads() as u:
        first = u.upload(64, 1)
        assert first > 64 * MIB, first
        u.await_files(1)
        # A link as fast as this one brings more at a time than the server stores.
        again = claims.wait_for(lambda: (sent := u.upload(64, 1)) < MIB and sent, "it is sent again and again")
        later = u.upload(64, 1, "later")
        assert later < MIB, later
        return f"{first} bytes, then {again}"


def a_part_that_differs_is_sent_alone():
    with Uploads() as u:
        u.upload(8, 1)
        u.await_files(8)
        lost = u.files()[3]
        lost.unlink()
        sent = u.upload(8, 1)
        assert MIB < sent < 2 * MIB, sent
        u.await_files(8)
        assert lost.exists()


def a_damaged_file_is_found_and_sent_again():
    with Uploads() as u:
        u.upload(8, 1)
        u.await_files(8)
        flipped, shorter, empty = u.files()[:3]
        data = bytearray(flipped.read_bytes())
        data[MIB // 2] ^= 1
        flipped.write_bytes(data)
        shorter.write_bytes(shorter.read_bytes()[:-1])
        empty.write_bytes(b"")
        sent = u.upload(8, 1)
        assert 3 * MIB < sent < 4 * MIB, sent
        claims.wait_for(lambda: all(f.exists() and f.stat().st_size == MIB for f in (flipped, shorter, empty)),
                        "the chunks are not stored again")
        assert u.upload(8, 1) < MIB


def strided_memory_and_several_lanes_are_as_good():
    with Uploads() as u:
        for how in ((), ("strided",), ("strided", "later")):
            seed = 10 + len(how)
            for lanes in ("1", "5"):
                sent = u.upload(16, seed, *how, SPANCL_LANES=lanes)
                if lanes == "1" and how != ("strided", "later"):
                    assert sent > 16 * MIB, sent
                u.await_files(16)
        assert u.upload(16, 11, "strided", SPANCL_LANES="5") < MIB


def a_link_that_is_cut_loses_nothing():
    with Uploads() as u:
        u.upload(16, 1)
        u.await_files(16)
        for f in u.files()[::2]:
            f.unlink()
        u.counter.cut = u.counter.sent + 4 * MIB
        sent = u.upload(16, 1, SPANCL_LANES="3")
        assert u.counter.cuts == 1
        assert sent < 14 * MIB, sent


def a_server_that_starts_anew_still_has_them():
    with Uploads() as u:
        u.upload(8, 1)
        u.await_files(8)
        u.end()
        u.begin()
        assert u.upload(8, 1) < MIB


def another_client_gets_nothing():
    with Uploads() as u:
        u.upload(8, 1)
        u.await_files(8)
        u.client = Path(u.folder.name) / "other"
        u.pair(u.counter.port)
        sent = u.upload(8, 1)
        assert sent > 8 * MIB, sent
        u.await_files(16)
        assert len(list(u.store.iterdir())) == 2
        assert all(one.stat().st_mode & 0o777 == 0o700 for one in u.store.iterdir())


def the_store_keeps_its_bound():
    with Uploads("--upload-cache", "16") as u:
        for seed in range(4):
            u.upload(8, seed)
            claims.wait_for(u.files, "nothing is stored")
        u.end()  # stores the rest
        assert 0 < sum(f.stat().st_size for f in u.files()) <= 16 * MIB


def without_a_store_all_is_sent():
    with Uploads("--upload-cache", "0") as u:
        for _ in range(2):
            assert u.upload(4, 1) > 4 * MIB
        assert not u.store.exists()
    with Uploads() as u:
        for _ in range(2):
            assert u.upload(4, 1, SPANCL_UPLOAD_CACHE="off") > 4 * MIB
            assert u.upload(4, 1, SPANCL_UPLOAD_CACHE="auto") > 4 * MIB  # the link stays in this host
        assert not u.files()


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
