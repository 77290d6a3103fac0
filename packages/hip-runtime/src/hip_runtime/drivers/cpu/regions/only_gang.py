"""Regions that one gang of a block runs alone, as the last steps of a tree: it has as many lanes as threads do
anything.

LLVM writes a loop over so few threads out before it makes vectors of it, and what it then joins reaches over several
stores of the step before. Such a gang accesses shared memory as `shared_cells` does.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.block_memory import is_in_block_memory
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import MAX_LANES
from hip_runtime.drivers.cpu.analyses.thread_strides import ThreadStrides
from hip_runtime.drivers.cpu.regions.formation import Region
from hip_runtime.drivers.cpu.regions.gang_region import GangPlan

_ACCESSES = ("load", "store")


def count_lanes(region: Region, active: int, item: WorkItem, plan: GangPlan, strides: ThreadStrides) -> int | None:
    """How many lanes the only gang has that does anything in *region*, if that are the first *active* threads of a
    block of one row, which access neighbouring elements; ``None`` if it is to run otherwise. The shortest block that
    runs this code has as many threads."""
    lanes, rows, planes = item.order.extents
    least = lanes if item.order.lengths is None else item.order.lengths[0]
    width = 1 << (active - 1).bit_length()
    is_one_row = rows * planes * item.order.tile == 1
    if not is_one_row or not 2 <= active < lanes or not width <= min(2 * plan.width, least, MAX_LANES):
        return None
    if region.start is None or not plan.may_narrow(region) or not _uses_block_memory(region):
        return None
    return width if all(strides.farthest(region.blocks, access) == 1 for access in _ACCESSES) else None


def _uses_block_memory(region: Region) -> bool:
    return any(
        is_in_block_memory(value.address)
        for block in region.blocks
        for value in block.instructions
        if value.opcode in _ACCESSES
    )
