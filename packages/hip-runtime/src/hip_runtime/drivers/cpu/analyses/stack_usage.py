"""The stack memory that a module's functions and private variables take."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.lexer import Cursor, TokenKind
from hip_runtime.drivers.cpu.ir.model import Constant, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.types import TypeTable
from hip_runtime.errors import UnsupportedError

_COUNTS = (TokenKind.NUMBER, TokenKind.LOCAL)


def stack_bytes(module: Any, layout: Any, excluding: str = "") -> int:
    """Bytes of the stack variables of known size of all functions of *module*, *excluding* the one of that name."""
    types = TypeTable(ir.Context())
    printed = PrintedModule(module)
    allocations = [
        instruction
        for name in printed.functions
        if name != excluding
        for instruction in printed.instructions(name)
        if " alloca " in instruction
    ]
    for struct in printed.structs if allocations else ():
        types.parse(struct)
    return sum(allocated_bytes(instruction, types, layout) for instruction in allocations)


def allocated_bytes(instruction: str, types: TypeTable, layout: Any) -> int:
    """Bytes of an ``alloca`` as LLVM prints it; 0 if its size is known only at run time."""
    cursor = Cursor(instruction)
    while cursor.accept_word("alloca") is None:
        cursor.take()
    kind = types.read(cursor)
    count = 1
    if cursor.accept_mark(",") and not cursor.is_word("align", "addrspace") and cursor.following.kind in _COUNTS:
        types.read(cursor)
        word = cursor.take()
        count = int(word) if word.isdigit() else 0
    return count * _size(kind, types, layout)


def _size(kind: ir.Type, types: TypeTable, layout: Any) -> int:
    """Bytes of a *kind*. LLVM computes in 64 bits, where the size of a huge array would wrap around."""
    if isinstance(kind, ir.ArrayType):
        return int(kind.count) * _size(kind.element, types, layout)
    parts = sum(_size(element, types, layout) for element in getattr(kind, "elements", None) or ())
    return max(int(kind.get_abi_size(layout, types.context)), parts)


def private_type(alloca: Instruction) -> ir.Type:
    """The type that an alloca allocates; `UnsupportedError` if its size is known only at run time."""
    (count,) = alloca.operands
    assert alloca.source_type is not None
    if not isinstance(count, Constant) or count.number is None:
        raise UnsupportedError(
            "private memory whose size is known only at run time cannot be used in a kernel whose threads synchronise"
        )
    return alloca.source_type if count.number == 1 else ir.ArrayType(alloca.source_type, count.number)
