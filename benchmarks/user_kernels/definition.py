"""How a kernel of the collection is defined: its data, its launch, and the loops that one writes for a processor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
from numba import njit

from benchmarks.case import Benchmark, Case
from benchmarks.problem import HipToolkit, HostToolkit, Problem, Solution

Arrays = SimpleNamespace
Launch = Callable[[Arrays], None]

TRANSLATED = "njit-translated"
"""The implementation that does in loops of ``njit`` what the kernel does."""

OPENCL = "opencl-intel"
"""The implementation in OpenCL C, of some."""

peer = njit(error_model="numpy")
"""Compiles a peer whose kernel has no options."""

fast_peer = njit(error_model="numpy", fastmath=True)
"""Compiles a peer whose kernel has ``fastmath=True``."""


class UserKernel(Problem):
    """*arrays* by name, how *hip* launches the kernel on them and *njit* calls its peer, and the *outputs*, which both
    have to compute alike but for *rtol* and *atol*; *expected*, of the arrays, gives them by NumPy.

    What one run leaves in the arrays of *restored* would be less work for the next: they are restored before each.
    Where the peer is a better algorithm, *translated* calls loops of ``njit`` that do what the kernel does.
    """

    def __init__(
        self,
        arrays: dict[str, np.ndarray],
        outputs: tuple[str, ...],
        hip: Launch,
        njit: Launch,
        *,
        rtol: float = 0.0,
        atol: float = 0.0,
        restored: tuple[str, ...] = (),
        expected: Callable[[Arrays], Mapping[str, np.ndarray]] | None = None,
        translated: Launch | None = None,
    ) -> None:
        self.arrays, self.outputs = arrays, outputs
        self.hip, self.njit, self.translated = hip, njit, translated
        self.rtol, self.atol = rtol, atol
        self.restored, self.expected = restored, expected

    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        wanted = self.wanted()
        for name in self.outputs:
            for found, right in zip(_fields(results[name]), _fields(wanted[name]), strict=True):
                np.testing.assert_allclose(found, right, rtol=self.rtol, atol=self.atol, err_msg=name)

    def wanted(self) -> Mapping[str, np.ndarray]:
        """The outputs, as NumPy computes them, or the peer."""
        own = Arrays(**{name: array.copy() for name, array in self.arrays.items()})
        if self.expected is not None:
            return self.expected(own)
        self.njit(own)
        return vars(own)


def blocks(size: int, threads: int) -> int:
    """How many blocks of so many *threads* have one for each of *size* elements."""
    return -(-size // threads)


def kernel(
    name: str, *, translated: bool = False, opencl: bool = False
) -> Callable[[Callable[[bool], UserKernel]], Benchmark]:
    """Make a benchmark called *name* of a function that makes the kernel's data, little of it if its argument is true;
    its docstring describes the kernel. Those that have a *translated* peer say so, and those with one in *opencl*."""

    def define(make: Callable[[bool], UserKernel]) -> Benchmark:
        def ours(quick: bool) -> Case:
            return Solution(make(quick), HipToolkit(), lambda problem, on: _launch_of(problem.hip, problem, on))

        def theirs(quick: bool) -> Case:
            return Solution(make(quick), HostToolkit(), lambda problem, on: _launch_of(problem.njit, problem, on))

        def alike(quick: bool) -> Case:
            problem = make(quick)
            assert problem.translated is not None
            run = problem.translated
            return Solution(problem, HostToolkit(), lambda problem, on: _launch_of(run, problem, on))

        def in_opencl(quick: bool) -> Case:
            peers = import_module("benchmarks.peers.opencl_user_kernels")
            return Solution(make(quick), peers.OpenCL(), getattr(peers, name.replace("-", "_")))

        description = " ".join((make.__doc__ or "").split())
        made = {"hip": ours, "njit": theirs} | ({TRANSLATED: alike} if translated else {})
        made |= {OPENCL: in_opencl} if opencl else {}
        return Benchmark(name, description, "njit", 1e3, "ms", made, aim=1.3)

    return define


def _fields(array: np.ndarray) -> list[np.ndarray]:
    """The fields of an array of records, or the array."""
    return [array] if array.dtype.names is None else [array[name] for name in array.dtype.names]


def _launch_of(launch: Launch, problem: UserKernel, on: Arrays) -> Callable[[], None]:
    """A run: arrays are restored, then it is launched."""
    originals = {name: _copied(getattr(on, name)) for name in problem.restored}

    def run() -> None:
        for name, original in originals.items():
            held = getattr(on, name)
            if isinstance(held, np.ndarray):
                held[...] = original
            else:
                held.copy_to_device(original)
        launch(on)

    return run


def _copied(held: Any) -> Any:
    """Another array of the same kind with the same elements."""
    if isinstance(held, np.ndarray):
        return held.copy()
    from numba import hip

    return hip.to_device(held.copy_to_host())
