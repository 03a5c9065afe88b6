#!/usr/bin/env python3
"""security.py BUILD [NAME...]: claims about who may use a server, over real processes: spancld, and
spancl as its client. Each function is one claim."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from servers import Servers, children, kept_port, native_vendors, zygote  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 120  # a watchdog, not a claim about speed
NOBODY = 65534


class Place:
    """A folder with the keys of a client and a server, which do not know each other yet."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.client = Path(self.folder.name) / "client"
        self.server = Path(self.folder.name) / "server"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def spancld(self, *options, port=0):
        return Servers(BUILD, 1, ("--backend", "reference", "--keys", str(self.server), *options), ports=[port])

    def spancl(self, *command, prefix=(), **how):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env["SPANCL_KEYS"] = str(self.client)
        env["SPANCL_CONNECT_TIMEOUT"] = str(HANG_S * 1000)
        return subprocess.run([*prefix, str(BUILD / "bin/spancl"), *command], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S,
                              check=False, **how)

    def code(self):
        done = subprocess.run([str(BUILD / "bin/spancld"), "pair", "--keys", str(self.server)],
                              text=True, stdout=subprocess.PIPE, timeout=HANG_S, check=True)
        return re.search(r"[0-9A-Z]{4}-[0-9A-Z]{4}-[0-9A-Z]{4}", done.stdout).group()

    def pair(self, port):
        works(self.spancl("pair", f"localhost:{port}", self.code()))

    def ping(self, port, scheme="tls:", host="localhost"):
        return self.spancl("ping", f"{scheme}{host}:{port}")


def works(done):
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def fails(done, *words):
    assert done.returncode != 0, done.stdout
    for word in words:
        assert word in done.stderr, f"no '{word}' in: {done.stderr}"


def other_address():
    """An address of this host beyond loopback; None: it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # nothing is sent
            address = s.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith("127.") else address


# --- Pairing --------------------------------------------------------------------------------------

def strangers_stay_out_until_they_are_paired():
    with Place() as p, p.spancld() as s:
        port = s.ports[0]
        fails(p.ping(port), f"spancl pair localhost:{port}")
        p.pair(port)
        works(p.ping(port))


def a_server_that_forgot_a_client_says_what_to_do():
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        (p.server / "clients").write_text("# nobody\n")
        fails(p.ping(s.ports[0]), "spancld pair")


def a_code_is_good_once():
    with Place() as p, p.spancld() as s:
        where, code = f"localhost:{s.ports[0]}", p.code()
        works(p.spancl("pair", where, code.lower().replace("-", "")))
        fails(p.spancl("pair", where, code), "spancld pair")
        assert not (p.server / "pairing").exists()


def a_code_may_be_guessed_a_few_times_only():
    with Place() as p, p.spancld() as s:
        where, code = f"localhost:{s.ports[0]}", p.code()
        wrong = ("1" if code[0] != "1" else "2") + code[1:]
        for _ in range(5):
            fails(p.spancl("pair", where, wrong), "the server does not accept the code")
        fails(p.spancl("pair", where, code))
        fails(p.ping(s.ports[0]))


def a_code_expires():
    with Place() as p, p.spancld() as s:
        code = p.code()
        secret, until, tries = (p.server / "pairing").read_text().split()
        assert int(until) > time.time()
        (p.server / "pairing").write_text(f"{secret} 1000 {tries}\n")
        fails(p.spancl("pair", f"localhost:{s.ports[0]}", code))


def invalid_code_is_reported_at_once():
    with Place() as p:
        fails(p.spancl("pair", "localhost:1", "ABC"), "not a code")


def a_server_set_up_anew_is_not_believed():
    with Place() as p:
        port = kept_port()
        with p.spancld(port=port):
            p.pair(port)
        (p.server / "identity.pem").unlink()
        with p.spancld(port=port):
            fails(p.ping(port), "not the one it was paired with", "spancl pair")


def a_client_does_not_choose_its_own_rights():
    """The line for the list comes from the client, with its host's name, which may be anything."""
    if os.geteuid() or subprocess.run(["unshare", "--uts", "true"], check=False).returncode:
        return "namespaces are not permitted here"
    for name in ("x own", "x devices=0", "x\tdevices=0 own"):
        with Place() as p, p.spancld() as s:
            done = subprocess.run(["unshare", "--uts", "sh", "-c",
                                   'printf "$0" >/proc/sys/kernel/hostname; exec "$@"', name, str(BUILD / "bin/spancl"),
                                   "pair", f"localhost:{s.ports[0]}", p.code()],
                                  env={**os.environ, "SPANCL_KEYS": str(p.client)}, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, timeout=HANG_S, check=False)
            works(done)
            words = (p.server / "clients").read_text().split()
            assert "own" not in words and not [w for w in words if w.startswith("devices=")], words
    return None


def the_same_keys_need_no_pairing():
    with Place() as p:
        p.client = p.server
        with p.spancld() as s:
            works(p.ping(s.ports[0]))


def keys_made_together_need_no_pairing():
    with Place() as p:
        folder = Path(p.folder.name) / "both"
        works(p.spancl("keys", str(folder)))
        fails(p.spancl("keys", str(folder)), "exists")
        p.client, p.server = folder / "client", folder / "server"
        for path in folder.rglob("*"):
            assert path.stat().st_mode & 0o077 == 0, path
        with p.spancld() as s, p.spancld() as other:
            stranger = Path(p.folder.name) / "stranger"
            private(stranger / "servers", (p.client / "servers").read_text())
            for port in (*s.ports, *other.ports):  # wherever a server is that has the key
                works(p.ping(port))
                works(p.ping(port, host="127.0.0.1"))
                p.client = stranger
                fails(p.ping(port), "does not know this client")
                p.client = folder / "client"
        p.server = Path(p.folder.name) / "false"
        with p.spancld() as s:
            fails(p.ping(s.ports[0]), "not known")


# --- Other ways to be known -----------------------------------------------------------------------

def private(path, text):
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(mode=0o600)
    path.write_text(text)


def a_shared_token_is_enough():
    with Place() as p, p.spancld() as s:
        private(p.server / "token", "correct horse battery staple\n")
        private(p.client / "token", "correct horse battery stable\n")
        fails(p.ping(s.ports[0]))
        private(p.client / "token", "correct horse battery staple\n")
        works(p.ping(s.ports[0]))


def openssl(*command, folder):
    subprocess.run(["openssl", *command], cwd=folder, check=True, timeout=HANG_S,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def issue(folder, authority, path, name):
    """A key and a certificate of the authority, as an identity."""
    openssl("req", "-newkey", "ed25519", "-nodes", "-keyout", "key", "-out", "csr", "-subj",
            f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}", folder=folder)
    openssl("x509", "-req", "-in", "csr", "-CA", f"{authority}.pem", "-CAkey", f"{authority}.key",
            "-copy_extensions", "copy", "-days", "30", "-out", "cert", folder=folder)
    private(path / "identity.pem", (folder / "key").read_text() + (folder / "cert").read_text())


def an_authority_of_ones_own_vouches_for_both():
    if not shutil.which("openssl"):
        return "no openssl command here"
    with Place() as p:
        folder = Path(p.folder.name)
        for name in ("ours", "theirs"):
            openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", f"{name}.key", "-out",
                    f"{name}.pem", "-subj", f"/CN={name}", "-days", "30", folder=folder)
        issue(folder, "ours", p.server, "localhost")
        private(p.server / "authority.pem", (folder / "ours.pem").read_text())
        with p.spancld() as s:
            private(p.client / "authority.pem", (folder / "ours.pem").read_text())
            issue(folder, "theirs", p.client, "laptop")
            fails(p.ping(s.ports[0]), "does not know this client")
            issue(folder, "ours", p.client, "laptop")
            works(p.ping(s.ports[0]))
            fails(p.ping(s.ports[0], host="127.0.0.1"), "not known")  # another name than it has
            private(p.client / "authority.pem", (folder / "theirs.pem").read_text())
            fails(p.ping(s.ports[0]), "not known")
    return None


# --- New keys -------------------------------------------------------------------------------------

def fingerprint(done):
    return re.search(r"[0-9a-f]{64}", works(done).stdout).group()


def rotate_server(p):
    works(subprocess.run([str(BUILD / "bin/spancld"), "pair", "--rotate", "--keys", str(p.server)], text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False))


def with_old_keys(p, command):
    """What the command says with the keys as they are now, whenever it is called."""
    old = Path(p.folder.name) / "old"
    shutil.copytree(p.client, old)

    def call():
        p.client, now = old, p.client
        done = command()
        p.client = now
        return done
    return call


def a_client_changes_its_key_without_being_paired_anew():
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        clients = p.server / "clients"
        clients.write_text(f"# ours\n{clients.read_text().strip()} devices=0\n")
        before = fingerprint(p.spancl("pair"))
        old = with_old_keys(p, lambda: p.ping(s.ports[0]))
        for _ in range(3):  # the server sees the last of them only
            after = fingerprint(p.spancl("pair", "--rotate"))
        assert before != after
        works(old())  # until the new one was used
        works(p.ping(s.ports[0]))
        text = clients.read_text()
        assert before not in text and after in text, text
        assert "# ours" in text and text.count("devices=0") == 1, text
        fails(old(), "does not know this client")
        works(p.ping(s.ports[0]))


def a_key_can_be_changed_again_and_again():
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        for _ in range(12):
            works(p.spancl("pair", "--rotate"))
            works(p.ping(s.ports[0]))


def a_server_changes_its_key_without_being_paired_anew():
    with Place() as p, p.spancld(port=kept_port()) as s:
        p.pair(s.ports[0])
        servers = (p.client / "servers").read_text()
        old = Path(p.folder.name) / "server before"
        shutil.copytree(p.server, old)
        rotate_server(p)  # while it runs
        works(p.ping(s.ports[0]))
        assert (p.client / "servers").read_text() != servers
        works(p.ping(s.ports[0]))
        works(p.spancl("list", "--quick", "--server", f"tls:localhost:{s.ports[0]}"))
        port = s.ports[0]
        s.stop()
        shutil.rmtree(p.server)
        shutil.copytree(old, p.server)  # who has the old key is nobody now
        with p.spancld(port=port):
            fails(p.ping(port), "not the one it was paired with")


def nobody_inherits_who_was_not_named():
    if not shutil.which("openssl"):
        return "no openssl command here"
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        # The certificate of a known client is no secret: beside another key it is worth nothing.
        known = (p.client / "identity.pem").read_text()
        certificate = known[known.index("-----BEGIN CERTIFICATE"):]
        folder = Path(p.folder.name)
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "key", "-out", "cert", "-subj",
                "/CN=somebody", folder=folder)
        private(p.client / "identity.pem", (folder / "key").read_text() + (folder / "cert").read_text() + certificate)
        fails(p.ping(s.ports[0]), "does not know this client")
    return None


def certificates_of_an_authority_are_replaced_by_it():
    if not shutil.which("openssl"):
        return "no openssl command here"
    with Place() as p:
        folder = Path(p.folder.name)
        openssl("req", "-x509", "-newkey", "ed25519", "-nodes", "-keyout", "ours.key", "-out", "ours.pem", "-subj",
                "/CN=ours", "-days", "30", folder=folder)
        issue(folder, "ours", p.client, "laptop")
        fails(p.spancl("pair", "--rotate"), "was not made here")
    return None


def users_without_access_cannot_query_a_server():
    with Place() as p, p.spancld() as s:
        where = f"tls:localhost:{s.ports[0]}"
        fails(p.spancl("top", "--once", "--server", where), "spancl pair")
        p.pair(s.ports[0])
        works(p.spancl("top", "--once", "--server", where))
        (p.server / "clients").write_text("# nobody\n")
        fails(p.spancl("top", "--once", "--server", where), "does not know this client")


# --- Policy ---------------------------------------------------------------------------------------

def without_friends_nothing_beyond_loopback_is_listened_on():
    with Place() as p:
        def listen(*more):
            return subprocess.run([str(BUILD / "bin/spancld"), "--backend", "reference", "--keys",
                                   str(p.server), "--listen", "0.0.0.0:0", *more],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  timeout=HANG_S, check=False)
        fails(listen(), "spancld pair", "--insecure")
        assert not p.server.exists()
        p.code()
        with p.spancld("--listen", "0.0.0.0:0"):
            pass


def this_host_must_encrypt_too_if_it_is_said():
    with Place() as p:
        def listen(*more):
            return subprocess.run([str(BUILD / "bin/spancld"), "--backend", "reference", "--keys", str(p.server),
                                   "--listen", "tls:localhost:0", *more],
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
        fails(listen(), "spancld pair", "--insecure")
        p.code()
        with p.spancld("--listen", "tls:127.0.0.2:0") as s:
            port = listening_port(s, "127.0.0.2")
            works(p.ping(s.ports[0], "tcp:"))
            fails(p.ping(port, "tcp:", "127.0.0.2"), "encrypted connections only")
            fails(p.spancl("top", "--once", "--server", f"tcp:127.0.0.2:{port}"), "encrypted connections only")
            works(p.spancl("pair", f"127.0.0.2:{port}", p.code()))
            works(p.ping(port, "tls:", "127.0.0.2"))
            p.client = Path(p.folder.name) / "stranger"
            private(p.client / "servers", f"{s_key(p)} *\n")
            fails(p.ping(port, "tls:", "127.0.0.2"), "does not know this client")
        with p.spancld("--listen", "tls:127.0.0.2:0", "--insecure") as s:
            works(p.ping(listening_port(s, "127.0.0.2"), "tcp:", "127.0.0.2"))
            assert "open to everybody" in s.log_text()


def s_key(p):
    """The server's fingerprint."""
    client, p.client = p.client, p.server
    key = fingerprint(p.spancl("pair"))
    p.client = client
    return key


def other_hosts_must_encrypt():
    address = other_address()
    if not address:
        return "this host has no address beyond loopback"
    with Place() as p:
        p.code()
        with p.spancld("--listen", f"{address}:0") as s:
            # The first address's port is reported first. This one belongs to the address that --listen adds.
            port = listening_port(s, address)
            fails(p.ping(port, "tcp:", address), "encrypted")
            fails(p.ping(port, "", address), "spancl pair")
            works(p.spancl("pair", f"{address}:{port}", p.code()))
            works(p.ping(port, "", address))
        with p.spancld("--listen", f"{address}:0", "--insecure") as s:
            works(p.ping(listening_port(s, address), "tcp:", address))
    return None


class Tap:
    """Forwards connections to a loopback port, as a proxy or an attacker in the network does. Keeps what clients send over
    connections that begin after `forget`."""

    def __init__(self, address, port):
        self.listener = socket.create_server((address, 0))
        self.port = self.listener.getsockname()[1]
        self.to = port
        self.kept = []
        threading.Thread(target=self.accept, daemon=True).start()

    @property
    def seen(self):
        return b"".join(self.kept)

    def forget(self):
        self.kept = []

    def accept(self):
        try:
            while True:
                client, _ = self.listener.accept()
                server = socket.create_connection(("127.0.0.1", self.to))
                threading.Thread(target=self.pass_on, args=(client, server, self.kept), daemon=True).start()
                threading.Thread(target=self.pass_on, args=(server, client, []), daemon=True).start()
        except OSError:  # closed
            pass

    def pass_on(self, from_, to, keep):
        try:
            while data := from_.recv(1 << 16):
                keep.append(data)
                to.sendall(data)
            to.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def a_false_localhost_gets_nothing_in_the_clear():
    address = other_address() or "0.0.0.0"
    with Place() as p, p.spancld() as s, Tap("0.0.0.0", s.ports[0]) as tap:
        hosts = Path(p.folder.name) / "hosts"

        def as_in(lines):
            """A prefix of commands for which /etc/hosts has these lines."""
            hosts.write_text(lines)
            return ("unshare", *(() if os.geteuid() == 0 else ("-r",)), "--mount", "sh", "-c",
                    f"mount --bind {hosts} /etc/hosts && exec \"$@\"", "-")

        def ping(lines, host, scheme=""):
            tap.forget()
            return p.spancl("ping", f"{scheme}{host}:{tap.port}", prefix=as_in(lines))

        if subprocess.run([*as_in(""), "true"], check=False, stderr=subprocess.DEVNULL).returncode:
            return "mount namespaces are not permitted here"
        works(ping("127.0.0.1 localhost\n", "localhost"))
        assert tap.seen.startswith(b"SPANCL"), tap.seen[:16]  # the tap sees what goes in the clear
        private(p.server / "token", "correct horse battery staple\n")
        for lines, host in ((f"{address} localhost\n", "localhost"),
                            (f"127.0.0.1 localhost\n{address} localhost\n", "localhost"),
                            (f"{address} 127.example.org\n", "127.example.org"),
                            ("127.0.0.1 127.example.org\n", "127.example.org")):
            for known in (False, True):
                (p.client / "token").unlink(missing_ok=True)
                if known:
                    private(p.client / "token", "correct horse battery staple\n")
                done = ping(lines, host)
                assert tap.seen.startswith(b"\x16"), (lines, tap.seen[:16])
                assert b"SPANCL" not in tap.seen, lines
                if known:
                    works(done)
                else:
                    fails(done, f"spancl pair {host}:{tap.port}")
        works(ping(f"{address} localhost\n", "localhost", "tcp:"))  # only who says so has it in the clear
        assert tap.seen.startswith(b"SPANCL"), tap.seen[:16]
    return None


def closed_by(connections):
    """How many of them the other side has closed by now."""
    count = 0
    for c in connections:
        c.setblocking(False)
        try:
            count += c.recv(1) == b""
        except BlockingIOError:
            pass
        except OSError:
            count += 1
    return count


def crowd(address, port, wanted, at_least):
    """So many silent connections, of which the server has closed some in the end."""
    connections = [socket.create_connection((address, port), timeout=HANG_S) for _ in range(wanted)]
    end = time.monotonic() + HANG_S
    while (closed := closed_by(connections)) < at_least and time.monotonic() < end:
        time.sleep(0.01)
    for c in connections:
        c.close()
    return closed


def one_host_has_so_many_silent_connections():
    address = other_address()
    if not address:
        return "this host has no address beyond loopback"
    with Place() as p:
        p.code()
        with p.spancld("--listen", f"{address}:0", "--connection-rate", "0") as s:
            port = listening_port(s, address)
            closed = crowd(address, port, 150, 150 - 64)
            assert closed >= 150 - 64, closed
            works(p.ping(s.ports[0], ""))
    return None


def one_host_connects_only_so_often():
    address = other_address()
    if not address:
        return "this host has no address beyond loopback"
    with Place() as p:
        p.code()
        with p.spancld("--listen", f"{address}:0", "--connection-rate", "2") as s:
            port = listening_port(s, address)
            assert 0 < crowd(address, port, 60, 1) <= 60 - 8
            for _ in range(20):  # others are served
                works(p.ping(s.ports[0], ""))
            done = None
            for _ in range(HANG_S):  # and so is it, later
                done = p.spancl("pair", f"{address}:{port}", p.code())
                if not done.returncode:
                    break
                time.sleep(1)
            works(done)
    return None


def link_of(descriptor):
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:  # closed meanwhile
        return None


def listening_port(s, address):
    raw = bytes(int(x) for x in address.split("."))
    hexed = raw[::-1].hex().upper()
    fds = Path(f"/proc/{s.processes[0].pid}/fd")
    inodes = {link_of(fd) for fd in fds.iterdir()}
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        host, port = fields[1].split(":")
        if host == hexed and f"socket:[{fields[9]}]" in inodes:
            return int(port, 16)
    raise AssertionError("it does not listen there")


def a_client_may_have_some_devices_only():
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        where = f"tls:localhost:{s.ports[0]}"
        clients = (p.server / "clients").read_text().strip()
        listed = works(p.spancl("list", "--quick", "--server", where)).stdout
        (p.server / "clients").write_text(f"{clients} devices=0\n")
        assert works(p.spancl("list", "--quick", "--server", where)).stdout.count(":") <= listed.count(":")
        (p.server / "clients").write_text(f"{clients} devices=unobtainium\n")
        fails(p.ping(s.ports[0]), "none of its devices")
        (p.server / "clients").write_text(f"{clients}\n")
        works(p.ping(s.ports[0]))


def each_client_has_a_build_cache_of_its_own():
    with tempfile.TemporaryDirectory() as folder, Place() as p, \
            p.spancld("--cache", f"{folder}/cache") as s:
        works(p.ping(s.ports[0], "tcp:"))
        clients = Path(folder) / "cache-clients"
        assert not clients.exists()
        for n in (1, 2):
            p.client = Path(p.folder.name) / f"client{n}"
            p.pair(s.ports[0])
            for _ in range(2):
                works(p.ping(s.ports[0]))
            assert len(list(clients.iterdir())) == n
        p.client = Path(p.folder.name) / "own"
        p.pair(s.ports[0])
        listed = (p.server / "clients").read_text().strip()
        (p.server / "clients").write_text(f"{listed} own\n")
        works(p.ping(s.ports[0]))
        assert len(list(clients.iterdir())) == 2
        for one in clients.iterdir():
            assert one.name in (p.server / "clients").read_text()
            assert one.stat().st_mode & 0o777 == 0o700
        shutil.rmtree(clients)  # then they last as long as a session
        clients.touch()
        works(p.ping(s.ports[0]))


def a_client_that_goes_away_leaves_no_worker():
    """Also if its worker is ready only then. Each paired client's worker is of no use to others."""
    with Place() as p, Servers(BUILD, 1, ("--keys", str(p.server)), vendors=native_vendors(p.folder.name)) as s:
        server = s.processes[0].pid
        p.pair(s.ports[0])
        works(p.ping(s.ports[0]))
        claims.wait_for(lambda: len(children(server)) == 1, "there is one warm worker for all")
        os.kill(zygote(server), signal.SIGSTOP)
        client = subprocess.Popen([str(BUILD / "bin/spancl"), "list"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  env={**os.environ, "SPANCL_KEYS": str(p.client),
                                       "SPANCL_SERVERS": f"tls:localhost:{s.ports[0]}",
                                       "SPANCL_CONNECT_TIMEOUT": str(HANG_S * 1000)})
        time.sleep(1)  # it waits for its worker
        assert client.poll() is None, client.communicate()
        client.kill()
        client.communicate()
        os.kill(zygote(server), signal.SIGCONT)
        claims.wait_for(lambda: len(children(server)) == 2, "its worker becomes ready")
        claims.wait_for(lambda: len(children(server)) == 1, "the worker stays without its client")
        works(p.ping(s.ports[0]))


def certificates_have_a_limit():
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        identity = p.client / "identity.pem"
        own = identity.read_text()
        certificate = own[own.index("-----BEGIN CERTIFICATE"):]
        identity.write_text(own + 7 * certificate)
        works(p.ping(s.ports[0]))
        identity.write_text(own + 100 * certificate)
        fails(p.ping(s.ports[0]))
        identity.write_text(own)
        works(p.ping(s.ports[0]))


def keys_that_others_can_read_are_not_used():
    with Place() as p, p.spancld() as s:
        p.pair(s.ports[0])
        (p.client / "identity.pem").chmod(0o644)
        fails(p.ping(s.ports[0]), "chmod 600")
        (p.client / "identity.pem").chmod(0o600)
        p.client.chmod(0o755)
        fails(p.ping(s.ports[0]), "chmod 700")
        p.client.chmod(0o700)
        works(p.ping(s.ports[0]))
        (p.server / "clients").chmod(0o644)  # whom others could change
        fails(p.ping(s.ports[0]), "does not know this client")
        (p.server / "clients").chmod(0o600)
        works(p.ping(s.ports[0]))
        private(p.server / "token", "correct horse battery staple\n")
        private(p.client / "token", "correct horse battery staple\n")
        for name in ("identity.pem", "clients", "token"):
            assert (p.server / name).stat().st_mode & 0o777 == 0o600, name


def a_socket_is_for_its_user():
    if os.geteuid():
        return "not root here"
    before = os.umask(0o022)
    try:
        for umask in (0o022, 0o077, 0):
            os.umask(umask)
            _sockets_of_users()
    finally:
        os.umask(before)
    return None


def _sockets_of_users():
    with Place() as p:
        folder = Path(p.folder.name)
        folder.chmod(0o755)
        path = folder / "socket"

        program = shutil.copy(BUILD / "bin/spancl", folder)  # where anybody may run it
        os.chmod(program, 0o755)

        # Nobody may not be let in where sanitizers' suppressions lie.
        env = {k: v for k, v in os.environ.items() if k not in ("LSAN_OPTIONS", "TSAN_OPTIONS")}

        def ping(user):
            return subprocess.run([program, "ping", f"unix:{path}"], user=user, group=user, extra_groups=[], env=env,
                                  cwd="/", text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, check=False, timeout=HANG_S)

        with p.spancld("--socket", str(path)):
            assert path.stat().st_mode & 0o777 == 0o600
            works(p.spancl("ping", f"unix:{path}"))
            fails(ping(NOBODY), "--socket-users")
            path.chmod(0o777)
            fails(ping(NOBODY), "other users")
        with p.spancld("--socket", str(path), "--socket-users", "daemon,nobody") as s:
            assert path.stat().st_mode & 0o777 == 0o666
            works(ping(NOBODY))
            works(ping("daemon"))
            works(p.spancl("ping", f"unix:{path}"))
            fails(ping("mail"), "other users")
            assert "no other user" not in s.log_text()
        with p.spancld("--socket", str(path), "--socket-users", "any"):
            works(ping(NOBODY))
            works(ping("mail"))
        folder.chmod(0o700)
        with p.spancld("--socket", str(path), "--socket-users", "any") as s:
            assert f"no other user can enter {folder}" in s.log_text()


# --- What a session may take ----------------------------------------------------------------------

class Devices:
    """A server with this host's OpenCL devices."""

    def __init__(self, *options):
        self.folder = tempfile.TemporaryDirectory()
        self.servers = Servers(BUILD, 1, options, vendors=native_vendors(self.folder.name))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.servers.stop()
        self.folder.cleanup()

    def greedy(self, what):
        env = self.servers.environment()
        env["ASAN_OPTIONS"] = "detect_leaks=0:use_sigaltstack=0"  # it releases nothing
        done = subprocess.run([str(BUILD / "bin/system_greedy"), what], env=env, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
        return works(done).stdout.split()


def a_kernel_that_never_ends_ends_its_session_alone():
    with Devices("--session-run-time", "1") as d:
        # OpenCL's names for: an event of the list failed, out of resources, device not available.
        assert d.greedy("endless") == ["started", "wait", "-14", "event", "-5", "event", "-5", "later", "-2"]
        assert d.greedy("look") == ["0"]


def memory_of_another_session_cannot_be_read():
    for which in ("auto", "on"):
        with Devices("--clear-memory", which) as d:
            for _ in range(2):
                d.greedy("mark")
                assert d.greedy("look") == ["0"]


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
