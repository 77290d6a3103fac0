"""Modules whose contents the versions of packages tell: they need no stamps of their own."""

from __future__ import annotations

import sys
from typing import Any

PACKAGES = frozenset(
    "numba numba_hip numba_hip_cuda hip_runtime hip_devicelib numpy llvmlite ml_dtypes".split()
) | frozenset(sys.stdlib_module_names)


def is_covered(module: str | None) -> bool:
    """Whether the *module* of this name is Python's, or of a package whose version is in every stamp."""
    return module is not None and module.partition(".")[0] in PACKAGES


def module_of(value: Any) -> str | None:
    """The name of the module that *value*, a function or a class, comes from; functions may say another than is so."""
    names = getattr(value, "__globals__", None)
    found = names.get("__name__") if isinstance(names, dict) else getattr(value, "__module__", None)
    return found if isinstance(found, str) else None
