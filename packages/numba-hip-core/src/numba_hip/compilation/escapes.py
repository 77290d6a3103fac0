"""Escape check for private arrays and fragments: a function must not return one, as its memory ends with the
function."""

from __future__ import annotations

from typing import Any

from numba.core import ir, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip._numba.compiler import definitions_of
from numba_hip.language import local

VIEWS = frozenset({"getitem", "static_getitem", "getattr", "cast"})
"""Expressions that give a view of what they are applied to, or the same."""


@register_pass(mutates_CFG=False, analysis_only=True)
class RefuseEscapes(FunctionPass):
    """The pass that rejects functions which return one of their private arrays or fragments, or a view of one."""

    _name = "hip_refuse_escapes"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Raise `TypingError` at the line of the return statement."""
        held = _memory_of(state.return_type)
        if held is None:
            return False
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(ir.Return):
                if _is_private(state, statement.value.name, set()):
                    raise TypingError(
                        f"this returns {held}, whose memory ends with the function: make it in the caller and pass it "
                        "as an argument",
                        loc=statement.loc,
                    )
        return False


def _memory_of(kind: Any) -> str | None:
    """What of a function's own memory a value of type *kind* may be, or have in it."""
    from numba_hip.language.matrix.kinds import Fragment  # which importing the package does not need

    if isinstance(kind, types.BoundFunction):
        return _memory_of(kind.this)  # a method that was looked up, which may be called
    if isinstance(kind, types.BaseTuple):
        return next(filter(None, map(_memory_of, kind)), None)
    if isinstance(kind, Fragment):
        return "a fragment of hip.matrix"
    return f"an array of {our('local.array')}" if isinstance(kind, types.Array) else None


def _is_private(state: Any, name: str, seen: set[str]) -> bool:
    """Whether variable *name* may be a private array, or a fragment, of this function, or a tuple with one."""
    if name in seen or _memory_of(state.typemap[name]) is None:
        return False
    seen.add(name)
    definitions = definitions_of(state.func_ir, name)
    return any(_makes_private(state, value) for value in definitions) or any(
        _is_private(state, origin, seen) for value in definitions for origin in _viewed(state, value)
    )


def _makes_private(state: Any, value: Any) -> bool:
    from numba_hip.language.matrix.functions import fragment

    kind = state.typemap.get(value.func.name) if isinstance(value, ir.Expr) and value.op == "call" else None
    return isinstance(kind, types.Function) and kind.typing_key in (local.array, fragment)


def _viewed(state: Any, value: Any) -> list[str]:
    """The names of the variables that *value* may be, or be a view of."""
    if isinstance(value, ir.Var):
        return [value.name]
    if not isinstance(value, ir.Expr):
        return []
    if value.op in VIEWS:
        return [value.value.name]
    if value.op == "build_tuple":
        return [part.name for part in value.items]
    if value.op == "phi":
        return [part.name for part in value.incoming_values if isinstance(part, ir.Var)]
    if value.op == "call" and isinstance(state.typemap.get(value.func.name), types.BoundFunction):
        return [value.func.name]  # a method of an array, as in a.reshape(2, 3)
    return []
