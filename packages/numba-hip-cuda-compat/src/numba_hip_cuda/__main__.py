"""``python -m numba_hip_cuda script.py arguments``: run a program written for `numba.cuda` unchanged."""

from __future__ import annotations

import importlib.util
import io
import os
import runpy
import sys
from importlib.abc import InspectLoader
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType

from numba_hip_cuda.pose import PoseError, pose_as_cuda

USAGE = """\
usage: python -m numba_hip_cuda SCRIPT [ARGUMENT ...]
       python -m numba_hip_cuda -m MODULE [ARGUMENT ...]
       python -m numba_hip_cuda -c CODE [ARGUMENT ...]

Runs SCRIPT (or - for what is read from the standard input), MODULE or CODE as Python would, with numba.cuda standing
for numba.hip, in the processes that it starts, too."""


def run(arguments: list[str]) -> None:
    """Run the program that *arguments* name as ``__main__``, with the arguments that follow it.

    Processes that the program starts pose, too: its workers run the same code.

    Raises `SystemExit` with a message if that is not possible. Exceptions of the program pass through.
    """
    if not arguments or arguments[0] in ("-h", "--help"):
        print(USAGE)
        raise SystemExit(0 if arguments else 2)
    option = arguments[0] if arguments[0] in ("-m", "-c") else ""
    program = arguments[1:] if option else arguments
    is_path = not option and program[0] != "-"
    if not program or (option != "-c" and program[0].startswith("-") and program[0] != "-"):
        sys.exit(
            f"numba_hip_cuda: expected a script, -m and a module, or -c and code, got {' '.join(arguments)}\n{USAGE}"
        )
    if is_path and not os.path.exists(program[0]):
        sys.exit(f"numba_hip_cuda: there is no file {program[0]!r}")
    try:
        pose_as_cuda(children=True)
    except PoseError as error:
        sys.exit(f"numba_hip_cuda: {error}")
    sys.argv = program if option != "-c" else ["-c", *program[1:]]
    if option == "-m":
        _run_module(program[0])
        return
    if not getattr(sys.flags, "safe_path", False):
        # `python -m` put the current folder there; `python script.py` would have put the script's folder.
        sys.path[0] = os.path.dirname(os.path.abspath(program[0])) if is_path else ""
    if is_path:
        _run_path(program[0])
    else:
        text, name = (program[0], "<string>") if option else (sys.stdin.read(), "<stdin>")
        _run_as_main(compile(text, name, "exec"))


def _run_path(path: str) -> None:
    if not os.path.isfile(path) or path.endswith((".zip", ".pyz", ".pyc")):
        runpy.run_path(path, run_name="__main__")
        return
    whole = os.path.abspath(path)
    with io.open_code(whole) as file:
        code = compile(file.read(), whole, "exec")
    _run_as_main(code, whole)


def _run_module(name: str) -> None:
    if not _exists(name):
        sys.exit(f"numba_hip_cuda: there is no module {name!r}")
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = importlib.util.find_spec(f"{name}.__main__")
    loader = spec.loader if spec is not None else None
    code = loader.get_code(spec.name) if spec is not None and isinstance(loader, InspectLoader) else None
    if spec is None or code is None or spec.origin is None:
        runpy.run_module(name, run_name="__main__", alter_sys=True)  # which says why not
        return
    sys.argv[0] = spec.origin
    _run_as_main(code, spec.origin, spec)


def _run_as_main(code: CodeType, path: str | None = None, spec: ModuleSpec | None = None) -> None:
    """Run *code* in a module ``__main__`` that stays: threads, and what runs at the exit, look names up in it."""
    main = ModuleType("__main__")
    main.__spec__ = spec
    main.__package__ = spec.parent if spec is not None else None
    if spec is not None:
        main.__loader__ = spec.loader
    if path is not None:
        main.__file__ = path
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


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
