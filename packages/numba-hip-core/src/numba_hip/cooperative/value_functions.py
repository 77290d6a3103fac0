"""Device functions of all parts of a value, each written as one expression.

A function for each part would do as well, but compile slowly: every call passes all arrays of a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from numba.core import types

from numba_hip.cooperative.operators import kept
from numba_hip.cooperative.value_parts import class_of, is_date, leaf_kinds
from numba_hip.decorators import jit


def function_of(parameters: str, statements: Sequence[str], names: dict[str, Any]) -> Any:
    """A device function of *parameters* that consists of *statements*, in which *names* are known."""
    body = "\n    ".join(statements)
    exec(compile(f"def function({parameters}):\n    {body}", "<parts of a value>", "exec"), names)
    return jit(device=True)(names["function"])


def expression_of(kind: types.Type, parts: Iterator[str], names: dict[str, Any]) -> str:
    """A value of *kind*, whose numbers are the next of *parts*; the classes of its tuples are added to *names*."""
    if not isinstance(kind, types.BaseTuple):
        return next(parts)
    elements = "".join(f"{expression_of(element, parts, names)}, " for element in kind)
    named = class_of(kind)
    if named is None:
        return f"({elements})"
    name = f"class_{len(names)}"
    names[name] = named
    return f"{name}({elements})"


def paths_of(kind: types.Type, value: str = "value") -> list[str]:
    """Where the numbers of a *value* of *kind* are."""
    if not isinstance(kind, types.BaseTuple):
        return [value]
    return [path for place, element in enumerate(kind) for path in paths_of(element, f"{value}[{place}]")]


@kept
def flattened(kind: types.Type) -> Any:
    """A device function of a value of *kind*, a tuple: a tuple of its parts, without names."""
    return function_of("value", [f"return ({', '.join(paths_of(kind))},)"], {})


@kept
def rebuilt(kind: types.Type, start: int = 0) -> Any:
    """A device function of a tuple of numbers: the value of *kind* whose parts are those from *start* on."""
    names: dict[str, Any] = {}
    parts = (f"parts[{place}]" for place in range(start, start + len(leaf_kinds(kind))))
    return function_of("parts", [f"return {expression_of(kind, parts, names)}"], names)


@kept
def converted_to(kind: types.Type) -> Any:
    """A device function that converts a value to *kind*: a number, or a tuple of as many numbers in the same places. Of
    a record in memory it makes a value of its own. Dates are of that type already."""
    numbers = list(dict.fromkeys(leaf_kinds(kind)))
    names = {f"kind_{place}": number for place, number in enumerate(numbers)}
    parts = (
        path if is_date(number) else f"kind_{numbers.index(number)}({path})"
        for number, path in zip(leaf_kinds(kind), paths_of(kind), strict=True)
    )
    return function_of("value", [f"return {expression_of(kind, parts, names)}"], names)
