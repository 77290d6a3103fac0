"""``python -m tools.editor_stub``: write the stub of ``numba.hip`` for editors and type checkers.

Functions of the kernel language are objects that are created when the package is imported, which editors cannot
analyse. The stub beside ``numba/hip/__init__.py`` declares them with their parameters and docstrings, and imports all
other names from where they are defined. A test compares it with the output of this tool.
"""

from __future__ import annotations

import inspect
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numba_hip
from numba_hip.language.stub import Stub
from numba_hip.language.thread_index import AXES, Dim3
from numba_hip.language.vector_types import VectorStub
from numba_hip.language.warp import ModuleQuery

STUB = Path(__file__).parents[1] / "packages/numba-hip-core/src/numba/hip/__init__.pyi"

MODULES = ("algorithms", "bf16", "block", "config", "errors", "extending", "libdevice", "random", "wave")
"""Modules that editors can read themselves."""

HEAD = '''\
"""Numba for AMD GPUs: write GPU kernels in Python. ``numba.hip`` is another name of `numba_hip`.

Written by ``python -m tools.editor_stub``, for editors and type checkers.
"""

from typing import Any, Literal, overload

'''

TAIL = '''
def __getattr__(name: str) -> Any:
    """HIP's own functions, such as ``hip.sinf``, are found when they are asked for."""
'''

INTEGERS = (
    "activemask", "all", "all_sync", "any", "any_sync", "ballot", "ballot_sync", "brev", "byte_perm", "clock64", "clz",
    "eq_sync", "ffs", "lanemask_eq", "lanemask_ge", "lanemask_gt", "lanemask_le", "lanemask_lt", "match_any_sync",
    "mbcnt", "popc", "syncthreads_and", "syncthreads_count", "syncthreads_or", "wall_clock64",
)  # fmt: skip
NOTHING = (
    "matrix.fill", "matrix.load", "matrix.mma", "matrix.store",
    "nanosleep", "stcg", "stcs", "stwb", "stwt", "syncthreads", "syncwarp", "threadfence", "threadfence_block",
    "threadfence_system", "vector.store",
)  # fmt: skip
RESULTS = dict.fromkeys(INTEGERS, "int") | dict.fromkeys(NOTHING, "None") | {"matrix.position": "tuple[int, int]"}
"""Result types that do not depend on the argument types."""

INDEXED = {1: "int", 2: "tuple[int, int]", 3: "tuple[int, int, int]"}
"""The result type of `grid` and `gridsize` for a number of axes."""


def stub() -> str:
    """The text of the stub."""
    values = {name: getattr(numba_hip, name) for name in dir(numba_hip) if not name.startswith("_")}
    imports, declared = [], []
    for name, value in values.items():
        if name in MODULES:
            imports.append(_import_module(value, name))
        elif isinstance(value, ModuleType):
            declared.append("\n".join(_namespace(name, value)))
        elif isinstance(value, Stub):
            declared.append("\n".join(_stub(name, value)))
        else:
            imports.append(f"from {_home(value, name)} import {_own_name(value, name)} as {name}\n")
    return HEAD + "".join(sorted(imports)) + "\n" + "\n".join(declared) + "\n" + TAIL


def _import_module(module: ModuleType, name: str) -> str:
    package, _, own = module.__name__.rpartition(".")
    return f"from {package} import {own} as {name}\n"


def _home(value: Any, name: str) -> str:
    """The module that defines *value*, from which it is imported."""
    module = getattr(value, "__module__", None) or ""
    if hasattr(sys.modules.get(module), _own_name(value, name)):
        return str(module)
    found = [other for other, known in sorted(sys.modules.items())
             if other.startswith("numba_hip.") and known.__dict__.get(name) is value]  # fmt: skip
    return found[0]


def _own_name(value: Any, name: str) -> str:
    return value.__name__ if isinstance(value, type) else name


def _docstring(meaning: str | None, indent: str) -> list[str]:
    return textwrap.indent(f'"""{inspect.cleandoc(meaning or "")}"""', indent).splitlines()


def _stub(name: str, value: Stub) -> Iterator[str]:
    if isinstance(value, Dim3):
        yield from [f"class _{name}:", *_docstring(value.__doc__, "    ")]
        yield from [f"    {axis}: int" for axis in AXES]
        yield from [f"{name}: _{name}", *_docstring(value.__doc__, "")]
    elif isinstance(value, ModuleQuery):
        yield from [f"{name}: int", *_docstring(value.__doc__, "")]
    elif isinstance(value, VectorStub) and name != value.name:
        yield f"{name} = {value.name}"
    elif isinstance(value, VectorStub):
        yield from [f"class {name}:", *_docstring(value.__doc__, "    ")]
        yield "    def __init__(self, *components: Any) -> None: ..."
        yield from [f"    {component}: Any" for component in "xyzw"[: value.kind.count]]
        yield "    def __getattr__(self, name: str) -> Any: ..."
    elif name in ("grid", "gridsize"):
        for axes, result in INDEXED.items():
            yield from ["@overload", f"def {name}(ndim: Literal[{axes}]) -> {result}:"]
            yield from _docstring(value.__doc__, "    ")
    else:
        yield from _function(name, name, value, "")


def _function(name: str, qualified: str, value: Stub, indent: str) -> Iterator[str]:
    parameters = [_parameter(one) for one in inspect.signature(value).parameters.values()]
    yield f"{indent}def {name}({', '.join(parameters)}) -> {RESULTS.get(qualified, 'Any')}:"
    yield from _docstring(value.__doc__, indent + "    ")


def _parameter(parameter: inspect.Parameter) -> str:
    shown = f"{parameter}: Any"
    if parameter.default is inspect.Parameter.empty:
        return shown
    plain = isinstance(parameter.default, (int, float, str, type(None)))
    return f"{parameter.name}: Any = {parameter.default!r}" if plain else f"{parameter.name}: Any = ..."


def _namespace(name: str, module: ModuleType) -> Iterator[str]:
    """A module of the kernel language as a class, without the helpers that create its functions."""
    yield from [f"class {name}:", *_docstring(module.__doc__, "    ")]
    for own, value in sorted(vars(module).items()):
        if isinstance(value, Stub) and value.__qualname__.partition(".")[0] == name:
            yield "    @staticmethod"
            yield from _function(own, f"{name}.{own}", value, "    ")


def main() -> None:
    """Write the stub."""
    STUB.write_text(stub())
    print(STUB)


if __name__ == "__main__":
    main()
