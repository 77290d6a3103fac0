"""A program written for CUDA: after one line that says so, `numba.cuda` is `numba.hip`."""

import numpy as np
from gallery import command_line
from numba import hip

hip.pose_as_cuda()

from numba import cuda  # noqa: E402 -- it has to come after posing

SMALL = 1_003


@cuda.jit
def add(x, y, out):
    i = cuda.threadIdx.x + cuda.blockIdx.x * cuda.blockDim.x
    if i < out.size:
        out[i] = x[i] + y[i]


def main(size: int = 1_000_003) -> None:
    x = cuda.to_device(np.arange(size, dtype=np.int64))
    y = cuda.to_device(np.arange(size, dtype=np.int64)[::-1])
    out = cuda.device_array_like(x)

    threads = 128
    add[(size + threads - 1) // threads, threads](x, y, out)
    cuda.synchronize()

    np.testing.assert_array_equal(out.copy_to_host(), np.full(size, size - 1))
    print(f"posing: {size:,} sums of int64 by a program that imports numba.cuda, each equal to NumPy's")


if __name__ == "__main__":
    command_line.run(main)
