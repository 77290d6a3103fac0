"""Loads of neighbours for some lanes of a gang, which load those of the others, too, where the memory allows it.

A load under a mask waits for the mask, and so for all that decides it: in a search that ends where some data says, each
load would wait for the one before it. The processor protects memory in pages: where the whole vector is in one page,
any active lane shows that all of it can be loaded.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I64, write_likely
from hip_runtime.drivers.cpu.object_code.host_machine import masks_neighbours
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder, size_in_memory

PAGE = 4096
"""Bytes of the smallest pages of the processors that there is code for; larger ones have a multiple of them."""


def load_in_page(lanes: VectorBuilder, kind: ir.Type, place: ir.Value, mask: ir.Value, align: int) -> ir.Value:
    """A contiguous load from *place* on for *mask*, in which there is a lane at least; what other lanes load is
    undefined."""
    builder = lanes.builder
    offset = builder.and_(builder.ptrtoint(place, I64), I64(PAGE - 1))
    last = I64(PAGE - lanes.width * size_in_memory(kind))
    return write_likely(
        builder,
        builder.icmp_unsigned("<=", offset, last),
        lambda: lanes.load(kind, place, None, align),
        lambda: _load_across(lanes, kind, place, mask, align),
    )


def _load_across(lanes: VectorBuilder, kind: ir.Type, place: ir.Value, mask: ir.Value, align: int) -> ir.Value:
    nbytes = size_in_memory(kind)
    if masks_neighbours(nbytes):
        return lanes.load(kind, place, mask, align)
    return lanes.gather(kind, lanes.spread(place, nbytes), mask, align)  # LLVM would branch for each lane
