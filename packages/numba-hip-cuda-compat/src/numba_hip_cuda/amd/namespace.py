"""The names that AMD's numba-hip has and `numba.hip` lacks; `numba_hip` finds this module by its entry point."""

from __future__ import annotations

import importlib
from importlib.machinery import ModuleSpec

from numba_hip_cuda.amd.catalog import ALIASES, HIP, MODULES
from numba_hip_cuda.name_lookup import ORIGIN, UnavailableNameError, UnknownPosedNameError
from numba_hip_cuda.name_lookup import look_up as look_up_in
from numba_hip_cuda.pose import ForwardingLoader, PosedLoader


def look_up(name: str) -> object:
    """The object for *name* of `numba.hip`. `LookupError` if AMD's numba-hip has no such name, `AttributeError` if it
    has one that is not available here."""
    try:
        return look_up_in(HIP, name)
    except UnknownPosedNameError:
        raise LookupError(name) from None


def find_spec(fullname: str) -> ModuleSpec | None:
    """The import spec of *fullname*, a module below `numba.hip`, or None if AMD's numba-hip has no such module either.

    Raises `ModuleNotFoundError` if it has one that is not available here.
    """
    if fullname in MODULES:
        return ModuleSpec(fullname, PosedLoader(), origin=ORIGIN, is_package=True)
    for alias, meant in ALIASES.items():
        if fullname == alias or fullname.startswith(alias + "."):
            module = importlib.import_module(meant + fullname.removeprefix(alias))
            return ModuleSpec(fullname, ForwardingLoader(module), origin=ORIGIN, is_package=True)
    parent, _, name = fullname.rpartition(".")
    if parent in MODULES and name in MODULES[parent].absent:
        try:
            look_up_in(parent, name)
        except UnavailableNameError as error:
            raise ModuleNotFoundError(str(error), name=fullname) from None
    return None


def names() -> list[str]:
    """The names of `numba.hip` that are available."""
    return sorted(MODULES[HIP].names)
