#!/usr/bin/env python3
"""tracing.py BUILD [NAME...]: claims about tracers (docs/TRACING.md): LTTng's events and static probes. LTTng's daemon
is a real one, of its own. Status 77: the module or LTTng's programs are missing, or other programs use LTTng here."""

import collections
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers, start_endless
from timeline import Timeline, ns

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = tempfile.TemporaryDirectory()
RUN = Path("/run/lttng")  # of root's daemon; other users' lies in LTTNG_HOME
MODULE = BUILD / "lib/libspancl-lttng.so"
PROBES = re.findall(r"^PROBE\(\d+, (\w+), (\w+),", (ROOT / "src/trace/probes.def").read_text(), re.MULTILINE)
# Servers record from trace_start to trace_query; these belong to commands, and all commands lie between them.
OF_COMMANDS = ("submit", "complete", "notify", "flush")
LIBRARY, SERVER = BUILD / "lib/libspancl.so.1", BUILD / "bin/spancld"


def tool(*command, check=True):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          timeout=daemon.HANG_S)
    assert not check or done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


# --- LTTng ----------------------------------------------------------------------------------------

class Session:
    """LTTng's session daemon and a session that records all events of SpanCL. `prefix`: of the daemon's command."""

    def __init__(self, contexts=(), prefix=()):
        self.contexts, self.prefix = contexts, prefix

    def __enter__(self):
        self.output = Path(tempfile.mkdtemp(dir=FOLDER.name))
        self.process = subprocess.Popen([*self.prefix, "lttng-sessiond", "--no-kernel", "--sig-parent"], stdout=subprocess.DEVNULL,
                                        stderr=(self.output / "log").open("w"))
        assert signal.sigtimedwait([signal.SIGUSR1], daemon.HANG_S), (self.output / "log").read_text()
        tool("lttng", "create", "spancl", f"--output={self.output}/trace")
        tool("lttng", "enable-event", "--userspace", "spancl_client:*,spancl_server:*")
        for context in self.contexts:
            tool("lttng", "add-context", "--userspace", "--type", context)
        tool("lttng", "start")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def counts(self):
        """How often each event occurred."""
        tool("lttng", "destroy", "spancl")
        text = tool("babeltrace2", "--clock-cycles", f"{self.output}/trace")
        assert "discarded" not in text.lower(), text[:1000]
        return collections.Counter(re.findall(r" (spancl_\w+:\w+): ", text)), text


def compute(where, commands=100, **more):
    done = daemon.run([daemon.CLIENT, "--only", "empty", "--scale", str(commands // 20)], where, **more)
    assert done.returncode == 0, done.stderr
    return done.stderr


def the_events_are_as_many_as_the_timelines():
    timeline = Path(FOLDER.name) / "timeline.json"
    with Session() as session, servers(2, "--sandbox", "0", "--lttng") as both:
        said = compute(" ".join(map(at, both.ports)), SPANCL_LTTNG="on", SPANCL_TRACE=str(timeline))
        assert not said, said
        found, text = session.counts()
    spans = collections.Counter(("client" if e["pid"] == 1 else "server", e["name"])
                                for e in json.loads(timeline.read_text())["traceEvents"] if e["ph"] == "X")
    assert spans["client", "enqueue"] > 100 and spans["server", "submit"] > 100, spans
    for name, _ in PROBES:
        assert found[f"spancl_client:{name}"] == spans["client", name], (name, found, spans)
        if name in OF_COMMANDS:
            assert found[f"spancl_server:{name}"] == spans["server", name], (name, found, spans)
    # LTTng's clock is that of the timeline, so the kernel's events fit, too: each event is recorded after its end.
    times = [tuple(map(int, found)) for found in
             re.findall(r"\[(\d+)\] .* spancl_\w+:\w+: .*begin_ns = (\d+), duration_ns = (\d+)", text)]
    late = [at - begin - duration for at, begin, duration in times]
    assert len(times) == sum(found.values()) and 0 <= min(late) < 10**6, (len(times), min(late))
    # An event has the times and the value of its span.
    fields = re.search(r"spancl_client:enqueue: .*begin_ns = (\d+), duration_ns = (\d+), event = (\d+)", text)
    begin = f"{int(fields[1]) // 1000}.{int(fields[1]) % 1000:03}"
    assert re.search(rf'"ts": {re.escape(begin)}, .*"enqueue".*"event": {fields[3]}[,}}]', timeline.read_text()), fields[0]


def lttng_lists_the_events_of_running_programs():
    with Session(), servers(1, "--sandbox", "0", "--lttng") as server:
        client = start_endless(at(server.ports[0]), SPANCL_LTTNG="on")
        try:
            listed = tool("lttng", "list", "--userspace")
        finally:
            client.kill()
            client.communicate()
    for side in "client", "server":
        for name, _ in PROBES:
            assert f" spancl_{side}:{name} " in listed, f"{side}:{name}\n{listed}"


def maps(pid):
    return Path(f"/proc/{pid}/maps").read_text()


def lttngs_library_enters_no_process_unasked():
    with Session(), servers(1, "--sandbox", "0") as server:
        client = start_endless(at(server.ports[0]))
        try:
            workers = daemon.children(server.processes[0].pid)
            assert workers
            for pid in (client.pid, *workers):
                assert "libspancl" in maps(client.pid) and "lttng" not in maps(pid)
            assert "spancl" not in tool("lttng", "list", "--userspace")
        finally:
            client.kill()
            client.communicate()


def without_a_session_daemon_everything_works():
    with servers(1, "--sandbox", "0", "--lttng") as server:
        assert not compute(at(server.ports[0]), SPANCL_LTTNG="on")


def the_first_program_of_a_host_starts():
    """Without its file in /dev/shm, LTTng's library forks a child to make it, while SpanCL's client starts."""
    if subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "none", "/dev/shm"], stderr=subprocess.DEVNULL,
                      check=False).returncode:
        return "not permitted to have another /dev/shm"
    with servers(1) as server:
        done = daemon.run(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /dev/shm && "$@" && ls /dev/shm', "-",
                           daemon.CLIENT, "--only", "empty", "--scale", "5"], at(server.ports[0]), SPANCL_LTTNG="on")
    assert done.returncode == 0 and not done.stderr, done
    assert "lttng-ust-wait" in done.stdout.splitlines()[-1], done.stdout
    return None


def a_missing_module_is_named_and_the_program_runs():
    alone = Path(tempfile.mkdtemp(dir=FOLDER.name))
    shutil.copy(LIBRARY, alone / "libspancl.so.1")
    (alone / "spancl.icd").write_text(f"{alone}/libspancl.so.1\n")
    with servers(1) as server:
        said = compute(at(server.ports[0]), SPANCL_LTTNG="on", OCL_ICD_VENDORS=str(alone))
    assert "libspancl-lttng.so, which is not installed" in said, said


def a_sandboxed_server_refuses_lttng():
    done = subprocess.run([SERVER, "--listen", "localhost:0", "--lttng"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=daemon.HANG_S, check=False)
    assert done.returncode == 2 and "--lttng needs --sandbox 0" in done.stderr, done.stderr


# --- LTTng's events in a timeline ------------------------------------------------------------------

def imported(session, timeline, server=""):
    """The timeline with the session's events: the slices of both, and what the file says about the import."""
    tool("lttng", "destroy", "spancl")
    text, both = session.output / "lttng.txt", session.output / "both.json"
    text.write_text(tool("babeltrace2", "--clock-cycles", "--no-delta", f"{session.output}/trace"))
    tool(str(BUILD / "bin/spancl"), "trace", "--import", f"{server}{'=' if server else ''}{text}", "-o", str(both), str(timeline))
    t = Timeline(both)
    t.validate()
    return t, text.read_text(), t.other["imported"][0]


def spans(t, side, prefix=""):
    """The lengths in ns of the spans, sorted, by their name and end in ns."""
    chosen = [e for e in t.slices if (e["name"].startswith(prefix) if prefix else
                                      e["cat"] != "imported" and e["name"] in dict(PROBES) and side(t.process(e)))]
    ret = collections.defaultdict(list)
    for e in chosen:
        ret[e["name"][len(prefix):], ns(e["ts"]) + ns(e["dur"])].append(ns(e["dur"]))
    return {k: sorted(lengths) for k, lengths in ret.items()}


def different(ours, theirs):
    """Those of our spans that are not among theirs. Ends are the same to the ns. LTTng gets a span when it ends, and its
    begin is converted by the comparison of the clocks before that. A timeline is written later, and takes the
    two comparisons around the begin. In a thread's first ms, rates are good to 1e-3 only."""
    return [(k, lengths, theirs.get(k)) for k, lengths in ours.items()
            if len(theirs.get(k, ())) != len(lengths) or
            any(abs(a - b) > 100 + a / 1000 for a, b in zip(lengths, theirs[k]))]


def imported_events_stand_where_the_timeline_has_them():
    """LTTng and the timeline recorded the same spans. With the context vtid they also have the same threads."""
    timeline = Path(FOLDER.name) / "imported.json"
    with Session(("vtid", "procname")) as session, servers(1) as one:
        assert not compute(at(one.ports[0]), SPANCL_LTTNG="on", SPANCL_TRACE=str(timeline))
        t, text, about = imported(session, timeline)
    ours, theirs = spans(t, lambda process: process == "client"), spans(t, None, "spancl_client:")
    assert len(ours) > 100 and ours.keys() == theirs.keys() and not different(ours, theirs), (
        different(ours, theirs)[:3], different(theirs, ours)[:3])
    assert about["format"] == "babeltrace2" and about["shift_ns"] == "0" and about["error_ns"] == 0, about
    assert about["events"] == text.count("spancl_client:") and about["outside"] == about["left_out"] == 0, about
    calls = {e["tid"] for e in t.of("client", "enqueue")}
    assert calls and calls == {e["tid"] for e in t.of("imported", "spancl_client:enqueue")}, calls
    return f"{about['events']} events"


def events_of_a_server_are_brought_to_the_clients_clock():
    """The server's CLOCK_MONOTONIC is a day ahead, and LTTng records with it."""
    ahead = ("unshare", "--time", "--monotonic", "86400")
    if subprocess.run([*ahead, "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        return "not permitted to have another clock"
    timeline = Path(FOLDER.name) / "ahead.json"
    with Session(("vtid",), ahead) as session, servers(1, "--sandbox", "0", "--lttng", prefix=ahead) as one:
        name = at(one.ports[0])
        assert not compute(name, SPANCL_TRACE=str(timeline))
        t, _, about = imported(session, timeline, name)
    clock = t.other["clocks"][0]
    assert abs(int(clock["offset_ns"]) - 86400 * 10**9) < 10**9 and about["server"] == name, (clock, about)
    assert int(about["shift_ns"]) == -int(clock["offset_ns"]) and 0 < about["error_ns"] == clock["error_ns"] < 10**9, about
    ours, theirs = spans(t, lambda process: process == name), spans(t, None, "spancl_server:")
    # Both times are those of one record, moved by the same offset.
    of_commands = {k: lengths for k, lengths in ours.items() if k[0] in OF_COMMANDS}
    assert len(of_commands) > 100 and not different(of_commands, theirs), different(of_commands, theirs)[:3]
    return f"off by {about['error_ns'] / 1000:.0f} us at most"


# --- Static probes --------------------------------------------------------------------------------

def static_probes():
    return re.search(r"^SPANCL_HAVE_SDT:\w+=1$", (BUILD / "CMakeCache.txt").read_text(), re.MULTILINE)


def notes(path):
    """The places and the semaphore of each static probe of a file."""
    found = collections.defaultdict(set)
    for name, place, semaphore in re.findall(
            r"Provider: spancl\s+Name: (\w+)\s+Location: (0x\w+), Base: 0x\w+, Semaphore: (0x\w+)\s+Arguments: 8@\S+ 8@\S+ 8@\S+\n",
            tool("readelf", "--notes", str(path))):
        found[name].add((int(place, 16), int(semaphore, 16)))
    return found


def every_probe_has_a_note_in_client_and_server():
    if not static_probes():
        return "no sys/sdt.h"
    for path in LIBRARY, SERVER:
        found = notes(path)
        assert set(found) == {name for name, _ in PROBES}, found
        semaphores = {s for places in found.values() for _, s in places}
        section = re.search(r" \.probes +PROGBITS +(\w+) \w+ (\w+)", tool("readelf", "--sections", "--wide", str(path)))
        begin, size = int(section[1], 16), int(section[2], 16)
        assert len(semaphores) == 1 and begin <= min(semaphores) < begin + size, (semaphores, section[0])
    return None


def base_of(pid, path):
    """The address at which a process has a library."""
    return min(int(line.split("-")[0], 16) for line in maps(pid).splitlines() if line.endswith(f"/{path.resolve().name}"))


def a_probe_fires_while_its_semaphore_counts_a_tracer():
    """The tracer of this claim replaces the nop by a trap, as tracers do, and the trap ends the program."""
    if not static_probes():
        return "no sys/sdt.h"
    if os.uname().machine != "x86_64":
        return "the trap is x86's"
    places = notes(LIBRARY)["enqueue"]
    with servers(1) as server:
        client = start_endless(at(server.ports[0]))
        try:
            base = base_of(client.pid, LIBRARY)
            with open(f"/proc/{client.pid}/mem", "r+b", buffering=0) as memory:
                for place, _ in places:
                    memory.seek(base + place)
                    assert memory.read(1) == b"\x90"
                    memory.seek(base + place)
                    memory.write(b"\xcc")
                time.sleep(1)
                assert client.poll() is None  # nobody fires it
                memory.seek(base + next(iter(places))[1])
                memory.write((1).to_bytes(2, "little"))
            assert client.wait(daemon.HANG_S) == -signal.SIGTRAP
        finally:
            client.kill()
            client.communicate()
    return None


def perf_records_as_many_as_the_timeline():
    """Where the kernel lets this user trace: a tracer of the operating system counts in the semaphore itself."""
    timeline, samples = (Path(FOLDER.name) / name for name in ("perf.json", "perf.data"))
    library, event = LIBRARY.resolve(), "sdt_spancl:enqueue"
    perf = ("perf", "--buildid-dir", FOLDER.name)
    if not static_probes() or not shutil.which("perf"):
        return "no sys/sdt.h, or no perf"
    tool(*perf, "buildid-cache", "--add", str(library), check=False)
    if "perf record" not in (said := tool(*perf, "probe", "-x", str(library), event, check=False)):
        return f"not permitted: {said.strip().splitlines()[-1]}"
    try:
        with servers(1) as server:
            done = daemon.run([*perf, "record", "-o", str(samples), "-e", event, daemon.CLIENT, "--only", "empty",
                               "--scale", "5"], at(server.ports[0]), SPANCL_TRACE=str(timeline))
    finally:
        tool(*perf, "probe", "-d", event, check=False)
    if done.returncode:
        return f"not permitted: {done.stderr.strip().splitlines()[-1]}"
    spans = sum(e["name"] == "enqueue" and e["ph"] == "X" for e in json.loads(timeline.read_text())["traceEvents"])
    found = tool(*perf, "script", "-i", str(samples)).count(event + ":")
    assert found == spans > 100, (found, spans)
    return f"{found} samples"


# --------------------------------------------------------------------------------------------------

def alone():
    """Give root's daemon a folder that no other program sees. Returns false if that can't be."""
    if os.getuid():
        os.environ["LTTNG_HOME"] = FOLDER.name
        return True
    if "TRACING_ALONE" not in os.environ:
        RUN.mkdir(exist_ok=True)
        done = subprocess.run(["unshare", "--mount", "mount", "-t", "tmpfs", "lttng", str(RUN)],
                              stderr=subprocess.DEVNULL, check=False)
        if done.returncode == 0:
            os.environ["TRACING_ALONE"] = "1"
            os.execvp("unshare", ["unshare", "--mount", "sh", "-c", f'mount -t tmpfs lttng {RUN} && exec "$@"', "-",
                                  sys.executable, *sys.argv])
        if tool("pidof", "lttng-sessiond", check=False):
            return False
    os.environ["LTTNG_HOME"] = FOLDER.name
    return True


def main():
    if not MODULE.exists() or not all(map(shutil.which, ("lttng-sessiond", "lttng", "babeltrace2"))):
        return 77
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])  # the daemon says so that it is ready
    return claims.run(globals()) if alone() else 77


if __name__ == "__main__":
    sys.exit(main())
