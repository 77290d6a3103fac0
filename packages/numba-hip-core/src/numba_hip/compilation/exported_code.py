"""Device functions as code for others to link: the result of `compile` with ``device=True``.

The function has a plain name, and one of the two ABIs of `declare_device`: with ``"c"`` it is
``result name(parameters...)``, with ``"numba"`` ``int name(result *, parameters...)``, which returns 0, or the number
of the exception that it raised. On the CPU device the work item is an additional first parameter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import types

from numba_hip._numba.compiler import compiling_for, lowered_symbol
from numba_hip.compilation.compiler import compile_function, explained
from numba_hip.compilation.options import CompileOptions
from numba_hip.compilation.target_choice import find_target
from numba_hip.language.external_functions import ABIS
from numba_hip.targets.code_library import symbol_of
from numba_hip.targets.compile_target import CompileTarget

OUTPUTS = ("llvm", "bitcode", "asm", "object")


@dataclass(frozen=True)
class DeviceCode:
    """A device function for others to link: optimised bitcode that defines ``name`` and nothing else."""

    name: str
    target: CompileTarget
    return_type: types.Type
    bitcode: bytes

    def output(self, kind: str) -> str | bytes:
        """The code as *kind*, one of `OUTPUTS`. Raises `OutputError` for an object for the CPU device."""
        views: dict[str, Callable[[], str | bytes]] = {
            "llvm": lambda: str(llvm.parse_bitcode(self.bitcode)),
            "bitcode": lambda: self.bitcode,
            "asm": lambda: self.target.outputs.assembly(self.bitcode),
            "object": lambda: self.target.outputs.object_code(self.bitcode),
        }
        return views[kind]()


def compile_device_function(
    py_func: Callable[..., Any],
    args: tuple[types.Type, ...],
    return_type: types.Type | None,
    options: CompileOptions,
    target: str,
    *,
    abi: str,
    name: str | None,
) -> DeviceCode:
    """Compile *py_func* for *args* as a function that is called *name*, by default as in Python, with *abi*.

    Raises `NotImplementedError` for an unknown ABI, and Numba's errors at the user's line.
    """
    if abi not in ABIS:
        raise NotImplementedError(f"Unsupported ABI: {abi}; there are {' and '.join(ABIS)}")
    made_for = find_target(py_func, options, target)
    context, chosen = made_for.target_context, name or symbol_of(py_func.__name__)
    with explained(py_func, args, target), compiling_for(made_for.numba_name):
        result = compile_function(py_func, args, return_type, options, made_for)
        library = context.codegen().create_library(f"{chosen}.exported")
        library.add_linking_library(result.library)
        library.add_ir_module(_wrap(context, result, chosen, abi))
        library.symbols.clear()  # nothing in it is Numba's, so the name stays as requested
        library.finalize()
        bitcode = context.codegen().link_function(library, chosen, options, library.external_modules(context))
    return DeviceCode(chosen, made_for, result.signature.return_type, bitcode)


def _wrap(context: Any, result: Any, name: str, abi: str) -> ir.Module:
    """A module with the function *name*, which calls the compiled function."""
    descriptor, convention = result.fndesc, context.call_conv
    module = context.create_module(f"{name}.exported")
    inner_type = convention.get_function_type(descriptor.restype, descriptor.argtypes)
    slot_type, hidden = inner_type.args[0], list(inner_type.args[1 : 1 + len(convention.hidden)])
    passed = list(inner_type.args[1 + len(hidden) :])
    inner = ir.Function(module, inner_type, lowered_symbol(descriptor))
    if abi == "numba":
        outer_type = ir.FunctionType(inner_type.return_type, [*hidden, slot_type, *passed])
    else:
        nothing = descriptor.restype in (types.none, types.void)
        outer_type = ir.FunctionType(ir.VoidType() if nothing else slot_type.pointee, [*hidden, *passed])
    outer = ir.Function(module, outer_type, name)
    for parameter, (known, _) in zip(outer.args, convention.hidden, strict=False):
        parameter.name = known
    builder = ir.IRBuilder(outer.append_basic_block("entry"))
    values = list(outer.args[len(hidden) :])
    if abi == "numba":
        slot, *values = values
        builder.ret(builder.call(inner, [slot, *outer.args[: len(hidden)], *values]))
        return module
    slot = builder.alloca(slot_type.pointee)
    builder.store(ir.Constant(slot_type.pointee, None), slot)
    builder.call(inner, [slot, *outer.args[: len(hidden)], *values])
    if isinstance(outer_type.return_type, ir.VoidType):
        builder.ret_void()
    else:
        builder.ret(builder.load(slot))
    return module
