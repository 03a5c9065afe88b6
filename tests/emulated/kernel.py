"""A kernel of Debian for emulated machines: one that is installed and has the modules, else Debian's package, which is
fetched into BUILD and unpacked there. A test that lacks something ends with status 77."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    return done.stdout if done.returncode == 0 else None


def kernels(root, wanted):
    """Kernels that have all modules, as a pair: image, and modules by name."""
    for image in sorted(glob.glob(f"{root}/boot/vmlinuz-*"), reverse=True):
        folder = f"{root}/lib/modules/{image.split('vmlinuz-', 1)[1]}"
        modules = {Path(p).stem.replace("-", "_"): p for p in glob.glob(f"{folder}/kernel/**/*.ko", recursive=True)}
        if all(m in modules for m in wanted):
            yield image, modules


def find_kernel(build, wanted):
    folder = build / "kernel"
    for root in ("", folder):
        for found in kernels(root, wanted):
            return found
    depends = run("apt-cache", "depends", "linux-image-amd64") or b"" if shutil.which("apt-cache") else b""
    package = re.search(rb"Depends: (linux-image-[\w.+-]+)", depends)
    if not package:
        skip(f"no kernel with {wanted} is installed, nor is there Debian's package linux-image-amd64")
    with tempfile.TemporaryDirectory(dir=build) as packages:
        os.chmod(packages, 0o755)
        if run("apt-get", "download", package.group(1).decode(), cwd=packages) is None:
            skip(f"{package.group(1).decode()} can't be fetched")
        if run("dpkg", "-x", *glob.glob(f"{packages}/*.deb"), f"{packages}/files") is None:
            skip("the kernel's package can't be unpacked")
        if not folder.exists():  # another test may have been faster
            os.rename(f"{packages}/files", folder)
    return next(kernels(folder, wanted), None) or skip(f"Debian's kernel has no {wanted} any more")


def in_order(modules, wanted):
    """The wanted modules and what they depend on, in front of them."""
    order = []

    def add(name):
        depends = re.search(rb"\0depends=([^\0]*)\0", Path(modules[name]).read_bytes())
        for other in depends.group(1).decode().split(",") if depends else ():
            if other:
                add(other.replace("-", "_"))
        if name not in order:
            order.append(name)
    for name in wanted:
        add(name)
    return order


def copy_modules(modules, wanted, folder):
    """Copies them, and their names in the order in which they have to be loaded."""
    folder.mkdir(parents=True)
    order = in_order(modules, wanted)
    for name in order:
        shutil.copy(modules[name], folder / f"{name}.ko")
    (folder / "order").write_text("".join(f"{name}.ko\n" for name in order))


def static_busybox():
    path = shutil.which("busybox")
    if not path or b"statically" not in (run("ldd", path) or b"statically linked"):
        skip("there is no static busybox (on Debian: apt install busybox-static)")
    return path


def make_initrd(root, path):
    with open(path, "wb") as out:
        subprocess.run("find . | busybox cpio -o -H newc", shell=True, cwd=root, stdout=out, stderr=subprocess.DEVNULL,
                       check=True)


def boot(image, initrd, console, append, *devices, hang_s):
    """Runs a machine until it is switched off, and returns what it wrote on its console. On a busy host its timer may be
    too slow for the kernel's check."""
    subprocess.run(
        ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048", "-no-reboot",
         "-display", "none", "-serial", f"file:{console}", "-kernel", image, "-initrd", str(initrd), "-append",
         f"console=ttyS0 quiet panic=-1 no_timer_check {append}", *devices],
        stdin=subprocess.DEVNULL, timeout=hang_s, check=True)
    return Path(console).read_text(errors="replace").replace("\r", "")


def all_passed(text):
    """Each claim of the machine is a line of its console: "pass NAME" or "FAIL NAME", and "done" at the end."""
    return (re.search(r"^done$", text, re.MULTILINE) and re.search(r"^pass \w+", text, re.MULTILINE)
            and not re.search(r"^FAIL ", text, re.MULTILINE))
