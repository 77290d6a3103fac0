"""Regions that compute elements of shared arrays from others at known distances, as the steps of a scan.

LLVM makes vectors of the loop over the threads of such a step, or gathers and scatters, and the next step loads what
this one has stored from other places: a load that reaches over two stores waits until they are written. So gangs of the
width of a register run these regions, and access shared memory as `vectorize.shared_cells` does. The gangs are written
out one by one, so that all places are constants: then LLVM keeps the elements in registers from step to step. The
regions that fill the array and read it are written so, too; else it has to be in memory there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.effects import has_effect
from hip_runtime.drivers.cpu.analyses.shared_places import find_shared_place
from hip_runtime.drivers.cpu.analyses.thread_strides import ThreadStrides
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Instruction
from hip_runtime.drivers.cpu.llvmir import I1
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes
from hip_runtime.drivers.cpu.regions.active_threads import count_active, only_writes
from hip_runtime.drivers.cpu.regions.context_values import Transfer
from hip_runtime.drivers.cpu.regions.formation import Region, RegionGraph
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan, SharedSteps, has_loop
from hip_runtime.drivers.cpu.regions.only_gang import count_lanes

_MOST_GANGS = 32
"""The most gangs that are written out: more elements do not fit the registers, and take LLVM long."""

_MOST_INSTRUCTIONS = 2000
"""The most instructions of a region that are written out, those of all of its gangs together."""

_ACCESSES = ("load", "store")
_ELEMENTS = (ir.IntType, ir.HalfType, ir.FloatType, ir.DoubleType, ir.PointerType)


@dataclass(frozen=True)
class GangWork:
    """What the threads of each region do that decides how gangs run it."""

    active: dict[Region, int]
    """How many threads of a row do anything."""
    only_gangs: dict[Region, int | None]
    """The lanes of the gang that runs it alone, see `only_gang`."""
    steps: dict[Region, SharedSteps]
    """What it accesses in shared memory, where gangs are to run it so."""


def find_gang_work(
    graph: RegionGraph, transfers: Mapping[Instruction, Transfer], item: WorkItem, plan: GangPlan, size_of: SizeOf,
    strides: ThreadStrides,
) -> GangWork:  # fmt: skip
    """What threads with *strides* do in the regions of a kernel between which values get by *transfers*."""
    most = item.order.extents[0] if item.order.lengths is None else item.order.limits[0]
    active = {region: count_active(region, graph, transfers, item.order.along, most) for region in graph.regions}
    only_gangs = {region: count_lanes(region, number, item, plan, strides) for region, number in active.items()}
    steps = find_shared_steps(
        {region: number for region, number in active.items() if only_gangs[region] is None},
        {region for region in graph.regions if only_writes(region, graph, transfers)},
        item, plan, size_of, strides,
    )  # fmt: skip
    return GangWork(active, only_gangs, steps)


def find_shared_steps(
    active: Mapping[Region, int], writing: Collection[Region], item: WorkItem, plan: GangPlan, size_of: SizeOf,
    strides: ThreadStrides,
) -> dict[Region, SharedSteps]:  # fmt: skip
    """What the first *active* threads of regions of a kernel access in shared memory, if gangs are to run them so. In
    those that are *writing*, threads keep no values. *strides* are those of the threads."""
    _, rows, planes = item.order.extents
    if rows * planes * item.order.tile != 1 or item.order.lengths is not None:
        return {}
    found = {}
    for region, threads in active.items():
        reader = _RegionReader(region, item, size_of, strides)
        steps = reader.read(threads) if threads > 1 and not region.masked and plan.may_narrow(region) else None
        if steps is not None and (steps.step == 1 or region in writing):
            found[region] = steps, reader.is_shifted
    return {region: steps for region, (steps, _) in found.items() if any(shifted for _, shifted in found.values())}


class _RegionReader:
    """Reads what the threads of *region* access."""

    def __init__(self, region: Region, item: WorkItem, size_of: SizeOf, strides: ThreadStrides) -> None:
        self._region = region
        self._item = item
        self._size_of = size_of
        self._strides = strides
        self._steps: set[int] = set()
        self._sizes: set[int] = set()
        self._stored: list[int] = []
        """The first thread's elements that are stored."""
        self.is_shifted = False
        """Whether what lanes access in shared memory begins within a register, or has elements in between."""

    def read(self, threads: int) -> SharedSteps | None:
        """What the first *threads* access."""
        instructions = [value for block in self._region.blocks for value in block.instructions]
        if self._region.diverges or has_loop(self._region) or not all(map(self._add, instructions)):
            return None
        if len(self._steps) != 1:
            return None
        (step,) = self._steps
        width = vector_bytes() // min(self._sizes)
        gangs = -(-threads * step // width)
        if step < 1 or step & (step - 1):
            return None
        if gangs <= _MOST_GANGS and gangs * len(instructions) <= _MOST_INSTRUCTIONS:
            return SharedSteps(threads, width, step, self._stored[0] % step if self._stored else 0)
        return SharedSteps(threads) if step == 1 and self.is_shifted else None

    def _add(self, value: Instruction) -> bool:
        """Whether *value* may be in such a region; an access is remembered."""
        if value.opcode not in _ACCESSES:
            return value.elementwise is None and (value.opcode == "synchronise" or not has_effect(value))
        kind, pointer = value.accessed, value.address
        nbytes = self._size_of(kind)
        if value.volatile or value.atomic or vector_bytes() % nbytes or not isinstance(kind, _ELEMENTS) or kind == I1:
            return False
        self._sizes.add(nbytes)
        if not is_in_block_memory(pointer):
            self._steps.add(1)
            return self._strides.of(pointer) == nbytes
        place = find_shared_place(pointer, self._item, self._size_of)
        if place is None or place.stride % nbytes or place.offset % nbytes:
            return False
        self._steps.add(place.stride // nbytes)
        self._stored += [place.offset // nbytes] if value.opcode == "store" else []
        self.is_shifted |= place.stride != nbytes or place.offset % vector_bytes() != 0
        return True
