"""Modules that a package's version identifies, so that their contents need no fingerprint."""

from __future__ import annotations

import os
import sys
import sysconfig
from functools import cache
from typing import Any

STAMPED = "numba numba_hip numba_hip_cuda hip_runtime hip_devicelib numpy llvmlite ml_dtypes".split()
"""Packages whose versions are in every fingerprint."""

PACKAGES = frozenset(STAMPED) | frozenset(sys.stdlib_module_names)


def is_covered(module: str | None) -> bool:
    """Whether the module of this name is Python's, or belongs to a package whose version is part of every fingerprint.

    Its file decides: a program may have a package with the name of one of Python's modules.
    """
    if module is None or module.partition(".")[0] not in PACKAGES:
        return False
    file = getattr(sys.modules.get(module), "__file__", None)
    return file is None or _is_covered_file(file, module.partition(".")[0])


@cache
def _is_covered_file(file: str, top: str) -> bool:
    if top in sys.stdlib_module_names:
        inside = file.startswith(_folders_of_python())
        return inside and not file.startswith(_folders_of_packages())
    loaded = [sys.modules[package] for package in STAMPED if package in sys.modules]  # numba.hip is numba_hip
    return file.startswith(tuple(os.path.join(folder, "") for package in loaded for folder in package.__path__))


@cache
def _folders_of_python() -> tuple[str, ...]:
    found = os.path.dirname(os.__file__), *map(sysconfig.get_path, ("stdlib", "platstdlib"))
    return tuple(os.path.join(folder, "") for folder in found)


@cache
def _folders_of_packages() -> tuple[str, ...]:
    """The folders of installed packages, which are inside the folder of Python's own modules."""
    return tuple(os.path.join(sysconfig.get_path(name), "") for name in ("purelib", "platlib"))


def module_of(value: Any) -> str | None:
    """The name of the module that *value*, a function or a class, comes from; the name that a function claims can be
    wrong."""
    names = getattr(value, "__globals__", None)
    found = names.get("__name__") if isinstance(names, dict) else getattr(value, "__module__", None)
    return found if isinstance(found, str) else None
