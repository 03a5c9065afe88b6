"""The programs of the bank, and the packages that each needs. workloads/NAME.py runs one."""

from dataclasses import dataclass

LOADER = "ocl-icd-libopencl1"

# Python packages that a machine for machine learning has, and their modules.
USUAL = {"numpy": "numpy", "scipy": "scipy", "narwhals": "narwhals", "pytest": "pytest", "pluggy": "pluggy",
         "iniconfig": "iniconfig", "packaging": "packaging", "pygments": "pygments", "markupsafe": "markupsafe",
         "opencv-python-headless": "cv2"}


@dataclass(frozen=True)
class Program:
    name: str
    what: str
    debian: tuple = ()  # Debian packages, beside the loader
    wheels: tuple = ()  # Python packages with all that they need
    sdist: str = ""  # the Python package whose source has the tests
    binary: str = ""  # bin/NAME in the folder of packages
    several: bool = False  # the program takes more than one device


PYOPENCL = ("pyopencl", "pytools", "platformdirs", "siphash24", "typing-extensions", "numpy", "mako", "markupsafe")

PROGRAMS = (
    Program("hashcat", "its benchmark, and known passwords", several=True,
            debian=("hashcat", "hashcat-data", "libminizip1", "libxxhash0")),
    Program("clpeak", "all its measurements", debian=("clpeak",), several=True),
    Program("pyopencl", "its own tests", sdist="pyopencl", several=True,
            wheels=(*PYOPENCL, "pytest", "pluggy", "iniconfig", "packaging", "pygments")),
    Program("openmm", "its test of the installation; water with PME in single and mixed precision",
            wheels=("openmm", "numpy")),
    Program("opencv", "functions on UMat", wheels=("opencv-python-headless", "numpy")),
    Program("lightgbm", "training of boosted trees", wheels=("lightgbm", "numpy", "scipy", "narwhals")),
    Program("tinygrad", "training of a small network; a transformer", wheels=("tinygrad", "numpy")),
    Program("nengo", "a spiking network with nengo-ocl", wheels=(*PYOPENCL, "nengo", "nengo-ocl")),
    Program("pmcxcl", "photons in a cube", wheels=("pmcxcl", "numpy")),
    Program("viennacl", "solvers and products", binary="viennacl"),
    Program("vkfft", "its precision tests and a benchmark", binary="VkFFT_TestSuite"),
    Program("fluidx3d", "the lattice-Boltzmann benchmark", binary="FluidX3D", several=True),
)
