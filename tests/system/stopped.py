#!/usr/bin/env python3
"""stopped.py BUILD [NAME...]: claims about processes that stop for longer than SPANCL_LINK_TIMEOUT and go on: a
server's worker, a whole server, a proxy in between. Programs end right with the defaults, and are told nothing. Each
function is one claim. SPANCL_STOP_S: how long they stop. Without it they stop for 7 s, and not every program meets
every one of them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import claims
from daemon import BUILD, CLIENT, HANG_S, ROOT, at, children, client_env, servers, session_worker, wait_for

STOP_S = float(os.environ.get("SPANCL_STOP_S", "7"))
VICTIMS = ("worker", "server", "proxy")
PROXY = f"""
import sys
sys.path.insert(0, {str(ROOT / "bench")!r})
from relay import Relay
print(Relay(int(sys.argv[1])).port, flush=True)
sys.stdin.read()
"""
PROGRAMS = {
    "transfers": ([CLIENT, "--only", "transfer", "--max-mib", "16", "--scale", "300"], '"read_1m'),
    "commands": ([CLIENT, "--only", "empty", "--scale", "3000"], '"first_context"'),
    "flow": ([str(BUILD / "bin/lbm"), "--size", "32x32x32", "--steps", "6000", "--domains", "2"], None),
}


class Run:
    """A program, a server of its own, and a proxy in between if that is the victim."""

    def __init__(self, victim, program):
        self.victim = victim
        command, self.begins = PROGRAMS[program]
        self.server = servers(2 if program == "flow" else 1)
        self.proxy = None
        places = [at(port) for port in self.server.ports]
        if victim == "proxy":
            self.proxy = subprocess.Popen([sys.executable, "-c", PROXY, str(self.server.ports[0])], text=True,
                                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            places[0] = at(int(self.proxy.stdout.readline()))
        self.client = subprocess.Popen(command, env=client_env(" ".join(places)), text=True,
                                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)

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
            if self.begins in line:
                return
        raise AssertionError(self.client.communicate()[1])

    def computes(self):
        """Has its session used a third of a second of processor time?"""
        if not children(self.server.processes[0].pid):
            return False
        worker = session_worker(self.server, set())
        used = Path(f"/proc/{worker}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, used)) >= os.sysconf("SC_CLK_TCK") / 3

    def end(self):
        self.client.kill()
        self.client.communicate()
        if self.proxy:
            self.proxy.kill()
            self.proxy.communicate()
        self.server.stop()


def ends_right(*which):
    """Each program is stopped while it runs; some time after the last one all go on."""
    runs, stopped = [], []
    begin = time.monotonic()
    try:
        for victim, name in which:
            runs.append(Run(victim, name))
            runs[-1].await_begin()
            assert runs[-1].client.poll() is None, f"{name}: it ended before"
            for pid in runs[-1].pids():
                os.kill(pid, signal.SIGSTOP)
                stopped.append(pid)
        time.sleep(STOP_S)
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        stopped.clear()
        took = time.monotonic() - begin
        for run in runs:
            _, err = run.client.communicate(timeout=HANG_S)
            assert run.client.returncode == 0, f"{run.client.returncode}: {err}{run.server.log_text()}"
            # Less than SPANCL_ANSWER_TIMEOUT: the host acknowledges, so no link is lost.
            assert took >= 25 or not err, err
        return took
    finally:
        for pid in stopped:
            os.kill(pid, signal.SIGCONT)
        for run in runs:
            run.end()


def processes_that_stop_cost_no_link():
    if "SPANCL_STOP_S" in os.environ:
        for victim in VICTIMS:
            ends_right(*((victim, name) for name in PROGRAMS))
    else:
        took = ends_right(("worker", "transfers"), ("worker", "flow"), ("server", "commands"), ("proxy", "transfers"))
        if took >= 25:
            return "slow: warnings were not checked"
    return None


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
