"""The layout of private arrays that threads keep from one region to the next: element 0 of all threads of the block,
then element 1 of all threads, and so on, for arrays that `analyses.private_arrays` finds.

Neighbours that access the same element then access a row of memory, whether they are lanes or LLVM makes vectors of a
loop over them. All regions have to agree, so it is decided for the kernel as a whole.
"""

from __future__ import annotations

from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.grid_context import ALIGNMENT
from hip_runtime.drivers.cpu.analyses.private_arrays import (
    PrivateArrayUses,
    find_private_arrays,
    is_private_address,
)
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.passes.interleave_private import interleave_private
from hip_runtime.drivers.cpu.regions.formation import InterleavedArray, Region, RegionGraph, analyse_again
from hip_runtime.drivers.cpu.regions.private_memory import find_kept_allocas


def interleave_kept(graph: RegionGraph, threads: int, size_of: SizeOf) -> RegionGraph:
    """*graph* with the private arrays interleaved that each of *threads* keeps. Its function is modified."""
    kept, _ = find_kept_allocas(graph)
    found = find_private_arrays(graph.function, size_of)
    arrays = {alloca: found[alloca] for alloca in kept if alloca in found and _has_rows(found[alloca], graph)}
    if not arrays or threads == 1:
        return graph
    interleaved = {}
    for nbytes in {uses.nbytes for uses in arrays.values()}:
        alike = {alloca: uses for alloca, uses in arrays.items() if uses.nbytes == nbytes}
        pitch = _pitch(threads, nbytes)
        interleave_private(graph.function, alike, pitch)
        for alloca in alike:
            elements = -(-size_of(private_type(alloca)) // nbytes)
            interleaved[alloca] = InterleavedArray(ir.IntType(8 * nbytes), elements * pitch)
    record("interleave_kept", graph.function)
    return replace(analyse_again(graph), interleaved=interleaved)


def _has_rows(uses: PrivateArrayUses, graph: RegionGraph) -> bool:
    """Whether threads access the same element anywhere. If not, there is nothing to gain, and a thread's own elements
    had better be near one another."""
    return any(_is_same_element(access.operands[access.opcode == "store"], graph) for access in uses.accesses)


def _is_same_element(address: Value, graph: RegionGraph) -> bool:
    """Whether *address* is that of the same element for all threads of the block."""
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        if not graph.uniformity.varying.isdisjoint(address.operands[1:]):
            return False
        address = address.operands[0]
    return True


def scatters_privately(region: Region, graph: RegionGraph) -> bool:
    """Whether threads of *region* store to elements of their private arrays that differ from thread to thread."""
    stores = [value.operands[1] for block in region.blocks for value in block.instructions if value.opcode == "store"]
    return any(is_private_address(place) and not _is_same_element(place, graph) for place in stores)


def _pitch(threads: int, nbytes: int) -> int:
    """How many elements of *nbytes* one row, an element of each of *threads*, is from the next: an odd number of cache
    lines, as rows whose distance is a power of two would compete for a few places in the cache."""
    lines = -(-threads * nbytes // ALIGNMENT) | 1
    return lines * ALIGNMENT // nbytes
