"""Maps the machine code of a program to source lines.

Programs have no line tables, which would slow down each compilation. On request, the layer above generates the kernel's
bitcode again, with lines; if the machine code generated from it is identical, its lines are those of the program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from hip_devicelib.codeobject import CodeObject
from hip_devicelib.forking import compiling
from hip_runtime.drivers.cpu.abi.worker import WORKER_SYMBOL
from hip_runtime.drivers.cpu.isolation import finalise_isolated, validate_code
from hip_runtime.drivers.cpu.object_code.line_table import LineTable
from hip_runtime.drivers.cpu.object_code.object_file import read_object
from hip_runtime.drivers.cpu.object_code.program import Program

_MOST = 8
"""Lines that are named."""


def describe_lines(program: Program, addresses: Sequence[int], compile_again: Callable[[], CodeObject]) -> str:
    """The lines that the code at *addresses* comes from: ``file:line``, with further ones behind it; empty where none
    is known. *compile_again* gives the bitcode of the kernel of *program*, with lines."""
    if program.lines is None:
        program.lines = _make_table(program, compile_again)
    found = {line for address in addresses if (line := program.lines.find(address - program.code_start)) is not None}
    if not found:
        return ""
    exact = {line for line in found if line[2]}
    by_file: dict[str, list[int]] = {}
    for file, number, _ in sorted(exact or found):
        by_file.setdefault(file, []).append(number)
    texts = [f"{_shown(file)}:{', '.join(map(str, numbers[:_MOST]))}" for file, numbers in by_file.items()]
    return ("" if exact else "near ") + "; ".join(texts)


def _shown(file: str) -> str:
    """*file*, without the directory where it is none, as ``<string>``: Numba puts the current one in front."""
    name = os.path.basename(file)
    return name if name.startswith("<") else file


def _make_table(program: Program, compile_again: Callable[[], CodeObject]) -> LineTable:
    own = LineTable(program.image, WORKER_SYMBOL)
    if own:
        return own
    with compiling:
        code = compile_again()
        validate_code(code)
        (kernel,) = code.kernels
        image = finalise_isolated(code, kernel, program.made_for).image
    return LineTable(image, WORKER_SYMBOL) if _code(image) == _code(program.image) else own


def _code(image: bytes) -> bytes:
    """The section that the worker in *image* is in."""
    elf = read_object(image)
    return elf.section_bytes(elf.symbol(WORKER_SYMBOL).section)
