"""All examples, one after the other, on whatever device there is, and how long each took."""

import platform
import runpy
import sys
import time
from pathlib import Path

from numba import hip

HERE = Path(__file__).resolve().parent
EXAMPLES = ("vector_add", "saxpy_device_arrays", "mandelbrot", "streams", "posing")


def main() -> None:
    device = hip.get_current_device()
    print(f"device: {device.name} ({device.target}), numba.hip {hip.__version__}, Python {platform.python_version()}")
    start = time.perf_counter()
    for name in EXAMPLES:
        begin = time.perf_counter()
        # Each checks what it has computed against NumPy, and raises AssertionError if it differs.
        runpy.run_path(str(HERE / f"{name}.py"))["main"]()
        print(f"    took {time.perf_counter() - begin:.2f} s, compiling and checking included", flush=True)
    print(f"all {len(EXAMPLES)} examples computed and checked in {time.perf_counter() - start:.2f} s")


if __name__ == "__main__":
    sys.exit(main())
