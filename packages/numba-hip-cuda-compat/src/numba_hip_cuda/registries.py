"""The registries with which libraries extend `numba.cuda`, and the object that holds its contexts."""

from __future__ import annotations

from typing import Any

import numba_hip
from numba_hip.compilation.target_registry import compile_target
from numba_hip.language.cg import GridGroupType
from numba_hip.language.registry import lowering
from numba_hip.language.registry import typing as registry

register = registry.register
register_attr = registry.register_attr
register_global = registry.register_global

lower = lowering.lower
lower_attr = lowering.lower_getattr
lower_attr_generic = lowering.lower_getattr_generic
lower_setattr = lowering.lower_setattr
lower_setattr_generic = lowering.lower_setattr_generic
lower_cast = lowering.lower_cast
lower_constant = lowering.lower_constant

grid_group = GridGroupType()
"""The type of ``cuda.cg.this_grid()``."""


class CudaTarget:
    """``numba.cuda.descriptor.cuda_target``, used for its contexts: here those of the current device."""

    @property
    def typing_context(self) -> Any:
        """The typing context of kernels for the current device."""
        return compile_target(numba_hip.get_current_device().target).typing_context

    @property
    def target_context(self) -> Any:
        """The target context, which lowers typed code for the current device."""
        return compile_target(numba_hip.get_current_device().target).target_context


cuda_target = CudaTarget()

__all__ = [
    "CudaTarget", "cuda_target", "grid_group", "lower", "lower_attr", "lower_attr_generic", "lower_cast",
    "lower_constant", "lower_setattr", "lower_setattr_generic", "lowering", "register", "register_attr",
    "register_global", "registry",
]  # fmt: skip
