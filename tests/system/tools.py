#!/usr/bin/env python3
"""tools.py BUILD [NAME...]: claims about what people and programs see of the tools: screens of `spancl top` through
tmux, and JSON. Each function is one claim."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from claims import wait_for  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 120  # a watchdog, not a claim about speed
SPANCL = str(BUILD / "bin/spancl")


def environment(**more):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SPANCL_", "TMUX"))}
    env.update(TERM="xterm", LANG="C.UTF-8", **more)
    return env


def spancl(*command, **more):
    return subprocess.run([SPANCL, *command], env=environment(**more), text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=HANG_S, check=False)


def lines_of(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def wait_for(what, why):
    deadline = time.monotonic() + HANG_S
    while not (found := what()):
        assert time.monotonic() < deadline, why() if callable(why) else why
        time.sleep(0.05)
    return found


class Tmux:
    """A terminal of its own, with a shell."""

    def __init__(self, width, height):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = f"{self.folder.name}/tmux"
        self("-f", "/dev/null", "new-session", "-d", "-x", str(width), "-y", str(height), "env", "PS1=ready ",
             "bash", "--norc", "--noprofile")
        wait_for(lambda: "ready" in self.screen(), self.screen)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self("kill-server")
        self.folder.cleanup()

    def __call__(self, *command):
        return subprocess.run(["tmux", "-S", self.socket, *command], env=environment(), text=True, check=True,
                              stdout=subprocess.PIPE, timeout=HANG_S).stdout

    def screen(self, *options):
        return self("capture-pane", "-p", *options)

    def type(self, *keys):
        self("send-keys", *keys)

    def shows(self, pattern, *options):
        wait_for(lambda: re.search(pattern, self.screen(*options), re.M), lambda: f"no {pattern}: {self.screen()}")
        return self.screen(*options)

    def prompt(self):
        """Wait until the shell reads the keys again. A program that is about to end would take some of them."""
        wait_for(lambda: self("display-message", "-p", "#{pane_current_command}").strip() == "bash", self.screen)

    def state(self):
        """What the terminal's driver does with keys, and whether the alternate screen is shown, and the cursor."""
        self.prompt()
        self.type("-l", "clear; stty -a | grep -o -e '-\\?icanon' -e '-\\?echo '; echo d''one\n")
        text = self.shows("^done")
        return ("-icanon" not in text and "-echo" not in text and
                self("display-message", "-p", "#{alternate_on} #{cursor_flag}").split() == ["0", "1"])


@contextmanager
def programs(servers, count):
    """Programs with sessions on these servers."""
    running = []
    try:
        for _ in range(count):
            command = [SPANCL, "run", *servers, "--", str(BUILD / "bin/api_spancl_idle"), "wait"]
            running.append(subprocess.Popen(command, env=environment(), stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
            assert running[-1].stdout.readline() == "idle\n", running[-1].stderr.read()
        yield
    finally:
        for p in running:
            p.kill()
            p.communicate()


@contextmanager
def two_servers():
    with tempfile.TemporaryDirectory() as folder, \
            Servers(BUILD, 2, (), vendors=native_vendors(folder)) as s:
        names = [f"localhost:{port}" for port in s.ports]
        yield s, names, [word for name in names for word in ("--server", name)]


def top_fills_a_terminal_of_any_size_and_gives_it_back():
    if not shutil.which("tmux"):
        return "skipped: no tmux"
    with two_servers() as (s, names, where), programs(where, 1), Tmux(60, 20) as t:
        command = " ".join([SPANCL, "top", *where]) + "\n"
        t.type("-l", command)
        screen = t.shows(r"^api_spancl_idle .* \d+[sm]$")
        assert re.search(r"^PROGRAM +USER +HOST +BUSY\* +MEMORY +AGE", screen, re.M), screen
        assert len(screen.splitlines()) <= 20 and "q quit" in screen.splitlines()[-1], screen
        # Each server answers in its own time: the second may come after the program's row.
        t.shows(f"^{names[1]}  up .*, 1 of")
        # Wider: all columns, at once.
        t("resize-window", "-x", "180", "-y", "24")
        screen = t.shows("PROGRAM.*DEVICE.*QUEUE.*SENT/s.*RECV/s.*TRIP.*SERVER.*WORKER")
        row = next(line for line in screen.splitlines() if line.startswith("api_spancl_idle"))
        assert "1.0 MiB" in row and names[0] in screen and re.search(r"\d [um]s", row), row
        # Keys: sort by a letter and by arrows, help.
        t.type("m")
        t.shows(r"MEMORY\*")
        t.type("Left")
        t.shows(r"BUSY\*")
        t.type("h")
        t.shows("sort: p PROGRAM")
        t.type("h")
        # A size at which not all lines have room: they scroll, the last line stays.
        t("resize-window", "-x", "60", "-y", "5")
        wait_for(lambda: t.type("End") or re.search("^api_spancl_idle", t.screen(), re.M), t.screen)
        screen = t.screen()
        assert "q quit" in screen.splitlines()[-1], screen
        t("resize-window", "-x", "100", "-y", "24")
        # A server that is gone stays, in red; the other goes on.
        s.processes[0].kill()
        s.processes[0].wait()
        t.shows(f"\x1b\\[31m{names[0]}  NOT REACHABLE: .*refused", "-e")
        assert f"{names[1]}  up " in t.screen()
        # The terminal's state comes back on each end.
        t.type("q")
        assert t.state()
        for end in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGALRM, signal.SIGSEGV, signal.SIGSYS):
            t.type("-l", command)
            t.shows("q quit")
            pid = next(p for p in children(int(t("display-message", "-p", "#{pane_pid}"))))
            os.kill(pid, end)
            wait_for(lambda: "q quit" not in t.screen(), "it goes on")
            assert t.state(), end
        t.type("-l", command)
        t.shows("q quit")
        t.type("C-z")
        t.shows("Stopped")
        assert t.state()
        t.type("-l", "fg\n")
        t.shows("q quit")
        t.type("q")
        assert t.state()
    return None


def a_narrow_screen_shows_what_clients_may_use():
    if not shutil.which("tmux"):
        return "skipped: no tmux"
    with tempfile.TemporaryDirectory() as folder, \
            Servers(BUILD, 1, ("--client-memory", "4096,0=1024"), vendors=native_vendors(folder)) as s:
        where = ("--server", f"localhost:{s.ports[0]}")
        with programs(where, 1), Tmux(60, 12) as t:
            t.type("-l", f"{SPANCL} top {' '.join(where)}\n")
            t.shows(r"^  local +all devices +[0-9.]+ MiB of 4.0 GiB$")
            t.shows(r"^  local +device 0 +[0-9.]+ MiB of 1.0 GiB$")
            t.type("q")
            t.prompt()
    return None


def children(pid):
    return [int(p) for p in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


NUMBERS = ("age_ns", "memory_bytes", "memory_peak_bytes", "programs", "commands")


def programs_read_what_the_tools_say():
    with two_servers() as (s, names, where), programs(where, 2):
        first, second = lines_of(spancl("top", "--once", "--json", *where))
        assert [t["server"] for t in (first, second)] == names and first["error"] is None
        assert first["up_ns"] > 0 and first["sessions_begun"] == 2 and not first["draining"]
        for session in first["sessions"] + second["sessions"]:
            assert session["program"] == "api_spancl_idle" and all(isinstance(session[k], int) for k in NUMBERS)
            assert session["memory_bytes"] >= 1 << 20 and session["from"].startswith("127.0.0.1:"), session
            assert session["commands"] == 0, session
            (device,) = session["devices"]
            assert device["busy_ns"] > 0 and 0 <= device["busy_percent"] <= 100 and device["name"], device
            assert device["busy_ns"] < session["age_ns"], session
            assert {link["peer"] for link in session["links"]} == {"client", "server"}
        assert len(first["sessions"]) == 2
        (client,) = first["clients"]
        assert (client["client"], client["sessions"], client["sessions_max"]) == ("local", 2, None), client
        assert [d["number"] for d in client["devices"]] == [None] and client["devices"][0]["memory_max_bytes"] is None, client
        for device in first["devices"]:
            assert device["state"] == "in_service" and device["name"] and "temperature_celsius" in device, device

        # It goes on: a line for each server and second, until its reader has gone.
        with subprocess.Popen([SPANCL, "top", "--json", *where], env=environment(), stdout=subprocess.PIPE,
                              text=True) as going:
            for name in names * 2:
                assert json.loads(going.stdout.readline())["server"] == name
            going.stdout.close()
            assert going.wait(HANG_S) in (0, 1, -signal.SIGPIPE)

        listed = spancl("list", "--json", *where, "--server", "localhost:1")
        first, second, third = lines_of(listed)
        assert listed.returncode == 1 and "refused" in listed.stderr
        assert first["reachable"] and first["write_bytes_per_s"] > 0 and first["devices"][0]["type"], first
        links = [link for t in (first, second) for link in t["links"]]
        assert len(links) == 1 and links[0]["to"] == "localhost" and links[0]["sessions"] == 2, links
        assert not third["reachable"] and third["server"] == "localhost:1" and "refused" in third["error"]
        plain = spancl("list", "--quick", "--server", "localhost:1", *where)
        assert plain.stdout.startswith("localhost:1: NOT REACHABLE\n"), plain.stdout
        assert re.search(f"^  link to {links[0]['to']}: 2 sessions, sent ", plain.stdout, re.M), plain.stdout

        events = lines_of(spancl("ping", names[0], "--json"))
        assert [e["event"] for e in events] == ["connected", *["ping"] * 5, "median"], events
        assert events[0]["connect_ns"] > 0 and events[-1]["round_trip_ns"] > 0
        failed = spancl("ping", "--json", "localhost:1")
        assert failed.returncode == 1 and lines_of(failed)[0]["event"] == "error" and "refused" in failed.stderr

        config = lines_of(spancl("config", "--json", SPANCL_SERVERS=names[0], SPANCL_ON_LOSS="30"))
        servers = next(c for c in config if c.get("variable") == "SPANCL_SERVERS")
        assert servers == {"variable": "SPANCL_SERVERS", "value": names[0], "default": servers["default"],
                           "origin": "environment", "error": None}
        assert next(c for c in config if c.get("variable") == "SPANCL_ON_LOSS")["error"]
        assert config[-1]["server"] == names[0], config[-1]
        s.stop()
        assert lines_of(spancl("top", "--once", "--json", "--server", names[0])) == [
            {"server": names[0], "reachable": False, "error": spancl("top", "--once", "--server", names[0])
             .stderr.splitlines()[0].removeprefix("spancl: ")}]


def keys_of(value):
    """The keys of a value and of all values in it. A benchmark's figures have free names, which are left out."""
    if isinstance(value, list):
        return {key for one in value for key in keys_of(one)}
    if not isinstance(value, dict):
        return set()
    return set(value) | {key for name, one in value.items() if name != "results" for key in keys_of(one)}


def every_key_of_json_is_documented():
    known = set(re.findall(r"`([a-z_]+)`", (ROOT / "docs/JSON.md").read_text(encoding="utf-8")))
    with two_servers() as (_, names, where), programs(where, 1), tempfile.NamedTemporaryFile("w", suffix=".found") as found:
        found.write('{"name":"gpu9","addresses":["192.0.2.1"],"port":7001,"types":"gpu","load":2}\n')
        found.flush()
        for command in (["top", "--once", *where, "--server", "localhost:1"], ["list", "--quick", *where, "--server", "localhost:1"],
                        ["ping", names[0]], ["ping", "localhost:1"], ["config"], ["doctor", names[0]],
                        ["discover", f"file:{found.name}"], ["bench", *where, "--", "--only", "empty", "--scale", "1"]):
            done = spancl(command[0], "--json", *command[1:])
            used = keys_of(lines_of(done))
            assert used, done.stderr
            # "the same with `received`"
            unknown = {key for key in used if not {key, key.replace("received", "sent")} & known}
            assert not unknown, (command, unknown)


def the_drivers_library_tells_of_devices_and_harms_no_server():
    with tempfile.TemporaryDirectory() as folder:
        vendors = native_vendors(folder)

        def sensed(*variables, until=lambda device, log: True):
            with Servers(BUILD, 1, (), vendors=vendors, prefix=("env", f"LD_LIBRARY_PATH={BUILD / 'nvml'}",
                                                                *variables)) as s:
                def ask():
                    (server,) = lines_of(spancl("top", "--once", "--json", "--server", f"localhost:{s.ports[0]}"))
                    return server["devices"] if server["devices"] else None
                wait_for(lambda: (all := ask()) and until(all[0], s.log_text()), s.log_text)
                return wait_for(ask, "no devices")[0]

        name = sensed("NVML_NAME=other")["name"]
        device = sensed(f"NVML_NAME={name}", until=lambda device, log: device["busy_percent"])
        assert (device["busy_percent"], device["temperature_celsius"], device["power_mw"]) == (53, 41, None), device
        assert (device["memory_used_bytes"], device["memory_total_bytes"]) == (10 << 30, 80 << 30), device
        device = sensed(f"NVML_NAME={name}", "NVML_CRASH=1", until=lambda device, log: "the stand-in crashes" in log)
        assert device["busy_percent"] is None, device


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
