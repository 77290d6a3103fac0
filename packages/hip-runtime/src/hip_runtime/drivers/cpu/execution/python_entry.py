"""The native launch as a function that Python calls directly, like one of its own that is written in C.

ctypes takes longer to convert the numbers of a small launch than the launch takes to run.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR

CALL_SYMBOL = "spmd.call"

ENTRY_FUNCTIONS = {
    "PyBytes_AsString": ir.FunctionType(PTR, [PTR]),
    "PyErr_BadArgument": ir.FunctionType(I32, []),
    "PyErr_Occurred": ir.FunctionType(PTR, []),
    "PyLong_AsLong": ir.FunctionType(I64, [PTR]),
    "PyLong_AsVoidPtr": ir.FunctionType(PTR, [PTR]),
    "PyLong_FromVoidPtr": ir.FunctionType(PTR, [PTR]),
}
"""Functions of Python's C API: values of arguments, errors, and a number that is returned."""

_FASTCALL = 0x80
"""``METH_FASTCALL``: the function is called with an array of its arguments, and their number."""

_LAUNCH_ARGUMENTS = 5


class _MethodDef(ctypes.Structure):
    """Python's ``PyMethodDef``."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def define_entry(module: ir.Module, dispatch: ir.Function) -> None:
    """Define ``object call(self, objects, count)`` in *module*, for Python to call *dispatch* with: the address of the
    program, the packed arguments as bytes, and three extents of the grid. It gives the address of a fault, 0 if there
    is none; where a signal handler raised, its exception is raised. Anything else that is passed is a `TypeError`."""
    python = {name: ir.Function(module, kind, name) for name, kind in ENTRY_FUNCTIONS.items()}
    entry = ir.Function(module, ir.FunctionType(PTR, [PTR, PTR, I64]), CALL_SYMBOL)
    builder = ir.IRBuilder(entry.append_basic_block("entry"))
    _, objects, count = entry.args
    with builder.if_then(builder.icmp_unsigned("!=", count, I64(_LAUNCH_ARGUMENTS)), likely=False):
        builder.call(python["PyErr_BadArgument"], [])
        builder.ret(PTR(None))
    given = [
        builder.load(builder.gep(objects, [I64(place)], source_etype=PTR), typ=PTR)
        for place in range(_LAUNCH_ARGUMENTS)
    ]
    program = builder.call(python["PyLong_AsVoidPtr"], given[:1])
    arguments = builder.call(python["PyBytes_AsString"], given[1:2])
    grid = [builder.call(python["PyLong_AsLong"], [extent]) for extent in given[2:]]
    _return_exception(builder, python)
    result = builder.call(dispatch, [program, arguments, *(builder.trunc(extent, I32) for extent in grid)])
    _return_exception(builder, python)
    builder.ret(builder.call(python["PyLong_FromVoidPtr"], [result]))


def _return_exception(builder: ir.IRBuilder, python: dict[str, ir.Function]) -> None:
    """Where an exception is set, return so that it is raised."""
    raised = builder.call(python["PyErr_Occurred"], [])
    with builder.if_then(builder.icmp_unsigned("!=", raised, PTR(None)), likely=False):
        builder.ret(PTR(None))


def callable_at(address: int) -> Callable[..., Any]:
    """The function that `define_entry` defined, at *address*, as an object. What describes it is never freed, as any
    number of references to the object may be kept."""
    definition = _MethodDef(b"launch", address, _FASTCALL, None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(definition))
    make = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
        ("PyCFunction_NewEx", ctypes.pythonapi)
    )
    made: Callable[..., Any] = make(ctypes.addressof(definition), None, None)
    return made
