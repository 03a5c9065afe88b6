"""The comparison of one run over SpanCL with native runs of the same program."""

import json
from dataclasses import dataclass, field

SPREADS = 4  # so many times the native runs' difference is no fault


@dataclass
class Comparison:
    same: int = 0  # results that are the native ones, bit for bit
    near: int = 0  # results that are no further from the native ones than these are from each other
    unsettled: list = field(default_factory=list)  # natively not reproducible, and no numbers; or failing
    better: list = field(default_factory=list)  # tests that pass here and not natively
    faults: list = field(default_factory=list)

    def is_empty(self):
        """Was there nothing that could be a fault? A program may fail in all its parts natively."""
        return not (self.same or self.near or self.better or self.faults)


def _text(value):
    return json.dumps(value)


def _numbers(value):
    """A list of numbers, or None."""
    values = value if isinstance(value, list) else [value]
    return values if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values) else None


def _is_near(values, here, tolerance):
    """Is `here` no further from the native values than these allow?"""
    lists = [_numbers(v) for v in values]
    mine = _numbers(here)
    if mine is None or any(n is None or len(n) != len(mine) for n in lists):
        return False
    for m, *ns in zip(mine, *lists):
        allowed = max(SPREADS * (max(ns) - min(ns)), tolerance * max(map(abs, ns)))
        if not min(ns) - allowed <= m <= max(ns) + allowed:
            return False
    return True


def _compare_result(c, name, values, here, tolerance, exact):
    settled = len(set(map(_text, values))) == 1
    if settled and _text(here) == _text(values[0]):
        c.same += 1
    elif settled and exact:
        c.faults.append(f"{name}: {_text(here)[:200]}, natively {_text(values[0])[:200]}")
    elif any(_numbers(v) is None for v in values):
        c.unsettled.append(name)
    elif _is_near(values, here, tolerance):
        c.near += 1
    else:
        c.faults.append(f"{name}: {_text(here)[:200]}, natively " + " and ".join(_text(v)[:200] for v in values))


def _compare_verdict(c, name, values, here):
    if here == "passed" and set(values) != {"passed"}:
        c.better.append(name)
    elif set(values) == {here}:
        c.same += 1
    elif set(values) == {"passed"}:
        c.faults.append(f"{name}: {here}, natively passed")
    else:
        c.unsettled.append(name)


def compare(natives, run):
    """Compare the readings of a run with those of the native runs, one or more, which ended well."""
    c = Comparison()
    if run.status != 0:
        c.faults.append(f"status {run.status}: {run.output[-1500:]}")
    natively = {name for n in natives for name in n.failures}
    c.unsettled += [f"{name}, which fails natively" for name in natively]
    c.faults += [f"{name}: {text}" for name, text in run.failures.items() if name not in natively]
    missing = []
    for kind in ("results", "verdicts"):
        for name in dict.fromkeys(n for native in natives for n in getattr(native, kind)):
            values = [getattr(n, kind)[name][0] for n in natives if name in getattr(n, kind)]
            mine = getattr(run, kind).get(name)
            if len(values) < len(natives):
                c.unsettled.append(name)
            elif not mine:
                missing.append(name)
            for here in mine if mine and len(values) == len(natives) else ():
                if kind == "results":
                    _compare_result(c, name, values, here, *natives[0].tolerances[name])
                else:
                    _compare_verdict(c, name, values, here)
    if missing:
        c.faults.append(f"missing results, {len(missing)}: " + "; ".join(missing)[:500])
    return c
