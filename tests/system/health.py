#!/usr/bin/env python3
"""health.py BUILD DRIVER [NAME...]: claims about devices that are out of order, over real processes: two devices of PoCL behind
a driver (support/brittle) that lets one of them hang, fail, lie or crash while a file is there. Each function is one claim."""

import ctypes
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from claims import wait_for  # noqa: E402
import scrape  # noqa: E402
from servers import Servers, children, every_child, is_check  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
DRIVER = str(Path(sys.argv.pop(2)).resolve())
HANG_S = 150  # a watchdog, not a claim about speed
OUT = "is out of service after 3 failed checks"


class Sick:
    """A server with two devices, which can be made sick."""

    def __init__(self, *options, sick=None):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "sick"
        self.ready = 1 if sick else 2
        if sick:
            self.spoil(*sick)
        os.environ.update(POCL_DEVICES="pthread basic", BRITTLE_SICK=str(self.path))
        self.servers = Servers(BUILD, 1, ("--log", "info", "--linger", "0", "--metrics", "localhost:0", "--sandbox-read", self.folder.name, *options),
                               vendors=DRIVER)
        self.pid = self.servers.processes[0].pid

    def __enter__(self):
        wait_for(lambda: f"is ready, {self.ready} device(s)" in self.log(), self.log)
        return self

    def __exit__(self, kind, *_):
        for file in Path(self.folder.name).iterdir():
            file.unlink()
        self.servers.stop()
        if kind:
            print(self.log())
        self.folder.cleanup()

    def log(self):
        return self.servers.log_text()

    def says(self, text, count=1):
        wait_for(lambda: self.log().count(text) >= count, lambda: f"no '{text}' in:\n{self.log()}")

    def spoil(self, device, how):
        file = Path(f"{self.path}.{device}.{how}")
        file.touch()
        return file

    def start(self, device):
        client = subprocess.Popen([str(BUILD / "bin/system_sick"), str(device)], env=self.servers.environment(),
                                  text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        said = client.stdout.readline()
        assert said == "ready\n", said + client.communicate(timeout=HANG_S)[1] + self.log()
        return client

    def works(self, device):
        client = self.start(device)
        out, err = client.communicate("\n", timeout=HANG_S)
        assert (client.returncode, out) == (0, "ok\n"), f"{out}{err}\n{self.log()}"

    def crash(self):
        """A session whose process dies."""
        seen = self.log().count("takes a new session (system_sick)")
        client = self.start(0)
        line = [x for x in self.log().splitlines() if "takes a new session (system_sick)" in x][seen]
        worker = int(line.split("worker ")[1].split()[0])
        os.kill(worker, signal.SIGKILL)
        self.says(f"worker {worker} ended by signal 9")
        client.kill()
        client.communicate()

    def spancl(self, *command):
        return subprocess.run([str(BUILD / "bin/spancl"), *command], env=self.servers.environment(), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, check=False)

    def state(self, device, state):
        """Whether the metrics say that the device is in that state."""
        metrics = scrape.scrape(scrape.address_in(self.log()))
        return scrape.of(metrics, "spancl_device_state", f'device="{device}"', f'state="{state}"') == 1

    def listed(self):
        """The devices that a session gets, and those that none gets."""
        done = self.spancl("list", "--quick")
        lines = done.stdout.splitlines()[1:]
        assert done.returncode == 0, done.stdout + done.stderr
        return ([x for x in lines if " compute units" in x], [x for x in lines if x.startswith("  device ")])


def healthy_devices_are_not_checked():
    with Sick() as s:
        for _ in range(3):
            s.works(0)
            s.works(1)
        assert "check" not in s.log(), s.log()
        devices, out = s.listed()
        assert (len(devices), out) == (2, []), (devices, out)


def a_session_that_dies_makes_a_check_of_each_device():
    with Sick() as s:
        s.crash()
        for device in range(2):
            s.says(f"device {device} (")
        wait_for(lambda: s.log().count("has passed a check") == 2, s.log)
        s.works(1)
        devices, out = s.listed()
        assert (len(devices), out) == (2, []), (devices, out)
        assert "failed a check" not in s.log() and not any(map(is_check, every_child(s.pid))), s.log()


def a_device_that_fails_is_out_of_service_until_it_works():
    with Sick() as s:
        file = s.spoil(1, "fail")
        s.crash()
        s.works(0)  # it waits for the check, and gets no device that has failed one
        assert s.log().count("device 1 (") >= 1, s.log()
        s.says(OUT)
        assert f"device 1 (" in s.log().split(OUT)[0].splitlines()[-1], s.log()
        devices, out = s.listed()
        assert len(devices) == 1 and len(out) == 1, (devices, out)
        assert out[0].startswith("  device 1 (") and ": out of service: a write fails" in out[0], out
        assert out[0] in s.spancl("top", "--once").stdout.splitlines()
        assert s.state(1, "out_of_service") and not s.state(1, "in_service") and s.state(0, "in_service")
        s.works(0)
        file.unlink()
        s.says("is in service again")  # after a minute
        assert s.log().count(OUT) == 1, s.log()
        devices, out = s.listed()
        assert (len(devices), out) == (2, []), (devices, out)
        wait_for(lambda: s.state(1, "in_service"), s.log)  # the same text serves for a second
        s.works(1)


def findings_of_a_check_are_reported():
    for how, why in (("lie", "it gives back other bytes than were written"),
                     ("crash", "a process that checks it ends with status 70")):
        with Sick() as s:
            s.spoil(1, how)
            s.crash()
            s.says(f"{OUT}: {why}")
            devices, out = s.listed()
            assert len(devices) == 1 and f": out of service: {why}" in out[0], (devices, out)


def a_client_is_told_that_no_device_is_in_service():
    with Sick() as s:
        for device in range(2):
            s.spoil(device, "fail")
        s.crash()
        s.says(OUT, 2)
        done = s.spancl("list", "--quick")
        assert done.returncode == 1 and "is out of service: a write fails" in done.stderr, done.stdout + done.stderr


def a_driver_that_hangs_in_a_call_ends_its_session_alone(*options, asks=False):
    with Sick("--session-run-time", "1", "--start-time", "4", *options) as s:
        other = s.start(0)
        client = s.start(1)
        workers = set(children(s.pid))
        s.spoil(1, "hang")
        client.stdin.write("\n\n")
        client.stdin.flush()
        if asks:  # the loop's thread answers nothing any more
            s.spancl("top", "--once")
        # Both calls fail with the session: with CL_DEVICE_NOT_AVAILABLE, or as a wait that failed.
        said = [client.stdout.readline() for _ in range(2)]
        assert all(x.startswith("error -") for x in said), said
        client.kill()
        client.communicate()
        s.says("a call of a driver does not return (--session-run-time)")
        wait_for(lambda: len(workers - set(children(s.pid))) > 0, s.log)
        s.works(0)  # while device 1 is looked at, and after
        s.says(OUT + ": it does not answer")
        s.works(0)
        devices, out = s.listed()
        assert len(devices) == 1 and out[0].endswith("out of service: it does not answer"), (devices, out)
        out, err = other.communicate("\n", timeout=HANG_S)
        assert out == "ok\n", out + err


def samples_of_energy_and_queries_do_not_hide_a_driver_that_hangs():
    """The thread that watches the driver answers them, too."""
    with tempfile.TemporaryDirectory() as folder:
        zone = Path(folder) / "intel-rapl:0"
        zone.mkdir()
        for name, value in ("name", "package-0"), ("max_energy_range_uj", "262143328850"), ("energy_uj", "1000000"):
            (zone / name).write_text(f"{value}\n")
        a_driver_that_hangs_in_a_call_ends_its_session_alone("--powercap", folder, asks=True)


def a_device_that_hangs_from_the_start_keeps_no_other_from_working():
    with Sick("--start-time", "4", sick=(0, "hang")) as s:
        s.says(OUT)
        devices, out = s.listed()
        assert len(devices) == 1 and len(out) == 1 and out[0].startswith("  device 0 ("), (devices, out)
        s.works(0)  # the other one


def descriptor_of(pid, fd):
    """A copy of another process's descriptor; None: the system does not give it."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(434, pid, 0)  # pidfd_open
    copy = libc.syscall(438, handle, fd, 0) if handle >= 0 else -1  # pidfd_getfd
    if handle >= 0:
        os.close(handle)
    return None if copy < 0 else copy


def a_session_has_no_say_about_devices():
    with Sick() as s:
        client = s.start(0)
        line = [x for x in s.log().splitlines() if "takes a new session (system_sick)" in x][-1]
        worker = int(line.split("worker ")[1].split()[0])
        control = descriptor_of(worker, 3)
        if control is None:
            client.kill()
            client.communicate()
            return "no descriptors of other processes here"
        for _ in range(10):
            for said in (b"Bit is broken", b"R1\n7 unheard-of device", b"F0"):
                os.write(control, said)
        os.close(control)
        out, err = client.communicate("\n", timeout=HANG_S)
        assert out == "ok\n", out + err
        assert "check" not in s.log() and "unheard-of" not in s.log(), s.log()
        devices, out = s.listed()
        assert (len(devices), out) == (2, []), (devices, out)
    return None


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
