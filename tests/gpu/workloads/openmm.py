"""OpenMM: its test of the installation, and a box of water with PME in two precisions."""

import re
import subprocess
import sys
import time

import numpy
import openmm
from openmm import unit

from readings import bits, figure, part, result
from settings import sized, times

OXYGEN, HYDROGEN = 15.9994, 1.008
# TIP3P: charges, Lennard-Jones of oxygen, and the rigid shape in nm.
SPACING, BOND, HALF = 0.31075, 0.09572, 0.075695


def installation():
    """The test prints the median difference of the forces, if the platform computes any."""
    done = subprocess.run([sys.executable, "-m", "openmm.testInstallation"], stdout=subprocess.PIPE, text=True,
                          check=False)
    print(done.stdout)
    found = re.search(r"^Reference vs\. OpenCL: (\S+)", done.stdout, re.MULTILINE)
    if done.returncode != 0 or not found:
        raise RuntimeError(f"status {done.returncode}: {done.stdout[-1500:]}")
    result("forces against the reference platform's", float(found[1]), tolerance=0.2)


def water(side):
    """A cube of side³ molecules, turned at random, on a grid with water's density."""
    random = numpy.random.default_rng(7919)
    system = openmm.System()
    force = openmm.NonbondedForce()
    force.setNonbondedMethod(openmm.NonbondedForce.PME)
    force.setCutoffDistance(min(0.9, 0.49 * side * SPACING))
    positions = []
    depth = (BOND ** 2 - HALF ** 2) ** 0.5
    shape = numpy.array([[0, 0, 0], [HALF, depth, 0], [-HALF, depth, 0]])
    for cell in numpy.ndindex(side, side, side):
        turn, _ = numpy.linalg.qr(random.normal(size=(3, 3)))
        first = system.getNumParticles()
        for mass, charge, sigma, epsilon in ((OXYGEN, -0.834, 0.315075, 0.635968), (HYDROGEN, 0.417, 1, 0),
                                             (HYDROGEN, 0.417, 1, 0)):
            system.addParticle(mass)
            force.addParticle(charge, sigma, epsilon)
        for a, b, length in ((0, 1, BOND), (0, 2, BOND), (1, 2, 2 * HALF)):
            system.addConstraint(first + a, first + b, length)
            force.addException(first + a, first + b, 0, 1, 0)
        positions.extend(shape @ turn.T + SPACING * (numpy.array(cell) + 0.5))
    edge = side * SPACING
    system.setDefaultPeriodicBoxVectors((edge, 0, 0), (0, edge, 0), (0, 0, edge))
    system.addForce(force)
    return system, numpy.array(positions)


def simulate(system, positions, precision):
    integrator = openmm.VerletIntegrator(0.0005)
    context = openmm.Context(system, integrator, openmm.Platform.getPlatformByName("OpenCL"),
                             {"Precision": precision})
    context.setPositions(positions)

    def look(when, tolerance):
        state = context.getState(getEnergy=True, getForces=True, getPositions=True)
        forces = state.getForces(asNumpy=True).value_in_unit(unit.kilojoules_per_mole / unit.nanometer)
        bits(f"{precision}, forces {when}", forces)
        result(f"{precision}, strength of forces {when}", float(numpy.sqrt((forces ** 2).mean())), tolerance)
        result(f"{precision}, potential energy {when}",
               state.getPotentialEnergy().value_in_unit(unit.kilojoules_per_mole), tolerance)
        result(f"{precision}, kinetic energy {when}",
               state.getKineticEnergy().value_in_unit(unit.kilojoules_per_mole), tolerance)

    look("at first", 1e-5)
    context.setVelocitiesToTemperature(300, 7919)
    integrator.step(20)
    look("after 20 steps", 1e-4)
    steps = times(1000, 20)
    integrator.step(steps)
    context.getState(getEnergy=True)
    best = 0
    for _ in range(3):
        seconds = timed(lambda: (integrator.step(steps), context.getState(getEnergy=True)))
        best = max(best, steps * 0.5e-6 * 86400 / seconds)
    figure(f"{precision}, PME, {system.getNumParticles()} particles", best, "ns/day at 0.5 fs")


def timed(action):
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


with part("installation"):
    installation()
box = water(sized(19, 6))
for kind in ("single", "mixed"):
    with part(kind):
        simulate(*box, kind)
