"""The one module that touches Numba's privates, or asks which Numba this is.

Everything here is tested against each supported release (see ``nox -s minimums``).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FunctionType
from typing import Any, cast

from numba.core import cgutils, compiler, fastmathpass, serialize, typeinfer, types
from numba.core.base import BaseContext
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import Dispatcher as NumbaDispatcher
from numba.core.errors import UnsupportedError
from numba.core.funcdesc import PythonFunctionDescriptor
from numba.core.imputils import builtin_registry
from numba.core.runtime.context import NRTContext
from numba.core.target_extension import target_override
from numba.core.typing.context import CallStack as NumbaCallStack
from numba.core.typing.templates import fold_arguments

from hip_devicelib.forking import Rank, compiling, hold_in_forks
from numba_hip.installed import readable_path

BUILTIN_MODULES = (
    "numba.cpython.builtins", "numba.cpython.charseq", "numba.cpython.enumimpl", "numba.cpython.iterators",
    "numba.cpython.numbers", "numba.cpython.rangeobj", "numba.cpython.slicing", "numba.cpython.tupleobj",
    "numba.cpython.unicode", "numba.core.optional", "numba.misc.literal", "numba.np.arrayobj", "numba.np.npdatetime",
    "numba.np.unsafe.ndarray",
)  # fmt: skip
"""Modules that enter their lowering into Numba's own registry when imported."""


def import_lowering_of_builtins() -> list[Any]:
    """Load Numba's lowering of Python's builtins; returns the registries that it is in.

    Of two entries for the same types the one that is installed last is used.
    """
    for name in BUILTIN_MODULES:
        importlib.import_module(name)
    cmath = importlib.import_module("numba.cpython.cmathimpl")
    return [builtin_registry, cmath.registry]


def register_ufuncs(lower: Callable[..., Any]) -> None:
    """Enter Numba's lowering of every ufunc, and of the operators on arrays.

    *lower* is called as the decorator of a registry: ``lower(function, *types)(lowering)``.
    """
    from numba.np import npyimpl, ufunc_db

    npyimpl.register_ufuncs(ufunc_db.get_ufuncs(), lower)


def ufunc_table(ufunc: Any) -> dict[str, Any]:
    """How Numba lowers one element of each loop of *ufunc*, by the types of the loop."""
    from numba.np import ufunc_db

    return dict(ufunc_db.get_ufunc_info(ufunc))


def divide_reals(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's lowering of ``/`` of floats, which raises where the divisor is 0."""
    from numba.cpython import numbers

    return numbers.real_div_impl(context, builder, sig, args)


def in_one_unit(context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """The *values* of two timedeltas of *kinds*, counted in the smaller one of their units."""
    from numba.np import npdatetime

    return list(npdatetime.normalize_timedeltas(context, builder, *values, *kinds))


def parse_gufunc_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of the dimensions of each input and each output of a gufunc."""
    from numba.np.ufunc.sigparse import parse_signature

    inputs, outputs = parse_signature(signature)
    return [tuple(dims) for dims in inputs], [tuple(dims) for dims in outputs]


def register_vectorizers(target: str, builders: Callable[[], tuple[Any, Any]]) -> None:
    """Make ``numba.vectorize`` and ``numba.guvectorize`` take *target*; *builders* gives what they then drive."""
    from numba.np.ufunc.decorators import GUVectorize, Vectorize

    Vectorize.target_registry.ondemand[target] = lambda: builders()[0]
    GUVectorize.target_registry.ondemand[target] = lambda: builders()[1]


def getitem_of_any_index(index: Any) -> Callable[..., Any]:
    """Numba's lowering of ``array[index]`` for an index of type *index*."""
    from numba.np import arrayobj

    found = arrayobj.getitem_array_tuple if isinstance(index, types.BaseTuple) else arrayobj.getitem_arraynd_intp
    return cast(Callable[..., Any], found)


def setitem_of_any_index(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's lowering of ``array[index] = value``."""
    from numba.np import arrayobj

    return arrayobj.setitem_array(context, builder, sig, args)


def view_as_dtype(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Numba's lowering of ``array.view(dtype)``."""
    from numba.np import arrayobj

    return arrayobj.array_view(context, builder, sig, args)


def type_of_constructor(context: Any, kind: types.Type) -> types.Type:
    """Numba's type of what ``np.float32`` and its like are called as, of the NumPy type that is *kind* in kernels."""
    from numba.core.typing.builtins import NumberClassAttribute

    return cast(types.Type, NumberClassAttribute(context).resolve___call__(types.NumberClass(kind)))


def view_of_part(
    context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]
) -> tuple[Any, list[Any], list[Any]]:
    """The part of an array that an index stands for: pointer to its first element, extents, and steps in bytes.

    *kinds* and *values* are those of the array and of the index: integers, slices, an ellipsis, new axes.
    """
    from numba.np import arrayobj

    array_type, index_type = kinds
    array, index = values
    index_types, indices = [index_type], [index]
    if isinstance(index_type, types.BaseTuple):
        index_types, indices = list(index_type), cgutils.unpack_tuple(builder, index, len(index_type))
    made = arrayobj.make_array(array_type)(context, builder, array)
    index_types, indices = arrayobj.normalize_indices(context, builder, index_types, indices)
    try:
        pointer, extents, steps = arrayobj.basic_indexing(
            context, builder, array_type, made, index_types, indices, boundscheck=context.enable_boundscheck
        )
    except NotImplementedError:
        raise UnsupportedError(
            "an array cannot be assigned through an index that is an array itself: assign in a loop"
        ) from None
    return pointer, list(extents), list(steps)


class NoAllocation(NRTContext):
    """What Numba asks for memory. There is none to be had in a kernel, which *refusal* says."""

    def __init__(self, context: BaseContext, refusal: str) -> None:
        super().__init__(context, False)
        self._refusal = refusal

    def incref(self, builder: Any, typ: types.Type, value: Any) -> None:
        """Nothing: arrays in kernels own no memory."""

    def decref(self, builder: Any, typ: types.Type, value: Any) -> None:
        """Nothing, as `incref`."""

    def _require_nrt(self) -> None:
        raise UnsupportedError(self._refusal)


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


def mark_fastmath(module: Any, options: Any) -> None:
    """Give the floating-point operations of a module, and its calls, LLVM's flags for *options* of ``fastmath``."""
    fastmathpass.rewrite_module(module, options)


def is_numba_dispatcher(value: object) -> bool:
    """Whether *value* is what ``numba.njit`` returns."""
    return isinstance(value, NumbaDispatcher)


class CallStack(NumbaCallStack):
    """The functions whose types are being inferred. A recursive call has the result type that a signature says, where
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


hold_in_forks(Rank.NUMBA, global_compiler_lock._lock)


@contextmanager
def compiling_for(numba_name: str) -> Iterator[None]:
    """Hold the locks of whoever compiles, and make *numba_name* the current target."""
    with compiling, global_compiler_lock, target_override(numba_name):
        yield


def run_pipeline(
    contexts: tuple[Any, BaseContext],
    function: Any,
    args: tuple[Any, ...],
    return_type: Any,
    flags: compiler.Flags,
    pipeline: type[compiler.CompilerBase],
) -> Any:
    """Run Numba's passes over *function*; returns Numba's compile result."""
    typing_context, target_context = contexts
    return compiler.compile_extra(
        typing_context, target_context, function, args, return_type, flags, {}, pipeline_class=pipeline
    )


def lowered_symbol(descriptor: PythonFunctionDescriptor) -> str:
    """The LLVM name of a compiled function."""
    return str(descriptor.llvm_func_name)


def dump(value: object) -> bytes:
    """*value* in Numba's pickle, which takes functions of any module with what they capture."""
    return bytes(serialize.dumps(value))


def load(data: bytes) -> Any:
    """What `dump` wrote. Loading runs code: only of data that is trusted."""
    return serialize.loads(data)


def load_extensions() -> None:
    """Import the installed extensions of Numba, as compiling does (entry points ``numba_extensions``)."""
    from numba.core import entrypoints

    with readable_path():  # Numba asks for them once, and does without them where that fails
        entrypoints.init_all()


def registered_code(typing: Sequence[Any], lowering: Sequence[Any]) -> Iterator[tuple[Any, Any]]:
    """What Numba's registries and those given hold: what each entry is for, and the Python code that stands behind it.

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
            yield key, inspect.unwrap(implementation)
        for implementation, _ in (*registry.casts, *registry.constants):
            yield None, inspect.unwrap(implementation)
    yield from default_manager._handlers.items()


def definition_of(value: object) -> Any:
    """The Python function behind what Numba's decorators return (``njit``, ``vectorize``, ``intrinsic``), else None."""
    for attribute in ("py_func", "_defn"):
        function = getattr(value, attribute, None)
        if isinstance(function, FunctionType):
            return function
    return None


def c_helper_names() -> frozenset[str]:
    """Names of the functions in C that lowering calls, each with ``numba_`` before it."""
    from numba import _helperlib

    return frozenset(_helperlib.c_helpers)


def python_identity() -> str:
    """Which Python this is: bytecode is that of one release."""
    return f"{sys.implementation.cache_tag} {sys.version}"


def bounds_check_in_progress() -> tuple[Any, Any, Any] | None:
    """Index, extent and axis of the bounds check that Numba is lowering, if the caller's caller is that.

    Numba raises without saying which index it was, as that is known on the device only.
    """
    caller = sys._getframe(2)
    if caller.f_code is not cgutils.do_boundscheck.__code__:
        return None
    found = caller.f_locals
    return found["ind"], found["dimlen"], found["axis"]
