#!/usr/bin/env python3
"""media.py BUILD [NAME...]: claims about media devices (docs/MEDIA.md). tests/system/decoder.c is a program that
compares each picture with what ffmpeg decodes; tests/system/encoder.c makes packets, which ffmpeg and our own decoders then decode; tests/system/reader.c reads sources;
tests/system/writer.c writes sinks.
Status 77: there is no ffmpeg here, or no module of decoders."""

import concurrent.futures
import functools
import http.server
import math
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers

DECODER = str(BUILD / "bin/system_decoder")
READER = str(BUILD / "bin/system_reader")
WRITER = str(BUILD / "bin/system_writer")
ENCODER = str(BUILD / "bin/system_encoder")
FOLDER = tempfile.TemporaryDirectory()
WIDTH, HEIGHT = 162, 90  # macroblocks at the edges are not whole
INVALID_IMAGE_SIZE, FORMAT_NOT_SUPPORTED, INVALID_VALUE = -40, -10, -30
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


def write_packets(path, all_packets):
    path.write_bytes(b"".join(struct.pack("<I", len(one)) + one for one in all_packets))


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
    write_packets(packets, units(stream.read_bytes(), starts))
    return str(packets), str(pictures)


STREAMS = {}


def streams():
    """Of each codec that there is here, a stream."""
    if not STREAMS:
        made = {codec: make(codec, codec, encoder) for codec, (encoder, _, _) in CODECS.items()}
        STREAMS.update({codec: files for codec, files in made.items() if files})
    assert STREAMS
    return STREAMS.items()


def decode(where, codec, files, how, size=(WIDTH, HEIGHT), **more):
    """Status 77: the device lacks the codec."""
    done = daemon.run([DECODER, codec, *files, *map(str, size), str(how)], where, **more)
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
        for number, (codec, *_) in enumerate(OTHERS):
            files = make_other(number)
            if files and number != FIELDS:
                decode(at(s.ports[0]), codec, (files[0], "-"), INVALID_IMAGE_SIZE)


def streams_of_other_formats_are_refused():
    """4:4:4, also where libavcodec could decode it."""
    with servers(1, "--media=on", "--backend=media") as s:
        for codec, encoder, pixels in (("h264", CODECS["h264"][0], "yuv444p"), ("hevc", CODECS["hevc"][0], "yuv444p")):
            files = make(codec, f"{codec}.{pixels}", encoder, frames=2, pixels=pixels)
            if files:
                decode(at(s.ports[0]), codec, (files[0], "-"), FORMAT_NOT_SUPPORTED)


# Streams that the module refuses, or has no library for: codec, encoder, container, pixels of ffmpeg's pictures.
OTHERS = (
    ("h264", ("libx264", "-bf", "3", "-x264-params", "threads=1:b-pyramid=normal:keyint=10"), "h264", "yuv420p"),
    ("h264", ("libx264", "-flags", "+ildct+ilme", "-x264-params", "threads=1:tff=1:keyint=10:bframes=2"), "h264",
     "yuv420p"),
    ("hevc", ("libx265", "-x265-params", "log-level=none:pools=1:slices=2:keyint=10:bframes=3"), "hevc", "yuv420p"),
    ("mpeg2", ("mpeg2video", "-bf", "2", "-g", "10"), "mpeg2video", "yuv420p"),
    ("mpeg4", ("mpeg4", "-bf", "2", "-g", "10"), "m4v", "yuv420p"),
    ("vp8", ("libvpx", "-g", "10", "-auto-alt-ref", "1", "-lag-in-frames", "5"), "ivf", "yuv420p"),
    ("vp9", ("libvpx-vp9", "-g", "10", "-cpu-used", "8", "-lag-in-frames", "5"), "ivf", "yuv420p"),
    ("mjpeg", ("mjpeg",), "mjpeg", "yuvj420p"),
)


FIELDS = 1  # its place
DEEP = (
    ("h264", ("libx264", "-bf", "2", "-x264-params", "threads=1:keyint=10"), "h264", "yuv420p10le"),
    ("hevc", ("libx265", "-x265-params", "log-level=none:pools=1:keyint=10:bframes=3"), "hevc", "yuv420p10le"),
)


def packets_of(stream, container):
    """The packets as ffmpeg's demuxer has them."""
    data = stream.read_bytes()
    if container == "ivf":
        return list(units(data, ()))
    done = subprocess.run(["ffprobe", "-v", "error", "-show_packets", "-show_entries", "packet=size", "-of",
                           "default=nk=1:nw=1", str(stream)], stdout=subprocess.PIPE, text=True, check=True)
    sizes, place, found = [int(line) for line in done.stdout.split()], 0, []
    assert sum(sizes) == len(data), f"{sum(sizes)} of {len(data)} bytes"
    for size in sizes:
        found.append(data[place:place + size])
        place += size
    return found


def size_of(number):
    return (160, 96) if number == FIELDS else (WIDTH, HEIGHT)  # fields want whole pairs of macroblocks


def make_other(number):
    """As make, of one of OTHERS, and of DEEP behind them."""
    _, encoder, container, pixels = (OTHERS + DEEP)[number]
    stream, packets, pictures = (Path(FOLDER.name) / f"other{number}.{kind}" for kind in ("stream", "packets", "yuv"))
    if not packets.exists():
        done = ffmpeg("-f", "lavfi", "-i", "testsrc2=size={}x{}:rate=25".format(*size_of(number)), "-frames:v", 14,
                      "-pix_fmt", pixels, "-c:v", *encoder, "-f", container, stream)
        if "Unknown encoder" in done.stdout:
            return None
        assert done.returncode == 0, done.stdout
        done = ffmpeg("-threads", "1", "-i", stream, "-vsync", "passthrough", "-f", "rawvideo", "-pix_fmt", pixels,
                      pictures)
        assert done.returncode == 0, done.stdout
        write_packets(packets, packets_of(stream, container))
    return str(packets), str(pictures)


def streams_that_the_module_lacks_are_exact_by_libavcodec():
    """B slices and fields of H.264, other codecs; in a server and in the program."""
    with servers(1, "--media=on", "--backend=media") as s:
        for number, (codec, *_) in enumerate(OTHERS):
            files = make_other(number)
            if files and codec != "hevc":
                decode(at(s.ports[0]), codec, files, 2, size_of(number))
                decode(at(s.ports[0]), codec, files, "damage", size_of(number))
        assert "refused" not in s.log_text(), s.log_text()
    if files := make_other(0):
        decode(None, "h264", files, 1, SPANCL_MEDIA="on")


def libavcodec_decodes_where_the_client_wants_it():
    """Flag 4, also for streams that the module takes: exact where libde265 is not, which is with several slices."""
    with servers(1, "--media=on", "--backend=media") as s:
        for codec, files in [("hevc", make_other(2)), *streams()]:
            if files and codec != "av1":
                decode(at(s.ports[0]), codec, files, 2, SYSTEM_DECODER_FLAGS="4")
            elif files:
                decode(at(s.ports[0]), codec, (files[0], "-"), FORMAT_NOT_SUPPORTED, SYSTEM_DECODER_FLAGS="4")


def samples_of_ten_bits_are_exact_by_libavcodec():
    with servers(1, "--media=on", "--backend=media") as s:
        for number, (codec, *_) in enumerate(DEEP, len(OTHERS)):
            if files := make_other(number):
                decode(at(s.ports[0]), codec, files, 2, SYSTEM_DECODER_FLAGS="4", SYSTEM_DECODER_BITS="10")


# --- Devices that decode --------------------------------------------------------------------------

def _decodes_with(device, *lines):
    """Each of these lines comes to the log, and pictures are exact: of libavcodec, in a server and in the program."""
    files = make_other(0)
    if not files:
        return
    with servers(1, f"--media=device={device}", "--backend=media", "--log=debug") as s:
        decode(at(s.ports[0]), "h264", files, 1)
        for line in lines:
            claims.wait_for(lambda line=line: line in s.log_text(), s.log_text)
        assert "stream is lost" not in s.log_text() and "media-av is" not in s.log_text(), s.log_text()
    if "opencl" not in device:  # that would be SpanCL's own
        decode(None, "h264", files, 1, SPANCL_MEDIA=f"device={device}")


def a_device_that_can_not_be_opened_is_named_and_the_processor_decodes():
    _decodes_with("vaapi:/nowhere", "the device vaapi:/nowhere can't be opened", "decoders use the processor")
    _decodes_with("cuda:0")  # whether it is here or not: with the filter of system calls that CUDA needs
    _decodes_with("toaster", "libavutil has no type of the device toaster")


def processes_open_the_device_only_to_decode():
    """The first process, which tells its codecs, and encoders keep the narrow walls."""
    with servers(1, "--media=device=toaster", "--backend=media", "--log=debug") as s:
        out = Path(FOLDER.name) / "encoded"
        encode(at(s.ports[0]), "mjpeg", raw("yuv420p"), WIDTH, HEIGHT, 0, 0, 80, out, out)
        assert "toaster" not in s.log_text(), s.log_text()


def opens(device):
    return ffmpeg("-init_hw_device", device, "-f", "lavfi", "-i", "nullsrc", "-frames:v", "1", "-f", "null", "-").returncode == 0


def a_device_that_lacks_a_codec_leaves_it_to_the_processor():
    """Devices of PoCL and Mesa, which decode nothing. They are opened before the walls, and closed behind them."""
    told = []
    for device in ("opencl:0.0", "vulkan:0"):
        if not opens(device):
            continue
        _decodes_with(device, f"the device {device} is open", f"the device {device} does not decode this stream of h264")
        told.append(device)
    return ", ".join(told)


def a_damaged_first_packet_takes_no_device_away():
    """The processor tries to decode it, too, as it decodes a packet of which the device fails. It fails there as well."""
    device = "opencl:0.0"
    if not opens(device):
        return
    noise = Path(FOLDER.name) / "noise.packets"
    write_packets(noise, [bytes(7 * i % 251 for i in range(1000))])
    with servers(1, f"--media=device={device}", "--backend=media", "--log=debug") as s:
        decode(at(s.ports[0]), "mpeg4", (noise, "-"), INVALID_VALUE)
        claims.wait_for(lambda: f"the device {device} is open" in s.log_text(), s.log_text)
        assert "does not decode" not in s.log_text(), s.log_text()


def left_edges_are_cut_exactly():
    """libavcodec's own pictures would begin at an aligned column."""
    stream, packets, pictures = (Path(FOLDER.name) / f"cut.{kind}" for kind in ("h264", "packets", "yuv"))
    done = ffmpeg("-f", "lavfi", "-i", "testsrc2=size=176x144:rate=25", "-frames:v", 6, "-pix_fmt", "yuv420p", "-c:v", "libx264",
                  "-bsf:v", "h264_metadata=crop_left=2:crop_right=6", "-f", "h264", stream)
    if done.returncode:
        return
    assert ffmpeg("-flags", "unaligned", "-i", stream, "-f", "rawvideo", pictures).returncode == 0
    assert pictures.stat().st_size == 6 * 168 * 144 * 3 // 2
    write_packets(packets, packets_of(stream, "h264"))
    with servers(1, "--media=on", "--backend=media") as s:
        for flags in "0", "4":
            decode(at(s.ports[0]), "h264", (str(packets), str(pictures)), 1, (168, 144), SYSTEM_DECODER_FLAGS=flags)


def settings_that_are_wrong_leave_no_device():
    with servers(1, "--media=size=0x4", "--log=info") as s:
        assert "media" not in daemon.clinfo(at(s.ports[0])).stdout
        assert "neither `on` nor settings" in s.log_text(), s.log_text()


# --- Encoders -------------------------------------------------------------------------------------

# The file's format for ffmpeg, and whether a decoder of the module takes the packets.
ENCODERS = {"mjpeg": ("mjpeg", False), "h264": ("h264", True), "hevc": ("hevc", True)}
FORMATS = ("yuv420p", "nv12", "rgba")
OUT_OF_RESOURCES = -5


def raw(pixels, frames=10, size=(WIDTH, HEIGHT)):
    """A file of pictures."""
    path = Path(FOLDER.name) / f"{pixels}.{size[0]}x{size[1]}.raw"
    done = ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={size[0]}x{size[1]}:rate=25", "-frames:v", frames,
                  "-f", "rawvideo", "-pix_fmt", pixels, path)
    assert done.returncode == 0, done.stdout
    return path


def psnr(one, other):
    """Of pictures of 8 bits."""
    assert len(one) == len(other), f"{len(one)} bytes, not {len(other)}"
    error = sum((a - b) * (a - b) for a, b in zip(one, other)) / len(one)
    return 10 * math.log10(255 * 255 / error) if error else math.inf


def encode(where, codec, *arguments, **more):
    """Returns False if there is no such encoder."""
    done = daemon.run([ENCODER, codec, *map(str, arguments)], where, **more)
    assert done.returncode in (0, 77), f"{codec}: {done.stdout}{done.stderr}"
    return done.returncode == 0


def encoded_is_near(where, codec, pixels, kbits, quality, least, **more):
    container, own = ENCODERS[codec]
    stream, packets, pictures = (Path(FOLDER.name) / f"encoded.{kind}" for kind in ("stream", "packets", "yuv"))
    if not encode(where, codec, raw(FORMATS[pixels]), WIDTH, HEIGHT, pixels, kbits, quality, stream, packets, **more):
        return
    done = ffmpeg("-f", container, "-i", stream, "-f", "rawvideo", "-pix_fmt", "yuv420p", pictures)
    assert done.returncode == 0 and not done.stdout, done.stdout
    found = psnr(pictures.read_bytes(), raw("yuv420p").read_bytes())
    print(f"{codec} {FORMATS[pixels]}: {found:.1f} dB, {stream.stat().st_size} bytes")
    assert found > least, f"{codec} {FORMATS[pixels]}: {found} dB"
    if own:
        decode(where, codec, (packets, pictures), 1, **more)


def encoded_pictures_are_near_to_the_given_ones():
    """Both ffmpeg and our own decoders decode them, to equal pictures."""
    with servers(1, "--media=on", "--backend=media") as s:
        for codec in ENCODERS:
            for pixels in range(len(FORMATS)):
                encoded_is_near(at(s.ports[0]), codec, pixels, 0, 90, 33)
        encoded_is_near(at(s.ports[0]), "h264", 0, 2000, 0, 28)
        encoded_is_near(at(s.ports[0]), "hevc", 0, 2000, 0, 28)
        assert "refused" not in s.log_text(), s.log_text()


def the_process_itself_encodes():
    """The libraries are in a process of their own here, too."""
    for codec in ENCODERS:
        encoded_is_near(None, codec, 0, 0, 90, 33, SPANCL_MEDIA="on")


def wrong_arguments_of_encoders_are_refused():
    with servers(1, "--media=size=200x200", "--backend=media") as s:
        for codec in ENCODERS:
            encode(at(s.ports[0]), codec, raw("yuv420p"), WIDTH, HEIGHT, 0, "wrong")


def processes(pid, name):
    """The processes of this name below another one."""
    found = []
    for child in every_process():
        try:
            if Path(f"/proc/{child}/comm").read_text().strip() == name and is_below(child, pid):
                found.append(child)
        except OSError:
            pass
    return found


def is_below(pid, ancestor):
    try:
        while pid > 1 and pid != ancestor:
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return False
    return pid == ancestor


def text_of(pid, name):
    """Of a file in /proc. Empty if the process has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_text()
    except OSError:
        return ""


def has_walls(pid):
    """True, too, if the process has ended."""
    status, limits = text_of(pid, "status"), text_of(pid, "limits")
    return not limits or "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status and re.search(r"Max file size +0 +0 ", limits)


def libraries_are_in_processes_with_walls():
    """libavcodec is in no other process: not in the server's, and not in the program's."""
    def look(pid, where):
        line = p.stdout.readline()
        assert line == "ready\n", line
        p.stdin.write("\n")
        p.stdin.flush()
        assert p.stdout.readline() == "ready\n"  # it has encoded
        found = [child for child in every_process() if is_below(child, pid)] + [p.pid]
        with_library = [child for child in found if "libavcodec" in text_of(child, "maps")]
        walled = processes(pid, "media-av") if where else orphans("media-av", p.pid)
        others = [child for child in with_library if text_of(child, "comm").strip() not in ("", "media-av")]
        assert walled and not others, f"{with_library} {walled}"
        for child in walled:
            # The next session's worker may just start one.
            claims.wait_for(lambda child=child: has_walls(child), lambda child=child: text_of(child, "limits"))
            try:
                links = [os.readlink(f) for f in Path(f"/proc/{child}/fd").iterdir()]
            except OSError:
                continue  # it has ended
            assert all(link.startswith(("socket:", "/dev/null", "pipe:", "/memfd:")) for link in links), links

    command = [ENCODER, "mjpeg", raw("yuv420p"), str(WIDTH), str(HEIGHT), "0", "lost"]
    pipes = {"text": True, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with servers(1, "--media=on", "--backend=media") as s:
        with subprocess.Popen(command, env=daemon.client_env(at(s.ports[0])), **pipes) as p:
            look(s.processes[0].pid, "server")
            p.kill()
    with subprocess.Popen(command, env=daemon.client_env(None, SPANCL_MEDIA="on"), **pipes) as p:
        look(p.pid, None)
        mine = orphans("media-av", p.pid)
        p.kill()
    claims.wait_for(lambda: not any(Path(f"/proc/{pid}/maps").exists() and state_of(pid) != "Z" for pid in mine),
                    "the process outlives its program")


def every_process():
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name)


def orphans(name, program):
    """Processes of this name whose socket's other end a program has: those of no server."""
    begun = int(Path(f"/proc/{program}/stat").read_text().rpartition(")")[2].split()[19])
    found = []
    for pid in every_process():
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            argument = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            if argument[0].endswith(name.encode()) and argument[1] == b"own" and int(fields[19]) >= begun:
                found.append(pid)
        except (OSError, IndexError):
            pass
    return found


def killed_process_ends_its_command_alone():
    """And none is left behind, not even as a zombie, but for the last one."""
    with servers(1, "--media=on", "--backend=media", "--log=info") as s:
        server = s.processes[0].pid
        with subprocess.Popen([ENCODER, "mjpeg", raw("yuv420p"), str(WIDTH), str(HEIGHT), "0", "lost"], text=True,
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=daemon.client_env(at(s.ports[0]))) as p:
            for turn in range(4):
                line = p.stdout.readline()
                if not line and p.wait() == 77:
                    return
                assert line == "ready\n", line
                zombies = [pid for pid in processes(server, "media-av") if state_of(pid) == "Z"]
                assert len(zombies) <= 1 + bool(turn), zombies  # that of the next worker, which waits for its client
                for pid in processes(server, "media-av"):
                    os.kill(pid, signal.SIGKILL)
                p.stdin.write("\n")
                p.stdin.flush()
            assert p.wait() == 0
        assert "the process of a stream is lost" in s.log_text(), s.log_text()


def a_killed_decoder_ends_its_stream_alone():
    """At a flush, at the reset behind one, and when the next picture is wanted."""
    with servers(1, "--media=on", "--backend=media") as s, \
            subprocess.Popen([DECODER, "h264", dict(streams())["h264"][0], "-", str(WIDTH), str(HEIGHT), "lost"],
                             text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=daemon.client_env(at(s.ports[0]), SYSTEM_DECODER_FLAGS="4")) as p:
        for _ in range(3):
            line = p.stdout.readline()
            if not line and p.wait() == 77:
                return
            assert line == "ready\n", line
            for pid in processes(s.processes[0].pid, "media-av"):
                os.kill(pid, signal.SIGKILL)
            p.stdin.write("\n")
            p.stdin.flush()
        assert p.wait() == 0


def a_reset_keeps_the_process_of_libavcodec():
    files = make_other(0)
    if not files:
        return
    with servers(1, "--media=on", "--backend=media") as s, \
            subprocess.Popen([DECODER, "h264", *files, *map(str, size_of(0)), "seek"],
                             text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=daemon.client_env(at(s.ports[0]), SYSTEM_DECODER_FLAGS="4")) as p:
        alive = []
        for _ in range(2):
            line = p.stdout.readline()
            if not line and p.wait() == 77:
                return
            assert line == "ready\n", line
            alive.append({pid for pid in processes(s.processes[0].pid, "media-av") if state_of(pid) != "Z"})
            p.stdin.write("\n")
            p.stdin.flush()
        assert p.wait() == 0
        assert alive[0] and alive[0] <= alive[1], alive


def a_reset_forgets_the_encoder_of_the_stream_before():
    """libavcodec decodes Xvid's streams with another transformation, which it keeps for the next stream if it is not told."""
    files = make_other(4)
    stream, packets = (Path(FOLDER.name) / f"xvid.{kind}" for kind in ("m4v", "packets"))
    done = ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25", "-frames:v", 14, "-pix_fmt", "yuv420p",
                  "-c:v", "libxvid", "-f", "m4v", stream)
    if not files or done.returncode:
        return "skipped: ffmpeg has no Xvid here"
    write_packets(packets, packets_of(stream, "m4v"))
    with servers(1, "--media=on", "--backend=media") as s:
        done = subprocess.run([DECODER, "mpeg4", *files, *map(str, size_of(4)), "seek"], input="\n\n", text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                              env=daemon.client_env(at(s.ports[0]), SYSTEM_DECODER_BEFORE=str(packets)))
        assert done.returncode in (0, 77), done


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


# --- Sources --------------------------------------------------------------------------------------

RAW = 100  # the codec of pictures


def film(container):
    """A file in a container; ffmpeg's units of it, in the byte stream format."""
    path, plain = (Path(FOLDER.name) / f"film.{kind}" for kind in (container, f"{container}.h264"))
    if not path.exists():
        done = ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25", "-f", "lavfi", "-i", "sine",
                      "-frames:v", 15, "-shortest", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "5", path)
        assert done.returncode == 0, done.stdout
        done = ffmpeg("-i", path, "-map", "0:v", "-c", "copy", "-bsf:v", "h264_mp4toannexb", "-f", "h264", plain)
        assert done.returncode == 0, done.stdout
    return path, plain.read_bytes()


def read(where, name, flags, count=1000, to="units"):
    """The units of a source, and a line of words for each."""
    path = Path(FOLDER.name) / to
    done = daemon.run([READER, name, str(flags), str(count), str(path)], where)
    if done.returncode == 77:
        print("skipped: there are no sources here")
        sys.exit(77)
    assert done.returncode == 0, done.stdout + done.stderr
    found, data, place = [], path.read_bytes(), 0
    while place < len(data):
        size = struct.unpack_from("<I", data, place)[0]
        found.append(data[place + 4:place + 4 + size])
        place += 4 + size
    return found, [[int(word) for word in line.split()] for line in done.stdout.splitlines()]


def with_sources(*more):
    graph = f"lavfi:testsrc2=size={WIDTH}x{HEIGHT}:rate=25:duration=0.4,format=yuv420p"
    return servers(1, "--media=on", "--backend=media", *(f"--media-source=film-{kind}={film(kind)[0]}"
                                                         for kind in ("mp4", "mkv", "ts")),
                   f"--media-source=test={graph}", "--media-source=gone=/nowhere/film.mp4", *more)


def units_of_files_are_those_of_ffmpeg():
    with with_sources() as s:
        for kind in ("mp4", "mkv", "ts"):
            found, words = read(at(s.ports[0]), f"film-{kind}", 4)
            assert len(found) == 15, f"{kind}: {len(found)}"
            assert b"".join(found) == film(kind)[1], kind
            assert all(w[:3] == [1, WIDTH, HEIGHT] for w in words), words
            assert [w[3] for w in words].count(1) == 3, words
            assert [w[4] for w in words] == [40 * i for i in range(15)], words
        assert "refused" not in s.log_text(), s.log_text()


def sources_of_libavfilter_give_pictures():
    with with_sources() as s:
        found, words = read(at(s.ports[0]), "test", 4)
        assert b"".join(found) == raw("yuv420p").read_bytes()
        assert all(w[:3] == [RAW, WIDTH, HEIGHT] for w in words), words


def clients_read_one_source_each_from_its_beginning():
    with with_sources() as s, concurrent.futures.ThreadPoolExecutor() as pool:
        both = [pool.submit(read, at(s.ports[0]), "film-mp4", 4, 1000, f"units.{i}") for i in range(2)]
        for one in both:
            assert b"".join(one.result()[0]) == film("mp4")[1]


def units_come_in_the_time_of_the_stream_and_again():
    """A slow machine only makes it longer."""
    with with_sources() as s:
        begin = time.monotonic()
        found, words = read(at(s.ports[0]), "film-mp4", 2, 20)  # in a loop of 15
        assert time.monotonic() - begin > 19 * 0.04, "too fast"
        assert len(found) == 20 and found[15:] == found[:5]
        assert all(b[4] - a[4] in (39, 40, 41) for a, b in zip(words, words[1:])), words


def streams_of_the_network_are_sources():
    """MPEG-TS over UDP, on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        url = "udp://127.0.0.1:{}".format(s.getsockname()[1])
    with servers(1, "--media=on", "--backend=media", f"--media-source=live={url}") as s, \
            subprocess.Popen(["ffmpeg", "-nostdin", "-loglevel", "error", "-re", "-f", "lavfi", "-i",
                              f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25", "-pix_fmt", "yuv420p", "-c:v", "libx264",
                              "-tune", "zerolatency", "-g", "10", "-f", "mpegts", url]) as sender:
        try:
            found, words = read(at(s.ports[0]), "live", 0, 10)
        finally:
            sender.kill()
        assert len(found) == 10 and all(w[:3] == [1, WIDTH, HEIGHT] for w in words), words
        assert all(unit.startswith((b"\0\0\1", b"\0\0\0\1")) for unit in found)
        assert "refused" not in s.log_text(), s.log_text()


def hosts_of_sources_have_names():
    """Behind the walls names are still resolved."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    path, plain = film("ts")
    handler = functools.partial(Quiet, directory=path.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        url = f"http://localhost:{web.server_port}/{path.name}"
        with servers(1, "--media=on", "--backend=media", f"--media-source=web={url}") as s:
            found, _ = read(at(s.ports[0]), "web", 4)
            assert b"".join(found) == plain
            assert "refused" not in s.log_text(), s.log_text()
        web.shutdown()


def a_file_that_is_gone_for_a_time_ends_no_loop():
    """Commands fail until it is there again."""
    path, away = (Path(FOLDER.name) / name for name in ("moved.mp4", "away.mp4"))
    shutil.copy(film("mp4")[0], path)
    with with_sources(f"--media-source=moved={path}") as s, \
            subprocess.Popen([READER, "moved", "moved"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=daemon.client_env(at(s.ports[0]))) as p:
        for old, new in ((path, away), (away, path)):
            line = p.stdout.readline()
            if not line and p.wait() == 77:
                return
            assert line == "ready\n", line
            old.rename(new)
            p.stdin.write("\n")
            p.stdin.flush()
        assert p.wait() == 0


def a_source_that_waits_does_not_hold_up_the_end_of_its_session():
    """It would wait for half a minute. Nor does its process outlive the session for so long."""
    with socket.create_server(("127.0.0.1", 0)) as silent, \
            servers(1, "--media=on", "--backend=media", "--log=debug",
                    "--media-source=silent=tcp://127.0.0.1:{}".format(silent.getsockname()[1])) as s, \
            subprocess.Popen([READER, "silent", "4", "1", "/dev/null"], env=daemon.client_env(at(s.ports[0]))) as p:
        silent.settimeout(claims.HANG_S)
        connection, _ = silent.accept()
        with connection:
            p.kill()
            server = s.processes[0].pid
            claims.wait_for(lambda: re.search(r"worker \d+ ended with status 0", s.log_text()), s.log_text)
            claims.wait_for(lambda: not processes(server, "media-io-source"), "the source's process is left")
        assert "which is over, goes on" not in s.log_text(), s.log_text()
        assert "stream is lost" not in s.log_text(), s.log_text()


def memory_of(pid):
    """The bytes of a process that it can write, and its arguments."""
    with open(f"/proc/{pid}/maps", encoding="ascii") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, rights = line.split()[:2]
            begin, end = (int(part, 16) for part in place.split("-"))
            if rights.startswith("rw") and end - begin < 1 << 30:  # not the shadow of a sanitizer
                try:
                    memory.seek(begin)
                    yield memory.read(end - begin)
                except OSError:
                    pass


def sessions_have_no_address_of_a_source():
    """Not even a session that reads its own process."""
    if os.geteuid():
        return "skipped: only root reads the memory of others"
    with with_sources() as s, subprocess.Popen([READER, "film-mp4", "lost"], text=True, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, env=daemon.client_env(at(s.ports[0]))) as p:
        assert p.stdout.readline() == "ready\n"
        workers = processes(s.processes[0].pid, "spancld-worker") + processes(s.processes[0].pid, "media-av")
        assert workers
        for pid in workers:
            assert not any(b"nowhere/film.mp4" in part for part in memory_of(pid)), pid
        p.kill()
    return ""


def processes_of_sources_have_walls():
    with with_sources() as s, subprocess.Popen([READER, "film-mp4", "lost"], text=True, stdin=subprocess.PIPE,
                                               stdout=subprocess.PIPE, env=daemon.client_env(at(s.ports[0]))) as p:
        assert p.stdout.readline() == "ready\n"
        found = [pid for name in ("media-io", "media-io-source") for pid in processes(s.processes[0].pid, name)]
        assert len(found) == 2, found
        for pid in found:
            status = Path(f"/proc/{pid}/status").read_text()
            assert "NoNewPrivs:\t1" in status and "Seccomp:\t2" in status, status
            assert "CapEff:\t0000000000000000" in status, status
            assert os.getpgid(pid) == pid
            others = b"nowhere/film.mp4" in Path(f"/proc/{pid}/cmdline").read_bytes()
            assert others == (Path(f"/proc/{pid}/comm").read_text() == "media-io\n"), pid
        p.kill()


def wrong_names_and_arguments_of_sources_are_refused():
    with with_sources() as s:
        done = daemon.run([READER, "film-mp4", "wrong"], at(s.ports[0]))
        assert done.returncode == 0, done.stdout + done.stderr
        done = daemon.run([READER, "gone", "4", "1", "/dev/null"], at(s.ports[0]))
        assert f"{FORMAT_NOT_SUPPORTED}, not 0" in done.stderr, done.stderr
    with servers(1, "--media=on", "--backend=media") as s:
        assert daemon.run([READER, "film-mp4", "wrong"], at(s.ports[0])).returncode == 77


def sources_that_are_wrong_start_no_server():
    for wrong, told in (("rtsp://u:secret@h/", "number 1 is not a name"), ("a b=/film", "number 1 is not a name"),
                        ("film=", "number 1 is not a name")):
        done = subprocess.run([BUILD / "bin/spancld", "--media=on", f"--media-source={wrong}"], text=True,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and told in done.stderr and "secret" not in done.stderr, done
    done = subprocess.run([BUILD / "bin/spancld", "--media=on", "--media-source=a=/b", "--media-source=a=/c"],
                          text=True, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2 and "two with the name a" in done.stderr, done


def the_server_warns_of_a_password_in_a_url():
    with servers(1, "--media=on", "--backend=media", "--media-source=door=rtsp://me:secret@127.0.0.1:9/") as s:
        assert "a URL of --media-source has a name or password" in s.log_text(), s.log_text()
        assert "secret" not in s.log_text(), s.log_text()


def killed_processes_of_sources_are_started_again():
    with with_sources() as s:
        server = s.processes[0].pid
        for name in ("media-io-source", "media-io"):  # the second one ends the first ones, too
            with subprocess.Popen([READER, "film-mp4", "lost"], text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, env=daemon.client_env(at(s.ports[0]))) as p:
                line = p.stdout.readline()
                assert line == "ready\n", line
                killed = processes(server, name)
                assert killed
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
                claims.wait_for(lambda: not processes(server, "media-io-source"), "a source's process is left")
                p.stdin.write("\n")
                p.stdin.flush()
                assert p.wait() == 0
        claims.wait_for(lambda: not processes(server, "media-io-source"), "a source's process is left")


# --- Sinks ----------------------------------------------------------------------------------------

GRAY = bytes([128]) * (WIDTH * HEIGHT * 3 // 2)  # a picture of writer.c's


class Sinks:
    """A server with sources, and a folder of sinks: NAME[,SETTING]... and the file's name in the folder, or a URL."""

    def __init__(self, *sinks):
        # pylint: disable-next=consider-using-with
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self.temporary.name)
        values = (sink if "://" in sink else sink.replace("=", f"={self.folder}/", 1) for sink in sinks)
        self.servers = with_sources(*(f"--media-sink={value}" for value in values), "--log=info")

    def __enter__(self):
        s = self.server = self.servers.__enter__()
        self.where = at(s.ports[0])
        return self

    def __exit__(self, *how):
        try:
            log = self.server.log_text().replace("Connection refused", "")
            faults = ("refused", "Sanitizer", "runtime error")
            assert how[0] or not any(fault in log for fault in faults), log
        finally:
            self.servers.__exit__(*how)
            self.temporary.cleanup()

    def write(self, *arguments):
        done = daemon.run([WRITER, *map(str, arguments)], self.where)
        if done.returncode == 77:
            print("skipped: there are no sinks here")
            sys.exit(77)
        assert done.returncode == 0, done.stdout + done.stderr + self.server.log_text()
        return done.stdout

    def program(self, *arguments):
        return subprocess.Popen([WRITER, *arguments], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                env=daemon.client_env(self.where))

    def files(self):
        return sorted(path.name for path in self.folder.iterdir())


def frames(path, *how):
    """The packets of a file as ffmpeg sees them: pts from the first one on in ms, size, hash."""
    done = ffmpeg("-i", path, "-map", "0:v", "-c", "copy", *how, "-f", "framemd5", "-")
    assert done.returncode == 0, done.stdout
    base = [int(n) for n in re.search(r"#tb 0: (\d+)/(\d+)", done.stdout).groups()]
    rows = [line.split(",") for line in done.stdout.splitlines() if not line.startswith("#")]
    first = min(int(row[2]) for row in rows)
    return [((int(row[2]) - first) * 1000 * base[0] // base[1], *(cell.strip() for cell in row[4:6])) for row in rows]


def ready(p):
    line = p.stdout.readline()
    assert line == "ready\n", line


def go_on(p):
    p.stdin.write("\n")
    p.stdin.flush()


def logs(server, text):
    """Wait for a line of media-io, which reaches the log through the supervisor."""
    claims.wait_for(lambda: text in server.log_text(), server.log_text)


def copied_streams_have_the_packets_of_their_source():
    """All bits and times are equal, also with B slices, in each container."""
    plain = ("-bsf:v", "h264_mp4toannexb")
    with Sinks("mkv=a.mkv", "mp4=a.mp4", "ts=a.ts", "stream=a.h264") as s:
        want = frames(film("mp4")[0], *plain)
        assert [w[0] for w in want] != sorted(w[0] for w in want), "the film has no B slices"
        for kind in ("mkv", "mp4"):
            s.write(kind, "copy", "film-mp4")
            assert frames(s.folder / f"a.{kind}", *plain) == want, kind
        s.write("stream", "copy", "film-mp4")
        assert (s.folder / "a.h264").read_bytes() == film("mp4")[1]
        s.write("ts", "copy", "film-mkv")
        same = Path(FOLDER.name) / "same.ts"
        assert ffmpeg("-i", film("mkv")[0], "-map", "0:v", "-c", "copy", same).returncode == 0
        assert [w[1:] for w in frames(s.folder / "a.ts")] == [w[1:] for w in frames(same)]


def decoded_pictures_are_written_exactly():
    with Sinks("y4m=a.y4m", "yuv=a.yuv", "nut=a.nut", "mkv=a.mkv") as s:
        pictures = Path(FOLDER.name) / "pictures.yuv"
        assert ffmpeg("-i", film("mp4")[0], "-map", "0:v", pictures).returncode == 0
        for kind in ("yuv", "y4m", "nut", "mkv"):
            s.write(kind, "decode", "film-mp4")
        assert (s.folder / "a.yuv").read_bytes() == pictures.read_bytes()
        back = Path(FOLDER.name) / "back.yuv"
        for kind in ("y4m", "nut", "mkv"):
            assert ffmpeg("-i", s.folder / f"a.{kind}", back).returncode == 0, kind
            assert back.read_bytes() == pictures.read_bytes(), kind


def encoded_packets_make_files():
    """ffmpeg decodes the file of each encoder and container without a complaint, at its rate."""
    with Sinks(*(f"{codec}-{kind}={codec}.{kind}" for codec in ENCODERS for kind in ("mkv", "mp4", "ts"))) as s:
        for codec in ENCODERS:
            for kind in ("mkv", "mp4", "ts"):
                if codec == "mjpeg" and kind == "ts":
                    continue
                done = daemon.run([WRITER, f"{codec}-{kind}", "encode", "test", codec], s.where)
                if done.returncode == 77:
                    continue
                assert done.returncode == 0, done.stderr
                path = s.folder / f"{codec}.{kind}"
                done = ffmpeg("-i", path, "-f", "null", "-")
                assert done.returncode == 0 and not done.stdout, done.stdout
                done = subprocess.run(["ffprobe", "-v", "error", "-count_packets", "-show_entries",
                                       "stream=codec_name,width,height,avg_frame_rate,nb_read_packets", "-of",
                                       "default=nk=1:nw=1", str(path)], stdout=subprocess.PIPE, text=True, check=True)
                want = {"h264": "h264", "hevc": "hevc", "mjpeg": "mjpeg"}[codec]
                assert done.stdout.split()[:5] == [want, str(WIDTH), str(HEIGHT), "25/1", "10"], done.stdout


def streams_go_to_the_network():
    """ffmpeg reads MPEG-TS over UDP and RTP on loopback."""
    def bound():
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver.bind(("127.0.0.1", 0))
        receiver.setblocking(False)
        return receiver

    with bound() as udp, bound() as rtp:
        ports = [r.getsockname()[1] for r in (udp, rtp)]
        with Sinks(f"udp=udp://127.0.0.1:{ports[0]}?pkt_size=1316",
                   f"rtp,format:rtp_mpegts=rtp://localhost:{ports[1]}", "ts=a.ts") as s:
            for kind, receiver, header in (("udp", udp, 0), ("rtp", rtp, 12)):
                s.write(kind, "copy", "film-mkv")
                received = b""
                try:
                    while True:
                        received += receiver.recv(65536)[header:]
                except BlockingIOError:
                    pass
                path = Path(FOLDER.name) / f"received.{kind}.ts"
                path.write_bytes(received)
                s.write("ts", "copy", "film-mkv")
                assert [f[1:] for f in frames(path)] == [f[1:] for f in frames(s.folder / "a.ts")], kind
                (s.folder / "a.ts").unlink()


def a_receiver_that_takes_nothing_ends_commands_alone():
    """Over TCP one receiver is gone, and the other one reads nothing."""
    with socket.create_server(("127.0.0.1", 0)) as silent, socket.create_server(("127.0.0.1", 0)) as closing:
        silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        urls = ["tcp://127.0.0.1:{}".format(r.getsockname()[1]) for r in (silent, closing)]
        with Sinks(f"silent,format:nut={urls[0]}", f"closing,format:nut={urls[1]}", "yuv=a.yuv") as s:
            closer = threading.Thread(target=lambda: closing.accept()[0].close())
            closer.start()
            count, end = s.write("closing", "full").split()
            assert int(end) < 0, end
            closer.join()
            count, end = s.write("silent", "full").split()
            assert int(count) and int(end) < 0, f"{count} {end}"
            logs(s.server, "sink silent can't be written: the receiver takes nothing")
            s.write("yuv", "raw", 2, 0)
            assert (s.folder / "a.yuv").read_bytes() == 2 * GRAY


def an_address_that_can_not_be_reached_opens_no_sink():
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        where = "127.0.0.1:{}".format(closed.getsockname()[1])
        with Sinks(f"tcp=tcp://{where}", f"rtsp=rtsp://{where}/a") as s:
            for name in ("tcp", "rtsp"):
                s.write(name, "raw", 1, FORMAT_NOT_SUPPORTED)
                logs(s.server, f"sink {name} can't be written: Connection refused")


def files_are_not_overwritten_unless_the_administrator_says_so():
    with Sinks("once=a.yuv", "again,overwrite=b.yuv", "many,files:3=c.%d.yuv", "empty=d.yuv", "link=e.yuv",
               "fifo=f.yuv", "folder=g.yuv", "nowhere=none/h.yuv", "skip,files:3=i.%d.yuv") as s:
        secret = s.folder / "secret"
        (s.folder / "e.yuv").symlink_to(secret)
        (s.folder / "d.yuv").touch()
        (s.folder / "g.yuv").mkdir()
        os.mkfifo(s.folder / "f.yuv")
        s.write("once", "raw", 2, 0)
        s.write("empty", "raw", 1, 0)
        for name in ("once", "empty", "link", "fifo", "folder", "nowhere"):
            s.write(name, "raw", 1, FORMAT_NOT_SUPPORTED)
        assert not secret.exists()
        s.write("again", "raw", 3, 0)
        s.write("again", "raw", 1, 0)
        for _ in range(3):
            s.write("many", "raw", 1, 0)
        s.write("many", "raw", 1, FORMAT_NOT_SUPPORTED)
        (s.folder / "i.1.yuv").symlink_to(secret)
        (s.folder / "i.2.yuv").mkdir()
        s.write("skip", "raw", 1, 0)
        s.write("skip", "raw", 1, FORMAT_NOT_SUPPORTED)
        assert not secret.exists()
        sizes = [(s.folder / f).stat().st_size // len(GRAY) for f in ("a.yuv", "b.yuv", "c.1.yuv", "c.2.yuv", "c.3.yuv",
                                                                         "i.3.yuv")]
        assert sizes == [2, 1, 1, 1, 1, 1], sizes
        assert len(s.files()) == 12, s.files()
        assert (s.folder / "a.yuv").stat().st_mode & 0o137 == 0


def a_sink_has_one_writer():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        with Sinks("file,overwrite=a.yuv", "many=b.%d.yuv",
                   "udp,format:nut=udp://127.0.0.1:{}".format(receiver.getsockname()[1])) as s:
            for name in ("file", "udp"):
                with s.program(name, "held") as p:
                    ready(p)
                    s.write(name, "raw", 1, FORMAT_NOT_SUPPORTED)
                    go_on(p)
                    assert p.wait() == 0
                s.write(name, "raw", 1, 0)
            assert (s.folder / "a.yuv").read_bytes() == GRAY
            with subprocess.Popen([READER, "film-mp4", "lost"], text=True, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE, env=daemon.client_env(s.where)) as reader:
                ready(reader)  # its process has the place of a process that wrote `file` or `udp`
                for name in ("file", "udp"):
                    s.write(name, "raw", 1, 0)
                reader.kill()
            with s.program("many", "held") as one, s.program("many", "held") as other:
                for p in (one, other):
                    ready(p)
                for p in (one, other):
                    go_on(p)
                    assert p.wait() == 0
            assert (s.folder / "b.1.yuv").read_bytes() == (s.folder / "b.2.yuv").read_bytes() == 2 * GRAY


def a_file_that_reaches_its_limit_is_complete():
    names = ("yuv", "nut", "mkv")
    with Sinks(*(f"{name},mib:1=a.{name}" for name in names)) as s:
        for name, file in ((name, f"a.{name}") for name in names):
            count, end = map(int, s.write(name, "full").split())
            assert end == 0 and 30 < count < 48, f"{count} {end}"
            assert (s.folder / file).stat().st_size <= 1 << 20
            back = Path(FOLDER.name) / "back.yuv"
            how = ("-f", "rawvideo", "-video_size", f"{WIDTH}x{HEIGHT}") if name == "yuv" else ()
            assert ffmpeg(*how, "-i", s.folder / file, back).returncode == 0
            assert back.read_bytes() == count * GRAY
            logs(s.server, f"sink {name} can't be written: its file has reached its limit")


def a_full_disk_ends_commands_alone():
    if os.geteuid():
        return "skipped: only root mounts"
    with tempfile.TemporaryDirectory() as folder:
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "spancl-test", folder], check=False).returncode:
            return "skipped: this root mounts nothing"
        try:
            with servers(1, "--media=on", "--backend=media", f"--media-sink=disk={folder}/a.yuv",
                         f"--media-sink=other,overwrite={FOLDER.name}/other.yuv") as s:
                done = daemon.run([WRITER, "disk", "full"], at(s.ports[0]))
                assert done.returncode == 0, done.stderr
                count, end = map(int, done.stdout.split())
                assert 0 < count < 12 and end < 0, done.stdout
                logs(s, "No space left on device")
                assert daemon.run([WRITER, "other", "raw", "1", "0"], at(s.ports[0])).returncode == 0
        finally:
            subprocess.run(["umount", folder], check=True)
    return ""


def a_session_that_ends_completes_its_file():
    """The session ends because its client is killed."""
    with Sinks("nut=a.nut") as s:
        with s.program("nut", "held") as p:
            ready(p)
            p.kill()
        server = s.server.processes[0].pid
        claims.wait_for(lambda: not processes(server, "media-io-sink"), "the sink's process is left")
        back = Path(FOLDER.name) / "back.yuv"
        assert ffmpeg("-i", s.folder / "a.nut", back).returncode == 0
        assert back.read_bytes() == GRAY


def killed_processes_of_sinks_are_started_again():
    with Sinks("yuv=a.%d.yuv") as s:
        server = s.server.processes[0].pid
        for name in ("media-io-sink", "media-io"):
            with s.program("yuv", "lost") as p:
                ready(p)
                killed = processes(server, name)
                assert killed
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
                claims.wait_for(lambda: not processes(server, "media-io-sink"), "a sink's process is left")
                go_on(p)
                assert p.wait() == 0
        assert [(s.folder / f"a.{i}.yuv").read_bytes() for i in range(1, 5)] == 4 * [GRAY], s.files()


def wrong_arguments_of_sinks_are_refused():
    with Sinks("good=a.mp4", "stream=b.h264", "mpeg2,format:mpeg2video=c.bin", "pieces,format:hls=d.m3u8",
               "image=e.png") as s:
        s.write("good", "wrong", "film-mp4")
        assert len(frames(s.folder / "a.mp4")) == 2
        for name in ("stream", "mpeg2", "pieces", "image"):  # pictures are not of the format, or it has several files
            s.write(name, "raw", 1, FORMAT_NOT_SUPPORTED)
        assert all((s.folder / f).stat().st_size == 0 for f in s.files() if f != "a.mp4"), s.files()
    with servers(1, "--media=on", "--backend=media") as s:
        assert daemon.run([WRITER, "good", "raw", "1", "0"], at(s.ports[0])).returncode == 77
    assert daemon.run([WRITER, "good", "raw", "1", "0"], None, SPANCL_MEDIA="on").returncode == 77


def damaged_units_and_many_streams_end_commands_alone():
    with Sinks("mkv,overwrite=a.mkv", "mp4,overwrite=a.mp4", "ts,overwrite=a.ts", "yuv,files:4=b.%d.yuv") as s:
        for kind in ("mkv", "mp4", "ts"):
            s.write(kind, "damage", "film-mp4")
        s.write("yuv", "many", 60)
        assert s.files() == ["a.mkv", "a.mp4", "a.ts", *(f"b.{i}.yuv" for i in range(1, 5))], s.files()
        s.write("mkv", "copy", "film-mp4")  # another session has a rate of its own
        assert len(frames(s.folder / "a.mkv")) == 15
        assert "stream is lost" not in s.server.log_text(), s.server.log_text()


def processes_of_sinks_have_walls_of_their_own():
    """A session does not know the path, and the process of a source may not write."""
    with Sinks("yuv=a.yuv") as s, s.program("yuv", "held") as p, \
            subprocess.Popen([READER, "film-mp4", "lost"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             env=daemon.client_env(s.where)) as reader:
        ready(p)
        ready(reader)
        server = s.server.processes[0].pid
        for name, bytes_max in (("media-io-sink", 1 << 30), ("media-io-source", 0)):
            [pid] = processes(server, name)
            limits = text_of(pid, "limits")
            assert re.search(rf"Max file size +{bytes_max} +{bytes_max} ", limits), limits
            assert (re.search(r"Max open files +3 +3 ", limits) is not None) == (name == "media-io-sink"), limits
            status = text_of(pid, "status")
            assert "NoNewPrivs:\t1" in status and "CapEff:\t0000000000000000" in status, status
        [pid] = processes(server, "media-io-sink")
        open_files = {os.readlink(f) for f in Path(f"/proc/{pid}/fd").iterdir()}
        mine = {f for f in open_files if f.startswith("/") and f != "/dev/null" and not f.endswith("(deleted)")}
        assert mine == {str(s.folder / "a.yuv")}, open_files
        if not os.geteuid():
            for pid in processes(server, "spancld-worker"):
                assert not any(f"{s.folder.name}/a.yuv".encode() in part for part in memory_of(pid)), pid
        for one in (p, reader):
            one.kill()


def sinks_that_are_wrong_start_no_server():
    for wrong in ("/srv/a.mp4", "a=", "a=film.mp4", "a,mib:0=/f.mp4", "a,over=/f.mp4", "a,files:3=/f.mp4",
                  "a,overwrite=/f.%d.mp4", "a=/%d/f.mp4", "a=/", "a,mib:1=udp://secret:1", "a,format:=/f.mp4", "a=file:f"):
        done = subprocess.run([BUILD / "bin/spancld", "--media=on", f"--media-sink={wrong}"], text=True,
                              stderr=subprocess.PIPE, check=False)
        assert done.returncode == 2 and "--media-sink: number 1 is not NAME" in done.stderr, done
        assert "secret" not in done.stderr, done


if __name__ == "__main__":
    if not shutil.which("ffmpeg") or not (BUILD / "lib/libspancl-media.so").exists():
        print("skipped: there is no ffmpeg here, or no module of decoders")
        sys.exit(77)
    sys.exit(claims.run(globals()))
