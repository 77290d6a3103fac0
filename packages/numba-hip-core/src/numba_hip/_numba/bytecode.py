"""Python's bytecode on its way to Numba's intermediate representation."""

from __future__ import annotations

import dis
import re
from typing import Any

from numba.core import ir
from numba.core.errors import UnsupportedBytecodeError
from numba.core.ir_utils import build_definitions
from numba.core.untyped_passes import TranslateByteCode as NumbaTranslateByteCode

__all__ = ["NumbaTranslateByteCode", "express_formats", "keep_assigned_values", "keyword_defaults", "offset_of_format",
           "rebuild_definitions"]  # fmt: skip

_CONVERSION, _HAS_SPEC = 0x03, 0x04
"""Bits of the argument of ``FORMAT_VALUE``."""

_KEYWORD_DEFAULTS = 0x02
"""What the argument of ``MAKE_FUNCTION`` or, from Python 3.13 on, ``SET_FUNCTION_ATTRIBUTE`` says of these."""


def express_formats(bytecode: Any) -> frozenset[int]:
    """Express the formatted values of f-strings in *bytecode* (Numba's) by what Numba translates: a value with a format
    as ``value @ format``, which no value of a kernel has otherwise; one without as a call of `str`, as Numba does.

    Returns the offsets of those without, which `format` writes and not `str`: see `offset_of_format`.

    Raises `UnsupportedBytecodeError` for a value that is converted (``!r``) and has a format besides.
    """
    plain, converted = set(), set()
    instructions = list(bytecode.table.values())
    for number, instruction in enumerate(instructions):
        name = instruction.opname
        if name == "FORMAT_VALUE":
            conversion, spec = instruction.arg & _CONVERSION, instruction.arg & _HAS_SPEC
        elif name in ("FORMAT_SIMPLE", "FORMAT_WITH_SPEC"):  # from Python 3.13 on
            spec = _HAS_SPEC * (name == "FORMAT_WITH_SPEC")
            # A conversion is before the instructions of the format, which is a constant most often.
            conversion = int(number > spec // 4 and instructions[number - 1 - spec // 4].offset in converted)
        elif name == "CONVERT_VALUE":
            converted.add(instruction.offset)
            _replace(instruction, "NOP", 0)
            continue
        else:
            continue
        if spec and conversion:
            loc = ir.Loc(bytecode.func_id.filename, instruction.lineno)
            message = "print in a kernel takes no conversion (!r, !s, !a) together with a format: leave out one of them"
            raise UnsupportedBytecodeError(message, loc=loc)
        if spec:
            _become_matmul(instruction)
            continue
        if not conversion:
            plain.add(instruction.offset)
        if name == "FORMAT_VALUE":
            instruction.arg = 0
    return frozenset(plain)


def keyword_defaults(bytecode: Any) -> Any:
    """Where in *bytecode* (Numba's) a function is made that has keyword-only parameters with defaults, else None."""
    for instruction in bytecode.table.values():
        made = instruction.opname == "MAKE_FUNCTION" and (instruction.arg or 0) & _KEYWORD_DEFAULTS
        if made or (instruction.opname == "SET_FUNCTION_ATTRIBUTE" and instruction.arg == _KEYWORD_DEFAULTS):
            return ir.Loc(bytecode.func_id.filename, instruction.lineno)
    return None


def keep_assigned_values(bytecode: Any) -> None:
    """Let what ``(n := value)`` leaves behind in *bytecode* (Numba's) be read from the variable.

    Python copies the value and stores the copy. Numba lets the variable take the place of a value that is stored right
    after it was made, and forgets that this one is used once more.
    """
    instructions = list(bytecode.table.values())
    for copy, store, following in zip(instructions, instructions[1:], instructions[2:], strict=False):
        copies = copy.opname == "DUP_TOP" or (copy.opname == "COPY" and copy.arg == 1)
        if not copies or following.opname.startswith("STORE"):  # a = b = value
            continue
        if store.opname == "STORE_FAST":
            _replace(copy, "STORE_FAST", store.arg)
            _replace(store, "LOAD_FAST", store.arg)
        elif store.opname == "STORE_FAST_LOAD_FAST":  # from Python 3.13 on
            assigned, loaded = divmod(store.arg, 16)
            _replace(copy, "STORE_FAST", assigned)
            _replace(store, "LOAD_FAST_LOAD_FAST", 16 * assigned + loaded)


def offset_of_format(function: ir.Var) -> int | None:
    """The offset of the instruction that formats a value, where *function* is what Numba calls for it."""
    found = re.match(r"\$(\d+)format_(?:value|simple)\b", function.name)
    return None if found is None else int(found[1])


def _become_matmul(instruction: Any) -> None:
    if "BINARY_OP" not in dis.opmap:  # Python 3.10
        _replace(instruction, "BINARY_MATRIX_MULTIPLY", None)
        return
    number = next(number for number, (_, symbol) in enumerate(dis._nb_ops) if symbol == "@")  # type: ignore[attr-defined]
    _replace(instruction, "BINARY_OP", number)


def _replace(instruction: Any, name: str, argument: int | None) -> None:
    instruction.opname, instruction.opcode, instruction.arg = name, dis.opmap[name], argument


def rebuild_definitions(function: Any) -> None:
    """Record again what the variables of *function*, Numba's intermediate representation, are assigned."""
    function._definitions = build_definitions(function.blocks)
