#!/usr/bin/env python3
"""media.py BUILD [NAME...]: claims about media devices (docs/MEDIA.md). tests/system/decoder.c is the program: it
compares each picture with what ffmpeg decodes. Status 77: there is no ffmpeg here, or no module of decoders."""

import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers

DECODER = str(BUILD / "bin/system_decoder")
FOLDER = tempfile.TemporaryDirectory()
WIDTH, HEIGHT = 162, 90  # macroblocks at the edges are not whole
INVALID_IMAGE_SIZE, FORMAT_NOT_SUPPORTED = -40, -10
# Encoder, container, and how an access unit begins: with a delimiter.
CODECS = {
    "h264": (("libx264", "-x264-params", "threads=1:aud=1:bframes=0:keyint=10"), "h264", (b"\0\0\1\x09",)),
    "hevc": (("libx265", "-x265-params", "log-level=none:pools=1:aud=1:hash=1:open-gop=0:keyint=10"), "hevc", (b"\0\0\1\x46",)),
    "av1": (("libaom-av1", "-cpu-used", "8", "-row-mt", "0", "-g", "10"), "ivf", ()),
}


def ffmpeg(*arguments):
    return subprocess.run(["ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y", *map(str, arguments)],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)


def units(data, starts):
    """The access units of a stream: of IVF, or where a delimiter begins."""
    if not starts:
        place = 32
        while place < len(data):
            size = struct.unpack_from("<I", data, place)[0]
            yield data[place + 12:place + 12 + size]
            place += 12 + size
        return
    places, place = [], data.find(starts[0])
    while place >= 0:
        places.append(place)
        place = data.find(starts[0], place + 3)
    for begin, end in zip(places, places[1:] + [len(data)]):
        yield data[begin:end]


def make(codec, name, encoder, frames=12, size=(WIDTH, HEIGHT), pixels="yuv420p"):
    """Returns the files of packets and of pictures; None: this ffmpeg lacks the encoder."""
    _, container, starts = CODECS[codec]
    stream, packets, pictures = (Path(FOLDER.name) / f"{name}.{kind}" for kind in ("stream", "packets", "yuv"))
    done = ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size[0]}x{size[1]}:rate=25", "-frames:v", frames,
                  "-pix_fmt", pixels, "-c:v", *encoder, "-f", container, stream)
    if "Unknown encoder" in done.stdout:
        return None
    assert done.returncode == 0, done.stdout
    done = ffmpeg("-threads", "1", "-i", stream, "-f", "rawvideo", "-pix_fmt", "yuv420p", pictures)
    assert done.returncode == 0, done.stdout
    packets.write_bytes(b"".join(struct.pack("<I", len(u)) + u for u in units(stream.read_bytes(), starts)))
    return str(packets), str(pictures)


STREAMS = {}


def streams():
    """Of each codec that there is here, a stream."""
    if not STREAMS:
        made = {codec: make(codec, codec, encoder) for codec, (encoder, _, _) in CODECS.items()}
        STREAMS.update({codec: files for codec, files in made.items() if files})
    assert STREAMS
    return STREAMS.items()


def decode(where, codec, files, how, **more):
    """Status 77: the module lacks the codec."""
    done = daemon.run([DECODER, codec, *files, str(WIDTH), str(HEIGHT), str(how)], where, **more)
    assert done.returncode in (0, 77), f"{codec}: {done.stdout}{done.stderr}"


# --- Pictures -------------------------------------------------------------------------------------

def pictures_are_exact_in_the_process_itself():
    for codec, files in streams():
        decode("in-process:media", codec, files, 1, SPANCL_MEDIA="on")


def pictures_are_exact_over_a_server_and_several_streams():
    """In the server's sandbox. Damaged packets end commands, never the session."""
    with servers(1, "--media=threads=2,streams=8", "--backend=media") as s:
        for codec, files in streams():
            decode(at(s.ports[0]), codec, files, 8)
            decode(at(s.ports[0]), codec, files, "damage")
        assert "refused" not in s.log_text(), s.log_text()


def pictures_go_from_a_server_to_a_device_of_another():
    """The second server has a native device alone."""
    with servers(1, "--media=on", "--backend=media") as decoding, servers(1) as computing:
        for codec, files in streams():
            decode(f"{at(decoding.ports[0])} {at(computing.ports[0])}", codec, files, 2)


# --- Limits ---------------------------------------------------------------------------------------

def pictures_that_are_too_large_are_refused():
    with servers(1, f"--media=size={WIDTH - 1}x{HEIGHT}", "--backend=media") as s:
        for codec, (packets, _) in streams():
            decode(at(s.ports[0]), codec, (packets, "-"), INVALID_IMAGE_SIZE)


def streams_of_other_formats_are_refused():
    """B slices of H.264, which libopenh264 does not decode exactly, and 4:4:4."""
    with servers(1, "--media=on", "--backend=media") as s:
        for codec, encoder, pixels in (("h264", CODECS["h264"][0], "yuv444p"), ("hevc", CODECS["hevc"][0], "yuv444p")):
            files = make(codec, f"{codec}.{pixels}", encoder, frames=2, pixels=pixels)
            if files:
                decode(at(s.ports[0]), codec, (files[0], "-"), FORMAT_NOT_SUPPORTED)


def settings_that_are_wrong_leave_no_device():
    with servers(1, "--media=size=0x4", "--log=info") as s:
        assert "media" not in daemon.clinfo(at(s.ports[0])).stdout
        assert "neither `on` nor settings" in s.log_text(), s.log_text()


if __name__ == "__main__":
    if not shutil.which("ffmpeg") or not (BUILD / "lib/libspancl-media.so").exists():
        print("skipped: there is no ffmpeg here, or no module of decoders")
        sys.exit(77)
    sys.exit(claims.run(globals()))
