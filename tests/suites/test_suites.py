#!/usr/bin/env python3
"""Claims about compare and run-cts, on files and a binary made by hand (samples/)."""

import bz2
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SAMPLES = HERE / "samples"


def compare(*arguments):
    done = subprocess.run([sys.executable, HERE / "compare", *arguments], capture_output=True,
                          text=True, check=False)
    return done.returncode, done.stdout + done.stderr


class Compare(unittest.TestCase):
    def test_nothing_differs(self):
        status, text = compare(SAMPLES / "native.json", "--", SAMPLES / "native.json")
        self.assertEqual(status, 0)
        self.assertNotIn("→", text)
        self.assertRegex(text, r"api +4 +2 +0 +2 +0")

    def test_reads_what_the_cts_saves(self):
        status, text = compare(SAMPLES / "native.json", "--", SAMPLES / "cts.json")
        self.assertEqual(status, 1)
        self.assertIn("passes natively, not through SpanCL (1):\napi/two: pass → fail", text)
        self.assertIn("api/three: fail → skip", text)
        self.assertIn("api/four: timeout → not run", text)

    def test_a_test_that_does_not_end_in_a_log_has_crashed(self):
        status, text = compare(SAMPLES / "native.json", "--", SAMPLES / "test_api.log")
        self.assertEqual(status, 1)
        self.assertIn("api/two: pass → fail", text)
        self.assertIn("api/four: timeout → crash", text)
        self.assertNotIn("words", text)

    def test_sub_tests_of_piglit_count_for_themselves(self):
        status, text = compare(SAMPLES / "piglit-native.json", "--", SAMPLES / "piglit-spancl.json")
        self.assertEqual(status, 0)
        self.assertRegex(text, r"cl +5 +3 +1 +3 +1")
        self.assertIn("cl@program@execute@many/third: fail → crash", text)

    def test_packed_files(self):
        with tempfile.TemporaryDirectory() as folder:
            packed = pathlib.Path(folder) / "results.json.bz2"
            packed.write_bytes(bz2.compress((SAMPLES / "piglit-native.json").read_bytes()))
            status, text = compare(packed, "--", SAMPLES / "piglit-native.json")
        self.assertEqual((status, "→" in text), (0, False))

    def test_later_files_replace_earlier_ones(self):
        status, text = compare(SAMPLES / "native.json", "--", SAMPLES / "native.json",
                               SAMPLES / "cts.json")
        self.assertEqual(status, 1)
        self.assertNotIn("not run", text)
        self.assertIn("api/two: pass → fail", text)

    def test_markdown(self):
        _, text = compare("--markdown", SAMPLES / "native.json", "--", SAMPLES / "cts.json")
        self.assertIn("| api | 4 | 2 | 0 | 1 | 1 |", text)
        self.assertIn("- api/two: pass → fail", text)

    def test_what_is_no_result_file_is_named(self):
        for wrong in (HERE / "test_suites.py", SAMPLES / "nothing"):
            status, text = compare(wrong, "--", SAMPLES / "cts.json")
            self.assertEqual(status, 1)
            self.assertIn(str(wrong), text)
            self.assertNotIn("Traceback", text)


class Run(unittest.TestCase):
    def run_cts(self, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder) / "out.json"
            subprocess.run([sys.executable, HERE / "run-cts", "--out", out, *arguments,
                            SAMPLES / "binary"], check=True, stdout=subprocess.DEVNULL)
            results = json.loads(out.read_text())["results"]
        return {name: entry["result"] for name, entry in results.items()}

    def test_each_way_to_end(self):
        self.assertEqual(self.run_cts("--skip", "*/hangs"),
                         {"binary/passes": "pass", "binary/fails": "fail", "binary/skips": "skip",
                          "binary/crashes": "crash"})

    def test_a_hang_is_seen_as_one(self):
        self.assertEqual(self.run_cts("--only", "*/hangs", "--limit", "0.2"),
                         {"binary/hangs": "timeout"})


if __name__ == "__main__":
    unittest.main()
