"""Streams: chunks of an array travel to the device, through a kernel and back, each in order, side by side."""

import math

import numpy as np
from gallery import command_line
from numba import hip

CHUNKS = 8
SMALL = 1_000
BLOCKS, THREADS = 128, 128


@hip.jit
def normalise(x, out):
    for i in range(hip.grid(1), out.size, hip.gridsize(1)):
        out[i] = 1.0 / (1.0 + math.exp(-x[i]))


def main(size: int = 250_000) -> None:
    x = np.random.default_rng(4).normal(scale=3.0, size=(CHUNKS, size))
    result = np.zeros_like(x)

    streams = [hip.stream() for _ in range(CHUNKS)]
    for chunk, stream in enumerate(streams):
        d_x = hip.to_device(x[chunk], stream=stream)
        d_out = hip.device_array_like(d_x, stream=stream)
        normalise[BLOCKS, THREADS, stream](d_x, d_out)
        d_out.copy_to_host(result[chunk], stream=stream)
    for stream in streams:
        stream.synchronize()

    np.testing.assert_allclose(result, 1.0 / (1.0 + np.exp(-x)), rtol=1e-14)
    print(f"streams: {CHUNKS} chunks of {size:,} float64 on {CHUNKS} streams, equal to NumPy's within 1e-14")


if __name__ == "__main__":
    command_line.run(main)
