"""Vectors of one to four numbers: ``float32x4``, ``int32x2`` and their like, also by their names in C (``float4``).

A vector is made of numbers and other vectors that together have as many components, ``float4(float2(1, 2), 3, 4)``, and
read by the attributes ``x``, ``y``, ``z`` and ``w``. Shared and private arrays can have vectors as elements.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.datamodel.models import StructModel
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature
from numba.extending import register_model

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
    """The type of vectors of *count* components of type *base*."""

    def __init__(self, base: types.Type, count: int) -> None:
        self.base = base
        self.count = count
        super().__init__(f"{base}x{count}")

    @property
    def key(self) -> tuple[types.Type, int]:
        """What makes two of these types the same."""
        return self.base, self.count


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


@register_model(VectorType)
class _VectorModel(StructModel):
    def __init__(self, manager: Any, kind: VectorType) -> None:
        super().__init__(manager, kind, [(name, kind.base) for name in COMPONENTS[: kind.count]])


@typing.register_attr
class _VectorAttributes(AttributeTemplate):
    key = VectorType

    def generic_resolve(self, vector: VectorType, attribute: str) -> types.Type | None:
        return vector.base if attribute in COMPONENTS[: vector.count] else None


@lowering.lower_getattr_generic(VectorType)
def _component(context: Any, builder: ir.IRBuilder, vector: VectorType, value: ir.Value, name: str) -> ir.Value:
    return builder.extract_value(value, COMPONENTS.index(name))


def _check_parts(kind: VectorType, parts: tuple[types.Type, ...]) -> None:
    passed = ", ".join(map(str, parts))
    for part in parts:
        if not isinstance(types.unliteral(part), (types.Integer, types.Float, types.Boolean, VectorType)):
            raise TypingError(f"hip.{kind} is made of numbers and vectors, not of ({passed})")
    count = sum(part.count if isinstance(part, VectorType) else 1 for part in parts)
    if count != kind.count:
        raise TypingError(f"hip.{kind} has {kind.count} components; ({passed}) has {count}")


def _define(base: types.Type, count: int) -> VectorStub:
    kind = VectorType(base, count)
    stub = VectorStub(kind)

    class Template(AbstractTemplate):
        key = stub

        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            if kws:
                raise TypingError(f"hip.{kind} takes no arguments by name")
            _check_parts(kind, args)
            return signature(kind, *args)

    typing.register(Template)
    typing.register_global(stub, types.Function(Template))

    @lowering.lower(stub, types.VarArg(types.Any))
    def _make(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        numbers = []
        for value, part in zip(args, sig.args, strict=True):
            if isinstance(part, VectorType):
                components = [builder.extract_value(value, index) for index in range(part.count)]
                numbers += [context.cast(builder, component, part.base, base) for component in components]
            else:
                numbers.append(context.cast(builder, value, part, base))
        vector = ir.Constant(context.get_value_type(kind), ir.Undefined)
        for index, number in enumerate(numbers):
            vector = builder.insert_value(vector, number, index)
        return vector

    return stub


def element_of(dtype: types.Type) -> types.Type | None:
    """The type of vectors that a dtype, the type of a stub, stands for; `None` for anything else."""
    stub = dtype.typing_key if isinstance(dtype, types.Function) else None
    return stub.kind if isinstance(stub, VectorStub) else None


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
