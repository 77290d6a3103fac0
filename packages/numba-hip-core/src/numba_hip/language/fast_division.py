"""``/`` of float32 in ``fastmath`` kernels: only a division, which never raises, as in Numba CUDA.

Otherwise such a kernel would have a branch before each division, for the exception on 0, although ``fastmath`` promises
that there are no infinities.
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types

from numba_hip._numba.lowering import divide_reals
from numba_hip.language.registry import lowering

NO_INFINITIES = frozenset({"fast", "ninf"})
"""Flags of LLVM's that let it take for granted that no result is infinite."""


@lowering.lower(operator.truediv, types.float32, types.float32)
@lowering.lower(operator.itruediv, types.float32, types.float32)
def _divide(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    fastmath = context.fastmath
    if fastmath and NO_INFINITIES & set(getattr(fastmath, "flags", ())):
        return builder.fdiv(*args)
    return divide_reals(context, builder, sig, args)
