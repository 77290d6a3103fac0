"""Looks up names of `numba.cuda` and `numba_cuda_mlir` in their catalogs.

There are three kinds of names: those that stand for an object (of `numba_hip`, of Numba, or of `numba_hip_cuda` where
the two behave differently); those of CUDA without a counterpart in HIP, with the reason; and those that `numba.cuda`
does not have.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from contextlib import suppress
from types import ModuleType

from numba_hip_cuda import catalog
from numba_hip_cuda.catalog import CUDA, PACKAGE
from numba_hip_cuda.mlir import catalog as mlir_catalog
from numba_hip_cuda.mlir.catalog import MLIR
from numba_hip_cuda.posed_module import PosedModule

ORIGIN = "numba_hip_cuda"
"""The origin in the import specs of posed modules."""

ROOTS = (CUDA, MLIR, PACKAGE)
"""The top-level names that are posed as, with everything below them."""

MODULES: Mapping[str, PosedModule] = {**catalog.MODULES, **mlir_catalog.MODULES}
"""The modules that are posed name by name, by their full names."""

FORWARDED: Mapping[str, str] = {**catalog.FORWARDED, **mlir_catalog.FORWARDED}
"""Modules that another module replaces as a whole, with everything below them."""


def table_of(module: str) -> PosedModule:
    """The table of *module*: a key of `MODULES`, or a module of AMD's numba-hip, whose table most programs never
    need."""
    if module in MODULES:
        return MODULES[module]
    from numba_hip_cuda.amd import catalog as amd_catalog

    return amd_catalog.MODULES[module]


class UnknownPosedNameError(AttributeError):
    """`numba.cuda` has no such name, as far as this package knows.

    Suggestions are computed when the message is read, as a failed lookup has to be quick.
    """

    def __init__(self, module: str, attribute: str) -> None:
        super().__init__(module, attribute)
        self.module = module
        self.attribute = attribute

    def __str__(self) -> str:
        from numba_hip.suggestions import hint

        root = root_of(self.module)
        meant = hint(self.attribute, available(self.module), _places_of(self.attribute, root))
        return f"module {self.module!r} has no attribute {self.attribute!r}{meant} ({_role(self.module)})"


class UnavailableNameError(AttributeError):
    """A name of `numba.cuda` that has no counterpart, or none in the installed `numba_hip`."""


def look_up(module: str, name: str) -> object:
    """The object that *name* of *module* stands for; *module* must be known to `table_of`.

    Raises `UnknownPosedNameError` or `UnavailableNameError`, which say that this is not NVIDIA's module, and what it
    has.
    """
    table = table_of(module)
    where = table.names.get(name)
    if where is not None:
        return _resolve(module, name, where)
    if f"{module}.{name}" in MODULES or f"{module}.{name}" in FORWARDED:  # Numba CUDA imports all of its modules
        return _module_beneath(module, name, f"{module}.{name}")
    if name in table.absent:
        raise UnavailableNameError(describe_left_out(f"{module}.{name}", table.absent[name]))
    if table.like is not None:
        try:
            return look_up(table.like, name)
        except UnknownPosedNameError:
            pass  # the error for the requested module says more
    if not name.startswith("__"):
        rest = _rest_of(table)
        if hasattr(rest, name):
            return getattr(rest, name)
    if table.beyond is not None and not name.startswith("__"):
        with suppress(AttributeError):
            return getattr(importlib.import_module(table.beyond), name)
    reason = why_left_out(f"{module}.{name}")
    if reason is not None:
        raise UnavailableNameError(describe_left_out(f"{module}.{name}", reason))
    raise UnknownPosedNameError(module, name)


def _rest_of(table: PosedModule) -> ModuleType | None:
    """The module that has the remaining names of *table*; ``None`` if there is none, or the installed Numba lacks
    it."""
    if table.rest is None:
        return None
    try:
        return importlib.import_module(table.rest)
    except ModuleNotFoundError as error:
        if f"{table.rest}.".startswith(f"{error.name}."):
            return None
        raise


def why_left_out(name: str) -> str | None:
    """Why *name*, a module of `numba.cuda` or a name in one, is left out; ``None`` if it is not."""
    from numba_hip_cuda.omitted_names import reason  # a long table that most programs never need

    return reason(name)


def describe_left_out(name: str, reason: str) -> str:
    """The message for *name*, a module or a name in one, which is missing for *reason*."""
    return f"{name} has no counterpart on HIP ({_role(name)}): {reason}"


def _places_of(name: str, root: str) -> list[str]:
    """The modules of *root* that do have *name*."""
    return [module for module, table in MODULES.items() if name in table.names and root_of(module) == root]


def _resolve(module: str, name: str, where: str) -> object:
    """The object at *where*, ``module:name``."""
    source, _, attribute = where.partition(":")
    if not attribute:
        return _module_beneath(module, name, source)
    try:
        return getattr(importlib.import_module(source), attribute)
    except AttributeError:
        raise UnavailableNameError(
            f"{module}.{name} would be {source}.{attribute}, which the installed numba-hip-core does not have "
            f"({_role(module)})"
        ) from None


def _module_beneath(module: str, name: str, source: str) -> object:
    """The posed module *source*. If it were imported after posing has ended, that would give Numba's module."""
    if not root_of(source):
        return importlib.import_module(source)
    if not any(_is_posed(root) for root in ROOTS):
        raise UnavailableNameError(
            f"{module}.{name} is a module, which is there only while {ORIGIN} poses as {root_of(module)}"
        )
    return importlib.import_module(source)


def _is_posed(root: str) -> bool:
    """Whether the module *root* was imported and is ours."""
    spec = getattr(sys.modules.get(root), "__spec__", None)
    return spec is not None and spec.origin == ORIGIN


def _role(module: str) -> str:
    """A note on what this package does for programs that import *module*."""
    return f"numba_hip_cuda poses as {root_of(module)}" if root_of(module) else f"{module} is that of numba-hip-core"


def root_of(module: str) -> str:
    """The name in `ROOTS` that *module* is or is below; an empty string if there is none."""
    for root in ROOTS:
        if module == root or module.startswith(root + "."):
            return root
    return ""


def available(module: str) -> list[str]:
    """The names of *module*, a key of `MODULES`, that are available with the installed packages."""
    table = table_of(module)
    present: dict[str, set[str]] = {}
    names = set()
    for name, where in table.names.items():
        source, _, attribute = where.partition(":")
        if not attribute:
            names.add(name)
            continue
        if source not in present:
            present[source] = set(dir(importlib.import_module(source)))
        if attribute in present[source]:
            names.add(name)
    if table.like is not None:
        names.update(name for name in available(table.like) if name not in table.absent)
    names.update(name for name in dir(_rest_of(table)) if not name.startswith("_") and name not in table.absent)
    return sorted(names)
