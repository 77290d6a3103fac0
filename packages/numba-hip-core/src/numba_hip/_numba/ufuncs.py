"""Universal functions: Numba's lowering of their loops, and the builders behind ``numba.vectorize``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numba.core import types
from numba.np.ufunc.dufunc import DUFunc


@dataclass(frozen=True)
class HostUFunc:
    """What ``numba.vectorize`` made a ufunc of."""

    py_func: Callable[..., Any]
    targetoptions: Mapping[str, Any]
    device_signatures: Mapping[tuple[types.Type, ...], types.Type]
    """The signatures that it was given, if any, as argument types and type of the result."""
    of_elements = True


def is_host_ufunc(value: object) -> bool:
    """Whether ``numba.vectorize`` made *value*."""
    return isinstance(value, DUFunc)


def host_ufunc(value: object) -> HostUFunc | None:
    """What *value* was made of if ``numba.vectorize`` made it."""
    if not isinstance(value, DUFunc):
        return None
    dispatcher = value._dispatcher
    compiled = dispatcher.overloads.items() if value._frozen else ()
    signatures = {one.args: result.signature.return_type for one, result in compiled}
    return HostUFunc(dispatcher.py_func, dispatcher.targetoptions, signatures)


def register_ufuncs(lower: Callable[..., Any]) -> None:
    """Register Numba's lowering of every ufunc, and of the operators on arrays.

    *lower* is called as the decorator of a registry: ``lower(function, *types)(lowering)``.
    """
    from numba.np import npyimpl, ufunc_db

    npyimpl.register_ufuncs(ufunc_db.get_ufuncs(), lower)


def ufunc_table(ufunc: Any) -> dict[str, Any]:
    """Numba's lowering of one element for each loop of *ufunc*, by the types of the loop."""
    from numba.np import ufunc_db

    return dict(ufunc_db.get_ufunc_info(ufunc))


def parse_gufunc_signature(signature: str) -> tuple[list[tuple[str, ...]], list[tuple[str, ...]]]:
    """The names of the dimensions of each input and each output of a gufunc. Raises `ValueError`, or `NameError` for an
    output with a dimension that no input has."""
    from tokenize import TokenError

    from numba.np.ufunc.sigparse import parse_signature

    try:
        inputs, outputs = parse_signature(signature)
    except (ValueError, NameError, TokenError, RuntimeError) as error:  # the last of a generator that came to its end
        kind = NameError if isinstance(error, NameError) else ValueError
        ended = not isinstance(error, (NameError, ValueError)) or str(error).endswith('""')  # by releases of Python
        problem = "a parenthesis is missing" if ended else error
        raise kind(f"layout {signature!r}: {problem}; write it as in '(m,n),(n)->(m)'") from None
    return [tuple(dims) for dims in inputs], [tuple(dims) for dims in outputs]


def register_vectorizers(target: str, builders: Callable[[], tuple[Any, Any]]) -> None:
    """Make ``numba.vectorize`` and ``numba.guvectorize`` accept *target*; *builders* returns the builders they then
    use."""
    from numba.np.ufunc.decorators import GUVectorize, Vectorize

    Vectorize.target_registry.ondemand[target] = lambda: builders()[0]
    GUVectorize.target_registry.ondemand[target] = lambda: builders()[1]
