"""The bank's report: figures with their ratios, results with their counts, and the faults."""

import json


def _number(value):
    return "" if value is None else f"{value:.4g}" if abs(value) < 10000 else f"{value:,.0f}"


def _mean(values):
    values = [v for v in values if v is not None]
    return sum(values) / len(values) if values else None


class Report:
    """What the runs of each program said. `outcomes`: name → {"natives": [...], side: (Readings, Comparison)}."""

    def __init__(self, sides, machine):
        self.sides = sides
        self.machine = machine
        self.outcomes = {}
        self.skipped = {}

    def add(self, name, natives, others):
        self.outcomes[name] = {"natives": natives, "sides": others}

    def faults(self):
        return [f"{name} over {side}: {fault}" for name, o in self.outcomes.items()
                for side, (_, comparison) in o["sides"].items() for fault in comparison.faults]

    def figures(self):
        """Rows: program, figure, unit, native value, and for each side value and speed against native."""
        for name, o in self.outcomes.items():
            names = dict.fromkeys(f for n in (*o["natives"], *(r for r, _ in o["sides"].values())) for f in n.figures)
            for figure in names:
                found = [n.figures[figure] for n in (*o["natives"], *(r for r, _ in o["sides"].values()))
                         if figure in n.figures]
                native = _mean([n.figures.get(figure, {}).get("value") for n in o["natives"]])
                row = {"program": name, "figure": figure, "unit": found[0]["unit"], "native": native}
                for side, (readings, _) in o["sides"].items():
                    value = readings.figures.get(figure, {}).get("value")
                    row[side] = value
                    if native and value:
                        row[f"{side} speed"] = native / value if found[0]["smaller"] else value / native
                yield row

    def results(self):
        for name, o in self.outcomes.items():
            for side, (_, c) in o["sides"].items():
                yield {"program": name, "side": side, "same": c.same, "near": c.near, "better": c.better,
                       "not comparable": c.unsettled, "faults": c.faults}

    def json(self):
        return json.dumps({"machine": self.machine, "figures": list(self.figures()),
                           "results": list(self.results()), "left out": self.skipped}, indent=1)

    def _tables(self):
        """Two tables as rows of text."""
        used = [s for s in self.sides if s != "native"]
        head = ["program", "figure", "unit", "native", *(w for s in used for w in (s, "speed"))]
        figures = [head] + [
            [r["program"], r["figure"], r["unit"], _number(r["native"]),
             *(w for s in used for w in (_number(r.get(s)), _number(r.get(f"{s} speed"))))]
            for r in self.figures()]
        results = [["program", "over", "the native bits", "near", "not comparable", "better", "faults"]] + [
            [r["program"], r["side"], str(r["same"]), str(r["near"]), str(len(r["not comparable"])),
             str(len(r["better"])), str(len(r["faults"]))] for r in self.results()]
        return results, figures

    def text(self):
        parts = []
        for table in self._tables():
            widths = [max(map(len, column)) for column in zip(*table)]
            parts += ["  ".join(w.ljust(n) for w, n in zip(row, widths)).rstrip() for row in table] + [""]
        parts += [f"left out: {name}: {why}" for name, why in self.skipped.items()]
        for name, o in self.outcomes.items():
            for side, (_, c) in o["sides"].items():
                parts += [f"not comparable: {name} over {side}: {what}" for what in c.unsettled[:8]]
                if len(c.unsettled) > 8:
                    parts.append(f"not comparable: {name} over {side}: {len(c.unsettled) - 8} more")
        return "\n".join(parts + [f"FAULT: {fault}" for fault in self.faults()])

    def markdown(self):
        parts = [f"{self.machine}.", ""]
        for table in self._tables():
            parts.append("| " + " | ".join(table[0]) + " |")
            parts.append("|" + "---|" * len(table[0]))
            parts += ["| " + " | ".join(row) + " |" for row in table[1:]] + [""]
        return "\n".join(parts + [f"Left out: {name} ({why})." for name, why in self.skipped.items()]) + "\n"
