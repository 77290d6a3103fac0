"""Numba objects that a kernel refers to: dispatchers, pickles, extensions, and the installed release."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator, Sequence
from types import FunctionType
from typing import Any

from numba.core import serialize
from numba.core.dispatcher import Dispatcher
from numba.np.ufunc.dufunc import DUFunc

from numba_hip.installed_packages import readable_path

__all__ = ["Dispatcher", "definition_of", "dump", "load", "load_extensions", "python_identity",
           "registered_code"]  # fmt: skip


def dump(value: object) -> bytes:
    """*value* in Numba's pickle format, which supports functions of any module with the values that they capture."""
    return bytes(serialize.dumps(value))


def load(data: bytes) -> Any:
    """Load what `dump` wrote. Loading runs code: only use it on trusted data."""
    return serialize.loads(data)


def load_extensions() -> None:
    """Import the installed extensions of Numba, as compiling does (entry points ``numba_extensions``)."""
    from numba.core import entrypoints

    with readable_path():  # Numba asks for them once, and works without them if that fails
        entrypoints.init_all()


def registered_code(typing: Sequence[Any], lowering: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """The entries of Numba's registries and of the given ones: what each is for, and the Python code behind it.

    An entry is for a function, the name of an attribute, a type, or anything.
    """
    from numba.core.datamodel import default_manager
    from numba.core.imputils import builtin_registry as builtin_lowering
    from numba.core.typing.templates import builtin_registry as builtin_typing

    for registry in (builtin_typing, *typing):
        for_names = (template for _, kind in registry.globals for template in getattr(kind, "templates", ()))
        for template in (*registry.functions, *registry.attributes, *for_names):
            code = getattr(template, "_overload_func", None) or getattr(template, "_definition_func", template)
            yield getattr(template, "_attr", getattr(template, "key", None)), code
    for registry in (builtin_lowering, *lowering):
        for implementation, key, *_ in (*registry.functions, *registry.getattrs, *registry.setattrs):
            yield key, _implementation_of(implementation)
        for implementation, _ in (*registry.casts, *registry.constants):
            yield None, inspect.unwrap(implementation)
    yield from default_manager._handlers.items()


def _implementation_of(registered: Any) -> Any:
    """The function behind one that is *registered*: those of attributes Numba puts into functions of its own."""
    function = inspect.unwrap(registered)
    cells = getattr(function, "__closure__", None) or ()
    held = dict(zip(function.__code__.co_freevars, cells, strict=True)) if cells else {}
    return inspect.unwrap(held["real_impl"].cell_contents) if "real_impl" in held else function


def definition_of(value: object) -> Any:
    """The Python function behind what Numba's decorators return (``njit``, ``vectorize``, ``intrinsic``), else None."""
    dispatcher = value._dispatcher if isinstance(value, DUFunc) else value
    for attribute in ("py_func", "_defn"):
        function = getattr(dispatcher, attribute, None)
        if isinstance(function, FunctionType):
            return function
    return None


def python_identity() -> str:
    """Which Python this is: bytecode is that of one release."""
    return f"{sys.implementation.cache_tag} {sys.version}"
