"""What the package takes of Numba: what is documented, and what passes through `numba_hip._numba`."""

import ast
import importlib
import pkgutil
from functools import cache
from pathlib import Path

import pytest

import numba_hip
from numba_hip import _numba

ROOT = Path(numba_hip.__file__).parent

DOCUMENTED = {
    "numba", "numba.core.cgutils", "numba.core.compiler_machinery", "numba.core.errors", "numba.core.ir",
    "numba.core.types", "numba.core.typing.templates", "numba.extending",
}  # fmt: skip
"""Modules of Numba of which its manuals show whatever has no underscore."""

DOCUMENTED_NAMES = {
    "numba.core": {"cgutils", "config", "errors", "ir", "types", "typing"},
    "numba.core.compiler": {"CompilerBase", "DefaultPassBuilder"},
}

DOCUMENTED_ATTRIBUTES = {"_getvalue", "_name"}
"""Names with an underscore that Numba's manuals use: of structures while they are lowered, and of passes."""

FROM_METACLASSES = {"_abc_impl", "_is_internal"}
"""What classes have of their own without anybody writing it."""

WITH_EXTRAS = ("numba_hip.dask_workers",)
"""Modules that are imported where the libraries of an extra are installed."""

BORROWED = {"sys._getframe"}
"""Names with an underscore that are not Numba's."""


def sources():
    return [path for path in ROOT.rglob("*.py") if "_numba" not in path.relative_to(ROOT).parts]


@cache
def trees():
    """The syntax of each of our modules, by its path in the package."""
    return {str(path.relative_to(ROOT)): ast.parse(path.read_text()) for path in sources()}


def imports_of_insides(tree):
    """Whatever *tree* imports of Numba that its manuals do not show."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.startswith("numba.") and one.name not in DOCUMENTED]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            shown = DOCUMENTED_NAMES.get(node.module, set())
            found += [
                f"{node.module}.{one.name}"
                for one in node.names
                if one.name.startswith("_") or (node.module not in DOCUMENTED and one.name not in shown)
            ]
    return found


def names_given(tree):
    """Names that *tree* defines or assigns, and those that it spells out in texts, such as slots."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def is_private(name):
    return name.startswith("_") and not name.startswith("__")


def foreign_attributes(tree, own):
    """Attributes with an underscore in *tree* that are none of our *own*."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Attribute) or not is_private(node.attr) or node.attr in own | DOCUMENTED_ATTRIBUTES:
            continue
        if ast.unparse(node) not in BORROWED:
            yield ast.unparse(node)


def test_only_what_is_documented_is_imported():
    found = {path: imports_of_insides(tree) for path, tree in trees().items()}
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "source",
    ["from numba.core.base import BaseContext", "from numba.core import sigutils", "import numba.core.codegen",
     "from numba import _helperlib", "def f():\n    from numba.np import arrayobj"],
)  # fmt: skip
def test_insides_are_seen(source):
    assert len(imports_of_insides(ast.parse(source))) == 1


def test_no_name_with_an_underscore_is_read():
    own = {name for tree in trees().values() for name in names_given(tree)}
    found = {path: list(foreign_attributes(tree, own)) for path, tree in trees().items()}
    assert {path: names for path, names in found.items() if names} == {}


def classes():
    for module in pkgutil.walk_packages(numba_hip.__path__, "numba_hip."):
        if module.name.startswith(("numba_hip._numba", *WITH_EXTRAS)) or module.name.endswith("__main__"):
            continue
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and value.__module__ == module.name:
                yield value


def test_no_name_with_an_underscore_is_overridden():
    found = set()
    for kind in classes():
        above = [base for base in kind.__mro__ if base.__module__.partition(".")[0] == "numba"]
        theirs = {name for base in above for name in vars(base) if is_private(name)} - FROM_METACLASSES
        found |= {f"{kind.__qualname__}.{name}" for name in theirs & vars(kind).keys() - DOCUMENTED_ATTRIBUTES}
    assert found == set()


@pytest.mark.parametrize("module", [module.name for module in pkgutil.iter_modules(_numba.__path__)])
def test_each_release_has_the_insides(module):
    found = importlib.import_module(f"numba_hip._numba.{module}")
    for name in getattr(found, "__all__", ()):
        assert getattr(found, name) is not None
