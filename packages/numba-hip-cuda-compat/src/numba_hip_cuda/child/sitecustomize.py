"""Makes a child process pose when it first imports `numba.cuda` or `numba_cuda_mlir`.

See `numba_hip_cuda.child_processes`."""

from __future__ import annotations

import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, PathFinder


class _PoseWhenAsked:
    """Finds either module by posing first, which replaces this finder by that of the pose."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        if not f"{fullname}.".startswith(("numba.cuda.", "numba_cuda_mlir.")):
            return None
        sys.meta_path.remove(self)
        from numba_hip_cuda import pose_as_cuda

        pose_as_cuda(children=True)
        return importlib.util.find_spec(fullname)


def _run_the_next() -> None:
    """Run the ``sitecustomize`` that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [entry for entry in sys.path if os.path.abspath(entry) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


sys.meta_path.insert(0, _PoseWhenAsked())
_run_the_next()
