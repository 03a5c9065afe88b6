"""pmcxcl: photons from a point in a scattering cube."""

import numpy
import pmcxcl

from readings import bits, figure, part, result
from settings import sized, times

PHOTONS = sized(5_000_000, 20_000)


def run():
    return pmcxcl.run(nphoton=PHOTONS, vol=numpy.ones([60, 60, 60], dtype="uint8"), tstart=0, tend=5e-9, tstep=5e-9,
                      srcpos=[30, 30, 0], srcdir=[0, 0, 1], seed=7919,
                      prop=numpy.array([[0, 0, 1, 1], [0.005, 1, 0.01, 1.37]]))


with part("photons"):
    flux = numpy.asarray(run()["flux"])
    bits("flux", flux)
    result("sum of the flux", float(flux.astype(numpy.float64).sum()), tolerance=1e-3)
    result("flux along the axis", flux.reshape(60, 60, 60)[30, 30, ::6].astype(float).tolist(), tolerance=0.05)
    best = min(run()["stat"]["runtime"] for _ in range(times(3)))
    figure("photons", PHOTONS / best / 1e3, "million a second")
