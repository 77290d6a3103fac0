"""Finds IR on which LLVM may abort, in the text of a module.

Its code generator aborts on valid IR that it has no instruction for, and on assembly that it cannot parse; its passes
abort on intrinsics in unexpected places, and its reader on calls that it mistakes for intrinsics of an older LLVM. A
module with none of what is listed here is compiled in this process, any other in a separate one.
"""

from __future__ import annotations

import re

from hip_devicelib.backend_limits import (
    FLOAT_INTRINSICS,
    FLOAT_INTRINSICS_NOT_BFLOAT,
    FLOAT_INTRINSICS_NOT_DOUBLE,
    INTEGER_INTRINSICS,
    PLAIN_INTRINSICS,
    integer_widths,
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

_PLAIN = (
    FLOAT_INTRINSICS | FLOAT_INTRINSICS_NOT_BFLOAT | FLOAT_INTRINSICS_NOT_DOUBLE | INTEGER_INTRINSICS | PLAIN_INTRINSICS
)  # fmt: skip
_KNOWN = _PLAIN | _OTHER_INTRINSICS
_COPYING = ("memcpy", "memmove", "memset")
_COPYING_PARAMETERS = 4

_OWN_PREFIXES = ("x86.sse", "x86.avx", "x86.fma", "x86.f16c", "x86.bmi")
"""Starts of intrinsics that LLVM's own passes put in for this processor."""

_INTRINSIC = re.compile(r'\ndeclare [^@\n]*@"?llvm\.([a-z0-9_.]+)')
"""It starts with letters, which `re` looks for faster than for the starts of lines."""

_TYPE = re.compile(r"\.(?:nx)?(?:v\d+)?(?:i\d+|f\d+|bf16|p\d+\w*)$")
_WIDEST = 128


MACHINES = frozenset(
    "aarch64 amdgcn arm bpf dx hexagon loongarch mips nvvm ppc r600 riscv s390 spv ve wasm x86 xcore".split()
)
"""Second part of the names of LLVM's intrinsics that only one kind of machine has; from the list of targets in LLVM's
``llvm/IR/Intrinsics*.td``."""


def doubts(text: str) -> list[str]:
    """Reasons why generating machine code from the module printed as *text* may fail; empty if there are none."""
    reasons = [word.strip() for word in _WORDS if word in text]
    for name in _INTRINSIC.findall(f"\n{text}"):
        base = _without_types(name)
        if base not in _KNOWN and name not in _KNOWN and not base.startswith(_OWN_PREFIXES):
            reasons.append(f"llvm.{name}")
    wide = {number for number in integer_widths(text) if number > _WIDEST}
    return [*reasons, *(f"i{number}" for number in sorted(wide))]


def is_rare(intrinsic: str, parameters: int) -> bool:
    """Whether LLVM may abort when it reads a call of *intrinsic*, by its name, with so many *parameters*: it upgrades
    intrinsics of an older LLVM to today's, and aborts if they are neither."""
    base = _without_types(intrinsic.removeprefix("llvm."))
    return base not in _PLAIN or (base in _COPYING and parameters != _COPYING_PARAMETERS)


def _without_types(name: str) -> str:
    """What an intrinsic does, of a name that ends in the types that it is for."""
    while (shorter := _TYPE.sub("", name)) != name:
        name = shorter
    return name
