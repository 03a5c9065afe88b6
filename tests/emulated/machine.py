#!/usr/bin/env python3
"""machine.py BUILD: two servers and a client in an emulated machine that has RDMA devices in software (soft-RoCE), and
a network that delays and loses packets, and a kernel with TLS, vsock and control groups, under which the attacks on the sandbox run; tests/emulated/init says what is claimed. Status 77: something is missing.

The kernel is one that is installed and has the modules, else Debian's package, which is fetched into BUILD and unpacked there."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

BUILD = Path(sys.argv[1]).resolve()
INIT = Path(__file__).resolve().parent / "init"
OPEN = INIT.parent.parent / "attacks/open"
CONSOLE = BUILD / "machine.log"  # what it says while it runs
HANG_S = 1500  # a watchdog, not a claim about speed
MODULES = ("virtio_pci", "virtio_net", "crc32_generic", "ib_uverbs", "rdma_ucm", "rdma_rxe", "sch_netem", "tls",
           "vsock_loopback")
CIPHERS = ("gcm", "ghash_generic", "ctr")  # of the kernel's TLS, where they are modules
TOOLS = ("busybox", "ip", "rdma", "tc")
PROGRAMS = ("spancld", "spancl", "system_mover", "unit_cgroup", "unit_transport")
DOOR = "libspancl.so.0.1.0"
TLS = "libspancl-tls.so"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def run(*command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **more)
    return done.stdout if done.returncode == 0 else None


# --- The kernel -----------------------------------------------------------------------------------

def kernels(root):
    """Kernels that have all modules, as a pair: image, and modules by name."""
    for image in sorted(glob.glob(f"{root}/boot/vmlinuz-*"), reverse=True):
        folder = f"{root}/lib/modules/{image.split('vmlinuz-', 1)[1]}"
        modules = {Path(p).stem.replace("-", "_"): p for p in glob.glob(f"{folder}/kernel/**/*.ko", recursive=True)}
        if all(m in modules for m in MODULES):
            yield image, modules


def find_kernel():
    folder = BUILD / "kernel"
    for root in ("", folder):
        for found in kernels(root):
            return found
    depends = run("apt-cache", "depends", "linux-image-amd64") or b"" if shutil.which("apt-cache") else b""
    package = re.search(rb"Depends: (linux-image-[\w.+-]+)", depends)
    if not package:
        skip("no kernel with soft-RoCE is installed, nor is there Debian's package linux-image-amd64")
    with tempfile.TemporaryDirectory(dir=BUILD) as packages:
        os.chmod(packages, 0o755)
        if run("apt-get", "download", package.group(1).decode(), cwd=packages) is None:
            skip(f"{package.group(1).decode()} can't be fetched")
        if run("dpkg", "-x", *glob.glob(f"{packages}/*.deb"), str(folder)) is None:
            skip("the kernel's package can't be unpacked")
    return next(kernels(folder), None) or skip("Debian's kernel has no soft-RoCE any more")


def in_order(modules):
    """MODULES, CIPHERS and what they depend on, in front of them."""
    order = []

    def add(name):
        depends = re.search(rb"\0depends=([^\0]*)\0", Path(modules[name]).read_bytes())
        for other in depends.group(1).decode().split(",") if depends else ():
            if other:
                add(other.replace("-", "_"))
        if name not in order:
            order.append(name)
    for name in (*MODULES, *(c for c in CIPHERS if c in modules)):
        add(name)
    return order


# --- The machine's files --------------------------------------------------------------------------

def libraries(program):
    return re.findall(r"(/\S+) \(0x", (run("ldd", program) or b"").decode())


def fill(root, modules):
    """A system of one folder: every library is in /usr/lib, where LD_LIBRARY_PATH points."""
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "etc/OpenCL/vendors", "modules", "dev", "proc", "sys", "tmp"):
        (root / folder).mkdir(parents=True)
    for name in ("bin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    if not (BUILD / "lib" / TLS).exists():
        skip("built without OpenSSL")
    rxe = glob.glob("/usr/lib/*/libibverbs/librxe-rdmav*.so")
    fabric = glob.glob("/usr/lib/*/libfabric.so.1")
    if not rxe or not fabric or not os.path.exists("/etc/libibverbs.d/rxe.driver"):
        skip("no libfabric, or none of libibverbs' drivers (on Debian: apt install libfabric1 ibverbs-providers)")
    programs = [BUILD / "bin" / p for p in PROGRAMS]
    for tool in TOOLS:
        path = shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
        programs.append(Path(path) if path else skip(f"there is no {tool} (on Debian: apt install busybox-static iproute2)"))
    loaded = [str(BUILD / "lib" / DOOR), str(BUILD / "lib" / TLS), *rxe, *fabric]
    if libraries(str(programs[len(PROGRAMS)])):
        skip("busybox needs libraries (on Debian: apt install busybox-static)")
    for program in programs:
        shutil.copy(program, root / "usr/bin" / program.name)
    for path in {p for of in (*map(str, programs), *loaded) for p in libraries(of)} | set(loaded):
        shutil.copy(path, root / ("usr/lib64" if "/ld-linux" in path else "usr/lib"))
    driver = root / rxe[0][1:]  # where libibverbs looks for it
    driver.parent.mkdir(parents=True)
    shutil.copy(rxe[0], driver)
    (root / "etc/libibverbs.d").mkdir()
    (root / "etc/libibverbs.d/rxe.driver").write_text("driver rxe\n")
    (root / "etc/OpenCL/vendors/spancl.icd").write_text(f"/usr/lib/{DOOR}\n")
    order = in_order(modules)
    for name in order:
        shutil.copy(modules[name], root / "modules" / f"{name}.ko")
    (root / "modules/order").write_text("".join(f"{name}.ko\n" for name in order))
    shutil.copy(INIT, root / "init")
    # The attacks that are known to succeed, as a pattern of grep.
    known = [line.split()[1] for line in OPEN.read_text().splitlines() if not line.startswith("#")]
    (root / "open").write_text("|".join(known) + "\n")


def main():
    if not shutil.which("qemu-system-x86_64"):
        skip("there is no qemu-system-x86_64 (on Debian: apt install qemu-system-x86)")
    image, modules = find_kernel()
    with tempfile.TemporaryDirectory() as folder:
        root, initrd = Path(folder) / "root", Path(folder) / "initrd"
        fill(root, modules)
        with open(initrd, "wb") as out:
            subprocess.run("find . | busybox cpio -o -H newc", shell=True, cwd=root, stdout=out, stderr=subprocess.DEVNULL, check=True)
        subprocess.run(
            ["qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2", "-m", "2048", "-no-reboot", "-display", "none",
             "-serial", f"file:{CONSOLE}",
             "-kernel", image, "-initrd", str(initrd), "-append", "console=ttyS0 quiet panic=-1 rdinit=/init",
             "-netdev", "user,id=net,restrict=on", "-device", "virtio-net-pci,netdev=net"],
            stdin=subprocess.DEVNULL, timeout=HANG_S, check=True)
    text = CONSOLE.read_text(errors="replace").replace("\r", "")
    print(text)
    passed = re.findall(r"^pass (\w+)", text, re.MULTILINE)
    return 0 if re.search(r"^done$", text, re.MULTILINE) and passed and not re.search(r"^FAIL ", text, re.MULTILINE) else 1


if __name__ == "__main__":
    sys.exit(main())
