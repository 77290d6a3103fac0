"""The function on a device that a kernel was compiled to."""

from __future__ import annotations

from typing import Any

from hip_runtime import Device, Function
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.errors import KernelArgumentError, NotCompiledError


def function_of(kernel: Any, device: Device, signature: Any = None) -> Function:
    """*kernel* as a function of *device*: for *signature*, compiled if need be, or else as it was compiled last;
    `NotCompiledError` where it was not. Functions of a device are returned as they are."""
    if isinstance(kernel, Function):
        return kernel
    if not hasattr(kernel, "overloads"):
        raise KernelArgumentError(f"expected a kernel, or a function loaded on a device, got {kernel!r}")
    if signature is not None:
        return _load(kernel.compile(signature), device)
    codes = [code for code in kernel.overloads.values() if code.target.name == device.target]
    if not codes:
        raise NotCompiledError(
            f"kernel {kernel.__name__} was not compiled yet: launch it before, or name a signature, such as "
            "'void(float32[:], int64)'"
        )
    return _load(codes[-1], device)


def _load(code: KernelCode, device: Device) -> Function:
    loaded: Function = device.load(code.code_object).function(code.name)
    return loaded
