"""The processor of this machine as LLVM knows it, and the libraries that its code may call."""

from __future__ import annotations

from functools import cache
from typing import Any

import llvmlite.binding as llvm

from hip_devicelib.isolated_codegen import make_host_machine

LIBRARIES = ("libm.so.6", "libgcc_s.so.1", "libSystem.dylib")
"""Libraries with functions that machine code may call."""

_LEAST_MASKED = 4
"""Bytes of the smallest elements that AVX loads and stores under a mask, and AVX-512 without its extension BW."""


@cache
def target_machine() -> Any:
    """LLVM's description of the current processor; also makes the C math library's symbols available to LLVM."""
    machine = make_host_machine()
    for library in LIBRARIES:
        try:
            llvm.load_library_permanently(library)
        except RuntimeError:
            continue  # of another system; missing symbols are found and named when code is loaded
    return machine


@cache
def vector_bytes() -> int:
    """Bytes of the largest vector register of the current processor that code should use."""
    features = llvm.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx") else 16


@cache
def vector_registers() -> int:
    """How many such registers there are."""
    few = _is_x86() and not llvm.get_host_cpu_features().get("avx512f")
    return 16 if few else 32


def _is_x86() -> bool:
    return bool(llvm.get_default_triple().startswith(("x86", "i686")))


@cache
def spreads_masks() -> bool:
    """Whether the current processor accesses elements of any size under a mask of bits, and has an instruction that
    puts such bits apart."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("avx512bw") and features.get("avx512vl") and features.get("bmi2"))


@cache
def masks_neighbours(nbytes: int) -> bool:
    """Whether the current processor has instructions that load and store vectors of elements of *nbytes* under a
    mask."""
    features = llvm.get_host_cpu_features()
    return bool(features.get("avx512bw") or (features.get("avx") and nbytes >= _LEAST_MASKED))


@cache
def converts_long_integers() -> bool:
    """Whether the current processor has instructions that convert vectors of integers of 64 bits from and to floats."""
    return not _is_x86() or bool(llvm.get_host_cpu_features().get("avx512dq"))


@cache
def packs_lanes(nbytes: int) -> bool:
    """Whether the current processor has an instruction that packs the elements of a vector, of *nbytes* each, that a
    mask chooses, or at least one that puts them in any order."""
    features = llvm.get_host_cpu_features()
    if not has_mask_registers():
        return bool(features.get("avx2") and nbytes in (4, 8))
    return bool(spreads_masks() and (nbytes in (4, 8) or (nbytes < 4 and features.get("avx512vbmi2"))))


@cache
def swapped_bytes() -> int:
    """Bytes of the widest compare-and-swap of the current processor."""
    return 16 if llvm.get_host_cpu_features().get("cx16") else 8


def has_mask_registers() -> bool:
    """Whether masks have registers of their own, a bit for each lane, as with AVX-512."""
    return vector_bytes() == 64
