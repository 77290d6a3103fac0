"""The modules that tests import in addition to `numba.cuda`: the tests themselves, and our stand-ins."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

from tools.cuda_suite.suites import Suite, chosen

HERE = Path(__file__).parent

SETTINGS = {"CUDA_ENABLE_NRT": 0, "CUDA_DEBUG_POLY": 0}
"""Settings that numba-cuda adds to Numba's, and that tests set and put back."""

CHILD = HERE / "child"
ROOT = HERE.parents[1]


class SuiteFinder(MetaPathFinder):
    """Finds the packages of tests below their folder, and our stand-ins."""

    def __init__(self, tests: Path, suite: Suite) -> None:
        self._served = {package: tests / folder for package, folder in suite.served}
        self._ours = suite.modules()
        self._packages = {name.rpartition(".")[0] for name in self._ours}

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in self._ours:
            search = [] if fullname in self._packages else None
            return spec_from_file_location(fullname, self._ours[fullname], submodule_search_locations=search)
        for package, folder in self._served.items():
            if fullname == package or fullname.startswith(package + "."):
                return _find_in(folder, fullname, fullname.removeprefix(package))
        return None


def _find_in(folder: Path, fullname: str, beneath: str) -> ModuleSpec | None:
    """The spec of *fullname*, which is *beneath* the package in *folder*."""
    place = folder.joinpath(*beneath.split("."))
    if place.is_dir():
        package = place / "__init__.py"
        if package.exists():
            return spec_from_file_location(fullname, package, submodule_search_locations=[str(place)])
        namespace = ModuleSpec(fullname, None, is_package=True)
        namespace.submodule_search_locations = [str(place)]
        return namespace
    file = place.with_suffix(".py")
    return spec_from_file_location(fullname, file) if file.exists() else None


def serve(tests: Path) -> None:
    """Pose, and serve the tests in the folder *tests*, also in child processes."""
    from numba.core import config

    from numba_hip_cuda import pose_as_cuda

    pose_as_cuda()
    sys.meta_path.insert(0, SuiteFinder(tests, chosen()))
    for name, value in SETTINGS.items():
        vars(config).setdefault(name, value)
    # Objects that tests pass to child processes are looked up there by the names that pytest gave their modules: in
    # served packages, or below the folder of the tests. Spawned processes inherit the path of this one.
    sys.path.append(str(tests))
    path = [str(CHILD), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep), str(tests)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, path)))
