#!/usr/bin/env python3
"""trace.py BUILD [NAME...]: claims about `spancl trace` and the timeline (docs/TRACING.md), with two servers, known
counts, and links that are cut."""

import collections
import json
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree

import claims
import daemon
from daemon import BUILD, at, servers
from pftrace import PfTrace
from relay import Relay
from security import Place
from timeline import Timeline, ns

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


def builds_compression_and_encryption_are_shown():
    """A later run finds the first one's builds in the servers' cache, which workers fill behind the builds."""
    with Place() as p, servers(2, "--keys", str(p.server), "--compression", "lz4", "--cache", f"{p.folder.name}/cache") as both:
        for port in both.ports:
            p.pair(port)
        where = " ".join(f"tls:localhost:{port}" for port in both.ports)
        more = {"SPANCL_KEYS": str(p.client), "SPANCL_COMPRESSION": "lz4"}
        new, old = (traced(where, PROGRAM, 1, MOVES, 0, **more)[0] for _ in range(2))
        for _ in range(50):
            if not old.of("server", "compile"):
                break
            old = traced(where, PROGRAM, 1, MOVES, 0, **more)[0]
    for t, compiled in (new, True), (old, False):
        made, found = t.of("server", "compile"), t.of("server", "cached")
        assert len(made) + len(found) == len(t.processes_of(": devices")) and bool(made) == compiled, (made, found)
        links = t.processes_of(": link (")
        assert len(links) == 2 and all("tls" in link and ", encrypted, " in link for link in links), links
        assert all("compress" in link for link in links), links
        # The packed bytes are those of the program's transfers, on both sides.
        packed, unpacked = (sum(e["args"]["bytes"] for e in t.of("link", name)) for name in ("pack", "unpack"))
        assert packed == unpacked > MIB, (packed, unpacked)


def servers_with_another_clock_stand_on_the_clients():
    """Their CLOCK_MONOTONIC is a day ahead. Each command runs between its call and its completion, and is off by the
    bound in the file at most."""
    ahead = ("unshare", "--time", "--monotonic", "86400")
    done = subprocess.run([*ahead, sys.executable, "-c", "import time; print(time.monotonic())"], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    if done.returncode or float(done.stdout) < time.monotonic() + 80000:
        return "not permitted to have another clock"
    with servers(2, prefix=ahead) as both:
        t, _, _ = traced(" ".join(names(both)), PROGRAM, LAUNCHES, MOVES, 0)
    error = {f"{c['server']}: devices": c["error_ns"] for c in t.other["clocks"]}
    assert len(error) == 2 and all(0 < off < 10**9 for off in error.values()), error
    calls, ends = ({e["args"]["event"]: ns(e["ts"]) for e in t.of("client", name)} for name in ("enqueue", "completed"))
    ran = t.of("kernel") + t.of("transfer")
    assert len(ran) == LAUNCHES + MOVES + 1 + 10 and t.other["dropped"] == 0, t.other
    for e in ran:
        begin, off, event = ns(e["ts"]), error[t.process(e)], e["args"]["event"]
        assert calls[event] <= begin + off, (e, calls[event], off)
        assert event not in ends or begin + ns(e["dur"]) <= ends[event] + off, (e, ends[event], off)
    return f"off by {max(error.values()) / 1000:.0f} us at most"


def profiled_times_are_those_of_the_rows():
    """Those of launches and of command buffers, to the ns. But no row begins before the end of the one before it: the
    clocks may have been compared anew between both."""
    with servers(1) as one:
        done, path = trace(at(one.ports[0]), BUILD / "bin/system_recorded", "timed", 20)
    assert done.returncode == 0, done.stderr
    told = [line.rsplit(" ", 2) for line in done.stdout.splitlines() if line != "ready"]
    assert len(told) == 40, told
    t = Timeline(path)
    t.validate()
    all_ends = {(e["pid"], e["tid"], ns(e["ts"]) + ns(e["dur"])) for e in t.slices}
    for name in "tick", "command buffer":
        rows = sorted((ns(e["ts"]) + ns(e["dur"]), ns(e["ts"]), e["pid"], e["tid"]) for e in t.slices
                      if e["name"] == name and t.process(e).endswith(": devices"))
        said = sorted((int(end), int(begin)) for command, begin, end in told if command == name)
        assert len(said) == 20 <= len(rows), (name, rows, said)  # one more tick is the program's last one
        for (end, begin, pid, tid), (end_said, begin_said) in zip(rows, said):
            moved = begin_said < begin and (pid, tid, begin) in all_ends
            assert end == end_said and (begin == begin_said or moved), (name, rows, said)


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
        for device in "/dev/full", "/dev/null":
            done, _ = trace(at(one.ports[0]), "true", file=device)
            assert done.returncode == 2 and "can't write" in done.stderr and Path(device).is_char_device(), done.stderr
        done, _ = trace(at(one.ports[0]), "true", file="no/such/folder")
        assert done.returncode == 2 and "can't write" in done.stderr, done.stderr
    done = subprocess.run([SPANCL, "trace"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "Usage: spancl trace" in done.stderr
    done = subprocess.run([SPANCL, "trace", "-o"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "-o needs a value" in done.stderr


def the_words_behind_the_program_are_its_own():
    with servers(1) as one:
        for words in ("--attach", "y", "z"), ("--attach=y", "z"), ("-o", "x", "--json"):
            done = daemon.run([SPANCL, "trace", "--output", f"{FOLDER.name}/words.json", "sh", "-c", 'echo "$@"', "x", *words],
                              at(one.ports[0]))
            assert done.stdout.split() == list(words), (words, done)


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


def the_picture_has_the_rows_and_the_bars():
    with servers(2) as both:
        first, second = names(both)
        t, _, _ = traced(f"{first} {second}", PROGRAM, LAUNCHES, MOVES, 0)
    path = Path(FOLDER.name) / "timeline.json"
    done = subprocess.run([SPANCL, "trace", "--svg", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          check=False)
    assert done.returncode == 0, done.stderr
    svg = "{http://www.w3.org/2000/svg}"
    picture = ElementTree.fromstring(done.stdout)
    texts = {e.text for e in picture.iter(f"{svg}text")}
    for name in t.processes.values():
        assert any(text.startswith(name[:100]) for text in texts if text), (name, texts)
    assert any(e.text.startswith("migration ") for e in picture.iter(f"{svg}title"))
    assert {"#55b887", "#e0a030", "#3d7edb"} <= {e.attrib["fill"] for e in picture.iter(f"{svg}rect")}, "kernels, transfers, lanes"
    assert sum("marker-end" in e.attrib for e in picture.iter(f"{svg}path")) == len(t.of("source")) > 0
    assert "does not show all" not in done.stdout
    output = written("--svg", path, "picture.svg")
    assert output.read_text(encoding="utf-8") == done.stdout


def written(option, path, name):
    """The file of -o, which this user alone may read."""
    output = Path(FOLDER.name) / name
    done = daemon.run([SPANCL, "trace", option, str(path), "-o", str(output)], None)
    assert done.returncode == 0 and not done.stdout + done.stderr, done
    assert output.stat().st_mode & 0o777 == 0o600, oct(output.stat().st_mode)
    return output


def files_that_cannot_be_drawn_leave_none():
    folder = Path(FOLDER.name)
    path, output, link = folder / "bad.json", folder / "bad.out", folder / "link"
    target = folder / "target"
    target.write_text("kept")
    link.symlink_to(target)
    for option in "--svg", "--perfetto":
        path.write_text('{"traceEvents": [7]}' if option == "--perfetto" else '{"traceEvents": []}')
        done = daemon.run([SPANCL, "trace", option, str(path), "-o", str(output)], None)
        assert done.returncode == 1 and done.stderr.count("spancl: ") == 1 and not output.exists(), done
        path.write_text('{"traceEvents": [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 1, "name": "a", "cat": "kernel"}]}')
        before = path.read_text()
        for to, why in ((path, "is read itself"), (link, "can't write"), ("/dev/full", "can't write"),
                        ("/no/such", "can't write")):
            done = daemon.run([SPANCL, "trace", option, str(path), "-o", str(to)], None)
            assert done.returncode == 1 and done.stderr.count("spancl: ") == 1 and why in done.stderr, (to, done)
        assert path.read_text() == before and target.read_text() == "kept" and Path("/dev/full").exists()
        for words in ("--server", "x"), ("--json",), ("--ring", "4"), ("--for", "1s"):
            done = daemon.run([SPANCL, "trace", option, str(path), *words], None)
            assert done.returncode == 2 and "Usage: spancl trace" in done.stderr, (words, done)


def hostile_names_are_only_text_in_the_picture():
    path = Path(FOLDER.name) / "hostile.json"
    name = "</text><script>alert('&')</script>\u202e\"\n"
    rows = [{"ph": "M", "pid": 1, "name": "process_name", "args": {"name": name}},
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": name}}]
    bars = [{"ph": "X", "pid": 1, "tid": 1, "ts": 1, "dur": 2**53, "name": name, "cat": "kernel", "args": {"command": name}}]
    for events in rows + bars, bars * 200000, [], [{}], [7], [{"ph": "X", "pid": -1, "ts": "x", "args": 1}]:
        path.write_text(json.dumps({"traceEvents": events}))
        done = subprocess.run([SPANCL, "trace", "--svg", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        assert done.returncode in (0, 1), done.returncode
        if done.returncode == 0:
            tags = {e.tag.split("}")[1] for e in ElementTree.fromstring(done.stdout).iter()}
            assert tags <= {"svg", "style", "defs", "marker", "path", "rect", "text", "title"}, tags
        else:
            assert "spancl: " in done.stderr, done.stderr
    for text in "", "{", "[]", '{"traceEvents": 1}', "\x00":
        path.write_text(text)
        done = subprocess.run([SPANCL, "trace", "--svg", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=False)
        assert done.returncode == 1 and "can't read" in done.stderr, (text, done.stderr)


# --- Perfetto's format ------------------------------------------------------------------------------

def converted(path):
    done = subprocess.run([SPANCL, "trace", "--perfetto", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 0 and not done.stderr, done.stderr
    return PfTrace(done.stdout), len(done.stdout)


def scalar(value):
    return float(value) if isinstance(value, Decimal) else value


def same(t, p):
    """Each event of the JSON stands in the other format, and no other one but what the file says about itself."""
    row = {key: (t.processes[key[0]], name) for key, name in t.threads.items()}

    def key(e):
        args = tuple(sorted((k, scalar(v)) for k, v in e["args"].items()))
        return (*row[e["pid"], e["tid"]], ns(e["ts"]), ns(e["dur"]), e["name"], e["cat"], args)

    ours, theirs = collections.Counter(map(key, t.slices)), collections.Counter(s.key() for s in p.slices)
    assert ours == theirs, (list((ours - theirs).items())[:3], list((theirs - ours).items())[:3])
    # An arrow's points are at the same times of the same rows.
    arrows, ids = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    last = {}
    for e in t.events:
        if e["ph"] == "X":
            last[e["pid"], e["tid"]] = e
        elif e["ph"] in "stf":
            arrows[e["cat"], e["id"]][key(last[e["pid"], e["tid"]]), e["ph"] == "f"] += 1
    for s in p.slices:
        for flow, ends in s.flows:
            ids[flow][s.key(), ends] += 1
    assert collections.Counter(frozenset(a.items()) for a in arrows.values()) == \
        collections.Counter(frozenset(a.items()) for a in ids.values()), "arrows"
    counts = collections.Counter((t.processes[e["pid"]], f"{e['name']} {name}", ns(e["ts"]), float(value))
                                 for e in t.events if e["ph"] == "C" for name, value in e["args"].items())
    assert counts == collections.Counter(p.counts), "counts"
    about = [args for _, name, _, args in p.instants if name == "timeline"]
    arrays = {"clock": "clocks", "energy": "energy"}
    assert about == [{k: v for k, v in t.other.items() if k not in arrays.values()}], about
    for one, all_ in arrays.items():
        elements = [args for _, name, _, args in p.instants if name == one]
        assert elements == t.other.get(all_, []), elements
    marks = sorted((ns(e["ts"]), e["name"], e["cat"]) for e in t.events if e["ph"] == "i")
    assert marks == sorted((at, name, category) for at, name, category, _ in p.instants if name not in ("timeline", *arrays))


def perfettos_format_has_each_event():
    with servers(2) as both:
        t, _, _ = traced(" ".join(names(both)), PROGRAM, LAUNCHES, MOVES, 0, SPANCL_COMPRESSION="off")
    path = Path(FOLDER.name) / "timeline.json"
    p, size = converted(path)
    same(t, p)
    assert written("--perfetto", path, "converted.pftrace").stat().st_size == size
    return f"{len(t.slices)} slices: {100 * size // path.stat().st_size} % of the JSON's size"


def a_file_that_ends_with_pftrace_has_the_format():
    with servers(1) as one:
        done, path = trace(at(one.ports[0]), daemon.CLIENT, "--only", "empty", "--scale", "5", file="run.pftrace")
        assert done.returncode == 0 and f"The timeline is in {path}. Open it in https://ui.perfetto.dev." in done.stderr, done.stderr
        assert any(s.name == "tick" for s in PfTrace(path.read_bytes()).slices)
        assert not path.with_name("run.pftrace.json").exists(), "only the file that was asked for"
        done, path = trace(at(one.ports[0]), "true", file="run.pftrace")
        assert done.returncode == 1 and not list(path.parent.glob("run.pftrace*")), done.stderr
        done, path = trace(at(one.ports[0]), BUILD / "bin/system_recorded", "fails", 50, file="ring.pftrace",
                           options=("--ring", "4"))
        assert done.returncode == 0, done.stderr
        assert any(name == "failed" for _, name, _, _ in PfTrace(path.read_bytes()).instants)
        assert [p.name for p in path.parent.glob("ring.pftrace*")] == ["ring.pftrace"]


def slices_that_do_not_nest_end_with_the_one_around_them():
    path = Path(FOLDER.name) / "crossed.json"
    spans = [(10, 20), (0, 30), (25, 40), (30, 5), (30, 30), (5, 0)]
    path.write_text(json.dumps({"traceEvents": [
        {"ph": "X", "pid": 7, "tid": 3, "ts": begin, "dur": length, "name": f"{begin}", "cat": "c", "args": {"n": 1.5}}
        for begin, length in spans]}))
    p, _ = converted(path)
    ends = {s.name: s.end for s in p.slices if s.end > s.begin}
    assert {s.track for s in p.slices} == {("7", "3")} and len(p.slices) == len(spans), p.slices
    assert ends["0"] == ends["10"] == ends["25"] == 30000 and all(s.args == {"n": 1.5} for s in p.slices), ends


def hostile_files_become_traces_or_are_refused():
    path = Path(FOLDER.name) / "hostile.json"
    name = "</script>\u202e\"\n" + 300 * "n"
    events = [{"ph": "X", "pid": 2**32 + 5, "tid": -1, "ts": 1, "dur": 2**60, "name": name, "cat": "", "args": {
        **{f"a{i}{name}"[:40]: name for i in range(40)}, "deep": {"er": [1]}, "null": None}}]
    events += [{"ph": "f", "pid": 5, "tid": 0, "ts": 1, "cat": "c", "id": str(i)} for i in range(40)]
    many = [{"ph": "X", "pid": 1, "tid": 1, "ts": i, "dur": 10**6, "name": f"{i}", "cat": f"c{i}", "args": {f"k{i}": f"v{i}"}}
            for i in range(20000)]
    rows = [{"ph": "C", "pid": i, "tid": i, "ts": 1, "name": "n", "args": {f"{k}": k for k in range(12)}} for i in range(9000)]
    for all_events in events, many, rows, [], [{}], [{"ph": "X", "ts": "x", "args": 1}]:
        path.write_text(json.dumps({"otherData": {"clocks": [1, {"server": [], "error_ns": 7}], "x": name}, "traceEvents": all_events}))
        done = subprocess.run([SPANCL, "trace", "--perfetto", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 0, done.stderr
        PfTrace(done.stdout)
    for text in "", "{", "[]", '{"traceEvents": 1}', '{"traceEvents": [7]}', "\x00":
        path.write_text(text)
        done = subprocess.run([SPANCL, "trace", "--perfetto", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        assert done.returncode == 1 and b"can't read" in done.stderr and not done.stdout, (text, done)


# --- The flight recorder ----------------------------------------------------------------------------

class Recorded:
    """A program with the flight recorder, at the point where it waits for its input."""

    def __init__(self, where, how, launches=50, ring=4, times="on"):
        self.path = Path(tempfile.mkdtemp(dir=FOLDER.name)) / "ring.json"
        self.process = subprocess.Popen(
            [str(BUILD / "bin/system_recorded"), how, str(launches)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True,
            env=daemon.client_env(where, SPANCL_TRACE=str(self.path), SPANCL_TRACE_RING=str(ring),
                                  SPANCL_TRACE_TIMES=times))
        assert self.process.stdout.readline() == "ready\n", self.process.communicate()

    def file(self, number=1):
        path = self.path if number == 1 else self.path.with_name(f"ring-{number}.json")
        claims.wait_for(path.exists, lambda: f"no {path}")
        t = Timeline(path)
        t.validate()
        return t

    def end(self):
        out, err = self.process.communicate("\n", timeout=daemon.HANG_S)
        assert self.process.returncode == 0, err
        return out, err

    def files(self):
        return sorted(path.name for path in self.path.parent.iterdir())


def the_recorder_writes_at_sigusr2_and_goes_on():
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "plain")
        for number in 1, 2:
            r.process.send_signal(signal.SIGUSR2)
            t = r.file(number)
            assert t.other["reason"] == "SIGUSR2" and len(t.of("kernel", "tick")) == 50, t.other
            assert t.of("server", "submit"), "the server's records"
        _, said = r.end()
        assert r.files() == ["ring-2.json", "ring.json"], r.files()
        assert "the flight recorder has written" in said, said


def the_recorder_without_times_has_calls_and_submissions_but_no_details():
    left_out = set(re.findall(r"^PROBE\(\d+, (\w+), \w+, \w+, \w+, no,", (daemon.ROOT / "src/trace/probes.def").read_text(),
                              re.MULTILINE))
    assert "message" in left_out, left_out
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "plain", times="off")
        r.process.send_signal(signal.SIGUSR2)
        t = r.file()
        r.end()
    calls = {e["args"]["event"] for e in t.of("client", "enqueue") if e["args"].get("command") == "tick"}
    assert len(calls) == 50 and t.other["untimed"] >= 50 and not t.of("kernel"), t.other
    assert calls <= {e["args"]["event"] for e in t.of("server", "submit")}, "their submissions"
    assert t.of("client", "completed") and t.of("server", "complete") and t.of("client", "wait") and t.of("link", "send")
    assert not left_out & {e["name"] for e in t.slices}, left_out
    with servers(2) as both:
        t = traced(" ".join(names(both)), PROGRAM, 1, 1, 0)[0]
    assert t.of("server", "message") and t.of("server", "notify"), "all of them without the recorder"


def the_recorder_follows_no_link_and_writes_for_its_user_alone():
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "plain")
        target, part = Path(FOLDER.name) / "not-a-timeline", r.path.with_name("ring.json.part")
        target.write_text("kept")
        part.symlink_to(target)
        r.process.send_signal(signal.SIGUSR2)
        # The second file is written when the first one could not be.
        claims.wait_for(lambda: r.process.send_signal(signal.SIGUSR2) or len(r.files()) > 1, "no other file")
        _, said = r.end()
        assert target.read_text() == "kept" and f"can't write {part}" in said and not r.path.exists(), said
        written = [path for path in r.path.parent.iterdir() if path != part]
        assert written and all(path.stat().st_mode & 0o777 == 0o600 for path in written), written


def without_a_reason_the_recorder_writes_nothing():
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "plain")
        r.end()
        assert not r.files(), r.files()
        done, path = trace(at(one.ports[0]), daemon.CLIENT, "--only", "empty", "--scale", "5", options=("--ring", "4"))
        assert done.returncode == 0 and "nothing made the flight recorder write" in done.stderr, done.stderr
        assert not path.exists()


def the_recorder_writes_when_a_command_fails():
    with servers(1) as one:
        done, path = trace(at(one.ports[0]), BUILD / "bin/system_recorded", "fails", 50, options=("--ring", "4", "--json"))
        assert done.returncode == 0, done.stderr
        t = Timeline(path)
        t.validate()
        s = json.loads(done.stderr.splitlines()[-1])
        assert s["reason"] == t.other["reason"] == f"a command failed on {at(one.ports[0])}", s
        assert s["failed"] == 1 and [e["name"] for e in t.events if e["ph"] == "i"] == ["failed"], s


def the_recorder_writes_when_a_link_is_lost():
    with servers(2) as both:
        relay = Relay(both.ports[0])
        r = Recorded(f"{at(relay.port)} {at(both.ports[1])}", "plain")
        relay.cut()
        r.end()
        t = r.file()
        relay.close()
    assert t.other["reason"] == f"lost the link to {at(relay.port)}", t.other
    assert t.of("client", "disconnected") and t.of("kernel", "tick"), t.other


def a_programs_own_handler_stays():
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "handles")
        r.process.send_signal(signal.SIGUSR2)
        assert r.process.stdout.readline() == "handled\n"
        r.end()
        assert not r.files(), r.files()


def a_child_is_ended_by_sigusr2_as_ever():
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "forks")
        r.process.send_signal(signal.SIGUSR2)
        r.file()
        r.end()
        assert r.files() == ["ring.json"], r.files()


def the_ring_bounds_what_is_kept():
    """Far more commands than a MiB has room for: the newest stay."""
    launches = 4000
    with servers(1) as one:
        r = Recorded(at(one.ports[0]), "plain", launches, ring=1)
        r.process.send_signal(signal.SIGUSR2)
        t = r.file()
        r.end()
    own = [e for e in t.slices if e["cat"] in ("client", "link") and t.process(e) == "client"]
    assert len(own) < (512 << 10) / 32 and 0 < len(t.of("kernel", "tick")) < launches, (t.other, len(own))
    assert t.other["dropped"] > launches, t.other
    calls = [e for e in t.of("client", "enqueue")]
    newest = max(e["args"]["event"] for e in t.of("kernel", "tick"))
    assert max(e["args"]["event"] for e in calls) == newest, "the newest ones"


def wrong_sizes_of_the_ring_are_refused():
    for size in "0", "1025", "4M", "-1", "":
        done = subprocess.run([SPANCL, "trace", "--ring", size, "true"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True, check=False)
        assert done.returncode == 2 and "--ring takes" in done.stderr, (size, done.stderr)


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
