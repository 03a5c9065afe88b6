#!/usr/bin/env python3
"""ar.py BUILD [NAME...]: claims about examples/ar (docs/AR.md). In each place it makes the pictures of the native run:
the same bytes, or nearly the same where a video comes between. It sorts as the host does.
Status 77: the example is not built."""

import json
import os
import sys
import tempfile
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers

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
    for count in (0, 1, 1000, 65537):
        done = natively("--sort", str(count))
        assert done.returncode == 0 and f"sorted {count} keys" in done.stdout, done.stdout + done.stderr


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
    """The points of the dancer, by decoders of HEVC in the process and on a server."""
    with servers(1, "--media=on") as s:
        done = daemon.run([AR, "--stream", STREAM, "--size", "64x64", "--frames", "2", "--warm", "0", "--verify",
                           "--place", "sort-p2p"], f"{at(s.ports[0])} in-process", SPANCL_MEDIA="on")
    if NO_MEDIA in done.stderr:
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
                             (("--compare", os.devnull), "fewer pictures")):
        done = natively(*SMALL, *arguments)
        assert done.returncode == 1 and words in done.stderr, f"{arguments}: {done.stderr}"


if __name__ == "__main__":
    if not os.path.exists(AR):
        print("skipped: the example is not built")
        sys.exit(77)
    sys.exit(claims.run(globals()))
