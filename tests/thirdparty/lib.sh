# Sourced by the third-party tests: NAME BUILD. A program that we did not write runs natively and over two servers,
# and must print the same. Exit 77: the program is not installed.

set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
. "$here/../run/lib.sh"
build=$(cd "${1:?usage: $0 BUILD}" && pwd)

need() {
        local tool
        for tool in "$@"; do
                if ! command -v "$tool" >/dev/null; then
                        echo "skipped: $tool is not installed"
                        exit 77
                fi
        done
}

# The system's OpenCL implementations without SpanCL.
native_vendors() {
        if [ ! -d "$run_tmp/vendors" ]; then
                mkdir "$run_tmp/vendors"
                local icd
                for icd in /etc/OpenCL/vendors/*.icd; do
                        grep -q spancl "$icd" || ln -s "$icd" "$run_tmp/vendors/"
                done
        fi
        echo "${NATIVE_VENDORS:-$run_tmp/vendors}"
}

# Each side has a home of its own: caches of one must not serve the other.
natively() {
        mkdir -p "$run_tmp/home.native"
        env HOME="$run_tmp/home.native" OCL_ICD_VENDORS="$(native_vendors)" "$@"
}

over_servers() {
        mkdir -p "$run_tmp/home.spancl"
        env HOME="$run_tmp/home.spancl" OCL_ICD_VENDORS="$build/etc/vendors" \
                SPANCL_SERVERS="$(server_list)" "$@"
}

two_servers() {
        server_start "$build" || exit 1
        server_start "$build" || exit 1
}

fail() {
        echo "FAILED: $*"
        exit 1
}

finish() {
        server_stop_all || fail "a server did not end cleanly"
        echo "ok"
}
