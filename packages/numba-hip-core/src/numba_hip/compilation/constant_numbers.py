"""Whole numbers that a kernel computes from constants, as ``TILE + 1``: constants as well.

So they may be what has to be one, such as the extent of an array in shared memory.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass

from numba_hip._numba.compiler import definitions_of, only_definition_of, redefine

_MOST_SHIFTED = 63

_OPERATIONS: dict[Any, Callable[[int, int], int]] = {
    operator.add: operator.add,
    operator.sub: operator.sub,
    operator.mul: operator.mul,
    operator.floordiv: operator.floordiv,
    operator.mod: operator.mod,
    operator.lshift: operator.lshift,
    operator.rshift: operator.rshift,
}


@register_pass(mutates_CFG=False, analysis_only=False)
class ComputeConstants(FunctionPass):
    """The pass that computes them."""

    _name = "hip_compute_constants"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change ``state.func_ir``; returns whether there was anything to change."""
        changed = False
        for block in state.func_ir.blocks.values():
            for statement in block.find_insts(ir.Assign):
                name = statement.target.name
                number = _compute(state.func_ir, statement.value)
                if number is not None and len(definitions_of(state.func_ir, name)) == 1:
                    statement.value = ir.Const(number, statement.loc)
                    redefine(state.func_ir, name, statement.value)
                    changed = True
        return changed


def _compute(function: Any, value: Any) -> int | None:
    """The number that *value* is, if it is computed from two constants of *function*, and has 64 bits."""
    operation = _OPERATIONS.get(value.fn) if isinstance(value, ir.Expr) and value.op == "binop" else None
    if operation is None:
        return None
    left, right = (_number(only_definition_of(function, operand)) for operand in (value.lhs, value.rhs))
    if left is None or right is None:
        return None
    if (operation in (operator.floordiv, operator.mod) and not right) or (
        operation in (operator.lshift, operator.rshift) and not 0 <= right <= _MOST_SHIFTED
    ):
        return None  # an error where it is computed
    number = operation(left, right)
    return number if -(2**63) <= number < 2**63 else None


def _number(defined: Any) -> int | None:
    """The whole number that a variable is *defined* to be, if it is a constant, here or outside."""
    number = defined.value if isinstance(defined, (ir.Const, ir.Global, ir.FreeVar)) else None
    return number if type(number) is int else None
