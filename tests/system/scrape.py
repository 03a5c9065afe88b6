"""Reading a server's metrics (spancld --metrics)."""

import re
import socket

NAME = r"[a-zA-Z_][a-zA-Z0-9_]*"
LABEL = NAME + r'="(?:[^"\\\n]|\\["\\n])*"'
SAMPLE = re.compile(rf"({NAME})(?:\{{({LABEL}(?:,{LABEL})*)\}})? ([0-9]+(?:\.[0-9]+)?)")
KINDS = ("counter", "gauge")


def address_in(log):
    """Where a server with --log info says that it serves metrics: a tuple or a path."""
    where = re.findall(r'metrics are served on ([^\s"]+)', log)[-1].removeprefix("unix:")
    host, _, port = where.rpartition(":")
    return where if where.startswith("/") else (host.strip("[]"), int(port))


def connect(where, timeout_s=30):
    kind = socket.AF_UNIX if isinstance(where, str) else socket.AF_INET
    s = socket.socket(kind, socket.SOCK_STREAM)
    s.settimeout(timeout_s)
    s.connect(where)
    return s


def request(where, text=b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", timeout_s=30):
    """The status and the body of one request."""
    with connect(where, timeout_s) as s:
        s.sendall(text)
        answer = b""
        while part := s.recv(65536):
            answer += part
    head, _, body = answer.decode().partition("\r\n\r\n")
    length = int(re.search(r"Content-Length: (\d+)", head).group(1))
    assert length == len(body), head
    return int(head.split()[1]), body


def parse(text):
    """{(name, labels): value}; the text must follow the exposition format."""
    samples, kinds, done = {}, {}, set()
    current = None
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, current, kind = line.split()
            assert kind in KINDS and current not in kinds, line
            assert (kind == "counter") <= current.endswith("_total"), line
            kinds[current] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match and match[1] == current, line
            key = (match[1], match[2] or "")
            assert key not in done, line
            done.add(key)
            samples[key] = float(match[3]) if "." in match[3] else int(match[3])
    return samples


def scrape(where):
    status, body = request(where)
    assert status == 200, body
    return parse(body)


class Missing(AssertionError):
    """There is no such series, perhaps not yet."""


def of(samples, name, *labels):
    """The sum of the metric's values that have all of these labels, as 'name="value"'."""
    found = [v for (n, has), v in samples.items() if n == name and all(x in has for x in labels)]
    if not found:
        raise Missing(name, labels, samples)
    return sum(found)
