#!/usr/bin/env python3
"""altered.py BUILD [NAME...]: claims about links whose bytes are altered, lost or added on their way, over real processes: a program on two
servers, with something between it and them, and between them, that does so at places that a seed decides. The program ends with
the right result or with an error, and never waits for ever. SPANCL_ALTERED_RUNS=N, SPANCL_ALTERED_SEED=N: how many runs, and from where."""

import collections
import concurrent.futures
import os
import random
import signal
import subprocess
import sys
import threading
import time

import claims
from daemon import BUILD, HANG_S, at, children, client_env, servers
from relay import Forwarder, shut_down

PROGRAM = str(BUILD / "bin/system_altered")
RUNS = int(os.environ.get("SPANCL_ALTERED_RUNS", "60"))
SEED = int(os.environ.get("SPANCL_ALTERED_SEED", "1"))
LIMIT_MS = 1500
AT_ONCE = 4


class Alterer(Forwarder):
    """Forwards connections to a loopback port. In the direction `way` (0: towards the port), at byte `place` of all that goes that
    way, it does `what`; `again`: at as many bytes behind that, too, and so on."""

    def __init__(self, port, chance=None, what="", way=0, place=0, again=False):
        self.chance, self.what, self.way = chance, what, way
        self.place = self.left = place
        self.again, self.altered, self.connections = again, 0, 0
        self.lock, self.open = threading.Lock(), []
        super().__init__(port)

    def _forward(self, client, server):
        self.connections += 1
        self.open += [client, server]
        for way, (a, b) in enumerate(((client, server), (server, client))):
            threading.Thread(target=self._pass_on, args=(a, b, way), daemon=True).start()

    def _pass_on(self, a, b, way):
        mute = False
        try:
            while data := a.recv(65536):
                if self.what and way == self.way:
                    data, mute = self._alter(data, mute)
                if not mute:
                    b.sendall(data)
        except OSError:
            pass
        shut_down(a, b)

    def _alter(self, data, mute):
        with self.lock:
            if self.left is None or len(data) <= self.left:
                self.left = None if self.left is None else self.left - len(data)
                return data, mute
            at_byte, self.left = self.left, self.place + 100 if self.again else None
            self.altered += 1
            n = 1 if self.chance.random() < 0.5 else int(2 ** self.chance.uniform(0, 12))
            if self.what == "flip":
                changed = bytearray(data)
                changed[at_byte] ^= 1 << self.chance.randrange(8)
                return bytes(changed), mute
            if self.what == "drop":
                return data[:at_byte] + data[at_byte + n:], mute
            if self.what == "insert":
                return data[:at_byte] + self.chance.randbytes(n) + data[at_byte:], mute
            return data, True  # swallow: nothing comes any more, and nobody is told

    def close(self):
        self.listener.close()
        for s in self.open:
            s.close()


def one(ports, seed, whats, checks, limit_ms):
    """Run the program once. (what became of it, seconds, was anything altered, standard error)"""
    chance = random.Random(seed)
    # A client's and a peer's way to each server; one of them alters.
    victim = chance.randrange(4)
    alterers = []
    for i in range(4):
        how = {}
        if i == victim:
            how = {"chance": chance, "what": chance.choice(whats), "way": chance.randrange(2),
                   "place": int(2 ** chance.uniform(0, 22))}
            how["again"] = how["place"] > 100000 and chance.random() < 0.4
        alterers.append(Alterer(ports[i // 2], **how))
    where = " ".join(f"{at(alterers[2 * i].port)}#{at(alterers[2 * i + 1].port)}" for i in range(2))
    env = client_env(where, SPANCL_CHECKSUM=checks, SPANCL_ANSWER_TIMEOUT=str(limit_ms), SPANCL_RECONNECT="10",
                     SPANCL_ON_LOSS=chance.choice(("fail", "wait:20")), SPANCL_CONNECT_TIMEOUT="3000")
    begin = time.monotonic()
    with subprocess.Popen([PROGRAM], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as client:
        try:
            _, err = client.communicate(timeout=HANG_S)
            end = {0: "right", 1: "error", 3: "wrong"}.get(client.returncode, f"status {client.returncode}")
        except subprocess.TimeoutExpired:
            client.kill()
            err, end = client.communicate()[1], "waited"
    took = time.monotonic() - begin
    hit = alterers[victim]
    for a in alterers:
        a.close()
    how = f"{hit.what} way {hit.way} of link {victim} at {hit.place}{' again' if hit.again else ''}"
    return end, took, hit.altered, f"seed {seed}: {how}: {end} after {took:.1f} s: {err}"


def many(runs, whats, checks, limit_ms, bad):
    """So many runs, none of which may end as one of `bad`."""
    counts, longest, report = collections.Counter(), 0, []
    with servers(2, "--checksum", checks, "--answer-timeout", str(limit_ms), "--linger", "20") as s:
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            done = [pool.submit(one, s.ports, SEED + i, whats, checks, limit_ms) for i in range(runs)]
            for future in concurrent.futures.as_completed(done):
                end, took, altered, text = future.result()
                counts["resumed" if altered and end == "right" else "untouched" if not altered and end == "right" else end] += 1
                longest = max(longest, took)
                if end in bad or end.startswith("status"):
                    report.append(text)
                if os.environ.get("SPANCL_ALTERED_VERBOSE"):
                    print(text, flush=True)
    summary = f"{runs} runs: {dict(counts)}, longest {longest:.1f} s"
    assert not report, "\n".join([summary, *report])
    return summary


def altered_bytes_end_in_the_right_result_or_an_error():
    return many(RUNS, ("flip", "drop", "insert", "swallow"), "on", LIMIT_MS, ("wrong", "waited"))


def without_checksums_nobody_waits_for_them():
    return many(RUNS // 2, ("swallow",), "off", LIMIT_MS, ("wrong", "waited"))


def a_kernel_may_run_for_longer_than_the_limit():
    with servers(1, "--answer-timeout", "300") as s:
        begin = time.monotonic()
        done = subprocess.run([PROGRAM, "1", "100000000"], env=client_env(at(s.ports[0]), SPANCL_ANSWER_TIMEOUT="300"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 0 and "no answer" not in done.stderr, done.stderr
        return f"{time.monotonic() - begin:.1f} s"


def a_server_that_stands_still_is_not_waited_for():
    with servers(1) as s:
        env = client_env(at(s.ports[0]), SPANCL_ANSWER_TIMEOUT=str(LIMIT_MS), SPANCL_RECONNECT="2")
        with subprocess.Popen([PROGRAM, "0", "100000000000"], env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as client:
            assert client.stdout.readline() == "turning\n"
            stopped = children(s.processes[0].pid)
            for pid in stopped:
                os.kill(pid, signal.SIGSTOP)
            try:
                _, err = client.communicate(timeout=HANG_S)
            finally:
                for pid in stopped:
                    os.kill(pid, signal.SIGKILL)
        assert client.returncode == 1 and "no answer" in err, f"status {client.returncode}: {err}"


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
