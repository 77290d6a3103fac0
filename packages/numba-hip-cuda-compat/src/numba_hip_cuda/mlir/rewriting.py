"""Rewrites the source of kernels that use ``cuda.experimental``, for each tuple of argument types.

The new function keeps the file, the lines, the globals, the defaults and the closure of the original.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any

from numba.core import types

from numba_hip.language import local
from numba_hip_cuda.mlir import experimental
from numba_hip_cuda.mlir.consteval import Constants, Folder
from numba_hip_cuda.mlir.experimental import ConstevalError
from numba_hip_cuda.mlir.local_arrays import LocalArrays

Types = tuple[types.Type, ...]
PyFunc = Callable[..., Any]

FACTORY = "__numba_hip_factory__"


@dataclass(frozen=True, eq=False)
class Rewriter:
    """The option ``rewrite`` of a kernel: the function to compile for given argument types, and its source."""

    options: Mapping[str, Any]
    """The result of ``current_target_options()``."""
    sources: dict[Types, str] = field(default_factory=dict)

    def __call__(self, function: PyFunc, args: Types) -> PyFunc:
        """*function* with all ``consteval`` evaluated for *args*; `ConstevalError` if that is not possible."""
        definition = _parse(function)
        parameters = dict(zip(inspect.signature(function, follow_wrapped=False).parameters, args, strict=False))
        known = {**function.__globals__, **_closure(function), **parameters}
        constants = Constants(known, self.options)
        folded = Folder(constants).visit(definition)
        assert isinstance(folded, ast.FunctionDef)
        local_arrays = LocalArrays()
        local_arrays.visit(folded)
        stored = dict(constants.stored)
        if local_arrays.count and not hasattr(known.get("cuda"), "local_array"):
            stored["cuda"] = _with_local_arrays()
        folded.body = folded.body or [ast.Pass()]
        ast.fix_missing_locations(folded)
        self.sources[args] = ast.unparse(folded)
        return _build(function, folded, stored)


def _with_local_arrays() -> ModuleType:
    """The name of ``cuda`` in the statements of `LocalArrays`, for kernels without such a name."""
    made = ModuleType("cuda")
    vars(made)["local_array"] = local.array
    return made


def needs_rewriting(function: PyFunc) -> bool:
    """Whether *function* uses a name of ``cuda.experimental`` that only a compiler can give a meaning."""
    if not isinstance(function, FunctionType):
        return False
    reachable = {**function.__globals__, **_closure(function)}
    names = {name for code in _codes(function.__code__) for name in (*code.co_names, *code.co_freevars)}
    values = [reachable[name] for name in names if name in reachable]
    return any(value is marker for value in values for marker in (*experimental.MARKERS, experimental)) or any(
        getattr(value, "__name__", "") == "numba_cuda_mlir.cuda.experimental" for value in values
    )


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _closure(function: PyFunc) -> dict[str, Any]:
    """The variables of enclosing functions that *function* uses, if they have values."""
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
    return found


def _parse(function: PyFunc) -> ast.FunctionDef:
    """The definition of *function* at its original lines; `ConstevalError` if its source cannot be read."""
    try:
        lines, first = inspect.getsourcelines(function)
        (definition,) = ast.parse(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, SyntaxError, ValueError) as error:
        raise ConstevalError(f"the source of {function.__qualname__} cannot be read: {error}") from None
    if not isinstance(definition, ast.FunctionDef):
        raise ConstevalError(f"{function.__qualname__} is not defined by a def statement of its own")
    definition.decorator_list = []
    definition.returns = None
    for argument in ast.walk(definition.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    ast.increment_lineno(definition, first - 1)
    return definition


def _build(function: PyFunc, definition: ast.FunctionDef, stored: Mapping[str, Any]) -> PyFunc:
    """The function for *definition*, with the globals and closure of *function* and the values *stored* by name."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    cells |= {name: CellType(value) for name, value in stored.items()}
    (factory,) = ast.parse(f"def {FACTORY}({', '.join(cells)}):\n    return {definition.name}").body
    assert isinstance(factory, ast.FunctionDef)
    factory.body.insert(0, definition)
    definition.args.defaults, definition.args.kw_defaults = [], []
    module = ast.fix_missing_locations(ast.Module(body=[factory], type_ignores=[]))
    compiled = compile(module, function.__code__.co_filename, "exec")
    code = next(one for one in _codes(compiled) if one.co_name == definition.name)
    closure = tuple(cells[name] for name in code.co_freevars)
    made = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__qualname__, made.__module__, made.__doc__ = function.__qualname__, function.__module__, function.__doc__
    return made


def target_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The result of ``current_target_options()`` for a kernel that was decorated with *given*."""
    return {"opt_level": 3, "fastmath": False, "debug": False, **given}
