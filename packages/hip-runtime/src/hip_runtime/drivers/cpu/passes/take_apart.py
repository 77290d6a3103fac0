"""Uses the parts of a value that is put together of them, and then taken apart again, in place of that value.

Such are tuples: a function returns one, of whose members its caller makes use. LLVM does away with them when it
optimises. Vectors cannot hold them, so where code may not be optimised, as its memory accesses have to stay as they
are, it is done here. Nothing but ``extractvalue`` and ``insertvalue`` is left out.
"""

from __future__ import annotations

from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction, Value

_UNDEFINED = frozenset({"undef", "poison"})


def take_apart(function: Function) -> bool:
    """Replace each ``extractvalue`` of *function* whose result was put in by an ``insertvalue``; whether there were
    any. Those that nothing uses then are removed."""
    parts = {
        value: part
        for value in function.instructions()
        if value.opcode == "extractvalue" and (part := _find_part(value)) is not None
    }
    if not parts:
        return False
    for user in function.instructions():
        user.operands = [_last(parts, value) for value in user.operands]
    _remove_unused(function)
    return True


def _last(parts: dict[Instruction, Value], value: Value) -> Value:
    """What stands for *value*: a part may have been taken from another whole."""
    while isinstance(value, Instruction) and value in parts:
        value = parts[value]
    return value


def _find_part(extracted: Instruction) -> Value | None:
    """The value that *extracted* is, somewhere before it; ``None`` if it comes from memory, a call or a phi."""
    whole: Value = extracted
    path: tuple[int, ...] = ()
    while True:
        if isinstance(whole, Constant) and whole.text in _UNDEFINED:
            return Constant(extracted.type, whole.text)
        if not isinstance(whole, Instruction):
            return None
        if whole.opcode == "extractvalue":
            path = whole.indices + path
            whole = whole.operands[0]
        elif whole.opcode == "insertvalue":
            common = min(len(path), len(whole.indices))
            if path[:common] != whole.indices[:common]:
                whole = whole.operands[0]  # another part was put in
            elif common < len(whole.indices):
                return None  # only a part of what is asked for was put in
            else:
                whole, path = whole.operands[1], path[common:]
        else:
            return None
        if not path:
            return whole


def _remove_unused(function: Function) -> None:
    while True:
        used = {operand for user in function.instructions() for operand in user.operands}
        unused = {
            value
            for value in function.instructions()
            if value.opcode in ("extractvalue", "insertvalue") and value not in used
        }
        if not unused:
            return
        for block in function.blocks:
            block.instructions = [value for value in block.instructions if value not in unused]
