"""Memory for the masks of blocks, from one block to another.

LLVM keeps it in registers. On processors without registers for masks, a mask that does not fit one vector register,
with a byte for each lane, is better left in memory: between blocks LLVM takes it apart to bits, and builds the masks of
its parts from these one by one. A load of 64 double numbers under such a mask, in a loop, takes 580 instructions
instead of 170.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.writer import Assembled, Part, typed
from hip_runtime.drivers.cpu.llvmir import I1, I8, VOID, allocate
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers, vector_bytes


class MaskPlace:
    """Memory for the mask of *width* lanes, which *entry* allocates."""

    def __init__(self, entry: ir.IRBuilder, width: int) -> None:
        self.stays_in_memory = not has_mask_registers() and width > vector_bytes()
        """Whether a mask is better loaded again in each block."""
        self._mask = ir.VectorType(I1, width)
        self._kept = ir.VectorType(I8 if self.stays_in_memory else I1, width)
        self._place = allocate(entry, self._kept, "mask")

    def load(self, builder: ir.IRBuilder) -> ir.Value:
        """The mask, as *builder* loads it."""
        if not self.stays_in_memory:
            return builder.load(self._place, typ=self._mask)
        found = _insert(builder, self._kept, ["load volatile ", self._kept, ", ", *typed(self._place)])
        return builder.icmp_signed("<", found, ir.Constant(self._kept, None))

    def store(self, builder: ir.IRBuilder, mask: ir.Value) -> None:
        """Have *builder* store *mask*."""
        if not self.stays_in_memory:
            builder.store(mask, self._place)
            return
        kept = builder.sext(mask, self._kept)
        _insert(builder, VOID, ["store volatile ", *typed(kept), ", ", *typed(self._place)])


def _insert(builder: ir.IRBuilder, kind: ir.Type, parts: list[Part]) -> ir.Value:
    """An instruction assembled from *parts*; llvmlite makes no volatile accesses."""
    made = Assembled(builder.block, kind, parts, "")
    builder._insert(made)
    return made
