#!/usr/bin/env python3
"""machine.py BUILD: two servers and a client in an emulated machine that has RDMA devices in software (soft-RoCE), and
a network that delays and loses packets, and a kernel with TLS, vsock and control groups, under which the attacks on the sandbox run; tests/emulated/init says what is claimed. Status 77: something is missing.

kernel.py finds the kernel."""

import glob
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

from kernel import all_passed, boot, copy_modules, find_kernel, make_initrd, run, skip, static_busybox

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


# --- The machine's files --------------------------------------------------------------------------

def libraries(program):
    return re.findall(r"(/\S+) \(0x", (run("ldd", program) or b"").decode())


def fill(root, modules):
    """A system of one folder: every library is in /usr/lib, where LD_LIBRARY_PATH points."""
    for folder in ("usr/bin", "usr/lib", "usr/lib64", "etc/OpenCL/vendors", "dev", "proc", "sys", "tmp"):
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
    static_busybox()
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
    copy_modules(modules, (*MODULES, *(c for c in CIPHERS if c in modules)), root / "modules")
    shutil.copy(INIT, root / "init")
    # The attacks that are known to succeed, as a pattern of grep.
    known = [line.split()[1] for line in OPEN.read_text().splitlines() if not line.startswith("#")]
    (root / "open").write_text("|".join(known) + "\n")


def main():
    if not shutil.which("qemu-system-x86_64"):
        skip("there is no qemu-system-x86_64 (on Debian: apt install qemu-system-x86)")
    image, modules = find_kernel(BUILD, MODULES)
    with tempfile.TemporaryDirectory() as folder:
        root, initrd = Path(folder) / "root", Path(folder) / "initrd"
        fill(root, modules)
        make_initrd(root, initrd)
        text = boot(image, initrd, CONSOLE, "rdinit=/init", "-netdev", "user,id=net,restrict=on", "-device",
                    "virtio-net-pci,netdev=net", hang_s=HANG_S)
    print(text)
    return 0 if all_passed(text) else 1


if __name__ == "__main__":
    sys.exit(main())
