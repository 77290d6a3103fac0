"""Launches with tuples: recognised as those before by the class and the type of each member, at all depths."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core.errors import TypingError

from hip_runtime import config
from hip_runtime.errors import ArrayError
from numba_hip.arguments.binding import argument_codes
from numba_hip.errors import KernelArgumentError

Pair = namedtuple("Pair", "first second")
Other = namedtuple("Other", "second first")


@hip.jit
def add(out, numbers):
    out[0] = numbers[0] + numbers[1]


@hip.jit
def from_fields(out, pair):
    out[0] = pair.first - pair.second


@hip.jit
def from_depths(out, scale, nested):
    i = hip.grid(1)
    if i < out.size:
        out[i] = scale * nested[0][0][i] + nested[1] + nested[0][1][0] * nested[0][1][1]


@pytest.mark.parametrize(
    "numbers",
    [
        (1, 2),
        (1.5, 2),
        (2, 1.5),
        (np.float32(1.5), True),
        (np.int8(-3), np.uint8(200)),
        (1 + 2j, 3),
        [1, 2],
    ],
    ids=str,
)
def test_numbers(numbers: Any) -> None:
    """Twice each, and launches with others between them."""
    numbers = tuple(numbers)
    kind = np.complex128 if isinstance(numbers[0], complex) else np.float64
    out = hip.to_device(np.zeros(1, kind))
    configured = add[1, 1]
    for given in (numbers, numbers, (7, 8), numbers, (7.0, 8.0), numbers):
        configured(out, given)
        assert out.copy_to_host()[0] == given[0] + given[1]


def test_fields_are_those_of_the_class() -> None:
    out = hip.to_device(np.zeros(1))
    configured = from_fields[1, 1]
    for _ in range(3):
        configured(out, Pair(5, 2))
        assert out.copy_to_host()[0] == 3
        configured(out, Other(5, 2))
        assert out.copy_to_host()[0] == -3


def test_arrays_at_any_depth() -> None:
    """Of other layouts, sizes and places, each launch reads its own."""
    configured = from_depths[1, 32]
    for size in (3, 3, 8):
        for make in (lambda x: x, lambda x: x[::2], lambda x: x[::-1]):
            host = np.random.default_rng(size).random(2 * size)
            out, source = hip.to_device(np.zeros(size)), make(hip.to_device(host))
            configured(out, 2.0, ((source, (3, 4.5)), 1))
            np.testing.assert_allclose(out.copy_to_host(), 2 * make(host)[:size] + 1 + 3 * 4.5)


def test_host_arrays_in_tuples_are_copied_as_before() -> None:
    host = np.arange(4.0)
    for source in (host, hip.to_device(host), host):
        out = np.zeros(4)
        from_depths[1, 32](out, 1.0, ((source, (0, 0.0)), 5))
        np.testing.assert_array_equal(out, host + 5)


def test_numbers_that_do_not_fit_are_errors_at_each_launch() -> None:
    out = hip.to_device(np.zeros(1))
    configured = add[1, 1]
    configured(out, (1, 2))
    configured(out, (1, 2))
    for given in ((1, 2**70), (1, "2")):
        with pytest.raises(KernelArgumentError, match="numbers"):
            configured(out, given)
    with pytest.raises(TypingError, match=r"argument 'numbers\[1\]' of kernel add is None"):
        configured(out, (1, None))
    configured(out, (3, 4))
    assert out.copy_to_host()[0] == 7


@hip.jit
def leave(out, nested):
    out[0] = 5


@pytest.mark.parametrize("depth", [1, 7, 8, 9, 12])
def test_tuples_in_one_another(depth: int) -> None:
    nested: Any = (2.5,)
    for _ in range(depth):
        nested = (nested, 1)
    for _ in range(2):
        out = np.zeros(1)
        leave[1, 1](out, nested)
        assert out[0] == 5


def test_tuples_that_are_too_deep_are_an_error() -> None:
    nested: Any = ()
    for _ in range(100_000):
        nested = (nested,)
    with pytest.raises(KernelArgumentError, match="argument 'nested' .* too many objects in one another"):
        leave[1, 1](hip.to_device(np.zeros(1)), nested)


def test_what_tells_a_type() -> None:
    array = hip.to_device(np.zeros(3))
    assert argument_codes((1, (2.0, np.int8(3)))) == [int, (tuple, float, np.int8)]
    assert argument_codes([Pair(1, (2,))]) == [(Pair, int, (tuple, int))]
    assert argument_codes(((array,),)) == argument_codes(((hip.to_device(np.ones(5)),),))
    assert argument_codes(((array,),)) != argument_codes(((array[::2],),))
    assert argument_codes(((),)) == [(tuple,)]
    assert argument_codes((None, (1, None))) == [type(None), (tuple, int, type(None))]
    for not_told in (2**63, np.zeros(3), "a", [2]):
        assert argument_codes((1, not_told)) is None
        assert argument_codes(((1, (not_told,)),)) is None


def test_launches_after_the_first_are_recognised_in_one_go() -> None:
    out = hip.to_device(np.zeros(4))
    configured = from_depths[1, 32]
    given = (out, 1.0, ((hip.to_device(np.arange(4.0)), (0, 0.0)), 5))
    configured(*given)
    recent = configured.ready.recent
    assert recent is not None
    assert recent.bind(given) == recent.loaded.pack_exactly(given)
    assert recent.bind((out, 1.0, ((out, (0, 0.0)), 5.0))) is None
    assert recent.bind((out, 1.0, ((out[::2], (0, 0.0)), 5))) is None
    assert recent.bind((out, 1.0, Pair((out, (0, 0.0)), 5))) is None


class Foreign:
    """An array of another library, which has no more than the interface."""

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        with config.cpu_array_interface.scope(True):
            return dict(self.array.__cuda_array_interface__)


@hip.jit
def copy_member(pair):
    i = hip.grid(1)
    if i < pair[0].size:
        pair[0][i] = pair[1][i]


@hip.jit
def copy_nested(nested):
    i = hip.grid(1)
    if i < nested[1].first.size:
        nested[1].first[i] = nested[0] * nested[1].second[i]


def test_arrays_of_other_libraries() -> None:
    out, values = hip.to_device(np.zeros(4)), hip.to_device(np.arange(4.0))
    for pair in ((Foreign(out), Foreign(values)), Pair(Foreign(out), Foreign(values)), (out, Foreign(values))):
        out.copy_to_device(np.zeros(4))
        copy_member[1, 4](pair)
        assert out.copy_to_host().tolist() == [0, 1, 2, 3]
    copy_nested[1, 4]((2, Pair(Foreign(out), Foreign(values))))
    assert out.copy_to_host().tolist() == [0, 2, 4, 6]
    host = np.arange(5.0, 9.0)
    copy_member[1, 4]((Foreign(out), host))
    assert out.copy_to_host().tolist() == host.tolist()
    assert copy_member.specialize((Foreign(out), Foreign(values))).signatures == [copy_member.signatures[0]]


def test_arrays_of_other_libraries_that_are_malformed() -> None:
    out = hip.to_device(np.zeros(4))
    with pytest.raises(ArrayError, match="interface"):
        copy_member[1, 4]((out, SimpleNamespace(__cuda_array_interface__={"shape": (4,)})))


@hip.jit
def take(a, out, b, numbers, c, more, d):
    out[0] = a + b + numbers[0] + numbers[1][0] + numbers[1][1] + c.real + c.imag + more[0].size + d


TAKEN: tuple[tuple[Any, ...], ...] = (
    (np.int8(-3), np.uint64(2**40), (True, (np.float32(0.5), np.int16(-7))), 1 - 4j, np.uint8(200)),
    (5, 2.5, (np.uint16(9), (1, 2)), np.complex64(3 + 1j), True),
    (2**62, np.float16(1.5), (Pair(1, 2)[0], Pair(0.25, 4)), 0j, np.int32(-1)),
)


@pytest.mark.parametrize("given", TAKEN, ids=range(len(TAKEN)))
def test_numbers_one_after_another_are_packed_as_alone(given: tuple[Any, ...]) -> None:
    a, b, numbers, c, d = given
    out, array = hip.to_device(np.zeros(1)), hip.to_device(np.zeros(11))
    args = (a, out, b, numbers, c, (array, ()), d)
    configured = take[1, 1]
    configured(*args)
    ready = configured.ready.recent
    assert ready.bind(args) == ready.loaded.pack_exactly(args)
    configured(*args)
    expected = float(a) + float(b) + sum(map(float, (numbers[0], *numbers[1]))) + c.real + c.imag + 11 + float(d)
    assert out.copy_to_host()[0] == pytest.approx(expected)
    for other in ((*numbers, 1), numbers[:1], (numbers[0], (*numbers[1], 1)), (numbers[0], list(numbers[1])), 1):
        assert ready.bind((a, out, b, other, c, (array, ()), d)) is None
    for place, wrong in ((0, "a"), (1, array[::2]), (2, None), (5, (array[::2], ())), (5, (array,)), (6, 1j)):
        assert ready.bind((*args[:place], wrong, *args[place + 1 :])) is None
    assert ready.bind(args[:-1]) is None
