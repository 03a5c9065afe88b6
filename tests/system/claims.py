"""Runs the claims of a program: its functions with names of three words at least that need no argument."""

import inspect
import sys
import time
import traceback

HANG_S = 600  # a watchdog, not a claim about speed: with ThreadSanitizer on a busy host all takes long


def is_claim(f):
    name = getattr(f, "__name__", "_")
    return (inspect.isfunction(f) and f.__module__ == "__main__" and name[0] != "_" and name.count("_") >= 2
            and all(p.default is not p.empty or p.kind == p.VAR_POSITIONAL
                    for p in inspect.signature(f).parameters.values()))


def wait_for(condition, why):
    """Wait for what the condition returns, and return it. `why`: a text, or a function that returns it, for a failure."""
    deadline = time.monotonic() + HANG_S
    while not (found := condition()):
        assert time.monotonic() < deadline, why() if callable(why) else why
        time.sleep(0.05)
    return found


def run(names, chained=False):
    """PROGRAM BUILD [NAME...]: all of `names`, the program's globals(), or those. Returns the exit status. If the
    claims are chained, each needs those before it, and the first failure ends the run."""
    wanted = sys.argv[2:]
    bad = 0
    for claim in [f for f in names.values() if is_claim(f)]:
        if wanted and claim.__name__ not in wanted:
            continue
        begin = time.monotonic()
        try:
            remark = claim()
            print(f"ok    {claim.__name__} ({time.monotonic() - begin:.1f} s)"
                  + (f": {remark}" if remark else ""), flush=True)
        except Exception:  # pylint: disable=broad-except
            bad += 1
            print(f"FAIL  {claim.__name__}\n{traceback.format_exc()}", flush=True)
            if chained:
                break
    return 1 if bad else 0
