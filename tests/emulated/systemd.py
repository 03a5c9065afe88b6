#!/usr/bin/env python3
"""systemd.py BUILD: the Debian packages of BUILD on an emulated Debian that systemd runs. An administrator installs,
restarts, drains and purges them, and users compute over the service's socket; tests/emulated/service says what is
claimed. Status 77: something is missing.

mmdebstrap makes the system, with PoCL; kernel.py finds the kernel. SUITE in the environment is Debian's name of a
release, and else bookworm's."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from kernel import all_passed, boot, copy_modules, find_kernel, make_initrd, skip, static_busybox

BUILD = Path(sys.argv[1]).resolve()
SERVICE = Path(__file__).resolve().parent / "service"
CONSOLE = BUILD / "systemd.log"  # what it says while it runs
HANG_S = 5400  # a watchdog, not a claim about speed
SUITE = os.environ.get("SUITE", "bookworm")
MODULES = "virtio_pci", "virtio_blk", "crc32c_generic", "ext4"
SYSTEM = "systemd-sysv", "dbus", "libpam-systemd", "pocl-opencl-icd", "ocl-icd-libopencl1", "clinfo", "liblz4-1", "procps"
PACKAGES = "libspancl1", "libspancl-tls", "spancl-cli", "spancld"
PROGRAM = "bench_opencl"
INIT = """#!/bin/busybox sh
busybox mkdir -p /dev /mnt
busybox mount -t devtmpfs dev /dev
for module in $(busybox cat /modules/order); do
        busybox insmod /modules/$module
done
until [ -b /dev/vda ]; do busybox usleep 10000; done
busybox mount -t ext4 -o noatime /dev/vda /mnt
busybox mount --move /dev /mnt/dev
exec busybox switch_root /mnt /sbin/init
"""
UNIT = """[Unit]
Description=Claims about the service
[Service]
Type=idle
ExecStart=/claims/service
StandardInput=null
[Install]
WantedBy=multi-user.target
"""


def make_packages(folder):
    done = subprocess.run(["cpack", "--config", str(BUILD / "CPackConfig.cmake"), "-B", str(folder)], check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 0, done.stdout


def needs(package):
    """The packages that it depends on, without ours."""
    fields = subprocess.run(["dpkg-deb", "--field", str(package), "Pre-Depends", "Depends"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    names = re.findall(r"(?:^|[:,]) *([a-z0-9][a-z0-9+.-]+)", fields, re.MULTILINE)
    return {name for name in names if name not in PACKAGES}


def make_system(root, packages):
    """A system with what the claims and the packages need, but without documents. The packages themselves lie in /claims:
    the machine has no network."""
    packages = [package for name in PACKAGES for package in packages.glob(f"{name}_*.deb")]
    included = {*SYSTEM, *(name for package in packages for name in needs(package))}
    made = subprocess.run(["mmdebstrap", "--quiet", "--variant=minbase", f"--include={','.join(sorted(included))}",
                           "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
                           "--dpkgopt=path-exclude=/usr/share/locale/*", SUITE, str(root)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if made.returncode:
        print(made.stdout)
        skip(f"mmdebstrap: status {made.returncode}")
    claims = root / "claims"
    claims.mkdir()
    for package in packages:
        shutil.copy(package, claims)
    shutil.copy(SERVICE, claims / "service")
    (claims / "service").chmod(0o755)
    shutil.copy(BUILD / "bin" / PROGRAM, claims)
    units = root / "etc/systemd/system"
    (units / "claims.service").write_text(UNIT)
    (units / "multi-user.target.wants").mkdir(exist_ok=True)
    (units / "multi-user.target.wants/claims.service").symlink_to("../claims.service")
    # Nobody logs in, and the console is the claims'.
    for unit in "getty.target", "apt-daily.timer", "apt-daily-upgrade.timer", "e2scrub_reap.service":
        (units / unit).unlink(missing_ok=True)
        (units / unit).symlink_to("/dev/null")
    # A group of udev's, which is not installed here. The service's package needs it, and leaves it there.
    subprocess.run(["chroot", str(root), "groupadd", "--system", "render"], check=True)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n")
    (root / "etc/fstab").write_text("/dev/vda / ext4 defaults 0 0\n")


def main():
    if os.geteuid():
        skip("not root")
    for tool, package in (("qemu-system-x86_64", "qemu-system-x86"), ("mmdebstrap", "mmdebstrap"), ("mke2fs", "e2fsprogs"),
                          ("dpkg-shlibdeps", "dpkg-dev")):
        if not shutil.which(tool, path=os.environ["PATH"] + ":/usr/sbin:/sbin"):
            skip(f"there is no {tool} (on Debian: apt install {package})")
    busybox = static_busybox()
    image, modules = find_kernel(BUILD, MODULES)
    with tempfile.TemporaryDirectory(dir=BUILD) as folder:
        folder = Path(folder)
        folder.chmod(0o755)
        make_packages(folder / "dist")
        make_system(folder / "system", folder / "dist")
        disk, initrd, early = folder / "disk", folder / "initrd", folder / "early"
        subprocess.run(["/sbin/mke2fs", "-q", "-t", "ext4", "-O", "^metadata_csum,^64bit", "-d", str(folder / "system"),
                        str(disk), "3G"], check=True)
        copy_modules(modules, MODULES, early / "modules")
        (early / "bin").mkdir()
        shutil.copy(busybox, early / "bin/busybox")
        (early / "init").write_text(INIT)
        (early / "init").chmod(0o755)
        make_initrd(early, initrd)
        text = boot(image, initrd, CONSOLE, "rdinit=/init systemd.show_status=no", "-drive",
                    f"file={disk},format=raw,if=virtio,cache=unsafe", "-nic", "none", hang_s=HANG_S)
    print(text)
    return 0 if all_passed(text) else 1


if __name__ == "__main__":
    sys.exit(main())
