"""Starting and ending servers and choosing OpenCL implementations, for the benchmark scripts."""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
from pathlib import Path


def native_vendors(folder):
    """A folder of ICD files as the system has them, SpanCL's own left out."""
    given = os.environ.get("NATIVE_VENDORS")
    if given:
        return given
    vendors = Path(folder) / "native-vendors"
    vendors.mkdir(exist_ok=True)
    for icd in sorted(Path("/etc/OpenCL/vendors").glob("*.icd")):
        link = vendors / icd.name
        if "spancl" not in icd.read_text() and not link.exists():
            link.symlink_to(icd)
    return str(vendors)


def is_zygote(pid):
    """As long as its workers have not told their own names, they are no workers either."""
    try:
        return (Path(f"/proc/{pid}/comm").read_text() != "spancld-worker\n"
                and b"--zygote" in Path(f"/proc/{pid}/cmdline").read_bytes())
    except OSError:
        return False


def is_dialler(pid):
    try:
        return b"--dialler" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_meter(pid):
    """It measures what sessions hold."""
    try:
        return b"--meter" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_exporter(pid):
    """It serves metrics."""
    try:
        return b"--exporter" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def every_child(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_check(pid):
    """It checks a device after a session has ended badly."""
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "spancld-check\n"
    except OSError:
        return False


def is_sensors(pid):
    """It asks the drivers' libraries about devices."""
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "spancld-sensors\n"
    except OSError:
        return False


def is_allocator(pid):
    """Is the process the allocator, which makes device memory that workers share?"""
    try:
        return b"--allocator" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def is_janitor(pid):
    """It takes the files of ended sessions away."""
    try:
        return Path(f"/proc/{pid}/comm").read_text() == "spancld-janitor\n"
    except OSError:
        return False


def children(pid):
    """A server's workers."""
    others = (is_zygote, is_dialler, is_janitor, is_check, is_meter, is_exporter, is_sensors, is_allocator)
    return [p for p in every_child(pid) if not any(other(p) for other in others)]


def zygote(pid):
    """The process that a server's workers are forked from; None: each is a program started anew."""
    return next(filter(is_zygote, every_child(pid)), None)


def dialler(pid):
    """The process that makes a server's links to others; None: there is none now."""
    return next(filter(is_dialler, every_child(pid)), None)


def kept_port():
    """A free port that stays free while no server has it. Other sockets do not get it by chance, because it is below the
    range from which the kernel gives ports."""
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.randrange(max(low // 2, 1024), low)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


class Servers:
    """Some spancld on free loopback ports, or on `ports`, and on Unix sockets ("unix", and "shm" with shared memory);
    ended by process id. Their log is kept, or goes to the descriptor `stderr`. "in-process": the environment names no
    server but the devices of this host."""

    def __init__(self, build, count=1, options=(), prefix=(), vendors=None, transport="tcp", stderr=None,
                 pass_fds=(), ports=None):
        self.build = Path(build).resolve()
        self.processes = []
        self.kept = ports or [0] * count
        self.ports = []
        self.transport = transport
        self.folder = tempfile.TemporaryDirectory()
        self.log = tempfile.TemporaryFile()
        env = {k: v for k, v in os.environ.items()
               if not k.startswith("SPANCL_") or k == "SPANCL_KEYS"}
        if vendors:
            env["OCL_ICD_VENDORS"] = vendors
            env.pop("OCL_ICD_FILENAMES", None)  # it names further implementations
        # A sanitizer reads this when a worker ends, in its sandbox.
        known = env.get("LSAN_OPTIONS", "").partition("suppressions=")[2].split(":")[0]
        if known and "--sandbox-read" not in options:
            options = (*options, "--sandbox-read", str(Path(known).parent))
        for i in range(count):
            command = [*prefix, str(self.build / "bin/spancld"), *self.listen(i), *options]
            words = self.start(command, env, pass_fds, stderr)
            while self.kept[i] and "the address is in use" in self.log_text():
                # A process that a killed server was just starting has the server's sockets for another moment.
                self.processes.pop().wait()
                self.log.seek(0)
                self.log.truncate()
                words = self.start(command, env, pass_fds, stderr)
            if len(words) != 2 or words[0] != "ready":
                self.stop()
                raise RuntimeError("spancld did not come up:\n" + self.log_text())
            self.ports.append(int(words[1]))

    def start(self, command, env, pass_fds, stderr):
        """Start one server. Returns the words it says when it is ready, or none if it ends before."""
        read_end, write_end = os.pipe()
        self.processes.append(subprocess.Popen([*command, "--ready-fd", str(write_end)], env=env,
                                               pass_fds=[write_end, *pass_fds], stdin=subprocess.DEVNULL,
                                               stdout=self.log, stderr=self.log if stderr is None else stderr))
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            return ready.readline().split()

    def listen(self, i):
        address = f"127.0.0.1:{self.kept[i]}"
        if self.transport in ("tcp", "in-process"):
            return ["--listen", address]
        share = "on" if self.transport == "shm" else "off"
        return ["--listen", address, "--socket", f"{self.folder.name}/{i}.socket", "--shared-memory", share]

    def address(self, i):
        if self.transport == "in-process":
            return self.transport
        return f"localhost:{self.ports[i]}" if self.transport == "tcp" \
            else f"unix:{self.folder.name}/{i}.socket"

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def environment(self):
        env = dict(os.environ)
        env["OCL_ICD_VENDORS"] = str(self.build / "etc/vendors")
        env["SPANCL_SERVERS"] = " ".join(map(self.address, range(len(self.ports))))
        return env

    def stop(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.processes:
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.stop()
        # The findings of sanitizers, in builds with them.
        log = re.sub("LeakSanitizer has encountered a fatal error.*", "", self.log_text())  # its own failure
        if kind is None and ("Sanitizer" in log or "runtime error:" in log):
            raise RuntimeError("a server has a fault:\n" + log)
