#!/usr/bin/env python3
"""screens.py BUILD [FOLDER]: makes docs/screens/*.png, the pictures of `spancl list`, `top` and `doctor`. Two servers
run on hosts of their own (network namespaces, bench/hosts.py), and a program uses both. tmux captures what a terminal
shows, and Pillow draws each capture. Needs root, ip, ss, tmux and Debian's packages python3-pil and fonts-dejavu-core
(/usr/bin/python3)."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image, ImageColor, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from hosts import Hosts  # noqa: E402
from servers import native_vendors  # noqa: E402

FONTS = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono%s.ttf"
CELL, LINE, MARGIN = 9, 19, 12  # px, for a font of 15 px
SIZE, PALETTE = 15, 64
COLOURS = {  # SGR
    30: "#3b4252", 31: "#f38ba8", 32: "#a6e3a1", 33: "#f9e2af", 34: "#89b4fa", 35: "#cba6f7", 36: "#94e2d5",
    37: "#e5e9f0", 90: "#7f849c"}
INK, PAPER = "#e5e9f0", "#1e1e2e"
HANG_S = 120


def wait_for(what, why):
    deadline = time.monotonic() + HANG_S
    while not (found := what()):
        assert time.monotonic() < deadline, why()
        time.sleep(0.1)
    return found


class Style:
    """The state of a terminal's Select Graphic Rendition."""

    def __init__(self):
        self.colour, self.bold, self.dim, self.reverse = None, False, False, False

    def take(self, numbers):
        for n in numbers:
            if n == 0:
                self.__init__()
            elif n == 1:
                self.bold = True
            elif n == 2:
                self.dim = True
            elif n == 7:
                self.reverse = True
            elif n == 27:
                self.reverse = False
            elif n == 22:
                self.bold = self.dim = False
            elif n == 39:
                self.colour = None
            elif n in COLOURS:
                self.colour = COLOURS[n]

    def ink(self):
        colour = ImageColor.getrgb(PAPER if self.reverse else self.colour or INK)
        paper = ImageColor.getrgb(PAPER)
        return tuple(round(0.6 * c + 0.4 * p) for c, p in zip(colour, paper)) if self.dim else colour


def spans(line, style):
    """The parts of a captured line: column, text, style."""
    column = 0
    for part in re.split(r"(\x1b\[[0-9;]*m)", line):
        if part.startswith("\x1b"):
            style.take([int(n or 0) for n in part[2:-1].split(";")])
        elif part:
            yield column, part, style
            column += len(part)


def picture(text, columns):
    lines = text.rstrip("\n").split("\n")
    image = Image.new("RGB", (2 * MARGIN + columns * CELL, 2 * MARGIN + len(lines) * LINE), PAPER)
    draw = ImageDraw.Draw(image)
    fonts = [ImageFont.truetype(FONTS % kind, SIZE) for kind in ("", "-Bold")]
    style = Style()
    for row, line in enumerate(lines):
        for column, part, now in spans(line, style):
            x, y = MARGIN + column * CELL, MARGIN + row * LINE
            if now.reverse:
                draw.rectangle((x, y, x + len(part) * CELL - 1, y + LINE - 1), fill=now.colour or INK)
            for k, letter in enumerate(part):  # one at a time: columns stay straight
                draw.text((x + k * CELL, y + 1), letter, fill=now.ink(), font=fonts[now.bold])
    return image.quantize(PALETTE)


class Lab:
    """Hosts, and a terminal on the first of them."""

    def __init__(self, build, folder):
        self.build, self.folder = build, Path(folder)
        self.hosts = Hosts(("desk", "gpu1", "gpu2"), hub=True)
        self.names = Path("/etc/netns") / self.hosts.names["desk"]  # ip netns exec puts its files into /etc
        self.running = []
        self.vendors = native_vendors(folder)
        for host in self.hosts.names:
            (self.folder / host).mkdir()

    def __enter__(self):
        self.names.mkdir(parents=True)
        (self.names / "hosts").write_text("127.0.0.1 localhost\n10.77.0.2 gpu1\n10.77.0.3 gpu2\n", encoding="utf-8")
        return self

    def __exit__(self, *_):
        for process in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait(HANG_S)
        self.hosts.__exit__()
        shutil.rmtree(self.names)

    def environment(self, host):
        env = {k: v for k, v in os.environ.items() if not k.startswith(("SPANCL_", "TMUX", "XDG_", "OCL_ICD_"))}
        env.update(HOME=str(self.folder / host), TERM="xterm", LANG="C.UTF-8", PS1="$ ",
                   PATH=f"{self.build}/bin:{os.environ['PATH']}")
        if host == "desk":
            env.update(OCL_ICD_VENDORS=f"{self.build}/etc/vendors")
        else:
            env.update(OCL_ICD_VENDORS=self.vendors, POCL_CACHE_DIR=str(self.folder / host / "pocl"))
        return env

    def run(self, host, *command, typed=""):
        done = subprocess.run([*self.hosts.inside(host), *command], env=self.environment(host), input=typed, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=HANG_S, check=False)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def start(self, host, *command):
        log = open(self.folder / f"{host}.log", "w", encoding="utf-8")  # pylint: disable=consider-using-with
        self.running.append(subprocess.Popen([*self.hosts.inside(host), *command], env=self.environment(host),
                                             stdin=subprocess.DEVNULL, stdout=log, stderr=log))

    def serve(self, host, *options):
        code = re.search(r"\w{4}-\w{4}-\w{4}", self.run(host, "spancld", "pair")).group()
        self.start(host, "spancld", "--listen", "*", *options)
        wait_for(lambda: self.run(host, "ss", "-Hltn", "sport = :7777"), lambda: f"{host} does not listen")
        self.run("desk", "spancl", "pair", host, typed=code + "\n")

    def terminal(self, *words):
        return subprocess.run([*self.hosts.inside("desk"), "tmux", "-S", str(self.folder / "tmux"), *words], text=True,
                              env=self.environment("desk"), stdout=subprocess.PIPE, timeout=HANG_S, check=True).stdout

    def capture(self, command, columns, rows, shows):
        """What a terminal shows of a command, when `shows` matches."""
        self.terminal("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows), "bash", "--norc",
                      "--noprofile")
        try:
            wait_for(lambda: "$" in self.terminal("capture-pane", "-p"), lambda: "no shell")
            self.terminal("send-keys", "-l", command + "\n")
            wait_for(lambda: re.search(shows, self.terminal("capture-pane", "-p"), re.M | re.S),
                     lambda: self.terminal("capture-pane", "-p"))
            text = self.terminal("capture-pane", "-p", "-e").replace(str(self.folder / "desk"), "~")
            text = text.replace(str(self.build), "~/spancl/build/release")
            return re.sub(r"\n\$ *\n*$", "\n", text)
        finally:
            self.terminal("kill-server")


def main():
    build = Path(sys.argv[1]).resolve()
    out = Path(sys.argv[2] if len(sys.argv) > 2 else ROOT / "docs/screens")
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Lab(build, folder) as lab:
        lab.serve("gpu1", "--client-memory", "4096,0=1024", "--client-time", "0=3600/86400")
        lab.serve("gpu2")
        lab.run("desk", "spancl", "use", "gpu1", "gpu2")
        lab.start("desk", "spancl", "run", "--server", "gpu1", "--server", "gpu2", "--", "lbm", "--size", "48", "--steps",
                  "10000000", "--domains", "2", "--kernels", str(ROOT / "examples/lbm"))
        for name, columns, rows, shows in (("list", 166, 30, r"^\$ spancl list.*^\$ *$"),
                                           ("top", 100, 16, r"^lbm .* [1-9]\d*%.*^lbm .* [1-9]\d*%"),
                                           ("doctor", 112, 45, r"^\$ spancl doctor gpu1.*^\$ *$")):
            command = f"spancl {name}" + (" gpu1" if name == "doctor" else "")
            picture(lab.capture(command, columns, rows, shows), columns).save(out / f"{name}.png", optimize=True)


if __name__ == "__main__":
    main()
