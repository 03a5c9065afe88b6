"""ViennaCL: workloads/viennacl.cpp, built with the distribution's headers."""

import subprocess

from readings import figure, result
from settings import sized, times

done = subprocess.run(["viennacl", str(sized(1024, 64)), str(times(10))], stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, text=True, check=False)
print(done.stdout)
for line in done.stdout.splitlines():
    kind, _, rest = line.partition(" ")
    name, _, value = rest.rpartition(" ")
    if kind == "result":
        result(name, float(value))
    elif kind == "bits":
        result(name, value)
    elif kind == "ms":
        figure(name, float(value), "ms", smaller=True)
raise SystemExit(done.returncode)
