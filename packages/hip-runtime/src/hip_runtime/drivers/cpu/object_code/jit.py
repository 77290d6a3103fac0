"""Object code for this machine: LLVM's target machine, emitting and loading objects, and the symbols that they refer
to."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm

from hip_devicelib.codeobject import Kernel
from hip_devicelib.errors import UnsupportedError as NoCodeError
from hip_devicelib.isolated_codegen import emit_for_host_apart, make_host_machine
from hip_devicelib.llvm_context import make_context
from hip_runtime.drivers.cpu.abi.observer import OBSERVER, OBSERVER_STATE, build_observer
from hip_runtime.drivers.cpu.abi.worker import PROGRAM_SYMBOL
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code.bfloat_conversions import FROM_DOUBLE, FROM_FLOAT, build_conversions
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.object_code.object_file import read_object
from hip_runtime.drivers.cpu.object_code.program import Program, function_at
from hip_runtime.errors import ModuleLoadError, SymbolError

_lock = threading.RLock()


def locked() -> threading.RLock:
    """The lock of everything that LLVM does here, for a ``with`` statement."""
    return _lock


def renew_lock() -> None:
    """Replace the lock in a forked child, where the thread that held it does not exist."""
    global _lock
    _lock = threading.RLock()


def compile_quickly(module: Any, *entries: str) -> Program:
    """Machine code of the llvmlite module *module*, whose functions *entries* are there to be called.

    For code that spends its time in calls and locked instructions: LLVM's full pipeline takes seven times as long and
    makes such code no faster.
    """
    with locked():
        return _compile_quickly(module, entries)


def _compile_quickly(module: Any, entries: Sequence[str]) -> Program:
    with LlvmContext() as scratch:
        machine = target_machine()
        parsed = scratch.read_text(str(module))
        parsed.triple, parsed.data_layout = machine.triple, str(machine.target_data)
        hide_all_but(entries, parsed)
        passes = llvm.create_new_module_pass_manager()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.run(parsed, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        return load_object(make_host_machine(0).emit_object(parsed), entries)


def compile_module(module: Any, *entries: str) -> Program:
    """Machine code of LLVM's *module*, which is optimised already, and of which only the functions *entries* are there
    to be called. *module* is used up."""
    with locked():
        machine = target_machine()
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        hide_all_but(entries, module)
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
        return load_object(machine.emit_object(module), entries)


_emits_here = False


def emit_here() -> None:
    """Generate machine code in this process, even if LLVM may abort."""
    global _emits_here
    _emits_here = True


def emit_object(module: Any, kernel: Kernel, reasons: Sequence[str]) -> bytes:
    """The object file of *module*: emitted in another process if there are *reasons* to expect that LLVM aborts."""
    if _emits_here or not reasons:
        return bytes(target_machine().emit_object(module))
    try:
        return emit_for_host_apart(bytes(module.as_bitcode()), "object", loads="asm" in reasons)
    except NoCodeError as error:
        raise ModuleLoadError(
            f"kernel {kernel.name!r}: LLVM cannot generate machine code for it ({', '.join(reasons)}): {error}"
        ) from None


def emit_assembly(module: Any, machine: Any) -> str:
    """The assembly of *module* for LLVM's target *machine*. *module* can be emitted as an object afterwards: emitting
    changes a module, and LLVM ends the process when it is done twice, so this is done with a copy."""
    copy = llvm.parse_bitcode(module.as_bitcode(), make_context())
    return str(machine.emit_assembly(copy))


def hide_all_but(entries: Sequence[str], module: Any) -> None:
    """Make everything in *module* internal but *entries*."""
    for function in module.functions:
        if not function.is_declaration and function.name not in entries:
            function.linkage = "internal"
    for variable in module.global_variables:
        if not variable.is_declaration and variable.name not in entries and variable.linkage.name != "appending":
            variable.linkage = "internal"


def load_image(image: bytes, entries: Sequence[str] = (PROGRAM_SYMBOL,)) -> Program:
    """The program whose object file is *image*, which was made in this process or another."""
    with locked():
        target_machine()
        return load_object(image, entries)


def load_object(image: bytes, entries: Sequence[str]) -> Program:
    """Load the object file *image*, once every symbol that it refers to exists: `SymbolError` names those that do
    not, on which MCJIT would end the process."""
    symbols = read_object(image).undefined_symbols()
    observed = OBSERVER in symbols
    if observed:
        _define_observer()
    missing = [name for name in symbols if not llvm.address_of_symbol(name)]
    if not {FROM_FLOAT, FROM_DOUBLE}.isdisjoint(missing):
        _define_conversions()
        missing = [name for name in missing if not llvm.address_of_symbol(name)]
    if missing:
        raise SymbolError(
            f"code for the CPU device refers to {', '.join(map(repr, missing))}, which neither it nor the C math "
            "library defines; link the code that defines it"
        )
    program = Program(image, entries)
    (_observed.add if observed else _observed.discard)(program.entry)
    return program


_observed: set[int] = set()


def is_observed(entry: int) -> bool:
    """Whether the program whose first entry is at address *entry* tells what its threads do."""
    return entry in _observed


@cache
def _define_conversions() -> Program:
    """Make the conversions to bfloat16 known to LLVM. The result keeps them loaded."""
    names = [name for name in (FROM_FLOAT, FROM_DOUBLE) if not llvm.address_of_symbol(name)]
    program = _compile_quickly(build_conversions(), names)
    for name, address in zip(names, program.entries, strict=True):
        llvm.add_symbol(name, address)
    return program


@cache
def _define_observer() -> Any:
    """Make the observer known to LLVM; gives its two words. They and its code live as long as the process."""
    program = _compile_quickly(build_observer(), (OBSERVER, OBSERVER_STATE))
    observer, state = program.entries
    llvm.add_symbol(OBSERVER, observer)
    words = (ctypes.c_int64 * 2).from_address(function_at(state, ctypes.c_int64)())
    return words, program


def observer_words() -> Any:
    """What `observer.OBSERVER` looks at: the address of the function that is told, or 0, and its first argument."""
    with locked():
        return _define_observer()[0]


def observer_address() -> int:
    """The address of `observer.OBSERVER`."""
    with locked():
        return int(_define_observer()[1].entry)
