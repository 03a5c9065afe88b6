#!/usr/bin/env python3
"""recipes.py BUILD [NAME...]: claims about packaging/container and packaging/kubernetes, of which everything runs that needs
no container: the commands, the user, the environment and the folders are read from those files, and the programs are
installed as the packages have them. Each function is one claim. Status 77: not root, namespaces are not permitted,
or python3-yaml is not there."""

import json
import os
import re
import shlex
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import claims

try:
    import yaml
except ImportError:
    yaml = None

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = Path(sys.argv[1]).resolve()
HANG_S = 120  # a watchdog, not a claim about speed
ADDRESS, PORT = "10.79.1.1", 7777


def run(command, **how):
    return subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S, check=False,
                          **how)


def do(command, **how):
    done = run(command, **how)
    assert done.returncode == 0, f"{command}: {done.stdout}"
    return done.stdout


# --- What the files say -----------------------------------------------------------------------------

class Image:
    """The last stage of packaging/container/Containerfile."""

    def __init__(self):
        text = (ROOT / "packaging/container/Containerfile").read_text()
        stage = re.sub(r"\\\n", " ", text[text.rindex("\nFROM "):])
        self.recipe = text
        self.entrypoint = json.loads(re.search(r"^ENTRYPOINT (.*)$", stage, re.M).group(1))
        self.check = re.search(r"^HEALTHCHECK CMD (.*)$", stage, re.M).group(1)
        self.user = re.search(r"^USER (.*)$", stage, re.M).group(1)
        self.uid = int(re.search(rf"useradd --uid (\d+) .* {self.user}$", stage, re.M).group(1))
        self.home = re.search(r"--home-dir (\S+)", stage).group(1)
        self.environment = dict(word.split("=", 1) for line in re.findall(r"^ENV (.*)$", stage, re.M)
                                for word in shlex.split(line))
        self.packages = re.findall(r"([a-z-]+)_\*\.deb", stage)


class Manifest:
    """The pod of packaging/kubernetes/spancld.yaml."""

    def __init__(self):
        self.recipe = (ROOT / "packaging/kubernetes/spancld.yaml").read_text()
        pod = next(d for d in yaml.safe_load_all(self.recipe) if d["kind"] == "DaemonSet")["spec"]["template"]["spec"]
        container = pod["containers"][0]
        assert "command" not in container and "env" not in container, "the image's are meant"
        self.args = container["args"]
        self.uid = container["securityContext"]["runAsUser"]
        self.group = pod["securityContext"]["fsGroup"]
        volume = next(v for v in pod["volumes"] if "secret" in v)
        mount = next(m for m in container["volumeMounts"] if m["name"] == volume["name"])
        assert mount["readOnly"]
        self.secret, self.mode = volume["secret"]["secretName"], volume["secret"]["defaultMode"]
        self.path = mount["mountPath"]


def commands(recipe):
    """The commands of a recipe's first comment."""
    return re.findall(r"^#   (\S.*)$", recipe, re.M)


# --- A host -----------------------------------------------------------------------------------------

class Host:
    """The packages' programs, a network and a /run of its own."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name)
        self.path.chmod(0o755)
        do(["cmake", "--install", str(BUILD), "--prefix", str(self.path / "usr")])
        self.bin = self.path / "usr/bin"
        do("mount -t tmpfs run /run && ip link set lo up && ip addr add 10.79.1.1/32 dev lo", shell=True)

    def environment(self, more):
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        return env | {"PATH": f"{self.bin}:{env['PATH']}"} | more

    def make_keys(self, recipe):
        """As the recipe says, in an empty folder."""
        place = Path(tempfile.mkdtemp(dir=self.path))
        place.chmod(0o755)
        wanted = [c for c in commands(recipe) if re.match("spancl keys|chown", c)]
        assert wanted, "the recipe makes no keys"
        for command in wanted:
            do(command, shell=True, cwd=place, env=self.environment({}))
        return place / "keys"

    def spancl(self, keys, *command, **how):
        return run([str(self.bin / "spancl"), *command],
                   env=self.environment({"SPANCL_KEYS": str(keys), "SPANCL_CONNECT_TIMEOUT": str(HANG_S * 1000)}), **how)


class Mounted:
    """A folder of files at a path, as kubelet mounts a Secret: root's tmpfs, open to all but read-only, the files behind
    links into a folder that is replaced as a whole."""

    def __init__(self, files, path, mode, group):
        self.path = Path(path)
        self.path.mkdir(parents=True, exist_ok=True)
        do(["mount", "-t", "tmpfs", "-o", "mode=1777", "secret", path])
        version = self.path / "..2026_01_01_00_00_00.000000001"
        version.mkdir()
        for file in Path(files).iterdir() if files else ():
            there = version / file.name
            there.write_bytes(file.read_bytes())
            os.chown(there, 0, group)
            there.chmod(mode | 0o440)
            (self.path / file.name).symlink_to(f"..data/{file.name}")
        (self.path / "..data").symlink_to(version.name)
        for folder, bits in ((version, 0o2755), (self.path, 0o3777)):
            os.chown(folder, 0, group)
            folder.chmod(bits)
        do(["mount", "-o", "remount,ro", path])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        do(["umount", str(self.path)])


class Bound:
    """A folder, or a file, at a path, as `docker run -v FOLDER:PATH:ro` mounts it."""

    def __init__(self, folder, path):
        self.path = Path(path)
        if Path(folder).is_dir():
            self.path.mkdir(parents=True, exist_ok=True)
        do(["mount", "--bind", str(folder), path])
        do(["mount", "-o", "remount,bind,ro", path])

    __enter__ = Mounted.__enter__
    __exit__ = Mounted.__exit__


class Container:
    """The image's command with these arguments, as this user."""

    def __init__(self, host, image, args, uid, groups):
        self.host, self.image = host, image
        home = Path(tempfile.mkdtemp(dir=host.path))
        os.chown(home, uid, uid)
        self.how = {"user": uid, "group": uid, "extra_groups": groups, "cwd": "/",
                    "env": host.environment(image.environment | {"HOME": str(home)})}
        self.log = tempfile.TemporaryFile()
        self.process = subprocess.Popen([*image.entrypoint, *args], stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log, **self.how)

    def text(self):
        self.log.seek(0)
        return self.log.read().decode()

    def wait_ready(self):
        end = time.monotonic() + HANG_S
        while time.monotonic() < end and self.process.poll() is None:
            try:
                socket.create_connection((ADDRESS, PORT), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.05)
        raise AssertionError(self.text())

    def check(self):
        return run(self.image.check, shell=True, **self.how)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(timeout=HANG_S)


HOST = None
IMAGE = Image()


def takes_its_clients_alone(container, client, believes):
    """`believes`: the list of servers that the client has, which is no secret."""
    container.wait_ready()
    done = HOST.spancl(client, "ping", ADDRESS)
    assert done.returncode == 0 and "(tls)" in done.stdout, done.stdout + container.text()
    done = container.check()
    assert done.returncode == 0, done.stdout
    stranger = Path(tempfile.mkdtemp(dir=HOST.path))
    for where, why in ((f"tls:{ADDRESS}", "not known yet"), (f"tcp:{ADDRESS}", "encrypted connections only"),
                       ("tcp:localhost", "encrypted connections only")):
        done = HOST.spancl(stranger, "ping", where)
        assert done.returncode and why in done.stdout, done.stdout
    (stranger / "servers").touch(mode=0o600)
    (stranger / "servers").write_text(believes)
    for where in (f"tls:{ADDRESS}", "tls:localhost"):
        done = HOST.spancl(stranger, "ping", where)
        assert done.returncode and "does not know this client" in done.stdout, done.stdout


# --- Claims -----------------------------------------------------------------------------------------

def the_image_has_what_encrypts():
    assert {"spancld", "spancl-cli", "libspancl-tls"} <= set(IMAGE.packages), IMAGE.packages
    assert "libssl-dev" in IMAGE.recipe


def a_container_takes_its_clients_alone():
    keys = HOST.make_keys(IMAGE.recipe)
    place, path = re.search(r'-v "\$PWD/(\S+):(\S+):ro"', IMAGE.recipe).groups()
    with Bound(keys.parent / place, path), Container(HOST, IMAGE, [], IMAGE.uid, [IMAGE.uid]) as c:
        takes_its_clients_alone(c, keys / "client", (keys / "client/servers").read_text())


def a_pod_takes_its_clients_alone():
    m = Manifest()
    keys = HOST.make_keys(m.recipe)
    secrets = dict(re.findall(r"kubectl create secret generic (\S+) --from-file=keys/(\S+)", m.recipe))
    assert secrets.pop(m.secret) == "server"
    files, = secrets.values()
    believes = (keys / files / "servers").read_text()
    for uid, group in ((0, 0), (2000, 2000)):
        with Mounted(keys / "server", m.path, m.mode, m.group), Mounted(keys / files, "/run/client", m.mode, group) as client, \
                Container(HOST, IMAGE, m.args, m.uid, [m.group]) as c:
            c.wait_ready()
            done = HOST.spancl(client.path, "ping", ADDRESS, user=uid, group=uid, extra_groups=[group])
            assert done.returncode == 0 and "(tls)" in done.stdout, done.stdout
            takes_its_clients_alone(c, client.path, believes)


def a_pod_finds_the_servers_that_its_service_names():
    """/etc/hosts stands for the cluster's DNS."""
    m = Manifest()
    keys = HOST.make_keys(m.recipe)
    hosts = HOST.path / "hosts"
    source = str(HOST.path / "usr/libexec/spancl/discover-kubernetes")

    def name(*addresses):
        hosts.write_text("127.0.0.1 localhost\n" + "".join(f"{a} spancld\n" for a in addresses))

    name(ADDRESS)
    with Bound(hosts, "/etc/hosts"), Mounted(keys / "server", m.path, m.mode, m.group), \
            Container(HOST, IMAGE, m.args, m.uid, [m.group]) as c:
        c.wait_ready()
        env = HOST.environment({"SPANCL_KEYS": str(keys / "client"), "SPANCL_DISCOVERY": f"exec:{source}",
                                "SPANCL_DISCOVERY_WAIT": "60000"})
        shown = do([str(HOST.bin / "spancl"), "list", "--discover"], env=env)
        assert f"{ADDRESS}:{PORT}" in shown and "taken: " in shown, shown
        with subprocess.Popen([source], env=env, stdout=subprocess.PIPE, text=True) as found:
            def next_line():
                return json.loads(next(line for line in found.stdout if line.strip()))

            assert next_line()["addresses"] == [ADDRESS]
            assert next_line() == {"event": "settled"}
            name(ADDRESS, "10.79.1.2")
            assert next_line()["id"] == "10.79.1.2"
            name("10.79.1.2")
            assert next_line() == {"event": "gone", "id": ADDRESS}
            name()
            assert next_line() == {"event": "gone", "id": "10.79.1.2"}
            found.stdout.close()  # it notices, and ends
            found.wait(HANG_S)


def without_keys_there_is_no_server():
    m = Manifest()
    for mounted in (None, m.path):
        context = Mounted(None, mounted, m.mode, m.group) if mounted else tempfile.TemporaryDirectory()
        with context, Container(HOST, IMAGE, m.args, m.uid, [m.group]) as c:
            assert c.process.wait(timeout=HANG_S) == 1
            assert "clients of" in c.text() and "--insecure" in c.text(), c.text()


def an_explicit_word_lets_everybody_in():
    with Container(HOST, IMAGE, ["--insecure"], IMAGE.uid, [IMAGE.uid]) as c:
        c.wait_ready()
        done = HOST.spancl(HOST.path / "stranger", "ping", f"tcp:{ADDRESS}")
        assert done.returncode == 0, done.stdout
        assert "open to everybody" in c.text(), c.text()
        assert c.check().returncode == 0


def a_writable_folder_is_not_believed():
    """What makes a Secret's folder good is that nobody can write to it."""
    m = Manifest()
    keys = HOST.make_keys(m.recipe)
    with Mounted(keys / "server", m.path, m.mode, m.group):
        do(["mount", "-o", "remount,rw", m.path])
        with Container(HOST, IMAGE, m.args, m.uid, [m.group]) as c:
            assert c.process.wait(timeout=HANG_S) == 1
            assert "chmod 700" in c.text(), c.text()


def main():
    global HOST  # pylint: disable=global-statement
    apart = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.getpid() != 1:  # the first process of its namespace, with which all others end
        if os.geteuid() or run([*apart, "true"]).returncode:
            print("skipped: not root, or namespaces are not permitted")
            return 77
        if not yaml:
            print("skipped: python3-yaml is not installed")
            return 77
        os.execvp(apart[0], [*apart, sys.executable, __file__, *sys.argv[1:]])
    HOST = Host()
    return claims.run(globals())


if __name__ == "__main__":
    sys.exit(main())
