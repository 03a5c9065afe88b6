#!/usr/bin/env python3
"""The page of results: its index of entries and its tables of today's figures.

    bench/results.py                        write the index into bench/RESULTS.md
    bench/results.py --check                exit status 1 if that would change the page
    bench/results.py --commit ID FILE...    also write today's figures, from files of bench/run.py --json

The index has a row for each file in bench/results/: the date in its name, its heading, and its outcome. The outcome
is the comment `<!-- index: ... -->`, or the first sentence of the item "outcome". Files of one machine make one
table, which takes the place of the table of the same name; all other tables stay."""

import argparse
import datetime
import json
import re
import sys
from pathlib import Path

BENCH = Path(__file__).resolve().parent
PAGE = BENCH / "RESULTS.md"
ENTRIES = BENCH / "results"
COLUMNS = 110

NAME = re.compile(r"(\d{4}-\d\d-\d\d)-[a-z0-9-]+\.md$")
TRANSPORTS = {"tcp": "TCP", "unix": "Unix socket", "shm": "shared memory"}
UNITS = {"us": "µs", "MLUPs": "million cells a second"}


def shorten(text):
    """The first sentence, and no more than COLUMNS columns."""
    text = re.split(r"(?<=[a-z%)0-9])\. ", " ".join(text.split()), maxsplit=1)[0]
    text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text)
    return text if len(text) <= COLUMNS else text[:COLUMNS].rsplit(" ", 1)[0] + " …"


def outcome(text):
    """The outcome of an entry in one line; None if it states none."""
    match = re.search(r"<!-- index: (.*?) -->", text, re.S)
    if match:
        return " ".join(match.group(1).split())
    match = re.search(r"^- outcome: (.*?)(?=^- |^\s*$|\Z)", text, re.M | re.S)
    return shorten(match.group(1)) if match else None


def index():
    """The rows of the index, the newest entries first. ValueError: an entry has no date, heading or outcome."""
    dates = {}
    for path in sorted(ENTRIES.glob("*.md")):
        if path.name == "README.md":
            continue
        name = NAME.match(path.name)
        text = path.read_text()
        title = re.match(r"# (.+)\n", text)
        line = outcome(text)
        if not name or not title or not line:
            missing = "date in its name" if not name else "heading" if not title else "outcome"
            raise ValueError(f"{path.name} has no {missing}")
        superseded = " (superseded)" if re.search(r"^\*Superseded:", text, re.M) else ""
        row = f"| {name.group(1)} | [{title.group(1)}](results/{path.name}){superseded} | {line.replace('|', '/')} |"
        dates.setdefault(name.group(1), []).append(row)
    rows = [row for date in sorted(dates, reverse=True) for row in dates[date]]
    return "\n".join(["| date | entry | outcome |", "|---|---|---|", *rows])


def machine_of(results, name):
    """What the page calls the machine: `name`, or its CPU; and the CPUs that the run was restricted to."""
    machine = results["machine"]
    name = name or f"{machine['cpu'] or 'unknown CPU'}, {machine['cores']} cores"
    return f"{name}, on CPU {results['pin']}" if results.get("pin") else name


def floor_of(results):
    """The raw round trip and the raw streams of a run, as far as they were measured."""
    floor, parts = results["floor"], []
    trips = [f"{floor[key]['median']:.3g}" for key in ("tcp_round_trip", "tcp_round_trip_spinning") if key in floor]
    if trips:
        parts.append(f"raw round trip, blocking / spinning: {' / '.join(trips)} µs")
    streams = [f"{floor[key]['median']:.3g}" for key in (f"tcp_stream_{size}m" for size in (1, 16, 256))
               if key in floor]
    if streams:
        parts.append(f"raw streams: {' / '.join(streams)} GB/s")
    return "; ".join(parts)


def table(runs, commit):
    """The figures of one machine: a row for each goal, three columns for each run."""
    lines, names = [], []
    for results, date in runs:
        transport = TRANSPORTS.get(results["transport"], results["transport"])
        facts = [f"{transport}: commit {commit}, {date}, {results['rounds']} rounds", floor_of(results)]
        lines.append("- " + "; ".join(filter(None, facts)))
        names += [goal["goal"] for goal in results["goals"] if goal["goal"] not in names]
    units = {goal["goal"]: goal["unit"] for results, _ in runs for goal in results["goals"]}
    heads = [f"native | {TRANSPORTS.get(results['transport'], results['transport'])} | goal" for results, _ in runs]
    lines += ["", f"| | {' | '.join(heads)} |", "|---" * (1 + 3 * len(runs)) + "|"]
    for name in names:
        cells = []
        for results, _ in runs:
            goal = next((goal for goal in results["goals"] if goal["goal"] == name), None)
            if goal:
                sign = "≤" if goal["smaller"] else "≥"
                missed = "" if goal["met"] else ": missed"
                cells.append(f"{goal['native']:.4g} | {goal['value']:.4g} | {sign} {goal['limit']:.4g}{missed}")
            else:
                cells.append(" | | ")
        lines.append(f"| {name}, {UNITS.get(units[name], units[name])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def today(old, files, name, commit, date):
    """`old`, the tables of today's figures, with the tables of the machines in `files` replaced or added."""
    machines = {}
    for file in files:
        results = json.loads(file.read_text())
        day = date or datetime.date.fromtimestamp(file.stat().st_mtime).isoformat()
        machines.setdefault(machine_of(results, name), []).append((results, day))
    tables = dict(re.findall(r"^### ([^\n]+)\n\n(.*?)\s*(?=^### |\Z)", old, re.M | re.S))
    tables.update({machine: table(runs, commit) for machine, runs in machines.items()})
    return "\n\n".join(f"### {machine}\n\n{text}" for machine, text in tables.items())


def between(page, marker):
    """The text between the two lines of a marker, and its position. ValueError: the page does not have both."""
    match = re.search(rf"^<!-- {marker} begin.*? -->\n(.*?)^<!-- {marker} end -->$", page, re.M | re.S)
    if not match:
        raise ValueError(f"{PAGE.name} does not have both lines of the marker \"{marker}\"")
    return match.group(1), match.start(1), match.end(1)


def replace(page, marker, text):
    _, start, end = between(page, marker)
    return f"{page[:start]}\n{text}\n\n{page[end:]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE", help="results of bench/run.py --json")
    parser.add_argument("--check", action="store_true", help="write nothing, say whether the page is up to date")
    parser.add_argument("--commit", help="the commit that the files are of")
    parser.add_argument("--date", help="the day of the runs (default: the day on which each file was written)")
    parser.add_argument("--machine", help="name of the machine on the page (default: its CPU and number of cores)")
    args = parser.parse_args()
    if args.files and not args.commit:
        parser.error("--commit is needed, the files do not state it")

    old = PAGE.read_text()
    try:
        page = replace(old, "index", index())
        if args.files:
            tables = today(between(page, "today")[0], args.files, args.machine, args.commit, args.date)
            page = replace(page, "today", tables)
    except (ValueError, KeyError, OSError) as error:
        print(f"results.py: {error}", file=sys.stderr)
        return 1
    if args.check:
        if page != old:
            print("bench/RESULTS.md is not up to date, run bench/results.py")
        return int(page != old)
    PAGE.write_text(page)
    return 0


if __name__ == "__main__":
    sys.exit(main())
