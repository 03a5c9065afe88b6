"""FluidX3D: a benchmark without a window. Lines "result NAME VALUE", if its setup prints them, are results."""

import os
import re
import subprocess

from readings import figure, result
from settings import DEVICES, sized, times

# For setups that read them. Several devices share one grid.
env = {**os.environ, "FLUIDX3D_GRID": str(sized(256, 32)), "FLUIDX3D_STEPS": str(times(1000, 20))}
done = subprocess.run(["FluidX3D", *map(str, range(DEVICES))], env=env, stdout=subprocess.PIPE,
                      stderr=subprocess.STDOUT, check=False)
text = done.stdout.decode(errors="replace")
print(text)
if done.returncode != 0:
    raise SystemExit(done.returncode)
peak = re.search(r"Peak MLUPs/s = (\d+)", text)
if not peak:
    raise SystemExit("FluidX3D printed no figure")
figure("lattice cells", float(peak[1]), "million a second")
for name, value in re.findall(r"^result (\S+) (\S+)\s*$", text, re.MULTILINE):
    result(name, value)
