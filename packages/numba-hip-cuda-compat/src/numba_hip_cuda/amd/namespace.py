"""Answers for what `numba.hip` lacks and AMD's numba-hip has; `numba_hip` finds it by its entry point."""

from __future__ import annotations

import importlib
from importlib.machinery import ModuleSpec

from numba_hip_cuda.amd.catalog import ALIASES, HIP, MODULES
from numba_hip_cuda.name_lookup import ORIGIN, UnavailableNameError, UnknownNameError
from numba_hip_cuda.name_lookup import look_up as look_up_in
from numba_hip_cuda.pose import ForwardingLoader, PosedLoader


def look_up(name: str) -> object:
    """The object that *name* of `numba.hip` stands for; `LookupError` for a name that AMD's numba-hip does not have,
    `AttributeError` for one that cannot be had here."""
    try:
        return look_up_in(HIP, name)
    except UnknownNameError:
        raise LookupError(name) from None


def find_spec(fullname: str) -> ModuleSpec | None:
    """How to import *fullname*, a module beneath `numba.hip`; None for one that AMD's numba-hip does not have, either.

    `ModuleNotFoundError` for one that it has, and that cannot be had here.
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
    """The names of `numba.hip` that stand for something."""
    return sorted(MODULES[HIP].names)
