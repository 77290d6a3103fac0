"""The meaning of ``target="cuda"`` for Numba's own decorators: `numba_hip` while posing, Numba's own afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core.target_extension import CUDA, target_registry
from numba.np.ufunc.decorators import GUVectorize, Vectorize

from numba_hip.targets.numba_target import HIP

NAME = "cuda"

_numbas: dict[Any, Callable[[], Any]] = {}
"""How Numba's ufunc decorators reach `numba.cuda`, saved while posing lasts."""


def begin() -> None:
    """Let ``"cuda"`` mean `numba_hip`."""
    _set(HIP)
    for decorator, builder in ((Vectorize, "CUDAVectorize"), (GUVectorize, "CUDAGUFuncVectorize")):
        registry = decorator.target_registry
        registry.pop(NAME, None)
        _numbas[decorator] = registry.ondemand.pop(NAME)
        registry.ondemand[NAME] = _builder(builder)


def end() -> None:
    """Undo `begin`."""
    _set(CUDA)
    for decorator, numbas in _numbas.items():
        registry = decorator.target_registry
        registry.pop(NAME, None)
        registry.ondemand.pop(NAME, None)  # it was deleted if asked for
        registry.ondemand[NAME] = numbas
    _numbas.clear()


def _set(target: type) -> None:
    target_registry.pop(NAME, None)  # Numba's registries do not allow an entry to be changed
    target_registry[NAME] = target


def _builder(name: str) -> Callable[[], Any]:
    def load() -> Any:
        from numba_hip_cuda import ufuncs

        return getattr(ufuncs, name)

    return load
