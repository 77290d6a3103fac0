"""Loads from global into shared memory without registers, of CDNA: the manual's "LDS loads".

A lane's bytes go to the wave's base in M0, the offset of the instruction, which also counts for the global address, and
the number of the lane times the bytes. What the hardware does with addresses that are no multiples of the bytes is not
in the manual: here they are faults.
"""

from __future__ import annotations

from tools.amd_executor.instruction_frame import LONG, POINTER, WORD, long, word
from tools.amd_executor.memory_access import MemoryAccess

NAMES = ("GLOBAL_LOAD_LDS_DWORD",)

_M0 = 124
_BASE_MASK = 0xFFFF
_BYTES = 4


class DirectLoad(MemoryAccess):
    """Writes one load."""

    def write(self) -> None:
        """The loop over active lanes."""
        builder = self.builder
        base = builder.and_(self.frame.load(self.frame.place(_M0)), word(_BASE_MASK))
        start = builder.add(builder.zext(base, LONG), self.offset)
        with self.frame.lanes(self.enabled) as lane:
            address = self.address(lane, 0, _BYTES)
            own = builder.add(start, builder.zext(builder.mul(lane, word(_BYTES)), LONG))
            odd = builder.and_(builder.or_(address, own), long(_BYTES - 1))
            self.frame.demand(builder.icmp_unsigned("==", odd, long(0)), address)
            value = builder.load(builder.inttoptr(address, POINTER), typ=WORD, align=1)
            builder.store(value, builder.inttoptr(self.shared(own, _BYTES), POINTER), align=1)
