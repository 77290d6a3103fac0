"""saxpy, ``y = a * x + y``, on arrays that stay on the device from one launch to the next."""

import numpy as np
from gallery import command_line
from numba import hip

SMALL = 4_037
ROUNDS = 10
BLOCKS, THREADS = 512, 256


@hip.jit
def saxpy(a, x, y):
    # A grid-stride loop: right for any size of the grid.
    for i in range(hip.grid(1), y.size, hip.gridsize(1)):
        y[i] = a * x[i] + y[i]


def main(size: int = 4_000_037) -> None:
    rng = np.random.default_rng(2)
    x = rng.standard_normal(size, dtype=np.float32)
    y = rng.standard_normal(size, dtype=np.float32)
    a = np.float32(0.25)

    d_x = hip.to_device(x)
    d_y = hip.device_array_like(y)
    d_y.copy_to_device(y)
    for _ in range(ROUNDS):
        saxpy[BLOCKS, THREADS](a, d_x, d_y)
    result = d_y.copy_to_host()

    # The compiler may fuse a * x + y and round once, so this is close and not always equal.
    expected = y.astype(np.float64) + ROUNDS * float(a) * x
    np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-5)
    error = np.abs(result - expected).max()
    print(f"saxpy: {ROUNDS} rounds over {size:,} float32 on the device, at most {error:.1e} off float64")


if __name__ == "__main__":
    command_line.run(main)
