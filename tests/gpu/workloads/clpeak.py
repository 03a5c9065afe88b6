"""clpeak: its measurements of each device. It checks nothing: it must measure the same here."""

import subprocess
import xml.etree.ElementTree as xml

from readings import figure, part, result
from settings import DEVICES, QUICK

TESTS = ["--compute-sp", "--kernel-latency"] if QUICK else []
SMALLER = ("us", "ns", "ms")


def measure(device):
    done = subprocess.run(["clpeak", "-p", "0", "-d", str(device), "--xml-file", f"{device}.xml", *TESTS],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    print(done.stdout)
    if done.returncode != 0:
        raise RuntimeError(f"status {done.returncode}: {done.stdout[-1500:]}")
    names = []
    for test in xml.parse(f"{device}.xml").getroot().findall(".//device/*"):
        unit = test.get("unit", "us")
        for value in [test] if not len(test) else test:
            try:
                number = float(value.text)
            except (TypeError, ValueError):
                continue
            name = test.tag if value is test else f"{test.tag}, {value.tag}"
            names.append(name)
            figure(name, number, unit, smaller=unit in SMALLER)
    result("measurements", names)


for d in range(DEVICES):
    with part(f"device {d}"):
        measure(d)
