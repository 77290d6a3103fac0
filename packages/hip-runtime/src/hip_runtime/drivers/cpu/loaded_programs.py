"""Machine code that this process has loaded: other devices, and other modules with the same code, load a copy of it.

A copy has global variables of its own, as each device and each module has.
"""

from __future__ import annotations

from weakref import WeakValueDictionary

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_runtime import config
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu.abi.operation_counters import wanted
from hip_runtime.drivers.cpu.code_cache import names_of_blocks, settings_of_code
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.object_code.program_image import read_program, write_program

_loaded: WeakValueDictionary[tuple[object, ...], Program] = WeakValueDictionary()


def copy_loaded(code: CodeObject, kernel: Kernel, block: Dim3) -> Program | None:
    """A copy of a program of *kernel* that can run blocks of the shape *block*, if one is loaded."""
    if config.dump() or wanted() is not None:  # what is to be seen or counted is compiled
        return None
    for blocks in names_of_blocks(block):
        program = _loaded.get(_key(code, kernel, blocks))
        if program is not None and (program.lengths is None or program.lengths.fit(block)):
            return read_program(write_program(program))
    return None


def note_loaded(code: CodeObject, kernel: Kernel, block: Dim3, program: Program) -> None:
    """Let `copy_loaded` find *program*, made of *kernel* for *block*, for as long as it is loaded."""
    if wanted() is not None:
        return
    blocks = names_of_blocks(block)[0 if program.lengths is None else 1]
    _loaded[_key(code, kernel, blocks)] = program  # the last one is likely to stay longest


def _key(code: CodeObject, kernel: Kernel, blocks: tuple[object, ...]) -> tuple[object, ...]:
    return (code.digest, repr(kernel), blocks, *settings_of_code())
