"""Finalises kernels on which LLVM may abort in a separate process, passes and all; the others in this one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.errors import UnsupportedError as NotSurvivedError
from hip_devicelib.isolated_call import call_apart
from hip_runtime import config
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu import finalise
from hip_runtime.drivers.cpu.object_code.jit import emit_here
from hip_runtime.drivers.cpu.object_code.program import Program
from hip_runtime.drivers.cpu.object_code.program_image import read_program, write_program
from hip_runtime.drivers.cpu.validation import validate
from hip_runtime.errors import ModuleLoadError

T = TypeVar("T")

_SETTINGS: tuple[config.Setting[Any], ...] = (
    config.cpu_form, config.cpu_width, config.cpu_lanes, config.cpu_lockstep, config.dump,
    config.dump_directory, config.verify_passes,
)  # fmt: skip
"""What `finalise_kernel` reads of the settings."""

_reasons: dict[str, tuple[str, ...]] = {}
"""Why LLVM may not survive code objects, by their digests, as far as there is anything."""


def validate_code(code: CodeObject) -> None:
    """`validate`; its doubts about *code* are recorded for `finalise_isolated`."""
    reasons = validate(code)
    if reasons:
        _reasons[code.digest] = tuple(reasons)


def finalise_isolated(code: CodeObject, kernel: Kernel, block: Dim3) -> Program:
    """`finalise_kernel`, in another process if `validate_code` found that LLVM may abort."""
    reasons = _reasons.get(code.digest) if _reasons else None
    if not reasons:
        return finalise.finalise_kernel(code, kernel, block)
    return read_program(_call(_finalise, code, kernel, block, reasons))


def call_isolated(
    function: Callable[[CodeObject, Kernel, Dim3], T], code: CodeObject, kernel: Kernel, block: Dim3
) -> T:
    """What *function* of some module gives, called in another process if LLVM may abort on *code*."""
    reasons = validate(code)
    if not reasons:
        return function(code, kernel, block)
    return _call(partial(_call_here, function), code, kernel, block, reasons)


def _call(function: Callable[..., T], code: CodeObject, kernel: Kernel, block: Dim3, reasons: Sequence[str]) -> T:
    """What *function* gives in another process, with the settings of this one as its last argument."""
    settings = [setting() for setting in _SETTINGS]
    try:
        return call_apart(function, code, kernel, block, settings)
    except NotSurvivedError as error:
        raise ModuleLoadError(
            f"kernel {kernel.name!r}: LLVM cannot generate machine code for it ({', '.join(reasons)}): {error}"
        ) from None


def _finalise(code: CodeObject, kernel: Kernel, block: Dim3, settings: list[object]) -> bytes:
    """The other process's part, with the *settings* of this one."""
    _settle(settings)
    return write_program(finalise.finalise_kernel(code, kernel, block))


def _call_here(
    function: Callable[[CodeObject, Kernel, Dim3], T], code: CodeObject, kernel: Kernel, block: Dim3,
    settings: list[object],
) -> T:  # fmt: skip
    """The other process's part of `call_isolated`."""
    _settle(settings)
    return function(code, kernel, block)


def _settle(settings: list[object]) -> None:
    emit_here()
    for setting, value in zip(_SETTINGS, settings, strict=True):
        if value is not None:
            setting.preset(value)
