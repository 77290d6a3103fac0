"""Kernels that LLVM may not survive, finalised in a process of their own, passes and all; the others in this one."""

from __future__ import annotations

from typing import Any

from hip_devicelib.apart import call_apart
from hip_devicelib.codeobject import CodeObject, Kernel
from hip_devicelib.errors import UnsupportedError as NotSurvivedError
from hip_runtime import config
from hip_runtime.driver import Dim3
from hip_runtime.drivers.cpu import finaliser
from hip_runtime.drivers.cpu.finaliser import Program
from hip_runtime.drivers.cpu.program_image import read_program, write_program
from hip_runtime.errors import ModuleLoadError

_SETTINGS: tuple[config.Setting[Any], ...] = (config.cpu_form, config.cpu_width, config.cpu_lockstep)
"""What `finaliser.finalise` reads of the settings."""

_reasons: dict[str, tuple[str, ...]] = {}
"""Why LLVM may not survive code objects, by their digests, as far as there is anything."""


def check(code: CodeObject) -> None:
    """`finaliser.check`, whose doubts about *code* are noted for `finalise`."""
    reasons = finaliser.check(code)
    if reasons:
        _reasons[code.digest] = tuple(reasons)


def finalise(code: CodeObject, kernel: Kernel, block: Dim3) -> Program:
    """`finaliser.finalise`, in another process where `check` found that this one may not survive it."""
    reasons = _reasons.get(code.digest) if _reasons else None
    if not reasons:
        return finaliser.finalise(code, kernel, block)
    settings = [setting() for setting in _SETTINGS]
    try:
        return read_program(call_apart(_finalise, code, kernel, block, settings))
    except NotSurvivedError as error:
        raise ModuleLoadError(
            f"kernel {kernel.name!r}: LLVM has no machine code of this processor for it ({', '.join(reasons)}): {error}"
        ) from None


def _finalise(code: CodeObject, kernel: Kernel, block: Dim3, settings: list[object]) -> bytes:
    """What the other process does, with the *settings* of this one."""
    finaliser.emit_here()
    for setting, value in zip(_SETTINGS, settings, strict=True):
        if value is not None:
            setting.preset(value)
    return write_program(finaliser.finalise(code, kernel, block))
