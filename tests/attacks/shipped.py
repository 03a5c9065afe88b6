#!/usr/bin/env python3
"""shipped.py BUILD [NAME...]: claims about `spancld sandbox-test`, the attacks as users run them."""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "system"))
import claims  # noqa: E402

BUILD = Path(sys.argv[1]).resolve()
HANG_S = 600  # a watchdog, not a claim about speed
SUCCEED = 80  # so many attacks at least where there is no sandbox, whatever the host
OPEN = {line.split()[1] for line in (Path(__file__).parent / "open").read_text().splitlines() if line[0] != "#"}


def _sandbox_test(*options, says="", prefix=()):
    """Its status and what it prints, `says` among it. It leaves nothing in its folder, and ends by itself."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        done = subprocess.run([*prefix, str(BUILD / "bin/spancld"), "sandbox-test", *options], text=True, check=False,
                              env={**os.environ, "TMPDIR": folder}, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=HANG_S)
        assert not os.listdir(folder), os.listdir(folder)
    print(done.stdout)
    assert says in done.stdout
    return done.returncode, re.findall(r"^(held|BREACHED|not applicable here) +(\w+):", done.stdout, re.MULTILINE)


def _is_held(status, outcomes):
    breached = {name for outcome, name in outcomes if outcome == "BREACHED"}
    assert outcomes and breached <= OPEN, breached - OPEN
    assert status == (1 if breached else 0)


def this_host_holds_every_attack():
    status, outcomes = _sandbox_test("--session-memory", "1024", says=", a filter of system calls,")
    _is_held(status, outcomes)


def another_user_holds_every_attack():
    if os.geteuid():
        return "not root here"
    _is_held(*_sandbox_test("--session-memory", "1024", "--user", "nobody"))
    return None


# A mount namespace whose /dev has a node that NVIDIA's driver makes, and whose /sys has InfiniBand without a device.
GPU_HOST = """set -e
dev=$(mktemp -d)
mount -t tmpfs dev "$dev"
for node in null zero full random urandom; do touch "$dev/$node"; mount --bind "/dev/$node" "$dev/$node"; done
mkdir "$dev/shm"
mount --bind /dev/shm "$dev/shm"
touch "$dev/nvidiactl"
mount --move "$dev" /dev
rmdir "$dev"
mount -t tmpfs class /sys/class
mkdir /sys/class/infiniband
exec "$@"
"""


def a_host_with_a_gpu_holds_every_attack():
    if os.geteuid() or subprocess.run(["unshare", "-m", "true"], check=False).returncode:
        return "no mount namespaces here"
    _is_held(*_sandbox_test("--session-memory", "1024", prefix=("unshare", "-m", "bash", "-c", GPU_HOST, "bash")))
    return None


def attacks_succeed_where_there_is_no_sandbox():
    status, outcomes = _sandbox_test("--sandbox", "0", "--session-memory", "1024")
    assert status == 1
    assert sum(outcome == "BREACHED" for outcome, _ in outcomes) >= SUCCEED


def a_wrong_option_is_no_test():
    done = subprocess.run([str(BUILD / "bin/spancld"), "sandbox-test", "--user", "no such user"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S)
    assert done.returncode == 2 and "no such user" in done.stderr, done.stderr


if __name__ == "__main__":
    sys.exit(claims.run(globals()))
