# For sourcing. packages_install PACKAGE...: install the missing packages, on Debian and Ubuntu.

packages_missing() {
        local package
        for package in "$@"; do
                dpkg-query -W -f '${Status}\n' "$package" 2>/dev/null | grep -q ' installed$' ||
                        echo "$package"
        done
}

# Run apt-get as root. Another apt or dpkg may have the lock: then wait until it ends, an hour at most.
packages_apt() {
        local root="" said status until=$(($(date +%s) + 3600))
        [ "$(id -u)" = 0 ] || root=sudo
        while :; do
                said=$($root env LC_ALL=C DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=600 "$@" 2>&1)
                status=$?
                [ $status = 0 ] && return 0
                case $said in
                *"It is held by process"* | *"(11: Resource temporarily unavailable)"*) ;;
                *) until=0 ;;
                esac
                if [ "$(date +%s)" -ge "$until" ]; then
                        printf '%s\n' "$said" | tail -n 20 >&2
                        return $status
                fi
                echo "waiting for another apt or dpkg, which has the lock" >&2
                sleep 10
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
        echo "installing:" $missing
        if ! packages_apt install -y -qq --no-install-recommends $missing; then
                packages_apt update -qq || return 1
                packages_apt install -y -qq --no-install-recommends $missing || return 1
        fi
}

packages_has() {
        LC_ALL=C apt-cache policy "$1" 2>/dev/null | grep -q '^  Candidate: [^(]'
}

# Install the packages that this release has. Tests that need the others are skipped. Return 1 if one is there, but
# could not be installed.
packages_try() {
        local package there="" fresh="" status=0
        for package in $(packages_missing "$@"); do
                if ! packages_has "$package" && [ -z "$fresh" ] && command -v apt-get >/dev/null; then
                        fresh=1
                        packages_apt update -qq || fresh=failed
                fi
                if packages_has "$package"; then
                        there="$there $package"
                elif [ "$fresh" = failed ]; then
                        echo "could not be looked for, because the archive's lists can't be fetched: $package"
                        status=1
                else
                        echo "not available: $package"
                fi
        done
        # All at once takes a third of the time. One at a time leaves out only those that cannot be installed.
        # shellcheck disable=SC2086
        [ -z "$there" ] || packages_install $there >/dev/null || for package in $there; do
                packages_install "$package" >/dev/null || {
                        echo "could not be installed: $package"
                        status=1
                }
        done
        return $status
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
# The compiler for Windows, and the emulator that runs its programs.
packages_windows="gcc-mingw-w64-x86-64-posix wine64"
# The emulator of an accelerator that runs compiled kernels (docs/internals/riscv.md).
packages_riscv="qemu-system-misc"
# The emulator of a machine with soft-RoCE (tests/emulated). Its kernel, Debian's linux-image-amd64, is unpacked, but
# not installed.
packages_emulated="qemu-system-x86 busybox-static ibverbs-providers"
# The compiler and the emulator of a microcontroller, and the ciphers of its client (docs/NANO.md).
packages_nano="gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm libmbedtls-dev"
# tests/system/readme.py makes bare systems with these.
packages_bare="mmdebstrap git"
packages_thirdparty="clpeak hashcat clblast-utils python3-pyopencl python3-pytest python3-mako piglit clfft-client python3-gpyfft"
# Other native implementations. Only the dependencies of Mesa's are installed: tests/run/with-platforms unpacks it.
packages_native="oclgrind"
packages_native_needs="mesa-opencl-icd"
packages_slurm="slurmctld slurmd slurm-client"
