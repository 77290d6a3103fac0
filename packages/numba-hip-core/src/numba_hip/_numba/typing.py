"""Typing: registries, conversions, signatures, and the functions whose types are being inferred."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, cast

from numba.core import sigutils, typeinfer, types
from numba.core.typeconv import Conversion
from numba.core.typeconv.rules import default_type_manager
from numba.core.typing import cmathdecl, enumdecl, mathdecl, npydecl
from numba.core.typing.builtins import NumberClassAttribute
from numba.core.typing.context import BaseContext
from numba.core.typing.context import CallStack as NumbaCallStack
from numba.core.typing.templates import RegistryLoader, Signature, fold_arguments
from numba.core.typing.typeof import Purpose
from numba.np.numpy_support import FROM_DTYPE, as_dtype, from_dtype

from numba_hip.errors import SignatureError
from numba_hip.suggestions import hint

__all__ = ["COMPLEX32", "CallStack", "Conversion", "Purpose", "TypingContext", "add_conversions", "add_dtype",
           "as_dtype", "fold_argument_types", "from_dtype", "import_more_functions", "is_signature",
           "normalize_signature", "standard_declarations", "type_code", "type_of_constructor"]  # fmt: skip

is_signature = sigutils.is_signature

COMPLEX32 = types.Complex("complex32", types.float16)

_NAMES = {**vars(types), COMPLEX32.name: COMPLEX32}
"""Types by the names that signatures have for them: Numba's, and one that it lacks."""


def normalize_signature(signature: Any) -> tuple[tuple[types.Type, ...], types.Type | None]:
    """Argument types, and the result type if there is one, of a signature in any form. Raises `SignatureError`."""
    parsed = _evaluated(signature) if isinstance(signature, str) else signature
    try:
        args, result = sigutils.normalize_signature(parsed)
    except TypeError:
        raise SignatureError(f"signature {signature!r}: {_problem_of(parsed)}; {_AS_IN}") from None
    return tuple(args), result


_AS_IN = "write it as in 'void(float32[:], int64)'"


def _evaluated(signature: str) -> Any:
    """What a signature that is text stands for, as Numba finds it: as an expression with the names of types."""
    try:
        return eval(signature, {}, _NAMES)
    except NameError as error:
        name = str(error.name)
        known = [known for known, kind in vars(types).items() if isinstance(kind, types.Type)]
        raise SignatureError(f"signature {signature!r}: there is no type {name}{hint(name, known)}") from None
    except SyntaxError as error:
        raise SignatureError(f"signature {signature!r}: {error.msg}; {_AS_IN}") from None
    except Exception as error:  # whatever an expression may raise that is none of types, such as 'int32[3]'
        raise SignatureError(f"signature {signature!r}: {error}; {_AS_IN}") from None


def _problem_of(parsed: Any) -> str:
    """Why *parsed* is no signature."""
    if isinstance(parsed, types.Type):
        return f"{parsed} is a type, and a signature lists those of all arguments"
    members = (*parsed.args, parsed.return_type) if isinstance(parsed, Signature) else parsed
    if isinstance(members, tuple):
        return f"{next(one for one in members if not isinstance(one, types.Type))!r} is no type"
    return f"it is of type {type(parsed).__name__}"


def add_conversions(kind: types.Type, wider: Sequence[types.Type], others: Sequence[types.Type]) -> None:
    """Let *kind*, which Numba does not have, be promoted to each of *wider*, and these and *others* be converted to it,
    with a loss."""
    for other in wider:
        default_type_manager.set_promote(kind, other)
    for other in (*wider, *others):
        default_type_manager.set_unsafe_convert(other, kind)


def add_dtype(dtype: Any, kind: types.Type) -> None:
    """Register *kind* as the type of elements of NumPy's *dtype*."""
    FROM_DTYPE[dtype] = kind


def standard_declarations() -> list[Any]:
    """Registries that type Python's ``math`` and ``cmath``, enumerations, and NumPy's functions."""
    return [module.registry for module in (mathdecl, cmathdecl, enumdecl, npydecl)]


ON_DEMAND = ("numba.np.arraymath", "numba.np.types.datetime_registry")
"""Declare NumPy's functions of arrays, of which some need no memory, and a few of dates, in the releases of Numba that
have this module. Importing them takes up to half a second."""

HOST_ONLY = (
    "numba.cpython.heapq", "numba.cpython.randomimpl", "numba.cpython.setobj", "numba.experimental.jitclass.base",
    "numba.misc.gdb_hook", "numba.np.linalg", "numba.np.polynomial", "numba.np.random", "numba.typed",
)  # fmt: skip
"""Modules and packages whose declarations ``njit`` imports, for all targets, with code that needs the host: its memory
management, LAPACK, or the state of its generators. Without a list of them a kernel would compile or not, depending
on whether the program has used ``njit`` before."""

REPLACED = frozenset(
    {("numba.cpython.builtins", "ol_repr_generic"), ("numba.core.typing.arraydecl", "RecordAttribute"),
     ("numba.core.typing.arraydecl", "StaticSetItemRecord")}
)  # fmt: skip
"""Declarations of Numba's, by module and name, that have a form for kernels here. That of ``repr``, and so of ``str``
and f-strings, gives ``<object type:float64>`` for a value whose text it cannot make; those of records raise a KeyError
for a field that does not exist, which is no error of the program's line."""


def import_more_functions() -> bool:
    """Import what Numba declares of NumPy's functions; returns False if that has been done before."""
    missing = [name for name in ON_DEMAND if name not in sys.modules]
    for name in missing:
        with suppress(ModuleNotFoundError):
            importlib.import_module(name)
    return any(name in sys.modules for name in missing)


class DeclarationsForKernels(RegistryLoader):
    """The declarations of a registry, without those of modules that only the host can use."""

    def new_registrations(self, name: str) -> Iterator[Any]:
        """Numba's hook: what was declared since the last call; *name* is a kind of declaration."""
        for declared in super().new_registrations(name):
            kind = declared[1] if name == "globals" else declared
            if not any(map(_is_host_only, getattr(kind, "templates", (kind,)))):
                yield declared


def _is_host_only(template: Any) -> bool:
    defined = getattr(template, "_overload_func", None) or getattr(template, "_definition_func", template)
    if (getattr(defined, "__module__", None), getattr(defined, "__name__", None)) in REPLACED:
        return True
    return any(
        _is_of_host(getattr(value, "__module__", None) or "") for value in (defined, getattr(template, "key", None))
    )


@cache
def _is_of_host(module: str) -> bool:
    """Whether *module* is one of `HOST_ONLY`, or in one. There are thousands of declarations in a hundred modules."""
    return any(module == name or module.startswith(f"{name}.") for name in HOST_ONLY)


class TypingContext(BaseContext):
    """Numba's typing context with the declarations that kernels can use."""

    def install_registry(self, registry: Any) -> None:
        """Numba's hook: add what was declared in *registry* since the last call."""
        if registry not in self._registries:
            self._registries[registry] = DeclarationsForKernels(registry)
        super().install_registry(registry)


def type_of_constructor(context: Any, kind: types.Type) -> types.Type:
    """Numba's type of what ``np.float32`` and its like are called as, of the NumPy type that is *kind* in kernels."""
    return cast(types.Type, NumberClassAttribute(context).resolve___call__(types.NumberClass(kind)))


def type_code(numba_type: types.Type) -> int:
    """A small integer that is the same for equal types in this process and differs otherwise: quick to hash."""
    return int(numba_type._code)


def fold_argument_types(pysig: Any, args: Sequence[Any], kws: dict[str, Any]) -> tuple[Any, ...]:
    """Argument types in the order of *pysig*: keywords placed, defaults as ``Omitted``, ``*args`` as one tuple.

    Since Numba 0.68 ``min`` and ``max`` are overloads that take ``*args``; without folding no kernel could call them.
    """
    folded = fold_arguments(
        pysig,
        args,
        kws,
        lambda index, parameter, value: value,
        lambda index, parameter, default: types.Omitted(default),
        lambda index, parameter, values: types.StarArgTuple(values),
    )
    return tuple(folded)


class CallStack(NumbaCallStack):
    """The functions whose types are being inferred. A recursive call has the result type in the signature; without one,
    Numba infers it from the returns that do not depend on such a call."""

    def __init__(self) -> None:
        super().__init__()
        self._results: dict[tuple[Any, Any], types.Type] = {}

    @contextmanager
    def recursive(self, dispatcher: Any, args: tuple[Any, ...], result: types.Type | None) -> Iterator[None]:
        """A block in which *dispatcher* is compiled for *args* and can call itself, also by the name of its function
        before anything has that name."""
        if result is not None:
            self._results[dispatcher.py_func, args] = result
        try:
            with typeinfer.register_dispatcher(dispatcher):
                yield
        finally:
            self._results.pop((dispatcher.py_func, args), None)

    def register(self, target: Any, inferer: Any, func_id: Any, args: tuple[Any, ...]) -> Any:
        """Numba's hook: the types of *func_id* are about to be inferred by *inferer*."""
        result = self._results.get((func_id.func, args))
        if result is not None:
            inferer.return_types_from_partial = lambda: result
        return super().register(target, inferer, func_id, args)
