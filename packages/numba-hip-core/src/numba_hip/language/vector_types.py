"""Vectors of one to four numbers: ``float32x4``, ``int32x2`` and their like, also by their names in C (``float4``).

A vector is made from numbers and other vectors that together have as many components, ``float4(float2(1, 2), 3, 4)``,
or from one number, which is copied to every component. A complex number has two components. They are read by the
attributes ``x``, ``y``, ``z`` and ``w``. Shared and private arrays can have vectors as elements, and
``array.view(float4)`` views an array of numbers as one of vectors. Vectors loaded by `numba_hip.language.vector` can
have more components, along several axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature
from numba.extending import models, register_model

from hip_runtime.said_names import our
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import Stub

COMPONENTS = ("x", "y", "z", "w")

C_NAMES: dict[types.Type, tuple[str, ...]] = {
    types.int8: ("char",), types.int16: ("short",), types.int32: ("int",), types.int64: ("long", "longlong"),
    types.uint8: ("uchar",), types.uint16: ("ushort",), types.uint32: ("uint",), types.uint64: ("ulong", "ulonglong"),
    types.float16: ("half",), types.float32: ("float",), types.float64: ("double",),
}  # fmt: skip
"""The types of components, and what CUDA and HIP call vectors of them, without the number of components."""


class VectorType(types.Type):
    """The type of vectors of components of type *base*: as many as *shape* says, or along each axis that it names."""

    def __init__(self, base: types.Type, shape: int | tuple[int, ...]) -> None:
        self.base = base
        self.shape = (shape,) if isinstance(shape, int) else shape
        super().__init__("x".join(map(str, (base, *self.shape))))

    @property
    def count(self) -> int:
        """The number of components."""
        return math.prod(self.shape)

    @property
    def key(self) -> tuple[types.Type, tuple[int, ...]]:
        """What makes two of these types the same."""
        return self.base, self.shape


class VectorStub(Stub):
    """A type of vectors by its name in the kernel language; called there, it makes a vector."""

    def __init__(self, kind: VectorType) -> None:
        super().__init__(kind.name, f"A vector of {kind.count} components of type {kind.base}.", __name__)
        self.kind = kind
        self.aliases = tuple(f"{c_name}{kind.count}" for c_name in C_NAMES[kind.base])
        """Its names in C."""

    @property
    def name(self) -> str:
        """The name of the type, such as ``float32x4``."""
        return str(self.kind.name)

    @property
    def dtype(self) -> types.Type:
        """The type of the components."""
        return self.kind.base

    @property
    def shape(self) -> tuple[int, ...]:
        """How many components there are, along each axis."""
        return self.kind.shape

    @property
    def length(self) -> int:
        """How many components there are."""
        return self.kind.count


class VectorClass(types.Function, types.DTypeSpec):
    """The type of a `VectorStub` in kernels: it is called for a vector, and names the elements of an array."""

    @property
    def dtype(self) -> VectorType:
        """The type of the vectors."""
        kind: VectorType = self.typing_key.kind
        return kind


register_model(VectorClass)(models.OpaqueModel)


@register_model(VectorType)
class _VectorModel(models.StructModel):
    def __init__(self, manager: Any, kind: VectorType) -> None:
        super().__init__(manager, kind, [(f"component{index}", kind.base) for index in range(kind.count)])


@typing.register_attr
class _VectorAttributes(AttributeTemplate):
    key = VectorType

    def generic_resolve(self, vector: VectorType, attribute: str) -> types.Type | None:
        return vector.base if attribute in COMPONENTS[: vector.count] else None


@lowering.lower_getattr_generic(VectorType)
def _component(context: Any, builder: ir.IRBuilder, vector: VectorType, value: ir.Value, name: str) -> ir.Value:
    return builder.extract_value(value, COMPONENTS.index(name))


def _count_of(part: types.Type) -> int:
    """How many components of a vector a value of that type provides."""
    if isinstance(part, VectorType):
        return part.count
    return 2 if isinstance(part, types.Complex) else 1


def _check_parts(kind: VectorType, parts: tuple[types.Type, ...]) -> None:
    passed = ", ".join(map(str, parts))
    for part in parts:
        if not isinstance(types.unliteral(part), (types.Number, types.Boolean, VectorType)):
            raise TypingError(f"{our(str(kind))} takes numbers and vectors, not ({passed})")
    count = sum(map(_count_of, parts))
    if count != kind.count and not _is_one_number(parts):
        raise TypingError(f"{our(str(kind))} has {kind.count} components; ({passed}) has {count}")


def _is_one_number(parts: tuple[types.Type, ...]) -> bool:
    return len(parts) == 1 and isinstance(types.unliteral(parts[0]), (types.Integer, types.Float))


def components(builder: ir.IRBuilder, value: ir.Value, kind: types.Type) -> list[tuple[ir.Value, types.Type]]:
    """The numbers in a number or vector *value* of type *kind*, each with its type."""
    if isinstance(kind, VectorType):
        return [(builder.extract_value(value, index), kind.base) for index in range(kind.count)]
    if isinstance(kind, types.Complex):
        return [(builder.extract_value(value, index), kind.underlying_float) for index in range(2)]
    return [(value, kind)]


def make_vector(
    context: Any, builder: ir.IRBuilder, kind: VectorType, numbers: Sequence[tuple[ir.Value, types.Type]]
) -> ir.Value:
    """The vector of type *kind* of *numbers*, each with its type; one alone becomes every component."""
    if len(numbers) == 1:
        numbers = [*numbers] * kind.count
    vector = ir.Constant(context.get_value_type(kind), ir.Undefined)
    for index, (number, of) in enumerate(numbers):
        vector = builder.insert_value(vector, context.cast(builder, number, of, kind.base), index)
    return vector


def _define(base: types.Type, count: int) -> VectorStub:
    kind = VectorType(base, count)
    stub = VectorStub(kind)

    class Template(AbstractTemplate):
        key = stub

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            if kws:
                raise TypingError(f"{our(str(kind))} takes no arguments by name")
            _check_parts(kind, args)
            return signature(kind, *args)

    typing.register(Template)
    typing.register_global(stub, VectorClass(Template))

    @lowering.lower(stub, types.VarArg(types.Any))
    def _make(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        pairs = zip(args, sig.args, strict=True)
        numbers = [number for value, of in pairs for number in components(builder, value, of)]
        return make_vector(context, builder, kind, numbers)

    return stub


def element_of(dtype: types.Type) -> types.Type | None:
    """The vector type that a dtype, the type of a stub, stands for; `None` for anything else."""
    return dtype.dtype if isinstance(dtype, VectorClass) else None


VECTORS: dict[str, VectorStub] = {}
"""Every type of vectors by its names."""

for _base in C_NAMES:
    for _count in range(1, 5):
        _stub = _define(_base, _count)
        VECTORS |= dict.fromkeys((_stub.__name__, *_stub.aliases), _stub)


def __getattr__(name: str) -> VectorStub:
    try:
        return VECTORS[name]
    except KeyError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
