"""Which array a statement of Numba's IR reads or writes, under its name in the user's source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import ir

_DEEPEST = 8
"""How many indices and attributes in a row are written out."""


def accessed_array(function: Any, statement: Any, type_of: Callable[[str], Any]) -> str | None:
    """The array that *statement* of *function* (Numba's IR) indexes, or passes to a function as the first argument,
    such as an atomic operation; ``None`` if it does neither, or the array has no name. *type_of* gives the types of
    variables: fragments, which ``hip.matrix.load`` and ``store`` take first, are no arrays."""
    if isinstance(statement, (ir.SetItem, ir.StaticSetItem, ir.DelItem)):
        return _spell(function, statement.target, _DEEPEST)
    value = getattr(statement, "value", None)
    if not isinstance(value, ir.Expr):
        return None
    if value.op in ("getitem", "static_getitem", "typed_getitem"):
        return _spell(function, value.value, _DEEPEST)
    if value.op == "call":
        from numba_hip.language.matrix.kinds import Fragment  # with what it imports, most programs do without it

        passed = next((one for one in value.args if not isinstance(type_of(one.name), Fragment)), None)
        return None if passed is None else _spell(function, passed, _DEEPEST)
    return None


def _spell(function: Any, variable: Any, depth: int) -> str | None:
    """*variable* as written in the source: its name, or if it is a part of something, the name of that."""
    name = str(variable.unversioned_name)
    if not name.startswith("$"):
        return name
    try:
        defined = function.get_definition(variable)
    except KeyError:  # it comes from several places
        return None
    if isinstance(defined, (ir.Global, ir.FreeVar)):
        return str(defined.name)
    if not isinstance(defined, ir.Expr) or depth == 0:
        return None
    if defined.op in ("getitem", "static_getitem"):
        whole = _spell(function, defined.value, depth - 1)
        return whole and f"{whole}[...]"
    if defined.op == "getattr":
        whole = _spell(function, defined.value, depth - 1)
        return whole and f"{whole}.{defined.attr}"
    return None
