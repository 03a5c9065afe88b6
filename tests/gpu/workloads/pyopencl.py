"""pyopencl: its own tests, from its source package, with the installed package."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as xml
from multiprocessing.pool import ThreadPool

from readings import part, verdict
from settings import DEVICES, QUICK

FILES = ("test_wrapper", "test_arrays_in_structs") if QUICK else (
    "test_wrapper", "test_arrays_in_structs", "test_algorithm", "test_clmath", "test_clrandom",
    "test_enqueue_copy", "test_array")
# Devices over SpanCL have coarse-grained SVM only. test_get_info fails with images, which it leaves out for PoCL and
# Intel by their names.
NOT_COMPARED = ["test_fine_grain_svm", "test_get_info"]
# If drivers choose the addresses of shared virtual memory, only one server's device has it (docs/LIMITS.md).
if DEVICES > 1:
    NOT_COMPARED += ["test_coarse_grain_svm", "test_zero_size_svm_allocations", "test_arrays_with_svm_allocators"]
# Plugins of other packages may not fit this pytest.
ENV = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def folder():
    source = os.path.join(os.environ["BANK_SOURCES"], "pyopencl")
    return os.path.join(source, os.listdir(source)[0], "test")


def functions(name):
    """The test functions of a file."""
    with open(os.path.join(folder(), f"{name}.py"), encoding="utf-8") as source:
        return re.findall(r"^def (test_\w+)", source.read(), re.MULTILINE)


def run(name, function):
    """Run one function of a file, for each device, and return the report."""
    report = os.path.join(os.getcwd(), f"{name}.{function}.xml")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1",
                           f"--junit-xml={report}", f"{name}.py::{function}"], cwd=folder(), env=ENV,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{function}: status {done.returncode}: {done.stdout[-1500:]}")
    return xml.parse(report).getroot()


def note(name, report):
    """Record the outcomes. The name of a test contains its device's name, which differs natively."""
    for case in report.iter("testcase"):
        what = re.sub(r"<context factory for <[^>]*>>\d*|<pyopencl.Platform [^>]*>\d*", "it", case.get("name"))
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        if what.split("[")[0] not in NOT_COMPARED:
            verdict(f"{name} {what}", outcome)


# Most of the time goes to Python and to compilers, so the functions run at the same time.
with ThreadPool(max(1, min(8, (os.cpu_count() or 1) // 2))) as pool:
    started = [(f, t, pool.apply_async(run, (f, t))) for f in FILES for t in functions(f)]
    for f, t, ended in started:
        with part(f"{f} {t}"):
            note(f, ended.get())
