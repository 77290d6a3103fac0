"""Python in a kernel on which a pass of Numba's fails with an error of its own making, without a line or a word to the
user."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numba

from hip_runtime.said_names import our


class Crash(NamedTuple):
    """An error of type *kind* whose text contains *words*, raised in *file* of Numba's compiler; what is said instead,
    at the first node that is *wanted*."""

    kind: type[Exception]
    words: str
    file: str
    said: str
    wanted: Callable[[ast.AST], bool]


def _refers_to_itself(node: ast.AST) -> bool:
    """Whether *node* defines a function that calls itself, or a comprehension that assigns."""
    if isinstance(node, ast.FunctionDef):
        return any(isinstance(part, ast.Name) and part.id == node.name for part in ast.walk(node))
    kinds = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    return isinstance(node, kinds) and any(isinstance(part, ast.NamedExpr) for part in ast.walk(node))


def crashes() -> tuple[Crash, ...]:
    """All that is known."""
    return (
        Crash(
            NotImplementedError, "Unsupported use of cell variable", "interpreter.py",
            "a function inside a kernel cannot call itself, nor use a variable that gets its first value after it, and "
            f"a comprehension cannot assign with ':=': write the function outside, with @{our('jit')}(device=True), or "
            "behind that value, and a loop instead",
            _refers_to_itself,
        ),
        Crash(
            ValueError, "Multiple argument raise", "byteflow.py",
            "a kernel raises an exception without a cause: leave out 'from ...'",
            lambda node: isinstance(node, ast.Raise) and node.cause is not None,
        ),
        Crash(
            AttributeError, "has no attribute 'func'", "untyped_passes.py",
            "a kernel raises exceptions that are made where they are raised: raise ValueError(...), not a variable",
            lambda node: isinstance(node, ast.Raise) and isinstance(node.exc, ast.Name),
        ),
    )  # fmt: skip


def crash_of(error: Exception) -> Crash | None:
    """What *error* is a sign of; None where it is another one."""
    trace, folder = error.__traceback__, Path(numba.__file__).parent / "core"
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None:
        return None
    file = Path(trace.tb_frame.f_code.co_filename)
    if file.parent != folder:
        return None
    alike = (one for one in crashes() if type(error) is one.kind and one.file == file.name)
    return next((one for one in alike if one.words in str(error)), None)
