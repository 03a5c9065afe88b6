#!/usr/bin/env python3
"""trace.py BUILD [NAME...]: claims about `spancl trace` and the timeline (docs/TRACING.md), with two servers, known
counts, and links that are cut."""

import collections
import json
import signal
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers
from relay import Relay
from timeline import Timeline

FOLDER = tempfile.TemporaryDirectory()
PROGRAM, SPANCL = str(BUILD / "bin/system_profiled"), str(BUILD / "bin/spancl")
LAUNCHES, MOVES, MIB, KIB64 = 60, 21, 1 << 20, 64 << 10
LBM = [str(BUILD / "bin/lbm"), "--size", "24", "--steps", "400", "--domains", "2",
       "--kernels", str(daemon.ROOT / "examples/lbm")]


def trace(where, *command, file="timeline.json", options=(), **more):
    """Returns how it ended, and the timeline's path."""
    path = Path(FOLDER.name) / file
    done = daemon.run([SPANCL, "trace", "--output", str(path), *options, "--", *map(str, command)], where, **more)
    return done, path


def traced(where, *command, **more):
    """Returns the valid timeline and the summary of a program that ends well."""
    done, path = trace(where, *command, options=("--json",), **more)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    t = Timeline(path)
    return t, t.validate(), json.loads(done.stderr.splitlines()[-1])


def names(both):
    return [at(port) for port in both.ports]


def by_process(t, category):
    return collections.Counter((e["name"], t.process(e)) for e in t.of(category))


def the_rows_have_each_command_of_the_program():
    with servers(2) as both:
        first, second = names(both)
        t, flows, s = traced(f"{first} {second}", PROGRAM, LAUNCHES, MOVES, 0)
    devices = f"{first}: devices", f"{second}: devices"
    assert by_process(t, "kernel") == {("tick", devices[0]): LAUNCHES, ("touch", devices[0]): (MOVES + 1) / 2,
                                       ("touch", devices[1]): (MOVES + 1) / 2}
    assert by_process(t, "transfer") == {("write buffer", devices[0]): 6, ("read buffer", devices[0]): 3,
                                         ("read buffer", devices[1]): 1}, by_process(t, "transfer")
    assert {e["args"]["global"] for e in t.of("kernel", "touch")} == {"16"}
    assert sum(e["args"]["bytes"] for e in t.of("transfer")) == 8 * KIB64 + 2 * MIB
    # Each one is joined to its call, which has its name.
    calls = {e["args"]["event"]: e for e in t.of("client", "enqueue")}
    assert len(calls) == LAUNCHES + MOVES + 1 + 6 + 4
    for e in t.of("kernel") + t.of("transfer"):
        call = calls[e["args"]["event"]]
        assert call["args"]["command"] == e["name"] and call["ts"] <= e["ts"], (call, e)
        phases = {point["ph"] for _, point in flows["command", f"{e['args']['event']:x}"]}
        assert phases == {"s", "t", "f"}, phases
    assert t.other["dropped"] == t.other["untimed"] == 0, t.other
    assert [c["server"] for c in t.other["clocks"]] == [first, second], t.other
    # The summary counts the same.
    assert s["enqueued"] == len(calls) and s["kernels"]["count"] == LAUNCHES + MOVES + 1, s
    assert s["transfers"]["count"] == 10 and s["transfers"]["bytes"] == 8 * KIB64 + 2 * MIB, s
    assert s["migrations"]["count"] == len(t.of("migration")) and s["waits"]["count"] == len(t.of("waited")), s
    longest = [e["duration_ns"] for e in s["kernels"]["longest"]]
    assert len(longest) == 5 and longest == sorted(longest, reverse=True), longest


def migrations_have_arrows():
    with servers(2) as both:
        first, second = names(both)
        t, flows, _ = traced(f"{first} {second}", PROGRAM, 1, MOVES, 0)
    moved = [e for e in t.of("migration") if e["args"]["bytes"] == MIB]
    assert len(moved) == MOVES, moved
    ways = collections.Counter()
    for points in (points for (category, _), points in flows.items() if category == "migration"):
        (_, begin), (_, end) = sorted(points, key=lambda p: p[1]["ph"] == "f")
        assert (begin["ph"], end["ph"]) == ("s", "f"), points
        ways[t.process(begin).split(": link")[0], t.process(end).split(": link")[0]] += 1
    assert ways == {(first, second): (MOVES + 1) / 2, (second, first): (MOVES - 1) / 2}, ways


def waits_tell_what_was_waited_for():
    with servers(2) as both:
        first, second = names(both)
        t, _, _ = traced(f"{first} {second}", PROGRAM, LAUNCHES, MOVES, 0)
    for e in t.of("waited"):
        assert e["name"] in ("answer", "until the link has the bytes") or e["args"]["server"] in (first, second), e
    blocking = [e for e in t.of("waited", "blocking command")]
    assert blocking and {e["args"]["command"] for e in blocking} <= {"read buffer", "write buffer"}, blocking
    assert t.of("client", "build") and t.of("server", "compile") + t.of("server", "cached")


def lanes_carry_what_the_client_counts():
    stats = Path(FOLDER.name) / "stats"
    with servers(2) as both:
        t, _, _ = traced(" ".join(names(both)), PROGRAM, LAUNCHES, MOVES, 0, SPANCL_STATS=str(stats))
    links = json.loads(stats.read_text())["links"]
    for name in names(both):
        rows = collections.Counter()
        for e in t.of("lane"):
            if t.process(e).startswith(f"{name}: link ("):
                lane, way = t.threads[e["pid"], e["tid"]].split(", ")
                rows[way, lane == "lane 0"] += e["args"]["bytes"]
        for way, ends in ("sent", ("client", name)), ("received", (name, "client")):
            link = [link for link in links if (link["from"], link["to"]) == ends][0]
            # The statistics are taken first, so the rows also have the questions and answers behind them.
            assert 0 <= rows[way, True] - link["bytes"] < 16384, (rows, link)
            assert rows[way, False] == link["bulk_bytes"], (rows, link)


def cut_links_are_marked():
    if not Path(LBM[0]).exists():
        return "not run: the examples are not built"
    with servers(2) as both:
        relays = [Relay(port) for port in both.ports]
        ended = threading.Event()

        def cut():
            while not ended.wait(0.1):
                if relays[0].carried > 20000 and relays[0].cuts < 3:
                    relays[0].cut()

        cutter = threading.Thread(target=cut)
        cutter.start()
        try:
            t, _, s = traced(" ".join(at(relay.port) for relay in relays), *LBM, SPANCL_ON_LOSS="wait")
        finally:
            ended.set()
            cutter.join()
        cuts = relays[0].cuts
        for relay in relays:
            relay.close()
    marks = collections.Counter(e["name"] for e in t.events if e["ph"] == "i")
    assert cuts and 0 < marks["disconnected"] <= cuts, (marks, cuts)
    assert marks["disconnected"] - marks["reconnected"] in (0, 1), marks
    assert (s["disconnected"], s["reconnected"], s["lost"]) == (marks["disconnected"], marks["reconnected"], 0), s
    assert all(e["args"]["server"] == 0 for e in t.of("client", "disconnected")), marks
    kernels = collections.Counter(t.process(e) for e in t.of("kernel"))
    assert set(kernels) == {f"{at(relay.port)}: devices" for relay in relays}, kernels
    # Commands that were sent again ran once.
    events = [e["args"]["event"] for e in t.of("kernel")]
    assert len(set(events)) == len(events)
    assert t.of("migration"), "the domains exchange their borders"
    return f"{cuts} cuts, {len(t.of('link', 'resend'))} times messages were sent again"


def in_process_devices_are_shown():
    t, _, s = traced("in-process", daemon.CLIENT, "--only", "empty", "--scale", "5")
    assert s["kernels"]["count"] > 20 and s["transfers"]["count"], s
    assert "in-process: devices" in t.processes.values(), t.processes


def status_and_missing_timelines_are_clear():
    with servers(1) as one:
        done, path = trace(at(one.ports[0]), "sh", "-c", "exit 7")
        assert done.returncode == 7 and "did not use SpanCL" in done.stderr and not path.exists(), done.stderr
        done, path = trace(at(one.ports[0]), "true")
        assert done.returncode == 1 and not path.exists(), done.stderr
        done, _ = trace(at(one.ports[0]), "sh", "-c", "kill -KILL $$")
        assert done.returncode == 128 + signal.SIGKILL and "no timeline" in done.stderr, done.stderr
        done, _ = trace(at(one.ports[0]), "/no/such/program")
        assert done.returncode == 127, done.stderr
        done, _ = trace(at(one.ports[0]), "true", file="no/such/folder")
        assert done.returncode == 2 and "can't write" in done.stderr, done.stderr
    done = subprocess.run([SPANCL, "trace"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "Usage: spancl trace" in done.stderr
    done = subprocess.run([SPANCL, "trace", "-o"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "-o needs a value" in done.stderr


def the_text_names_what_costs():
    with servers(2) as both:
        done, path = trace(" ".join(names(both)), PROGRAM, LAUNCHES, MOVES, 0, file='a "name".json')
    assert done.returncode == 0 and done.stdout == "computed\n", done.stderr
    for words in ("kernels", "migrations", "Longest waits", "touch", "write buffer", "clFinish", "same clock",
                  f"The timeline is in {path}. Open it in https://ui.perfetto.dev or chrome://tracing"):
        assert words in done.stderr, (words, done.stderr)
    Timeline(path).validate()


def without_times_the_devices_run_as_ever():
    with servers(2) as both:
        t, _, s = traced(" ".join(names(both)), PROGRAM, LAUNCHES, MOVES, 0, SPANCL_TRACE_TIMES="off")
    assert not t.of("kernel") and s["untimed"] == LAUNCHES + MOVES + 1 + 6 + 4, s
    assert collections.Counter(e["args"].get("command") for e in t.of("client", "enqueue"))["tick"] == LAUNCHES


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
