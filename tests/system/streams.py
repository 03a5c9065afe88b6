#!/usr/bin/env python3
"""streams.py BUILD [NAME...]: claims about sources and sinks of the network (docs/MEDIA.md), with real servers and with
hostile ones, on loopback. tests/system/reader.c and writer.c are clients. Status 77: there is no ffmpeg here, or no
media-io."""

import concurrent.futures
import contextlib
import functools
import http.server
import os
import shutil
import socket
import subprocess
import sys
import threading
from pathlib import Path

import claims
import daemon
from daemon import BUILD, at, servers
sys.path.insert(0, str(Path(__file__).resolve().parent))  # bench has a media.py, too
from media import FOLDER, FORMAT_NOT_SUPPORTED, HEIGHT, READER, WIDTH, WRITER, ffmpeg, film, read  # noqa: E402

UNITS = 15  # of film


def free_port(kind=socket.SOCK_STREAM):
    with socket.socket(socket.AF_INET, kind) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(*command):
    """A sender, until the end."""
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                          text=True) as p:
        try:
            yield p
        finally:
            p.kill()


def sender(*arguments):
    return running("ffmpeg", "-nostdin", "-loglevel", "error", *arguments)


def protocols():
    """Those of this ffmpeg."""
    done = subprocess.run(["ffmpeg", "-hide_banner", "-protocols"], stdout=subprocess.PIPE, text=True, check=True)
    return set(done.stdout.split())


def listens(port):
    """A process waits on the port."""
    return any(line.split()[1].endswith(f":{port:04X}") and line.split()[3] in ("0A", "07")
               for table in ("tcp", "udp") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:])


def _await_listener(port, p):
    claims.wait_for(lambda: listens(port) or p.poll() is not None, "the sender does not listen")


def source(url, *more):
    return servers(1, "--media=on", "--backend=media", "--log=info", f"--media-source=net={url}", *more)


class Rest:
    """A client that reads until no unit comes."""

    def __init__(self, server):
        self.p = subprocess.Popen([READER, "net", "rest"], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                  env=daemon.client_env(at(server.ports[0])))

    def result(self):
        line = self.p.stdout.readline()
        if not line and self.p.wait() == 77:
            print("skipped: there are no sources here")
            sys.exit(77)
        return tuple(map(int, line.split()))

    def again(self):
        self.p.stdin.write("\n")
        self.p.stdin.flush()
        return self.result()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.p.stdin.close()
        self.p.wait(claims.HANG_S)
        self.p.stdout.close()


# --- Real servers ---------------------------------------------------------------------------------

@contextlib.contextmanager
def rtsp_server(path, transport="TCP"):
    """None: GStreamer has no RTSP server here. The distribution's Python may have it where another one runs this."""
    for python in (sys.executable, "/usr/bin/python3"):
        if Path(python).exists():
            with running(python, Path(__file__).with_name("rtsp_server.py"), path, transport) as p:
                port = p.stdout.readline()
                if port:
                    yield p, f"rtsp://127.0.0.1:{int(port)}/film"
                    return
    yield None


def units_of_an_rtsp_server_are_those_of_its_file():
    """Over TCP, which loses nothing."""
    with rtsp_server(film("mkv")[0]) as found:
        if not found:
            return "skipped: no RTSP server of GStreamer"
        with source(found[1]) as s:
            path = Path(FOLDER.name) / "rtsp.h264"
            done = ffmpeg("-rtsp_transport", "tcp", "-i", found[1], "-map", "0:v", "-c", "copy", path)
            assert done.returncode == 0, done.stdout
            units, words = read(at(s.ports[0]), "net", 4)
            assert len(units) == UNITS and b"".join(units) == path.read_bytes()
            assert all(w[:3] == [1, WIDTH, HEIGHT] for w in words), words
            assert "refused" not in s.log_text(), s.log_text()
    return ""


def units_of_an_rtsp_server_come_over_udp():
    """From one that refuses TCP. Datagrams may be lost."""
    with rtsp_server(film("mkv")[0], "UDP") as found:
        if not found:
            return "skipped: no RTSP server of GStreamer"
        with source(found[1]) as s:
            units, _ = read(at(s.ports[0]), "net", 4, UNITS // 2)
            assert len(units) == UNITS // 2
            assert "refused" not in s.log_text(), s.log_text()
    return ""


def rtp_is_asked_for_over_the_connection_first():
    """A server that describes a stream of H.264 sees the transport of the first SETUP."""
    description = "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\n"
    with Sender() as there, source(there.url.replace("tcp", "rtsp") + "/film") as s, concurrent.futures.ThreadPoolExecutor() as pool:
        client = pool.submit(daemon.run, [READER, "net", "4", "1", "/dev/null"], at(s.ports[0]))
        with there.accept() as connection, connection.makefile("rw", newline="\r\n") as peer:
            while True:
                lines = [line.strip() for line in iter(peer.readline, "\r\n")]
                if lines[0].startswith("SETUP"):
                    break
                number = next(line for line in lines if line.startswith("CSeq"))
                body = description if lines[0].startswith("DESCRIBE") else ""
                kind = "Content-Type: application/sdp\r\n" if body else ""
                peer.write(f"RTSP/1.0 200 OK\r\n{number}\r\n{kind}Content-Length: {len(body)}\r\n\r\n{body}")
                peer.flush()
        assert any("RTP/AVP/TCP" in line for line in lines), lines
        assert f"{FORMAT_NOT_SUPPORTED}, not 0" in client.result().stderr


# How ffmpeg serves the film: what it needs of libavformat, the film's container, options, and the URL.
SERVERS = (
    ("tcp", "ts", ("-f", "mpegts"), "tcp://127.0.0.1:{}?listen=1", "tcp://127.0.0.1:{}", socket.SOCK_STREAM),
    ("srt", "ts", ("-f", "mpegts"), "srt://127.0.0.1:{}?mode=listener&transtype=live", "srt://127.0.0.1:{}", socket.SOCK_DGRAM),
    ("rtmp", "mp4", ("-f", "flv", "-listen", "1"), "rtmp://127.0.0.1:{}/live/film", "rtmp://127.0.0.1:{}/live/film",
     socket.SOCK_STREAM),
    ("http", "ts", ("-f", "mpegts", "-listen", "1"), "http://127.0.0.1:{}", "http://127.0.0.1:{}", socket.SOCK_STREAM),
)


def units_of_servers_of_ffmpeg_are_those_of_its_file():
    """SRT gives up what it has not delivered when the sender ends, so ffmpeg sends the film twice."""
    told = []
    for name, container, how, there, here, kind in SERVERS:
        if name not in protocols():
            continue
        port = free_port(kind)
        with sender("-re", "-stream_loop", "1", "-i", film(container)[0], "-map", "0:v", "-c", "copy", *how,
                    there.format(port)) as p, source(here.format(port)) as s:
            _await_listener(port, p)
            units, _ = read(at(s.ports[0]), "net", 4, UNITS)
            assert b"".join(units) == film(container)[1], (name, len(units), s.log_text())
            assert "refused" not in s.log_text(), s.log_text()
        told.append(name)
    return ", ".join(told)


def datagrams_of_ffmpeg_bring_the_units_of_its_file():
    """And when they stop, commands say that no unit came."""
    def one(name, container):
        url = f"{name}://127.0.0.1:{free_port(socket.SOCK_DGRAM)}"
        with sender("-re", "-stream_loop", "-1", "-i", film("ts")[0], "-map", "0:v", "-c", "copy", "-f", container, url) as p, \
                source(url) as s:
            units, _ = read(at(s.ports[0]), "net", 4, 2 * UNITS, f"units.{name}")
            wrong = [i for i, unit in enumerate(units) if unit not in film("ts")[1]]
            assert len(units) == 2 * UNITS and not wrong, (name, wrong)
            count = _dies(p, s, 1)
            assert "refused" not in s.log_text(), s.log_text()
            return f"{name}: {count} units"

    film("ts")
    with concurrent.futures.ThreadPoolExecutor() as pool:
        return ", ".join(pool.map(one, ("udp", "rtp"), ("mpegts", "rtp_mpegts")))


# --- Sinks ----------------------------------------------------------------------------------------

# How ffmpeg receives a stream: what it needs of libavformat, the sink's URL, and options with another URL.
RECEIVERS = (
    ("tcp", "tcp://127.0.0.1:{}", ("-f", "mpegts", "-i", "tcp://127.0.0.1:{}?listen=1"), socket.SOCK_STREAM),
    ("srt", "srt://127.0.0.1:{}?linger=5", ("-f", "mpegts", "-i", "srt://127.0.0.1:{}?mode=listener"), socket.SOCK_DGRAM),
    ("rtmp", "rtmp://127.0.0.1:{}/live/film", ("-listen", "1", "-i", "rtmp://127.0.0.1:{}/live/film"), socket.SOCK_STREAM),
    ("rtsp", "rtsp://127.0.0.1:{}/film", ("-rtsp_flags", "listen", "-i", "rtsp://127.0.0.1:{}/film"), socket.SOCK_STREAM),
)


def _pictures(path):
    done = ffmpeg("-i", path, "-map", "0:v", "-vsync", "passthrough", "-f", "rawvideo", Path(FOLDER.name) / "pictures.yuv")
    assert done.returncode == 0, done.stdout
    return (Path(FOLDER.name) / "pictures.yuv").read_bytes()


def receivers_of_ffmpeg_get_the_units_of_sinks():
    """The pictures are equal; some formats add delimiters or parameter sets to units. Without `linger` SRT gives up what
    it has not delivered when the sink is complete."""
    told = []
    for name, there, here, kind in RECEIVERS:
        if name not in protocols() | {"rtsp"}:
            continue
        port, path = free_port(kind), Path(FOLDER.name) / f"received.{name}.h264"
        with sender("-y", *(word.format(port) for word in here), "-map", "0:v", "-c", "copy", path) as p, \
                servers(1, "--media=on", "--backend=media", "--log=info", f"--media-source=film={film('mkv')[0]}",
                        f"--media-sink=net={there.format(port)}") as s:
            _await_listener(port, p)
            done = daemon.run([WRITER, "net", "copy", "film"], at(s.ports[0]))
            assert done.returncode == 0, (name, done.stdout, done.stderr, s.log_text())
            assert p.wait(claims.HANG_S) == 0 and _pictures(path) == _pictures(film("mkv")[0]), (name, s.log_text())
            assert "refused" not in s.log_text(), s.log_text()
        told.append(name)
    return ", ".join(told)


# --- Senders that stall and die -------------------------------------------------------------------

def long_film():
    """A file of MPEG-TS, and its number of units. libavformat knows such a stream before its middle."""
    path, count = Path(FOLDER.name) / "long.ts", 200
    if not path.exists():
        done = ffmpeg("-f", "lavfi", "-i", f"testsrc2=size={WIDTH}x{HEIGHT}:rate=25", "-frames:v", count, "-pix_fmt",
                      "yuv420p", "-c:v", "libx264", "-tune", "zerolatency", "-g", "10", path)
        assert done.returncode == 0, done.stdout
    return path, count


class Sender:
    """A server of TCP for one client, which sends what it is told."""

    def __init__(self):
        self.server = socket.create_server(("127.0.0.1", 0))
        self.server.settimeout(claims.HANG_S)
        self.url = "tcp://127.0.0.1:{}".format(self.server.getsockname()[1])

    def accept(self):
        return self.server.accept()[0]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.close()


def a_sender_that_stalls_goes_on_later():
    """Even in the middle of a packet of MPEG-TS. Commands meanwhile say that no unit came."""
    path, count = long_film()
    data = path.read_bytes()
    half = len(data) // 2 // 188 * 188 + 100
    with Sender() as there, source(there.url) as s, Rest(s) as client:
        with there.accept() as connection:
            connection.sendall(data[:half])
            first, status = client.result()
            assert status == 1, status
            assert client.again() == (0, 1)
            connection.sendall(data[half:])
        later, status = client.again()
        assert (first + later, status) == (count, 2), (first, later, status)


def a_server_that_dies_ends_the_stream():
    """In the middle, over each protocol that has a connection. ffmpeg sends without an end, until it is killed."""
    def one(served):
        name, container, how, there, here, kind = served
        port = free_port(kind)
        with sender("-re", "-stream_loop", "-1", "-i", film(container)[0], "-map", "0:v", "-c", "copy", *how,
                    there.format(port)) as p, source(here.format(port)) as s:
            _await_listener(port, p)
            return f"{name}: {_dies(p, s)} units"

    wanted = [served for served in SERVERS if served[0] in protocols()]
    for container in {served[1] for served in wanted}:
        film(container)
    with concurrent.futures.ThreadPoolExecutor(len(SERVERS)) as pool:
        return ", ".join(pool.map(one, wanted))


def _dies(p, server, end=2):
    """The units that came from the sender `p`, which is killed meanwhile. `end`: what commands then say."""
    threading.Timer(4, p.kill).start()
    with Rest(server) as client:
        count, status = client.result()
        while status == 1 != end:
            more, status = client.again()
            count += more
        assert count and status == end, (count, status)
        assert client.again() == (0, end)
    assert "refused" not in server.log_text(), server.log_text()
    return count


def a_dead_rtsp_server_ends_the_stream():
    path = Path(FOLDER.name) / "long.mkv"
    assert ffmpeg("-i", long_film()[0], "-c", "copy", path).returncode == 0
    with rtsp_server(path) as found:
        if not found:
            return "skipped: no RTSP server of GStreamer"
        with source(found[1]) as s:
            return f"{_dies(found[0], s)} units"


# --- Hostile servers ------------------------------------------------------------------------------

def _answers(answer):
    """A server of TCP that sends this to each client, once it has read something if it waits."""
    def serve():
        while True:
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection, contextlib.suppress(OSError):
                data, wait = answer
                if wait:
                    connection.recv(4096)
                connection.sendall(data)

    server = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=serve, daemon=True).start()
    return server


@contextlib.contextmanager
def _web():
    """A server of HTTP that no source names, with the film; and the list of requests."""
    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    asked = []
    path, _ = film("ts")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=path.parent)) as web:
        threading.Thread(target=web.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{web.server_port}/{path.name}", asked
        finally:
            web.shutdown()


def playlists_of_http_are_followed():
    """HLS, as one server has it. The playlist's address redirects."""
    folder = Path(FOLDER.name)
    done = ffmpeg("-i", film("mkv")[0], "-map", "0:v", "-c", "copy", "-f", "hls", "-hls_time", "0.2", "-hls_playlist_type", "vod",
                  folder / "film.m3u8")
    assert done.returncode == 0, done.stdout
    with _web() as (url, asked):
        there = url.replace("film.ts", "film.m3u8")
        with _answers((f"HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\n\r\n".encode(), True)) as other, \
                source("http://127.0.0.1:{}/a".format(other.getsockname()[1])) as s:
            units, _ = read(at(s.ports[0]), "net", 4)
            assert len(units) == UNITS and len(set(asked)) > 2, (len(units), asked)
            assert "refused" not in s.log_text(), s.log_text()


def hostile_streams_reach_nothing_else():
    """Neither a file that media-io itself can read, nor another server: by playlists, lists of files, descriptions of
    sessions and redirections."""
    path = film("ts")[0]

    def playlist(url):
        return f"#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n{url}\n#EXT-X-ENDLIST\n".encode()

    def redirect(url):
        return f"HTTP/1.1 302 Found\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n".encode()

    def found(data):
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.apple.mpegurl\r\nConnection: close\r\n\r\n" + data

    with _web() as (url, asked):
        file = f"file://{path}"
        # The scheme, what the server sends, and whether it waits for a request.
        cases = [("tcp", playlist(u), False) for u in (file, url, str(path), f"data:,{url}", f"concat:{path}", f"crypto+{url}",
                                                       f"subfile,,start,0,end,0,,:{path}")]
        cases += [("tcp", b"v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=video 9 RTP/AVP 33\r\n", False)]
        cases += [("tcp", f"ffconcat version 1.0\nfile '{u}'\n".encode(), False) for u in (file, url, str(path))]
        cases += [("tcp", f"<?xml version='1.0'?><MPD><Period><AdaptationSet><Representation id='1' mimeType='video/mp2t'>"
                          f"<BaseURL>{u}</BaseURL></Representation></AdaptationSet></Period></MPD>".encode(), False)
                  for u in (file, url)]
        cases += [("http", found(playlist(u)), True) for u in (file, str(path), f"concat:{path}", f"cache:{file}")]
        cases += [("http", redirect(u), True) for u in (file, str(path), f"tcp://{url[7:]}", f"concat:{path}")]
        cases += [("rtsp", b"RTSP/1.0 302 Found\r\nCSeq: 1\r\nLocation: " + u.encode() + b"\r\n\r\n", True)
                  for u in (file, url)]
        cases += [("rtmp", os.urandom(4096), True), ("tcp", os.urandom(1 << 20), False), ("http", os.urandom(4096), True),
                  ("rtsp", os.urandom(4096), True), ("rtsp", b"RTSP/1.0 200 OK\r\n" * 1000, True)]
        cases += [(f"{outer}:tcp", playlist(file), False) for outer in ("async", "concat", "subfile,,start,0,end,999,,")]
        hostile = [_answers(case[1:]) for case in cases]
        values = [f"--media-source=h{i}={case[0]}://127.0.0.1:{server.getsockname()[1]}/a"
                  for i, (case, server) in enumerate(zip(cases, hostile))]
        with servers(1, "--media=on", "--backend=media", f"--media-source=film={path}", *values) as s:
            for i, case in enumerate(cases):
                done = daemon.run([READER, f"h{i}", "4", "1", "/dev/null"], at(s.ports[0]))
                assert f"{FORMAT_NOT_SUPPORTED}, not 0" in done.stderr and not done.stdout, (case, done.stdout, done.stderr)
            read(at(s.ports[0]), "film", 4)
            assert "stream is lost" not in s.log_text(), s.log_text()
        for server in hostile:
            server.close()
        assert not asked, asked


if __name__ == "__main__":
    if not shutil.which("ffmpeg") or not (BUILD / "libexec/spancl/media-io").exists():
        print("skipped: there is no ffmpeg here, or no media-io")
        sys.exit(77)
    sys.exit(claims.run(globals()))
