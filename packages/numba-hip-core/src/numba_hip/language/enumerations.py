"""Members of ``enum.IntEnum`` and ``enum.IntFlag`` as numbers.

Numba converts the former to integers only, and takes the latter for members without a number, as those of
``enum.Enum`` are.
"""

from __future__ import annotations

import enum
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, signature
from numba.extending import models, register_model, typeof_impl

from numba_hip._numba.typing import Conversion
from numba_hip.language.registry import lowering, typing
from numba_hip.typeof import TypeofContext, kernel_typeof_impl


class FlagClass(types.IntEnumClass):
    """The type of a class of flags."""

    @property
    def member_type(self) -> types.Type:
        """Numba's hook: the type of its members."""
        return Flag(self.instance_class, self.dtype)


class Flag(types.IntEnumMember):
    """The type of a flag, which Numba does not convert to a number as the class is no ``IntEnum``."""

    basename = "IntFlag"
    class_type_class = FlagClass

    def can_convert_to(self, context: Any, other: types.Type) -> Conversion | None:
        """Numba's hook: how well a flag becomes *other*."""
        found = context.can_convert(self.dtype, other)
        return None if found is None else max(found, Conversion.safe)


register_model(FlagClass)(models.OpaqueModel)
register_model(Flag)(models.EnumModel)


@kernel_typeof_impl.register(enum.EnumMeta)
def _typeof_class(value: enum.EnumMeta, context: TypeofContext) -> types.Type | None:
    found: types.Type | None = typeof_impl(value, context)
    if isinstance(found, types.EnumClass) and issubclass(value, enum.IntFlag):
        return FlagClass(value, found.dtype)
    return found


@lowering.lower_cast(types.IntEnumMember, types.Float)
@lowering.lower_cast(types.IntEnumMember, types.Complex)
@lowering.lower_cast(types.IntEnumMember, types.Boolean)
def _to_number(
    context: Any, builder: ir.IRBuilder, source: types.IntEnumMember, target: types.Type, value: ir.Value
) -> ir.Value:
    return context.cast(builder, value, source.dtype, target)


def _register_conversion(function: Any, result: types.Type) -> None:
    @typing.register_global(function)
    class Template(AbstractTemplate):
        def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
            is_member = not kws and len(args) == 1 and isinstance(args[0], types.IntEnumMember)
            return signature(result, *args) if is_member else None

    @lowering.lower(function, types.IntEnumMember)
    def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.cast(builder, args[0], sig.args[0], sig.return_type)


for _function, _result in ((int, types.int64), (float, types.float64), (bool, types.boolean)):
    _register_conversion(_function, _result)
