#!/usr/bin/env python3
"""ar.py BUILD [NAME...]: claims about examples/ar (docs/AR.md). In each place it makes the pictures of the native run:
the same bytes, or nearly the same where a video comes between. It sorts as the host does.
Status 77: the example is not built."""

import functools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import claims
import daemon
from claims import wait_for
from daemon import BUILD, at, servers
from relay import Relay
from survive import anew, kept

AR = str(BUILD / "bin/ar")
FOLDER = tempfile.TemporaryDirectory()
PICTURES = str(Path(FOLDER.name) / "native.rgba")
SMALL = ["--voxels", "64", "--capacity", "20000", "--size", "320x180", "--frames", "3", "--warm", "1"]
EXACT = ("local", "sort-host", "sort-p2p", "sort-content", "points", "layer")
STREAM = str(daemon.ROOT / "examples/ar/dancer.vpcc")
NO_MEDIA = "no media device has"


def figures(done, server=None):
    """The lines of a run. A failure shows the log of `server`."""
    assert done.returncode == 0, done.stdout + done.stderr + (server.log_text() if server else "")
    return [json.loads(line) for line in done.stdout.splitlines()]


def ar(where, *arguments, **more):
    return daemon.run([AR, *SMALL, *arguments, "--figures"], where, **more)


def natively(*arguments):
    return daemon.run([AR, *arguments], None, OCL_ICD_VENDORS=daemon.VENDORS)


def native_pictures():
    """Makes the native pictures, once. All other runs are compared with them."""
    if not os.path.exists(PICTURES):
        figures(natively(*SMALL, "--raw", PICTURES, "--figures"))
    return PICTURES


def same_pictures(server, where, places, **more):
    found = figures(ar(where, "--place", ",".join(places), "--compare", native_pictures(), **more), server)
    assert [f["place"] for f in found if f["same"]] == list(places), f"over {where}: {found}"


def the_sort_is_the_hosts():
    for kernels in ((), ("--wide",)):
        for count in (0, 1, 1000, 65537):
            done = natively("--sort", str(count), *kernels)
            assert done.returncode == 0 and f"sorted {count} keys" in done.stdout, done.stdout + done.stderr


def kernels_for_gpus_make_the_same_pictures():
    """The squares of a small picture are in several tiles; its right and lower tiles are cut."""
    found = figures(natively(*SMALL, "--frames", "1", "--wide", "--compare", native_pictures(), "--figures"))
    assert found[0]["same"], found


def pictures_are_the_same_natively_in_all_places():
    places = ("sort-host", "sort-p2p")
    if "cl_pocl_content_size" in daemon.run(["clinfo"], None, OCL_ICD_VENDORS=daemon.VENDORS).stdout:
        places = EXACT[1:]
    done = natively(*SMALL, "--place", ",".join(places), "--compare", native_pictures(), "--figures")
    assert all(f["same"] for f in figures(done)), done.stdout


def pictures_are_the_same_over_a_server():
    with servers(1) as s:
        same_pictures(s, f"{at(s.ports[0])} in-process", EXACT)


def pictures_are_the_same_over_two_servers():
    """One server makes the pictures of a frame, the other one the points."""
    with servers(2) as s:
        same_pictures(s, f"{at(s.ports[0])} {at(s.ports[1])} in-process", ("sort-content", "layer"))


def frames_that_overlap_have_the_same_pictures():
    places = ("sort-host", "sort-p2p", "sort-content", "points", "layer")
    with servers(1) as s:
        found = figures(ar(f"{at(s.ports[0])} in-process", "--place", ",".join(places), "--compare", native_pictures(),
                           "--ahead", "2"), s)
        assert [f["place"] for f in found if f["same"]] == list(places), found


class Display:
    """A run that falls back, until it is told to end. Its pictures and times go to files."""

    def __init__(self, port, *more):
        self.raw, self.times = (Path(FOLDER.name) / f"fallback.{end}" for end in ("rgba", "csv"))
        self.times.write_text("")
        self.process = subprocess.Popen(
            [AR, *SMALL, "--place", "layer", "--frames", "0", "--fallback", "--raw", str(self.raw), "--times",
             str(self.times), *more], env=daemon.client_env(f"{at(port)} in-process"), stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def qualities(self):
        whole = self.times.read_text().rpartition("\n")[0]
        return [line.split(",")[4] for line in whole.splitlines()[1:]]

    def until(self, quality, least=3):
        """Waits for so many further frames of that quality, behind the frames that are there now."""
        seen = len(self.qualities())
        wait_for(lambda: self.process.poll() is not None or self.qualities()[seen:].count(quality) >= least,
                 f"frames of {quality} quality")
        assert self.process.poll() is None, self.process.communicate()

    def end(self):
        out, err = self.process.communicate("")
        assert self.process.returncode == 0, out + err
        rows = [line.split(",") for line in self.times.read_text().splitlines()[1:]]
        assert [int(row[0]) for row in rows] == list(range(len(rows))), "a frame was left out"
        return [row[4] for row in rows], self.raw.read_bytes(), err


@functools.cache
def period(*more):
    """The pictures of 120 frames. Then the figure and the camera are where they began."""
    path = Path(FOLDER.name) / "period.rgba"
    figures(natively(*SMALL, "--frames", "120", "--raw", str(path), "--figures", *more))
    return path.read_bytes()


def are_full_or_lower(qualities, pictures):
    size = 320 * 180 * 4
    want = {"full": period(), "lower": period("--thin", "4")}
    for i, quality in enumerate(qualities):
        at_ = i % 120 * size
        assert pictures[i * size:(i + 1) * size] == want[quality][at_:at_ + size], f"frame {i} of {quality} quality"


def pictures_go_on_without_the_server():
    with kept() as s:
        relay = Relay(s.ports[0])
        display = Display(relay.port, "--ahead", "2")
        display.until("full")
        relay.hold(True)  # the connection alone: the session goes on
        display.until("lower")
        relay.hold(False)
        display.until("full")
        relay.cut()  # and it is made again at once
        display.until("full", 1)
        s.processes[0].kill()  # the server itself
        s.processes[0].wait()
        display.until("lower")
        s.processes = anew(s).processes
        display.until("full")
        relay.hold(True)
        display.until("lower")
        qualities, pictures, log = display.end()
        relay.close()
    assert "the other device is lost" in log, log
    are_full_or_lower(qualities, pictures)
    return f"{qualities.count('full')} frames of full quality, {qualities.count('lower')} of lower"


def a_video_file_has_the_pictures():
    if not shutil.which("ffmpeg"):
        return "skipped: no ffmpeg"
    path = str(Path(FOLDER.name) / "run.y4m")
    figures(natively(*SMALL, "--video", path, "--figures"))
    done = subprocess.run(["ffmpeg", "-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "rgba", "-"],
                          stdout=subprocess.PIPE, check=True)
    want = Path(native_pictures()).read_bytes()
    assert len(done.stdout) == len(want), len(done.stdout)
    error = sum((a - b) ** 2 for a, b in zip(done.stdout[::101], want[::101])) / len(want[::101])
    assert error < 40, error  # chroma has a quarter of the samples
    return None


def rectangle(screen, width, height):
    """The middle of a screen that Xvfb keeps in a file (XWD, 32 bits a pixel): red, green, blue and 255."""
    head = struct.unpack(">25I", screen[:100])
    start, columns, rows, pitch, colours = head[0], head[4], head[5], head[12], head[19]
    left, top = (columns - width) // 2, (rows - height) // 2
    found = bytearray()
    for y in range(top, top + height):
        at_ = start + 12 * colours + y * pitch + left * 4
        found += screen[at_:at_ + width * 4]
    found[0::4], found[2::4], found[3::4] = found[2::4], found[0::4], b"\xff" * (width * height)
    return bytes(found)


def a_window_shows_the_pictures():
    if not shutil.which("Xvfb"):
        return "skipped: no Xvfb"
    size = 320 * 180 * 4
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(
            ["Xvfb", "-displayfd", "1", "-screen", "0", "640x480x24", "-nolisten", "tcp", "-fbdir", folder],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as screen:
        display = screen.stdout.readline().strip()
        try:
            with subprocess.Popen([AR, *SMALL, "--frames", "0", "--window"], stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  env=daemon.client_env(None, OCL_ICD_VENDORS=daemon.VENDORS, DISPLAY=f":{display}",
                                                        SDL_VIDEODRIVER="x11")) as shown:
                want = {period()[i:i + size] for i in range(0, 120 * size, size)}
                wait_for(lambda: shown.poll() is not None
                         or rectangle((Path(folder) / "Xvfb_screen0").read_bytes(), 320, 180) in want, "no picture")
                ended = shown.poll()
                out, err = shown.communicate("")
        finally:
            screen.terminate()
    if "built without SDL2" in err:
        return "skipped: " + err.strip()
    assert ended is None and shown.returncode == 0, out + err
    return None


def content_sizes_spare_bytes():
    """Without them the index list has its largest size, four bytes for each point that a frame could have."""
    with servers(2) as s:
        where = f"{at(s.ports[0])} {at(s.ports[1])}"  # the second one is the client's own device
        moved = {}
        for place in ("sort-p2p", "sort-content"):
            stats = Path(FOLDER.name) / "stats"
            figures(ar(where, "--place", place, SPANCL_STATS=str(stats)), s)
            found = json.loads(stats.read_text())
            moved[place] = sum(link["bulk_bytes"] for link in found["links"]
                               if link["from"] == at(s.ports[0]) and link["to"] == at(s.ports[1]))
        assert moved["sort-content"] < moved["sort-p2p"] * 0.8, moved


def pictures_come_as_video():
    with servers(1, "--media=on") as s:
        where = f"{at(s.ports[0])} in-process"
        done = ar(where, "--place", "video", "--frames", "2", "--warm", "0", "--compare", native_pictures(),
                  SPANCL_MEDIA="on")
        if NO_MEDIA in done.stderr:
            return "skipped: " + done.stderr.strip()
        found = figures(done)[0]
        assert found["psnr_db"] > 28, found
    return None


def points_of_a_stream_are_those_of_the_reference():
    """The points of the dancer, by decoders of HEVC in the process and on a server: the module's and libavcodec's."""
    for decoder in (), ("--libavcodec",):
        with servers(1, "--media=on") as s:
            done = daemon.run([AR, "--stream", STREAM, "--size", "64x64", "--frames", "2", "--warm", "0", "--verify",
                               "--place", "sort-p2p", *decoder], f"{at(s.ports[0])} in-process", SPANCL_MEDIA="on")
        if NO_MEDIA in done.stderr or decoder and "status -10" in done.stderr:
            return "skipped: " + done.stderr.strip()
        assert done.returncode == 0 and done.stdout.count("points like the reference's") == 2, done.stdout + done.stderr
    return None


def damaged_streams_are_refused():
    whole = Path(STREAM).read_bytes()
    for name, data in (("empty", b""), ("short", whole[:100000]), ("other", b"\x40" + bytes(1000))):
        path = Path(FOLDER.name) / f"{name}.vpcc"
        path.write_bytes(data)
        done = natively("--stream", str(path))
        assert done.returncode == 1 and f"{name}.vpcc: " in done.stderr, f"{name}: {done.stderr}"
    done = natively("--stream", STREAM, "--size", "64x64")
    assert done.returncode == 1 and NO_MEDIA in done.stderr, done.stderr


def places_without_their_parts_are_refused():
    for arguments, words in ((("--place", "nowhere"), "no such place"), (("--near", "63"), "no such device"),
                             (("--place", "video", "--codec", "none"), NO_MEDIA),
                             (("--compare", os.devnull), "fewer pictures"),
                             (("--fallback",), "no other device computes"), (("--ahead", "9"), "from 1 to 8")):
        done = natively(*SMALL, *arguments)
        assert done.returncode == 1 and words in done.stderr, f"{arguments}: {done.stderr}"


if __name__ == "__main__":
    if not os.path.exists(AR):
        print("skipped: the example is not built")
        sys.exit(77)
    sys.exit(claims.run(globals()))
