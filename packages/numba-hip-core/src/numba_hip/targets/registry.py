"""The compile targets of this process, each made when it is first asked for."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import partial

from hip_devicelib.codeobject import CPU_TARGET
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

    @property
    def contexts(self) -> tuple[HipTypingContext, HipContext]:
        """Both contexts, in the order in which Numba wants them."""
        return self.typing_context, self.target_context


_targets: dict[str, CompileTarget] = {}
_lock = threading.Lock()


def compile_target(name: str) -> CompileTarget:
    """The compile target called *name*: ``"cpu"``, or an AMD GPU such as ``"gfx942"`` or ``"gfx90a:xnack+"``.

    Raises `hip_devicelib.errors.UnknownTargetError` for a name that there is not.
    """
    target = _targets.get(name)
    if target is None:
        with _lock:
            target = _targets.get(name) or _make(name)
            _targets[name] = target
    return target


def known_targets() -> list[CompileTarget]:
    """The compile targets that were asked for so far."""
    return list(_targets.values())


def _make(name: str) -> CompileTarget:
    from numba_hip.device_function import device_jit

    typing_context = HipTypingContext()
    context_class, codegen = _parts(name)
    numba_name = numba_target.register(name)
    target = CompileTarget(name, numba_name, typing_context, context_class(typing_context, numba_name, codegen))
    typing_context.compile_target = target
    numba_target.complete(numba_name, target, partial(device_jit, name))
    return target


def _parts(name: str) -> tuple[type[HipContext], HipCodegen]:
    """The class of the target context, and the code generator; here an unknown name is refused."""
    if name == CPU_TARGET:
        from numba_hip.targets.cpu import CpuContext

        return CpuContext, CpuCodegen()
    from numba_hip.targets.amdgpu import AmdContext

    return AmdContext, AmdCodegen(name)
