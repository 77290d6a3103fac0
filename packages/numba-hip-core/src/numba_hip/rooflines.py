"""`hip.roofline`: how much of a machine's memory bandwidth and arithmetic a kernel uses, measured.

The peaks are those that small kernels reach on this device: a sum of two arrays for the bandwidth, chains of products
and sums for the arithmetic. The operations of a kernel are counted on the CPU device: it is compiled once more, with a
counter in each basic block of its LLVM IR after inlining, and launched once. A fused product and sum counts as two, and
what a function of math consists of counts each.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hip_runtime import Device, current_device, device_array, to_device
from hip_runtime.drivers.cpu.abi.operation_counters import BYTES, FLOAT32, FLOAT64, counting
from hip_runtime.errors import ProfileError
from hip_runtime.profiling import benchmark
from numba_hip.decorators import jit
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.launch import ConfiguredKernel
from numba_hip.language.thread_index import grid

CHAINS, STEPS = 8, 2000
"""Independent chains of a thread, and steps of each, of the kernel that measures arithmetic."""

_ELEMENTS = 1 << 23
_SECONDS = 0.1


@dataclass(frozen=True)
class Peaks:
    """What a device reached."""

    bytes_per_second: float
    float32_per_second: float
    float64_per_second: float


@dataclass(frozen=True)
class Roofline:
    """A kernel against the peaks of its device.

    ``operations`` are those of one launch on floats, ``nbytes`` the bytes of its arrays, which have to go through
    memory at least once unless they are cached, and ``accessed`` what its threads load and store together; None if the
    operations were given. ``is_double``: most operations are on 64-bit floats.
    """

    name: str
    seconds: float
    operations: int
    nbytes: int
    accessed: int | None
    is_double: bool
    peaks: Peaks

    @property
    def intensity(self) -> float:
        """Operations per byte."""
        return self.operations / self.nbytes if self.nbytes else math.inf

    @property
    def operations_per_second(self) -> float:
        """What the kernel reached."""
        return self.operations / self.seconds

    @property
    def bytes_per_second(self) -> float:
        """What the kernel reached."""
        return self.nbytes / self.seconds

    @property
    def arithmetic_peak(self) -> float:
        """Operations per second on floats of the kernel's width."""
        return self.peaks.float64_per_second if self.is_double else self.peaks.float32_per_second

    @property
    def attainable(self) -> float:
        """Operations per second under the roof at this intensity."""
        return min(self.arithmetic_peak, self.intensity * self.peaks.bytes_per_second)

    @property
    def limit(self) -> str:
        """What limits the kernel under the roof: ``memory`` or ``arithmetic``."""
        return "memory" if self.intensity * self.peaks.bytes_per_second < self.arithmetic_peak else "arithmetic"

    def __str__(self) -> str:
        width = 64 if self.is_double else 32
        reached, peak = (
            (self.bytes_per_second, self.peaks.bytes_per_second) if self.limit == "memory"
            else (self.operations_per_second, self.arithmetic_peak)
        )  # fmt: skip
        unit = "GB/s" if self.limit == "memory" else "Gflop/s"
        cached = "; the data are in a cache" if self.limit == "memory" and reached > peak else ""
        return (
            f"{self.name}: {self.operations_per_second / 1e9:.3g} Gflop/s (float{width}), "
            f"{self.bytes_per_second / 1e9:.3g} GB/s, {self.intensity:.3g} flop/byte; limited by {self.limit}: "
            f"{reached / 1e9:.3g} of {peak / 1e9:.3g} {unit} ({100 * reached / peak:.0f} %{cached})"
        )

    __repr__ = __str__

    def plot(self, axes: Any = None) -> Any:
        """Draw the roofs of the device and the kernel below them on matplotlib's *axes*, new ones by default; returns
        them. `ProfileError` where matplotlib is not installed."""
        axes = _new_axes() if axes is None else axes
        ridge = self.peaks.float32_per_second / self.peaks.bytes_per_second
        middle = self.intensity if 0 < self.intensity < math.inf else ridge
        first, last = min(middle, ridge) / 16, max(middle, ridge) * 16
        intensities = np.geomspace(first, last, 64)
        for name, peak in (("float32", self.peaks.float32_per_second), ("float64", self.peaks.float64_per_second)):
            roof = np.minimum(peak, intensities * self.peaks.bytes_per_second) / 1e9
            axes.loglog(intensities, roof, label=f"{name}: {peak / 1e9:.3g} Gflop/s")
        axes.loglog([middle], [self.operations_per_second / 1e9], "o", label=self.name)
        axes.set_xlabel(f"flop per byte of memory ({self.peaks.bytes_per_second / 1e9:.3g} GB/s)")
        axes.set_ylabel("Gflop/s")
        axes.legend(loc="lower right", fontsize="small")
        return axes


def roofline(
    work: ConfiguredKernel, *args: Any, seconds: float = 0.2, operations: int | None = None, nbytes: int | None = None
) -> Roofline:
    """Measure *work*, a configured kernel ``kernel[grid, block]``, launched with *args*, against what the current
    device reaches: `Roofline`, with ``plot()``.

    It is launched as often as `hip.benchmark` does in *seconds*. On the CPU device its operations on floats are counted
    in one more launch, compiled for that; on AMD GPUs *operations* has to say how many one launch has. *nbytes* is what
    has to go through memory, by default the bytes of all arrays in *args*. Raises `ProfileError` for what is no
    configured kernel, for a GPU without *operations*, and as `hip.benchmark` does.
    """
    if not isinstance(work, ConfiguredKernel):
        raise ProfileError(f"hip.roofline takes a configured kernel, kernel[grid, block], got {work!r}")
    device = current_device()
    accessed, is_double = None, False
    if operations is None:
        if not device.is_cpu:
            raise ProfileError(
                "operations are counted on the CPU device only: on this GPU, pass operations=, the number in one launch"
            )
        operations, accessed, is_double = _count(work, args)
    measured = benchmark(work, *args, seconds=seconds, nbytes=nbytes)
    return Roofline(measured.name, measured.median, operations, measured.nbytes, accessed, is_double, peaks(device))


def _count(work: ConfiguredKernel, args: tuple[Any, ...]) -> tuple[int, int, bool]:
    """The operations of a launch, the bytes that it accesses, and whether most operations are on 64-bit floats."""
    kernel = work.dispatcher
    with counting() as counters:
        again = Dispatcher(kernel.py_func, replace(kernel.options, cache=False), extensions=kernel.extensions)
        again[work.config](*args)
        current_device().synchronize()
        single, double, nbytes = counters[FLOAT32], counters[FLOAT64], counters[BYTES]
        del again
    return single + double, nbytes, double > single


@functools.cache
def peaks(device: Device) -> Peaks:
    """The peaks of *device*, measured at the first call: half a second."""
    left, right = (to_device(np.ones(_ELEMENTS, np.float32)) for _ in range(2))
    out = device_array(_ELEMENTS, np.float32)
    copied = benchmark(_add[_ELEMENTS // 256, 256], left, right, out, seconds=_SECONDS)
    return Peaks(copied.nbytes / copied.least, *(_arithmetic(kind) for kind in (np.float32, np.float64)))


def _arithmetic(kind: Callable[..., Any]) -> float:
    """Operations per second on floats of *kind*."""
    threads = 1 << 14
    out = to_device(np.zeros(threads, kind))
    measured = benchmark(_chains[threads // 256, 256], out, kind(0.999), kind(1e-3), seconds=_SECONDS)
    return 2 * CHAINS * STEPS * threads / measured.least


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ProfileError(f"rooflines need matplotlib, which cannot be imported: {error}; install it") from None
    _, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    return axes


@jit
def _add(left: Any, right: Any, out: Any) -> None:
    i = grid(1)
    if i < out.size:
        out[i] = left[i] + right[i]


@jit(fastmath=True)
def _chains(out: Any, factor: Any, term: Any) -> None:
    i = grid(1)
    a = out[i]
    b, c, d, e, f, g, h = a + factor, a - factor, a + term, a - term, a * factor, a * term, factor * term
    for _ in range(STEPS):
        a = a * factor + term
        b = b * factor + term
        c = c * factor + term
        d = d * factor + term
        e = e * factor + term
        f = f * factor + term
        g = g * factor + term
        h = h * factor + term
    out[i] = a + b + c + d + e + f + g + h
