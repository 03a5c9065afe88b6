# Sourced by the scripts that need servers. Everything started here is ended by process id.

server_pids=()
server_ports=()
server_usual=()
server_opened=()
run_tmp=$(mktemp -d "${TMPDIR:-/tmp}/spancl.XXXXXX")

# Of builds with sanitizers, as in tests/CMakeLists.txt. ThreadSanitizer would wait a second at each process's end.
suppressions=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export ASAN_OPTIONS=${ASAN_OPTIONS:-detect_leaks=1:abort_on_error=0:exitcode=99:use_sigaltstack=0}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export LSAN_OPTIONS=${LSAN_OPTIONS:-suppressions=$suppressions/lsan.supp:print_suppressions=0}
export TSAN_OPTIONS=${TSAN_OPTIONS:-suppressions=$suppressions/tsan.supp:exitcode=66:history_size=4:atexit_sleep_ms=20}

# package_unpack BUILD PACKAGE: the files of a Debian package, not installed, in $package_root.
package_unpack() {
        package_root=$1/thirdparty/$2
        [ -d "$package_root/usr" ] && return 0
        command -v apt-get >/dev/null || return 1
        mkdir -p "$package_root"
        (
                cd "$package_root" || exit 1
                # One at a time: several tests may want the same one.
                exec 8>lock && flock 8
                [ -d usr ] && exit 0
                apt-get download -qq "$2" 2>/dev/null && dpkg -x "$2"_*.deb new && rm "$2"_*.deb &&
                        mv new/* .
        )
}

# server_start BUILD [SPANCLD OPTIONS]: a spancld on a free loopback port; waits until it listens. With
# TEST_TRANSPORT=unix or =shm it listens on a Unix socket, and shares memory with its clients or not. TEST_POCL_CACHE: a
# folder for PoCL's compiled kernels that several builds share; without it, each build has its own.
server_start() {
        local build=$1
        shift
        local n=${#server_pids[@]}
        local fifo=$run_tmp/ready.$n
        local listen=(--listen 127.0.0.1:0)
        case ${TEST_TRANSPORT:-tcp} in
        unix) listen=(--socket "$run_tmp/$n.sock" --shared-memory off) ;;
        shm) listen=(--socket "$run_tmp/$n.sock" --shared-memory on) ;;
        esac
        local log=${SERVER_LOG_DIR:-$run_tmp}/spancld.$n.log
        mkfifo "$fifo"
        local pocl=${POCL_CACHE_DIR:-${TEST_POCL_CACHE:-$build/pocl}}/$n
        mkdir -p "$pocl"
        # The server finds its native OpenCL as on any machine; the client's variables are not its own.
        local vendors=(-u OCL_ICD_VENDORS)
        if [ -n "${NATIVE_VENDORS:-}" ]; then
                vendors=("OCL_ICD_VENDORS=$NATIVE_VENDORS")
        fi
        # Compiled programs are kept for as long as the servers of one run. A folder for each server's
        # PoCL: links failed now and then when two shared one (docs/LIMITS.md).
        env -u SPANCL_SERVERS -u SPANCL_STATS "${vendors[@]}" \
                POCL_CACHE_DIR="$pocl" \
                "$build/bin/spancld" "${listen[@]}" --ready-fd 9 \
                --cache "${SERVER_CACHE:-$run_tmp/cache}" "$@" \
                9>"$fifo" >"$log" 2>&1 </dev/null &
        local pid=$!
        local word="" port=""
        read -r -t 60 word port <"$fifo" || true
        server_pids+=("$pid")
        server_logs+=("$log")
        if [ "$word" != ready ] || [ -z "$port" ]; then
                echo "spancld did not come up; its log:" >&2
                cat "$log" >&2
                return 1
        fi
        server_ports+=("$port")
        local usual opened count
        usual=$(server_idle "$pid")
        opened=$(server_descriptors "$pid")
        # On a busy host the server may open its last file in between.
        count=$(wc -l <<<"$opened")
        [ -n "$usual" ] && [ "$count" -gt "${usual%% *}" ] && usual="$count ${usual#* }"
        server_usual+=("$usual")
        server_opened+=("$opened")
}

# server_usage PID: prints its descriptors, threads, and workers.
server_usage() {
        local fds=("/proc/$1/fd/"*) tasks=("/proc/$1/task/"*) child name workers=0
        for child in $(cat "/proc/$1/task/$1/children" 2>/dev/null); do
                # One that was forked, or one that was started; the zygote has another name only after a while.
                name="" # it may be gone by now
                read -r name <"/proc/$child/comm"
                if [ "$name" = spancld-worker ] || grep -q -e --worker "/proc/$child/cmdline"; then
                        workers=$((workers + 1))
                fi
        done 2>/dev/null
        echo "${#fds[@]} ${#tasks[@]} $workers"
}

# server_idle PID: prints server_usage when only the warm worker is there and its sandbox is closed. Prints nothing
# if that takes too long. The descriptor for refused calls is the last one that the server gets from the worker (a
# kernel without seccomp gives none).
server_idle() {
        local i now before="" same=0
        for ((i = 0; i < 400; i++)); do
                now=$(server_usage "$1")
                same=$((same + 1))
                [ "$now" = "$before" ] || same=0
                [ $same -ge 8 ] && [ "${now##* }" = 1 ] && { walled "$1" || [ "$i" -ge 50 ]; } && echo "$now" && return
                before=$now
                sleep 0.02
        done
}

# server_descriptors PID: prints its open files, by their kinds.
server_descriptors() {
        readlink "/proc/$1/fd/"* | sed 's/[0-9]*]$/]/' | sort
}

# walled PID: returns true if the server gets the refused calls of a worker.
walled() {
        local fds
        fds=$(readlink "/proc/$1/fd/"*)
        [[ $fds == *"seccomp notify"* ]]
}

# no_more "A B C" "D E F": returns true if none of these numbers is larger than the other one in its place.
no_more() {
        local now usual i
        read -ra now <<<"$1"
        read -ra usual <<<"$2"
        for i in "${!usual[@]}"; do
                [ "${now[$i]}" -le "${usual[$i]}" ] || return 1
        done
}

# server_leaks: fails, with a message, if a server keeps more descriptors, threads or workers than at its start, or
# memory of a session. To be called when the clients have ended in order.
server_leaks() {
        local bad=0 i n now
        for i in "${!server_pids[@]}"; do
                [ -n "${server_usual[$i]}" ] || continue
                for ((n = 0; n < 2400; n++)); do
                        now=$(server_usage "${server_pids[$i]}")
                        no_more "$now" "${server_usual[$i]}" && break
                        sleep 0.05
                done
                if [ $n = 2400 ]; then
                        echo "spancld has descriptors, threads, workers: $now; had ${server_usual[$i]}" >&2
                        diff <(echo "${server_opened[$i]}") <(server_descriptors "${server_pids[$i]}") >&2
                        bad=1
                fi
                if grep "were not freed" "${server_logs[$i]}" >&2; then
                        bad=1
                fi
        done
        return $bad
}

# server_list: prints the value of SPANCL_SERVERS.
server_list() {
        local list="" i
        for i in "${!server_ports[@]}"; do
                case ${TEST_TRANSPORT:-tcp} in
                tcp) list="$list${list:+ }localhost:${server_ports[$i]}" ;;
                tls) list="$list${list:+ }tls:localhost:${server_ports[$i]}" ;;
                *) list="$list${list:+ }unix:$run_tmp/$i.sock" ;;
                esac
        done
        echo "$list"
}

# server_stop_all: stops all servers. Returns nonzero if one did not end cleanly on SIGTERM.
server_stop_all() {
        local bad=0 i pid r waited
        for pid in "${server_pids[@]}"; do
                kill -TERM "$pid" 2>/dev/null
        done
        for i in "${!server_pids[@]}"; do
                pid=${server_pids[$i]}
                waited=0
                while kill -0 "$pid" 2>/dev/null && [ $waited -lt 200 ]; do
                        sleep 0.05
                        waited=$((waited + 1))
                done
                if kill -0 "$pid" 2>/dev/null; then
                        echo "spancld $pid did not end within 10 s of SIGTERM" >&2
                        kill -KILL "$pid" 2>/dev/null
                        bad=1
                fi
                wait "$pid"
                r=$?
                if [ $r -ne 0 ]; then
                        echo "spancld $pid ended with status $r; its log:" >&2
                        tail -n 60 "${server_logs[$i]}" >&2
                        bad=1
                fi
        done
        server_pids=()
        server_ports=()
        server_usual=()
        server_opened=()
        server_logs=()
        return $bad
}

run_cleanup() {
        local pid
        for pid in "${server_pids[@]}"; do
                kill -KILL "$pid" 2>/dev/null
                wait "$pid" 2>/dev/null
        done
        rm -rf "$run_tmp"
}
server_logs=()
# Clients and servers of one run have the same keys, and so know each other; never the user's own.
mkdir -m 700 "$run_tmp/keys"
export SPANCL_KEYS=$run_tmp/keys
export XDG_CONFIG_HOME=$run_tmp/config
trap run_cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Is the build (`build`) one with a sanitizer?
is_sanitized() {
        ldd "$build/bin/spancl" | grep -qE 'asan|tsan'
}
