"""Argument extensions: what they see, what they may put in its place, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba import hip
from numba.core import types
from numba.core.datamodel import models
from numba.extending import make_attribute_wrapper, register_model, typeof_impl

from hip_runtime.errors import HipRuntimeError
from numba_hip import config
from numba_hip.arguments.transfer_hints import wrap_arg
from numba_hip.errors import KernelArgumentError, OptionError


def add_one(values: Any) -> None:
    i = hip.grid(1)
    if i < values.size:
        values[i] += 1


class Seeing:
    """Notes what it sees, and changes nothing."""

    def __init__(self, name: str, seen: list[Any]) -> None:
        self.name, self.seen = name, seen

    def prepare_args(self, ty: Any, val: Any, stream: Any, retr: list[Any]) -> Any:
        self.seen.append((self.name, ty, val, stream))
        retr.append(lambda: self.seen.append(f"{self.name} is done"))
        return ty, val


class DefaultIn:
    """Host arrays are not copied back."""

    def prepare_args(self, ty: Any, val: Any, **_: Any) -> Any:
        return ty, wrap_arg(val, default=hip.In) if isinstance(val, np.ndarray) else val


@pytest.mark.parametrize("simulated", [False, True])
def test_extensions_see_each_argument_the_last_one_first(simulated: bool) -> None:
    seen: list[Any] = []
    with config.simulator.scope(simulated):
        kernel = hip.jit(add_one, extensions=[Seeing("first", seen)])
    kernel.extensions.append(Seeing("last", seen))
    host, stream = np.zeros(3), hip.stream()
    kernel[1, 32](host)
    kind = types.Array(types.float64, 1, "C")
    assert seen == [("last", kind, host, 0), ("first", kind, host, 0), "last is done", "first is done"]
    assert host.tolist() == [1, 1, 1]
    seen.clear()
    array = hip.to_device(host)
    kernel[1, 32, stream](array)
    stream.synchronize()
    assert seen[0][1:] == (types.Array(types.float64, 1, "C"), array, stream)
    assert array.copy_to_host().tolist() == [2, 2, 2]


@pytest.mark.parametrize("simulated", [False, True])
def test_an_extension_says_what_is_copied_back(simulated: bool) -> None:
    host = np.zeros(3)
    with config.simulator.scope(simulated):
        kernel = hip.jit(add_one, extensions=[DefaultIn()])
    kernel[1, 32](host)
    assert host.tolist() == [0, 0, 0]
    kernel[1, 32](hip.InOut(host))
    assert host.tolist() == [1, 1, 1]


def test_extensions_stay_with_a_kernel() -> None:
    host = np.zeros(3)
    kernel = hip.jit(add_one, extensions=[DefaultIn()])
    for same in (
        kernel.specialize(host),
        pickle.loads(pickle.dumps(kernel)),
        hip.jit("void(f8[:])", extensions=[DefaultIn()])(add_one),
    ):
        same[1, 32](host)
        assert host.tolist() == [0, 0, 0]


class Interval:
    """What users have, and kernels know as a pair of numbers."""

    def __init__(self, low: float, high: float) -> None:
        self.low, self.high = low, high


class IntervalType(types.Type):
    def __init__(self) -> None:
        super().__init__("Interval of a test")


interval_type = IntervalType()


@register_model(IntervalType)
class IntervalModel(models.StructModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, [("low", types.float64), ("high", types.float64)])


for name in ("low", "high"):
    make_attribute_wrapper(IntervalType, name, name)


@typeof_impl.register(Interval)
def typeof_interval(value: Any, context: Any) -> types.Type:
    return interval_type


class PassInterval:
    """An interval as its two numbers."""

    def prepare_args(self, ty: Any, val: Any, **_: Any) -> Any:
        if ty == interval_type:
            return types.UniTuple(types.float64, 2), (val.low, val.high)
        return ty, val


def test_a_type_of_ones_own_is_passed_as_what_it_is_made_of() -> None:
    @hip.jit(extensions=[PassInterval()])
    def width(interval: Any, out: Any) -> None:
        out[0] = interval.high - interval.low

    out = np.zeros(1)
    for low, high in ((1.0, 4.0), (2.0, 10.0)):
        width[1, 1](Interval(low, high), out)
        assert out[0] == high - low
    ((kind, _),) = width.signatures
    assert kind == interval_type


class Table:
    """A class that Numba knows nothing of."""

    def __init__(self, *columns: Any) -> None:
        self.columns = columns


class Columns(NamedTuple):
    first: Any
    second: Any


class PassTable:
    """A table as its columns: an extension may also just pass another value."""

    def prepare_args(self, ty: Any, val: Any, **_: Any) -> Any:
        return (ty, Columns(*val.columns)) if isinstance(val, Table) else (ty, val)


def test_a_class_without_a_type_is_passed_as_something_else() -> None:
    @hip.jit(extensions=[PassTable()])
    def add(table: Any) -> None:
        i = hip.grid(1)
        if i < table.first.size:
            table.first[i] += table.second[i]

    table = Table(np.arange(3.0), np.ones(3))
    add[1, 32](table)
    assert table.columns[0].tolist() == [1, 2, 3]


class Wrong:
    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def prepare_args(self, ty: Any, val: Any, **_: Any) -> Any:
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "'values': prepare_args of Wrong has to return a Numba type and a value, got None"),
        ((1, 2), "has to return a Numba type"),
        (
            (types.UniTuple(types.int64, 3), (1, 2, 3)),
            r"takes 2 numbers for .*passed values as UniTuple.*, which makes 3",
        ),
        ((None, object()), "'values'"),
    ],
)
def test_answers_that_cannot_be_change_nothing(answer: Any, message: str) -> None:
    host = np.zeros(3)
    with pytest.raises(KernelArgumentError, match=message):
        hip.jit(add_one, extensions=[Wrong(answer)])[1, 32](host)
    assert host.tolist() == [0, 0, 0]


class Failing:
    def prepare_args(self, ty: Any, val: Any, stream: Any, retr: list[Any]) -> Any:
        retr.append(lambda: pytest.fail("nothing was launched"))
        raise HipRuntimeError("no such column")


def test_what_an_extension_raises_is_raised() -> None:
    with pytest.raises(HipRuntimeError, match="no such column"):
        hip.jit(add_one, extensions=[Failing()])[1, 32](np.zeros(3))
    with pytest.raises(OptionError, match="a method prepare_args; a int has none"):
        hip.jit(extensions=[3])
    with pytest.raises(OptionError, match="a device function has none"):
        hip.jit(device=True, extensions=[DefaultIn()])
