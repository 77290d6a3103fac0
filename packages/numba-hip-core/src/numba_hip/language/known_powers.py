"""Powers whose exponent is a number that is written in the kernel, if not by ``x ** 2``: ``x ** 0.5``, `math.pow`,
`numpy.power`.

Those that one operation gives are rounded correctly so, and take a tenth of the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

I1 = ir.IntType(1)


def write_known_power(context: Any, builder: ir.IRBuilder, base: ir.Value, power: ir.Value) -> ir.Value | None:
    """*base*, a float or double, to the *power*, if that is a constant and one operation; else ``None``. Special values
    are those of C's ``pow`` (C17, F.10.4.4): where a square root is -0 or that of minus infinity, it is another."""
    exponent = _find_number(power)
    if exponent == 1:
        return base
    if exponent == 2:
        return builder.fmul(base, base)
    if exponent == -1:
        return builder.fdiv(base.type(1), base)
    if exponent != 0.5:
        return None
    root = context.call_math(builder, "fabs", [context.call_math(builder, "sqrt", [base])])
    infinity = float("inf")
    is_least = builder.fcmp_ordered("==", base, ir.Constant(base.type, -infinity))
    return builder.select(is_least, ir.Constant(base.type, infinity), root)


def _find_number(value: ir.Value) -> float | None:
    """The number that *value* is, if it is one in the kernel's source: a constant, or one that was converted."""
    if isinstance(value, ir.CastInstr) and value.opname in ("sitofp", "fpext") and value.operands[0].type != I1:
        (value,) = value.operands
    number = value.constant if isinstance(value, ir.Constant) else None
    return number if isinstance(number, (int, float)) and not isinstance(number, bool) else None
