"""The name ``numba.hip``: the very same modules as ``numba_hip``, under a second name.

Numba's package does not know of ours, so there are two ways in. The file ``numba/hip/__init__.py``, which our wheel
installs beside Numba's own files, answers an ``import numba.hip`` that comes first. Importing `numba_hip` in any way
calls `install`, which answers for everything beneath ``numba.hip`` from then on, wherever Numba is installed.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from types import ModuleType

import numba

from numba_hip.installed import distribution

ALIAS = "numba.hip"
TARGET = "numba_hip"
RIVAL = "numba-hip"
"""A distribution that installs a package of its own as ``numba/hip``, over the file of ours."""


class AliasConflictError(ImportError):
    """Another distribution that installs ``numba.hip`` stands beside this one, and their files are mixed."""


class _AliasLoader(Loader):
    """Hands out a module that is there already, and leaves it as it was."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just given the module the spec of the alias. With it `importlib.reload` would ask the
        # finder of the alias instead of reading the source again.
        module.__spec__ = self._spec


class _AliasFinder(MetaPathFinder):
    """Finds ``numba.hip`` and what is beneath it, by importing what the real name stands for."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != ALIAS and not fullname.startswith(ALIAS + "."):
            return None
        name = TARGET + fullname.removeprefix(ALIAS)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            raise ModuleNotFoundError(f"No module named {fullname!r} ({error})", name=fullname) from None
        spec = ModuleSpec(fullname, _AliasLoader(module), origin=getattr(module, "__file__", None))
        spec.submodule_search_locations = getattr(module, "__path__", None)
        return spec


def check_no_rival() -> None:
    """Raise `AliasConflictError` if a distribution whose files mix with ours is installed too."""
    try:
        rival = distribution(RIVAL)
    except PackageNotFoundError:
        return
    raise AliasConflictError(
        f"the distribution {RIVAL} {rival.version} is installed in {rival.locate_file('')}, and numba-hip-core too; "
        f"both install numba/hip. Keep one of them: for this one, run `pip uninstall {RIVAL}` and then "
        "`pip install --force-reinstall --no-deps numba-hip-core`",
        name=ALIAS,
    )


def install() -> None:
    """Make ``numba.hip`` another name of `numba_hip`, in imports and as an attribute of `numba`.

    To be called as the last thing that importing `numba_hip` does, so that a failed import leaves no alias behind;
    calling it again changes nothing. Raises `AliasConflictError` as `check_no_rival` does.
    """
    check_no_rival()
    module = sys.modules[TARGET]
    sys.modules[ALIAS] = module
    numba.hip = module
    if not any(_is_ours(finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())


def _is_ours(finder: object) -> bool:
    """Whether *finder* is one of `_AliasFinder`, be it of an earlier import of this module."""
    kind = type(finder)
    return (kind.__module__, kind.__qualname__) == (_AliasFinder.__module__, _AliasFinder.__qualname__)
