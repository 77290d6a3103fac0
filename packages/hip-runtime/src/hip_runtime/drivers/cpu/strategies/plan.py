"""The outcome of a strategy: a plan, with the worker that runs the kernel, or a refusal with the reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.block_lengths import Lengths
from hip_runtime.drivers.cpu.abi.narrow_grids import NarrowGrids
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.regions.formation import SyncPoint
from hip_runtime.errors import UnsupportedError


@dataclass(frozen=True)
class Plan:
    """A worker, and the parsed module with the kernel into which it is to be linked."""

    form: str
    reason: str
    """Why the kernel has this form."""
    module: Any
    item: WorkItem
    sync_points: tuple[SyncPoint, ...] = ()
    multiple: int = 1
    """What the length of a block has to be a multiple of, if it is known at run time only."""
    in_gangs: bool = False
    """Whether all of the kernel's threads run in gangs, in each region if it has several."""
    narrow: NarrowGrids | None = None
    """Grids for which other gangs are better, if there are any."""

    @property
    def lengths(self) -> Lengths | None:
        """The lengths of blocks that the worker runs, if these are several."""
        return None if self.item.order.lengths is None else Lengths(*self.item.order.lengths, self.multiple)

    @property
    def worker(self) -> ir.Module:
        """The module with the worker."""
        return self.item.module


@dataclass(frozen=True)
class Refusal:
    """Why a strategy cannot run a kernel, or should not."""

    error: UnsupportedError


Outcome: TypeAlias = Plan | Refusal


def attempt(write: Callable[[], Plan]) -> Outcome:
    """The plan that *write* returns, or a refusal if it raises `UnsupportedError`."""
    try:
        return write()
    except UnsupportedError as error:
        return Refusal(error)
