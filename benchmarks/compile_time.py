"""``python -m benchmarks.compile_time``: the processor time of compiling, ours and the peer's.

Each implementation has a separate process, in which it is created anew for each round, with little data. Its first run
compiles, its second does not; the difference is reported. Ours is divided into Numba's analysis of the Python function
(everything before its lowering), Numba's lowering with our parts of the kernel language, and the rest: linking,
optimising, finalising. The first round of a process is reported separately.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from multiprocessing import get_context
from statistics import median
from typing import Any, NamedTuple

from numba.core import event

from benchmarks.case import Case
from benchmarks.catalog import BENCHMARKS

PEER = "njit-parallel"
COMPILED_WHEN_DEFINED = ("vectorize", "guvectorize")
"""Their peers name the types, and so compile before the first run."""

KERNELS = [
    name
    for name, benchmark in BENCHMARKS.items()
    if benchmark.peer == PEER and not name.endswith("-few") and name not in COMPILED_WHEN_DEFINED
]
"""Those with kernels of their own that either side compiles in its first run."""

LOWERING = "hip_lowering"
"""The name of the pass that lowers our kernels."""


class Compilation(NamedTuple):
    """Milliseconds of processor time: in all, in Numba's analysis and in its lowering. For the peer, whose passes
    include all of LLVM, only the first is meaningful."""

    total: float
    analysis: float
    lowering: float

    @property
    def rest(self) -> float:
        """The time after Numba's passes."""
        return self.total - self.analysis - self.lowering


class PassTimes(event.Listener):
    """The processor time of Numba's passes in seconds. Nested passes are counted separately."""

    def __init__(self) -> None:
        self.analysis = self.lowering = 0.0
        self._running: list[tuple[float, float]] = []  # the start of each, and the time of those nested in it

    def on_start(self, event: Any) -> None:
        """A pass begins."""
        self._running.append((time.process_time(), 0.0))

    def on_end(self, event: Any) -> None:
        """The pass that began last ends."""
        began, inside = self._running.pop()
        took = time.process_time() - began
        if event.data["name"].split()[0] == LOWERING:
            self.lowering += took - inside
        else:
            self.analysis += took - inside
        if self._running:
            outer, within = self._running.pop()
            self._running.append((outer, within + took))


def compile_once(make: Callable[[bool], Case]) -> Compilation:
    """Make the case, run it twice and check it; returns the time of the first run above the second."""
    case = make(True)
    passes = PassTimes()
    with event.install_listener("numba:run_pass", passes):
        first = _time(case)
    total = first - _time(case)
    case.check()
    return Compilation(*(1e3 * seconds for seconds in (total, passes.analysis, passes.lowering)))


def _time(case: Case) -> float:
    before = time.process_time()
    case.run()
    case.settle()
    return time.process_time() - before


def compile_often(name: str, implementation: str, rounds: int) -> list[Compilation]:
    """The first compilation of this process, and *rounds* more."""
    make = BENCHMARKS[name].implementations[implementation]
    return [compile_once(make) for _ in range(rounds + 1)]


def measure(name: str, rounds: int) -> tuple[list[Compilation], list[Compilation]]:
    """`compile_often` for us and for the peer, each in a separate process."""
    tasks = [(name, "hip", rounds), (name, PEER, rounds)]
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        ours, theirs = pool.starmap(compile_often, tasks, chunksize=1)
    return ours, theirs


def describe(name: str, ours: list[Compilation], theirs: list[Compilation]) -> str:
    """A line for *name*: medians of the compilations after the first one, and the first one."""
    kinds = ("total", "analysis", "lowering", "rest")
    total, *parts = (median(getattr(one, kind) for one in ours[1:]) for kind in kinds)
    peer = median(one.total for one in theirs[1:])
    told = [total, *parts, ours[0].total, peer, theirs[0].total]
    return f"{name:15}" + "".join(f"{number:10.0f}" for number in told) + f"{total / peer:10.2f}"


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each benchmark."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compile_time", description=__doc__)
    parser.add_argument("benchmark", nargs="*", default=KERNELS, help="which kernels; all by default")
    parser.add_argument("--rounds", type=int, default=7, help="compilations behind the first one")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.benchmark if name not in KERNELS]
    if unknown or options.rounds < 1:
        parser.error(f"unknown: {', '.join(unknown)}" if unknown else "there has to be at least one round")
    print("milliseconds of processor time; medians, and the first compilation of a process")
    heads = ("hip", "analysis", "lowering", "rest", "hip first", "njit", "njit first", "hip/njit")
    print(" " * 15 + "".join(f"{head:>10}" for head in heads))
    for name in options.benchmark:
        print(describe(name, *measure(name, options.rounds)), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
