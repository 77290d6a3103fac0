"""One random call of an algorithm: what it gets, and what it has to give."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import numpy as np

from tools.fuzz_algorithms.forms import ARRAYS, ITERATORS, SOURCES
from tools.fuzz_algorithms.operators import Values

Returned = Literal["array", "pair", "number", "partition"]


@dataclass
class Array:
    """*values* that are passed in an array or iterator of a form."""

    values: Values
    form: str


@dataclass
class Result:
    """What an array of results has to hold. It is given by the caller in a *form*; "" for one that the algorithm
    makes, "same" for the source *over* itself, and "shifted" for another part of its memory."""

    values: Values
    form: str = ""
    over: str = ""
    room: int = 0
    """How many elements an array that is given has behind the results."""


@dataclass
class Call:
    """A call of *algorithm* with *sources* and other *options* by name, which returns *results*."""

    algorithm: str
    sources: dict[str, Array]
    options: dict[str, Any]
    results: list[Result]
    returns: Returned = "array"
    found: str = ""
    """Whether the number of results is *counted*, and the form of the array that it goes to, if any."""
    counted: bool = False
    paths: tuple[str, ...] = ()
    lanes: int | None = None
    stream: bool = False
    workspace: bool = False
    positional: tuple[str, ...] = field(default=())
    """The sources that have no name."""


@dataclass
class Draw:
    """Where calls come from: *shape* tells what has to be compiled, and is the same for several calls; *data* tells
    the values, of which there are *size*."""

    shape: Random
    data: np.random.Generator
    size: int

    def form(self) -> str:
        """How a source is passed."""
        return self.shape.choice(SOURCES)

    def array_form(self) -> str:
        """How a source is passed that is an array."""
        return self.shape.choice(ARRAYS)

    def source(self, values: Values) -> Array:
        """*values* in some form; of iterators, records have the one of all their fields."""
        form = self.form()
        is_zipped = values.dtype.names and form in (*ITERATORS, "host", "device")
        return Array(values, "zipped" if is_zipped else form)

    def limit(self, values: Values, options: dict[str, Any]) -> Values:
        """*values*, or these and others behind them, with *options* that say how many are used."""
        if self.shape.random() < 0.7:
            return values
        options["count"] = values.size
        return np.concatenate([values, np.repeat(values[:1], int(self.data.integers(0, 70)))])

    def result(self, values: Values, over: dict[str, Array] | None = None, extra: int | None = None) -> Result:
        """*values* in an array of some form, which may be one of those *over* which results may go, or overlap it."""
        choice, form = self.shape.random(), self.array_form()
        room = int(self.data.integers(0, 4)) if extra is None else extra
        if choice < 0.3:
            return Result(values)
        name = self.shape.choice(sorted(over)) if over else ""
        if over and choice < 0.6 and over[name].form in ARRAYS and over[name].values.dtype == values.dtype:
            if choice < 0.5 and over[name].values.size == values.size + (extra or 0):
                return Result(values, "same", name, extra or 0)
            return Result(values, "shifted", name, extra or 0)
        return Result(values, form, room=room)


def cut_runs(keys: Values) -> Values:
    """Where runs of equal *keys* begin."""
    if not keys.size:
        return np.zeros(0, np.int64)
    return np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))


def combine_parts(
    accumulate: Any, values: Values, starts: Values, init: Any = None, *, inclusive: bool = True
) -> Values:
    """What *accumulate* makes of each part of *values*, the parts beginning at *starts*; *init* is before each."""
    made = np.empty_like(values)
    bounds = np.unique(np.concatenate([[0], starts, [values.size]]))
    for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        made[begin:end] = accumulate_with(accumulate, values[begin:end], init, inclusive=inclusive)
    return made


def accumulate_with(accumulate: Any, values: Values, init: Any, *, inclusive: bool = True) -> Values:
    """What *accumulate* makes of *init*, if given, and *values*."""
    if init is None:
        return np.asarray(accumulate(values))
    joined = np.concatenate([np.array([init], values.dtype), values])
    through = accumulate(joined)
    return np.asarray(through[1:] if inclusive else through[:-1])
