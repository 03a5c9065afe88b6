"""The programs of the bank, and the packages that each needs. workloads/NAME.py runs one."""

from dataclasses import dataclass

LOADER = "ocl-icd-libopencl1"

# Python packages of general use, and their modules. A machine for machine learning has them.
BASE = {"numpy": "numpy", "scipy": "scipy", "narwhals": "narwhals", "pytest": "pytest", "pluggy": "pluggy",
        "iniconfig": "iniconfig", "packaging": "packaging", "pygments": "pygments", "markupsafe": "markupsafe",
        "opencv-python-headless": "cv2"}


@dataclass(frozen=True)
class Program:
    name: str
    what: str
    debian: tuple = ()  # Debian packages, beside the loader
    wheels: tuple = ()  # Python packages, beside BASE
    sdist: str = ""  # the Python package whose source has the tests
    binary: str = ""  # bin/NAME in the folder of packages
    several: bool = False  # the program takes more than one device


PYOPENCL = ("pyopencl", "pytools", "platformdirs", "siphash24", "typing-extensions")

PROGRAMS = (
    Program("hashcat", "its benchmark, and known passwords", several=True,
            debian=("hashcat", "hashcat-data", "libminizip1", "libxxhash0")),
    Program("clpeak", "all its measurements", debian=("clpeak",), several=True),
    Program("pyopencl", "its own tests", wheels=(*PYOPENCL, "mako"), sdist="pyopencl", several=True),
    Program("openmm", "its test of the installation; water with PME in single and mixed precision",
            wheels=("openmm",)),
    Program("opencv", "functions on UMat"),
    Program("lightgbm", "training of boosted trees", wheels=("lightgbm",)),
    Program("tinygrad", "training of a small network; a transformer", wheels=("tinygrad",)),
    Program("nengo", "a spiking network with nengo-ocl",
            wheels=(*PYOPENCL, "mako", "nengo", "nengo-ocl")),
    Program("pmcxcl", "photons in a cube", wheels=("pmcxcl",)),
    Program("viennacl", "solvers and products", binary="viennacl"),
    Program("vkfft", "its precision tests and a benchmark", binary="VkFFT_TestSuite"),
    Program("fluidx3d", "the lattice-Boltzmann benchmark", binary="FluidX3D", several=True),
)
