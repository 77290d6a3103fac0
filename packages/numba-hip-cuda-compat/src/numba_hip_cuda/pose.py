"""Posing: while it lasts, importing `numba.cuda` or `numba_cuda_mlir` gives names that stand for those of `numba_hip`.

No module of Numba is changed. A finder is put before the others, and what it found is taken out of `sys.modules` when
the pose ends, as is the entry by which Numba's registry of targets takes ``"cuda"`` for ours. Objects are handed out
as they are, so that inside a kernel `cuda.grid` is `numba_hip.grid`.
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
from numba_hip_cuda import numba_target, settings
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
"""The module by which the distribution numba-cuda, at every start of Python, takes over the name `numba.cuda`."""


class PoseError(ImportError):
    """Posing is not possible, because somebody else has one of the names already."""


class PosedModuleNotFoundError(ModuleNotFoundError):
    """A module of `numba.cuda` that this package does not stand in for, or not with this `numba_hip`.

    Its ``name`` stays empty: Python would take the place of the message where a name is imported from a module.
    """


class PosedLoader(Loader):
    """Fills a module whose names are looked up in the table each time, so that it never holds anything stale."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__

        def get(attribute: str) -> object:
            if attribute == "__all__":  # for `from numba.cuda import *`
                return available(name)
            return look_up(name, attribute)

        module.__doc__ = f"Names of {name} that stand for those of numba_hip."
        # A plain module with functions in its dictionary (PEP 562), rather than a subclass: Numba takes it for the
        # module that it is, and it is pickled by name.
        vars(module).update(__getattr__=get, __dir__=lambda: [*vars(module), *available(name)])


class ForwardingLoader(Loader):
    """Hands out a module of `numba_hip`, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec  # the import system has just set that of the other name


class _PoseFinder(MetaPathFinder):
    """Answers for `numba.cuda`, `numba_cuda_mlir` and everything beneath them, and for nothing else."""

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
    """The names under which something of what is posed as was imported."""
    return [name for name in sys.modules if name.startswith(ROOTS) and root_of(name)]


def _import_forwarded(fullname: str) -> ModuleType | None:
    """The module that stands for *fullname*, by the key of `FORWARDED` that this is or is beneath; else ``None``."""
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
            return None  # one posed module stands for another: the message is to name what was asked for
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
    """Why there is no module *fullname*. Where a name was to be imported from a module, the name's reason."""
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
    """Whether `numba.cuda` is ours just now."""
    return _finder in sys.meta_path


def pose_as_cuda(*, children: bool = False) -> None:
    """Let `numba.cuda` stand for `numba_hip` from now on, in this process; to do it twice is to do it once.

    So does `numba_cuda_mlir`, the package that succeeds numba-cuda, whether it is installed or not.

    With *children*, also in the processes that it starts, by an entry in ``PYTHONPATH``. Waves of the CPU device have
    32 lanes from now on, as CUDA's warps do, unless ``NUMBA_HIP_CPU_WAVE_SIZE`` is set; kernels that were loaded
    before keep theirs. Settings of Numba CUDA's hold where there is a counterpart, see `numba_hip_cuda.settings`.
    ``target="cuda"`` in Numba's decorators means kernels of `numba_hip`.

    To be called before anything imports either. Raises `PoseError`, and changes nothing, if that has happened, or
    if the distribution numba-cuda is installed.
    """
    with _lock:
        if not is_posing():
            _check_name_is_free()
            sys.meta_path.insert(0, _finder)
            settings.begin()
            numba_target.begin()
        if children:
            child_processes.begin()


def stop_posing() -> None:
    """Give the name `numba.cuda` back, if it was ours. Modules that a program holds by then go on working."""
    with _lock:
        if not is_posing():
            return
        sys.meta_path.remove(_finder)
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
    """Pose within a ``with`` block, which gets the module that `numba.cuda` then is; afterwards all is as before."""
    already = is_posing()
    pose_as_cuda(children=children)
    try:
        yield importlib.import_module(CUDA)
    finally:
        if not already:
            stop_posing()


def _check_name_is_free() -> None:
    """Raise `PoseError` if `numba.cuda` is somebody else's, naming the file that is in the way."""
    for name in sorted(_posed_modules()):
        file = getattr(sys.modules[name], "__file__", None) or "an unknown place"
        raise PoseError(
            f"{name} was imported from {file} before numba_hip_cuda could pose as it; call pose_as_cuda() before the "
            f"first import of {root_of(name)}, or start the program with `python -m numba_hip_cuda`",
            name=root_of(name),
        )
    redirector = sys.modules.get(REDIRECTOR)
    if redirector is not None:
        raise PoseError(
            f"the distribution numba-cuda is installed and redirects {CUDA} ({redirector.__file__}); "
            "`pip uninstall numba-cuda`, or use an environment without it, to let numba_hip_cuda pose as it",
            name=CUDA,
        )
