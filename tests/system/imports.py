#!/usr/bin/env python3
"""imports.py BUILD [NAME...]: claims about `spancl trace --import` (docs/TRACING.md): events of perf, of babeltrace2's
text and of other programs' timelines. tracing.py has those of a real LTTng."""

import collections
import json
import shutil
import subprocess
import sys
import tempfile
from decimal import Decimal
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers
from pftrace import PfTrace
from timeline import Timeline, ns

FOLDER = tempfile.TemporaryDirectory()
PROGRAM, SPANCL = str(BUILD / "bin/system_profiled"), str(BUILD / "bin/spancl")
SLACK_NS = 100_000


def place(name):
    return Path(FOLDER.name) / name


def run(*command):
    return subprocess.run([str(c) for c in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=daemon.HANG_S)


def base(begin_us=1000, end_us=2000, **other):
    """A small timeline from one moment to another."""
    path = place("base.json")
    path.write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": [
        {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "client"}},
        {"ph": "M", "pid": 1, "tid": 7, "name": "thread_name", "args": {"name": "program"}},
        {"ph": "X", "pid": 1, "tid": 7, "ts": begin_us, "dur": end_us - begin_us, "name": "wait", "cat": "client",
         "args": {}}], "otherData": {"version": "1", **other}}))
    return path


def imported(timeline, *specs, output="out.json"):
    done = run(SPANCL, "trace", *(x for s in specs for x in ("--import", s)), "-o", place(output), timeline)
    assert done.returncode == 0 and not done.stdout, done.stderr
    assert place(output).stat().st_mode & 0o777 == 0o600
    return place(output), done.stderr.decode()


def events(text, timeline=None, prefix="", name="events.txt"):
    """Returns the slices of a text: process, row, begin and length in ns, name."""
    place(name).write_text(text)
    path, _ = imported(timeline or base(), f"{prefix}{place(name)}")
    t = Timeline(path)
    t.validate()
    rows = [(t.process(e), t.threads[e["pid"], e["tid"]], ns(e["ts"]), ns(e["dur"]), e["name"]) for e in t.of("imported")]
    return sorted(rows, key=lambda r: r[2:]), t


# --- perf ------------------------------------------------------------------------------------------

def _record(data, text, timeline):
    """Records a program and the switches of threads beside it. Returns the reason if perf is not permitted."""
    with servers(2) as both:
        done = subprocess.run(["perf", "record", "--quiet", "-k", "mono", "-a", "-e", "sched:sched_switch", "-o", data, "--",
                               SPANCL, "trace", "-o", timeline, "--", PROGRAM, "60", "21", "0"], check=False,
                              env=daemon.client_env(" ".join(map(at, both.ports))), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
    if not timeline.exists():
        return f"perf is not permitted: {done.stderr.strip().splitlines()[0]}"
    assert done.returncode == 0, done.stderr
    with text.open("w") as out:
        subprocess.run(["perf", "script", "--ns", "-F", "comm,pid,tid,cpu,time,event,trace", "-i", data], stdout=out,
                       stderr=subprocess.PIPE, check=True)
    return None


def _calls_on_processors(timeline, text):
    """Returns what the timeline says of the import, the client's calls, and those inside a slice of their thread."""
    path, said = imported(timeline, text)
    t = Timeline(path)
    t.validate()
    about = t.other["imported"][0]
    assert about["format"] == "perf script" and about["left_out"] == 0 and about["events"] > 100, about
    assert f"{text} (perf script): {about['events']} events" in said, said
    runs = collections.defaultdict(list)
    for e in t.of("imported"):
        assert e["name"].startswith("running: ") and t.threads[e["pid"], e["tid"]].startswith("CPU "), e
        runs[e["args"]["thread"]].append((ns(e["ts"]), ns(e["ts"]) + ns(e["dur"])))
    calls = t.of("client", "enqueue")
    # The client converts readings of the counter, so its clock is not the kernel's to the ns.
    inside = [e for e in calls if any(begin - SLACK_NS <= ns(e["ts"]) <= end + SLACK_NS for begin, end in runs[e["tid"]])]
    return about, calls, inside


def a_thread_runs_on_a_processor_when_it_calls():
    """The kernel's sched_switch and the client's calls are on one clock."""
    if not shutil.which("perf"):
        return "no perf"
    data, text, timeline = place("perf.data"), place("perf.txt"), place("timeline.json")
    # perf's file lacks switches on some hosts, where threads that it can't see have run before: record again. With clocks
    # that differ, hardly any call would be inside.
    for _ in range(3):
        if refused := _record(data, text, timeline):
            return refused
        about, calls, inside = _calls_on_processors(timeline, text)
        assert len(calls) > 80, len(calls)
        if len(inside) > len(calls) / 2:
            break
    assert len(inside) > len(calls) / 2, (len(calls), len(inside))
    # Perfetto's format has the same.
    pftrace, _ = imported(timeline, text, output="out.pftrace")
    p = PfTrace(pftrace.read_bytes())
    assert not place("out.pftrace.json").exists()
    assert sum(s.category == "imported" for s in p.slices) == about["events"], about
    assert [args["file"] for _, name, _, args in p.instants if name == "imported"] == [str(text)]
    return f"{about['events']} slices, {len(calls)} calls"


def perfs_lines_become_slices():
    """The lines are those of perf 6.1."""
    found, t = events("""
    my app 12/13 [001]     0.001100000:       sched:sched_switch: prev_comm=swapper/1 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=my app next_pid=13 next_prio=120
    my app 12/13 [001]     0.001110000:  raw_syscalls:sys_enter: NR 16 (b, 2400, 0, 7ff0ca22b5e0, 1, 0)
    my app 12/13 [001]     0.001110500:  syscalls:sys_enter_ioctl: fd: 0x0b, cmd: 0x2400, arg: 0x0
    my app 12/13 [001]     0.001150000:      irq:softirq_entry: vec=1 [action=TIMER]
    my app 12/13 [001]     0.001151000:  irq:irq_handler_entry: irq=24 name=virtio0-input.0
    my app 12/13 [001]     0.001153000:   irq:irq_handler_exit: irq=24 ret=handled
    my app 12/13 [001]     0.001160000:       irq:softirq_exit: vec=1 [action=TIMER]
    my app 12/13 [001]     0.001170000:   syscalls:sys_exit_ioctl: 0x0
    my app 12/13 [001]     0.001170100:   raw_syscalls:sys_exit: NR 16 = 0
    my app 12/13 [001]     0.001180000:              cpu-clock:
                7f00 main+0x12 (/usr/bin/app)
    my app 12/13 [001]     0.001200000:       sched:sched_switch: prev_comm=my app prev_pid=13 prev_prio=120 prev_state=S ==> next_comm=swapper/1 next_pid=0 next_prio=120
    my app 12/13 [001]     0.001300000:       sched:sched_switch: swapper/1:0 [120] R ==> a [b]:c:13 [120]
    my app 12/13 [001]     0.001400000:       sched:sched_switch: a [b]:c:13 [120] S ==> swapper/1:0 [120]
    other  20/20 [000]     5.000000000:              cpu-clock:
""")
    assert found == [("events.txt", "CPU 1", 1100000, 100000, "running: my app"),
                     ("events.txt", "my app 13", 1110000, 60000, "ioctl"),
                     ("events.txt", "CPU 1", 1150000, 10000, "softirq TIMER"),
                     ("events.txt", "CPU 1", 1151000, 2000, "irq virtio0-input.0"),
                     ("events.txt", "CPU 1", 1180000, 0, "cpu-clock"),
                     ("events.txt", "CPU 1", 1300000, 100000, "running: a [b]:c")], found
    about = t.other["imported"][0]
    assert (about["events"], about["outside"], about["left_out"]) == (6, 1, 0), about


# --- babeltrace2 -----------------------------------------------------------------------------------

def babeltraces_lines_become_slices():
    """LTTng's kernel tracer needs modules that few hosts of tests have: these lines have the form of its events."""
    found, _ = events("""[00000000000001100000] vm sched_switch: { cpu_id = 3 }, { prev_comm = "swapper/3", prev_tid = 0, prev_prio = 20, prev_state = ( "TASK_RUNNING" : container = 0 ), next_comm = "a \\"b\\", next_tid = 5", next_tid = 42, next_prio = 20 }
[00000000000001110000] vm syscall_entry_openat: { cpu_id = 3 }, { dfd = -100, filename = "/tmp/x, fd = 3", flags = 0 }
[00000000000001115000] vm irq_handler_entry: { cpu_id = 3 }, { irq = 24, name = "virtio0" }
[00000000000001116000] vm irq_handler_exit: { cpu_id = 3 }, { irq = 24, ret = 1 }
[00000000000001117000] vm irq_softirq_entry: { cpu_id = 3 }, { vec = 1 }
[00000000000001118000] vm irq_softirq_exit: { cpu_id = 3 }, { vec = 1 }
[00000000000001120000] vm syscall_exit_openat: { cpu_id = 3 }, { ret = 3 }
[00000000000001130000] vm block_rq_issue: { cpu_id = 3 }, { dev = 1 }
[00000000000001140000] vm my_provider:it: { cpu_id = 3 }, { vtid = 77, procname = "app" }, { x = 1 }
[00000000000001190000] vm timer_start: { cpu_id = 3 }, { }
""")
    name = 'running: a \\"b\\", next_tid = 5'
    assert found == [("events.txt", "CPU 3", 1100000, 90000, name),
                     ("events.txt", 'a \\"b\\", next_tid = 5 42', 1110000, 10000, "openat"),
                     ("events.txt", "CPU 3", 1115000, 1000, "irq virtio0"),
                     ("events.txt", "CPU 3", 1117000, 1000, "softirq 1"),
                     ("events.txt", "CPU 3", 1130000, 0, "block_rq_issue"),
                     ("events.txt", "app 77", 1140000, 0, "my_provider:it"),
                     ("events.txt", "CPU 3", 1190000, 0, "timer_start")], found


# --- other programs' timelines ---------------------------------------------------------------------

OTHER = [
    {"ph": "M", "pid": 9, "name": "process_name", "args": {"name": "driver"}},
    {"ph": "M", "pid": 9, "tid": 2, "name": "thread_name", "args": {"name": "queue \"1\""}},
    {"ph": "B", "pid": 9, "tid": 2, "ts": 100, "name": "outer", "args": {"size": 5, "a\"\\b": "x\"y", "r": 1.5}},
    {"ph": "X", "pid": 9, "tid": 2, "ts": 110.5, "dur": 20.25, "name": "inner", "cat": "kernel"},
    {"ph": "i", "pid": 9, "tid": 3, "ts": 120, "name": "mark", "s": "g"},
    {"ph": "C", "pid": 9, "ts": 130, "name": "memory", "args": {"used": 12, "rate": 0.5, "text": "no"}},
    {"ph": "E", "pid": 9, "tid": 2, "ts": 150},
    {"ph": "b", "pid": 9, "tid": 2, "ts": 150, "id": "1", "name": "of another kind"},
    {"ph": "B", "pid": 10, "tid": 1, "ts": 160, "name": "open"},
]


def timelines_of_other_programs_are_moved_to_the_clock():
    for text in json.dumps(OTHER), json.dumps({"traceEvents": OTHER, "metadata": {"x": [1]}}):
        found, t = events(text, prefix="@1000000=", name="own.json")
        assert found == [("own.json: driver", 'queue "1"', 1100000, 50000, "outer"),
                         ("own.json: driver", 'queue "1"', 1110500, 20250, "inner"),
                         ("own.json: driver", "3", 1120000, 0, "mark"),
                         ("own.json: 10", "1", 1160000, 0, "open")], found
        counts = [e for e in t.events if e["ph"] == "C"]
        assert [(t.process(e), ns(e["ts"]), e["name"], e["args"]) for e in counts] == \
            [("own.json: driver", 1130000, "memory", {"used": 12, "rate": Decimal("0.5")})], counts
        outer = [e for e in t.slices if e["name"] == "outer"][0]
        assert outer["args"] == {"size": 5, "a__b": 'x"y', "r": Decimal("1.5")}, outer
        about = t.other["imported"][0]
        assert (about["format"], about["shift_ns"], about["events"], about["left_out"]) == ("Chrome JSON", "1000000", 5, 1), about
        done = run(SPANCL, "trace", "--svg", place("out.json"), "-o", place("out.svg"))
        assert done.returncode == 0, done.stderr


def the_timeline_of_a_program_that_was_killed_is_taken():
    """Its array has no end."""
    whole = json.dumps(OTHER)
    for cut, left_out in (whole[:-1], 1), (whole[:-1] + ",\n", 1), (whole[:-1] + ', {"ph": "X", "pid": 9, "na', 2):
        _, t = events(cut, name="cut.json")
        about = t.other["imported"][0]
        assert (about["events"] + about["outside"], about["left_out"]) == (5, left_out), (cut[-20:], about)


def slices_end_in_their_rows():
    """Each of 1000 threads has two slices, one in the other, which end after all have begun."""
    texts = [{"ph": phase, "pid": 1, "tid": tid, "ts": 1000 + at, "name": name}
             for phase, name, at in (("B", "outer", 0), ("B", "inner", 100), ("E", "", 200), ("E", "", 300)) for tid in range(1000)]
    found, t = events(json.dumps(texts), name="rows.json")
    assert collections.Counter(r[2:] for r in found) == {(1000000, 300000, "outer"): 1000, (1100000, 100000, "inner"): 1000}, found[:3]
    assert len({(e["tid"], e["name"]) for e in t.of("imported")}) == 2000, len(found)


def a_servers_clock_is_the_timelines():
    """Offsets may be longer than the 53 bits of JSON's numbers, and add up with the one that the user gives."""
    ahead = 10**16 + 7
    timeline = base(clocks=[{"server": "gpu1", "error_ns": 1, "offset_ns": "0"},  # of an earlier session
                            {"server": "gpu1", "error_ns": 123, "offset_ns": str(ahead)},
                            {"server": "gpu2:4711", "error_ns": 5, "offset_ns": "-1000000"}])
    line = "app 1/1 [000] {}.{:09}: cpu-clock:\n"
    found, t = events(line.format(*divmod(ahead + 1200000, 10**9)), timeline, "gpu1=")
    assert found == [("gpu1: events.txt", "CPU 0", 1200000, 0, "cpu-clock")], found
    assert t.other["imported"][0]["error_ns"] == 123 and t.other["version"] == "1", t.other
    # Another import comes on top, and both are in the file.
    again = place("again.json")
    place("out.json").rename(again)
    found, t = events(line.format(0, 300000), again, "gpu2:4711@-50000=")
    assert found[1] == ("gpu2:4711: events.txt", "CPU 0", 1250000, 0, "cpu-clock"), found
    assert [a["shift_ns"] for a in t.other["imported"]] == ["950000", str(-ahead)], t.other
    assert len(t.processes) == 3, t.processes


# --- what can't be imported ------------------------------------------------------------------------

def events_outside_are_counted_and_told():
    place("late.txt").write_text("app 1/1 [000] 9.0: cpu-clock:\n")
    path, said = imported(base(), place("late.txt"))
    assert "0 events, 1 outside" in said and "CLOCK_MONOTONIC" in said, said
    assert Timeline(path).other["imported"][0]["outside"] == 1


def bad_arguments_and_files_are_refused():
    good, output = place("good.txt"), place("refused.json")
    timeline = base(clocks=[{"server": "older", "error_ns": 5},  # servers had no offset once
                            {"server": "wrong", "error_ns": 5, "offset_ns": "7x"}])
    good.write_text("app 1/1 [000] 0.001: cpu-clock:\n")
    bad, empty = place("bad.txt"), place("empty.json")
    bad.write_text("hello\n")
    empty.write_text('{"traceEvents": [], "otherData": {}}')
    for status, says, arguments in (
            (2, "--import takes", ["--import", "gpu1@x=f", timeline]), (2, "--import takes", ["--import", "@1=", timeline]),
            (2, "--import takes", ["--import", f"@{10**30}={good}", timeline]),
            (2, "at most 16", [*["--import", good] * 17, timeline]), (2, "Usage", ["--import", good]),
            (2, "Usage", ["--import", good, "--json", timeline]),
            (1, "no clock of a server gpu7", ["--import", f"gpu7={good}", timeline]),
            (1, "no clock of a server older", ["--import", f"older={good}", timeline]),
            (1, "no clock of a server wrong", ["--import", f"wrong={good}", timeline]),
            (1, "no text of babeltrace2", ["--import", bad, timeline]), (1, "is empty", ["--import", good, empty]),
            (1, "can't read", ["--import", place("none"), timeline]), (1, "bad.txt", ["--import", good, bad]),
            (1, "is read itself", ["--import", good, "-o", timeline, timeline]),
            (1, "is read itself", ["--import", good, "--import", bad, "-o", bad, timeline])):
        done = run(SPANCL, "trace", *([] if "-o" in arguments else ["-o", output]), *arguments)
        assert done.returncode == status and says in done.stderr.decode(), (arguments, done)
        assert not output.exists() and timeline.exists() and bad.read_text() == "hello\n", arguments


def hostile_events_become_a_timeline_or_are_refused():
    line = "app 1/{} [{}] 0.0015: {}\n"
    deep = "[" + ",".join(["{\"ph\": \"B\", \"pid\": 1, \"tid\": 1, \"ts\": 1500, \"name\": \"n\"}"] * 3000) + "]"
    texts = ["".join(line.format(i, 0, "raw_syscalls:sys_enter: NR 1 (") for i in range(5000)),
             "".join(line.format(i, i, "a:b: c") for i in range(3000)),
             line.format(2**70, 0, "a: b") + line.format(1, 2**70, "a: b") + line.format(1, 0, "e: \x00\x1b\u202e\""),
             "".join(line.format(1, 0, "irq:softirq_entry: vec=1 [action=X") for i in range(100)),
             line.format(1, 0, "sched:sched_switch: prev_comm= next_pid="), line.format(1, 0, "irq:irq_handler_"),
             "[1500000] h p:e: { cpu_id = 0 }, { vtid = 5 }, { begin_ns = 18446744073709551604, duration_ns = 50 }\n",
             "[1500000] h p:e: { cpu_id = 0 }, { \"\\", "[1500000] h " + "x" * 1000 + ": { cpu_id = 99999999 }\n",
             deep, json.dumps([{"ph": "X", "pid": i, "tid": i, "ts": 1500, "dur": 2**70, "name": "n" * 500} for i in range(300)]),
             json.dumps([{"ph": "E", "pid": 1, "tid": 1, "ts": 1500}] * 1000)]
    for text in texts:
        place("hostile.txt").write_text(text)
        path, _ = imported(base(), place("hostile.txt"))
        t = Timeline(path)
        assert len(t.processes) < 70 and len(t.threads) < 2100
        done = run(SPANCL, "trace", "--perfetto", path)
        assert done.returncode == 0, done.stderr
        PfTrace(done.stdout)
    for text in "", "\x00" * 100, "[", "{", "[1, 2]", '{"traceEvents": 1}', "[" * 1000, "[1500000] x\n" * 100:
        place("hostile.txt").write_text(text)
        done = run(SPANCL, "trace", "--import", place("hostile.txt"), base())
        assert done.returncode == 1 and b"hostile.txt: " in done.stderr, (text, done)


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
