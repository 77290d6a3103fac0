"""Indices that may be ``None``, such as a variable that a kernel assigns in some branches only.

The number is used; if it is ``None``, the thread raises a `TypeError`, as a cast does.
"""

from __future__ import annotations

import operator
from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate

from numba_hip.language.registry import typing


def without_none(index: types.Type) -> types.Type:
    """The type of an *index*, a number or a tuple of them, without ``None``."""
    if isinstance(index, types.Optional):
        return index.type
    if isinstance(index, types.BaseTuple) and any(isinstance(member, types.Optional) for member in index):
        return types.Tuple(tuple(without_none(member) for member in index))
    return index


class _ByOptional(AbstractTemplate):
    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        array, index, *value = args
        plain = without_none(index)
        if kws or not isinstance(array, types.Array) or plain is index:
            return None
        return self.context.resolve_function_type(self.key, (array, plain, *value), {})


@typing.register_global(operator.getitem)
class _Read(_ByOptional):
    key = operator.getitem


@typing.register_global(operator.setitem)
class _Write(_ByOptional):
    key = operator.setitem
