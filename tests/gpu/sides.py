"""The sides of a comparison: natively, natively by another platform's name, over servers by TCP, by shared memory, and over
two by TCP."""

import ctypes
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))
from servers import Servers, native_vendors  # noqa: E402

# Name: transport and number of servers.
SPANCL = {"tcp": ("tcp", 1), "shm": ("shm", 1), "two": ("tcp", 2)}

# Natively, under the layer renamed.c: kernels that a program chooses by the platform's vendor are those over SpanCL.
RENAMED = "renamed"
LAYER = "lib/renamed_platform.so"

NVIDIA = "libnvidia-opencl.so.1"


def vendors(folder):
    """The native implementations. NVIDIA's counts without an ICD file, too, as containers have it."""
    path = Path(native_vendors(folder))
    if not os.environ.get("NATIVE_VENDORS") and not any(path.glob("*.icd")):
        try:
            ctypes.CDLL(NVIDIA)
        except OSError:
            raise RuntimeError("no OpenCL implementation: set NATIVE_VENDORS to a folder of .icd files") from None
        (path / "nvidia.icd").write_text(NVIDIA + "\n")
    return str(path)


class Side:
    """A side for one run, with homes of its own: no cache of another run serves it."""

    def __init__(self, name, build, installed, native, folder):
        self.native = native
        self.folder = Path(folder)
        self.env = self._clean_environment("home")
        installed.environment(self.env)
        self.env["OCL_ICD_VENDORS"] = native
        self.servers = None
        if name == RENAMED:
            self.env["OPENCL_LAYERS"] = str(Path(build).resolve() / LAYER)
        if name in SPANCL:
            transport, count = SPANCL[name]
            self.servers = Servers(build, count, vendors=native, transport=transport,
                                   options=("--cache", str(self.folder / "cache")), prefix=self._server_prefix())
            over = self.servers.environment()
            self.env.update({k: over[k] for k in ("OCL_ICD_VENDORS", "SPANCL_SERVERS")})
            self.env["BANK_DEVICES"] = str(count)

    def _homes(self, name):
        home = self.folder / name
        home.mkdir(parents=True)
        return {"HOME": str(home), "XDG_CACHE_HOME": f"{home}/.cache", "XDG_CONFIG_HOME": f"{home}/.config",
                "XDG_DATA_HOME": f"{home}/.local/share", "SPANCL_KEYS": str(self.folder / "keys")}

    def _clean_environment(self, name):
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("SPANCL_", "OCL_ICD_", "POCL_CACHE", "CUDA_CACHE"))}
        env.update(self._homes(name), BANK_DEVICES="1", BANK_READINGS=str(self.folder / "readings"))
        return env

    def _server_prefix(self):
        homes = self._homes("server")
        (self.folder / "keys").mkdir(mode=0o700)
        return ["env", "-u", "POCL_CACHE_DIR", "-u", "CUDA_CACHE_PATH", *(f"{k}={v}" for k, v in homes.items())]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.servers:
            self.servers.stop()

    def complaint(self):
        """The servers have ended: the log of those that did not end cleanly, or nothing."""
        if not self.servers:
            return ""
        bad = [p.returncode for p in self.servers.processes if p.returncode]
        return f"a server ended with status {bad[0]}: {self.log()}" if bad else ""

    def log(self):
        return self.servers.log_text()[-2000:] if self.servers else ""
