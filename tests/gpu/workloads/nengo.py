"""nengo-ocl: a network of spiking neurons that computes a product of two waves."""

import time

import nengo
import nengo_ocl
import numpy
import pyopencl

from readings import bits, figure, part, result
from settings import sized

neurons = sized(4000, 200)
with nengo.Network(seed=7919) as network:
    waves = nengo.Node(lambda t: [numpy.sin(6 * t), numpy.cos(9 * t)])
    pair = nengo.Ensemble(neurons, 2, radius=1.5)
    product = nengo.Ensemble(neurons // 2, 1)
    nengo.Connection(waves, pair)
    nengo.Connection(pair, product, function=lambda x: x[0] * x[1])
    decoded = nengo.Probe(product, synapse=0.03)
    spikes = nengo.Probe(pair.neurons[:50])

with part("simulation"):
    context = pyopencl.Context([pyopencl.get_platforms()[0].get_devices()[0]])
    with nengo_ocl.Simulator(network, context=context, progress_bar=False) as simulator:
        simulator.run(0.1)
        bits("spikes", simulator.data[spikes])
        result("product", simulator.data[decoded][::10, 0].tolist(), tolerance=1e-3)
        begin = time.perf_counter()
        span = sized(2.0, 0.05)
        simulator.run(span)
        figure("steps of 1 ms", span * 1000 / (time.perf_counter() - begin), "a second")
