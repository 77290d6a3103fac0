"""The API reference: a page for each group of names, from their docstrings and signatures.

Sphinx's own ``autodoc`` finds functions and classes; those of the kernel language are objects with a docstring and a
signature, which it takes for data. So the pages are written here, for any kind of object.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

import numba.extending
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.inspect import stringify_signature

import hip_runtime.config
import numba_hip
import numba_hip.config
from numba_hip.language.stub import Stub
from numba_hip.language.thread_index import Dim3
from numba_hip.language.vector_types import VECTORS
from numba_hip.language.warp import ModuleQuery
from tools.site.reference_groups import GROUPS, Group

OURS = ("hip_devicelib", "hip_runtime", "numba_hip", "numba_hip_cuda")
NAME = re.compile(r"(?<![`:\w])`([A-Za-z_][\w.]*)`(?![`_])")


def pages() -> Iterator[tuple[str, str]]:
    """The paths and texts of all pages of the reference."""
    contents = "\n   ".join([*GROUPS, "vector-types", "environment-variables"])
    about = "Everything public, by subject. ``hip`` is ``from numba import hip``.\n"
    yield "reference/index.rst", f"{title('API reference')}{about}\n.. toctree::\n   :maxdepth: 1\n\n   {contents}\n"
    for name, group in GROUPS.items():
        lines = [line for shown, value in members(group).items() for line in (*entry(shown, value), "")]
        yield f"reference/{name}.rst", f"{title(group.title)}{as_rst(group.about)}\n\n" + "\n".join(lines)
    yield "reference/vector-types.rst", vector_types()
    yield "reference/environment-variables.rst", environment_variables()


@cache
def members(group: Group) -> dict[str, Any]:
    """The names on a page, as they are shown, and their values."""
    found = {f"hip.{name}": look_up(name) for name in group.names.split()}
    for name in group.modules:
        inside = name not in OURS
        module = getattr(numba_hip, name) if inside else import_module(name)
        found |= {f"{'hip.' if inside else ''}{name}.{own}": getattr(module, own) for own in public(module)}
    return found


def look_up(name: str) -> Any:
    """A name of `numba.hip`, or of a namespace in it."""
    value: Any = numba_hip
    for part in name.split("."):
        value = getattr(value, part)
    return value


def public(module: ModuleType) -> list[str]:
    """The public names of *module*: what it lists, or what it defines itself; errors also where they come from below.

    What `numba.hip` has under the same name is on a page of its own.
    """
    package = module.__name__.partition(".")[0]
    if hasattr(module, "__all__") or package in ("hip_runtime", "hip_devicelib", "numba_hip_cuda"):
        names = getattr(module, "__all__", None) or [name for name in vars(module) if not name.startswith("_")]
        shared = {id(value) for value in vars(numba_hip).values()} if package != "numba_hip" else set()
        return sorted(name for name in names if name != "__version__" and id(getattr(module, name)) not in shared)
    return sorted(name for name, value in vars(module).items() if not name.startswith("_") and defines(module, value))


def defines(module: ModuleType, value: Any) -> bool:
    """Whether *value* is of *module*, rather than something that it imports."""
    if module is numba_hip.errors:
        return isinstance(value, type) and issubclass(value, Exception) and value.__module__.startswith(OURS)
    if isinstance(value, Stub):
        return value.__qualname__.partition(".")[0] == module.__name__.rpartition(".")[2]
    return getattr(value, "__module__", None) == module.__name__ and callable(value) and not _is_alias(value)


def _is_alias(value: Any) -> bool:
    return getattr(value, "__module__", None) == "typing"


@cache
def documented() -> dict[str, str]:
    """The last part of each documented name, and the names that end in it, first page first."""
    found: dict[str, str] = {}
    for group in GROUPS.values():
        for shown in members(group):
            found.setdefault(shown, shown)
            found.setdefault(shown.rpartition(".")[2], shown)
    return found


def title(text: str) -> str:
    """A heading of a page."""
    return f"{text}\n{'=' * len(text)}\n\n"


def as_rst(text: str) -> str:
    """A docstring, in which a name in single backticks is a link if it is in the reference, and code if it is not."""

    def refer(match: re.Match[str]) -> str:
        name = match[1]
        last = name.removeprefix("numba_hip.").removeprefix("hip_runtime.").removeprefix("hip_devicelib.errors.")
        known = documented().get(name) or documented().get(f"hip.{last}") or documented().get(last)
        return f":py:obj:`{name} <{known}>`" if known else f"``{name}``"

    parts = re.split(r"(``.*?``)", text, flags=re.DOTALL)
    return "".join(part if part.startswith("``") else NAME.sub(refer, part) for part in parts)


def entry(shown: str, value: Any) -> Iterator[str]:
    """The lines that describe *value*."""
    if isinstance(value, ModuleQuery | Dim3):
        yield from described(f".. py:data:: {shown}", value.__doc__)
    elif isinstance(value, type):
        yield from class_entry(shown, value)
    elif callable(value):
        docstring = own_docstring(value) or assigned_docstring(shown, value)
        yield from described(f".. py:function:: {shown}{signature(value)}", docstring)
    else:
        yield from described(f".. py:data:: {shown}", own_docstring(value) or assigned_docstring(shown, value))


def described(directive: str, docstring: str | None, indent: str = "") -> Iterator[str]:
    """A directive with a docstring in it."""
    yield indent + directive
    yield ""
    for line in as_rst(inspect.cleandoc(docstring or "")).splitlines():
        yield f"{indent}   {line}" if line else ""


def own_docstring(value: Any) -> str | None:
    """The docstring of *value*, not that of its class, unless that is one of ours."""
    text = getattr(value, "__doc__", None)
    return text if text != type(value).__doc__ or type(value).__module__.startswith(OURS) else None


def assigned_docstring(shown: str, value: Any) -> str:
    """The string behind the assignment of *value* in the module that defines it; that it is Numba's, if it is."""
    name = shown.rpartition(".")[2]
    for module in [name for name in sys.modules if name.startswith(OURS)]:
        if vars(sys.modules[module]).get(name) is value:
            found = ModuleAnalyzer.for_module(module).find_attr_docs().get(("", name))
            if found:
                return "\n".join(found)
    return f"``{name}`` of ``numba.extending``." if getattr(numba.extending, name, None) is value else ""


def signature(value: Any) -> str:
    """The parameters of *value*; ``(...)`` where Python cannot tell."""
    try:
        found = inspect.signature(value)
    except (ValueError, TypeError):
        return "(...)"
    plain = [one.replace(default=_shown(one.default)) for one in found.parameters.values()]
    return stringify_signature(found.replace(parameters=plain), unqualified_typehints=True)


class _Ellipsis:
    def __repr__(self) -> str:
        return "..."


def _shown(default: Any) -> Any:
    """A default value that can be shown: ``...`` for objects whose text is an address."""
    return default if default is inspect.Parameter.empty or not repr(default).startswith("<") else _Ellipsis()


def class_entry(shown: str, value: type) -> Iterator[str]:
    """The lines that describe a class, and its public methods and properties."""
    kind = "exception" if issubclass(value, BaseException) else "class"
    parameters = "" if kind == "exception" or _makes_no_objects(value) else signature(value).removesuffix(" -> None")
    yield from described(f".. py:{kind}:: {shown}{parameters}", vars(value).get("__doc__"))
    bases = [base.__name__ for base in value.__bases__ if base is not object]
    if kind == "exception" and bases:
        yield "   " + as_rst("Bases: " + ", ".join(f"`{name}`" for name in bases))
    for name, member in sorted(own_members(value).items()):
        yield ""
        yield from member_entry(name, member)


def _makes_no_objects(value: type) -> bool:
    return inspect.isabstract(value) or getattr(value, "_is_protocol", False)


def own_members(value: type) -> dict[str, Any]:
    """The public methods and properties of a class that have docstrings, those of its bases that are ours too."""
    found: dict[str, Any] = {}
    for base in value.__mro__:
        if base.__module__.startswith(OURS):
            for name, member in vars(base).items():
                if not name.startswith("_") and getattr(member, "__doc__", None) and _is_shown(member):
                    found.setdefault(name, member)
    return found


def _is_shown(member: Any) -> bool:
    return inspect.isfunction(member) or isinstance(member, property | classmethod | staticmethod)


def member_entry(name: str, member: Any) -> Iterator[str]:
    """The lines that describe a method or a property."""
    if isinstance(member, property):
        yield from described(f".. py:property:: {name}", member.__doc__, "   ")
        return
    function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    parameters = signature(function)
    if not isinstance(member, staticmethod):
        parameters = re.sub(r"^\((self|cls)(, )?", "(", parameters).replace("(/, ", "(")
    yield f"   .. py:method:: {name}{parameters}"
    if isinstance(member, classmethod | staticmethod):
        yield f"      :{type(member).__name__}:"
    yield ""
    for line in as_rst(inspect.cleandoc(function.__doc__ or "")).splitlines():
        yield f"      {line}" if line else ""


def vector_types() -> str:
    """The page of the vector types: their names, by the type of their components."""
    kinds: dict[str, list[str]] = {}
    for name, stub in sorted(VECTORS.items()):
        kinds.setdefault(str(stub.kind.base), []).append(f"``{name}``")
    rows = "\n".join(f"   * - {scalar}\n     - {', '.join(names)}" for scalar, names in sorted(kinds.items()))
    about = (
        "Vectors of one to four numbers, for kernels: ``hip.float4(1, 2, 3, 4)`` has the components ``x``, ``y``, "
        "``z`` and ``w``. Each has a name of HIP's and one with the size of its components.\n\n"
    )
    table = f".. list-table::\n   :header-rows: 1\n\n   * - components\n     - types\n{rows}\n"
    libdevice = as_rst(inspect.cleandoc(numba_hip.libdevice.__doc__ or ""))
    heading = "Functions by the names of CUDA's libdevice"
    return f"{title('Vector types and libdevice')}{about}{table}\n{heading}\n{'-' * len(heading)}\n\n{libdevice}\n"


def environment_variables() -> str:
    """The page of the settings."""
    lines = [
        line
        for setting in (*hip_runtime.config.SETTINGS, *numba_hip.config.SETTINGS)
        for line in (*described(f".. envvar:: {setting.variable}", setting.__doc__), "")
    ]
    about = as_rst(
        "Each is read from the environment. In a program ``setting.scope(value)`` holds for a ``with`` block, with the "
        "objects of `hip_runtime.config` and `numba_hip.config`.\n\n"
    )
    return title("Environment variables") + about + "\n".join(lines)
