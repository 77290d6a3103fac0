"""``hip.const``: host arrays that are part of a kernel."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.stub import Lower, device_function


@device_function("const.array_like")
def array_like(ndarray: types.Type) -> tuple[types.Type, Lower]:
    """``const.array_like(ndarray)``: *ndarray*, a NumPy array that the kernel captured, in constant memory."""
    if not isinstance(ndarray, types.Array):
        raise TypingError(
            f"{our('const.array_like')} takes an array that the kernel captured, got {ndarray}; make one above the "
            "kernel, with np.array(...)"
        )

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return args[0]

    return ndarray, lower
