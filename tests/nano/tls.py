#!/usr/bin/env python3
"""tls.py BUILD [NAME...]: claims about TLS of the nano client, over a real server, and against attackers that change
bytes between client and server. Each function is one claim."""

import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/system")]
import claims  # noqa: E402
from nano import frames  # noqa: E402
from relay import Forwarder, Relay, shut_down  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
FOLDER = tempfile.TemporaryDirectory()
VENDORS = native_vendors(FOLDER.name)
KEYS = f"{FOLDER.name}/keys"
HANG_S = 600  # a watchdog
HANDSHAKE, DATA = 22, 23
REFUSED = "does it have this key"


def spancld(*words):
    return subprocess.run([BUILD / "bin/spancld", *words, "--keys", KEYS], text=True, capture_output=True, check=True,
                          timeout=HANG_S)


def new_key(name):
    """The key of a new device, in hexadecimal digits."""
    return spancld("pair", "--nano", name).stdout.strip()


def servers(*options):
    """A server that admits nobody without TLS, not even this host."""
    return Servers(BUILD, 1, ("--keys", KEYS, "--listen", "tls:127.0.0.1:0", "--log", "info", *options),
                   vendors=VENDORS, transport="unix")


def client(key, port):
    """A client that only connects. Returns the ended process."""
    command = [str(BUILD / "bin/nano_frames"), f"{key}@127.0.0.1", str(port), "0", "64", "48", "0"]
    return subprocess.run(command, text=True, capture_output=True, check=False, timeout=HANG_S)


def tls_port(s):
    return int(re.findall(r"listening on 127\.0\.0\.1:(\d+)", s.log_text())[-1])


def resumed(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return int(re.search(r"resumed (\d+) used \d+\n$", done.stdout)[1])


def must_fail(done, why):
    assert done.returncode == 1 and why in done.stderr, f"{done.returncode} {done.stdout} {done.stderr}"


class Attacker(Forwarder):
    """Stands between client and server. `change(connection, number, record)` returns the bytes that take the place of
    one of the server's records; None ends the connection."""

    def __init__(self, port, change):
        self.change, self.connections = change, 0
        super().__init__(port)

    def _forward(self, client_end, server_end):
        self.connections += 1
        for act in (self._up, self._down):
            threading.Thread(target=act, args=(client_end, server_end, self.connections), daemon=True).start()

    def _up(self, client_end, server_end, _connection):
        try:
            while data := client_end.recv(65536):
                server_end.sendall(data)
        except OSError:
            pass
        shut_down(client_end, server_end)

    def _down(self, client_end, server_end, connection):
        try:
            with server_end.makefile("rb") as records:
                number = 0
                while len(head := records.read(5)) == 5:
                    record = self.change(connection, number, head + records.read(int.from_bytes(head[3:], "big")))
                    number += 1
                    if record is None:
                        break
                    client_end.sendall(record)
        except OSError:
            pass
        shut_down(client_end, server_end)

    def close(self):
        self.listener.close()


def flipped(record, at):
    changed = bytearray(record)
    changed[at] ^= 0x10
    return bytes(changed)


def pictures_are_bit_exact_over_encrypted_links_that_are_cut():
    key = new_key("leaf")
    with servers() as s:
        relay = Relay(tls_port(s))

        def cut(_):
            relay.cut()
            relay.left = 1 + 1777 * relay.cuts  # and once more, anywhere in the next frames

        assert frames(f"{key}@127.0.0.1", relay.port, 60, (192, 144), cut) >= 3
        relay.close()
        assert "[leaf 127.0.0.1" in s.log_text(), s.log_text()


def only_keys_of_the_list_are_admitted():
    key = new_key("guest")
    with servers("--backend", "reference") as s:
        port = tls_port(s)
        assert resumed(client(key, port)) == 0
        must_fail(client(secrets.token_hex(32), port), REFUSED)
        spancld("clients", "remove", "guest")
        must_fail(client(key, port), REFUSED)
        # The server ignores lines that are no keys.
        last = new_key("last")
        names = [line.split()[0] for line in Path(KEYS, "nano").read_text().splitlines()]
        with open(Path(KEYS, "nano"), "r+", encoding="ascii") as file:
            good = file.read()
            file.seek(0)
            file.write("".join(f"{names[-1][:-1]}0 {bad}\n" for bad in ("", "00", "x" * 64, "0" * 63, "0" * 65)))
            file.write("no line\n" + good)
        assert resumed(client(last, port)) == 0
        # A key without a line in the list of clients admits nobody.
        other = new_key("other")
        kept = Path(KEYS, "nano").read_text()
        spancld("clients", "remove", "other")
        Path(KEYS, "nano").write_text(kept)
        done = client(other, port)
        assert done.returncode == 1, done.stdout + done.stderr


def a_device_needs_a_name():
    for words in (("--nano", ""), ("--nano", "a b"), ("--nano", "x" * 256), ("--nano=line\nline",), ("--nano=",),
                  ("--nano",)):
        done = subprocess.run([BUILD / "bin/spancld", "pair", *words, "--keys", KEYS], capture_output=True, text=True,
                              check=False, timeout=HANG_S)
        assert done.returncode == 2 and "name for" in done.stderr and not done.stdout, (words, done)
    assert "Usage" in spancld("pair", "--nano", "--help").stdout
    assert re.fullmatch(r"[0-9a-f]{64}\n", spancld("pair", "--nano=named").stdout)
    assert " --" not in Path(KEYS, "clients").read_text()


def a_key_that_nobody_gets_is_an_error():
    """It can't be printed, or its device can't get into the list: then no key stays behind."""
    def fails(output):
        done = subprocess.run([BUILD / "bin/spancld", "pair", "--nano", "lost", "--keys", KEYS], stdout=output,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=HANG_S)
        assert done.returncode == 1, done
        return done.stderr

    new_key("first")
    with open("/dev/full", "w", encoding="ascii") as full:
        assert "can't be printed" in fails(full)
    spancld("clients", "remove", "lost")
    before = Path(KEYS, "nano").read_text()
    Path(KEYS, "clients").chmod(0o666)
    assert "chmod 600" in fails(subprocess.DEVNULL)
    Path(KEYS, "clients").chmod(0o600)
    assert Path(KEYS, "nano").read_text() == before


def a_file_of_keys_that_others_may_read_is_refused():
    key = new_key("open")
    with servers("--backend", "reference") as s:
        Path(KEYS, "nano").chmod(0o644)
        must_fail(client(key, tls_port(s)), REFUSED)
        Path(KEYS, "nano").chmod(0o600)
        assert "chmod 600" in s.log_text(), s.log_text()
        assert resumed(client(key, tls_port(s))) == 0


def the_server_wants_the_whole_key_and_tls_1_3():
    if not shutil.which("openssl"):
        return "skipped: no openssl"
    key = new_key("stranger")
    lines = Path(KEYS, "nano").read_text().splitlines()
    identity = "nano " + [line.split()[0][:32] for line in lines if key in line][0]

    def connects(key, *options, name=identity):
        done = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", "-alpn", "spancl/1",
                               "-psk_identity", name, "-psk", key, *options], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False, timeout=HANG_S)
        return "Reused, TLSv1.3" in done.stdout

    with servers("--backend", "reference") as s:
        port = tls_port(s)
        suite = ("-tls1_3", "-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256")
        assert connects(key, *suite)
        assert not connects(secrets.token_hex(32), *suite)
        assert not connects(key, *suite, name=identity[:-1])
        assert not connects(key, *suite, name="nano " + "0" * 32)
        assert not connects(key, *suite, name="nano ")
        assert not connects(key, "-tls1_2")
    return None


def the_server_refuses_limits_that_no_record_can_keep():
    """RFC 8449: at least 64, in two bytes. The alert tells (RFC 8446, 6.2)."""
    illegal_parameter, missing_extension = 47, 109
    new_key("limited")  # the server starts only if it has a client

    def answer(limit):
        def sized(size, data):
            return len(data).to_bytes(size, "big") + data
        extensions = b"\x00\x2b" + sized(2, b"\x02\x03\x04") + b"\x00\x1c" + sized(2, limit)
        hello = b"\x03\x03" + bytes(32) + b"\x00" + sized(2, b"\x13\x03") + b"\x01\x00" + sized(2, extensions)
        with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as s:
            s.sendall(b"\x16\x03\x01" + sized(2, b"\x01" + sized(3, hello)))
            with s.makefile("rb") as records:
                return records.read()

    with servers("--backend", "reference") as s:
        port = tls_port(s)
        for limit in (b"", b"\x40", b"\x00\x00", b"\x00\x3f", b"\x00\x40\x00", bytes(300)):
            assert answer(limit)[-1] == illegal_parameter, limit
        for limit in (b"\x00\x40", b"\x40\x01", b"\xff\xff"):
            assert answer(limit)[-1] == missing_extension, limit


def a_changed_handshake_is_refused():
    key = new_key("target")
    with servers("--backend", "reference") as s:
        flight = []

        def attack(change):
            attacker = Attacker(tls_port(s), lambda _connection, number, record: change(number, record))
            done = client(key, attacker.port)
            attacker.close()
            return done

        def replace(old, new):
            return lambda number, record: record.replace(old, new, 1) if number == 0 else record

        def remember(_number, record):
            flight.append(record)
            return record

        assert resumed(attack(remember)) == 0
        hello = flight[0]
        assert hello[0] == HANDSHAKE and hello[5] == 2
        # Another version, cipher, or key; other random bytes.
        must_fail(attack(replace(b"\x00\x2b\x00\x02\x03\x04", b"\x00\x2b\x00\x02\x03\x03")), "another version")
        must_fail(attack(replace(b"\x00\x13\x03\x00", b"\x00\x13\x01\x00")), "another cipher")
        must_fail(attack(replace(b"\x00\x29\x00\x02\x00\x00", b"\x00\x29\x00\x02\x00\x01")), "another version")
        must_fail(attack(lambda n, r: flipped(r, 15) if n == 0 else r), "does not have this key")
        # Bytes of the hello, and places where it may end early; fuzz/nano_tls tries all of them.
        for at in range(5, len(hello), 7):
            done = attack(lambda n, r, at=at: flipped(r, at) if n == 0 else r)
            assert done.returncode == 1 and "TLS: " in done.stderr, (at, done.stderr)
        for size in range(0, len(hello) - 5, 7):
            cut = hello[:3] + size.to_bytes(2, "big") + hello[5:5 + size]
            done = attack(lambda n, r, cut=cut: cut if n == 0 else r)
            assert done.returncode == 1, (size, done.stderr)
        # Records: one that was changed, one too large, one of plain text, and no end of those for middleboxes.
        must_fail(attack(lambda n, r: flipped(r, 20) if r[0] == DATA else r), "does not have this key")
        must_fail(attack(lambda n, r: b"\x17\x03\x03\x40\x00" + bytes(16384) if n == 0 else r), "closed the connection")
        must_fail(attack(lambda n, r: b"\x17\x03\x03\x40\x00" + bytes(16384) if r[0] == DATA else r), "closed")
        must_fail(attack(lambda n, r: b"\x16\x03\x03" + r[3:] if r[0] == DATA else r), "does not have this key")
        must_fail(attack(lambda n, r: r + b"\x14\x03\x03\x00\x01\x01" * 2 if n == 0 else r), "does not have this key")
        must_fail(attack(lambda n, r: b"HTTP/1.1 400 Bad Request\r\n\r\n" if n == 0 else r), "closed the connection")
        must_fail(attack(lambda n, r: None), "closed the connection")
        # All that the server said in an earlier connection.
        must_fail(attack(lambda n, r: b"".join(flight) if n == 0 else r), "does not have this key")


def changed_records_only_cost_a_connection():
    """Records that are changed, dropped, repeated, exchanged, too large, or of another kind."""
    key = new_key("victim")
    kinds = (lambda r: flipped(r, 7), lambda r: flipped(r, len(r) - 1), lambda r: b"", lambda r: r + r,
             lambda r: flipped(r, 0), lambda r: r[:3] + b"\x40\x00" + r[5:], lambda r: r[:3] + b"\x00\x00" + r,
             lambda r: b"\x15\x03\x03\x00\x02\x02\x28", lambda r: r[:3] + (len(r) - 6).to_bytes(2, "big") + r[5:-1],
             lambda r: b"\x16\x03\x03\x00\x05\x18\x00\x00\x01\x00" + r)
    attacks, attacked, lock = 3 * len(kinds), [], threading.Lock()

    def change(connection, number, record):
        # The first connections make the program. Each later one has an attack, until all were made.
        with lock:
            turn = len(attacked)
            if (connection < 3 or connection in attacked or turn == attacks or number < 4 + turn // 3 or
                    record[0] != DATA):
                return record
            attacked.append(connection)
        return kinds[turn % len(kinds)](record)

    with servers() as s:
        attacker = Attacker(tls_port(s), change)
        relay = Relay(attacker.port)
        again = frames(f"{key}@127.0.0.1", relay.port, 100, (64, 48), lambda n: n == 20 and relay.cut())
        relay.close()
        attacker.close()
        assert len(attacked) == attacks, attacked
        assert again >= attacks // 2, again


if __name__ == "__main__":
    if not (BUILD / "lib/libspancl-tls.so").exists():
        print("skipped: no OpenSSL")
        sys.exit(77)
    if not subprocess.run([BUILD / "bin/nano_frames", "0" * 64 + "@127.0.0.1", "1", "0", "64", "48", "1"], check=False,
                          capture_output=True).returncode == 1:
        print("skipped: nano_frames has no TLS (Debian: libmbedtls-dev)")
        sys.exit(77)
    Path(KEYS).mkdir(mode=0o700)
    sys.exit(claims.run(globals()))
