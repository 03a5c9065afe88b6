"""tinygrad: training of a small convolutional network, and a transformer's block, on its OpenCL device."""

import os
import time

os.environ.update(DEV="CL", TRAINING="1")

import numpy  # noqa: E402
from tinygrad import Device, Tensor, TinyJit, nn  # noqa: E402

from readings import bits, figure, part, result  # noqa: E402
from settings import sized, times  # noqa: E402


class Network:
    """Two convolutions and a linear layer."""

    def __init__(self):
        self.first, self.second = nn.Conv2d(1, 8, 3), nn.Conv2d(8, 16, 3)
        self.last = nn.Linear(16 * 5 * 5, 10)

    def __call__(self, x):
        x = self.first(x).relu().max_pool2d(2)
        return self.last(self.second(x).relu().max_pool2d(2).flatten(1))


class Block:
    """Attention with a causal mask and a feed-forward layer, as in a transformer."""

    def __init__(self, width, heads):
        self.heads, self.size = heads, width // heads
        self.into, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.LayerNorm(width), nn.LayerNorm(width)

    def __call__(self, x):
        batch, length, width = x.shape
        parts = self.into(self.norms[0](x)).reshape(batch, length, 3, self.heads, self.size).permute(2, 0, 3, 1, 4)
        y = parts[0].scaled_dot_product_attention(parts[1], parts[2], is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        return x + self.down(self.up(self.norms[1](x)).gelu())


def images(count):
    """Ten kinds of stripes with noise."""
    random = numpy.random.default_rng(7919)
    kinds = random.integers(0, 10, count)
    x = numpy.arange(28)
    pictures = numpy.sin(x[None, :, None] * (kinds[:, None, None] + 1) / 7 + x[None, None, :] / 5)
    return (pictures + 0.3 * random.normal(size=pictures.shape)).astype(numpy.float32)[:, None], kinds


def train():
    batch, steps = sized(512, 32), times(100, 4)
    pictures, kinds = images(8 * batch)
    network = Network()
    optimizer = nn.optim.SGD(nn.state.get_parameters(network), lr=0.05, momentum=0.9)

    @TinyJit
    def step(x, y):
        optimizer.zero_grad()
        loss = network(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*optimizer.schedule_step())

    losses, begin = [], 0.0
    for i in range(steps + 3):  # three calls build the step
        if i == 3:
            begin = time.perf_counter()
        at = i % 8 * batch
        losses.append(step(Tensor(pictures[at:at + batch]), Tensor(kinds[at:at + batch].astype(numpy.int32))).item())
    figure("training", steps / (time.perf_counter() - begin), "steps/s")
    result("losses of the first steps", losses[:7], tolerance=1e-4)
    result("last loss", losses[-1], tolerance=0.05)
    bits("weights", network.last.weight.numpy())


def transformer():
    width, length, layers = sized((512, 256, 6), (64, 16, 1))
    blocks = [Block(width, 8) for _ in range(layers)]
    x = Tensor(numpy.random.default_rng(1).normal(size=(4, length, width)).astype(numpy.float32))

    @TinyJit
    def forward(x):
        return x.sequential(blocks).realize()

    out = forward(x).numpy()
    bits("transformer", out)
    result("transformer, strength", float(numpy.sqrt((out.astype(numpy.float64) ** 2).mean())))
    for _ in range(2):
        forward(x).numpy()
    repeats = times(50, 2)
    begin = time.perf_counter()
    for _ in range(repeats):
        forward(x).numpy()
    figure("transformer", repeats / (time.perf_counter() - begin), "passes/s")


if Device.DEFAULT != "CL":
    raise SystemExit(f"tinygrad chose {Device.DEFAULT}")
Tensor.manual_seed(7919)
with part("training"):
    train()
with part("transformer"):
    transformer()
