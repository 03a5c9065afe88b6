#!/usr/bin/env python3
"""endings.py BUILD [NAME...]: claims about what a session leaves when it ends, over real processes: sessions whose kernels
make system calls (misbehave.c), which start processes, take memory and fill folders. Each function is one claim."""

import errno
import os
import platform
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from claims import wait_for  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 120  # a watchdog, not a claim about speed
PROCESSES = 200
NAME = f"left-{os.getpid()}"


def groups_mount():
    """The mount of cgroup v2; None: there is none."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        if line.split()[2] == "cgroup2":
            return Path(line.split()[1])
    return None


def own_group():
    """This process's control group, if children of it can be made."""
    own = [x[3:] for x in Path("/proc/self/cgroup").read_text().splitlines() if x.startswith("0::")]
    mount = groups_mount()
    folder = mount / own[0].lstrip("/") if mount and own else None
    return folder if folder and os.access(folder, os.W_OK) else None


def within(command):
    """A prefix of commands that are run with file systems of their own, after `command`."""
    user = () if os.geteuid() == 0 else ("-r",)
    return ("unshare", *user, "--mount", "sh", "-c", f"{command} && exec \"$@\"", "-")


def without_groups():
    """A prefix of commands that can't make control groups."""
    return within(f"mount -t tmpfs none {groups_mount()}") if own_group() else ()


class Devices:
    """A server with this host's OpenCL devices and a cache of its own, on a full disk perhaps."""

    def __init__(self, *options, prefix=(), full=False):
        self.folder = tempfile.TemporaryDirectory()
        disk = Path(self.folder.name) / "disk"
        disk.mkdir()
        self.cache = disk / "cache"
        if full:
            prefix = within(f"mount -t tmpfs -o size=1m none {disk} && mkdir -p {self.cache} {self.cache}-drivers/pocl && "
                            f"{{ head -c 2M /dev/zero 2>/dev/null >{disk}/large; true; }}")
        self.servers = Servers(BUILD, 1, ("--linger", "0", "--cache", str(self.cache), *options), prefix=prefix,
                               vendors=native_vendors(self.folder.name))
        self.pid = self.servers.processes[0].pid

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.servers.stop()
        for pid in left():
            os.kill(pid, signal.SIGKILL)
        self.folder.cleanup()

    def start(self, *what, stderr=subprocess.PIPE, **more):
        return subprocess.Popen([str(BUILD / "bin/system_misbehave"), *map(str, what)],
                                env={**self.servers.environment(), **more}, text=True,
                                stdout=subprocess.PIPE, stderr=stderr)

    def run(self, *what, **more):
        client = self.start(*what, **more)
        out, error = client.communicate(timeout=HANG_S)
        return client.returncode, out.strip(), error

    def log(self):
        return self.servers.log_text()


def left():
    """Processes by our name."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        folder = Path("/proc", pid)
        try:
            if (folder / "comm").read_text().strip() == NAME and " Z " not in (folder / "stat").read_text():
                found.append(int(pid))
        except OSError:
            pass
    return found


def end(client):
    client.kill()
    client.communicate()


def staying(d):
    """A session that does nothing wrong."""
    client = d.start("leave", "other", 0)
    assert client.stdout.readline(), client.communicate()[1] + d.log()
    return client


def leaving(d):
    """A session that has left its processes."""
    client = d.start("leave", NAME, PROCESSES)
    assert client.stdout.readline().strip(), client.communicate()[1]
    wait_for(lambda: len(left()) == PROCESSES, lambda: f"{len(left())} processes")
    return client


def both():
    """With control groups, where there are some, and without."""
    yield (), own_group() is not None
    if own_group() is not None:
        yield without_groups(), False


def processes_of_a_session_end_with_it():
    for prefix, _ in both():
        with Devices(prefix=prefix) as d:
            other = staying(d)
            for _ in range(2):
                end(leaving(d))
                wait_for(lambda: not left(), lambda: f"{len(left())} processes\n" + d.log())
            assert other.poll() is None
            end(other)


def processes_of_a_killed_worker_end_with_it():
    for prefix, _ in both():
        with Devices(prefix=prefix) as d:
            client = leaving(d)
            parents = {Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()[1] for p in left()}
            assert len(parents) == 1, parents  # all of them are the worker's
            os.kill(int(parents.pop()), signal.SIGKILL)
            wait_for(lambda: not left(), lambda: f"{len(left())} processes\n" + d.log())
            end(client)


def a_process_that_is_replaced_all_the_time_ends_too():
    for prefix, _ in both():
        with Devices(prefix=prefix) as d:
            client = d.start("chase", NAME)
            assert client.stdout.readline().strip()
            end(client)
            seen = [0]

            def gone():
                seen[0] = 0 if left() else seen[0] + 1
                return seen[0] > 10
            wait_for(gone, lambda: "it is there\n" + d.log())


def processes_of_sessions_end_with_the_server():
    for prefix, _ in both():
        with Devices(prefix=prefix) as d:
            client = leaving(d)
            d.servers.processes[0].send_signal(signal.SIGTERM)
            assert d.servers.processes[0].wait(HANG_S) == 0, d.log()
            assert not left(), len(left())
            end(client)


def the_next_server_ends_the_processes_of_a_killed_one():
    if own_group() is None:
        return "there are no control groups"
    with Devices() as d:
        client = leaving(d)
        d.servers.processes[0].kill()
        d.servers.processes[0].wait()
        end(client)
        with Devices():
            wait_for(lambda: not left(), lambda: f"{len(left())} processes")
    return None


def processes_that_are_not_a_sessions_are_left_alone():
    # A process that a shell has started before it became spancld is spancld's child.
    with Devices(prefix=("sh", "-c", "sleep 1000 & exec \"$@\"", "-")) as d:
        end(leaving(d))
        wait_for(lambda: not left(), lambda: f"{len(left())} processes\n" + d.log())
        children = Path(f"/proc/{d.pid}/task/{d.pid}/children").read_text().split()
        sleeping = [p for p in children if Path(f"/proc/{p}/comm").read_text() == "sleep\n"]
        assert len(sleeping) == 1, children
        os.kill(int(sleeping[0]), signal.SIGKILL)


def memory_beyond_the_limit_ends_a_session_alone():
    # A spancld gets controllers where no other process is in its group.
    group = own_group() and own_group() / f"spancl-endings.{os.getpid()}"
    if group is None:
        return "there are no control groups"
    group.mkdir()
    try:
        if "memory" not in (group / "cgroup.controllers").read_text().split():
            return "control groups do not limit memory here"
        prefix = ("sh", "-c", f"echo $$ >{group}/cgroup.procs && exec \"$@\"", "-")
        with Devices("--session-memory", "512", prefix=prefix) as d:
            assert "does not limit memory" not in d.log(), d.log()
            other = staying(d)
            status, out, _ = d.run("memory", 64)
            assert (status, out) == (0, "0"), (status, out)
            # The client comes back to its session and gets the error.
            status, _, error = d.run("memory", 4096, SPANCL_ON_LOSS="wait")
            assert status == 1, status
            assert "--session-memory" in d.log(), d.log()
            assert "--session-memory" in error, error
            assert other.poll() is None
            end(other)
    finally:
        group.rmdir()
    return None


def kib_of(folder):
    # du fails when files vanish while it counts: a compiler or the server removes them. The total is still printed.
    total = subprocess.run(["du", "-skx", str(folder)], stdout=subprocess.PIPE, check=False)
    return int(total.stdout.split()[0])


def a_cache_that_a_session_has_filled_is_cut_back():
    with Devices("--cache-size", "16") as d:
        drivers = Path(f"{d.cache}-drivers")
        pocl = drivers / "pocl"
        wait_for(pocl.is_dir, "no folder")
        outside = Path(d.folder.name) / "outside"
        outside.mkdir()
        (outside / "precious").write_bytes(bytes(32 << 20))
        os.utime(outside / "precious", (1, 1))
        # The server opens what is in there for the next session.
        status, out, error = d.run("link", drivers, outside)
        assert status == 0 and -int(out) in (errno.EROFS, errno.EACCES), (out, error)
        for _ in range(2):
            status, out, error = d.run("link", pocl, outside)
            assert status == 0 and -int(out) in (0, errno.EEXIST), (out, error)
            status, out, error = d.run("fill", pocl, 8, 4)
            assert (status, out) == (0, "0"), (out, error)
            wait_for(lambda: kib_of(drivers) <= 16 << 10, lambda: f"{kib_of(drivers)} KiB\n" + d.log())
        assert (outside / "precious").stat().st_size == 32 << 20


def a_build_that_fails_on_a_full_disk_says_so():
    if subprocess.run([*within("true"), "true"], check=False, stderr=subprocess.DEVNULL).returncode:
        return "mount namespaces are not permitted here"
    with Devices(full=True) as d:
        status, _, error = d.run("memory", 1)
        assert (status, "disk for compiled programs is full" in error) == (77, True), (status, error)
        wait_for(lambda: f"the disk of {d.cache}" in d.log(), d.log)
    return None


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skipped: the kernels are for x86-64")
        sys.exit(77)
    sys.exit(claims.run(globals()))
