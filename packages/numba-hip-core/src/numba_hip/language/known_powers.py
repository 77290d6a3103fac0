"""Powers whose exponent is written in the kernel as a number with a fraction, or passed to `math.pow`: ``x ** 0.5``.

Those that one operation gives are rounded correctly so, and take a tenth of the time.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir


def write_known_power(context: Any, builder: ir.IRBuilder, base: ir.Value, exponent: float) -> ir.Value | None:
    """*base*, a float or double, to the power of *exponent*, if that is one operation; else ``None``. Special values
    are those of C's ``pow`` (C17, F.10.4.4): where a square root is -0 or that of minus infinity, it is another."""
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
