"""What kernels are compiled for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hip_devicelib.target import Target
from hip_runtime import config as runtime_config
from numba_hip.abi.variant import Variant
from numba_hip.targets.context import HipContext
from numba_hip.targets.typing import HipTypingContext

if TYPE_CHECKING:
    from numba_hip.targets.outputs import Outputs


@dataclass(frozen=True, eq=False)
class CompileTarget:
    """What kernels are compiled for.

    ``name`` is ``"cpu"`` or an AMD GPU with its features; ``numba_name`` is the name of the target in Numba's registry.
    The two contexts are Numba's: one for typing, the other for lowering.
    """

    name: str
    numba_name: str
    typing_context: HipTypingContext
    target_context: HipContext
    outputs: Outputs
    variant: Variant
    machine: Target | None = None
    """The AMD GPU with its features and wave size; None for the CPU device, whose code is for waves of any size."""

    @property
    def checked(self) -> bool:
        """Whether code for it checks indices."""
        return self.variant.checked

    @property
    def wave_size(self) -> int:
        """Lanes of a wave; on the CPU device as many as its setting says now, though its code is for waves of any
        size."""
        return runtime_config.cpu_wave_size() if self.machine is None else self.machine.wave_size

    @property
    def contexts(self) -> tuple[HipTypingContext, HipContext]:
        """Both contexts, in Numba's order."""
        return self.typing_context, self.target_context
