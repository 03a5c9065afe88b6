#!/usr/bin/env python3
"""services.py BUILD [NAME...]: claims about spancld as a service: sockets of the service manager, the package's scripts and
units, and packaging/pocld. No systemd runs. Each function is one claim."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from servers import Servers, native_vendors  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 120  # a watchdog, not a claim about speed
DEBIAN = ROOT / "packaging/debian"


def run(*command, **more):
    return subprocess.run(list(map(str, command)), check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=HANG_S, **more)


def lists(address):
    done = run(BUILD / "bin/spancl", "list", "--quick", "--server", address)
    return done.returncode == 0, done.stdout


def sockets_of_the_service_manager_are_served():
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        with socket.socket(socket.AF_UNIX) as local, socket.create_server(("127.0.0.1", 0)) as host:
            local.bind(path)
            local.listen()
            passed = f"exec 3<&{local.fileno()} 4<&{host.fileno()}; export LISTEN_FDS=2 LISTEN_FDNAMES=a:b; "
            port = host.getsockname()[1]
            sh = ("bash", "-c")
            options = ("--socket", path, "--log", "info")

            class Activated(Servers):
                """Bash hands the sockets on, because the descriptors have fixed numbers."""

                def listen(self, i):
                    return ["--listen", "127.0.0.1:1"]  # it does not count

            sockets = (local.fileno(), host.fileno())
            with Activated(BUILD, 1, options, prefix=(*sh, passed + 'LISTEN_PID=$$ exec "$@"', "-"),
                           vendors=native_vendors(folder), pass_fds=sockets) as s:
                assert s.ports == [port], s.log_text()
                for address in f"localhost:{port}", f"unix:{path}":
                    works, out = lists(address)
                    assert works, out + s.log_text()
                assert "a socket of the service manager" in s.log_text()
            assert Path(path).is_socket()  # the service manager removes it
            # They are another process's.
            with Servers(BUILD, 1, ("--log", "info"), prefix=(*sh, passed + 'LISTEN_PID=1 exec "$@"', "-"),
                         vendors=native_vendors(folder), pass_fds=sockets) as s:
                assert s.ports[0] != port and "service manager" not in s.log_text()
            # A descriptor that is no socket.
            done = run(*sh, 'exec 3</dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"', "-", BUILD / "bin/spancld")
            assert done.returncode == 1 and "descriptor 3 of the service manager" in done.stdout, done.stdout


def connections_while_it_stops_wait_for_the_next_server():
    """The service manager's socket stays open, and a session lasts until the server ends it."""
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as local:
        path = f"{folder}/socket"
        local.bind(path)
        local.listen()
        prefix = ("bash", "-c", f'exec 3<&{local.fileno()}; export LISTEN_FDS=1; LISTEN_PID=$$ exec "$@"', "-")
        with Servers(BUILD, 1, ("--socket", path), prefix=prefix, vendors=native_vendors(folder),
                     pass_fds=(local.fileno(),)) as s:
            env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
            client = subprocess.Popen([BUILD / "bin/bench_opencl", "--only", "empty", "--scale", "1000000"], text=True,
                                      env={**env, "OCL_ICD_VENDORS": str(BUILD / "etc/vendors"), "SPANCL_ON_LOSS": "fail",
                                           "SPANCL_SERVERS": f"unix:{path}"}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            try:
                assert any('"first_context"' in line for line in client.stdout)
                s.processes[0].terminate()
                while s.processes[0].poll() is None:
                    with socket.socket(socket.AF_UNIX) as one:
                        one.setblocking(False)
                        try:
                            one.connect(path)
                        except BlockingIOError:  # the queue is full, because nobody accepts
                            pass
                    time.sleep(0.01)
                assert s.processes[0].returncode == 0, f"{s.processes[0].returncode}: {s.log_text()}"
            finally:
                client.kill()
                client.communicate()


def pocld_understands_its_options_and_variables():
    with tempfile.TemporaryDirectory() as folder:
        fake = Path(folder) / "spancld"
        fake.write_text('#!/bin/sh\nprintf "%s " "$@"\n')
        fake.chmod(0o755)

        def says(*options, **variables):
            done = run(ROOT / "packaging/pocld", *options,
                       env={"PATH": f"{folder}:/usr/bin:/bin", **variables})
            return done.stdout.strip() if done.returncode == 0 else None

        assert says() == "--listen *:10998 --log warn"
        assert says("-a", "127.0.0.1", "-p", "7000") == "--listen 127.0.0.1:7000 --log warn"
        assert says("-a127.0.0.1", "--port=7000", "-vinfo") == "--listen 127.0.0.1:7000 --log info"
        assert says("--address", "::1", "--insecure") == "--listen [::1]:10998 --log warn --insecure"
        assert says(POCLD_LOGLEVEL="off") == "--listen *:10998 --log error"
        assert says("--log_filter=err", POCLD_LOGLEVEL="debug") == "--listen *:10998 --log error"
        assert says("-v", "remote,memory") == "--listen *:10998 --log debug"
        assert says("-V") == "--version"
        for wrong in ("-p", "x"), ("-p",), ("--port=-1",):
            assert says(*wrong) is None, wrong
        assert "POCLD_LOGLEVEL" in says("--help")


def the_installed_benchmark_measures_a_server():
    with tempfile.TemporaryDirectory() as folder:
        for component in "libspancl1", "cli":
            done = run("cmake", "--install", BUILD, "--component", component, "--prefix", f"{folder}/usr")
            assert done.returncode == 0, done.stdout
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPANCL_", "OCL_"))}
        with Servers(BUILD, 1, (), vendors=native_vendors(folder)) as s:
            done = subprocess.run([f"{folder}/usr/bin/spancl", "bench", "--json", "--server", f"localhost:{s.ports[0]}", "--",
                                   "--only", "empty", "--scale", "1"], env=env, check=False, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S)
            assert done.returncode == 0, done.stdout + done.stderr
            server, results = map(json.loads, done.stdout.splitlines())
            assert server["reachable"] and server["devices"], server
            assert results["results"]["empty_kernel_finish"]["median"] > 0, results


def packaged_files(folder):
    """The package spancld as it is installed."""
    done = run("cmake", "--install", BUILD, "--component", "spancld", "--prefix", "/usr",
               env={**os.environ, "DESTDIR": str(folder)})
    assert done.returncode == 0, done.stdout


def units_are_valid_and_need_no_editing():
    with tempfile.TemporaryDirectory() as folder:
        packaged_files(folder)
        units = Path(folder) / "usr/lib/systemd/system"
        service, unit = (units / f"spancld.{kind}" for kind in ("service", "socket"))
        conf = Path(folder) / "etc/spancl/spancld.conf"
        assert "--config /etc/spancl/spancld.conf" in service.read_text()
        path = next(line.split("=")[1] for line in unit.read_text().splitlines() if line.startswith("ListenStream="))
        assert f"socket={path}" in conf.read_text().splitlines()
        # Sessions end in their time before systemd kills the service.
        grace, patience = (int(re.search(rf"^{name}=(\d+)$", file.read_text(), re.MULTILINE)[1])
                           for name, file in (("grace", conf), ("TimeoutStopSec", service)))
        assert 0 < grace < patience
        for line in service.read_text().splitlines():
            if line.startswith(("User=", "Group=")):
                assert line.endswith("=spancl")
        if not shutil.which("systemd-analyze"):
            return "systemd-analyze is not installed"
        done = run("systemd-analyze", "verify", "--recursive-errors=no", "--man=no", service, unit)
        wrong = [line for line in done.stdout.splitlines() if "spancld" in line and "not executable" not in line]
        assert not wrong, done.stdout
    return None


INSIDE = r"""
set -eu
export DPKG_MAINTSCRIPT_PACKAGE=spancld
# The system's folders that the scripts write to, as copies.
for folder in /etc /var/lib/systemd /usr/lib/systemd/system /usr/lib/sysusers.d; do
        mkdir -p "$1$folder" "$folder"
        cp -a "$folder/." "$1$folder"
        mount --bind "$1$folder" "$folder"
done
sed -i /^spancl:/d /etc/passwd /etc/group /etc/shadow /etc/gshadow
state() { find /etc /var/lib/systemd /var/lib/spancld -name '*-' -prune -o -print 2>/dev/null | sort; cut -d: -f1 /etc/passwd /etc/group | grep -vx -e render -e video; }
"$3/postinst" triggered
state >"$1/before"
for version in '' 0.0.1; do
        cp -a "$2/usr/lib/." /usr/lib
        cp -a "$2/etc/." /etc
        "$3/postinst" configure $version
        getent passwd spancl | grep -q :/usr/sbin/nologin
        getent group spancl >/dev/null
        [ "$(id -gn spancl)" = spancl ]
        [ -L /etc/systemd/system/sockets.target.wants/spancld.socket ]
        [ -L /etc/systemd/system/multi-user.target.wants/spancld.service ]
done
# An upgrade leaves a disabled unit disabled.
rm /etc/systemd/system/multi-user.target.wants/spancld.service
"$3/postinst" configure 0.0.1
[ ! -e /etc/systemd/system/multi-user.target.wants/spancld.service ]
mkdir -p /var/lib/spancld /var/cache/spancld
"$3/prerm" remove
rm -r /etc/spancl /usr/lib/systemd/system/spancld.* /usr/lib/sysusers.d/spancl.conf
"$3/postrm" remove
getent passwd spancl >/dev/null
"$3/postrm" purge
"$3/postrm" purge
[ ! -e /var/lib/spancld ]
[ ! -e /var/cache/spancld ]
state >"$1/after"
diff "$1/before" "$1/after"
"""


def scripts_of_the_package_leave_nothing():
    if os.geteuid() or not Path("/etc/debian_version").exists() or not shutil.which("deb-systemd-helper"):
        return "not root on a Debian"
    if run("unshare", "--mount", "true").returncode:
        return "mount namespaces are not permitted here"
    if Path("/var/lib/spancld").exists() or Path("/var/cache/spancld").exists():
        return "a spancld is installed"
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder) / "files"
        packaged_files(files)
        done = run("unshare", "--mount", "sh", "-c", INSIDE, "-", Path(folder) / "work", files, DEBIAN)
        assert done.returncode == 0, done.stdout
    return None


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
