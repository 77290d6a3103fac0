"""Makes random calls, and compares what they give, and all memory around it, with what they have to give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

import numba_hip as hip
from numba_hip import algorithms
from tools.fuzz_algorithms import counts, orders, scans, selections
from tools.fuzz_algorithms.calls import Call, Draw, Result
from tools.fuzz_algorithms.forms import ITERATORS, Placed, fetch, filler, iterate, place, place_between
from tools.fuzz_algorithms.inputs import LARGE, SIZES, draw_size
from tools.fuzz_algorithms.operators import Values
from tools.fuzz_algorithms.paths import draw_paths, forced

MAKERS: tuple[tuple[Callable[[Draw], Call], tuple[str, ...]], ...] = (
    (scans.make_reduce, ("scan",)),
    (scans.make_transform_reduce, ("scan",)),
    (scans.make_scan, ("scan",)),
    (scans.make_segmented_reduce, ("scan",)),
    (scans.make_segmented_scan, ("scan",)),
    (scans.make_scan_by_key, ("scan",)),
    (scans.make_reduce_by_key, ("scan",)),
    (selections.make_select, ("scan",)),
    (selections.make_unique, ("scan",)),
    (orders.make_sort, ("sort", "merge", "scan")),
    (orders.make_sort, ("sort",)),
    (orders.make_segmented_sort, ("sort", "scan")),
    (orders.make_topk, ("topk", "sort")),
    (orders.make_merge, ("merge",)),
    (orders.make_searchsorted, ("merge",)),
    (counts.make_histogram, ("histogram",)),
    (counts.make_gather, ("scan",)),
    (counts.make_scatter, ("scan",)),
    (counts.make_transform, ("scan",)),
)
"""What makes calls, and the kinds of ways that their algorithms may take."""


class Mismatch(AssertionError):
    """A call that did not give what it has to: the *call*, and what was wrong."""

    def __init__(self, call: Call, told: str) -> None:
        super().__init__(told)
        self.call = call


def make_call(seed: int, trial: int, size: int | None = None) -> Call:
    """Call *trial* of those of *seed*, which differ in values and sizes alone, with *size* values if given."""
    shape, data = Random(seed), np.random.default_rng([seed, trial])
    make, kinds = shape.choice(MAKERS)
    paths, lanes = draw_paths(shape, kinds), shape.choice([None, None, None, 32])
    stream, workspace = shape.random() < 0.3, shape.random() < 0.3
    chosen = draw_size(data, large=trial % 8 == 5)
    call = make(Draw(shape, data, chosen if size is None else size))
    call.paths, call.lanes, call.stream, call.workspace = paths, lanes, stream, workspace
    return call


def check_calls(seed: int, trials: int) -> Call:
    """Make *trials* calls of *seed* and return one of them; raises `Mismatch` for the smallest that fails."""
    call = make_call(seed, 0)
    with environment(call) as around:
        for trial in range(trials):
            call = make_call(seed, trial)
            try:
                check_call(call, around)
            except Mismatch:
                raise reduce_failure(seed, trial) from None
    return call


def reduce_failure(seed: int, trial: int) -> Mismatch:
    """The failure of the smallest call like *trial* of *seed* that fails."""
    told = Mismatch(make_call(seed, trial), "fails behind the calls before it alone")
    for size in (*SIZES, *LARGE, None):
        call = make_call(seed, trial, size)
        try:
            with environment(call) as around:
                check_call(call, around)
        except Mismatch as error:
            return error
    return told


@dataclass
class Around:
    """The stream that calls are made in, if any."""

    stream: Any


@contextmanager
def environment(call: Call) -> Iterator[Around]:
    """The paths, the waves, the stream and the workspace of *call*, for all calls of its seed."""
    with forced(call.paths, call.lanes), algorithms.Workspace() if call.workspace else nullcontext():
        yield Around(hip.stream() if call.stream else None)


def check_call(call: Call, around: Around) -> None:
    """Make *call*; raises `Mismatch` if a result is wrong, or memory that it has nothing to do with has changed."""
    placed, passed = place_sources(call)
    outs = [place_result(call, result, placed) for result in call.results]
    found = place(np.full(1, -1, np.int64), call.found) if call.found else None
    options = {name: value for name, value in call.options.items() if not name.startswith("_")}
    options |= {name: source for name, source in passed.items() if name not in call.positional}
    if any(outs):
        given = tuple(None if out is None else out.view for out in outs)
        options["out"] = given if call.returns == "pair" else given[0]
    if found is not None:
        options["found"] = found.view
    hip.synchronize()
    try:
        returned = invoke(call, passed, options, around)
    except Exception as error:
        raise Mismatch(call, f"{type(error).__name__}: {error}") from error
    hip.synchronize()
    check_returned(call, returned, outs, found)
    for one in (*placed.values(), *outs, found):
        if one is not None:
            compare(call, "what is around an array", fetch(one.base), one.mirror)


def invoke(call: Call, passed: dict[str, Any], options: dict[str, Any], around: Around) -> Any:
    """What the algorithm returns, when it is done."""
    function = getattr(algorithms, call.algorithm)
    positional = [passed[name] for name in call.positional]
    if call.algorithm == "transform":
        positional.insert(0, options.pop("function"))
    if around.stream is not None:
        options["stream"] = around.stream
    returned = function(*positional, **options)
    if around.stream is not None:
        around.stream.synchronize()
    return returned


def place_sources(call: Call) -> tuple[dict[str, Placed], dict[str, Any]]:
    """The arrays that the sources of *call* are in, and what is passed for each source."""
    placed: dict[str, Placed] = {}
    passed: dict[str, Any] = {}
    shifted = {result.over for result in call.results if result.form == "shifted"}
    for name, source in call.sources.items():
        if source.form in ITERATORS:
            passed[name] = iterate(source.values, source.form)
            continue
        placed[name] = (
            place_between(source.values, source.form) if name in shifted else place(source.values, source.form)
        )
        passed[name] = placed[name].view
    return placed, passed


def place_result(call: Call, result: Result, placed: dict[str, Placed]) -> Placed | None:
    """The array that *result* goes to, or None; what it has to hold is in its mirror."""
    if not result.form:
        return None
    if result.over:
        under = placed[result.over]
        made = under if result.form == "same" else under.shifted(result.values.size + result.room)
    else:
        made = place(filler(result.values.size + result.room, result.values.dtype), result.form)
    made.expected[: result.values.size] = result.values
    return made


def check_returned(call: Call, returned: Any, outs: list[Placed | None], found: Placed | None) -> None:
    """Raise `Mismatch` if what *call* returned is not what it has to be."""
    number = call.options["_chosen"] if call.returns == "partition" else call.results[0].values.size
    if found is not None:
        found.expected[0] = number
    if call.returns == "number":
        if outs[0] is None:
            made, wanted = np.array([returned], getattr(returned, "dtype", None)), call.results[0].values
            compare(call, "the result", named_as(made, wanted), wanted)
        elif returned is not None:
            raise Mismatch(call, f"returned {returned!r} beside out")
        return
    if call.returns == "partition":
        returned, told = returned
        if found is None and told != number:
            raise Mismatch(call, f"chosen are {told} instead of {number}")
    both = returned if call.returns == "pair" else (returned,)
    on_device = any(not source.form.startswith("host") for source in call.sources.values())
    for which, (one, result, out) in enumerate(zip(both, call.results, outs, strict=True)):
        values, size = fetch(one), result.values.size
        if out is None and any(source.form == "zipped" for source in call.sources.values()):
            values = named_as(values, result.values)
        if out is None and hip.is_device_array(one) != on_device:
            raise Mismatch(call, f"result {which} is on the {'host' if on_device else 'device'}")
        has_all = call.counted and found is None if out is not None else not call.counted or found is None
        if not has_all:
            values = values[:size]
        compare(call, f"result {which}", values, result.values)


def named_as(values: Values, others: Values) -> Values:
    """*values* with the names of the fields of *others*, if these are tuples of the same numbers: f0, f1, ..."""
    names = others.dtype.names or ()
    tuples = np.dtype([(f"f{place}", others.dtype[name]) for place, name in enumerate(names)])
    return values.view(others.dtype) if names and values.dtype == tuples else values


def compare(call: Call, what: str, found: Values, expected: Values) -> None:
    """Raise `Mismatch` if *found* has another dtype, size or bits than *expected*."""
    if found.dtype != expected.dtype or found.shape != expected.shape:
        shapes = f"{found.dtype}{found.shape} instead of {expected.dtype}{expected.shape}"
        raise Mismatch(call, f"{what} is {shapes}")
    rows = (np.ascontiguousarray(one).view("u1").reshape(len(one), one.dtype.itemsize) for one in (found, expected))
    wrong = np.flatnonzero((next(rows) != next(rows)).any(axis=1)) if len(found) else np.zeros(0, int)
    if wrong.size:
        shown = ", ".join(f"{place}: {found[place]} instead of {expected[place]}" for place in wrong[:4].tolist())
        raise Mismatch(call, f"{what} differs at {wrong.size} of {len(found)} places: {shown}")
