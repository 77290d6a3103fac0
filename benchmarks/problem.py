"""A computation, independent of its implementations: its data, and NumPy's result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from types import SimpleNamespace
from typing import Any, Protocol

import numpy as np

from benchmarks.case import Case

PEERS = {
    "hipcc": ("benchmarks.peers.hipcc", "Hipcc"),
    "opencl-intel": ("benchmarks.peers.opencl", "OpenCL"),
    "opencl-pocl": ("benchmarks.peers.opencl", "OpenCL"),
    "taichi": ("benchmarks.peers.taichi", "Taichi"),
    "warp": ("benchmarks.peers.warp", "Warp"),
}
"""Peers that are not on every machine: the module and the toolkit of each, imported only here."""


OPENCL = ("opencl-intel", "opencl-pocl")
UNWRITTEN = dict.fromkeys(PEERS, "has no kernel for it: only our form of it is compared with `njit`")
"""Why a benchmark that is only compared with ``njit`` has no other implementations."""
ONLY_OPENCL = {
    name: "has no kernel for it: it is compared with `njit` and OpenCL" for name in PEERS if name not in OPENCL
}
"""Why others than `OPENCL` have none."""


class Problem(ABC):
    """Arrays by name, those that are computed, and the check of these."""

    arrays: dict[str, np.ndarray]
    outputs: tuple[str, ...]

    @abstractmethod
    def verify(self, results: Mapping[str, np.ndarray]) -> None:
        """Raise `AssertionError` if *results*, the outputs of one run on the arrays, are not what NumPy computes."""


class Toolkit(Protocol):
    """How one system holds arrays. The names of the arrays become attributes of the object that a builder of launches
    gets."""

    def upload(self, array: np.ndarray) -> Any:
        """A copy of *array* where the system's kernels need it."""

    def overwrite(self, held: Any, array: np.ndarray) -> None:
        """Put the elements of *array* into *held*."""

    def download(self, held: Any) -> np.ndarray:
        """The contents of *held*."""

    def wait(self) -> None:
        """Wait for what was launched."""

    def device(self) -> str:
        """The device that it runs on."""


Builder = Callable[[Any, SimpleNamespace], Callable[[], None]]
"""Takes a problem and the arrays as the toolkit holds them; returns a function that launches the computation once."""


class Solution(Case):
    """A problem, solved with a toolkit. A run launches once and waits; the arrays are in place before."""

    def __init__(self, problem: Problem, toolkit: Toolkit, build: Builder) -> None:
        self.problem = problem
        self.toolkit = toolkit
        self.held = SimpleNamespace(**{name: toolkit.upload(array) for name, array in problem.arrays.items()})
        self.launch = build(problem, self.held)

    def run(self) -> None:
        self.launch()
        self.toolkit.wait()

    def check(self) -> None:
        for name in self.problem.outputs:
            self.toolkit.overwrite(getattr(self.held, name), self.problem.arrays[name])
        self.run()
        self.problem.verify({name: self.toolkit.download(getattr(self.held, name)) for name in self.problem.outputs})

    def device(self) -> str:
        return self.toolkit.device()


class HipToolkit:
    """`numba.hip` on the current device."""

    def __init__(self) -> None:
        from numba import hip

        self.hip = hip

    def upload(self, array: np.ndarray) -> Any:
        return self.hip.to_device(array)

    def overwrite(self, held: Any, array: np.ndarray) -> None:
        held.copy_to_device(array)

    def download(self, held: Any) -> np.ndarray:
        return held.copy_to_host()  # type: ignore[no-any-return]

    def wait(self) -> None:
        self.hip.synchronize()

    def device(self) -> str:
        return str(self.hip.get_current_device().name)


class HostToolkit:
    """NumPy arrays, for ``njit(parallel=True)``, whose calls wait until they have finished."""

    def upload(self, array: np.ndarray) -> np.ndarray:
        return array.copy()

    def overwrite(self, held: np.ndarray, array: np.ndarray) -> None:
        held[...] = array

    def download(self, held: np.ndarray) -> np.ndarray:
        return held.copy()

    def wait(self) -> None:
        """Nothing has to be waited for."""

    def device(self) -> str:
        return "processor"


def implementations(
    name: str, problem: Callable[[bool], Problem], *, hip: Builder, njit: Builder, peers: tuple[str, ...]
) -> dict[str, Callable[[bool], Case]]:
    """The implementations of *problem*: ours, the hand-written one, and those of *peers* that have the function
    *name*."""

    def solve(toolkit: Callable[[], Toolkit], build: Builder) -> Callable[[bool], Case]:
        return lambda quick: Solution(problem(quick), toolkit(), build)

    def peer(module: str, toolkit: str) -> Callable[[bool], Case]:
        def make(quick: bool) -> Case:
            peers_module = import_module(module)
            return Solution(problem(quick), getattr(peers_module, toolkit)(), getattr(peers_module, name))

        return make

    ours = {"hip": solve(HipToolkit, hip), "njit-parallel": solve(HostToolkit, njit)}
    return ours | {name: peer(*PEERS[name]) for name in peers}
