"""Reads a timeline of SPANCL_TRACE and checks it against the format ("Trace Event Format"), with exact times."""

import collections
import json
from decimal import Decimal

KEYS = {
    "X": {"pid", "tid", "ts", "dur", "name", "cat", "args"},
    "M": {"pid", "name", "args"},
    "C": {"pid", "tid", "ts", "name", "args"},
    "i": {"pid", "tid", "ts", "name", "cat", "s"},
    "s": {"pid", "tid", "ts", "name", "cat", "id", "bp"},
    "t": {"pid", "tid", "ts", "name", "cat", "id", "bp"},
    "f": {"pid", "tid", "ts", "name", "cat", "id", "bp"},
}


def ns(us):
    value = us * 1000
    assert value == int(value) >= 0, us
    return int(value)


class Timeline:
    def __init__(self, path):
        self.text = path.read_text(encoding="utf-8")
        data = json.loads(self.text, parse_float=Decimal)
        assert set(data) == {"displayTimeUnit", "traceEvents", "otherData"}, set(data)
        self.events, self.other = data["traceEvents"], data["otherData"]
        self.processes, self.threads = {}, {}
        for e in self.events:
            if e["ph"] == "M" and e["name"] == "process_name":
                assert e["pid"] not in self.processes, e
                self.processes[e["pid"]] = e["args"]["name"]
            elif e["ph"] == "M":
                assert e["name"] == "thread_name" and (e["pid"], e["tid"]) not in self.threads, e
                self.threads[e["pid"], e["tid"]] = e["args"]["name"]
        self.slices = [e for e in self.events if e["ph"] == "X"]

    def validate(self):
        """Each event has what its phase needs and a row with a name, slices nest, and arrows are complete."""
        rows, flows = collections.defaultdict(list), collections.defaultdict(list)
        for e in self.events:
            assert KEYS[e["ph"]] <= set(e) <= KEYS[e["ph"]] | {"ph", "tid"}, e
            if e["ph"] == "M":
                continue
            assert e["pid"] in self.processes, e
            assert e["ph"] == "C" or (e["pid"], e["tid"]) in self.threads, e
            if e["ph"] == "X":
                rows[e["pid"], e["tid"]].append((ns(e["ts"]), -ns(e["dur"]), e))
            elif e["ph"] in "stf":
                flows[e["cat"], e["id"]].append((ns(e["ts"]), e))
        for row in rows.values():
            ends = []
            for begin, dur, e in sorted(row, key=lambda r: r[:2]):
                while ends and ends[-1] <= begin:
                    ends.pop()
                end = begin - dur
                assert not ends or end <= ends[-1], (e, ends)
                if dur:
                    ends.append(end)
        for points in flows.values():
            phases = [e["ph"] for _, e in points]
            assert phases.count("s") <= 1 and phases.count("f") <= 1, points
            for at, e in points:  # an arrow is bound to the slice around its point
                assert any(begin <= at <= begin - dur for begin, dur, _ in rows[e["pid"], e["tid"]]), e
        return flows

    def of(self, category, name=None):
        return [e for e in self.slices if e["cat"] == category and name in (None, e["name"])]

    def processes_of(self, kind):
        """The processes whose names contain this."""
        return [name for name in self.processes.values() if kind in name]

    def process(self, e):
        return self.processes[e["pid"]]
