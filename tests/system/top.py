"""What `spancl top` shows of a server."""

import json
import subprocess

from claims import HANG_S


def top(build, where, env=None):
    """The object of --json."""
    done = subprocess.run([str(build / "bin/spancl"), "top", "--once", "--json", "--server", where], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=HANG_S, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)
