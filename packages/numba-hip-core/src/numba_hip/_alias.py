"""The name ``numba.hip``: the very same modules as ``numba_hip``, under a second name.

Numba's package does not know ours, so there are two ways in. The file ``numba/hip/__init__.py``, which our wheel
installs next to Numba's own files, answers an ``import numba.hip`` that comes first. Every import of `numba_hip` calls
`install`, which from then on answers for everything below ``numba.hip``, wherever Numba is installed. Packages above
this one can provide names and modules that it lacks, by entry points of the group `NAMESPACES`.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from types import ModuleType
from typing import Any

import numba

from numba_hip.installed_packages import distribution, entry_points

ALIAS = "numba.hip"
TARGET = "numba_hip"
RIVAL = "numba-hip"
"""A distribution that installs a package of its own as ``numba/hip``, over the file of ours."""

MARK = b"another name of `numba_hip`"
"""Words of our own ``numba/hip/__init__.py`` and of the stub beside it."""

MOST_NAMED = 4

NAMESPACES = "numba_hip.namespaces"
"""Group of entry points of modules with ``look_up(name)`` for names of `numba.hip` (a `LookupError` for one that it
does not know, an `AttributeError` for one that cannot be had), ``names()``, which lists these, and
``find_spec(fullname)`` for modules beneath it."""


def namespaces() -> Iterator[Any]:
    """The namespaces that provide names and modules which `numba_hip` lacks."""
    for entry_point in entry_points(NAMESPACES):
        yield entry_point.load()


class AliasConflictError(ImportError):
    """Another distribution that installs ``numba.hip`` is installed too, and the files of the two are mixed."""


class _AliasLoader(Loader):
    """Returns a module that is already loaded, unchanged."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return self._module

    def get_code(self, fullname: str) -> Any:
        """The code of the module, for ``python -m``."""
        loader: Any = None if self._spec is None else self._spec.loader
        return loader.get_code(self._module.__name__)

    def exec_module(self, module: ModuleType) -> None:
        # The import system has just set the module's spec to that of the alias. With that spec, `importlib.reload`
        # would ask the finder of the alias instead of reading the source again.
        module.__spec__ = self._spec


class _AliasFinder(MetaPathFinder):
    """Finds ``numba.hip`` and its submodules by importing the module of the real name."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != ALIAS and not fullname.startswith(ALIAS + "."):
            return None
        name = TARGET + fullname.removeprefix(ALIAS)
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):  # a module that it imports is missing
                raise
            for namespace in namespaces():
                found: ModuleSpec | None = namespace.find_spec(fullname)
                if found is not None:
                    return found
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


def check_no_strangers() -> None:
    """Raise `AliasConflictError` if ``numba/hip``, next to Numba, contains other files than ours: two packages were
    installed over each other, and the one that was uninstalled left files behind."""
    for folder in (Path(entry) / "hip" for entry in numba.__path__):
        strangers = sorted(_strangers(folder))
        if strangers:
            raise AliasConflictError(
                f"{folder} holds {_enumerate(strangers)}, which are not of numba-hip-core: they are left of the "
                f"distribution {RIVAL}, or its file took the place of ours. Delete {folder}, and run "
                "`pip install --force-reinstall --no-deps numba-hip-core`",
                name=ALIAS,
            )


def _strangers(folder: Path) -> Iterator[str]:
    """The names of files in *folder* that we did not install."""
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if path.name in ("__init__.py", "__init__.pyi"):
            if MARK not in path.read_bytes():
                yield path.name
        elif path.name != "__pycache__":
            yield path.name


def _enumerate(names: Sequence[str]) -> str:
    """The first few of *names* as text."""
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else shown


def install() -> None:
    """Make ``numba.hip`` another name of `numba_hip`, in imports and as an attribute of `numba`.

    Importing `numba_hip` calls this last, so that a failed import leaves no alias behind; calling it again changes
    nothing. Raises `AliasConflictError` as `check_no_rival` and `check_no_strangers` do.
    """
    check_no_rival()
    check_no_strangers()
    module = sys.modules[TARGET]
    sys.modules[ALIAS] = module
    numba.hip = module
    if not any(_is_ours(finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _AliasFinder())


def _is_ours(finder: object) -> bool:
    """Whether *finder* is an `_AliasFinder`, possibly from an earlier import of this module."""
    kind = type(finder)
    return (kind.__module__, kind.__qualname__) == (_AliasFinder.__module__, _AliasFinder.__qualname__)
