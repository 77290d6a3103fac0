"""Long checks of the CPU device's math on this machine: its error over all float32, and its speed.

    python tools/check_math.py sweep [--every N] [--without-fma] [NAME ...]
    python tools/check_math.py speed [--without-fma] [NAME ...]

``sweep`` evaluates functions of one argument for every Nth float32 (default: every one) and prints the largest error in
units in the last place; its exit status tells whether all are within their bounds. ``speed`` prints nanoseconds per
element on one core beside NumPy's loops and a loop of calls to the C math library. ``--without-fma`` takes the
functions for processors that have no fused multiply-add; vectors are as long as this processor has them. Both need
NumPy and mpmath.
"""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from hip_devicelib.cpu import FUNCTIONS, MathFunction

sys.path.insert(0, str(Path(__file__).parents[1] / "packages/hip-devicelib/tests"))

from cpu_math_loops import FORMATS, Array, Loop, errors, loop, loop_around
from cpu_math_reference import NUMPY_NAMES, double

CHUNK = 1 << 24
ELEMENTS = 8192
RANGES = {
    "acos": (-1, 1),
    "acosh": (1, 100),
    "asin": (-1, 1),
    "atanh": (-1, 1),
    "erf": (-3, 3),
    "erfc": (-3, 8),
    "log": (1e-3, 1e3),
    "log10": (1e-3, 1e3),
    "log1p": (-0.9, 100),
    "log2": (1e-3, 1e3),
    "pow": (0.01, 10),
    "rsqrt": (0.1, 100),
}
"""Arguments that speed is measured with; others between -10 and 10."""


def sweep(entry: MathFunction, every: int, fused: bool) -> bool:
    """Whether the function keeps its bound for every *every*-th float32."""
    worst, where = 0.0, 0.0
    for start in range(0, 1 << 32, CHUNK * every):
        bits = np.arange(start, min(start + CHUNK * every, 1 << 32), every, dtype=np.uint64).astype(np.uint32)
        x = bits.view(np.float32)
        high = double(entry.name, x)
        wrong = errors(loop(entry.symbol, fused)(x)[0], high, np.zeros_like(high))
        index = int(np.argmax(wrong))
        if wrong[index] > worst:
            worst, where = float(wrong[index]), float(x[index])
    print(f"{entry.name:6} {worst:.4f} at {where!r}, bound {entry.ulp}", flush=True)
    return worst <= entry.ulp


def nanoseconds(run: Callable[[], object]) -> float:
    """Per element, the best of 25 runs."""
    best = float("inf")
    for _ in range(25):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best / ELEMENTS * 1e9


class Called(Loop):
    """A loop that calls a function of the C math library for each element."""

    def link(self, module: ir.Module, machine: Any) -> Any:
        library = ctypes.CDLL(ctypes.util.find_library("m"))
        function = getattr(library, self.entry.name + ("f" if self.entry.bits == 32 else ""))
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        llvm.add_symbol(self.entry.symbol, address)
        linked = llvm.parse_assembly(str(module))
        linked.triple, linked.data_layout = machine.triple, str(machine.target_data)
        return linked


def speed(entry: MathFunction, fused: bool) -> None:
    """Print one line."""
    kind = FORMATS[entry.bits]
    random = np.random.default_rng(0)
    low, high = RANGES.get(entry.name, (-10, 10))
    inputs: list[Array] = [random.uniform(low, high, ELEMENTS).astype(kind) for _ in entry.parameters]
    output = np.empty_like(inputs[0])
    ours = nanoseconds(loop(entry.symbol, fused).over(*inputs, output))
    called = numpy = float("nan")
    if entry.name != "rsqrt":
        called = nanoseconds(Called(entry, loop_around(entry)).over(*inputs, output))
    vectorised = getattr(np, NUMPY_NAMES.get(entry.name, entry.name), None)
    if vectorised is not None:
        numpy = nanoseconds(lambda: vectorised(*inputs, out=output))
    name = entry.name + entry.suffix
    print(f"{name:10} f{entry.bits}  ours {ours:6.2f}  numpy {numpy:6.2f}  libm {called:6.2f}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for command in ("sweep", "speed"):
        added = commands.add_parser(command)
        added.add_argument("names", nargs="*", metavar="NAME")
        added.add_argument("--without-fma", action="store_true")
        if command == "sweep":
            added.add_argument("--every", type=int, default=1, metavar="N")
    arguments = parser.parse_args()
    entries = [
        e for e in FUNCTIONS.values() if e.result != "void" and (not arguments.names or e.name in arguments.names)
    ]
    if arguments.command == "speed":
        for entry in entries:
            speed(entry, not arguments.without_fma)
        return 0
    fused = not arguments.without_fma
    kept = [sweep(e, arguments.every, fused) for e in entries if e.bits == 32 and len(e.parameters) == 1]
    return 0 if all(kept) else 1


if __name__ == "__main__":
    sys.exit(main())
