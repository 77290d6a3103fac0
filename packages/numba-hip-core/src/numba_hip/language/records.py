"""``record[()]``: reads and assigns a whole record, as for an array without axes."""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.typing.templates import AbstractTemplate, signature

from numba_hip.language.registry import lowering, typing


def _is_whole(index: types.Type) -> bool:
    return isinstance(index, types.BaseTuple) and len(index) == 0


@typing.register_global(operator.getitem)
class _Whole(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        record, index = args
        if kws or not isinstance(record, types.Record) or not _is_whole(index):
            return None
        return signature(record, record, index)


@typing.register_global(operator.setitem)
class _AssignWhole(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        record, index, value = args
        if kws or not isinstance(record, types.Record) or not _is_whole(index):
            return None
        if not isinstance(value, types.Record) or self.context.can_convert(value, record) is None:
            return None
        return signature(types.none, record, index, record)


@lowering.lower(operator.getitem, types.Record, types.BaseTuple)
def _get(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    return args[0]


@lowering.lower(operator.setitem, types.Record, types.BaseTuple, types.Record)
def _set(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    record, _, value = args
    size = ir.Constant(ir.IntType(64), sig.args[0].size)
    cgutils.raw_memcpy(builder, record, value, size, 1)
    return context.get_dummy_value()
