#!/usr/bin/env python3
"""What a media device costs: bench_media over a device in its own process and over a server, and `ffmpeg -f null` with as
many threads, in turn, round after round. ffmpeg decodes AV1 by libdav1d, too, but H.264 and HEVC by its own decoders.
Ends with 0 whatever the figures are, with 1 when a measurement could not be taken, with 77 without ffmpeg."""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
from servers import Servers  # noqa: E402


def ffmpeg_seconds(stream, threads):
    """The time of its run, without its start, and that of processors."""
    done = subprocess.run(["ffmpeg", "-nostdin", "-hide_banner", "-benchmark", "-threads", str(threads), "-i", stream,
                           "-f", "null", "-"], stderr=subprocess.PIPE, text=True, check=True)
    user, system, real = map(float, re.search(r"utime=([\d.]+)s stime=([\d.]+)s rtime=([\d.]+)s", done.stderr).groups())
    return real, user + system


def device_seconds(program, codec, packets, **variables):
    env = {k: v for k, v in os.environ.items() if not k.startswith("SPANCL_")}
    done = subprocess.run([program, codec, packets, "1"], env={**env, **variables}, stdout=subprocess.PIPE, text=True,
                          check=True)
    return tuple(map(float, done.stdout.split()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--frames", type=int, default=100)
    parser.add_argument("--size", default="1280x720")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", help="file for the results")
    args = parser.parse_args()
    if not shutil.which("ffmpeg"):
        return 77
    build = Path(args.build).resolve()
    sys.argv[1:] = [str(build)]
    sys.path.insert(0, str(ROOT / "tests/system"))
    import media  # pylint: disable=import-outside-toplevel
    program = str(build / "bin/bench_media")
    size = tuple(map(int, args.size.split("x")))
    settings = f"threads={args.threads}"
    results = {}
    try:
        with Servers(build, 1, ("--backend=media", f"--media={settings}")) as servers:
            platform = {"OCL_ICD_VENDORS": str(build / "etc/vendors")}
            where = {"SPANCL_SERVERS": f"localhost:{servers.ports[0]}", **platform}
            for codec, (encoder, _, _) in media.CODECS.items():
                files = media.make(codec, f"bench.{codec}", encoder, frames=args.frames, size=size)
                if not files:
                    continue
                stream = files[0].replace(".packets", ".stream")
                taken = {"ffmpeg": [], "in-process": [], "server": []}
                for _ in range(args.rounds):
                    taken["ffmpeg"].append(ffmpeg_seconds(stream, args.threads))
                    taken["in-process"].append(device_seconds(program, codec, files[0], SPANCL_MEDIA=settings, **platform))
                    taken["server"].append(device_seconds(program, codec, files[0], **where))
                middle = {who: [statistics.median(x) for x in zip(*t)] for who, t in taken.items()}
                results[codec] = taken
                wall, used = middle["ffmpeg"]
                print(f"{codec:<6}" + "".join(f"{who}: {args.frames / t[0]:.0f} frames/s ({wall / t[0]:.2f})  "
                                              for who, t in middle.items())
                      + f"processor time in-process: {middle['in-process'][1] / used:.2f} of ffmpeg's", flush=True)
    except (RuntimeError, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    if args.json:
        Path(args.json).write_text(json.dumps(results, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
