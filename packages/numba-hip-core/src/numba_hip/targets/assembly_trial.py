"""A function with nothing but a piece of inline assembly, in which the assembly is tried before a kernel is made."""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib.elf import read_elf

FUNCTION = "assembly"
_END = "hip_end_of_assembly"


def build_trial(kind: ir.FunctionType, text: str, constraint: str, side_effect: bool) -> ir.Module:
    """A module whose `FUNCTION` of type *kind* is the assembly *text*, with a label behind it."""
    module = ir.Module(context=ir.Context())
    function = ir.Function(module, kind, FUNCTION)
    builder = ir.IRBuilder(function.append_basic_block())
    result = builder.asm(kind, text, constraint, function.args, side_effect)
    builder.asm(ir.FunctionType(ir.VoidType(), []), f"{_END}:", "", [], True)
    if kind.return_type == ir.VoidType():
        builder.ret_void()
    else:
        builder.ret(result)
    return module


def find_fault(image: bytes) -> str:
    """What is wrong with the assembly in the object file *image* of a trial, which an assembler accepted; empty if
    nothing is."""
    found = read_elf(image, machine=None)
    if found.symbol(FUNCTION).section == found.symbol(_END).section:
        return ""
    return "it ends in another section than it begins in: put '.pushsection' and '.popsection' around what goes there"
