# For sourcing. packages_install PACKAGE...: install the missing packages, on Debian and Ubuntu.

packages_missing() {
        local package
        for package in "$@"; do
                dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
                        echo "$package"
        done
}

packages_install() {
        local missing
        missing=$(packages_missing "$@")
        [ -n "$missing" ] || return 0
        if ! command -v apt-get >/dev/null; then
                echo "please install what these Debian packages are:" $missing >&2
                return 1
        fi
        local root=""
        if [ "$(id -u)" != 0 ]; then
                root=sudo
        fi
        echo "installing:" $missing
        export DEBIAN_FRONTEND=noninteractive
        if ! $root apt-get install -y -qq --no-install-recommends $missing >/dev/null 2>&1; then
                $root apt-get update -qq || return 1
                $root apt-get install -y -qq --no-install-recommends $missing >/dev/null || return 1
        fi
}

# Install the packages that this release has. Tests that need the others are skipped.
packages_try() {
        local package
        for package in $(packages_missing "$@"); do
                packages_install "$package" >/dev/null 2>&1 || echo "not available: $package"
        done
}

# Print the dependencies of packages, without the packages.
packages_needs() {
        command -v apt-cache >/dev/null &&
                apt-cache depends "$@" 2>/dev/null | sed -n 's/^ *|\{0,1\}Depends: \([^<]*\)$/\1/p'
}

# The products and their optional parts need these; cpack needs dpkg-dev and file.
packages_build="gcc libc6-dev cmake ninja-build pkg-config python3 opencl-headers ocl-icd-opencl-dev uthash-dev liblz4-dev libssl-dev libfabric-dev libavahi-client-dev libc-ares-dev libdav1d-dev libopenh264-dev libde265-dev libavcodec-dev libavformat-dev libavdevice-dev libavutil-dev libswscale-dev liblttng-ust-dev systemtap-sdt-dev dpkg-dev file"
packages_run="ocl-icd-libopencl1 pocl-opencl-icd clinfo libpng-dev"
packages_test="libcmocka-dev clang lld iproute2 nftables python3-yaml dbus avahi-daemon avahi-utils dnsmasq-base libopendht-c-dev tmux ffmpeg lttng-tools babeltrace2"
# AES-GCM for wide instructions (src/tls/gcm.h), on amd64 only.
packages_tls="libipsec-mb-dev"
# The compilers for other processors, their emulator, and another C library (tests/cross).
packages_cross="gcc-aarch64-linux-gnu libc6-dev-arm64-cross gcc-arm-linux-gnueabihf libc6-dev-armhf-cross gcc-i686-linux-gnu libc6-dev-i386-cross qemu-user musl-tools"
# The emulator of an accelerator that runs compiled kernels (docs/internals/riscv.md).
packages_riscv="qemu-system-misc"
# The emulator of a machine with soft-RoCE (tests/emulated). Its kernel, Debian's linux-image-amd64, is unpacked, but
# not installed.
packages_emulated="qemu-system-x86 busybox-static ibverbs-providers"
# tests/system/readme.py makes bare systems with these.
packages_bare="mmdebstrap git"
packages_thirdparty="clpeak hashcat clblast-utils python3-pyopencl python3-pytest python3-mako piglit clfft-client python3-gpyfft"
# Other native implementations. Only the dependencies of Mesa's are installed: tests/run/with-platforms unpacks it.
packages_native="oclgrind"
packages_native_needs="mesa-opencl-icd"
packages_slurm="slurmctld slurmd slurm-client"
