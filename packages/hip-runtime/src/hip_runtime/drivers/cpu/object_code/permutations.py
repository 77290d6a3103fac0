"""Instructions that give each lane of a vector any element of a register: so tables are looked up that are in some."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import llvmlite.binding as llvm

from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers


@dataclass(frozen=True)
class Permutation:
    """An instruction for *lanes* elements of *nbytes* at a time, each any of those of a register that has so many
    *elements* of a table; LLVM's intrinsics for one register and, if there is one, for two."""

    nbytes: int
    lanes: int
    elements: int
    of_one: str
    of_two: str = ""
    most_registers: int = 4
    """With more, a gather is as fast: of larger elements, as fewer of them are looked up at once."""

    @property
    def register_bytes(self) -> int:
        """What part of a table is in one register."""
        return self.elements * self.nbytes

    @property
    def most(self) -> int:
        """The elements of the largest table."""
        return self.most_registers * self.elements


_AVX512 = {
    1: Permutation(1, 64, 64, "llvm.x86.avx512.permvar.qi.512", "llvm.x86.avx512.vpermi2var.qi.512", 16),
    2: Permutation(2, 32, 32, "llvm.x86.avx512.permvar.hi.512", "llvm.x86.avx512.vpermi2var.hi.512", 16),
    4: Permutation(4, 16, 16, "llvm.x86.avx512.permvar.si.512", "llvm.x86.avx512.vpermi2var.d.512", 16),
    8: Permutation(8, 8, 8, "llvm.x86.avx512.permvar.di.512", "llvm.x86.avx512.vpermi2var.q.512", 4),
}
_EXTENSIONS = {1: "avx512vbmi", 2: "avx512bw"}

_AVX2 = {
    1: Permutation(1, 32, 16, "llvm.x86.avx2.pshuf.b"),
    4: Permutation(4, 8, 8, "llvm.x86.avx2.permd", most_registers=2),
}
"""That of bytes takes those of each half of a register from the same half, so that a table of 16 is in both."""


@cache
def find_permutation(nbytes: int) -> Permutation | None:
    """That of the current processor for elements of *nbytes*; ``None`` if it has none."""
    features = llvm.get_host_cpu_features()
    if has_mask_registers():
        return _AVX512.get(nbytes) if features.get(_EXTENSIONS.get(nbytes, "avx512f")) else None
    return _AVX2.get(nbytes) if features.get("avx2") else None
