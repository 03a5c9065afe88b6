#!/usr/bin/env python3
"""Reads a timeline (SPANCL_TRACE=FILE) and says what each hop of a command costs.

Only commands that were waited for one by one tell about hops: those whose completion the client completed
while a thread waited, with no other command between. For example

    SPANCL_TRACE=/tmp/t.json build/release/bin/bench_opencl --only empty && bench/hops.py /tmp/t.json
"""

import argparse
import bisect
import json
import statistics
import sys


class Spans:
    """Spans of one name in one process, by time."""

    def __init__(self, spans):
        self.by_begin = sorted(spans)
        self.by_end = sorted((end, begin, tid, value) for begin, end, tid, value in spans)

    def first_from(self, time):
        at = bisect.bisect_left(self.by_begin, (time,))
        return self.by_begin[at] if at < len(self.by_begin) else None

    def last_until(self, time):
        at = bisect.bisect_right(self.by_end, (time, float("inf")))
        if not at:
            return None
        end, begin, tid, value = self.by_end[at - 1]
        return begin, end, tid, value


def load(path):
    with open(path, encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    spans = {}
    for e in events:
        if e["ph"] != "X" or e["cat"] not in ("client", "link", "server"):
            continue
        value = next(iter(e["args"].values()))
        spans.setdefault((e["pid"] > 1, e["name"]), []).append(
            (e["ts"], e["ts"] + e["dur"], e["tid"], value))
    return spans


HOPS = [
    "enqueue: encode and leave it in the outbox",
    "until it is sent: API, decision to send",
    "send: the client's system call",
    "network, and the server's thread wakes",
    "server: receive, check, dispatch",
    "submit: the native clEnqueue*",
    "native: flush, execution, its callback thread",
    "complete: lock, bookkeeping, message",
    "send: the server's system call",
    "network, and the client's thread wakes",
    "client: receive and dispatch",
    "return to the application",
]


def hops_of(spans, enqueue, by_event):
    """The moments of one command in order; None: they can't be told."""
    begin, end, _, event = enqueue
    submit, complete, completed = (by_event[name].get(event) for name in ("submit", "complete", "completed"))
    if not submit or not complete or not completed:
        return None
    sent = spans[False, "send"].first_from(begin)
    got = spans[True, "receive"].last_until(submit[0])
    answer = spans[True, "send"].first_from(complete[0])
    back = spans[False, "receive"].last_until(completed[0])
    wait = spans[False, "wait"].by_end
    at = bisect.bisect_left(wait, (completed[0],))
    if not sent or not got or not answer or not back or at == len(wait):
        return None
    moments = [begin, min(end, sent[0]), sent[0], sent[1], got[0], submit[0], submit[1], complete[0],
               answer[0], answer[1], back[0], completed[0], wait[at][0]]
    moments[4] = max(got[0], sent[1])
    moments[10] = max(back[0], answer[1])
    return moments if moments == sorted(moments) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline")
    args = parser.parse_args()
    raw = load(args.timeline)
    by_event = {name: {} for name in ("submit", "complete", "completed")}
    for (_, name), list_of in raw.items():
        if name in by_event:
            by_event[name].update({s[3]: s for s in list_of})
    spans = {key: Spans(value) for key, value in raw.items()}
    for key in ((False, "send"), (True, "receive"), (True, "send"), (False, "receive"),
                (False, "wait")):
        spans.setdefault(key, Spans([]))
    found = [m for e in raw.get((False, "enqueue"), [])
             if (m := hops_of(spans, e, by_event)) is not None]
    if not found:
        print("no command that was waited for by itself", file=sys.stderr)
        return 1
    print(f"{len(found)} commands; µs: median, p10, p90")
    for i, name in enumerate(HOPS):
        took = sorted(m[i + 1] - m[i] for m in found)
        print(f"{name:<50}{statistics.median(took):>9.2f}{took[len(took) // 10]:>9.2f}"
              f"{took[len(took) * 9 // 10]:>9.2f}")
    took = sorted(m[-1] - m[0] for m in found)
    print(f"{'all':<50}{statistics.median(took):>9.2f}{took[len(took) // 10]:>9.2f}"
          f"{took[len(took) * 9 // 10]:>9.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
