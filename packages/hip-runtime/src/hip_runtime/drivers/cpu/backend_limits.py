"""What LLVM's code generator may not survive, looked for in the text of an optimised module.

It ends the process on IR that verifies but that it has no instruction for, and on assembly that it cannot read. Where
nothing of what is listed here occurs, machine code is made in this process; else `hip_devicelib.emission` makes it in
another one.
"""

from __future__ import annotations

import re

from hip_devicelib.hazards import (
    FLOAT_INTRINSICS,
    FLOAT_INTRINSICS_NOT_BFLOAT,
    FLOAT_INTRINSICS_NOT_DOUBLE,
    INTEGER_INTRINSICS,
    PLAIN_INTRINSICS,
)

_WORDS = (
    " asm ", "fp128", "x86_fp80", "ppc_fp128", "invoke ", "landingpad", "thread_local", " ifunc ", "callbr ",
    "indirectbr ", "x86_amx", "musttail", "llvm.global_ctors", "llvm.global_dtors", " target(", "vscale", "cleanuppad",
    "catchswitch", "swiftcc", "preallocated", "inalloca", "statepoint", "llvm.coro", "gc \"",
)  # fmt: skip
"""Words that stand for something that the CPU device has no need of. One inside of a name costs time, no more."""

_OTHER_INTRINSICS = frozenset(
    "masked.load masked.store masked.gather masked.scatter masked.compressstore masked.expandload vector.reduce.add "
    "vector.reduce.mul vector.reduce.and vector.reduce.or vector.reduce.xor vector.reduce.smax vector.reduce.smin "
    "vector.reduce.umax vector.reduce.umin vector.reduce.fadd vector.reduce.fmul vector.reduce.fmax vector.reduce.fmin "
    "vector.reduce.fmaximum vector.reduce.fminimum vector.insert vector.extract vector.interleave2 "
    "vector.deinterleave2 get.active.lane.mask frameaddress.p0 returnaddress prefetch.p0 pseudoprobe "
    "scmp ucmp threadlocal.address.p0 ssa.copy expect.with.probability tan asin acos atan sinh cosh atan2 "
    "x86.avx512.mask.cvttps2qq.512 x86.sse2.pause vector.partial.reduce.add stepvector".split()
)
"""Further intrinsics that every processor has, or a function of the C library."""

_KNOWN = (
    FLOAT_INTRINSICS | FLOAT_INTRINSICS_NOT_BFLOAT | FLOAT_INTRINSICS_NOT_DOUBLE | INTEGER_INTRINSICS | PLAIN_INTRINSICS
    | _OTHER_INTRINSICS
)  # fmt: skip

_OWN_PREFIXES = ("x86.sse", "x86.avx", "x86.fma", "x86.f16c", "x86.bmi")
"""Starts of intrinsics that LLVM's own passes put in for this processor."""

_INTRINSIC = re.compile(r'^declare [^@\n]*@"?llvm\.([a-z0-9_.]+)', re.MULTILINE)
_TYPE = re.compile(r"\.(?:nx)?(?:v\d+)?(?:i\d+|f\d+|bf16|p\d+)$")
_INTEGER = re.compile(r"(?<![\w%@.$\"-])i(\d{3,})\b")
_WIDEST = 128


MACHINES = frozenset(
    "aarch64 amdgcn arm bpf dx hexagon loongarch mips nvvm ppc r600 riscv s390 spv ve wasm x86 xcore".split()
)
"""Second part of the names of LLVM's intrinsics that only one kind of machine has; from the list of targets in LLVM's
``llvm/IR/Intrinsics*.td``."""


def doubts(text: str) -> list[str]:
    """Why machine code of the module that is printed as *text* may not be possible; empty where nothing is known."""
    reasons = [word.strip() for word in _WORDS if word in text]
    for name in _INTRINSIC.findall(text):
        base = name
        while (shorter := _TYPE.sub("", base)) != base:
            base = shorter
        if base not in _KNOWN and name not in _KNOWN and not base.startswith(_OWN_PREFIXES):
            reasons.append(f"llvm.{name}")
    wide = {number for number in map(int, _INTEGER.findall(text)) if number > _WIDEST}
    return [*reasons, *(f"i{number}" for number in sorted(wide))]
