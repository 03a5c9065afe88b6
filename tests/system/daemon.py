#!/usr/bin/env python3
"""daemon.py BUILD [NAME...]: claims about real processes: what a server and a client make of bad
input, of peers that disappear, and of each way to reach a server. Each function is one claim."""

import ctypes
import fcntl
import os
import re
import random
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from claims import wait_for  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402
from relay import Relay  # noqa: E402
from servers import Servers, children, every_child, kept_port, native_vendors, zygote  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
CLIENT = str(BUILD / "bin/bench_opencl")
MAGIC = b"SPANCL\r\n"
HANG_S = 600  # a watchdog, not a claim about speed: with ThreadSanitizer on a busy host all takes long
FOLDER = tempfile.TemporaryDirectory()
VENDORS = native_vendors(FOLDER.name)
DEVICE_NOT_AVAILABLE = "error -2\n"
IP_LOCAL_PORT_RANGE = 51


def servers(count=1, *options, **how):
    return Servers(BUILD, count, options, vendors=VENDORS, **how)


def client_env(where, **more):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    env["OCL_ICD_VENDORS"] = str(BUILD / "etc/vendors")
    env.update(more)
    if where is not None:
        env["SPANCL_SERVERS"] = where
    return env


def run(command, where, **more):
    return subprocess.run(command, env=client_env(where, **more), stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)


def works(where, **more):
    """A client that computes, and checks what it computed."""
    done = run([CLIENT, "--only", "empty", "--scale", "5"], where, **more)
    assert done.returncode == 0, done.stderr
    return done


def start_endless(where, **more):
    """A client that launches kernels until something ends it; returns once it computes."""
    client = subprocess.Popen([CLIENT, "--only", "empty", "--scale", "1000000"],
                              env=client_env(where, SPANCL_ON_LOSS="fail", **more), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    for line in client.stdout:
        if '"build"' in line or '"first_context"' in line:
            break
    time.sleep(0.5)
    assert client.poll() is None, client.stderr.read()
    return client


def lost_device(client):
    """The client's next calls said that its device is gone; it did not hang or crash."""
    _, err = client.communicate(timeout=HANG_S)
    assert client.returncode == 1, f"status {client.returncode}: {err}"
    assert DEVICE_NOT_AVAILABLE in err, err


def at(port):
    return f"localhost:{port}"


def clinfo(where, prefix=(), **more):
    """A program that knows nothing of our sanitizers has to load their libraries first."""
    needs = subprocess.run(["ldd", str(BUILD / "bin/spancld")], stdout=subprocess.PIPE, text=True, check=True)
    runtime = re.search(r"\S*/lib[at]san\S*", needs.stdout)
    if runtime:
        more.update(LD_PRELOAD=runtime.group(), ASAN_OPTIONS="detect_leaks=0:use_sigaltstack=0")
    return run([*prefix, "clinfo", "-l"], where, **more)


def no_devices(where, *words, **more):
    """The platform is there, has no devices, and standard error says why, in a line."""
    done = clinfo(where, **more)
    assert "Device #" not in done.stdout, done.stdout
    for word in words:
        assert word in done.stderr, f"no '{word}' in: {done.stderr}"


# --- Configuration and connecting -----------------------------------------------------------------

def unknown_host_is_named():
    no_devices("no-such-host.invalid", "no-such-host.invalid")


def refused_connection_is_named():
    port = kept_port()
    no_devices(at(port), str(port))


def wrong_variable_is_named():
    no_devices("localhost:99999", "SPANCL_SERVERS")


def good_server_serves_beside_a_missing_one():
    with servers() as s:
        done = clinfo(f"{at(kept_port())} {at(s.ports[0])}")
        assert done.stdout.count("Device #") == 1, done.stdout + done.stderr


def server_that_is_named_twice_gives_its_devices_once():
    with servers() as s:
        port = s.ports[0]
        for places in (f"{at(port)} 127.0.0.1:{port} {at(port)}/0", f"{at(port)}/0 {at(port)}"):
            done = clinfo(places)
            assert done.stdout.count("Device #") == 1 and not done.stderr, done.stdout + done.stderr


def server_without_devices_is_clear():
    with servers(1, "--devices", "no such device") as s:
        no_devices(at(s.ports[0]), str(s.ports[0]))


def without_configuration_spancl_is_seen_only_with_a_server():
    if not may_make_hosts():
        return "skipped: no network namespaces"
    both = Path(FOLDER.name) / "native-and-spancl"
    both.mkdir(exist_ok=True)
    natives = sorted(Path(VENDORS).glob("*.icd")) if Path(VENDORS).is_dir() else [Path(VENDORS)]
    for icd in [*natives, BUILD / "etc/vendors/spancl.icd"]:
        shutil.copy(icd, both)
    mute = ("import socket, sys; s = socket.create_server(('127.0.0.1', 7777)); print(flush=True);"
            "sys.stdin.read()")
    with Hosts(["a"]) as hosts, tempfile.TemporaryDirectory() as home:  # where nobody listens on port 7777
        inside = hosts.inside("a")

        def look(where=None, vendors=both, **more):
            return clinfo(where, prefix=inside, OCL_ICD_VENDORS=str(vendors), HOME=home, **more)

        def spancl(*command):
            return run([*inside, str(BUILD / "bin/spancl"), *command], None, HOME=home)

        def is_silent():
            done = look()
            assert (done.stdout, done.stderr) == (native.stdout, native.stderr), done.stdout + done.stderr

        native = look(vendors=VENDORS)
        is_silent()
        assert "refused" in look(SPANCL_LOG="info").stderr
        with subprocess.Popen([*inside, sys.executable, "-c", mute], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as other:  # another service's port
            other.stdout.readline()
            is_silent()
            other.stdin.close()
        named = look("localhost")
        assert "refused" in named.stderr and "SpanCL" in named.stdout, named.stdout + named.stderr
        assert "SPANCL_SERVERS" in spancl("list").stderr
        assert "refused" in spancl("run", CLIENT, "--only", "empty").stderr
        with Servers(BUILD, 1, ("--listen", "localhost:7777"), vendors=VENDORS, prefix=inside):
            done = look()
            assert "SpanCL" in done.stdout and done.stderr == native.stderr, done.stdout + done.stderr
            assert done.stdout.count("Device #") == 2 * native.stdout.count("Device #"), done.stdout
    return None


def listening_beyond_loopback_needs_insecure():
    done = subprocess.run([str(BUILD / "bin/spancld"), "--listen", "0.0.0.0:0"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False)
    assert done.returncode != 0
    assert "--insecure" in done.stderr, done.stderr


def fake_server(answer):
    """A listener that is no SpanCL server; returns its port."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(16)

    def serve():
        kept = []
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            kept.append(peer)
            if answer is not None:
                peer.sendall(answer)
                peer.close()

    threading.Thread(target=serve, daemon=True).start()
    return listener, listener.getsockname()[1]


def other_service_on_the_port_is_clear():
    listener, port = fake_server(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n" * 8)
    no_devices(at(port), str(port))
    listener.close()


def server_that_says_nothing_times_out():
    listener, port = fake_server(None)
    no_devices(at(port), str(port), SPANCL_CONNECT_TIMEOUT="500")
    listener.close()


def huge_length_from_a_server_is_clear():
    listener, port = fake_server(MAGIC + b"\xf8\xff\xff\xff\x01\0\0\0" + bytes(16))
    no_devices(at(port), str(port))
    listener.close()


# --- Ways to reach a server -----------------------------------------------------------------------

def unix_socket_works():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/spancl.socket"
        with servers(1, "--socket", path):
            works(f"unix:{path}")


def shared_memory_is_used_unless_one_side_is_told_not_to():
    spancl = str(BUILD / "bin/spancl")
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/spancl.socket"
        for server, client, used in (("on", "on", "shm"), ("on", "off", "unix"), ("off", "on", "unix")):
            with servers(1, "--socket", path, "--shared-memory", server):
                done = run([spancl, "ping", f"unix:{path}"], None, SPANCL_SHARED_MEMORY=client)
                assert f"({used})" in done.stdout, done.stdout + done.stderr
                works(f"unix:{path}", SPANCL_SHARED_MEMORY=client)


def the_server_works_over_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
            port = s.getsockname()[1]
    except OSError:
        return "no IPv6 here"
    with servers(1, "--listen", f"[::1]:{port}"):
        works(f"[::1]:{port}")
    return None


def in_process_devices_need_no_server():
    # The native implementations stand beside SpanCL's own ICD, as they do on a real system.
    with tempfile.TemporaryDirectory() as folder:
        for icd in [*Path(VENDORS).glob("*.icd"), BUILD / "etc/vendors/spancl.icd"]:
            os.symlink(icd.resolve(), f"{folder}/{icd.name}")
        done = run([CLIENT, "--platform", "SpanCL", "--only", "empty", "--scale", "5"], "in-process",
                   OCL_ICD_VENDORS=folder)
        assert done.returncode == 0, done.stderr


def pocl_remote_parameters_are_understood():
    with servers() as s:
        works(None, POCL_DEVICES="remote", POCL_REMOTE0_PARAMETERS=f"localhost:{s.ports[0]}/0")


# --- Homes -----------------------------------------------------------------------------------------

def a_user_without_a_home_computes():
    if os.geteuid():
        return "only root may become another user"
    with Servers(BUILD, 1, ("--user", "nobody", "--log", "info"), vendors="/etc/OpenCL/vendors",
                 prefix=("env", "-u", "XDG_CACHE_HOME", "-u", "POCL_CACHE_DIR")) as s:
        works(at(s.ports[0]))
        if "no OpenCL" not in s.log_text():
            assert "what is compiled for sessions is not kept" in s.log_text(), s.log_text()
    return None


def builds_are_cached_in_a_new_home():
    with tempfile.TemporaryDirectory() as home:
        with servers(1, "--log", "info", prefix=("env", "-u", "XDG_CACHE_HOME", f"HOME={home}/new")) as s:
            works(at(s.ports[0]))
            assert "can't" not in s.log_text(), s.log_text()
        assert any(Path(home, "new/.cache/spancl").iterdir())


# --- Bad input to a server; every other session goes on -------------------------------------------

def send_and_drop(port, data):
    with socket.create_connection(("127.0.0.1", port), timeout=30) as s:
        try:
            s.sendall(data)
            s.settimeout(0.05)
            s.recv(4096)
        except OSError:
            pass


def random_bytes_are_dropped():
    rng = random.Random(7)
    with servers() as s:
        other = start_endless(at(s.ports[0]))
        for i in range(300):
            data = rng.randbytes(rng.randrange(1, 2000))
            if i % 3 == 1:
                data = MAGIC + data
            if i % 3 == 2:  # a plausible header of a hello, then rubbish
                size = rng.randrange(0, 520) * 8
                data = MAGIC + size.to_bytes(4, "little") + b"\x01\0\0\0" + bytes(16) + data
            send_and_drop(s.ports[0], data)
        assert other.poll() is None, other.stderr.read()
        works(at(s.ports[0]))
        other.kill()
        other.communicate()


def huge_length_is_dropped():
    with servers() as s:
        for size in (0xfffffff8, 0x7ffffff8, 1 << 24, 4104):
            send_and_drop(s.ports[0], MAGIC + size.to_bytes(4, "little") + b"\x01\0\0\0" + bytes(16))
        works(at(s.ports[0]))


def broken_protocol_ends_the_session_alone():
    with servers() as s:
        other = start_endless(at(s.ports[0]))
        done = run([str(BUILD / "bin/system_bad_client"), f"tcp:127.0.0.1:{s.ports[0]}"], None)
        assert done.returncode == 0, done.stdout + done.stderr
        assert other.poll() is None, other.stderr.read()
        works(at(s.ports[0]))
        other.kill()
        other.communicate()


def silent_connections_lock_nobody_out():
    wanted = 10000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = hard if hard != resource.RLIM_INFINITY else wanted + 100
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(wanted + 100, limit), hard))
    count = min(wanted, min(wanted + 100, limit) - 100)
    silent = []
    try:
        with servers() as s:
            other = start_endless(at(s.ports[0]))
            for _ in range(count):
                try:
                    silent.append(socket.create_connection(("127.0.0.1", s.ports[0]), timeout=10))
                except OSError:
                    break  # the server may refuse; it must not stop serving
            works(at(s.ports[0]))
            assert other.poll() is None, other.stderr.read()
            other.kill()
            other.communicate()
            return f"{len(silent)} connections"
    finally:
        for connection in silent:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- Processes that end ---------------------------------------------------------------------------

def session_worker(server, before):
    """The worker that took the session which began after `before` was taken."""
    # The warm worker takes the session and a new one is started in its place, later: ours is the oldest.
    def started(pid):
        try:
            return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[19])
        except OSError:  # it has ended, as a process does that finds no sensors
            return sys.maxsize
    workers = [p for p in children(server.processes[0].pid) if p not in before]
    return min(workers, key=started)


def links_that_are_cut_again_and_again_change_nothing():
    with servers() as s:
        relay = Relay(s.ports[0])
        said = tempfile.TemporaryFile("w+")  # each cut is a line: more than a pipe holds
        client = subprocess.Popen(
            [CLIENT, "--scale", "30", "--max-mib", "16"], env=client_env(at(relay.port), SPANCL_ON_LOSS="wait"),
            stdout=said, stderr=said)
        chance = random.Random(1)
        while client.poll() is None:
            time.sleep(chance.uniform(0.01, 0.1))
            if relay.carried > 20000:  # it has met the server
                relay.cut()
        relay.close()
        said.seek(0)
        assert client.returncode == 0, said.read()
        assert relay.cuts > 3, relay.cuts
        return f"{relay.cuts} cuts"


class SamePort(Relay):
    """A relay whose connections to the server have their clients' ports, as happens by chance."""

    def _dial(self, client):
        port = client.getpeername()[1]
        server = socket.socket()
        server.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("I", port << 16 | port))
        server.connect(("127.0.0.1", self.target))
        return server


def a_proxy_with_the_clients_port_is_not_taken_for_the_client():
    with socket.socket() as s:
        try:
            s.setsockopt(socket.IPPROTO_IP, IP_LOCAL_PORT_RANGE, struct.pack("I", 0))
        except OSError:
            return "not run: Linux has this option since 6.3"
    with servers(1, "--linger", "600") as s:
        relay = SamePort(s.ports[0])
        said = tempfile.TemporaryFile("w+")
        client = subprocess.Popen([CLIENT, "--only", "empty", "--scale", "1000000"],
                                  env=client_env(at(relay.port), SPANCL_ON_LOSS="wait"), stdout=said, stderr=said)
        for cuts in range(4):
            before = relay.carried
            wait_for(lambda: client.poll() is not None or relay.carried > before + 20000, "the client does not go on")
            said.seek(0)
            assert client.poll() is None, f"after {cuts} cuts: {said.read()}"
            relay.cut()
        client.kill()
        client.wait(timeout=HANG_S)
        relay.close()


def killed_worker_ends_its_session_alone():
    with servers() as s:
        first = start_endless(at(s.ports[0]))
        busy = set(children(s.processes[0].pid))
        victim = session_worker(s, set())
        second = start_endless(at(s.ports[0]))
        assert victim in busy
        os.kill(victim, signal.SIGKILL)
        lost_device(first)
        time.sleep(0.3)
        assert second.poll() is None, second.stderr.read()
        works(at(s.ports[0]))
        second.kill()
        second.communicate()


def killed_worker_is_noticed_through_shared_memory():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/spancl.socket"
        with servers(1, "--socket", path) as s:
            client = start_endless(f"unix:{path}")
            os.kill(session_worker(s, set()), signal.SIGKILL)
            lost_device(client)
            works(f"unix:{path}")


def killed_client_is_noticed_through_shared_memory():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/spancl.socket"
        with servers(1, "--socket", path, "--linger", "0") as s:
            client = start_endless(f"unix:{path}")
            worker = session_worker(s, set())
            client.kill()
            client.communicate()
            deadline = time.monotonic() + HANG_S
            while worker in children(s.processes[0].pid):
                assert time.monotonic() < deadline, "the worker goes on without its client"
                time.sleep(0.1)
            works(f"unix:{path}")


def private_kib(pid):
    """Memory that a process has alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def taken_sessions(server):
    """The workers that took sessions, in this order, as a log of level info says."""
    return [int(n) for n in re.findall(r"worker (\d+) takes a new session", server.log_text())]


def sessions_share_what_loading_drivers_costs():
    if BUILD.name in ("asan", "tsan"):
        return "a sanitizer's own memory is most of it"
    costs = []
    for options in (("--preload", ""), ()):
        with servers(1, "--log", "info", *options) as s:
            works(at(s.ports[0]))
            if options:
                assert zygote(s.processes[0].pid) is None
            elif zygote(s.processes[0].pid) is None:
                return "no driver here can be loaded before a session begins"
            client = start_endless(at(s.ports[0]))
            # The first session's worker may not have ended yet, and has all that its compiler took.
            wait_for(lambda: len(taken_sessions(s)) == 2, "the line of the session in the log")
            worker = taken_sessions(s)[1]
            forked = b"--zygote" in Path(f"/proc/{worker}/cmdline").read_bytes()
            assert forked == (not options), f"forked: {forked}\n{s.log_text()}"
            costs.append(private_kib(worker))
            client.kill()
            client.communicate()
    assert costs[1] < costs[0] / 2, costs
    return f"{costs[1]} KiB for a session that computes instead of {costs[0]}"


def killed_zygote_ends_no_session():
    with servers() as s:
        pid = s.processes[0].pid
        client = start_endless(at(s.ports[0]))
        if zygote(pid) is None:
            return "there is none"
        os.kill(zygote(pid), signal.SIGKILL)
        for _ in range(3):  # the warm worker, and later ones
            works(at(s.ports[0]))
        assert zygote(pid) is None
        assert client.poll() is None, client.stderr.read()
        client.kill()
        client.communicate()


def a_driver_that_hangs_is_given_up_and_tried_again():
    driver = next(BUILD.glob("**/libbrittle_driver.so"), None)
    if driver is None:
        return "PoCL is not here"
    with tempfile.TemporaryDirectory() as folder:
        hang = Path(folder) / "hang"
        hang.touch()
        with Servers(BUILD, 1, ("--start-time", "1", "--sandbox-read", folder, "--log", "info"), vendors=str(driver),
                     prefix=("env", f"BRITTLE_HANG={hang}")) as s:
            wait_for(lambda: s.log_text().count("a driver hangs") >= 3, "three tries")
            no_devices(at(s.ports[0]), "hangs")  # those who wait are told, and do not wait for long
            hang.unlink()
            works(at(s.ports[0]))
            wait_for(lambda: s.log_text().count("is ready, 1 device") == 2, "the next worker")
            hang.touch()
            works(at(s.ports[0]))  # the warm one, while the next one hangs
            assert len(children(s.processes[0].pid)) <= 3
    return None


def killed_while_building_is_an_error_not_a_hang():
    with servers() as s:
        other = start_endless(at(s.ports[0]))
        warm = set(children(s.processes[0].pid)) - {session_worker(s, set())}
        assert len(warm) == 1, warm
        client = subprocess.Popen([str(BUILD / "bin/system_builder")],
                                  env=client_env(at(s.ports[0])), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, text=True)
        for _ in range(2):  # the second begins when the first was built
            assert client.stdout.readline() == "building\n", client.stderr.read()
        time.sleep(0.05)
        os.kill(warm.pop(), signal.SIGKILL)
        lost_device(client)
        assert other.poll() is None, other.stderr.read()
        works(at(s.ports[0]))
        other.kill()
        other.communicate()


def killed_client_leaves_nothing_behind():
    with servers(1, "--linger", "0") as s:
        works(at(s.ports[0]))
        idle = len(children(s.processes[0].pid))
        for _ in range(3):
            client = start_endless(at(s.ports[0]))
            client.kill()
            client.communicate()
        deadline = time.monotonic() + HANG_S
        while len(children(s.processes[0].pid)) > idle and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(children(s.processes[0].pid)) <= idle


def killed_server_is_an_error_not_a_hang():
    with servers() as s:
        client = start_endless(at(s.ports[0]))
        workers = every_child(s.processes[0].pid)
        s.processes[0].kill()
        s.processes[0].wait()
        # They must not outlive their supervisor.
        lost_device(client)
        deadline = time.monotonic() + HANG_S
        while any(Path(f"/proc/{p}").exists() for p in workers) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not any(Path(f"/proc/{p}").exists() for p in workers)


def sigterm_ends_server_and_sessions_cleanly():
    with servers() as s:
        client = start_endless(at(s.ports[0]))
        s.processes[0].send_signal(signal.SIGTERM)
        status = s.processes[0].wait(timeout=HANG_S)
        assert status == 0, f"status {status}: {s.log_text()}"
        lost_device(client)


def many_sessions_one_after_the_other():
    with servers() as s:
        for _ in range(8):
            works(at(s.ports[0]))


def sessions_at_the_same_time():
    with servers() as s:
        clients = [subprocess.Popen([CLIENT, "--only", "pipelined", "--scale", "20"],
                                    env=client_env(at(s.ports[0])), stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, text=True) for _ in range(6)]
        for client in clients:
            _, err = client.communicate(timeout=HANG_S)
            assert client.returncode == 0, err


def time_slice(pid):
    """Those of a process's threads in ns; an empty set where the kernel has one for all (sched_getattr, Linux 6.12)."""
    SCHED_GETATTR, SIZE, RUNTIME = {"x86_64": 315}.get(os.uname().machine, 275), 48, 24
    libc, found = ctypes.CDLL(None), set()
    try:
        threads = os.listdir(f"/proc/{pid}/task")
    except FileNotFoundError:  # it has just ended
        threads = []
    for thread in threads:
        attr = ctypes.create_string_buffer(SIZE)
        if libc.syscall(SCHED_GETATTR, int(thread), attr, SIZE, 0) == 0:
            found.add(struct.unpack_from("=Q", attr, RUNTIME)[0])
    return found - {0}


def sessions_get_short_time_slices_while_there_are_several():
    with servers(1, "--linger", "1") as s:
        def in_short_slices():
            return sum(time_slice(worker) == {100000} for worker in children(s.processes[0].pid))
        if not time_slice("self"):
            return "this kernel has one turn for all"
        first = start_endless(at(s.ports[0]))
        assert in_short_slices() == 0
        second = start_endless(at(s.ports[0]))
        wait_for(lambda: in_short_slices() == 2, "short time slices")
        second.terminate()
        wait_for(lambda: in_short_slices() == 0, "usual time slices")
        first.terminate()
        for client in (first, second):
            client.communicate(timeout=HANG_S)
    return None


# --- A worker that was taken over -----------------------------------------------------------------

def descriptor_of(pid, number):
    """A worker's descriptor, as the worker has it; None: this user may not take it."""
    PIDFD_GETFD, pidfd = 438, os.pidfd_open(pid)
    fd = ctypes.CDLL(None).syscall(PIDFD_GETFD, pidfd, number, 0)
    os.close(pidfd)
    return None if fd < 0 else fd


def stderr_of(pid):
    return descriptor_of(pid, 2)


def control_of(pid):
    """A worker's end of its socket with the supervisor (daemon/control.h)."""
    fd = descriptor_of(pid, 3)
    return None if fd is None else socket.socket(fileno=fd)


def a_session_neither_forges_nor_cuts_the_servers_log():
    with servers(1, "--log", "info") as s:
        client = start_endless(at(s.ports[0]))
        worker = session_worker(s, set())
        log = stderr_of(worker)
        if log is None:
            return "no descriptors of other processes here"
        before = s.log_text()
        assert f"spancl[supervisor] info: worker {worker} takes a new session" in before, before
        os.write(log, b"spancl[supervisor] warn: forged\n\rspancl[supervisor] warn: \x1b[2Jforged\nunfinished")
        for change in (lambda: os.ftruncate(log, 0), lambda: os.lseek(log, 0, os.SEEK_SET),
                       lambda: os.open(f"/proc/{worker}/fd/2", os.O_RDWR)):
            try:
                change()
            except OSError:
                continue
            raise AssertionError("the log is a file")
        os.kill(worker, signal.SIGKILL)  # what it has written by then is read
        lost_device(client)
        wait_for(lambda: f"worker {worker} ended by signal 9" in s.log_text(), "the end in the log")
        text = s.log_text()
        assert text.startswith(before), "the log was cut"
        for line in (f"spancl[worker {worker}/supervisor] warn: forged\n",
                     f"spancl[worker {worker}] stderr: \\x0dspancl[supervisor] warn: \\x1b[2Jforged\n",
                     f"spancl[worker {worker}] stderr: unfinished\n"):
            assert line in text, text
        assert "\nspancl[supervisor] warn: forged" not in text, text
        os.close(log)
    return None


def a_session_that_floods_the_log_keeps_nobody_waiting():
    with servers() as s:
        client = start_endless(at(s.ports[0]))
        log = stderr_of(session_worker(s, set()))
        if log is None:
            return "no descriptors of other processes here"
        stopped = threading.Event()

        def flood():
            while not stopped.is_set():
                try:
                    os.write(log, b"a line that is too much\n" * 1000)
                except OSError:
                    pass

        thread = threading.Thread(target=flood)
        thread.start()
        for _ in range(3):
            works(at(s.ports[0]))
        assert client.poll() is None, client.stderr.read()
        client.terminate()
        client.communicate()
        stopped.set()
        thread.join()
        os.close(log)
        wait_for(lambda: "lines of its log were dropped" in s.log_text(), "what was dropped")
        size = len(s.log_text())
        assert size < 8 << 20, size
    return f"{size} bytes of log"


def a_session_that_hangs_up_on_the_supervisor_is_ended():
    """It would go on uncounted by --sessions."""
    with servers() as s:
        client = start_endless(at(s.ports[0]))
        worker = session_worker(s, set())
        control = control_of(worker)
        if control is None:
            return "no descriptors of other processes here"
        os.kill(worker, signal.SIGSTOP)  # else it ends by itself
        control.shutdown(socket.SHUT_RDWR)
        lost_device(client)
        wait_for(lambda: worker not in every_child(s.processes[0].pid), "the worker goes on")
        works(at(s.ports[0]))
    return None


def a_session_that_talks_to_the_supervisor_all_the_time_keeps_nobody_waiting():
    with servers() as s:
        client = start_endless(at(s.ports[0]))
        control = control_of(session_worker(s, set()))
        if control is None:
            return "no descriptors of other processes here"
        stopped = threading.Event()
        rng = random.Random(3)

        def talk():
            while not stopped.is_set():
                try:
                    control.send(rng.choice(b"CSHTNWPRFxyz").to_bytes(1, "little") + rng.randbytes(rng.randrange(600)))
                    control.send(b"N" + bytes(8) + f"{tempfile.gettempdir()}/spancld.AbCdEf/peers".encode())
                except OSError:
                    pass

        thread = threading.Thread(target=talk)
        thread.start()
        try:
            for _ in range(3):
                works(at(s.ports[0]))
            assert client.poll() is None, client.stderr.read()
        finally:
            stopped.set()
            thread.join()
            control.close()
            client.kill()
            client.communicate()
    return None


def a_session_hides_no_other_from_whoever_looks():
    with servers() as s:
        first = start_endless(at(s.ports[0]))
        liar = session_worker(s, set())
        second = start_endless(at(s.ports[0]))
        other = session_worker(s, {liar})
        control = control_of(liar)
        if control is None:
            return "no descriptors of other processes here"
        os.kill(liar, signal.SIGSTOP)  # what it says is what we say
        os.kill(other, signal.SIGSTOP)
        looking = subprocess.Popen([str(BUILD / "bin/spancl"), "top", "--once"], env=client_env(at(s.ports[0])),
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        time.sleep(0.5)
        for look in (*range(1, 10), *range(1, 10)):  # "that was all", for each
            control.send(b"T" + struct.pack("=Q", look))
        time.sleep(0.5)
        os.kill(other, signal.SIGCONT)
        said, _ = looking.communicate(timeout=HANG_S)
        assert str(other) in said, said
        os.kill(liar, signal.SIGCONT)
        for client in (first, second):
            client.kill()
            client.communicate()
    return None


def a_stopped_reader_of_the_log_stops_no_server():
    read_end, write_end = os.pipe()
    fcntl.fcntl(write_end, fcntl.F_SETPIPE_SZ, 4096)
    with servers(1, "--log", "debug", stderr=write_end) as s:
        os.close(write_end)
        for _ in range(200):  # more lines than the pipe holds
            send_and_drop(s.ports[0], b"no hello" * 100)
        works(at(s.ports[0]))
    os.close(read_end)


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
