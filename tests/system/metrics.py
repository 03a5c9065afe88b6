#!/usr/bin/env python3
"""metrics.py BUILD [NAME...]: claims about spancld --metrics, over real processes. Each function is one claim."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
import scrape  # noqa: E402
from servers import Servers, every_child, is_exporter  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 150  # a watchdog, not a claim about speed
LOOKS = 8     # queries that a worker may have in its socket
BESIDE = 96   # descriptors of the exporter: 64 connections and its own


def wait_for(condition, what):
    def holds():
        try:
            return condition()
        except scrape.Missing:
            return False
    claims.wait_for(holds, what)


class Served:
    """A server with metrics."""

    def __init__(self, where="localhost:0", *options):
        self.servers = Servers(BUILD, 1, ("--log", "info", "--metrics", where, *options))
        self.pid = self.servers.processes[0].pid
        self.where = scrape.address_in(self.log())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            print(self.log())
        self.servers.stop()

    def log(self):
        return self.servers.log_text()

    def exporter(self):
        return next(filter(is_exporter, every_child(self.pid)), None)

    def scrape(self):
        """A complete one."""
        deadline = time.monotonic() + HANG_S
        while not scrape.of(samples := scrape.scrape(self.where), "spancl_scrape_complete"):
            assert time.monotonic() < deadline, samples
        return samples

    def value(self, name, *labels):
        return scrape.of(self.scrape(), name, *labels)

    def session(self):
        client = subprocess.Popen([str(BUILD / "bin/system_sick"), "0"], env=self.servers.environment(), text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert client.stdout.readline() == "ready\n", client.communicate()[1] + self.log()
        return client


def a_session_is_counted_and_its_traffic_grows():
    with Served() as s:
        assert s.value("spancl_sessions") == 0 and s.value("spancl_sessions_total") == 0
        client = s.session()
        wait_for(lambda: s.value("spancl_sessions") == 1, s.log)  # the same text serves for a second
        before = s.scrape()
        assert scrape.of(before, "spancl_scrape_complete") == 1
        assert scrape.of(before, "spancl_session_programs", 'program="system_sick') == 1, before
        received = ('program="system_sick', 'peer="client"', 'direction="received"')
        sent = scrape.of(before, "spancl_session_messages_total", *received)
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline() == "ok\n"
        wait_for(lambda: s.value("spancl_session_messages_total", *received) > sent, s.log)
        assert s.value("spancl_session_memory_bytes", 'program="system_sick') >= 4096
        out, err = client.communicate(timeout=HANG_S)
        assert client.returncode == 0, out + err
        wait_for(lambda: s.value("spancl_sessions") == 0, s.log)
        after = s.scrape()
        assert scrape.of(after, "spancl_sessions_total") == 1 and scrape.of(after, "spancl_sessions_lost_total") == 0
        assert not [k for k in after if k[0].startswith("spancl_session_")], after


def the_dashboard_and_the_alerts_ask_for_series_that_exist():
    """A client has each limit, so that all series exist. The label with a server's name is Prometheus's own."""
    dashboard = json.loads((ROOT / "packaging/grafana/spancl.json").read_text(encoding="utf-8"))
    asked = [(t["expr"], t["legendFormat"]) for panel in dashboard["panels"] for t in panel.get("targets", ())]
    asked += [(v["query"], "") for v in dashboard["templating"]["list"] if v["type"] == "query"]
    assert len(asked) > 10, asked
    asked += [(line, "") for line in re.findall(r"^ +expr: (.+)$", (ROOT / "docs/METRICS.md").read_text(encoding="utf-8"), re.M)]
    with Served("localhost:0", "--client-memory", "64,0=32", "--client-time", "60/60,0=30/60") as s:
        client = s.session()
        wait_for(lambda: s.value("spancl_session_programs") and s.value("spancl_device_state"), s.log)
        labels = {}
        for name, has in s.scrape():
            labels.setdefault(name, {"instance"}).update(re.findall(r"(\w+)=", has))
        for text, legend in asked:
            names = re.findall(r"\bspancl_\w+", text)
            assert names and all(name in labels for name in names), (text, sorted(labels))
            used = set(re.findall(r"(\w+)[!=]~?=?\"", text)) | set(re.findall(r"{{(\w+)}}", legend))
            for group in re.findall(r"\bby \(([^)]+)\)", text):
                used |= set(group.split(", "))
            assert all(used <= labels[name] for name in names[:1]), (text, legend, labels[names[0]])
        client.communicate(timeout=HANG_S)


def devices_and_refusals_are_counted():
    with Served("localhost:0", "--sessions", "1") as s:
        wait_for(lambda: any(k[0] == "spancl_device_state" for k in s.scrape()), s.log)
        assert s.value("spancl_device_state", 'device="0"', 'state="in_service"') == 1
        assert s.value("spancl_device_state", 'device="0"', 'state="out_of_service"') == 0
        with socket.create_connection(("127.0.0.1", s.servers.ports[0])) as c:
            c.sendall(b"GET / HTTP/1.1\r\n\r\n")
            c.recv(1)
        wait_for(lambda: re.search(r"warn: a connection from 127\.0\.0\.1:\d+ was refused: it does not speak", s.log()),
                 s.log)
        client = s.session()
        second = subprocess.run([str(BUILD / "bin/spancl"), "list", "--quick"], env=s.servers.environment(),
                                capture_output=True, text=True, timeout=HANG_S, check=False)
        assert second.returncode, second.stdout
        refused = "spancl_connections_refused_total"
        wait_for(lambda: s.value(refused, 'reason="full"') >= 1 and s.value(refused, 'reason="protocol"') == 1, s.log)
        client.communicate(timeout=HANG_S)
        top = subprocess.run([str(BUILD / "bin/spancl"), "top", "--once"], env=s.servers.environment(),
                             capture_output=True, text=True, timeout=HANG_S, check=False)
        assert " of 1 sessions; since its start 1 sessions, 0 lost, " in top.stdout, top.stdout + top.stderr


def audit(s, count):
    """The fields of the latest of so many audit lines."""
    lines = lambda: [x for x in s.log().splitlines() if re.match(r"\S+Z spancl\[audit\] info: session ", x)]
    wait_for(lambda: len(lines()) == count, s.log)
    return {k: a or b for k, a, b in re.findall(r'(\w+)=(?:"([^"]*)"|(\S+))', lines()[-1])}


def each_session_leaves_an_audit_line():
    with Served("localhost:0", "--linger", "0") as s:
        client = s.session()
        client.communicate("\n", timeout=HANG_S)
        line = audit(s, 1)
        assert line["program"] == "system_sick" and line["client"] == "", line
        assert re.fullmatch(r"(127\.0\.0\.1|\[::1\]):\d+", line["from"]), line
        assert int(line["buffers_peak_bytes"]) >= 4096 and int(line["received_bytes"]) > 0, line
        assert int(line["sent_bytes"]) >= 4096 and int(line["memory_peak_bytes"]) > 1 << 20, line
        assert float(line["seconds"]) > 0 and float(line["cpu_seconds"]) >= 0 and line["end"], line
        assert 0 < float(line["device_seconds"]) <= float(line["seconds"]), line
        client = s.session()
        worker = int(audit_worker(s))
        os.kill(worker, signal.SIGKILL)
        line = audit(s, 2)
        assert line["worker"] == str(worker) and line["end"] == "its process ended by signal 9", line
        assert "sent_bytes" not in line and "device_seconds" not in line
        client.kill()
        client.communicate()


def audit_worker(s):
    """The worker of the latest session."""
    line = [x for x in s.log().splitlines() if "takes a new session (system_sick" in x][-1]
    return line.split("worker ")[1].split()[0]


def names_of_programs_forge_no_audit_line():
    with Served("localhost:0", "--linger", "0") as s:
        name = Path(s.servers.folder.name) / 'a" end="x\nspancl[audit] info: session y\x1b['
        name.symlink_to(BUILD / "bin/system_sick")
        subprocess.run([str(name), "0"], env=s.servers.environment(), input="\n", text=True, timeout=HANG_S, check=True,
                       stdout=subprocess.DEVNULL)
        line = audit(s, 1)
        assert line["program"].startswith("a' end='x") and "\x1b" not in s.log(), line
        assert line["end"] not in ("x", ""), line


def refused_clients_are_warned_about_at_a_limited_rate():
    with Served("localhost:0", "--sessions", "1") as s:
        client = s.session()
        begin = time.monotonic()
        for _ in range(20):
            subprocess.run([str(BUILD / "bin/spancl"), "list", "--quick"], env=s.servers.environment(),
                           capture_output=True, timeout=HANG_S, check=False)
        lines = s.log().count("warn: a connection from 127.0.0.1:")
        assert 10 <= lines <= 11 + time.monotonic() - begin, s.log()
        client.communicate(timeout=HANG_S)


def each_form_of_the_log_tells_time_client_and_level():
    for form in ("text", "json", "journal"):
        with Served("localhost:0", "--linger", "0", "--log-format", form) as s:
            client = s.session()
            worker = int(re.search(r"worker (\d+) takes a new session \(system_sick", s.log()).group(1))
            client.communicate("\n", timeout=HANG_S)
            wait_for(lambda: "session worker=" in s.log(), s.log)
            lines = s.log().splitlines()
            session = [x for x in lines if f"worker {worker}/" in x]
            assert session, lines
            if form == "json":
                told = [json.loads(x) for x in lines]
                assert all({"time", "level", "component", "text"} <= set(x) for x in told), lines
                mine = [x for x in told if x["component"].startswith(f"worker {worker}/")]
                assert any(x.get("about", "").startswith("127.0.0.1:") for x in mine), mine
                assert any(x["component"] == "audit" and f"worker={worker} " in x["text"] for x in told), told
            elif form == "text":
                assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z (\[[^]]*\] )?spancl\[", x)
                           for x in lines), lines
                assert any(re.match(r"\S+ \[127\.0\.0\.1:\d+\] spancl\[worker", x) for x in session), session
            else:
                assert all(re.match(r"<[3467]>(\[[^]]*\] )?spancl\[", x) for x in lines), lines


def a_session_that_dies_is_counted_as_lost():
    with Served() as s:
        client = s.session()
        line = next(x for x in s.log().splitlines() if "takes a new session (system_sick" in x)
        os.kill(int(line.split("worker ")[1].split()[0]), signal.SIGKILL)
        wait_for(lambda: s.value("spancl_sessions_lost_total") == 1, s.log)
        client.kill()
        client.communicate()


def a_scrape_without_a_session_is_not_complete():
    with Served() as s:
        client = s.session()
        wait_for(lambda: s.value("spancl_session_programs") == 1, s.log)
        worker = int(audit_worker(s))
        os.kill(worker, signal.SIGSTOP)
        complete = lambda: scrape.of(scrape.scrape(s.where), "spancl_scrape_complete")
        wait_for(lambda: not complete(), s.log)
        # The worker is not asked any more while so many queries wait in its socket.
        tops = [subprocess.Popen([str(BUILD / "bin/spancl"), "top", "--once"], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, env={**s.servers.environment(),
                                                                 "SPANCL_CONNECT_TIMEOUT": "1500"})
                for _ in range(LOOKS)]
        for top in tops:
            top.wait(HANG_S)
        begin = time.monotonic()
        assert not complete()
        assert time.monotonic() - begin < 2, "the worker was asked"
        os.kill(worker, signal.SIGCONT)
        wait_for(complete, s.log)
        assert s.value("spancl_session_programs") == 1
        client.communicate("\n", timeout=HANG_S)


def only_the_one_resource_is_served():
    with Served() as s:
        ask = lambda text: scrape.request(s.where, text)[0]
        assert ask(b"GET / HTTP/1.1\r\n\r\n") == 404
        assert ask(b"GET /metrics/../x HTTP/1.1\r\n\r\n") == 404
        assert ask(b"POST /metrics HTTP/1.1\r\nContent-Length: 1\r\n\r\nx") == 405
        assert ask(b"nonsense\r\n\r\n") == 400
        assert ask(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * 65536) == 431
        assert ask(b"GET /metrics HTTP/1.1\r\n\r\n" + b"x" * 8192) == 200


def hostile_clients_stop_neither_metrics_nor_sessions():
    with Served() as s:
        s.scrape()
        exporter = s.exporter()
        held = len(os.listdir(f"/proc/{s.pid}/fd"))
        slow = []
        for i in range(1000):  # slowloris: a part of a request, and then a byte from time to time
            c = scrape.connect(s.where)
            try:
                c.sendall(b"GET /metrics HTTP/1.1\r\nHost: x" if i % 2 else b"G")
            except OSError:
                pass  # it was the oldest
            slow.append(c)
        for c in slow[::7]:
            try:
                c.sendall(b"x")
            except OSError:
                pass
        assert scrape.of(s.scrape(), "spancl_sessions") == 0
        assert s.exporter() == exporter, "the exporter has ended"
        assert len(os.listdir(f"/proc/{exporter}/fd")) <= BESIDE
        assert len(os.listdir(f"/proc/{s.pid}/fd")) <= held + 8
        client = s.session()
        out, err = client.communicate("\n", timeout=HANG_S)
        assert out == "ok\n", out + err
        silent = [scrape.connect(s.where) for _ in range(8)]  # they ask, and read nothing
        for c in silent:
            c.sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        s.scrape()
        for c in slow + silent:
            c.close()
        s.scrape()


def an_exporter_that_dies_is_started_again():
    with Served() as s:
        s.scrape()
        first = s.exporter()
        os.kill(first, signal.SIGKILL)
        wait_for(lambda: s.exporter() not in (None, first), s.log)
        s.scrape()
        status = Path(f"/proc/{s.exporter()}/status").read_text()
        assert "NoNewPrivs:\t1" in status
        assert os.geteuid() or "Uid:\t65534\t65534\t65534\t65534" in status, status
        s.servers.stop()
        errors = [x for x in s.log().splitlines() if "] error: " in x or "ERROR" in x]  # sanitizers write the latter
        assert len(errors) == 1 and "the exporter of metrics has ended; it is started again" in errors[0], s.log()


def the_socket_is_its_users_own():
    with Served("localhost:0") as s:
        path = f"{s.servers.folder.name}/metrics.socket"
        with Served(f"unix:{path}") as other:
            assert other.where == path
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            assert other.value("spancl_sessions") == 0
        assert not os.path.exists(path)


def addresses_beyond_this_host_take_a_word():
    command = [str(BUILD / "bin/spancld"), "--listen", "127.0.0.1:0", "--metrics"]
    for where, why in (("0.0.0.0:0", "any:0.0.0.0:0"), ("*:0", "other hosts reach"), ("tls:localhost:0", "it takes"),
                       ("inproc:x", "it takes"), ("/nowhere/at/all", "--metrics"), ("::::", "--metrics")):
        done = subprocess.run([*command, where], capture_output=True, text=True, timeout=HANG_S, check=False)
        assert done.returncode == 1 and why in done.stderr, (where, done)
    with Served("any:0.0.0.0:0") as s:
        assert scrape.of(scrape.scrape(("127.0.0.1", s.where[1])), "spancl_sessions") == 0


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
