#!/usr/bin/env python3
"""The bank's own judgement: which readings are faults, and how figures become ratios."""

import sys
import unittest

from comparison import compare
from readings import Readings
from report import Report


def run(status=0, failures=(), verdicts=None, exact=True, figures=None, **results):
    made = Readings(status=status)
    for name, value in results.items():
        made.add({"kind": "result", "name": name, "value": value, "tolerance": 1e-5, "exact": exact})
    for name, value in (verdicts or {}).items():
        made.add({"kind": "verdict", "name": name, "value": value})
    for name, (value, smaller) in (figures or {}).items():
        made.add({"kind": "figure", "name": name, "value": value, "unit": "s", "smaller": smaller})
    for name in failures:
        made.add({"kind": "failure", "name": name, "value": "broken"})
    return made


class Results(unittest.TestCase):
    def test_reproducible_results_are_compared_bit_for_bit(self):
        natives = [run(energy=-1.5, digest="ab"), run(energy=-1.5, digest="ab")]
        c = compare(natives, run(energy=-1.5, digest="ab"))
        self.assertEqual((c.same, c.faults), (2, []))
        c = compare(natives, run(energy=-1.5000000001, digest="ac"))
        self.assertEqual((c.same, len(c.faults)), (0, 2))

    def test_one_native_run_is_taken_for_reproducible(self):
        self.assertTrue(compare([run(energy=1.0)], run(energy=1.0000001)).faults)

    def test_the_native_spread_is_the_tolerance(self):
        natives = [run(energy=100.0, digest="ab"), run(energy=101.0, digest="cd")]
        c = compare(natives, run(energy=104.0, digest="ef"))
        self.assertEqual((c.near, c.unsettled, c.faults), (1, ["digest"], []))
        self.assertEqual(len(compare(natives, run(energy=106.0, digest="ef")).faults), 1)

    def test_inexact_results_have_their_tolerance_in_any_case(self):
        natives = [run(exact=False, energy=1.0)] * 2
        self.assertEqual(compare(natives, run(exact=False, energy=1.000001)).near, 1)
        self.assertTrue(compare(natives, run(exact=False, energy=1.001)).faults)

    def test_lists_are_compared_element_by_element(self):
        natives = [run(losses=[1.0, 2.0]), run(losses=[1.0, 2.1])]
        self.assertEqual(compare(natives, run(losses=[1.0, 2.3])).near, 1)
        self.assertTrue(compare(natives, run(losses=[1.1, 2.0])).faults)
        self.assertTrue(compare(natives, run(losses=[1.0])).faults)

    def test_numbers_that_are_none_are_equal_to_themselves(self):
        self.assertEqual(compare([run(mean=float("nan"))] * 2, run(mean=float("nan"))).same, 1)
        self.assertTrue(compare([run(mean=1.0), run(mean=1.5)], run(mean=float("nan"))).faults)

    def test_results_of_every_device_count(self):
        both = run(passwords="a")
        both.add({"kind": "result", "name": "passwords", "value": "b", "tolerance": 0, "exact": True})
        c = compare([run(passwords="a")] * 2, both)
        self.assertEqual((c.same, len(c.faults)), (1, 1))


class Runs(unittest.TestCase):
    def test_a_missing_result_is_a_fault(self):
        self.assertEqual(compare([run(energy=1)] * 2, run()).faults, ["missing results, 1: energy"])

    def test_a_run_that_fails_is_a_fault(self):
        self.assertTrue(compare([run()] * 2, run(status=1)).faults)
        self.assertTrue(compare([run()] * 2, run(status="none within 9 s")).faults)

    def test_a_part_that_fails_natively_is_not_comparable(self):
        self.assertTrue(compare([run()] * 2, run(failures=["double"])).faults)
        c = compare([run(failures=["double"])] * 2, run(failures=["double"]))
        self.assertEqual((len(c.unsettled), c.faults), (1, []))
        self.assertEqual(len(compare([run(failures=["double"])] * 2, run()).unsettled), 1)

    def test_a_program_that_fails_natively_in_all_parts_compares_nothing(self):
        self.assertTrue(compare([run(failures=["all"])] * 2, run(failures=["all"])).is_empty())
        self.assertFalse(compare([run(energy=1)] * 2, run(energy=2)).is_empty())
        self.assertFalse(compare([run(energy=1)] * 2, run(energy=1)).is_empty())

    def test_verdicts_may_be_better_and_not_worse(self):
        native = [run(verdicts={"a": "passed", "b": "failed", "c": "skipped"})] * 2
        c = compare(native, run(verdicts={"a": "passed", "b": "passed", "c": "failed"}))
        self.assertEqual((c.same, c.better, c.unsettled, c.faults), (1, ["b"], ["c"], []))
        for worse in ("failed", "skipped"):
            self.assertTrue(compare(native, run(verdicts={"a": worse, "b": "failed", "c": "skipped"})).faults)


class Ratios(unittest.TestCase):
    def test_a_speed_above_one_is_faster_than_native(self):
        natives = [run(figures={"rate": (9, False), "time": (1, True)}),
                   run(figures={"rate": (11, False), "time": (3, True)})]
        here = run(figures={"rate": (20, False), "time": (4, True)})
        report = Report(["native", "tcp"], "a machine")
        report.add("program", natives, {"tcp": (here, compare(natives, here))})
        self.assertEqual([(r["native"], r["tcp"], r["tcp speed"]) for r in report.figures()],
                         [(10, 20, 2.0), (2, 4, 0.5)])
        self.assertIn("| program | rate | s | 10 | 20 | 2 |", report.markdown())

    def test_faults_stand_in_the_report(self):
        natives = [run(energy=1)] * 2
        report = Report(["native", "tcp"], "a machine")
        report.add("program", natives, {"tcp": (run(energy=2), compare(natives, run(energy=2)))})
        self.assertEqual(report.faults(), ["program over tcp: energy: 2, natively 1"])
        self.assertIn("FAULT: program over tcp: energy", report.text())


if __name__ == "__main__":
    sys.exit(unittest.main())
