"""The compile targets of this process, each made when it is first asked for."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial

from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.target import Target, parse_target
from numba_hip.codegen import AmdCodegen, CpuCodegen, HipCodegen
from numba_hip.targets import numba_target
from numba_hip.targets.context import HipContext
from numba_hip.targets.typing import HipTypingContext


@dataclass(frozen=True, eq=False)
class CompileTarget:
    """What kernels are compiled for.

    ``name`` is ``"cpu"`` or that of an AMD GPU with its features; ``numba_name`` the name of the target in Numba's
    registry. The contexts are Numba's: one types, the other lowers.
    """

    name: str
    numba_name: str
    typing_context: HipTypingContext
    target_context: HipContext
    checked: bool = False
    """Whether code for it checks indices."""
    machine: Target | None = None
    """The AMD GPU with its features and wave size; None for the CPU device, whose code is for waves of any size."""

    @property
    def contexts(self) -> tuple[HipTypingContext, HipContext]:
        """Both contexts, in the order in which Numba wants them."""
        return self.typing_context, self.target_context


_targets: dict[tuple[str, bool, int | None], CompileTarget] = {}
_lock = threading.Lock()


def compile_target(name: str, *, checked: bool = False, wave_size: int | None = None) -> CompileTarget:
    """The compile target called *name*: ``"cpu"``, or an AMD GPU such as ``"gfx942"`` or ``"gfx90a:xnack+"``.

    Where it is *checked*, an index out of range raises, in all functions. *wave_size* is the lanes of a wave, what the
    GPU prefers where it is None; code for the CPU device is the same for all. Raises
    `hip_devicelib.errors.UnknownTargetError` for a name that there is not, and `hip_devicelib.errors.UnsupportedError`
    for waves that the GPU does not have.
    """
    key = name, checked, None if name == CPU_TARGET else wave_size
    target = _targets.get(key)
    if target is None:
        with _lock:
            target = _targets.get(key) or _make(*key)
            _targets[key] = target
    return target


def known_targets() -> list[CompileTarget]:
    """The compile targets that were asked for so far."""
    return list(_targets.values())


def _make(name: str, checked: bool, wave_size: int | None) -> CompileTarget:
    from numba_hip.device_function import device_jit

    machine = None if name == CPU_TARGET else parse_target(name, wave_size=wave_size)  # an unknown name is refused here
    typing_context = HipTypingContext()
    context_class, codegen = _parts(machine, checked)
    wave = "" if wave_size is None else f":wave{wave_size}"
    numba_name = numba_target.register(f"{name}{wave}{':checked' if checked else ''}")
    context = context_class(typing_context, numba_name, codegen)
    target = CompileTarget(name, numba_name, typing_context, context, checked, machine)
    typing_context.compile_target = target
    numba_target.complete(numba_name, target, partial(device_jit, target))
    return target


def _parts(machine: Target | None, checked: bool) -> tuple[type[HipContext], HipCodegen]:
    """The class of the target context, and the code generator."""
    if machine is None:
        from numba_hip.targets.checked import CheckedCpuContext
        from numba_hip.targets.cpu import CpuContext

        return CheckedCpuContext if checked else CpuContext, CpuCodegen()
    from numba_hip.targets.amdgpu import AmdContext
    from numba_hip.targets.checked_amdgpu import CheckedAmdContext

    return CheckedAmdContext if checked else AmdContext, AmdCodegen(machine)
