"""VkFFT: its precision test against FFTW, up to a size, and the time of some transforms."""

import re
import subprocess

from readings import figure, part, result
from settings import QUICK, sized, times

SYSTEM = re.compile(r"VkFFT System: (\S+) avg_difference: (\S+) max_difference: (\S+) avg_eps: (\S+) max_eps: (\S+)")
TIME = re.compile(r"avg_time_per_step: (\S+) ms")
SHAPES = ((1024,),) if QUICK else ((4096,), (1048576,), (4096, 4096), (256, 256, 256))


def precision():
    """The test goes on to sizes that take the processor's FFTW minutes; it ends after some."""
    wanted = sized(16, 2)
    with subprocess.Popen(["stdbuf", "-oL", "VkFFT_TestSuite", "-d", "0", "-vkfft", "11"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True) as process:
        for line in process.stdout:
            print(line, end="")
            found = SYSTEM.match(line)
            if found:
                # The input comes from rand(), which a driver in the same process calls, too.
                result(f"deviation from FFTW, {found[1]}", float(found[2]), tolerance=0.3, exact=False)
                wanted -= 1
                if not wanted:
                    break
        process.kill()
    if wanted:
        raise RuntimeError(f"the test ended with status {process.returncode}")


def benchmark(shape):
    batch = max(1, sized(2 ** 24, 2 ** 14) // shape[0]) if len(shape) == 1 else 1
    options = [word for axis, n in zip("XYZ", shape) for word in (f"-{axis}", str(n))]
    done = subprocess.run(["VkFFT_TestSuite", "-d", "0", "-benchmark_vkfft", *options, "-B", str(batch), "-N",
                           str(times(100, 3))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    print(done.stdout)
    found = TIME.search(done.stdout)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"status {done.returncode}: {done.stdout[-1500:]}")
    figure(f"{'×'.join(map(str, shape))}, {batch} at once", float(found[1]), "ms", smaller=True)


with part("precision"):
    precision()
for s in SHAPES:
    with part(f"transform of {s}"):
        benchmark(s)
