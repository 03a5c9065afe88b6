#!/usr/bin/env python3
"""energy.py BUILD [NAME...]: claims about joules by device and session, over real processes. The counters of energy are
files in a folder like the kernel's (RAPL), and a stand-in for NVIDIA's library. Each function is one claim."""

import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from claims import wait_for  # noqa: E402
import scrape  # noqa: E402
from pftrace import PfTrace  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402
from top import top  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 600  # a watchdog, not a claim about speed
SPANCL, BURNER = str(BUILD / "bin/spancl"), str(BUILD / "bin/system_burner")
JOULE = 1000000
RANGE = 262143328850  # of a real processor
IN_ACCESS = 1         # of inotify
SAMPLES = 3           # within which a worker answers and the sensors read


class Metered:
    """A server whose CPU devices have a counter of energy: `start` microjoules."""

    def __init__(self, *options, start=100 * JOULE, prefix=(), processors=1):
        self.folder = tempfile.TemporaryDirectory()
        self.powercap = Path(self.folder.name) / "powercap"
        self.powercap.mkdir()
        for i in range(processors):
            self.zone(f"intel-rapl:{i}", f"package-{i}", start)
        self.servers = Servers(BUILD, 1, ("--log", "info", "--linger", "0", "--metrics", "localhost:0", "--powercap",
                                          str(self.powercap), *options),
                               vendors=native_vendors(self.folder.name), prefix=prefix)
        self.burners = []

    def zone(self, zone, name, energy, wraps_at=RANGE):
        folder = self.powercap / zone
        folder.mkdir(exist_ok=True)
        (folder / "name").write_text(name + "\n")
        (folder / "max_energy_range_uj").write_text(f"{wraps_at}\n")
        self.set(energy, zone)

    def set(self, energy, zone="intel-rapl:0"):
        """As the kernel does it: a reader finds the old number or the new one."""
        part = self.powercap / zone / "part"
        part.write_text(f"{energy}\n")
        part.rename(self.powercap / zone / "energy_uj")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for b in self.burners:
            b.kill()
            b.communicate()
        self.servers.stop()
        if kind:
            print(self.log())
        self.folder.cleanup()

    def log(self):
        return self.servers.log_text()

    def where(self):
        return f"localhost:{self.servers.ports[0]}"

    def burner(self):
        b = subprocess.Popen([BURNER], env=self.servers.environment(), text=True, bufsize=1, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE)
        self.burners.append(b)
        assert b.stdout.readline() == "ready\n", self.log()
        return b

    def top(self):
        return top(BUILD, self.where(), self.servers.environment())

    def device(self):
        """The joules of the only device; None: not known."""
        devices = self.top()["devices"]
        return devices[0]["energy_joules"] if devices else None

    def sessions(self):
        """The joules of the burners' sessions, in the order of their processes' start."""
        sessions = sorted((s for s in self.top()["sessions"] if s["program"] == "system_burner"), key=lambda s: s["worker"])
        return [sum(d["energy_joules"] or 0 for d in s["devices"]) for s in sessions]

    def samples(self):
        """Wait until further samples were taken: the server reads the counter in each."""
        libc = ctypes.CDLL(None, use_errno=True)
        watch = libc.inotify_init()
        assert watch >= 0 and libc.inotify_add_watch(watch, os.fsencode(self.powercap / "intel-rapl:0/energy_uj"), IN_ACCESS) > 0
        for _ in range(SAMPLES):
            os.read(watch, 4096)
        os.close(watch)

    def audit(self, count=1):
        lines = lambda: [x for x in self.log().splitlines() if 'spancl[audit] info: session' in x and "system_burner" in x]
        wait_for(lambda: len(lines()) == count, self.log)
        return {k: a or b for k, a, b in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', lines()[-1])}


def begin(burner):
    burner.stdin.write("\n")
    assert burner.stdout.readline() == "busy\n"


def rest(burner):
    burner.stdin.write("\n")
    assert burner.stdout.readline() == "idle\n"


def end(burner):
    burner.communicate(timeout=HANG_S)


def a_session_is_billed_for_the_energy_of_its_device_time():
    with Metered() as s:
        b = s.burner()
        wait_for(lambda: s.device() == 0, s.log)
        begin(b)
        s.samples()
        s.set(150 * JOULE)
        wait_for(lambda: s.device() == 50 and s.sessions()[0] > 0, s.log)
        s.samples()
        (billed,) = s.sessions()
        assert 10 < billed <= 50, billed
        metrics = scrape.scrape(scrape.address_in(s.log()))
        assert scrape.of(metrics, "spancl_device_energy_joules_total", 'device="0"') == 50, metrics
        assert scrape.of(metrics, "spancl_session_energy_joules_total", 'program="system_burner',
                         'device="0"') == billed, metrics
        rest(b)
        end(b)
        line = s.audit()
        assert float(line["energy_joules"]) == billed and line["energy_by_device"] == f"0={billed:.3f}", line
        assert line["end"], line


def the_last_joules_are_in_the_audit_line():
    with Metered() as s:
        b = s.burner()
        wait_for(lambda: s.device() == 0, s.log)
        begin(b)
        s.set(120 * JOULE)
        rest(b)
        end(b)
        line = s.audit()
        assert 0 < float(line["energy_joules"]) <= 20, line


def energy_of_idle_times_is_billed_to_nobody():
    with Metered() as s:
        b = s.burner()
        wait_for(lambda: s.device() == 0, s.log)
        s.samples()
        s.set(900 * JOULE)
        wait_for(lambda: s.device() == 800, s.log)
        s.samples()
        assert sum(s.sessions()) == 0
        end(b)
        assert float(s.audit().get("energy_joules", 0)) == 0


def sessions_at_the_same_time_share_the_energy():
    with Metered() as s:
        both = [s.burner(), s.burner()]
        idle = s.burner()
        wait_for(lambda: s.device() == 0, s.log)
        for b in both:
            begin(b)
        s.samples()
        s.set(200 * JOULE)
        wait_for(lambda: s.device() == 100 and sum(x > 0 for x in s.sessions()) == 2, s.log)
        s.samples()
        first, second, third = sorted(s.sessions())
        assert first == 0 and second + third <= 100.001 and third < 3 * second, (first, second, third)
        for b in both:
            rest(b)
        for b in (*both, idle):
            end(b)


def counters_that_wrap_go_on_and_wrong_ones_are_not_believed():
    with Metered(start=RANGE - 10 * JOULE) as s:
        b = s.burner()
        wait_for(lambda: s.device() == 0, s.log)
        begin(b)
        s.set(5 * JOULE)
        wait_for(lambda: s.device() == 15, s.log)
        for wrong, then in ((2**64 - 1, None), (200000 * JOULE, None), (3, None), ("nonsense", None), (-7, None), ("", None),
                            (4 * JOULE, 4 * JOULE)):
            s.set(wrong)
            s.samples()
        assert 15 <= s.device() < 20, s.device()
        s.set(6 * JOULE)
        wait_for(lambda: s.device() >= 17, s.log)
        (billed,) = s.sessions()
        assert billed <= 22, billed
        rest(b)
        end(b)


def processors_add_up_and_their_parts_do_not():
    with Metered(processors=2) as s:
        s.zone("intel-rapl:0:0", "core", JOULE)
        s.zone("intel-rapl:2", "psys", JOULE)
        s.zone("intel-rapl-mmio:0", "package-0", JOULE)
        b = s.burner()
        wait_for(lambda: s.device() == 0, s.log)
        for zone in ("intel-rapl:0:0", "intel-rapl:2", "intel-rapl-mmio:0"):
            s.set(70 * JOULE, zone)
        s.set(110 * JOULE, "intel-rapl:0")
        s.set(120 * JOULE, "intel-rapl:1")
        wait_for(lambda: s.device() == 30, s.log)
        end(b)


def hosts_without_counters_tell_nothing():
    with Metered(processors=0) as s:
        b = s.burner()
        begin(b)
        rest(b)
        assert s.device() is None
        assert all(d["energy_joules"] is None for x in s.top()["sessions"] for d in x["devices"])
        metrics = scrape.scrape(scrape.address_in(s.log()))
        assert not [k for k in metrics if "energy" in k[0]], metrics
        end(b)
        assert "energy_joules" not in s.audit()


def the_drivers_library_counts_its_devices():
    with Metered(processors=0) as s:
        name = wait_for(lambda: s.top()["devices"], s.log)[0]["name"]
    with tempfile.NamedTemporaryFile("w") as counter:
        def tell(text):
            Path(counter.name + ".part").write_text(f"{text}\n")
            os.rename(counter.name + ".part", counter.name)
        tell(7000000)  # in millijoules
        with Metered(processors=0, prefix=("env", f"LD_LIBRARY_PATH={BUILD / 'nvml'}", f"NVML_NAME={name}",
                                           f"NVML_ENERGY={counter.name}")) as s:
            b = s.burner()
            wait_for(lambda: s.device() == 0, s.log)
            begin(b)
            tell(7040000)
            wait_for(lambda: s.device() == 40 and s.sessions()[0] > 0, s.log)
            tell(2**64 - 1)
            tell(1000)
            tell("unknown")
            tell(2000)
            wait_for(lambda: s.device() in (40, 41), s.log)
            rest(b)
            end(b)
            assert 0 < float(s.audit()["energy_joules"]) <= 41


def profile_and_trace_tell_the_joules_of_their_program():
    with Metered() as s:
        with tempfile.TemporaryDirectory() as folder:
            timeline, page, converted = (f"{folder}/{name}" for name in ("timeline.json", "page.html", "timeline.pftrace"))
            for command, more in (("profile", ("--html", page)), ("trace", ("--output", timeline))):
                # The first session has the sensors started, which takes longer than short programs run.
                wait = s.burner()
                wait_for(lambda: s.device() is not None, s.log)
                base = s.device()
                p = subprocess.Popen([SPANCL, command, "--json", *more, "--server", s.where(), "--", BURNER], text=True,
                                     bufsize=1, env=s.servers.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
                assert p.stdout.readline() == "ready\n"
                begin(p)
                s.set(int(100 + base + 60) * JOULE)
                wait_for(lambda: s.device() == base + 60, s.log)
                rest(p)
                _, err = p.communicate(timeout=HANG_S)
                assert p.returncode == 0, err
                told = json.loads(err.splitlines()[-1])["energy"]
                assert len(told) == 1 and told[0]["device"] == 0 and told[0]["name"], (command, told, err)
                assert told[0]["server"] == s.where() and 0 < told[0]["joules"] <= 60, (command, told)
                if command == "profile":
                    root = ElementTree.parse(page)
                    assert "Energy" in [h.text for h in root.iter("h2")]
                    shown = [td.text for td in root.iter("td") if td.get("title") == "joules"]
                    assert shown == [f"{told[0]['joules']:.3f}"] and told[0]["name"] in "".join(root.getroot().itertext()), shown
                end(wait)
            subprocess.run([SPANCL, "trace", "--perfetto", timeline, "-o", converted], check=True)
            with open(timeline, encoding="utf-8") as f, open(converted, "rb") as g:
                energy = [args for _, name, _, args in PfTrace(g.read()).instants if name == "energy"]
                assert energy == json.load(f)["otherData"]["energy"], energy


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
