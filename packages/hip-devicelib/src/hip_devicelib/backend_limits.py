"""Limits of LLVM's AMDGPU backend: code on which it would end the process, found before it is compiled.

The backend ends the process on IR that verifies but for which it has no instruction. A module is therefore checked
first, with three possible results: it cannot be compiled (an error with advice), it can (everything in it was tried),
or that is unknown (the reasons; `hip_devicelib.isolated_codegen` then compiles it in another process). The tables were
made by compiling each intrinsic with LLVM 20 and LLVM 22. The tests compile all those that are listed as supported by
every processor.
"""

from __future__ import annotations

import math
import re

import llvmlite.binding as llvm

from hip_devicelib.errors import InvalidIRError, UnsupportedError
from hip_devicelib.shared_memory import lay_out_shared_memory, shared_variables
from hip_devicelib.target import Target

_SCALARS = frozenset({"f16", "bf16", "f32", "f64"})
_INTEGERS = frozenset({"i1", "i8", "i16", "i32", "i64"})

FLOAT_INTRINSICS = frozenset(
    "sqrt fabs floor ceil trunc rint nearbyint round roundeven canonicalize copysign minnum maxnum minimum maximum "
    "minimumnum maximumnum ldexp fma fmuladd frexp is.fpclass fptosi.sat fptoui.sat".split()
)
"""Intrinsics that every processor supports for half, bfloat, float and double."""

FLOAT_INTRINSICS_NOT_DOUBLE = frozenset("sin cos exp exp2 exp10 log log2 log10 pow powi sincos".split())
"""Intrinsics that every processor supports for half, bfloat and float, and none for double."""

FLOAT_INTRINSICS_NOT_BFLOAT = frozenset("lround llround lrint llrint".split())
"""Intrinsics that every processor supports for half, float and double, and none for bfloat."""

MISSING_INTRINSICS = frozenset("tan asin acos atan sinh cosh atan2 modf sincospi".split())
"""LLVM's math intrinsics that no processor supports for any type."""

INTEGER_INTRINSICS = frozenset(
    "abs smax smin umax umin bswap bitreverse ctpop ctlz cttz fshl fshr sadd.sat uadd.sat ssub.sat usub.sat sshl.sat "
    "ushl.sat sadd.with.overflow uadd.with.overflow ssub.with.overflow usub.with.overflow smul.with.overflow "
    "umul.with.overflow expect is.constant".split()
)
"""Intrinsics that every processor supports for integers of 1, 8, 16, 32 and 64 bits."""

PLAIN_INTRINSICS = frozenset(
    "memcpy memmove memset lifetime.start lifetime.end assume dbg.declare dbg.value dbg.label invariant.start "
    "invariant.end experimental.noalias.scope.decl trap debugtrap readcyclecounter readsteadycounter ptrmask "
    "objectsize donothing sideeffect stacksave stackrestore launder.invariant.group strip.invariant.group".split()
)
"""Intrinsics for memory, pointers and control flow that every processor supports."""

AMDGCN_INTRINSICS = frozenset(
    "workitem.id.x workitem.id.y workitem.id.z workgroup.id.x workgroup.id.y workgroup.id.z dispatch.ptr dispatch.id "
    "implicitarg.ptr kernarg.segment.ptr queue.ptr groupstaticsize wavefrontsize s.barrier wave.barrier sched.barrier "
    "s.sleep s.getreg mbcnt.lo mbcnt.hi ds.bpermute ds.permute ds.swizzle readlane readfirstlane "
    "writelane ballot icmp fcmp update.dpp mov.dpp rcp rsq sqrt fract frexp.mant frexp.exp class div.scale "
    "div.fmas div.fixup trig.preop sin cos log exp2 fmed3 fmul.legacy sbfe ubfe sad.u8 msad.u8 sad.u16 lerp alignbyte "
    "perm cvt.pkrtz cvt.pknorm.i16 cvt.pknorm.u16 cvt.pk.i16 cvt.pk.u16 mul.i24 mul.u24 "
    "wqm.vote is.shared is.private".split()
)
"""Intrinsics of the AMDGPU backend, without ``llvm.amdgcn.``, that every processor in the table supports."""

_DOUBTFUL_WORDS = (
    " asm ", "fp128", "x86_fp80", "invoke ", "landingpad", "thread_local", "ifunc", "callbr", "indirectbr", "x86_amx",
    '"amdgpu-num-vgpr"', '"amdgpu-num-sgpr"', "musttail", "llvm.global_ctors", "llvm.global_dtors",
    "target(", "vscale", "cleanuppad", "catchswitch", "swiftcc", "amdgpu_gfx", "amdgpu_cs",
)  # fmt: skip
"""Words in printed IR for features that were not tried on every processor.

The whole text is searched for them. A match within a name only costs a compilation in another process.
"""

WIDEST_INTEGER = 512
"""The most bits of an integer: three products take LLVM 0.2 s with as many, 20 s with twice as many, 60 s with three
times as many."""

_MOST_VECTOR_WORDS = 2048
"""The most elements of a vector, of up to 64 bits each: LLVM's time grows with the square of their number."""

_INTEGER = re.compile(r"i(?<![\w%@.$\"-]i)(6[5-9]|[7-9]\d|\d{3,})\b")
"""An integer of more than 64 bits. Like the other patterns, it starts with letters rather than with a choice, or with
what may not stand before it: `re` looks for those many times as fast, and modules have up to a million letters."""

_VECTOR = re.compile(r"<(\d+) x (?:i(\d+))?")

_PRIVATE_BYTES_TRIED = 64 * 1024
"""Half of the lowest limit of private memory (131056 bytes of a thread) that was observed for the backend."""

_ASSEMBLY = re.compile(r'^(?:module asm "|.* call .* asm (?:\w+ )*")', re.MULTILINE)

_FLOAT_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}

_SCOPES = frozenset("singlethread wavefront workgroup cluster agent one-as".split())
"""Synchronisation scopes of the backend, each also with ``-one-as`` appended. Without a scope, the whole system is
meant."""

_CONVENTION = r"(cc ?\d+|\w*cc|(?:spir|ptx|amdgpu)_\w+) "
_OF_FUNCTION = re.compile(rf"\nde(?:fine|clare) (?:[^@\n]* )?{_CONVENTION}")
_OF_CALL = re.compile(rf" call {_CONVENTION}")
_CONVENTIONS = frozenset({"ccc", "fastcc", "coldcc", "amdgpu_kernel"})
"""Calling conventions that every processor supports."""

_ADDRESS_SPACE = re.compile(r"addrspace\((\d+)\)")
_ADDRESS_SPACES = frozenset("01345")
"""Address spaces of every processor: generic, global, shared, constant and private."""


def check_source(module: llvm.ModuleRef, target: Target) -> None:
    """Check *module* for IR on which the optimisation pipeline for *target* crashes, or which it compiles wrongly.

    Raises `UnsupportedError` and `InvalidIRError`.
    """
    for function in module.functions:
        if function.is_declaration and function.name == "printf":
            raise UnsupportedError(
                "a call of 'printf': the AMDGPU backend lowers it only for OpenCL and ends the process"
            )
        for attributes in function.attributes:
            compiled_for = _quoted_value(attributes.decode(), "target-cpu")
            if compiled_for not in (None, "", target.name):
                raise InvalidIRError(
                    f"function {function.name!r} was compiled for {compiled_for}, not for {target.name}: build it for "
                    f"{target.name}, or leave out the attribute target-cpu"
                )


def vector_limit(bits: int) -> int:
    """The most elements that a vector of *bits* bits may have."""
    return _MOST_VECTOR_WORDS // -(-bits // 64)


def integer_widths(text: str) -> set[int]:
    """The sizes of the integers of more than 64 bits in the module printed as *text*."""
    return set(map(int, _INTEGER.findall(text)))


def find_oversized(text: str) -> str | None:
    """A description of what would take LLVM minutes in the module printed as *text*, with the limit."""
    widest = max(integer_widths(text), default=0)
    if widest > WIDEST_INTEGER:
        return f"integers of {widest} bits, and LLVM is given {WIDEST_INTEGER} at most"
    for count, bits in set(_VECTOR.findall(text)):
        if int(count) > (most := vector_limit(int(bits or 64))):
            return f"vectors of {count} elements, and LLVM is given {most} at most"
    return None


def check_module(module: llvm.ModuleRef, target: Target) -> tuple[str, ...]:
    """The reasons for doubt whether *module* compiles for *target*; empty if everything in it is known to.

    *module* has been verified and has the data layout of *target*. Raises `UnsupportedError` for code that is known not
    to compile, and `InvalidIRError` for IR that is compiled to something else than it means.
    """
    check_source(module, target)
    names = [function.name for function in module.functions if function.is_declaration]
    reasons = [reason for name in names if name.startswith("llvm.") and (reason := _check_intrinsic(name, target))]
    reasons += _check_shared_memory(module, target)
    text = str(module)
    reasons += [f"{word.strip()!r} in the IR" for word in _DOUBTFUL_WORDS if word in text]
    if " frem " in text and "bfloat" in text:
        reasons.append("'frem' on bfloat")
    if " alloca " in text:
        reasons += _check_allocas(module, target)
    reasons += [f"an integer of {bits} bits" for bits in sorted(integer_widths(text))]
    reasons += [f"synchronisation scope {scope!r}" for scope in _unknown_scopes(text)]
    reasons += [f"calling convention {word!r}" for word in sorted(_conventions(text) - _CONVENTIONS)]
    reasons += [f"address space {number}" for number in sorted({*_ADDRESS_SPACE.findall(text)} - _ADDRESS_SPACES)]
    return tuple(reasons)


def has_assembly(text: str) -> bool:
    """Whether the module printed as *text* has assembly of its own."""
    return " asm " in text and bool(_ASSEMBLY.search(text))


def _unknown_scopes(text: str) -> list[str]:
    scopes = {part.partition('"')[0] for part in text.split('syncscope("')[1:]}
    return sorted(scope for scope in scopes if scope.removesuffix("-one-as") not in _SCOPES)


def _conventions(text: str) -> set[str]:
    """The calling conventions of functions and calls, where they are named."""
    return {*_OF_FUNCTION.findall(f"\n{text}"), *_OF_CALL.findall(text)}


def _quoted_value(attributes: str, key: str) -> str | None:
    _, found, rest = attributes.partition(f'"{key}"="')
    return rest.partition('"')[0] if found else None


def _check_intrinsic(name: str, target: Target) -> str | None:
    """Why the intrinsic called *name* (``llvm.sin.f64``) may not compile, or None if it does."""
    if name.startswith("llvm.amdgcn."):
        base, _ = _split_name(name.removeprefix("llvm.amdgcn."))
        known = base in AMDGCN_INTRINSICS or _multiplies_matrices(name, target) or _loads_directly(name, target)
        known = known or _converts_float8(name, target)
        return None if known else f"the intrinsic {name}"
    base, types = _split_name(name.removeprefix("llvm."))
    scalars = {_scalar(text) for text in types}
    missing = base in MISSING_INTRINSICS
    missing |= base in FLOAT_INTRINSICS_NOT_DOUBLE and "f64" in scalars
    missing |= base in FLOAT_INTRINSICS_NOT_BFLOAT and "bf16" in scalars
    if missing:
        raise UnsupportedError(
            f"{target.name} has no instruction for {name}: call the OCML function instead "
            f"(for example __ocml_{base}_{'f64' if 'f64' in scalars else 'f32'}) and link the device library"
        )
    known = base in PLAIN_INTRINSICS
    known |= base in INTEGER_INTRINSICS and all(text in _INTEGERS for text in types)
    floats = FLOAT_INTRINSICS | FLOAT_INTRINSICS_NOT_DOUBLE | FLOAT_INTRINSICS_NOT_BFLOAT
    known |= base in floats and scalars <= _SCALARS | _INTEGERS
    return None if known else f"the intrinsic {name}"


def _multiplies_matrices(name: str, target: Target) -> bool:
    from hip_devicelib.matrix_instructions import matrix_instructions  # few kernels need it

    return any(one.intrinsic == name for one in matrix_instructions(target))


def _converts_float8(name: str, target: Target) -> bool:
    from hip_devicelib import float8_conversions as conversions  # few kernels need it

    ways = (conversions.widening_intrinsic, conversions.narrowing_intrinsic)
    return any(name == way(short) for short in conversions.float8_names(target).values() for way in ways)


def _loads_directly(name: str, target: Target) -> bool:
    from hip_devicelib.direct_loads import INTRINSIC, direct_load_widths  # few kernels need it

    return name in (INTRINSIC, "llvm.amdgcn.s.waitcnt") and bool(direct_load_widths(target))


def _split_name(name: str) -> tuple[str, list[str]]:
    """Split ``fma.v2f32`` into the intrinsic's name and its overloaded types."""
    parts = name.split(".")
    types: list[str] = []
    while len(parts) > 1 and _is_type(parts[-1]):
        types.insert(0, parts.pop())
    return ".".join(parts), types


def _is_type(text: str) -> bool:
    scalar = _scalar(text)
    return scalar in _SCALARS or scalar == "f128" or (scalar[:1] in ("i", "p") and scalar[1:].isdigit())


def _scalar(text: str) -> str:
    """The element type of a mangled vector type of up to 16 elements (``v2f32``), or *text* itself."""
    if text.startswith("v"):
        digits = text[1:3] if text[2:3].isdigit() else text[1:2]
        if digits.isdigit() and int(digits) <= 16:
            return text[1 + len(digits) :]
    return text


def _check_shared_memory(module: llvm.ModuleRef, target: Target) -> list[str]:
    reasons = []
    for variable in shared_variables(module):
        # The hardware does not initialise shared memory, so a definition has to end in one of these two words.
        definition = str(variable).split(", align")[0].rstrip()
        if not variable.is_declaration and not definition.endswith(("poison", "undef")):
            reasons.append(f"an initial value of shared memory {variable.name!r}")
    total = lay_out_shared_memory(module)
    if total > target.lds_bytes:
        reasons.append(f"{total} bytes of shared memory, of {target.lds_bytes} that a block can have")
    return reasons


def _check_allocas(module: llvm.ModuleRef, target: Target) -> list[str]:
    reasons = []
    for function in module.functions:
        allocas = [i for block in function.blocks for i in block.instructions if i.opcode == "alloca"]
        for instruction in allocas:
            if str(instruction.type) != "ptr addrspace(5)":
                raise InvalidIRError(
                    f"an alloca in {function.name!r} is not in address space 5, where private memory lies: "
                    f"{str(instruction).strip()}"
                )
        texts = [str(instruction) for instruction in allocas]
        least = sum(map(_least_bytes, texts))
        if least > target.private_bytes:  # LLVM computes offsets in 32 bits, and the code would access memory of others
            raise UnsupportedError(
                f"{least} bytes of private memory in {function.name!r}; a thread on {target.name} has at most "
                f"{target.private_bytes}"
            )
        if sum(map(_most_bytes, texts)) > _PRIVATE_BYTES_TRIED:
            reasons.append(f"much private memory in {function.name!r}")
    return reasons


def _least_bytes(text: str) -> int:
    """An upper bound of the bytes of a printed alloca: the product of the extents before the element type and of its
    size, if that is a number. None if the text does not tell."""
    kind, _, rest = text.partition(" alloca ")[2].partition(",")
    total = 1
    while kind.startswith("["):
        extent, _, kind = kind[1:].partition(" x ")
        total *= int(extent)
    kind = kind.rstrip("]")
    bits = int(kind[1:]) if kind[:1] == "i" and kind[1:].isdigit() else _FLOAT_BITS.get(kind, 0)
    words = rest.split(",")[0].split()  # the number of elements with its type, or something else
    count = int(words[1]) if len(words) == 2 and words[0][:1] == "i" and words[1].isdigit() else 1
    return total * count * bits // 8


def _most_bytes(text: str) -> int:
    """A lower bound of the bytes of a printed alloca: eight for each member, times all the numbers in it."""
    kind = text.partition(" alloca ")[2]
    if kind.startswith("%") or "x %" in kind:
        return _PRIVATE_BYTES_TRIED + 1  # a named structure, whose size is not in the text
    numbers = [int(word) for word in kind.replace("[", " ").replace(",", " ").split() if word.isdigit()]
    return 8 * (kind.count(",") + 1) * math.prod(max(number, 1) for number in numbers)
