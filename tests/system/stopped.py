#!/usr/bin/env python3
"""stopped.py BUILD [NAME...]: claims about processes that stop for longer than SPANCL_LINK_TIMEOUT and go on: a
server's worker, a whole server, a proxy in between. Programs end right with the defaults. Each function is one claim.

Without SPANCL_STOP_S, some programs meet some of these processes, which stop for 7, 20 and 50 s. With SPANCL_STOP_S=SECONDS,
all programs meet all of them, in all phases of theirs, clpeak and hashcat among them if they are installed. That takes
minutes."""

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import claims
from daemon import BUILD, CLIENT, HANG_S, ROOT, at, children, client_env, servers, session_worker, wait_for

VICTIMS = ("worker", "server", "proxy")
PROXY = f"""
import sys
sys.path.insert(0, {str(ROOT / "bench")!r})
from relay import Relay
print(Relay(int(sys.argv[1])).port, flush=True)
sys.stdin.read()
"""
HASH = hashlib.md5(b"zzzzz91").hexdigest()
SEARCH = ["stdbuf", "-oL", "hashcat", "--force", "-D", "1", "-m", "0", "-a", "3", "--potfile-disable", "--restore-disable",
          "--session", "SESSION", "--status", "--status-timer", "1", "--machine-readable", HASH, "?l?l?l?l?l?d?d"]
# The command, what it prints when it is to be stopped, and what its output has in the end. Without the second, it is
# stopped while its kernels are built or run.
PROGRAMS = {
    "transfers": ([CLIENT, "--only", "transfer", "--max-mib", "16", "--scale", "300"], '"read_1m', ""),
    "commands": ([CLIENT, "--only", "empty", "--scale", "3000"], '"first_context"', ""),
    "flow": ([str(BUILD / "bin/lbm"), "--size", "32x32x32", "--steps", "6000", "--domains", "2"], None, "fingerprint"),
}
OTHERS = {
    "clpeak_builds": (["clpeak", "--kernel-latency"], None, "latency"),
    "clpeak_bandwidth": (["clpeak", "--global-bandwidth"], "Global memory", "float16 +: +[0-9.]+"),
    "clpeak_computes": (["clpeak", "--compute-sp"], "Single-precision", "float16 +: +[0-9.]+"),
    "clpeak_transfers": (["clpeak", "--transfer-bandwidth"], "Transfer bandwidth", "memcpy to mapped ptr +: +[0-9.]+"),
    "hashcat_builds": (SEARCH, None, f"{HASH}:zzzzz91"),
    "hashcat_searches": (SEARCH, "STATUS\t3", f"{HASH}:zzzzz91"),
}


class Run:
    """A program, a server of its own, and a proxy in between if that is the victim."""

    def __init__(self, victim, program, seconds):
        self.victim, self.program, self.seconds, self.stopped = victim, program, seconds, []
        command, self.begins, self.ends = {**PROGRAMS, **OTHERS}[program]
        self.home = tempfile.TemporaryDirectory()
        command = [Path(self.home.name).name if word == "SESSION" else word for word in command]  # hashcat's lock
        self.said = ""
        self.server = servers(2 if program == "flow" else 1)
        self.proxy = None
        places = [at(port) for port in self.server.ports]
        if victim == "proxy":
            self.proxy = subprocess.Popen([sys.executable, "-c", PROXY, str(self.server.ports[0])], text=True,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            places[0] = at(int(self.proxy.stdout.readline()))
        self.client = subprocess.Popen(command, env=client_env(" ".join(places), HOME=self.home.name),
                                       text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def pids(self):
        if self.proxy:
            return [self.proxy.pid]
        worker = session_worker(self.server, set())
        return [worker] if self.victim == "worker" else [worker, self.server.processes[0].pid]

    def await_begin(self):
        if not self.begins:
            wait_for(self.computes, "the program does not begin")
            return
        for line in self.client.stdout:
            self.said += line
            if self.begins in line:
                return
        raise AssertionError(self.said + self.client.communicate()[1])

    def computes(self):
        """Has its session used a third of a second of processor time?"""
        if not children(self.server.processes[0].pid):
            return False
        worker = session_worker(self.server, set())
        used = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, used)) >= os.sysconf("SC_CLK_TCK") / 3

    def stop(self):
        """Stops the victim once the program has begun."""
        self.await_begin()
        assert self.client.poll() is None, f"{self.program}: it ended before"
        for pid in self.pids():
            os.kill(pid, signal.SIGSTOP)
            self.stopped.append(pid)

    def go_on(self):
        for pid in self.stopped:
            os.kill(pid, signal.SIGCONT)
        self.stopped.clear()

    def check(self, took_s):
        out, err = self.client.communicate(timeout=HANG_S)
        out = self.said + out
        about = f"{self.program}, {self.victim} stopped for {took_s:.0f} s: "
        assert self.client.returncode == 0 and re.search(self.ends, out), (
            f"{about}status {self.client.returncode}: {out}{err}{self.server.log_text()}")
        assert not re.search(r"\b(error|failed|nan|inf)\b", out, re.I), about + out
        # For a while the host's system acknowledges, so no link is lost.
        assert took_s >= 15 or not err, about + err

    def end(self):
        self.go_on()
        self.client.kill()
        self.client.communicate()
        if self.proxy:
            self.proxy.kill()
            self.proxy.communicate()
        self.server.stop()
        self.home.cleanup()


def ends_right(victim, name, seconds):
    run = Run(victim, name, seconds)
    try:
        run.stop()
        begin = time.monotonic()
        time.sleep(seconds)
        took_s = time.monotonic() - begin
        run.go_on()
        run.check(took_s)
    finally:
        run.end()
    print(f"      {victim} stops for {took_s:.1f} s, {name}", flush=True)
    return took_s


def processes_that_stop_lose_no_session():
    if "SPANCL_STOP_S" in os.environ:
        names = [name for name, (command, *_) in {**PROGRAMS, **OTHERS}.items()
                 if shutil.which(command[0]) and (command != SEARCH or shutil.which("hashcat"))]
        which = [(v, n, float(os.environ["SPANCL_STOP_S"])) for v in VICTIMS for n in names]
    else:
        which = [("worker", "transfers", 7), ("worker", "flow", 7), ("server", "commands", 7), ("proxy", "transfers", 7),
                 ("server", "transfers", 20), ("worker", "commands", 50), ("server", "flow", 50), ("proxy", "flow", 50)]
    with ThreadPoolExecutor(8) as pool:
        runs = [pool.submit(ends_right, *one) for one in which]
        bad = [str(e) for e in (run.exception() for run in runs) if e]
    assert not bad, "\n".join(bad)
    late = [run.result() for run, one in zip(runs, which) if one[2] < 15 <= run.result()]
    return f"{len(late)} stopped for too long to check warnings" if late else None


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
