"""Compiling to LLVM IR under the names of AMD's numba-hip; `numba_hip.compile` does the same, and more."""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from numba.core import types

from numba_hip.dispatch.decorated_function import python_function
from numba_hip.host.api import compile

Code = tuple[str | bytes, types.Type]


def compile_llvm_ir(
    pyfunc: Callable[..., Any],
    sig: Any,
    debug: bool = False,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    amdgpu_arch: str | None = None,
    opt: bool = True,
    to_bc: bool = False,
    ir_as_str: bool = True,
    name: str | None = None,
    link_in_hipdevicelib: bool = True,
) -> Code:
    """Compile *pyfunc* for the argument types of *sig*, as a kernel or with *device* as a function, to LLVM IR.

    *amdgpu_arch* is a target such as ``"gfx90a"``, by default that of the current device. The code is a string, bytes
    without *ir_as_str*, or bitcode with *to_bc*; *name* is the function's name in it, by default its name in Python. A
    function has Numba's calling convention (``abi="numba"`` of `compile`). *link_in_hipdevicelib* has no effect: the
    functions of HIP's device library that a kernel calls are linked when it becomes a code object.

    Returns the code and the function's return type; raises as `compile` does.
    """
    del link_in_hipdevicelib
    options: dict[str, Any] = {"debug": debug, "lineinfo": lineinfo, "fastmath": fastmath, "opt": bool(opt)}
    if device:
        options |= {"device": True, "abi": "numba", "abi_info": {"abi_name": name} if name else None}
    elif name:
        pyfunc = _renamed(python_function(pyfunc), name)
    output = "bitcode" if to_bc else "llvm"
    code, result = compile(pyfunc, sig, target=amdgpu_arch, output=output, **options)
    if isinstance(code, str) and not ir_as_str:
        return code.encode(), result
    return code, result


def _renamed(function: Any, name: str) -> FunctionType:
    """A copy of the Python function *function* with another *name*, which its code has, too."""
    copy = FunctionType(function.__code__, function.__globals__, name, function.__defaults__, function.__closure__)
    copy.__module__, copy.__kwdefaults__ = function.__module__, function.__kwdefaults__
    return copy


def compile_llvm_ir_for_current_device(
    pyfunc: Callable[..., Any],
    sig: Any,
    debug: bool = False,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    opt: bool = True,
    **options: Any,
) -> Code:
    """`compile_llvm_ir` for the current device."""
    return compile_llvm_ir(pyfunc, sig, debug, lineinfo, device, fastmath, opt=opt, **options)


def compile_ptx(
    pyfunc: Callable[..., Any],
    sig: Any,
    debug: bool = False,
    lineinfo: bool = False,
    device: bool = False,
    fastmath: bool = False,
    cc: str | None = None,
    opt: bool = True,
    **options: Any,
) -> Code:
    """`compile_llvm_ir` for the target *cc*: under this name, AMD's numba-hip also returns LLVM IR."""
    return compile_llvm_ir(pyfunc, sig, debug, lineinfo, device, fastmath, cc, opt, **options)


compile_ptx_for_current_device = compile_llvm_ir_for_current_device

__all__ = ["compile_llvm_ir", "compile_llvm_ir_for_current_device", "compile_ptx", "compile_ptx_for_current_device"]
