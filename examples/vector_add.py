"""Vector addition: NumPy arrays go in and come back, one thread for each element."""

import numpy as np
from gallery import command_line
from numba import hip

SMALL = 5_003
THREADS = 256


@hip.jit
def add(x, y, out):
    i = hip.grid(1)
    if i < out.size:
        out[i] = x[i] + y[i]


def main(size: int = 5_000_003) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal(size, dtype=np.float32)
    y = rng.standard_normal(size, dtype=np.float32)
    out = np.zeros_like(x)

    blocks = -(-size // THREADS)
    add[blocks, THREADS](x, y, out)

    np.testing.assert_array_equal(out, x + y)
    print(f"vector add: {size:,} sums of float32, each equal to NumPy's")


if __name__ == "__main__":
    command_line.run(main)
