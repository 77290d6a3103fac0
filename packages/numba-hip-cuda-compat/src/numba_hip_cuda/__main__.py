"""``python -m numba_hip_cuda script.py arguments``: run a program written for `numba.cuda` unchanged."""

from __future__ import annotations

import importlib.util
import os
import runpy
import sys

from numba_hip_cuda.pose import PoseError, pose_as_cuda

USAGE = """\
usage: python -m numba_hip_cuda SCRIPT [ARGUMENT ...]
       python -m numba_hip_cuda -m MODULE [ARGUMENT ...]

Runs SCRIPT or MODULE as Python would, with numba.cuda standing for numba.hip, in the processes that it starts, too."""


def run(arguments: list[str]) -> None:
    """Run the program that *arguments* name as ``__main__``, with the arguments that follow it.

    Processes that the program starts pose, too: its workers run the same code.

    Raises `SystemExit` with a message if that is not possible. Exceptions of the program pass through.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        raise SystemExit(0 if arguments else 2)
    is_module = arguments[0] == "-m"
    program = arguments[1:] if is_module else arguments
    if not program or program[0].startswith("-"):
        sys.exit(f"numba_hip_cuda: expected a script or -m and a module, got {' '.join(arguments)}\n{USAGE}")
    if not is_module and not os.path.exists(program[0]):
        sys.exit(f"numba_hip_cuda: there is no file {program[0]!r}")
    try:
        pose_as_cuda(children=True)
    except PoseError as error:
        sys.exit(f"numba_hip_cuda: {error}")
    sys.argv = program
    if is_module:
        if not _exists(program[0]):
            sys.exit(f"numba_hip_cuda: there is no module {program[0]!r}")
        runpy.run_module(program[0], run_name="__main__", alter_sys=True)
        return
    if not getattr(sys.flags, "safe_path", False):
        # `python -m` put the current folder there; `python script.py` would have put the script's folder.
        sys.path[0] = os.path.dirname(os.path.abspath(program[0]))
    runpy.run_path(program[0], run_name="__main__")


def _exists(module: str) -> bool:
    """Whether there is *module*. Errors of its package, which is imported to find it, pass through."""
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError as error:
        if error.name is not None and f"{module}.".startswith(f"{error.name}."):
            return False
        raise


if __name__ == "__main__":
    run(sys.argv[1:])
