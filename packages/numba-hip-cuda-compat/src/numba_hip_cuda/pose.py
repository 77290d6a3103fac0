"""Posing: imports of `numba.cuda`, `numba_cuda` and `numba_cuda_mlir` give names that stand for those of `numba_hip`.

No module of Numba is changed. A finder is put before the others. When the pose ends, the modules that it found are
removed from `sys.modules`, and so is the entry in Numba's registry of targets that makes ``"cuda"`` ours. Objects are
used as they are: inside a kernel, `cuda.grid` is `numba_hip.grid`.
"""

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import numba

from numba_hip_cuda import child_processes as child_processes
from numba_hip_cuda import compute_names, numba_target, settings
from numba_hip_cuda.catalog import CUDA
from numba_hip_cuda.name_lookup import (
    FORWARDED,
    MODULES,
    ORIGIN,
    ROOTS,
    available,
    describe_left_out,
    look_up,
    root_of,
    why_left_out,
)

REDIRECTOR = "_numba_cuda_redirector"
"""The module by which the distribution numba-cuda takes over the name `numba.cuda` whenever Python starts."""


class PoseError(ImportError):
    """Posing is not possible because another package has one of the names."""


class PosedModuleNotFoundError(ModuleNotFoundError):
    """A module of `numba.cuda` that this package does not provide, or not with the installed `numba_hip`.

    Its ``name`` stays empty: if it is set and a name is imported from the module, Python replaces the message.
    """


class PosedLoader(Loader):
    """Loads a module whose names are looked up in the table at each use, so that it never holds outdated objects."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__

        def get(attribute: str) -> object:
            if attribute == "__all__":  # for `from numba.cuda import *`
                return available(name)
            return look_up(name, attribute)

        module.__doc__ = f"Names of {name} that stand for those of numba_hip."
        # A plain module with functions in its dictionary (PEP 562) rather than a subclass: Numba treats it as a module,
        # and it is pickled by name.
        vars(module).update(__getattr__=get, __dir__=lambda: [*vars(module), *available(name)])


class ForwardingLoader(Loader):
    """Returns a module of `numba_hip` unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just set the spec of the other name


class _PoseFinder(MetaPathFinder):
    """Finds the modules of `ROOTS` and everything below them, and nothing else."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not root_of(fullname):
            return None
        if fullname in MODULES:
            return ModuleSpec(fullname, PosedLoader(), origin=ORIGIN, is_package=True)
        module = _import_forwarded(fullname)
        if module is None:
            raise PosedModuleNotFoundError(_describe_missing(fullname))
        spec = ModuleSpec(fullname, ForwardingLoader(module), origin=ORIGIN)
        spec.submodule_search_locations = getattr(module, "__path__", None)
        return spec


def _posed_modules() -> list[str]:
    """The names under which parts of the posed packages were imported."""
    return [name for name in sys.modules if name.startswith(ROOTS) and root_of(name)]


def _import_forwarded(fullname: str) -> ModuleType | None:
    """The module that stands for *fullname*, by the key of `FORWARDED` that it is or is below; otherwise ``None``."""
    known, beneath = fullname, ""
    while known not in FORWARDED:
        known, _, last = known.rpartition(".")
        beneath = f".{last}{beneath}"
        if known in ROOTS or not known:
            return None
    source = FORWARDED[known] + beneath
    try:
        return importlib.import_module(source)
    except PosedModuleNotFoundError:
        if root_of(source):
            return None  # one posed module stands for another: the message names the one that was asked for
        raise
    except ModuleNotFoundError as error:
        if error.name != source:
            raise
        owner = "numba-hip-core" if source.startswith("numba_hip") else "Numba"
        raise PosedModuleNotFoundError(
            f"{fullname} would be {source}, which the installed {owner} does not have "
            f"(numba_hip_cuda poses as {root_of(fullname)})"
        ) from None


def _describe_missing(fullname: str) -> str:
    """Why there is no module *fullname*. If a name was to be imported from a module, the reason for that name."""
    reason = why_left_out(fullname)
    if reason is not None:
        return describe_left_out(fullname, reason)
    parent, _, name = fullname.rpartition(".")
    while parent not in MODULES and parent not in ROOTS:
        parent, _, name = parent.rpartition(".")
    try:
        look_up(parent, name)
    except AttributeError as error:
        return str(error)
    from numba_hip.suggestions import hint

    known = [*MODULES, *FORWARDED]
    beginning = parent + "."
    siblings = [module.removeprefix(beginning) for module in known if module.startswith(beginning)]
    return f"No module named {fullname!r}{hint(name, siblings)} (numba_hip_cuda poses as {root_of(fullname)})"


_lock = threading.RLock()
_finder = _PoseFinder()


def is_posing() -> bool:
    """Whether `numba.cuda` is ours at the moment."""
    return _finder in sys.meta_path


def pose_as_cuda(*, children: bool = False) -> None:
    """Let `numba.cuda` stand for `numba_hip` from now on in this process. Calling it again has no effect.

    The same holds for `numba_cuda`, the package that has numba-cuda's copy of it, and for `numba_cuda_mlir`, the
    successor of numba-cuda, whether it is installed or not.

    With *children*, processes that it starts pose, too, by an entry in ``PYTHONPATH``. From now on, waves of the CPU
    device have 32 lanes, as CUDA's warps do, unless ``NUMBA_HIP_CPU_WAVE_SIZE`` is set; kernels that are already loaded
    keep their wave size. Settings of Numba CUDA apply if they have a counterpart, see `numba_hip_cuda.settings`.
    ``target="cuda"`` in Numba's decorators means kernels of `numba_hip`.

    To be called before either package is imported. If one was, or if the distribution numba-cuda is installed, this
    raises `PoseError` and changes nothing.
    """
    with _lock:
        if not is_posing():
            _check_name_is_free()
            compute_names.begin()
            sys.meta_path.insert(0, _finder)
            settings.begin()
            numba_target.begin()
        if children:
            child_processes.begin()


def stop_posing() -> None:
    """Give the name `numba.cuda` back if it was ours. Modules that a program already holds keep working."""
    with _lock:
        if not is_posing():
            return
        sys.meta_path.remove(_finder)
        compute_names.end()
        settings.end()
        numba_target.end()
        child_processes.end()
        posed = sys.modules.get(CUDA)
        for name in _posed_modules():
            del sys.modules[name]
        if posed is not None and vars(numba).get("cuda") is posed:
            del numba.cuda


@contextmanager
def posing(*, children: bool = False) -> Iterator[ModuleType]:
    """Pose within a ``with`` block, whose target is the posed module. Afterwards everything is as before."""
    already = is_posing()
    pose_as_cuda(children=children)
    try:
        yield importlib.import_module(CUDA)
    finally:
        if not already:
            stop_posing()


def _check_name_is_free() -> None:
    """Raise `PoseError` if another package has the name `numba.cuda`, with its file."""
    for name in sorted(_posed_modules()):
        file = getattr(sys.modules[name], "__file__", None) or "an unknown place"
        raise PoseError(
            f"{name} was imported from {file} before numba_hip_cuda could pose as it; call pose_as_cuda() before the "
            f"first import of {root_of(name)}, or start the program with `python -m numba_hip_cuda`",
            name=root_of(name),
        )
    imported = compute_names.taken()
    if imported is not None:
        file = getattr(sys.modules[imported], "__file__", None) or "an unknown place"
        raise PoseError(
            f"{imported} was imported from {file} before numba_hip_cuda could pose as it; call pose_as_cuda() before "
            "the first import of cuda.compute, or start the program with `python -m numba_hip_cuda`",
            name=imported,
        )
    redirector = sys.modules.get(REDIRECTOR)
    if redirector is not None:
        raise PoseError(
            f"the distribution numba-cuda is installed and redirects {CUDA} ({redirector.__file__}); "
            "`pip uninstall numba-cuda`, or use an environment without it, to let numba_hip_cuda pose as it",
            name=CUDA,
        )
