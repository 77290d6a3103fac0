"""The names `cuda.compute` and `cuda.coop` while posing, which NVIDIA's package cuda-cccl has.

`cuda` is a package that others share: what they have in it is left alone.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

PARENT = "cuda"
COMPUTE = "cuda.compute"
OLDER = "cuda.cccl.parallel.experimental"
ORIGIN = "numba_hip_cuda"

PACKAGES = (PARENT, "cuda.cccl", "cuda.cccl.parallel")
"""Packages that are made if nobody has them, for the modules in them."""

NO_BLOCKS = "it has the primitives of NVIDIA's blocks and warps; numba.hip.block and numba.hip.wave have ours"

ABSENT = {
    "cuda.coop": NO_BLOCKS,
    "cuda.cccl.cooperative": NO_BLOCKS,
    "cuda.cooperative": NO_BLOCKS,
    "cuda.parallel": "it is an older name of cuda.compute, whose functions have other arguments",
}


class ComputeModuleNotFoundError(ModuleNotFoundError):
    """A module of NVIDIA's that has no counterpart, with what to use instead."""


class _EmptyLoader(Loader):
    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__doc__ = "A package for what numba_hip_cuda poses as."


class _ForwardingLoader(Loader):
    """Returns a module of this package unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self._module, self._spec = module, module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just set that of the other name


class ComputeFinder(MetaPathFinder):
    """Finds `cuda.compute`, what is beneath it, and the packages above it if nobody else has them."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in PACKAGES:
            if _is_found_by_others(fullname, path):
                return None
            return ModuleSpec(fullname, _EmptyLoader(), origin=ORIGIN, is_package=True)
        for name, reason in ABSENT.items():
            if _is_within(fullname, name):
                raise ComputeModuleNotFoundError(f"{fullname} has no counterpart on HIP: {reason}")
        for name in (COMPUTE, OLDER):
            if _is_within(fullname, name):
                return _forward(fullname, "numba_hip_cuda.compute" + fullname.removeprefix(name))
        return None


class LastFinder(MetaPathFinder):
    """Comes behind all others: what nobody has and is NVIDIA's is an error that says what to use instead."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.startswith(f"{PARENT}."):
            from numba_hip_cuda.nvidia_packages import refuse  # a table that most programs never need

            refuse(fullname)
        return None


def _is_found_by_others(fullname: str, path: Sequence[str] | None) -> bool:
    """Whether the module can be imported without us: packages that are being edited have finders of their own."""
    others = (finder for finder in sys.meta_path if finder not in (_finder, _last) and hasattr(finder, "find_spec"))
    return any(finder.find_spec(fullname, path) is not None for finder in others)


def _forward(fullname: str, source: str) -> ModuleSpec:
    try:
        module = importlib.import_module(source)
    except ModuleNotFoundError as error:
        if error.name != source:
            raise
        raise ComputeModuleNotFoundError(
            f"{fullname} is not there: numba_hip_cuda poses as cuda.compute, with algorithms, iterators, op, struct "
            "and determinism beneath"
        ) from None
    spec = ModuleSpec(fullname, _ForwardingLoader(module), origin=ORIGIN)
    spec.submodule_search_locations = getattr(module, "__path__", None)
    return spec


def _is_within(fullname: str, name: str) -> bool:
    return fullname == name or fullname.startswith(name + ".")


def taken() -> str | None:
    """The name of a module of NVIDIA's `cuda.compute` that was imported already; None if there is none."""
    return next((name for name in sys.modules if name.startswith(COMPUTE) and _is_within(name, COMPUTE)), None)


_finder = ComputeFinder()
_last = LastFinder()


def begin() -> None:
    """Find the modules from now on."""
    sys.meta_path.insert(0, _finder)
    sys.meta_path.append(_last)


def end() -> None:
    """Find them no longer, and forget those that were imported. What a program holds keeps working."""
    sys.meta_path.remove(_finder)
    sys.meta_path.remove(_last)
    for name in [name for name in sys.modules if name.startswith(PARENT) and _is_within(name, PARENT)]:
        module = sys.modules[name]
        forwarded = any(_is_within(name, ours) for ours in (COMPUTE, OLDER))
        if not forwarded and getattr(module.__spec__, "origin", None) != ORIGIN:
            continue
        del sys.modules[name]
        parent, _, last = name.rpartition(".")
        if not forwarded or name in (COMPUTE, OLDER):
            vars(sys.modules.get(parent, module)).pop(last, None)
