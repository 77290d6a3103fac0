"""The modules that the tests import besides `numba.cuda` itself: the tests as they are, and what we put beside them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_file_location
from pathlib import Path
from types import ModuleType

TESTS = "numba.cuda.tests"
HERE = Path(__file__).parent
OURS = {
    "numba.cuda.testing": HERE / "testing.py",
    "numba.cuda.memory_management": HERE / "memory.py",
    "numba.cuda.memory_management.nrt": HERE / "memory.py",
    "numba.cuda.launchconfig": HERE / "absent.py",
    "numba.cuda.cudadrv.nvrtc": HERE / "absent.py",
    "numba.cuda.core.callconv": HERE / "callconv.py",
    "numba.cuda.libdevicefuncs": HERE / "libdevice_table.py",
    "cuda": HERE / "bindings.py",
    "cuda.core": HERE / "bindings.py",
    "cuda.core._utils": HERE / "bindings.py",
    "cuda.core._utils.cuda_utils": HERE / "bindings.py",
}
"""Modules of numba-cuda that serve its tests alone or that it depends on, and the files here that stand for them."""

SETTINGS = {"CUDA_ENABLE_NRT": 0, "CUDA_DEBUG_POLY": 0}
"""Settings that numba-cuda adds to Numba's, and that tests set and put back."""

CHILD = HERE / "child"
ROOT = HERE.parents[1]

PACKAGES = {name.rpartition(".")[0] for name in OURS}


class SuiteFinder(MetaPathFinder):
    """Finds ``numba.cuda.tests`` in a folder, and `OURS`."""

    def __init__(self, tests: Path) -> None:
        self._tests = tests

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname in OURS:
            search = [] if fullname in PACKAGES else None
            return spec_from_file_location(fullname, OURS[fullname], submodule_search_locations=search)
        if fullname != TESTS and not fullname.startswith(TESTS + "."):
            return None
        place = self._tests.joinpath(*fullname.removeprefix(TESTS).split("."))
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
    """Pose as `numba.cuda`, and serve the tests in the folder *tests* beneath it; in child processes, too."""
    from numba.core import config

    from numba_hip_cuda import pose_as_cuda

    pose_as_cuda()
    sys.meta_path.insert(0, SuiteFinder(tests))
    for name, value in SETTINGS.items():
        vars(config).setdefault(name, value)
    path = [str(CHILD), str(ROOT), *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(filter(None, path)))
