"""LightGBM: training with histograms on the device, in two precisions."""

import time

import lightgbm
import numpy

from readings import figure, part, result
from settings import sized, times

random = numpy.random.default_rng(7919)
data = random.normal(size=(sized(1_000_000, 10_000), 28)).astype(numpy.float32)
label = (data[:, 0] * data[:, 1] + numpy.sin(3 * data[:, 2]) + 0.3 * random.normal(size=len(data)) > 0).astype(int)


def train(double):
    parameters = {"objective": "binary", "device_type": "gpu", "gpu_use_dp": double, "num_leaves": 63, "max_bin": 63,
                  "seed": 7919, "deterministic": True, "num_threads": 4, "verbose": 1}
    name = "double" if double else "single"
    dataset = lightgbm.Dataset(data, label, params=parameters).construct()
    rounds = times(50, 5)
    begin = time.perf_counter()
    model = lightgbm.train(parameters, dataset, num_boost_round=rounds)
    figure(f"{name}, training", (time.perf_counter() - begin) / rounds * 1e3, "ms a tree", smaller=True)
    answers = model.predict(data[:10_000])
    # The device adds to histograms in no fixed order.
    known = label[:10_000]
    result(f"{name}, share of right answers", float(((answers > 0.5) == known).mean()), 0.01, exact=False)
    loss = -numpy.log(numpy.where(known, answers, 1 - answers)).mean()
    result(f"{name}, loss", float(loss), 0.01, exact=False)
    result(f"{name}, mean of predictions", float(answers.mean()), 0.01, exact=False)


for kind in (False, True):
    with part("double" if kind else "single"):
        train(kind)
