"""Rows of what kernels do not have: the error that says so, and what there is instead."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from tools.supported.model import FLOATS, row

SECTION = "What is refused"
TABLE = np.arange(4.0)


class Counter:
    def __init__(self) -> None:
        self.count = 0


@row(SECTION, "lists", refused="no memory to make lists", instead="a private array (`hip.local.array`), or a tuple")
def lists(x: Any) -> Any:
    values = [x, 2]
    values.append(3)
    return len(values)


@row(SECTION, "comprehensions", refused="no memory to make lists", instead="a loop into a private array")
def comprehensions(x: Any) -> Any:
    return len([i * x for i in range(3)])


@row(SECTION, "dictionaries", refused="no dictionaries", instead="an array, or a `match` statement")
def dictionaries(x: Any) -> Any:
    return {1: 2}.get(x, 0)


@row(
    SECTION,
    "sets, but to look for members in",
    refused="no sets",
    instead="an array of flags, or bits of an integer",
)
def sets(x: Any) -> Any:
    return len({1, x})


@row(
    SECTION,
    "objects of classes",
    refused="no objects of classes",
    instead="a record, a named tuple, or a type of your own",
)
def objects(x: Any) -> Any:
    return Counter().count + x


@row(SECTION, "`try` and `except`", refused="no try", instead="a test before the operation, or a result that says so")
def attempts(x: Any) -> Any:
    try:
        return 1 // x
    except ZeroDivisionError:
        return 0


@row(SECTION, "`with`", refused="no with", instead="nothing is held in a kernel that would have to be closed")
def contexts(x: Any) -> Any:
    with open("file") as file:
        return len(file.read()) + x


@row(
    SECTION,
    "text that is made while the kernel runs",
    refused="makes no text",
    instead="`print` makes text of its arguments",
)
def texts(x: Any) -> Any:
    return len(str(x) + "!")


@row(
    SECTION,
    "new arrays: `np.zeros`, `np.empty`, `a.copy()`",
    refused="makes a new array",
    instead="`hip.local.array`, or an argument",
)
def new_arrays(x: Any) -> Any:
    return np.zeros(3).size + x


@row(SECTION, "arithmetic of whole arrays that would need a new one", refused="makes a new array",
     instead="a loop, or a ufunc with an array for the result")  # fmt: skip
def array_arithmetic(x: Any) -> Any:
    return (TABLE + x).sum()


@row(SECTION, "writing to a captured array", refused="readonly", instead="pass it as an argument")
def constant_arrays(x: Any) -> Any:
    TABLE[0] = x
    return x


@row(
    SECTION,
    "`global` and `nonlocal` variables that are assigned to",
    refused="cannot assign to global",
    instead="an array of one element",
)
def global_variables(x: Any) -> Any:
    global TOTAL
    TOTAL = x
    return x


TOTAL = 0


@row(
    SECTION,
    "`input`, `eval` and what else is Python's own",
    FLOATS,
    refused="Python's own",
    instead="do it on the host",
)
def python_itself(x: Any) -> Any:
    return eval("x")


@row(
    SECTION,
    "`random` and `np.random`",
    FLOATS,
    refused="random cannot be used in a kernel",
    instead="`hip.random`, with a state for each thread",
)
def random_numbers(x: Any) -> Any:
    return random.random() + x
