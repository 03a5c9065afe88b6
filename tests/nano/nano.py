#!/usr/bin/env python3
"""nano.py BUILD [NAME...]: claims about the nano client on this host, over real servers. Each function is one claim."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "bench"), str(ROOT / "tests/system")]
import claims  # noqa: E402
from relay import Relay  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
FOLDER = tempfile.TemporaryDirectory()
VENDORS = native_vendors(FOLDER.name)
HANG_S = 600  # a watchdog
# Functions that bare metal does not have, or that allocate.
NOT_IN_NANO = re.compile(r"malloc|calloc|realloc|free|f?printf|puts|fopen|pthread_\w+|abort|__assert_fail|socket")


def servers(*options):
    return Servers(BUILD, 1, options, vendors=VENDORS)


def calls(port, how):
    done = subprocess.run([str(BUILD / "bin/nano_calls"), "127.0.0.1", str(port), how], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def frames(host, port, count, size, between):
    """`count` pictures of `size` for the client at `host`, [KEY@]HOST. It calls between(N) after picture N, every 20
    pictures, while the client waits. Returns how often the session went on."""
    command = [str(BUILD / "bin/nano_frames"), host, str(port), str(count), *map(str, size), "0"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True) as client:
        last = ""
        for last in client.stdout:
            if last.startswith("frame "):
                between(int(last.split()[1]))
                client.stdin.write("\n")
                client.stdin.flush()
        errors = client.stderr.read()
        assert client.wait(HANG_S) == 0, errors
    return int(re.fullmatch(r"resumed (\d+) used \d+\n", last)[1])


def every_call_has_its_results_and_errors():
    if not (BUILD / "bin/nano_binary").exists():
        return "skipped: no ICD loader"
    binary = Path(FOLDER.name) / "binary"
    env = {**os.environ, "OCL_ICD_VENDORS": VENDORS}
    subprocess.run([str(BUILD / "bin/nano_binary"), str(binary)], env=env, timeout=HANG_S, check=True)
    with servers() as s:
        calls(s.ports[0], str(binary))
    return None


def built_in_kernels_compute():
    with servers("--backend", "reference") as s:
        calls(s.ports[0], "reference")


def pictures_are_bit_exact_over_links_that_are_cut():
    with servers() as s:
        relay = Relay(s.ports[0])
        bytes_until = iter(range(1, 10**6, 1777))

        def cut(_):
            relay.cut()
            relay.left = next(bytes_until)  # and once more, anywhere in the next frames

        assert frames("127.0.0.1", relay.port, 60, (192, 144), cut) >= 3
        assert frames("127.0.0.1", relay.port, 1000, (64, 48), cut) >= 50
        relay.close()


def a_lost_server_is_an_error_and_no_hang():
    with servers() as s:
        port = s.ports[0]
        command = [str(BUILD / "bin/nano_frames"), "127.0.0.1", str(port), "1000000", "64", "48", "1000"]
        with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as client:
            client.stdout.readline()
            s.processes[0].kill()
            s.processes[0].wait()
            _, errors = client.communicate(timeout=HANG_S)
    assert client.returncode == 1 and "can't be reached" in errors, errors


def the_library_needs_no_heap_and_no_system():
    wanted = subprocess.run(["nm", "-u", str(BUILD / "libspancl_nano.a")], stdout=subprocess.PIPE, text=True, check=True)
    found = [name for name in re.findall(r" U (\w+)$", wanted.stdout, re.MULTILINE) if NOT_IN_NANO.fullmatch(name)]
    assert not found, found


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
