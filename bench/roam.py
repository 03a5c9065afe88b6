#!/usr/bin/env python3
"""Runs examples/ar while the client loses its link and gets it back, and draws the frame times (SVG). Needs root.

The client is a network namespace, as in bench/ar.py, whose options hold here, too. Its interface goes down and comes up
again, so no packet tells the client that the link is lost: it finds out after SPANCL_LINK_TIMEOUT."""

import argparse
import csv
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from ar import LINKS, ROOT, PORT, Slice, link  # noqa: E402
from hosts import Hosts, may_make_hosts  # noqa: E402
from servers import native_vendors  # noqa: E402

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 900, 360, 70, 50, 20, 50
COLOURS = {"full": "#1f77b4", "lower": "#d95f02"}


def rows(path):
    with open(path, encoding="utf-8") as file:
        text = file.read().rpartition("\n")[0]
    return [{"quality": r["quality"], "at": float(r["at_ms"]), "frame": float(r["frame_ms"]),
             "since_loss": float(r["since_loss_ms"]) if r["since_loss_ms"] else None}
            for r in csv.DictReader(text.splitlines())]


def wait_for_full(process, path, seen):
    while process.poll() is None and not any(r["quality"] == "full" for r in rows(path)[seen:]):
        time.sleep(0.05)


def run(build, arguments, options, folder):
    """Returns the rows, and when the link went down and up, in ms on the rows' clock."""
    times = Path(folder) / "times.csv"
    times.touch()
    with Slice(arguments.slice) as part, Hosts(["client", "server"], [("client", "server", "10.77.1")]) as hosts:
        hosts.spancld(build, "server", vendors=native_vendors(folder), options=("--media", "on"))
        env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
        env.update(OCL_ICD_VENDORS=str(build / "etc/vendors"), SPANCL_MEDIA="on",
                   SPANCL_SERVERS=f"tcp:10.77.1.2:{PORT} in-process", SPANCL_LINK_TIMEOUT=str(arguments.link_timeout))
        with link(hosts, arguments.link), subprocess.Popen(
                [*part.command(), *hosts.inside("client"), str(build / "bin/ar"), "--fallback",
                 "--frames", "0", "--times", str(times), "--place", arguments.place, *options], env=env,
                stdin=subprocess.PIPE) as process:
            marks = []
            wait_for_full(process, times, 0)
            for state in ("down", "up"):
                time.sleep(arguments.seconds)
                seen = rows(times)
                # The rows' clock began at the first frame. The last row is the nearest known point of it.
                marks.append(seen[-1]["at"] + (time.time() - times.stat().st_mtime) * 1e3)
                hosts.ip("client", "link", "set", "toserver", state)
            wait_for_full(process, times, len(rows(times)))
            time.sleep(arguments.seconds)
            process.communicate(b"")
            print(f"client: {part.how}; load {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
    return rows(times), marks


def tell(found, marks):
    for quality in COLOURS:
        these = [r["frame"] for r in found if r["quality"] == quality]
        if these:
            print(f"{quality}: {len(these)} frames, median {statistics.median(these):.0f} ms")
    print(f"link: down at {marks[0]:.0f} ms, up at {marks[1]:.0f} ms")
    for r in found:
        if r["since_loss"] is not None:
            print(f"loss known at {r['at'] - r['since_loss']:.0f} ms, next picture {r['since_loss']:.0f} ms later")
    back = [r["at"] for r in found if r["quality"] == "full" and r["at"] > marks[1]]
    if back:
        print(f"full quality again at {back[0]:.0f} ms, {back[0] - marks[1]:.0f} ms after the link")


def draw(found, marks, path):
    end, top = found[-1]["at"], max(r["frame"] for r in found) * 1.05
    step = next(s for s in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000) if top / s <= 8)

    def x(ms):
        return LEFT + (WIDTH - LEFT - RIGHT) * ms / end

    def y(ms):
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * ms / top

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" font-family="sans-serif" '
           f'font-size="13"><rect width="100%" height="100%" fill="white"/>',
           f'<rect x="{x(marks[0]):.1f}" y="{TOP}" width="{x(marks[1]) - x(marks[0]):.1f}" '
           f'height="{HEIGHT - TOP - BOTTOM}" fill="#eeeeee"/>',
           f'<text x="{(x(marks[0]) + x(marks[1])) / 2:.1f}" y="{TOP + 16}" text-anchor="middle">link down</text>']
    for value in range(0, int(top) + 1, step):
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(value):.1f}" y2="{y(value):.1f}" '
                   f'stroke="#cccccc"/><text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end">{value}</text>')
    for r in found:
        left = x(r["at"] - r["frame"])
        out.append(f'<rect x="{left:.2f}" y="{y(r["frame"]):.2f}" width="{max(x(r["at"]) - left - 0.4, 0.4):.2f}" '
                   f'height="{HEIGHT - BOTTOM - y(r["frame"]):.2f}" fill="{COLOURS[r["quality"]]}"/>')
    for second in range(0, int(end / 1000) + 1, max(1, int(end / 10000))):
        out.append(f'<text x="{x(second * 1000):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{second}</text>')
    out.append(f'<text x="{(LEFT + WIDTH) / 2}" y="{HEIGHT - 10}" text-anchor="middle">time, s</text>')
    out.append(f'<text x="{LEFT}" y="30">frame time, ms:</text>')
    for i, (quality, words) in enumerate((("full", "full quality, by the server"),
                                          ("lower", "lower quality, by the client's own device"))):
        out.append(f'<rect x="{LEFT + 130 + 220 * i}" y="19" width="12" height="12" fill="{COLOURS[quality]}"/>'
                   f'<text x="{LEFT + 148 + 220 * i}" y="30">{words}</text>')
    Path(path).write_text("\n".join([*out, "</svg>\n"]), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--slice", type=int, default=25, help="percents of a core that the client has")
    parser.add_argument("--link", default="wifi6", choices=LINKS)
    parser.add_argument("--link-timeout", type=int, default=300, help="in ms")
    parser.add_argument("--place", default="layer")
    parser.add_argument("--seconds", type=float, default=5, help="with the link, without it, and with it again")
    parser.add_argument("--svg", default="roam.svg")
    arguments, options = parser.parse_known_args()
    if not may_make_hosts():
        print("network namespaces can't be made here", file=sys.stderr)
        return 77
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    with tempfile.TemporaryDirectory() as folder:
        found, marks = run(Path(arguments.build).resolve(), arguments, options, folder)
    tell(found, marks)
    draw(found, marks, arguments.svg)
    return 0


if __name__ == "__main__":
    sys.exit(main())
