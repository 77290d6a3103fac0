"""``print`` in kernels: numbers, booleans, string literals, tuples of numbers, and formatted text.

A print is a record in a buffer that the host reads once the kernel is done: `numba_hip.abi.print_record` has its
layout, and `numba_hip.dispatch.print_output` formats it. The address of the buffer is the last parameter of a kernel
that prints; its entry stores it in a global variable, where every function finds it."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any
from weakref import WeakSet

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.errors import TypingError

from numba_hip.abi.print_record import CAPACITY_WORDS, DROPPED, HEADER_WORDS, PARAMETER, USED, Tag
from numba_hip.bfloat import Bfloat16
from numba_hip.float8 import Float8
from numba_hip.language.registry import lowering
from numba_hip.language.text_templates import TemplateType, TextTemplate
from numba_hip.language.thread_index import AXES, Dim3Type
from numba_hip.language.vector_types import VectorType

I64 = ir.IntType(64)

_printing: WeakSet[Any] = WeakSet()
"""Libraries with functions that print."""


def prints(library: Any) -> bool:
    """Whether a kernel made of *library* prints."""
    return any(part in _printing for part in library.closure())


def _variable(module: ir.Module, space: int) -> ir.GlobalVariable:
    known = module.globals.get(PARAMETER)
    if known is None:
        known = ir.GlobalVariable(module, ir.PointerType(I64), PARAMETER, space)
    return known


def add_parameter(library: Any, passed: list[ir.Type], space: int) -> bool:
    """Add the parameter for the buffer to the types *passed* to a kernel made of *library*, if it prints."""
    if not prints(library):
        return False
    passed.append(ir.PointerType(I64, space))
    return True


def store_parameter(builder: ir.IRBuilder, parameter: ir.Argument, space: int) -> None:
    """In the entry of a kernel: make the buffer available to its functions."""
    parameter.name = PARAMETER
    variable = _variable(builder.module, space)
    variable.initializer = ir.Constant(variable.value_type, None)
    pointer = builder.addrspacecast(parameter, variable.value_type) if space else parameter
    builder.store_atomic(pointer, variable, "monotonic", 8)  # every thread writes the same


@lowering.lower(print, types.VarArg(types.Any))
def _print(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    words = [word for value, kind in zip(args, sig.args, strict=True) for word in _words(context, builder, kind, value)]
    _printing.add(context.active_code_library)
    variable = _variable(builder.module, context.global_address_space)
    buffer = builder.load_atomic(variable, "monotonic", 8)
    _write_record(context, builder, buffer, words)
    return context.get_dummy_value()


def _write_record(context: Any, builder: ir.IRBuilder, buffer: ir.Value, words: Sequence[ir.Value]) -> None:
    size = ir.Constant(I64, len(words) + 1)
    used = builder.gep(buffer, [ir.Constant(I64, USED)])
    start = context.atomic_rmw(builder, "add", used, size)
    end = builder.add(start, size)
    fits = builder.icmp_unsigned("<=", end, ir.Constant(I64, CAPACITY_WORDS))
    with builder.if_else(fits, likely=True) as (then, otherwise):
        with then:
            for number, word in enumerate((size, *words)):
                place = builder.add(start, ir.Constant(I64, HEADER_WORDS + number))
                builder.store(word, builder.gep(buffer, [place]))
        with otherwise:
            dropped = builder.gep(buffer, [ir.Constant(I64, DROPPED)])
            context.atomic_rmw(builder, "add", dropped, ir.Constant(I64, 1))


def _words(context: Any, builder: ir.IRBuilder, given: types.Type, value: ir.Value) -> list[ir.Value]:
    """A tag, and the bits of the value in 64-bit words; for several values their number and each of them."""
    if isinstance(given, types.StringLiteral):
        return _text(given.literal_value)
    members = _members(context, builder, given, value)
    if members and isinstance(members[0][0], TemplateType):
        return _filled(context, builder, members[0][0].template, members[1:])
    if members is not None:
        words = [word for kind, member in members for word in _words(context, builder, kind, member)]
        if not isinstance(given, types.BaseNamedTuple):
            return [_head(Tag.TUPLE, len(members)), *words]
        names = [word for name in (given.instance_class.__name__, *given.fields) for word in _text(name)]
        return [_head(Tag.NAMED_TUPLE, len(members)), *names, *words]
    kind = types.float32 if isinstance(given, (Bfloat16, Float8)) else types.unliteral(given)
    value = context.cast(builder, value, given, kind)
    if isinstance(kind, types.Boolean):
        return [ir.Constant(I64, Tag.BOOL), builder.zext(context.is_true(builder, kind, value), I64)]
    if isinstance(kind, types.Integer):
        widened = context.cast(builder, value, kind, types.int64 if kind.signed else types.uint64)
        return [ir.Constant(I64, Tag.INT if kind.signed else Tag.UINT), widened]
    if isinstance(kind, types.Float):
        return [ir.Constant(I64, _float_tag(kind)), _bits(context, builder, kind, value)]
    if isinstance(kind, types.Complex):
        number = context.make_complex(builder, kind, value)
        part = kind.underlying_float
        tag = Tag.COMPLEX64 if part == types.float32 else Tag.COMPLEX128
        return [ir.Constant(I64, tag), *(_bits(context, builder, part, half) for half in (number.real, number.imag))]
    raise TypingError(f"print in a kernel takes numbers, booleans, text in quotes and tuples of numbers, not a {kind}")


def _members(
    context: Any, builder: ir.IRBuilder, kind: types.Type, value: ir.Value
) -> list[tuple[types.Type, ir.Value]] | None:
    """The types and values of the components of a tuple, a vector, or three indices; None for a single value."""
    if isinstance(kind, types.BaseTuple):
        return list(zip(kind, cgutils.unpack_tuple(builder, value, len(kind)), strict=True))
    if isinstance(kind, VectorType):
        return [(kind.base, builder.extract_value(value, place)) for place in range(kind.count)]
    if isinstance(kind, Dim3Type):
        return [(types.int32, getattr(context, kind.stub.query)(builder, axis)) for axis in AXES]
    return None


def _filled(
    context: Any, builder: ir.IRBuilder, template: TextTemplate, values: Sequence[tuple[types.Type, ir.Value]]
) -> list[ir.Value]:
    """A template, and the values in its places."""
    words: list[ir.Value] = [_head(Tag.JOINED, len(template.pieces))]
    remaining = iter(values)
    for piece in template.pieces:
        if isinstance(piece, str):
            words += _text(piece)
            continue
        kind, value = next(remaining)
        is_number = isinstance(types.unliteral(kind), _FORMATTED)
        if piece.spec or (piece.spec is not None and is_number):
            _check_format(piece.spec, piece.percent, kind)
            words += [_head(Tag.FORMATTED, int(piece.percent)), *_text(piece.spec)]
        words += _words(context, builder, kind, value)
    return words


_FORMATTED = (types.Boolean, types.Integer, types.Float, types.Complex, Bfloat16, Float8)
"""The types whose values have formats."""


def _check_format(spec: str, percent: bool, kind: types.Type) -> None:
    """Raise `TypingError` for a format that values of *kind* do not have."""
    kind = types.unliteral(kind)
    samples = (
        (types.Boolean, True), (types.Integer, 1), (types.Float, 1.0), (Bfloat16, 1.0), (Float8, 1.0),
        (types.Complex, 1j),
    )  # fmt: skip
    sample = next((sample for known, sample in samples if isinstance(kind, known)), None)
    shown = repr(spec)
    if sample is None:
        raise TypingError(f"print in a kernel takes no format {shown} of a {kind}: numbers and booleans have formats")
    try:
        _ = spec % sample if percent else format(sample, spec)
    except (ValueError, TypeError) as error:
        raise TypingError(
            f"print in a kernel takes no format {shown} of a {kind}: {error}; formats are those of Python's numbers, "
            "as in {x:.3f}, {i:>5}, %g"
        ) from None


def _head(tag: Tag, count: int) -> ir.Constant:
    return ir.Constant(I64, tag | count << 8)


def _text(text: str) -> list[ir.Value]:
    data = text.encode()
    padded = data + b"\0" * (-len(data) % 8)
    numbers = struct.unpack(f"<{len(padded) // 8}q", padded)
    return [_head(Tag.TEXT, len(data)), *(ir.Constant(I64, number) for number in numbers)]


def _float_tag(kind: types.Float) -> Tag:
    return {16: Tag.FLOAT16, 32: Tag.FLOAT32, 64: Tag.FLOAT64}[kind.bitwidth]


def _bits(context: Any, builder: ir.IRBuilder, kind: types.Float, value: ir.Value) -> ir.Value:
    """As a double, which represents all narrower numbers exactly."""
    return builder.bitcast(context.cast(builder, value, kind, types.float64), I64)
