#!/usr/bin/env python3
"""profile.py BUILD [NAME...]: claims about `spancl profile` (docs/PROFILE.md), with two servers and known counts."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

import claims
import daemon
from daemon import BUILD, at, servers
from relay import Relay

FOLDER = tempfile.TemporaryDirectory()
PROGRAM, SPANCL = str(BUILD / "bin/system_profiled"), str(BUILD / "bin/spancl")
LAUNCHES, MOVES, MIB = 60, 21, 1 << 20
KIB64 = 64 << 10


def profile(where, *command, json_too=True):
    done = daemon.run([SPANCL, "profile", *(("--json",) if json_too else ()), "--", *map(str, command)], where)
    return done


def profiled(where, *arguments):
    done = profile(where, PROGRAM, *arguments)
    assert done.returncode == 0 and done.stdout == "computed\n", f"{done.stdout}{done.stderr}"
    return json.loads(done.stderr.splitlines()[-1])


def names(both):
    return [at(port) for port in both.ports]


def row(rows, name, server):
    found = [r for r in rows if (r["name"], r["server"]) == (name, server)]
    assert len(found) == 1, (name, server, rows)
    return found[0]


def counts_are_those_of_the_program():
    with servers(2) as both:
        first, second = names(both)
        p = profiled(f"{first} {second}", LAUNCHES, MOVES, 0)
    assert [s["name"] for s in p["servers"]] == [first, second]
    assert row(p["kernels"], "tick", first)["count"] == LAUNCHES
    assert row(p["kernels"], "touch", first)["count"] == row(p["kernels"], "touch", second)["count"] == (MOVES + 1) / 2
    write, read = (row(p["commands"], name, first) for name in ("write buffer", "read buffer"))
    assert (write["count"], write["bytes"]) == (6, 5 * KIB64 + MIB), write
    assert (read["count"], read["bytes"]) == (3, 3 * KIB64), read
    last = row(p["commands"], "read buffer", second)
    assert (last["count"], last["bytes"]) == (1, MIB), last
    assert p["calls"] == LAUNCHES + MOVES + 1 + 6 + 4
    finishes = {w["server"]: w["calls"] for w in p["waits"] if w["kind"] == "finish"}
    # The program finishes each queue once more at its end.
    assert finishes == {first: LAUNCHES + (MOVES + 1) / 2 + 1, second: (MOVES + 1) / 2 + 1}, finishes
    there = {(m["from"], m["to"]): m for m in p["moves"] if m["size_bytes"] == MIB}
    assert set(there) == {(first, second), (second, first)}, there
    assert there[first, second]["count"] == (MOVES + 1) / 2 and there[second, first]["count"] == (MOVES - 1) / 2, there
    assert sum(m["bytes"] for m in there.values()) == MOVES * MIB, there
    assert any(f"(1.0 MiB) migrates {MOVES} times between {first} and {second}" in text for text in p["advice"]), p


def the_parts_are_the_whole_time():
    with servers(2) as both:
        p = profiled(" ".join(names(both)), LAUNCHES, MOVES, 0)
    parts = [p[f"{part}_ns"] for part in ("program", "client", "device", "link", "server", "waiting")]
    assert sum(parts) == p["wall_ns"], p
    waits = sum(w["wait_ns"] for w in p["waits"])
    assert all(w["device_ns"] + w["link_ns"] + w["server_ns"] <= w["wait_ns"] for w in p["waits"]), p
    assert sum(parts[2:]) >= waits, p
    for kernel in p["kernels"]:
        assert 0 < kernel["timed"] <= kernel["count"] and kernel["device_ns"] > 0, kernel
    assert p["bound"] in ("program", "client", "device", "latency", "synchronisation", "bandwidth", "server", "waiting")


def the_time_of_bytes_on_a_slow_link_is_the_links():
    """The program writes 1.3 MiB there and back again, a MiB of it without blocking before a clFinish."""
    with servers(2) as both:
        relay = Relay(both.ports[0], rate=1 << 20)
        done = daemon.run([SPANCL, "profile", "--json", "--", PROGRAM, "0", "0", "0"], f"{at(relay.port)} {at(both.ports[1])}",
                          SPANCL_COMPRESSION="off")
        relay.close()
    assert done.returncode == 0, done.stderr
    p = json.loads(done.stderr.splitlines()[-1])
    assert p["bound"] in ("bandwidth", "program"), p
    finish = [w for w in p["waits"] if w["kind"] == "finish" and w["server"] == at(relay.port)][0]
    assert finish["link_ns"] > finish["device_ns"] + finish["server_ns"], finish
    blocking = [w for w in p["waits"] if w["kind"] == "blocking" and w["server"] == at(relay.port)][0]
    assert blocking["link_ns"] > blocking["device_ns"] + blocking["server_ns"], blocking


def the_time_of_many_kernels_before_one_wait_is_the_devices():
    program = [str(BUILD / "bin/lbm"), "--size", "32", "--steps", "200", "--kernels", str(daemon.ROOT / "examples/lbm")]
    if not Path(program[0]).exists():
        return "not run: the examples are not built"
    with servers(1) as one:
        for _ in range(5):  # other programs of the host take processor time from the server, too
            done = profile(at(one.ports[0]), *program)
            assert done.returncode == 0, done.stderr
            p = json.loads(done.stderr.splitlines()[-1])
            finish = [w for w in p["waits"] if w["kind"] == "finish"][0]
            if finish["device_ns"] > finish["wait_ns"] / 2:
                return
    raise AssertionError(p)


def the_file_counts_each_command():
    ledger, kernels = Path(FOLDER.name) / "ledger", 20
    with servers(2) as both:
        done = daemon.run([PROGRAM, "3", "1", str(kernels)], " ".join(names(both)), SPANCL_PROFILE_FILE=str(ledger))
    assert done.returncode == 0, done.stderr
    lines = [line.split("\t") for line in ledger.read_text().splitlines()]
    assert lines[0] == ["spancl-profile", "1"] and lines[-1] == ["end"]
    rows = [line for line in lines if line[0] in ("kernel", "command")]
    assert sum(int(line[2]) for line in rows) == 3 + kernels + 2 + 6 + 4


def the_text_names_what_costs():
    with servers(2) as both:
        done = profile(" ".join(names(both)), PROGRAM, LAUNCHES, MOVES, 0, json_too=False)
    assert done.returncode == 0 and done.stdout == "computed\n", done.stderr
    for words in ("Where ", "Bound by ", "tick", "touch", "write buffer", "Advice:"):
        assert words in done.stderr, (words, done.stderr)


# --- The file for browsers --------------------------------------------------------------------------

XHTML = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "code", "strong", "span", "bdi", "small",
         "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "footer", "svg", "rect"}


def page(where, *command, path="report.html"):
    """Returns how the program ended, and the page, which is well-formed and has no element that could load or run something."""
    file = Path(FOLDER.name) / path
    done = daemon.run([SPANCL, "profile", "--html", str(file), "--", *map(str, command)], where)
    assert done.returncode == 0 and f"the report is in {file}" in done.stderr, done.stderr
    assert file.stat().st_mode & 0o777 == 0o600, oct(file.stat().st_mode)
    text = file.read_text(encoding="utf-8", errors="strict")
    root = ElementTree.fromstring(text)
    for e in root.iter():
        assert e.tag in XHTML, e.tag
        assert set(e.attrib) <= {"lang", "charset", "name", "content", "http-equiv", "class", "title", "viewBox", "aria-hidden",
                                 "preserveAspectRatio", "x", "y", "width", "height"}, e.attrib
    assert "url(" not in text and "@import" not in text and "default-src 'none'" in text
    return file, root


def text_of(root, path):
    return ["".join(e.itertext()) for e in root.findall(path)]


def browser(*arguments):
    """Run headless Chromium, if there is one."""
    program = shutil.which("chromium")
    if not program:
        return None
    profile_folder = tempfile.mkdtemp(dir=FOLDER.name)
    return subprocess.run([program, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile_folder}",
                           "--no-first-run", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)


def the_page_says_what_the_text_says():
    with servers(2) as both:
        first, second = names(both)
        _, root = page(f"{first} {second}", PROGRAM, LAUNCHES, MOVES, 0)
    assert text_of(root, ".//h1")[0].startswith("Where "), text_of(root, ".//h1")
    assert text_of(root, ".//code")[0] == f"{PROGRAM} {LAUNCHES} {MOVES} 0"
    titles = text_of(root, ".//h2")
    assert titles == ["What to do", "Balance of the servers", "Kernels that cost most", "Transfers and other commands",
                      "What it waited for", "Memory that moves"], titles
    rows = {"".join(tr[0].itertext()): [td.text for td in tr] for tr in root.findall(".//tr") if tr[0].tag == "td"}
    assert rows[f"tick{first}"][2] == str(LAUNCHES) and rows[f"touch{second}"][2] == str((MOVES + 1) // 2), rows
    assert rows[f"write buffer{first}"][5] == "1.3 MiB", rows
    assert {first, second, "program", "client", "device", "link", "server", "waiting"} <= set(rows), rows
    assert any(f"(1.0 MiB) migrates {MOVES} times" in text for text in text_of(root, ".//li"))
    whole = root.find(".//svg[@class='whole']")
    assert whole is not None and 900 < sum(float(r.attrib["width"]) for r in whole) < 1012, "the parts are the whole"


def hostile_names_are_only_text_in_the_page():
    """The program writes the ledger itself, with names that try to be elements."""
    hostile = ["</td></table><script>document.title='taken'</script>", "<img src=x onerror=\"document.title='taken'\">",
               "' onload='x", "&lt;b&#60;&amp;", "\u202eabc\u2066", "`</code>`<b>`", "\udcff\udcc2"]
    lines = ["spancl-profile\t1", "total\t1000000000\t10\t1000\t10\t900000000"]
    for i, name in enumerate(hostile):
        lines += [f"server\t{i}\t1000\t1\t1\t1\t{name}", f"wait\t{i}\tfinish\t20\t20\t100000000\t0\t90000000\t0",
                  f"kernel\t{i}\t10\t0\t10\t{10**8 * i}\t0\t{name}", f"command\t{i}\t200\t400\t0\t0\t100000000\t{name}",
                  f"move\t{7 + i}\t10\t{i}\t{(i + 1) % 7}\t9\t90", f"move\t{7 + i}\t10\t{(i + 1) % 7}\t{i}\t9\t90"]
    ledger = Path(FOLDER.name) / "hostile"
    ledger.write_bytes("\n".join([*lines, "end", ""]).encode(errors="surrogateescape"))
    command = f"cat {ledger} >$SPANCL_PROFILE_FILE; : '<script>' </dev/null"
    file, root = page("localhost", "sh", "-c", command)
    text = "".join(root.itertext())
    assert command in text and hostile[0] in text and hostile[1] in text and hostile[3] in text
    assert not set(text) & set("\u202e\u2066"), "characters that turn the direction"
    assert len(text_of(root, ".//li")) == 12, text_of(root, ".//li")
    done = browser("--dump-dom", file.as_uri())
    if not done:
        return "not looked at in a browser: no chromium here"
    assert done.returncode == 0 and "<title>Profile of sh</title>" in done.stdout and "<script" not in done.stdout, done


def a_page_that_cannot_be_written_is_said_first():
    done = daemon.run([SPANCL, "profile", "--html", "/no/such/file", "--", "sh", "-c", "echo ran"], "localhost")
    assert done.returncode == 2 and "can't write /no/such/file" in done.stderr and not done.stdout, done
    done = daemon.run([SPANCL, "profile", "--html", "/dev/full", "--", PROGRAM, "3", "1", "0"], "in-process in-process")
    assert done.returncode == 1 and "can't write /dev/full" in done.stderr, done
    target, link = Path(FOLDER.name) / "target", Path(FOLDER.name) / "link.html"
    target.write_text("kept")
    link.symlink_to(target)
    done = daemon.run([SPANCL, "profile", "--html", str(link), "--", "sh", "-c", "echo ran"], "localhost")
    assert done.returncode == 2 and f"can't write {link}" in done.stderr and not done.stdout, done
    assert target.read_text() == "kept"


def with_json_beside_the_page_only_that_is_printed():
    file = Path(FOLDER.name) / "beside.html"
    done = daemon.run([SPANCL, "profile", "--json", "--html", str(file), "--", PROGRAM, "3", "1", "0"], "in-process in-process")
    assert done.returncode == 0 and "spancl: " not in done.stderr and "</html>" in file.read_text(), done
    assert json.loads(done.stderr.splitlines()[-1])["calls"]


def status_and_missing_profiles_are_clear():
    with servers(1) as one:
        done = profile(at(one.ports[0]), "sh", "-c", "exit 7")
        assert done.returncode == 7 and "did not use SpanCL" in done.stderr, done.stderr
        done = profile(at(one.ports[0]), "sh", "-c", "kill -KILL $$")
        assert done.returncode == 128 + signal.SIGKILL and "no profile" in done.stderr, done.stderr
        done = profile(at(one.ports[0]), "/no/such/program")
        assert done.returncode == 127, done.stderr
    done = subprocess.run([SPANCL, "profile"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2 and "Usage: spancl profile" in done.stderr


# --- Other links --------------------------------------------------------------------------------------

FAR_MS = 20


def predicted(where, *links, launches=LAUNCHES):
    """Returns the predictions of a run. The first one is for the recorded link."""
    options = [word for link in links for word in ("--what-if", link)]
    done = daemon.run([SPANCL, "profile", "--json", *options, "--", PROGRAM, str(launches), "1", "0"], where)
    assert done.returncode == 0 and done.stdout == "computed\n", done.stderr
    return json.loads(done.stderr.splitlines()[-1])["what_if"]


def a_slower_link_costs_each_wait_a_round_trip():
    """On a busy host the measured round trip can be much longer than those of the run, so this is tried again."""
    with servers(2) as both:
        for _ in range(5):
            w = predicted(" ".join(names(both)), f"rtt={FAR_MS}ms", "rtt=1s,bw=1Gbit", "bw=1Mbit", "rtt=0us")
            if w["round_trip_ns"] < 1e6 and 0.8 < w["links"][0]["predicted_ns"] / w["measured_ns"] < 1.2:
                break
    near, far, farther, narrow, none = (link["predicted_ns"] for link in w["links"])
    assert [link["link"] for link in w["links"]] == [None, f"rtt={FAR_MS}ms", "rtt=1s,bw=1Gbit", "bw=1Mbit", "rtt=0us"], w
    assert 0.8 < near / w["measured_ns"] < 1.2, w
    assert near + LAUNCHES * (FAR_MS - 1) * 1e6 < far < farther and none <= near, w
    assert near + LAUNCHES * 0.9e9 < farther and w["links"][2]["bound"] == "latency", w
    # The program writes and reads 3.4 MB and a buffer moves.
    assert narrow > near + 20e9 and w["links"][3]["bound"] == "bandwidth", w


def a_recording_times_few_launches_so_it_takes_no_longer():
    """The first 16 of a kernel, then about one in 16; all other commands."""
    ledger, timeline = Path(FOLDER.name) / "some.ledger", Path(FOLDER.name) / "some.json"
    with servers(2) as both:
        done = daemon.run([PROGRAM, str(LAUNCHES), "1", "0"], " ".join(names(both)), SPANCL_PROFILE_FILE=str(ledger),
                          SPANCL_TRACE=str(timeline), SPANCL_TRACE_TIMES="some")
    assert done.returncode == 0, done.stderr
    events = [e for e in json.loads(timeline.read_text())["traceEvents"] if e.get("cat") in ("kernel", "transfer")]
    timed, untimed = ([e for e in events if ("untimed" in e["args"]) == not_timed] for not_timed in (False, True))
    assert {e["name"] for e in untimed} == {"tick"} and all(e["dur"] == 0 for e in untimed), untimed
    ticks = [e for e in timed if e["name"] == "tick"]
    assert 16 < len(ticks) < 16 + (LAUNCHES - 16) / 2 and len(ticks) + len(untimed) == LAUNCHES, (len(ticks), len(untimed))
    assert len([e for e in timed if e["cat"] == "transfer"]) >= 6, timed


def the_prediction_is_what_a_run_over_such_a_link_takes():
    """The bounds are wide, because other programs of the host take processor time from both runs. bench/what_if.py has the
    figures."""
    with servers(2) as both:
        proxy = subprocess.Popen([BUILD / "bin/bench_link", str(FAR_MS), "0", *map(str, both.ports)], stdout=subprocess.PIPE,
                                 text=True)
        far = " ".join(at(port) for port in proxy.stdout.readline().split())
        try:
            for _ in range(5):
                guess = predicted(" ".join(names(both)), f"rtt={FAR_MS}ms")["links"][1]["predicted_ns"]
                real = predicted(far, "rtt=0ms")
                assert real["measured_ns"] > LAUNCHES * FAR_MS * 1e6 > real["links"][1]["predicted_ns"] / 10, real
                if 0.6 < guess / real["measured_ns"] < 1.6:
                    return
        finally:
            proxy.kill()
            proxy.wait()
    raise AssertionError((guess, real))


def links_that_make_no_sense_are_refused_before_the_program_runs():
    for link in "rtt=5", "rtt=ms", "loss=1%", "", "rtt=5ms,rtt=5ms", "bw=0Mbit":
        done = daemon.run([SPANCL, "profile", "--what-if", link, "--", "sh", "-c", "echo ran"], "localhost")
        assert done.returncode == 2 and "--what-if: " in done.stderr and not done.stdout, (link, done)
    many = ["--what-if", "rtt=1ms"] * 17
    done = daemon.run([SPANCL, "profile", *many, "--", "sh", "-c", "echo ran"], "localhost")
    assert done.returncode == 2 and "16 times" in done.stderr and not done.stdout, done


def timelines_that_are_none_are_named():
    """The program writes the files itself."""
    ledger = Path(FOLDER.name) / "whole"
    ledger.write_text("spancl-profile\t1\ntotal\t1000\t1\t1\t1\t1\nserver\t0\t1\t1\t1\t1\tgpu1\nend\n")
    for text, words in ("", "has no commands"), ("[]", "can't be replayed"), ('{"traceEvents":[]}', "has no commands"):
        command = f"cat {ledger} >$SPANCL_PROFILE_FILE; printf '%s' '{text}' >$SPANCL_TRACE"
        done = daemon.run([SPANCL, "profile", "--what-if", "rtt=1ms", "--", "sh", "-c", command], "localhost")
        assert done.returncode == 1 and words in done.stderr and "Where " in done.stderr, (text, done)


def the_page_and_the_text_have_the_predictions():
    with servers(2) as both:
        where = " ".join(names(both))
        file = Path(FOLDER.name) / "links.html"
        done = daemon.run([SPANCL, "profile", "--html", str(file), "--what-if", "rtt=3ms", "--", PROGRAM, "3", "1", "0"], where)
        assert done.returncode == 0, done.stderr
        root = ElementTree.fromstring(file.read_text())
        assert "Other links to the servers" in text_of(root, ".//h2"), text_of(root, ".//h2")
        assert any(tr[0].text == "rtt=3ms" or "".join(tr[0].itertext()) == "rtt=3ms" for tr in root.findall(".//tr"))
        done = daemon.run([SPANCL, "profile", "--what-if", "rtt=3ms", "--", PROGRAM, "3", "1", "0"], where)
    assert done.returncode == 0 and "rtt=3ms " in done.stderr and "as recorded: " in done.stderr, done.stderr
    assert "The model is off by" in done.stderr, done.stderr


def a_folder_that_cannot_be_written_is_named_and_the_program_runs():
    with servers(2) as both:
        done = daemon.run([PROGRAM, "3", "1", "0"], " ".join(names(both)), SPANCL_PROFILE_FILE="/no/such/file")
    assert done.returncode == 0 and done.stdout == "computed\n", done.stderr
    assert "SPANCL_PROFILE_FILE: can't write /no/such/file" in done.stderr, done.stderr


def in_process_devices_and_command_buffers_are_profiled():
    ledger = Path(FOLDER.name) / "buffers"
    for name in "command_buffer", "command_frames":
        with servers(2) as both:
            done = daemon.run([str(BUILD / f"bin/api_spancl_{name}")], " ".join(names(both)),
                              SPANCL_PROFILE_FILE=str(ledger))
        assert done.returncode in (0, 77), done.stderr
        assert done.returncode or "\tcommand buffer\n" in ledger.read_text()
    done = daemon.run([daemon.CLIENT, "--only", "empty", "--scale", "5"], "in-process", SPANCL_PROFILE_FILE=str(ledger))
    assert done.returncode == 0 and "\ttick\n" in ledger.read_text(), done.stderr


if __name__ == "__main__":
    os.environ["TMPDIR"] = FOLDER.name  # where `spancl profile` keeps its file
    status = claims.run(globals())
    left = list(Path(FOLDER.name).glob("spancl-profile.*"))
    sys.exit(status or (1 if left else 0))
