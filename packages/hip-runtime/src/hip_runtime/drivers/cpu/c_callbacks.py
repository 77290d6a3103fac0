"""Python functions that C code may call at any time, also while an exception is being raised.

A ctypes callback is not enough: C code often releases something because an operation failed, and the pending exception
would be seen, and lost, by the first call within the callback. The native function around the callback saves the
exception and restores it.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import llvmlite.binding as llvm
from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, VOID, Callee, allocate
from hip_runtime.drivers.cpu.object_code.jit import compile_quickly

_SYMBOL = "spmd.callback"
_KIND = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
_HAS_RAISED_EXCEPTION = sys.version_info >= (3, 12)
_PYTHON = {
    "PyGILState_Ensure": ir.FunctionType(I32, []),
    "PyGILState_Release": ir.FunctionType(VOID, [I32]),
    **(
        {
            "PyErr_GetRaisedException": ir.FunctionType(PTR, []),
            "PyErr_SetRaisedException": ir.FunctionType(VOID, [PTR]),
        }
        if _HAS_RAISED_EXCEPTION
        else {
            "PyErr_Fetch": ir.FunctionType(VOID, [PTR, PTR, PTR]),
            "PyErr_Restore": ir.FunctionType(VOID, [PTR, PTR, PTR]),
        }
    ),
}
"""Functions of Python's C API: to take its lock, and to put an exception aside."""


class Callback:
    """*function*, which takes an address, as the C function ``void (*)(void *)`` at ``address``, for any thread.

    It is never freed: C code may call it at any time, even while the interpreter shuts down.
    """

    def __init__(self, function: Callable[[int], None]) -> None:
        native = _KIND(function)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(native))
        target = ctypes.cast(native, ctypes.c_void_p).value
        assert target is not None
        for name in _PYTHON:
            llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)
        self._program = compile_quickly(_build(target), _SYMBOL)
        (self.address,) = self._program.entries


def _build(target: int) -> ir.Module:
    """A module with a function that calls the one at *target*, with Python's lock held and no exception set."""
    module = ir.Module(name=_SYMBOL)
    python = {name: ir.Function(module, kind, name) for name, kind in _PYTHON.items()}
    kind = ir.FunctionType(VOID, [PTR])
    function = ir.Function(module, kind, _SYMBOL)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    lock = builder.call(python["PyGILState_Ensure"], [])
    callee = Callee(builder.inttoptr(I64(target), PTR), kind)
    if _HAS_RAISED_EXCEPTION:
        exception = builder.call(python["PyErr_GetRaisedException"], [])
        builder.call(callee, function.args)
        builder.call(python["PyErr_SetRaisedException"], [exception])
    else:
        parts = [allocate(builder, PTR) for _ in range(3)]
        builder.call(python["PyErr_Fetch"], parts)
        builder.call(callee, function.args)
        builder.call(python["PyErr_Restore"], [builder.load(part, typ=PTR) for part in parts])
    builder.call(python["PyGILState_Release"], [lock])
    builder.ret_void()
    return module
