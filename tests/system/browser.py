"""Drives headless Chromium over its DevTools protocol ("Chrome DevTools Protocol", over a WebSocket: RFC 6455)."""

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import tempfile
import urllib.parse
import urllib.request
from pathlib import Path

from claims import wait_for


def program():
    return shutil.which("chromium")


class Page:
    """A tab of the browser. Its methods wait for the browser's answer."""

    def __init__(self, address):
        at = urllib.parse.urlsplit(address)
        self.socket = socket.create_connection((at.hostname, at.port))
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall((f"GET {at.path} HTTP/1.1\r\nHost: {at.netloc}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                             f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        self.stream = self.socket.makefile("rb")
        assert b" 101 " in self.stream.readline()
        while self.stream.readline().strip():
            pass
        self.calls = 0

    def send(self, text):
        data, mask = text.encode(), os.urandom(4)
        size = struct.pack(">BQ", 0xff, len(data))  # a client's frames are masked
        self.socket.sendall(b"\x81" + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data)))

    def receive(self):
        text, last = b"", False
        while not last:
            head, size = self.stream.read(2)
            last = bool(head & 0x80)
            if size >= 126:
                size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
            text += self.stream.read(size)
        return json.loads(text)

    def call(self, method, **params):
        self.calls += 1
        self.send(json.dumps({"id": self.calls, "method": method, "params": params}))
        while (answer := self.receive()).get("id") != self.calls:
            pass  # events of the page
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def open(self, url):
        found = self.call("Page.navigate", url=url)
        assert "errorText" not in found, found

    def value(self, expression):
        """The value of an expression of JavaScript, or of its promise."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def picture(self, path):
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))


class Browser:
    """Chromium with one page. Its window has a size, so that pages can be looked at."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)

    def __enter__(self):
        self.process = subprocess.Popen(
            [program(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
             "--window-size=1600,1000", f"--user-data-dir={self.folder.name}"], stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        file = Path(self.folder.name) / "DevToolsActivePort"

        def port():
            assert self.process.poll() is None, "chromium ended"
            return file.exists() and file.read_text().split()

        number = wait_for(lambda: len(port() or ()) == 2 and port()[0], "chromium has no port")
        new = urllib.request.Request(f"http://127.0.0.1:{number}/json/new?about:blank", method="PUT")
        with urllib.request.urlopen(new) as answer:
            return Page(json.load(answer)["webSocketDebuggerUrl"])

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.folder.cleanup()
