"""The compile targets of this process, each created at its first use."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.forking import compiling
from hip_devicelib.target import Target, parse_target
from numba_hip.abi.variant import Variant
from numba_hip.compilation.device_function import device_jit, make_device_function
from numba_hip.targets import numba_target
from numba_hip.targets.codegen import HipCodegen
from numba_hip.targets.compile_target import CompileTarget
from numba_hip.targets.context import HipContext
from numba_hip.targets.typing import HipTypingContext

if TYPE_CHECKING:
    from numba_hip.targets.outputs import Outputs

DEFAULT = Variant()

_targets: dict[tuple[str, Variant], CompileTarget] = {}


def compile_target(name: str, variant: Variant = DEFAULT) -> CompileTarget:
    """The compile target called *name*: ``"cpu"``, or an AMD GPU such as ``"gfx942"`` or ``"gfx90a:xnack+"``.

    *variant* is how code for it is made. Raises `hip_devicelib.errors.UnknownTargetError` for a name that there is
    not, and `hip_devicelib.errors.UnsupportedError` for waves that the GPU does not have.
    """
    key = name, variant.on_cpu() if name == CPU_TARGET else variant.on_amd()
    target = _targets.get(key)
    if target is None:
        with compiling:
            target = _targets.get(key) or _make(*key)
            _targets[key] = target
    return target


def known_targets() -> list[CompileTarget]:
    """The compile targets that were asked for so far."""
    return list(_targets.values())


def _make(name: str, variant: Variant) -> CompileTarget:
    # An unknown name is refused here.
    machine = None if name == CPU_TARGET else parse_target(name, wave_size=variant.wave_size)
    typing_context = HipTypingContext()
    context_class, codegen, outputs = _parts(machine, variant)
    numba_name = numba_target.register(name + variant.suffix)
    context = context_class(typing_context, numba_name, codegen)
    target = CompileTarget(name, numba_name, typing_context, context, outputs, variant, machine)
    typing_context.compile_target = target
    typing_context.make_device_function = partial(make_device_function, target)
    numba_target.complete(numba_name, target, partial(device_jit, target))
    return target


def _parts(machine: Target | None, variant: Variant) -> tuple[type[HipContext], HipCodegen, Outputs]:
    """The class of the target context, the code generator, and what makes outputs; an import of the package needs none
    of them."""
    if machine is None:
        from numba_hip.targets.cpu.bounds_checks import CheckedCpuContext
        from numba_hip.targets.cpu.codegen import CpuCodegen, ObservedCodegen
        from numba_hip.targets.cpu.context import CpuContext
        from numba_hip.targets.cpu.outputs import CpuOutputs

        codegen = ObservedCodegen() if variant.observed else CpuCodegen()
        return CheckedCpuContext if variant.checked else CpuContext, codegen, CpuOutputs(codegen)
    from numba_hip.targets.amd.bounds_checks import CheckedAmdContext
    from numba_hip.targets.amd.codegen import AmdCodegen
    from numba_hip.targets.amd.context import AmdContext
    from numba_hip.targets.amd.outputs import AmdOutputs

    context = CheckedAmdContext if variant.checked else AmdContext
    return context, AmdCodegen(machine, variant), AmdOutputs(machine)
