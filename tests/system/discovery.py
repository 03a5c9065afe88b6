#!/usr/bin/env python3
"""discovery.py BUILD [NAME...]: claims about servers that come and go while a program runs. Each function
is one claim."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import Servers, kept_port  # noqa: E402
from top import top  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 300  # a watchdog, not a claim about speed


class Server(Servers):
    """One server with built-in kernels, perhaps with keys."""

    def __init__(self, keys=None, transport="tcp", port=0, sessions=None, prefix=()):
        options = ["--backend", "reference", "--devices", "0"]
        if sessions:
            options += ["--sessions", str(sessions)]
        if keys:
            options += ["--keys", str(keys)]
        super().__init__(BUILD, 1, options, transport=transport, prefix=prefix, ports=[port])

    def name(self):
        return f"127.0.0.1:{self.ports[0]}"

    def sessions(self):
        return len(top(BUILD, self.name())["sessions"])

    def becomes_idle(self):
        claims.wait_for(lambda: self.sessions() == 0, "the session does not end")

    def record(self, name, **more):
        return {"name": name, "addresses": ["127.0.0.1"], "port": self.ports[0], **more}


class Folder:
    """A file with servers, and whatever else a claim needs."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.source = f"file:{self.path}/servers"

    def write(self, *records):
        (self.path / "new").write_text("".join(json.dumps(r) + "\n" for r in records))
        (self.path / "new").rename(self.path / "servers")


class Client:
    """tests/system/finder.c."""

    def __init__(self, sources, servers=None, program="system_finder", prefix=(), **more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env["OCL_ICD_VENDORS"] = str(BUILD / "etc/vendors")
        env.pop("OCL_ICD_FILENAMES", None)
        env["SPANCL_SERVERS"] = servers or "127.0.0.1:1"  # nobody listens there
        if sources:
            env["SPANCL_DISCOVERY"] = sources
        env["SPANCL_DISCOVERY_WAIT"] = "60000"  # until the sources have settled
        env["SPANCL_ON_LOSS"] = "fail"  # calls notice that a server is gone
        env["SPANCL_IDLE"] = "1000"
        env.update(more)
        self.errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*prefix, str(BUILD / "bin" / program)], env=env, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors)

    def ask(self, words):
        self.process.stdin.write(words + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def expect(self, words, answer):
        got = self.ask(words)
        assert got == answer, f"{words}: {got}, not {answer}; {self.log()}"

    def log(self):
        self.errors.seek(0)
        return self.errors.read().decode(errors="replace")

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(HANG_S) == 0, self.log()


def a_server_that_a_file_names_comes_goes_and_moves():
    folder = Folder()
    folder.write()
    client = Client(folder.source)
    client.expect("list", "-")
    first = Server()
    folder.write(first.record("one"))
    client.expect("until a", "a")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    second = Server()
    folder.write(first.record("one"), second.record("two"))
    client.expect("until ab", "ab")
    # The first is used by a context: it stays, and is not available when it has ended.
    folder.write(second.record("two"))
    first.stop()
    client.expect("until_state 0", "0")
    client.expect("list", "ab")
    client.expect("compute", "error -2")
    client.expect("drop", "ok")
    client.expect("until b", "b")
    # It comes back elsewhere.
    third = Server()
    folder.write(third.record("one"), second.record("two"))
    client.expect("until ab", "ab")
    client.expect("until_state 1", "1")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.expect("children", "none")
    client.expect("drop", "ok")
    folder.write()
    client.expect("until -", "-")
    client.end()
    second.stop()
    third.stop()


def a_context_of_the_platform_has_the_devices_of_its_moment():
    folder = Folder()
    one, two = Server(), Server()
    folder.write(one.record("one"))
    client = Client(folder.source)
    client.expect("list", "a")
    client.expect("take", "ok")
    folder.write(one.record("one"), two.record("two"))
    client.expect("until ab", "ab")
    client.expect("has", "a")  # contexts keep what they have
    client.expect("drop", "ok")
    client.expect("take", "ok")
    client.expect("has", "ab")
    client.end()
    one.stop()
    two.stop()


def a_server_that_moves_while_it_is_used_is_the_same_device():
    folder = Folder()
    server = Server()
    folder.write(server.record("one"))
    client = Client(folder.source)
    client.expect("list", "a")  # the first query has waited for it
    client.expect("use", "ok")
    other = Server()
    folder.write(other.record("one"))
    server.stop()
    while (answer := client.ask("compute")) == "ok":
        pass
    assert answer == "error -2", answer  # the context is one of the session that has ended
    client.expect("until_state 1", "1")
    client.expect("list", "a")
    client.expect("drop", "ok")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.end()
    other.stop()


def a_program_finds_servers_and_its_end_changes_nothing():
    folder = Folder()
    server = Server()
    program = folder.path / "program"
    program.write_text("#!/bin/sh\necho '" + json.dumps(server.record("one")) + "'\n")
    program.chmod(0o755)
    client = Client(f"exec:{program}")
    client.expect("list", "a")
    client.expect("children", "none")
    # ThreadSanitizer permits no new threads in the child of a process that has some.
    if b"__tsan_init" not in (BUILD / "bin/system_finder").read_bytes():
        client.expect("fork", "a")
    client.expect("list", "a")
    client.end()
    server.stop()


def sources_end_with_the_program():
    folder = Folder()
    server = Server()
    program = folder.path / "program"
    program.write_text("#!/bin/sh\necho $$ > " + str(folder.path / "pid") + "\n"
                       "echo '" + json.dumps(server.record("one")) + "'\n"
                       "echo '{\"event\":\"settled\"}'\n"
                       "while echo; do sleep 0.05; done\n")
    program.chmod(0o755)
    client = Client(f"exec:{program}")
    client.expect("list", "a")
    pid = (folder.path / "pid").read_text().strip()
    parent = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1]
    assert int(parent) != client.process.pid
    client.process.kill()
    client.process.wait()
    for _ in range(HANG_S * 20):
        if not Path(f"/proc/{pid}/stat").exists() or ") Z" in Path(f"/proc/{pid}/stat").read_text():
            break
        subprocess.run(["sleep", "0.05"], check=True)
    else:
        raise AssertionError("it still runs")
    server.stop()


def a_configured_server_is_not_found_again():
    folder = Folder()
    server = Server()
    folder.write(server.record("one"))
    client = Client(folder.source, servers=f"localhost:{server.ports[0]}")
    client.expect("list", "a")
    client.end()
    server.stop()


def a_server_that_does_not_answer_hides_no_other_one():
    """The server's record also names another loopback address, where nobody listens, or a port that accepts connections and
    never answers."""
    folder = Folder()
    server = Server()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        folder.write(server.record("one", addresses=["127.0.0.2"], id="dead"),
                     server.record("one", port=silent.getsockname()[1], id="silent"),
                     server.record("one", addresses=["::1"], id="other"), server.record("one"))
        client = Client(folder.source, SPANCL_DISCOVERY_WAIT="0")
        client.expect("until a", "a")
        client.expect("use", "ok")
        client.expect("compute", "ok")
        silent.accept()[0].close()  # it was tried
        client.end()
    server.stop()


def a_server_that_does_not_answer_at_one_address_is_tried_at_the_next():
    folder = Folder()
    server = Server()
    folder.write(server.record("one", addresses=["127.0.0.2", "127.0.0.1"]))
    client = Client(folder.source, SPANCL_DISCOVERY_WAIT="0")
    client.expect("until a", "a")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.end()
    server.stop()


def the_first_query_waits_a_moment_if_no_server_is_named():
    """The source is silent until the test tells it to speak. A busy host makes queries longer, never shorter, so a query that
    has to be short is tried again."""
    if not may_make_hosts():
        return "no network namespaces: without a name, the client tries port 7777 of its host"
    default_s, unset = 0.3, {"SPANCL_DISCOVERY_WAIT": ""}
    folder, went = Folder(), []
    with Hosts(["alone"]) as hosts:
        alone = hosts.inside("alone")
        server = Server(prefix=alone)
        program = folder.path / "program"
        program.write_text(f"#!/bin/sh\nuntil [ -e {folder.path}/speak ]; do echo; sleep 0.05; done\n"
                           "echo '" + json.dumps(server.record("one")) + "'\n")
        program.chmod(0o755)

        def query(answer, **more):
            client = Client(f"exec:{program}", prefix=alone, **more)
            begin = time.monotonic()
            client.expect("list", answer)
            went.append(time.monotonic() - begin)
            return client

        def is_shorter(seconds, answer, **more):
            query(answer, **more).end()
            return went[-1] < seconds

        query("-", SPANCL_SERVERS="", **unset).end()
        assert went[-1] >= default_s, went
        for seconds, answer, more in ((default_s, "-", {"SPANCL_SERVERS": "", "SPANCL_DISCOVERY_WAIT": "0"}),
                                      (default_s, "a", {"SPANCL_SERVERS": server.name(), **unset}),
                                      (1, "-", {"SPANCL_SERVERS": "", **unset})):
            claims.wait_for(lambda s=seconds, a=answer, m=more: is_shorter(s, a, **m), lambda: f"queries took {went}")
        client = query("-", SPANCL_SERVERS="", **unset)
        (folder.path / "speak").touch()
        client.expect("until a", "a")
        client.end()
        server.stop()
    return "queries took " + ", ".join(f"{s:.2f} s" for s in went)


def a_server_known_in_two_ways_goes_when_both_have_ended():
    folder = Folder()
    server = Server()
    name = f"127.0.0.1:{server.ports[0]}"
    folder.write()
    client = Client(folder.source)
    client.expect("list", "-")
    client.expect(f"add {name}", "ok")
    client.expect("until a", "a")
    folder.write(server.record("one"))
    client.expect("until a", "a")
    client.expect(f"remove {name}", "ok")
    client.expect("until b", "b")
    client.expect(f"add {name}", "ok")
    client.expect("list", "b")
    folder.write()
    client.expect("until a", "a")
    client.expect(f"remove {name}", "ok")
    client.expect("until -", "-")
    client.end()
    server.stop()


def unix_sockets_are_servers_of_their_own():
    servers = [Server(transport="unix") for _ in range(2)]
    client = Client(None)
    client.expect("list", "-")
    client.expect(f"add {servers[0].address(0)}", "ok")
    client.expect("until a", "a")
    client.expect(f"add {servers[1].address(0)}", "ok")
    client.expect("until ab", "ab")
    client.end()
    for server in servers:
        server.stop()


def strangers_are_not_connected_to():
    """Neither a stranger's key, nor an address of another host without a key, nor nonsense."""
    folder = Folder()
    server = Server()
    key = "0123456789abcdef" * 4
    (folder.path / "keys").mkdir(mode=0o700)
    folder.write(server.record("\x1b[2J"), {"name": "no port", "addresses": ["127.0.0.1"]},
                 {"name": "far", "addresses": ["127.0.0.1", "192.0.2.1"], "port": server.ports[0]},
                 {"name": "key", "addresses": ["192.0.2.1"], "port": 7777, "key": key},
                 {"name": "pocl", "addresses": ["127.0.0.1"], "port": server.ports[0], "kind": "pocl"},
                 {"name": "new", "addresses": ["127.0.0.1"], "port": server.ports[0],
                  "protocol": 1000})
    client = Client(folder.source, SPANCL_KEYS=str(folder.path / "keys"), SPANCL_LOG="info")
    client.expect("list", "-")
    client.end()
    assert "not paired with 2 servers" in client.log(), client.log()
    assert "\x1b" not in client.log()
    server.stop()


def a_paired_server_is_used_with_its_key_and_no_other():
    if not (BUILD / "lib/libspancl-tls.so").exists():
        return "no TLS in this build"
    folder = Folder()
    keys = folder.path / "keys"
    subprocess.run([str(BUILD / "bin/spancl"), "keys", str(keys)], check=True,
                   stdout=subprocess.DEVNULL)
    key = (keys / "client/servers").read_text().split()[0]
    good, stranger = Server(keys / "server"), Server()
    client = Client(folder.source, SPANCL_KEYS=str(keys / "client"), SPANCL_DISCOVERY_WAIT="300")
    folder.write(stranger.record("one", key=key))  # does not have it
    client.expect("list", "-")
    folder.write(good.record("one", key=key))
    client.expect("until a", "a")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    # A forged record of the same server changes nothing.
    folder.write(good.record("one", key=key), stranger.record("one", key=key, id="forged"))
    client.expect("compute", "ok")
    client.expect("list", "a")
    client.end()
    good.stop()
    stranger.stop()
    return None


def floods_do_no_harm():
    """100 servers that do not answer, one that does, and 10,000 that do not."""
    folder = Folder()
    server = Server()
    program = folder.path / "program"
    line = "echo '{\"name\":\"'$i'\",\"addresses\":[\"127.0.0.2\"],\"port\":'$i'}'"
    program.write_text(f"#!/bin/sh\nfor i in $(seq 100); do {line}; done\n"
                       "echo '" + json.dumps(server.record("one")) + "'\n"
                       f"for i in $(seq 101 10000); do {line}; done\n")
    program.chmod(0o755)
    client = Client(f"exec:{program}", SPANCL_DISCOVERY_WAIT="0")
    client.expect("until a", "a")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.end()
    assert client.log().count("\n") < 10, client.log()
    server.stop()


def the_first_device_is_one_of_the_best_server():
    """A busy host can make the near server as slow as the far one, so this is tried again."""
    one, two = Server(), Server()

    def first(servers, devices):
        client = Client(None, servers=" ".join(servers), SPANCL_DEVICES=devices)
        name = client.ask("first")
        client.end()
        return name

    names = [one.name(), two.name()]
    busy = Client(None, servers=names[0])
    busy.expect("use", "ok")
    assert first(names, "custom") == names[0]
    claims.wait_for(lambda: first(names, "order=load") == names[1], "the order is not that of the load")
    busy.end()
    with subprocess.Popen([sys.executable, ROOT / "bench/delay.py", "100", str(two.ports[0])], stdout=subprocess.PIPE,
                          text=True) as far:
        names[1] = f"127.0.0.1:{far.stdout.readline().strip()}"
        for servers in names, names[::-1]:
            claims.wait_for(lambda s=servers: first(s, "order=latency") == names[0], "the order is not that of the latency")
        far.terminate()
    one.stop()
    two.stop()


def list_discover_says_which_devices_are_taken_and_why_not():
    folder = Folder()
    one, two = Server(), Server()
    folder.write(one.record("one"), two.record("two"), {"name": "far", "addresses": ["192.0.2.1"], "port": 9},
                 one.record("old", kind="pocl", id="p"))
    busy = Client(None, servers=f"localhost:{one.ports[0]}")
    busy.expect("use", "ok")

    def listing(devices):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env.update(SPANCL_DISCOVERY=folder.source, SPANCL_DEVICES=devices)
        done = subprocess.run([str(BUILD / "bin/spancl"), "list", "--discover"], env=env, text=True, check=True,
                              capture_output=True, timeout=HANG_S)
        return done.stdout

    text = listing("order=load,count=1")
    lines = text.splitlines()
    assert len(lines) == 6, text
    assert "one (" in lines[0] and "load 1" in lines[0] and "not taken, by count" in lines[1], text
    assert "two (" in lines[2] and "load 0" in lines[2] and lines[3].startswith("  taken: "), text
    assert "not paired" in lines[4] and "pocl" in lines[5], text
    assert listing("gpu").count("not taken, by type") == 2
    busy.end()
    one.stop()
    two.stop()


def discover_shows_what_changes():
    """There is no server: `spancl discover` connects to none."""
    folder = Folder()
    one = {"name": "one", "addresses": ["192.0.2.1"], "port": 1, "types": "gpu,cpu"}
    folder.write(one)
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}

    def watch(*options):
        return subprocess.Popen([str(BUILD / "bin/spancl"), "discover", "--watch", *options, folder.source], env=env, text=True,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)

    with watch("--json") as lines, watch() as table:
        def event():
            got = json.loads(lines.stdout.readline())
            return got["event"], got["id"], got.get("load"), got["source"]

        def row(*words):
            for line in table.stdout:
                if all(word in line for word in words):
                    return
            raise AssertionError("the table has ended")

        assert event() == ("appears", "one", 0, folder.source)
        row("one", "192.0.2.1:1", "not paired: spancl pair")
        folder.write({**one, "load": 3})
        assert event() == ("changes", "one", 3, folder.source)
        row("one", " 3 ")
        folder.write({**one, "load": 3}, {**one, "name": "two"})
        assert event() == ("appears", "two", 0, folder.source)
        row("two")
        folder.write({**one, "name": "two"})
        assert event() == ("gone", "one", None, folder.source)
        lines.terminate()
        table.terminate()


def the_program_names_servers_itself():
    one, two = Server(), Server()
    names = [f"127.0.0.1:{s.ports[0]}" for s in (one, two)]
    client = Client(None, servers=names[0])
    client.expect("list", "a")
    client.expect(f"add {names[1]}", "ok")
    client.expect("until ab", "ab")
    client.expect(f"add {names[1]} {names[0]}", "ok")  # both are known
    client.expect("list", "ab")
    client.expect("servers", "".join(f"{n}\tconnected\t1;" for n in names))
    client.expect("add nonsense!", "error -30")
    client.expect("add in-process", "error -30")
    client.expect(f"remove {names[1]} 127.0.0.1:2", "error -30")  # the second was not added
    client.expect("list", "ab")
    client.expect(f"remove {names[1]}", "ok")
    client.expect("until a", "a")
    client.expect(f"remove {names[1]}", "error -30")
    client.expect(f"add {names[1]}", "ok")
    client.expect("until ab", "ab")
    client.end()
    one.stop()
    two.stop()


def a_server_that_nothing_uses_keeps_no_session():
    one, two = Server(), Server(transport="shm")
    client = Client(None, servers=f"{one.name()} {two.address(0)}")
    client.expect("list", "ab")
    client.expect("use a", "ok")
    two.becomes_idle()
    client.expect("servers", f"{one.name()}\tconnected\t1;{two.address(0)}\tidle\t1;")
    client.expect("compute", "ok")
    assert one.sessions() == 1
    client.expect("drop", "ok")
    one.becomes_idle()
    client.expect("list", "ab")
    for _ in range(3):
        client.expect("use b", "ok")
        client.expect("compute", "ok")
        assert two.sessions() == 1 and one.sessions() == 0
        client.expect("drop", "ok")
        two.becomes_idle()
    if b"__tsan_init" not in (BUILD / "bin/system_finder").read_bytes():
        client.expect("fork", "ab")
    client.expect("use a", "ok")
    client.expect("compute", "ok")
    client.end()
    assert client.log() == "", client.log()
    one.stop()
    two.stop()


def sessions_of_this_process_and_those_that_the_program_wants_stay():
    one, two = Server(), Server(transport="shm")
    client = Client(None, servers=f"{one.name()} in-process:reference/0", SPANCL_IDLE="1")
    client.expect("list", "ab")
    one.becomes_idle()
    client.expect("servers", f"{one.name()}\tidle\t1;in-process:reference\tconnected\t1;")
    client.end()
    client = Client(None, servers=f"{one.name()} {two.address(0)}", SPANCL_IDLE="0")
    client.expect("list", "ab")
    client.expect("use b", "ok")
    time.sleep(3)
    assert one.sessions() == 1
    client.end()
    one.stop()
    two.stop()


def a_server_that_is_gone_when_it_is_used_again_is_not_available_until_it_is_back():
    server = Server(port=kept_port())
    client = Client(None, servers=server.name())
    client.expect("list", "a")
    for _ in range(2):
        server.becomes_idle()
        server.stop()
        client.expect("list", "a")
        server = Server(port=server.ports[0])  # nobody has noticed
        client.expect("use", "ok")
        client.expect("compute", "ok")
        client.expect("drop", "ok")
    server.becomes_idle()
    server.stop()
    client.expect("state", "1")
    client.expect("use", "error -2")
    client.expect("state", "0")
    client.expect("use", "error -2")
    server = Server(port=server.ports[0])
    client.expect("until_state 1", "1")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.end()
    server.stop()


def an_idle_server_that_has_no_room_is_not_available_until_it_has():
    server = Server(sessions=1)
    client = Client(None, servers=server.name())
    client.expect("list", "a")
    server.becomes_idle()
    other = Client(None, servers=server.name())
    other.expect("list", "a")
    other.expect("use", "ok")
    client.expect("use", "error -2")
    assert "no room for another session" in client.log(), client.log()
    other.expect("compute", "ok")
    other.end()
    client.expect("until_state 1", "1")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.end()
    server.stop()


def a_server_moves_and_goes_while_nothing_uses_it():
    folder = Folder()
    server = Server()
    folder.write(server.record("one"))
    client = Client(folder.source)
    client.expect("list", "a")
    server.becomes_idle()
    other = Server()
    folder.write(other.record("one"))
    server.stop()
    while client.ask("use a") != "ok":  # it has not read the record yet
        client.expect("list", "a")
    client.expect("compute", "ok")
    client.expect("drop", "ok")
    other.becomes_idle()
    folder.write()
    client.expect("until -", "-")
    client.expect("use a", "error -2")
    folder.write(other.record("one"))
    client.expect("until a", "a")
    client.expect("until_state 1", "1")
    client.expect("use", "ok")
    client.expect("compute", "ok")
    client.end()
    other.stop()


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
