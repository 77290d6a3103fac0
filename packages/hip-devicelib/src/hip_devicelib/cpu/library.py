"""The CPU device's math as bitcode.

Every function is self-contained: it calls only LLVM's intrinsics, so that a module can have any of the functions
without the others. Modules have neither triple nor data layout, and can be linked into modules for any machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import cache

import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib.cpu.catalog import FUNCTIONS, MathFunction
from hip_devicelib.cpu.expressions import FORMATS, Code, Real
from hip_devicelib.errors import NotFoundError
from hip_devicelib.forking import compiling
from hip_devicelib.llvm_context import make_context


def math_library(*, fused: bool = True) -> bytes:
    """Bitcode of a module that defines all `FUNCTIONS`. Built once per process; the bytes are always the same."""
    return bitcode_of(FUNCTIONS, fused=fused)


def bitcode_of(symbols: Iterable[str], called: Iterable[str] = (), *, fused: bool = True) -> bytes:
    """Bitcode of a module that defines the functions *symbols* and no others.

    The functions are ``linkonce_odr`` and ``alwaysinline``, except those in *called*, which are ``noinline``. Functions
    that return results through pointers are always inlined. Without *fused* they do without a fused multiply-add, for
    processors that have none (`processor.has_fma`); their results may differ in the last place, their bounds hold.
    Raises `NotFoundError` for a symbol that is not in `FUNCTIONS`.
    """
    wanted = frozenset(symbols)
    unknown = sorted(wanted.difference(FUNCTIONS))
    if unknown:
        raise NotFoundError(
            f"the CPU device's math has no {', '.join(map(repr, unknown))}; hip_devicelib.cpu.FUNCTIONS has the names"
        )
    with compiling:
        return _bitcode(tuple(sorted(wanted)), wanted.intersection(called), fused)


@cache
def _bitcode(symbols: tuple[str, ...], called: frozenset[str], fused: bool) -> bytes:
    context = make_context()
    module = llvm.parse_assembly(str(build_module(symbols, called, fused)), context)
    return bytes(module.as_bitcode())


def build_module(symbols: Iterable[str], called: Collection[str] = (), fused: bool = True) -> ir.Module:
    """A module of the functions *symbols*, which are in `FUNCTIONS`. Those in *called* are not to be inlined."""
    module = ir.Module(name="hip_cpu_math", context=ir.Context())
    for symbol in symbols:
        define(module, FUNCTIONS[symbol], fused)
    keep_calls(module, called)
    return module


def keep_calls(module: ir.Module, called: Collection[str]) -> None:
    """Mark the functions of *module* that are in *called* as not to be inlined, except those that return results
    through pointers."""
    for function in module.functions:
        if function.name in called and FUNCTIONS[function.name].result != "void":
            function.attributes.remove("alwaysinline")
            function.attributes.add("noinline")


def define(module: ir.Module, entry: MathFunction, fused: bool = True) -> ir.Function:
    """Add the function to *module*, to be inlined at every call; *fused* as for `bitcode_of`."""
    form = FORMATS[entry.bits]
    types = {"float": ir.FloatType(), "double": ir.DoubleType(), "void": ir.VoidType(), "ptr": form.real.as_pointer()}
    signature = ir.FunctionType(types[entry.result], [types[kind] for kind in entry.parameters])
    function = ir.Function(module, signature, entry.symbol)
    function.linkage = "linkonce_odr"
    for attribute in ("alwaysinline", "nounwind"):
        function.attributes.add(attribute)
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    code = Code(builder, form, fused)
    numbers = [Real(code, a) for a, kind in zip(function.args, entry.parameters, strict=True) if kind != "ptr"]
    result = entry.formula(code, *numbers)
    if entry.result == "void":
        for pointer, value in zip(function.args[len(numbers) :], result, strict=True):
            builder.store(value.value, pointer)
        builder.ret_void()
    else:
        builder.ret(result.value)
    return function
