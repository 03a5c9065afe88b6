"""A folder of packages: Debian packages, wheels and source packages from PyPI, and programs in bin/."""

import importlib.util
import lzma
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from programs import LOADER, USUAL

WORKLOADS = Path(__file__).resolve().parent / "workloads"
# pip takes only the platforms that it is told for another version of Python.
GLIBC = (17, 27, 28, 31, 34)


def _normal(name):
    return re.sub(r"[-_.]+", "_", name).lower()


def is_installed(name):
    """Does this Python have the package? True only for usual ones: others come from the folder."""
    return name in USUAL and importlib.util.find_spec(USUAL[name]) is not None


class Packages:
    def __init__(self, folder):
        self.folder = Path(folder)

    def deb(self, name):
        return next(iter(sorted(self.folder.glob(f"{name}_*.deb"))), None)

    def wheel(self, name):
        return next((w for w in sorted(self.folder.glob("*.whl"))
                     if _normal(w.name.split("-")[0]) == _normal(name)), None)

    def sdist(self, name):
        return next((s for s in sorted(self.folder.glob("*.tar.gz"))
                     if _normal(s.name.rsplit("-", 1)[0]) == _normal(name)), None)

    def binary(self, name):
        """A program in bin/, which may be packed with xz."""
        return next(filter(Path.exists, (self.folder / "bin" / name, self.folder / "bin" / f"{name}.xz")), None)

    def missing(self, program):
        """The packages that neither the folder has for a program nor, of the usual ones, this machine."""
        lacks = [d for d in program.debian if not self.deb(d)]
        lacks += [w for w in program.wheels if not self.wheel(w) and not is_installed(w)]
        if program.sdist and not self.sdist(program.sdist):
            lacks.append(f"{program.sdist}'s source")
        if program.binary and not self.binary(program.binary):
            lacks.append(f"bin/{program.binary}")
        return lacks

    def size(self):
        return sum(p.stat().st_size for p in self.folder.rglob("*") if p.is_file())

    # Filling the folder, where there is a network.

    def collect(self, programs, python, lean):
        """Fetch the packages that are not there yet. `python`: for this version, or None for the one that runs,
        which may have the usual ones already. `lean`: leave these out."""
        (self.folder / "bin").mkdir(parents=True, exist_ok=True)
        wheels = [w for w in dict.fromkeys(w for p in programs for w in p.wheels)
                  if not (lean and w in USUAL) and (python or not is_installed(w))]
        self._fetch_debs(dict.fromkeys((LOADER, *(d for p in programs for d in p.debian))))
        self._fetch_wheels(wheels, python)
        for name in {p.sdist for p in programs if p.sdist}:
            self._fetch_sdist(name)
        if any(p.name == "viennacl" for p in programs) and not self.binary("viennacl"):
            self._build_viennacl()

    def _fetch_debs(self, names):
        for name in names:
            if not self.deb(name):
                self._try(["apt-get", "download", "-qq", name])

    def _fetch_wheels(self, names, python):
        target = []
        if python:
            target = ["--python-version", python, "--implementation", "cp"]
            for minor in GLIBC:
                target += ["--platform", f"manylinux_2_{minor}_{platform.machine()}"]
            target += ["--platform", f"manylinux2014_{platform.machine()}",
                       "--platform", f"manylinux1_{platform.machine()}"]
        for name in names:
            if not self.wheel(name):
                self._try([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:",
                           "--disable-pip-version-check", *target, name])

    def _fetch_sdist(self, name):
        """Of the same version as the wheel."""
        wheel = self.wheel(name)
        if wheel and not self.sdist(name):
            self._try([sys.executable, "-m", "pip", "download", "-q", "--no-deps", f"--no-binary={name}",
                       "--disable-pip-version-check", f"{name}=={wheel.name.split('-')[1]}"])

    def _build_viennacl(self):
        """Our own program, with ViennaCL's headers."""
        with tempfile.TemporaryDirectory() as folder:
            self._try(["apt-get", "download", "-qq", "libviennacl-dev"], folder)
            for deb in Path(folder).glob("*.deb"):
                self._try(["dpkg", "-x", deb, folder])
            self._try(["g++", "-O2", "-w", "-I", f"{folder}/usr/include", WORKLOADS / "viennacl.cpp", "-o",
                       (self.folder / "bin/viennacl").resolve(), "-lOpenCL"])

    def _try(self, command, folder=None):
        """A package that cannot be had is missing; its program is left out."""
        try:
            done = subprocess.run(command, cwd=folder or self.folder, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, check=False)
            if done.returncode == 0:
                return
            text = done.stdout
        except OSError as e:
            text = str(e)
        print(f"{' '.join(map(str, command))}: {text[-400:]}", file=sys.stderr)

    # Using it.

    def install(self, programs, into):
        """Unpack the packages of these programs into a folder of their own. Return its Installed."""
        made = Installed(into)
        for deb in filter(None, map(self.deb, dict.fromkeys((LOADER, *(d for p in programs for d in p.debian))))):
            subprocess.run(["dpkg", "-x", deb, made.root], check=True)
        loader = next(made.root.glob("usr/lib/*/libOpenCL.so.1"), None)
        if loader and not loader.with_name("libOpenCL.so").exists():
            loader.with_name("libOpenCL.so").symlink_to(loader.name)
        wheels = list(filter(None, map(self.wheel, dict.fromkeys(w for p in programs for w in p.wheels))))
        if wheels:
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--no-cache-dir",
                            "--disable-pip-version-check", "--root-user-action=ignore", "--target", made.site,
                            *wheels], check=True)
        for name in {p.sdist for p in programs if p.sdist}:
            with tarfile.open(self.sdist(name)) as archive:
                archive.extractall(made.sources / name, filter="data")
        for binary in filter(None, (self.binary(p.binary) for p in programs if p.binary)):
            unpack = lzma.open if binary.suffix == ".xz" else open
            with unpack(binary, "rb") as source, open(made.bin / binary.name.removesuffix(".xz"), "wb") as target:
                shutil.copyfileobj(source, target)
                os.fchmod(target.fileno(), 0o755)
        return made


class Installed:
    """The packages unpacked: a root of Debian's files, a folder of Python's, sources, and programs."""

    def __init__(self, folder):
        self.root, self.site, self.sources, self.bin = (Path(folder) / n for n in ("root", "site", "sources", "bin"))
        for path in (self.root, self.site, self.sources, self.bin):
            path.mkdir(parents=True)

    def environment(self, env):
        """Add the packages to an environment."""
        def front(name, *paths):
            env[name] = ":".join([*map(str, paths), *filter(None, [env.get(name)])])

        front("PATH", self.bin, self.root / "usr/bin")
        front("LD_LIBRARY_PATH", *sorted(self.root.glob("usr/lib/*-linux-gnu")))
        front("PYTHONPATH", Path(__file__).resolve().parent, self.site)
        env.update(BANK_ROOT=str(self.root), BANK_SOURCES=str(self.sources))
