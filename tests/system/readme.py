#!/usr/bin/env python3
"""readme.py BUILD [SUITE]: runs the commands of README.md on bare Debian systems, whose root folders it makes in BUILD.
SUITE is Debian's name of a release; without it, bookworm, which README.md names. One system has a clone of this
repository, the other only the packages that the first one builds. Network namespaces are the hosts gpu1, gpu2 and the
one with the program.

Each line of a block that begins with ```sh is a command, and is run as it stands there, apart from REPLACED. A claim
needs the claims before it. Status 77: such systems can't be made here."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import claims  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402

REPLACED = {
    "any-opencl-program": "clinfo -l",  # a placeholder
    "spancl top": "spancl top --once",  # it would not end by itself
    # ./check builds and runs these in full, which takes minutes.
    "cmake --build build/release": "cmake --build build/release --target products bench_floor bench_opencl bench_far",
    "cmake --build build/debug": "cmake --build build/debug --target products",
    "-L fast": "-L fast -R ^cli/",
    "--rounds 5": "--rounds 1 --only empty --scale 1 --no-memory --lbm ''",
}
NOT_RUN = "./check"  # it runs this test
INSTALLING = "cmake ", "cpack ", "apt "  # in the section "Use"

SUITE = sys.argv[2] if len(sys.argv) > 2 else "bookworm"
SERVERS = "gpu1", "gpu2"
HOSTS = "program", *SERVERS
CLONE = "/home/user/spancl"
NOBODY = 65534


def skip(why):
    print(f"skipped: {why}")
    sys.exit(77)


def read_commands():
    """The commands of each section of README.md, by its title; the section before the first title is ""."""
    ret, title, commands = {"": []}, "", False
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            commands = line == "```sh"
        elif commands and not line.lstrip().startswith("#"):
            for old, new in REPLACED.items():
                line = line.replace(old, new)
            ret[title].append(line)
        elif line.startswith("## "):
            title = line[3:]
            ret[title] = []
    return ret


COMMANDS = read_commands()
RUN = set()


def command(title, beginning):
    """The only command of this section that begins so."""
    lines = [line for line in COMMANDS[title] if line.startswith(beginning)]
    assert len(lines) == 1, f"README.md, section '{title}': {lines} begin with '{beginning}'"
    RUN.add(lines[0])
    return lines[0]


# Objects that ./check has compiled, and the ccache of the same release for them. It takes half of the time away.
CACHE = os.environ.get("CCACHE_DIR", "")


class System:
    """A root folder with a bare Debian, and with ccache if ./check uses it."""

    def __init__(self, name, copied=None):
        self.root = Path(os.environ["README_FOLDER"]) / name
        if copied:
            subprocess.run(["cp", "-a", copied, self.root], check=True)
        else:
            made = subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", *(["--include=ccache"] if CACHE else []),
                                   SUITE, self.root],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            if made.returncode:
                print(made.stdout)
                skip(f"mmdebstrap: status {made.returncode}")
            addresses = [f"10.77.0.{k + 1} {host}\n" for k, host in enumerate(HOSTS)]
            (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n" + "".join(addresses), encoding="utf-8")

    def mount(self):
        """Mounts what a running system has. The mounts end with this process's namespace."""
        (self.root / "dev/shm").mkdir(exist_ok=True)
        for kind, folder in ("proc", "proc"), ("sysfs", "sys"), ("tmpfs", "dev/shm"), ("devpts", "dev/pts"):
            subprocess.run(["mount", "-t", kind, kind, self.root / folder], check=True)
        if CACHE:
            Path(CACHE).mkdir(parents=True, exist_ok=True)
            (self.root / "ccache").mkdir()
            subprocess.run(["mount", "--bind", CACHE, self.root / "ccache"], check=True)

    def home(self, path):
        (self.root / path[1:]).mkdir(parents=True)
        os.chown(self.root / path[1:], NOBODY, NOBODY)

    def start(self, line, home="/root", at=(), exports=()):
        """Starts one line in the folder of the clone: for root, or, if `at` enters a host, for a user there."""
        user = [f"--userspec={NOBODY}:{NOBODY}"] if at else []
        proxies = [f"{k}={v}" for k, v in os.environ.items() if k.lower().endswith("_proxy")]
        cache = [] if at or not CACHE else ["CMAKE_C_COMPILER_LAUNCHER=ccache", "CCACHE_DIR=/ccache", f"CCACHE_BASEDIR={CLONE}",
                                            "CCACHE_NOHASHDIR=1"]
        return subprocess.Popen(
            [*at, "chroot", *user, str(self.root), "env", "-i", "-C", CLONE, f"HOME={home}", "LANG=C.UTF-8",
             "CTEST_OUTPUT_ON_FAILURE=1", *proxies, *cache,
             "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
             "bash", "-c", "\n".join((*exports, line))],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, line, typed="", **more):
        """Runs one line, which reads what is `typed`, and returns its output. It has to succeed."""
        begin = time.monotonic()
        process = self.start(line, **more)
        out = process.communicate(typed)[0]
        assert process.returncode == 0, f"{line}: status {process.returncode}\n{out}"
        print(f"      {time.monotonic() - begin:5.1f} s: {line}", flush=True)
        return out


def devices(out):
    """Counts SpanCL's devices in the output of clinfo -l."""
    platforms = [p for p in out.split("Platform #") if re.match(r"\d+: SpanCL", p)]
    return sum(p.count("Device #") for p in platforms)


def use(system, installed):
    """Runs the section "Use", except for what installs, as a new user on each of the three hosts."""
    place = "/home/installed" if installed else "/home/built"
    exports, codes, running, listed = [], {}, [], 0
    with Hosts(HOSTS, hub=True) as net:
        def on(host):
            return {"home": f"{place}/{host}", "at": net.inside(host), "exports": tuple(exports)}

        for host in HOSTS:
            system.home(f"{place}/{host}")
        try:
            for line in COMMANDS["Use"]:
                if line.startswith(INSTALLING):
                    continue
                RUN.add(line)
                if line.startswith("export "):
                    if not (installed and "build/release" in line):
                        exports.append(line)
                elif line.startswith("spancld pair"):
                    for host in SERVERS:
                        codes[host] = re.search(r"\w{4}-\w{4}-\w{4}", system.run(line, **on(host))).group()
                elif line.startswith("spancld "):
                    for host in SERVERS:
                        running.append(system.start(line, **on(host)))
                        listens = [*net.inside(host), "ss", "-Hltn", "sport = :7777"]
                        while not subprocess.run(listens, stdout=subprocess.PIPE, check=True).stdout:
                            assert running[-1].poll() is None, running[-1].stdout.read()
                            time.sleep(0.05)
                elif line.startswith("spancl pair gpu1"):
                    for host in SERVERS:
                        system.run(line.replace("gpu1", host), codes[host] + "\n", **on("program"))
                else:
                    out = system.run(line, **on("program"))
                    if "clinfo -l" in line:
                        assert devices(out) == len(SERVERS), out
                        listed += 1
                    elif line.startswith(("spancl list", "spancl top")):
                        assert all(host in out for host in SERVERS), out
                    elif line.startswith("spancl config"):
                        assert "gpu1 gpu2" in out, out
            assert listed == 2, f"{listed} programs have listed devices"
        finally:
            for process in running:
                process.terminate()
        for process in running:
            out = process.communicate()[0]
            assert process.returncode == 0, out


# --- Claims, in their order -----------------------------------------------------------------------

def demo_runs_on_a_bare_system():
    # The clone gets changes that are not committed yet, so that they are tested, too.
    git = ["git", "-C", str(ROOT)]
    clone = BUILT.root / CLONE[1:]
    subprocess.run([*git, "clone", "-q", "--no-hardlinks", str(ROOT), clone], check=True)
    changes = subprocess.run([*git, "diff", "--binary", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
    if changes:
        subprocess.run(["git", "-C", clone, "apply"], input=changes, check=True)
    out = BUILT.run(command("", "./demo"))
    for words in ("OpenSSL 3: yes", "Two servers", "hashcat", "The two pictures are the same", "build/demo/ar.png",
                  "Latency", "Both servers ended"):
        assert words in out, out


def programs_work_where_they_were_built():
    use(BUILT, False)


def programs_work_where_they_are_installed():
    BUILT.run(command("Use", "cmake --install"))
    use(BUILT, True)


def packages_work_on_another_system():
    """This system has an OpenCL program, a loader and PoCL, and nothing to build with."""
    BUILT.run(command("Use", "cpack "))
    dist = f"{CLONE[1:]}/build/release/dist"
    (OTHER.root / dist).mkdir(parents=True)
    for package in (BUILT.root / dist).glob("*.deb"):
        shutil.copy(package, OTHER.root / dist)
    # The server's package pulls a driver, though the client's library counts as one.
    OTHER.run(f"apt-get update && apt-get install -s /{dist}/*.deb | grep '^Inst pocl-opencl-icd '")
    OTHER.run("apt-get install -y --no-install-recommends clinfo ocl-icd-libopencl1 pocl-opencl-icd")
    OTHER.run(command("Use", "apt install "), "y\n")
    OTHER.run("getent passwd spancl && getent group spancl && test -f /etc/spancl/spancld.conf")
    OTHER.run("test -f /usr/share/doc/spancl-cli/README.md && test -f /usr/share/doc/spancl-cli/docs/TOOLS.md")
    use(OTHER, True)
    OTHER.run("apt-get purge -y spancld && ! getent passwd spancl && ! getent group spancl && "
              "! ls -d /etc/spancl/spancld.conf /var/lib/spancld /var/cache/spancld")
    OTHER.run("apt-get purge -y 'spancl*' 'libspancl*' && ! find / -xdev -name '*spancl*' -not -path '/home/*' | grep .")


def figures_can_be_measured_again():
    BUILT.run(command("Figures", "cmake --preset release"))
    for line in COMMANDS["Figures"]:
        if line.startswith("bench/"):
            assert "empty_kernel_finish" in BUILT.run(line)
            RUN.add(line)


def tree_is_built_and_tested():
    assert "100% tests passed" in BUILT.run(command("Working on it", "cmake --preset debug"))


def every_command_was_run():
    left = [line for lines in COMMANDS.values() for line in lines if line not in RUN and not line.startswith(NOT_RUN)]
    assert not left, left


def enclosed(*command_line, **more):
    """Runs a command in namespaces of its own, so that its mounts and processes end with it."""
    return subprocess.run(["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", *command_line],
                          check=False, **more).returncode


if __name__ == "__main__":
    if "README_FOLDER" not in os.environ:
        if os.geteuid():
            skip("not root")
        for tool in "git", "mmdebstrap", "ip", "ss", "unshare":
            if not shutil.which(tool):
                skip(f"{tool} is not installed")
        if not (ROOT / ".git").exists():
            skip("these sources are not a git repository")
        if enclosed("true"):
            skip("namespaces are not permitted")
        with tempfile.TemporaryDirectory(prefix="readme.", dir=sys.argv[1]) as folder:
            sys.exit(enclosed(sys.executable, *sys.argv, env={**os.environ, "README_FOLDER": folder}))
    if not may_make_hosts():
        skip("network namespaces are not permitted")
    BUILT = System("built")
    OTHER = System("other", BUILT.root)
    for one in BUILT, OTHER:
        one.mount()
    del sys.argv[2:]  # no names of claims
    sys.exit(claims.run(globals(), chained=True))
