"""Readings: results and figures that one run of a program leaves in a file, a JSON object a line.

A workload imports the functions below. The driver reads the file with `Readings`.
"""

import contextlib
import hashlib
import json
import os
import time
from dataclasses import dataclass, field


def _leave(kind, name, **more):
    with open(os.environ["BANK_READINGS"], "a", encoding="utf-8") as f:
        f.write(json.dumps({"kind": kind, "name": name, **more}) + "\n")


def result(name, value, tolerance=1e-5, exact=True):
    """A value that has to be the native one: text, a number, or a list of numbers. If two native runs differ,
    numbers may deviate by this share; unless `exact`, they may in any case."""
    _leave("result", name, value=value, tolerance=tolerance, exact=exact)


def bits(name, array):
    """The digest of an array's bytes as a result."""
    result(name, hashlib.sha256(array.tobytes()).hexdigest()[:16])


def verdict(name, outcome):
    """The outcome of a test that checks itself: passed, failed or skipped."""
    _leave("verdict", name, value=outcome)


def figure(name, value, unit, smaller=False):
    """A measurement. `smaller`: smaller is better."""
    _leave("figure", name, value=value, unit=unit, smaller=smaller)


@contextlib.contextmanager
def part(name):
    """A part of the workload; the others still run if it fails."""
    try:
        yield
    except Exception as e:  # pylint: disable=broad-except
        print(f"{name}: {type(e).__name__}: {e}", flush=True)
        _leave("failure", name, value=f"{type(e).__name__}: {str(e)[-2000:]}")


def fastest(action, times):
    """The shortest time of some calls, in seconds; the first call builds kernels and does not count."""
    action()
    best = float("inf")
    for _ in range(times):
        begin = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - begin)
    return best


@dataclass
class Readings:
    """One run: how it ended, and its readings. With several devices a result may have several values."""
    status: object = 0
    output: str = ""
    results: dict = field(default_factory=dict)
    tolerances: dict = field(default_factory=dict)
    verdicts: dict = field(default_factory=dict)
    figures: dict = field(default_factory=dict)
    failures: dict = field(default_factory=dict)

    def add(self, reading):
        kind, name, value = reading["kind"], reading["name"], reading["value"]
        if kind == "result":
            self.results.setdefault(name, []).append(value)
            self.tolerances[name] = reading["tolerance"], reading["exact"]
        elif kind == "verdict":
            self.verdicts.setdefault(name, []).append(value)
        elif kind == "figure":
            self.figures.setdefault(name, reading)
        else:
            self.failures[name] = value

    def read(self, path):
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                self.add(json.loads(line))
