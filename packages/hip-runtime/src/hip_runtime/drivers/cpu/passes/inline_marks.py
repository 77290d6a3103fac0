"""Marks functions to be inlined at each of their calls, whatever their size, with any llvmlite."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import Any

import llvmlite.binding as llvm
from llvmlite import ir

from hip_devicelib.llvm_context import make_context
from hip_runtime.drivers.cpu.llvm_context import LlvmContext

ATTRIBUTE = "alwaysinline"

_IS_SETTLED = {b"noinline", b"optnone", ATTRIBUTE.encode()}
"""Attributes of functions that are not marked."""


@cache
def can_mark_functions() -> bool:
    """Whether llvmlite can add attributes to functions; versions up to 0.47 add them to the return value instead, where
    LLVM does not allow them."""
    module = llvm.parse_assembly("define void @probe() {\n ret void\n}", make_context())
    module.get_function("probe").add_function_attribute(ATTRIBUTE)
    try:
        module.verify()
    except RuntimeError:
        return False
    return True


def mark_for_inlining(module: Any, names: Collection[str], context: LlvmContext) -> None:
    """Have LLVM inline the functions *names* that *module* defines, and make them internal; not those that forbid it.

    Another module in *context* takes part where llvmlite cannot mark functions.
    """
    defined = [function for function in module.functions if function.name in names and not function.is_declaration]
    marked = [function.name for function in defined if not _IS_SETTLED.intersection(_attributes(function))]
    if can_mark_functions():
        for name in marked:
            module.get_function(name).add_function_attribute(ATTRIBUTE)
    elif marked:
        _wrap_functions(module, marked, context)
    inside = {*names, *map(_body, marked)}
    for function in module.functions:
        if function.name in inside and not function.is_declaration:
            function.linkage = "internal"


def name_globals(module: Any) -> None:
    """Give every global a name and external linkage, so that other modules can refer to it."""
    for number, value in enumerate([*module.functions, *module.global_variables]):
        if not value.name:
            value.name = f"spmd.unnamed.{number}"
        if not value.is_declaration and value.linkage.name in ("internal", "private"):
            value.linkage = "external"


def _wrap_functions(module: Any, names: Collection[str], context: LlvmContext) -> None:
    """Put a marked function with a marked call of the old one in the place of each of *names*, as llvmlite's builder
    can mark what it makes. Functions of types that llvmlite does not know stay as they are."""
    name_globals(module)
    image = module.as_bitcode()
    for name in names:
        function = module.get_function(name)
        try:
            kind = function.global_value_type.as_ir(ir.Context())
        except (TypeError, ValueError):
            continue
        function.linkage = "available_externally"  # is replaced by the wrapper
        for part in (context.read_text(str(_build_wrapper(name, kind))), _isolate(context.read_bitcode(image), name)):
            part.triple, part.data_layout = module.triple, module.data_layout
            module.link_in(part)


def _attributes(function: Any) -> list[bytes]:
    return b" ".join(function.attributes).split()


def _body(name: str) -> str:
    return f"{name}.body"


def _build_wrapper(name: str, kind: ir.FunctionType) -> ir.Module:
    """A module whose function *name* does nothing but call the old one, both of which are marked."""
    made = ir.Module(context=ir.Context())
    wrapper = ir.Function(made, kind, name)
    wrapper.attributes.add(ATTRIBUTE)
    builder = ir.IRBuilder(wrapper.append_basic_block())
    result = builder.call(ir.Function(made, kind, _body(name)), wrapper.args, attrs=(ATTRIBUTE,))
    builder.ret_void() if isinstance(kind.return_type, ir.VoidType) else builder.ret(result)
    return made


def _isolate(copy: Any, name: str) -> Any:
    """*copy* of a module, of which nothing but the function *name* is linked to others, by the name of a body."""
    for value in (*copy.functions, *copy.global_variables):
        if not value.is_declaration and value.name != name and not value.name.startswith("llvm."):
            value.linkage = "available_externally"
    copy.get_function(name).name = _body(name)
    return copy
