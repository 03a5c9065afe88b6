#!/usr/bin/env python3
"""Reads a timeline (SPANCL_TRACE=FILE) and says where the time of copies between two servers goes.

A copy is a write on one server and the read of the next id on another. Times count from when the read's first
part was handed to the device of its server, which may have been before what it waits for was done. For example

    SPANCL_TRACE=/tmp/t.json lbm --size 256x256x512 --domains 2 --steps 30 && bench/copies.py /tmp/t.json
"""

import argparse
import json
import statistics
import sys

MOMENTS = [
    "read: last part handed to the device",
    "read: first part seen complete",
    "read: last part seen complete",
    "write: first part handed to the device",
    "write: last part handed to the device",
    "write: last part seen complete",
]


def load(path):
    """By (process, event): the times at which it was submitted, and seen complete."""
    submits, ends = {}, {}
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    for e in events:
        if e["ph"] != "X" or e["name"] not in ("submit", "complete"):
            continue
        times = submits if e["name"] == "submit" else ends
        # Completing includes the wait for the lock: it is seen at the end.
        at = e["ts"] + (e["dur"] if e["name"] == "complete" else 0)
        times.setdefault((e["pid"], e["args"]["event"]), []).append(at)
    return submits, ends


def copies(submits, ends):
    reads = {}
    for pid, event in submits:
        reads.setdefault(event, []).append(pid)
    for (pid, event), written in submits.items():
        for source in reads.get(event + 1, []):
            read, write = (source, event + 1), (pid, event)
            if source == pid or read not in ends or write not in ends:
                continue
            begin = min(submits[read])
            # Two commands whose ids follow one another only by chance.
            if min(written) < min(ends[read]) or len(written) != len(submits[read]):
                continue
            yield [t - begin for t in (max(submits[read]), min(ends[read]), max(ends[read]),
                                       min(written), max(written), max(ends[write]))]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline")
    found = list(copies(*load(parser.parse_args().timeline)))
    if not found:
        print("no copy between two servers", file=sys.stderr)
        return 1
    print(f"{len(found)} copies; µs: median, p10, p90")
    for i, name in enumerate(MOMENTS):
        at = sorted(c[i] for c in found)
        print(f"{name:<50}{statistics.median(at):>9.0f}{at[len(at) // 10]:>9.0f}"
              f"{at[len(at) * 9 // 10]:>9.0f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
