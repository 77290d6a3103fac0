"""``python -m tools.cuda_names``: list the public names of numba-cuda, from its wheel, which is not installed.

A test of numba-hip-cuda-compat checks that each name in the list exists while posing, or has a reason why it does not.
Private names, tests, and modules that were compiled from C or generated from headers are left out.
"""

from __future__ import annotations

import argparse
import ast
import re
import textwrap
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools.cuda_suite.wheel import VERSION, default_cache, download

BINDINGS = "13.5.0"
"""The release of cuda-bindings whose attributes of devices are listed: numba-cuda asks for any of 12 and 13."""

LIST = Path(__file__).parents[1] / "packages" / "numba-hip-cuda-compat" / "tests" / "cuda_names.txt"
ROOT = "numba_cuda/"
CUDA = "numba.cuda"
SKIPPED = {"tests", "cext"}
ATTRIBUTE = re.compile(r"\bCU_DEVICE_ATTRIBUTE_([A-Z0-9_]+)")
COPIES = tuple(
    f"{CUDA}.{name}"
    for name in """
        cgutils cloudpickle core cpython datamodel debuginfo itanium_mangler lowering misc np serialize typeconv types
        typing utils
    """.split()
)
"""Modules that numba-cuda copied from Numba. Their classes are Numba's, whose attributes are not listed."""

DEVICE_ATTRIBUTES = f"{CUDA}.cudadrv.driver:Device attributes"
"""The name of the section with the device attributes of CUDA's driver."""


class Wheel:
    """The modules in a wheel of numba-cuda, as syntax trees by full name."""

    def __init__(self, path: Path) -> None:
        self.trees: dict[str, ast.Module] = {}
        self.packages: set[str] = set()
        with zipfile.ZipFile(path) as archive:
            for file in archive.namelist():
                if file.startswith(f"{ROOT}numba/cuda/") and file.endswith(".py"):
                    name = file.removeprefix(ROOT).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
                    self.trees[name] = ast.parse(archive.read(file))
                    if file.endswith("/__init__.py"):
                        self.packages.add(name)

    def public(self) -> Iterator[str]:
        """The modules that are listed."""
        for name in sorted(self.trees):
            parts = name.split(".")
            if not any(part in SKIPPED or part.startswith("_") for part in parts):
                yield name

    def names(self, module: str) -> set[str]:
        """The public names of *module*: those that it defines and, for a package, those that it imports from its own
        project."""
        tree = self.trees[module]
        found = {name for name, _ in definitions(tree.body)}
        if module in self.packages or module.endswith("_init"):
            found |= self._imported(module, tree)
        return {name for name in found if not name.startswith("_")}

    def _imported(self, module: str, tree: ast.Module) -> set[str]:
        found: set[str] = set()
        for node in statements(tree.body):
            if not isinstance(node, ast.ImportFrom):
                continue
            source = self._source(module, node)
            if not source.startswith(CUDA) or "_internal" in source:
                continue
            for alias in node.names:
                found |= self._starred(source) if alias.name == "*" else {alias.asname or alias.name}
        return found

    def _source(self, module: str, node: ast.ImportFrom) -> str:
        """The full name of the module that *node*, in *module*, imports from."""
        if not node.level:
            return node.module or ""
        parts = module.split(".")
        above = node.level - 1 if module in self.packages else node.level
        return ".".join([*parts[: len(parts) - above], *filter(None, [node.module])])

    def _starred(self, module: str) -> set[str]:
        """The names that ``from module import *`` imports, of this project."""
        if module not in self.trees:
            return set()
        tree = self.trees[module]
        values = {name: node.value for name, node in definitions(tree.body) if isinstance(node, ast.Assign)}
        if "__all__" in values:
            return set(words(values["__all__"], values))
        return {name for name, _ in definitions(tree.body)} | self._imported(module, tree)

    def classes(self, module: str) -> Iterator[tuple[str, set[str]]]:
        """The public classes of *module* with the public attributes that they define themselves."""
        for name, node in definitions(self.trees[module].body):
            if isinstance(node, ast.ClassDef) and not name.startswith("_"):
                yield name, {attribute for attribute in attributes(node) if not attribute.startswith("_")}


def statements(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of *body* and of the blocks in it, but not those in functions and classes."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        for inner in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, inner, ()))
        for handler in getattr(node, "handlers", ()):
            yield from statements(handler.body)


def definitions(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """The names that *body* defines, without those that it imports."""
    for node in statements(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for name in ast.walk(target):
                    if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store):
                        yield name.id, node


def words(node: ast.expr, values: Mapping[str, ast.expr]) -> Iterator[str]:
    """The words in a list of constants or in a constant that is split, which may be a name in *values*."""
    if isinstance(node, ast.Name):
        yield from words(values[node.id], values)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        yield from words(node.func.value, values)
    for constant in ast.walk(node):
        if isinstance(constant, ast.Constant) and isinstance(constant.value, str):
            yield from constant.value.split()


def attributes(kind: ast.ClassDef) -> Iterator[str]:
    """The names defined in the body of a class, and the attributes that its ``__init__`` sets."""
    for name, node in definitions(kind.body):
        yield name
        if name != "__init__" or not isinstance(node, ast.FunctionDef):
            continue
        for target in ast.walk(node):
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.ctx, ast.Store)
                and isinstance(target.value, ast.Name)
                and target.value.id == node.args.args[0].arg
            ):
                yield target.attr


def device_attributes(wheel: Path) -> set[str]:
    """The device attributes in *wheel*, one of cuda-bindings, without the common prefix of their names."""
    with zipfile.ZipFile(wheel) as archive:
        declarations = archive.read("cuda/bindings/cydriver.pxd").decode()
    return set(ATTRIBUTE.findall(declarations)) - {"MAX"}


def sections(wheel: Wheel, bindings: Path) -> dict[str, set[str]]:
    """The names of each module, and of each class as ``module:class``."""
    found = {}
    for module in wheel.public():
        found[module] = wheel.names(module)
        if not module.startswith(COPIES):
            found.update((f"{module}:{name}", inside) for name, inside in wheel.classes(module))
    return {**found, DEVICE_ATTRIBUTES: device_attributes(bindings)}


def write(path: Path, found: Mapping[str, set[str]]) -> None:
    """*found* as a text of sections, each with its names in order."""
    parts = [f"# The public names of numba-cuda {VERSION}. Written by `python -m tools.cuda_names`."]
    for section in sorted(found):
        parts.append(f"[{section}]")
        parts.extend(textwrap.wrap(" ".join(sorted(found[section])), 120, break_on_hyphens=False))
    path.write_text("\n".join(parts) + "\n")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser("python -m tools.cuda_names", description=__doc__.partition("\n")[0])
    parser.add_argument("--cache", type=Path, default=default_cache(), help="folder for what is downloaded")
    parser.add_argument("--output", type=Path, default=LIST)
    arguments = parser.parse_args()
    wheel = Wheel(download(arguments.cache, "numba-cuda", VERSION))
    write(arguments.output, sections(wheel, download(arguments.cache, "cuda-bindings", BINDINGS)))


if __name__ == "__main__":
    main()
