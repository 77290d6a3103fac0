"""Choices between many values, of which LLVM had better make tables.

Of few values, vectors of choices are quicker than what lanes gather from a table; measured with 60,000 elements of the
types from ``uint8`` to ``float64``, with AVX-512 and with AVX2. An ``elif`` is one comparison and one choice, an
element of a tuple two, as its index may be negative.
"""

from __future__ import annotations

from collections import Counter

from llvmlite import ir
from llvmlite.ir import instructions

_MOST_CASES = 5
"""Of a ``switch``, which Numba makes of an index into a tuple."""

_MOST_COMPARISONS = 11
"""Of one variable with constants, which LLVM makes a ``switch`` of."""


def has_large_choice(module: ir.Module) -> bool:
    """Whether a function of *module* chooses between so many values that a table is quicker."""
    return any(map(_chooses_much, module.functions))


def _chooses_much(function: ir.Function) -> bool:
    compared: Counter[int] = Counter()
    for block in function.blocks:
        last = block.terminator
        if isinstance(last, instructions.SwitchInstr) and len({id(target) for _, target in last.cases}) > _MOST_CASES:
            return True
        if isinstance(last, instructions.ConditionalBranch):
            compared[_compared(last.operands[0])] += 1
    del compared[0]
    return max(compared.values(), default=0) > _MOST_COMPARISONS


def _compared(condition: ir.Value) -> int:
    """The identity of the variable that *condition* compares with a constant; 0 if it does something else."""
    if not isinstance(condition, instructions.ICMPInstr) or condition.op != "eq":
        return 0
    value, constant = condition.operands
    while isinstance(value, instructions.CastInstr):
        (value,) = value.operands
    is_known = isinstance(constant, ir.Constant) and isinstance(value, instructions.LoadInstr)
    return id(value.operands[0]) if is_known else 0
