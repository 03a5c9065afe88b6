#!/usr/bin/env python3
"""measured.py BUILD [NAME...]: claims about sessions that hold more than they may, over real processes whose kernels make system
calls (misbehave.c). Control groups do not help here. Each function is one claim."""

import os
import platform
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from endings import NAME, Devices, claims, end, kib_of, left, staying, wait_for, without_groups  # noqa: E402

LIMITS = ("--session-memory", "512", "--session-processes", "64", "--session-disk", "256")


class Measured(Devices):
    """A server without control groups, with a folder for scratch folders of its own."""

    def __init__(self, *options):
        self.temporary = tempfile.TemporaryDirectory()
        self.taken = set()  # scratch folders of sessions
        super().__init__(*LIMITS, *options, prefix=("env", f"TMPDIR={self.temporary.name}", *without_groups()))

    def __exit__(self, *error):
        super().__exit__(*error)
        self.temporary.cleanup()

    def wait_for_worker(self):
        """The scratch folder of the next session."""
        def found():
            return [p for p in Path(self.temporary.name).glob("spancld.*")
                    if p not in self.taken and not (p / "peers").exists()]
        wait_for(lambda: len(found()) == 1, lambda: f"{found()}\n{self.log()}")
        return found()[0]

    def start(self, *what, **more):
        scratch = self.wait_for_worker()
        self.taken.add(scratch)
        return super().start(*(scratch if word == "SCRATCH" else word for word in what), **more)

    def meters(self):
        """The meter's processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [int(p) for p in children if comm(p) == "spancld-meter"]


def comm(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


class Session:
    """A session that keeps what it has. It is told when it comes back."""

    def __init__(self, d, *what):
        self.errors = tempfile.TemporaryFile("w+")
        self.d = d
        self.process = d.start("keep", *what, SPANCL_ON_LOSS="wait", stderr=self.errors)

    def said(self):
        return os.pread(self.errors.fileno(), 1 << 20, 0).decode(errors="replace")

    def answer(self):
        line = self.process.stdout.readline().strip()
        assert line, self.said() + self.d.log()
        return line

    def end(self):
        end(self.process)
        self.errors.close()


def is_ended(d, option, *what):
    """Such a session ends, it alone, and the client and the log are told which limit it was."""
    session = Session(d, *what)
    # A client that has lost its session may have begun another one with another folder.
    while session.process.stdout.readline().strip().startswith("-"):
        session.end()
        session = Session(d, *what)
    wait_for(lambda: option in session.said(), lambda: session.said() + d.log())
    assert "is over: " in d.log() and option in d.log(), d.log()
    wait_for(lambda: not left(), lambda: f"{len(left())} processes\n" + d.log())
    session.end()


def a_session_beyond_its_limits_ends_alone():
    for options in (), ("--namespaces", "0"):
        with Measured(*options) as d:
            other = staying(d)
            is_ended(d, "--session-memory", "memory", 2048)
            is_ended(d, "--session-disk", "unnamed", "SCRATCH", 384)
            is_ended(d, "--session-disk", "fill", "SCRATCH", 6, 64)
            if options:  # else the kernel refuses them: the session has a user of its own
                is_ended(d, "--session-processes", "leave", NAME, 200)
            assert other.poll() is None, d.log()
            end(other)


def a_session_within_its_limits_goes_on():
    with Measured("--session-processes", "400") as d:
        # All of them have the worker's memory, and together more than the limit if it counted for each.
        processes = Session(d, "leave", NAME, 200)
        processes.answer()
        memory = Session(d, "memory", 400)
        assert memory.answer() == "0", d.log()
        files = Session(d, "unnamed", "SCRATCH", 192)
        assert files.answer() == "0", d.log()
        begin = time.monotonic()
        while time.monotonic() < begin + 8:  # some measurements
            assert "is over" not in d.log(), d.log()
            time.sleep(0.5)
        assert len(left()) == 200
        for session in (processes, memory, files):
            session.end()


def a_meter_is_there_with_sessions_only():
    with Measured() as d:
        d.wait_for_worker()
        assert not d.meters()
        for _ in range(2):
            other = staying(d)
            wait_for(lambda: len(d.meters()) == 1, d.log)
            end(other)
            wait_for(lambda: not d.meters(), d.log)
        assert "the meter has ended" not in d.log()


def a_meter_that_dies_is_replaced():
    with Measured() as d:
        other = staying(d)
        wait_for(lambda: len(d.meters()) == 1, d.log)
        os.kill(d.meters()[0], 9)
        wait_for(lambda: "the meter has ended" in d.log(), d.log)
        is_ended(d, "--session-memory", "memory", 2048)
        assert other.poll() is None, d.log()
        end(other)


def a_cache_that_a_session_fills_is_trimmed_while_it_goes_on():
    with Measured("--cache-size", "16") as d:
        pocl = Path(f"{d.cache}-drivers") / "pocl"
        wait_for(pocl.is_dir, "no folder")
        session = Session(d, "fill", pocl, 8, 64)
        assert session.answer() == "0", d.log()

        def is_trimmed():
            for path in pocl.glob("junk-*"):  # files of the last minute stay otherwise
                try:
                    os.utime(path)
                except OSError:
                    pass
            # The meter lets caches exceed --cache-size by --session-disk: the last files may stay.
            return kib_of(d.cache.parent) <= (16 + 256) << 10
        wait_for(is_trimmed, lambda: f"{kib_of(d.cache.parent)} KiB\n" + d.log())
        assert session.process.poll() is None and "is over" not in d.log(), d.log()
        session.end()


if __name__ == "__main__":
    if platform.machine() != "x86_64":
        print("skipped: the kernels are for x86-64")
        sys.exit(77)
    sys.exit(claims.run(globals()))
