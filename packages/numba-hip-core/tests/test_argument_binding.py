"""Launches like the last one are recognised and packed in one go; all others go the long way, with the same result."""

import numpy as np
import pytest
from numba import types

import numba_hip as hip
from numba_hip.arguments.argument_types import describe
from numba_hip.arguments.binding import binder
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.errors import KernelArgumentError


def fresh(signature=None):
    def add(out, step):
        i = hip.grid(1)
        if i < out.shape[0]:
            out[i] += step

    return hip.jit(signature)(add) if signature else hip.jit(add)


def recent(kernel, *args):
    configured = kernel[1, 8]
    configured(*args)
    return configured.ready.recent


def ones(dtype=np.float64, step=1):
    return hip.to_device(np.ones(8 * step, dtype))[::step]


@pytest.mark.parametrize("step", [1, 2])
@pytest.mark.parametrize("number", [2, 2.5, True, np.float32(0.5), np.int8(-3), np.uint64(2**63), np.bool_(1), 1j])
@pytest.mark.sample(3)
def test_the_bytes_are_those_of_the_packers(number, step):
    out = ones(np.complex128, step)
    ready = recent(fresh(), out, number)
    bound = ready.bind((out, number))
    assert bound == ready.loaded.pack_exactly((out, number))
    assert bound.startswith(describe(out).packed if step == 2 else describe(out).dense)
    np.testing.assert_array_equal(out.copy_to_host(), 1 + complex(number))


@pytest.mark.parametrize("other", [np.float32(1), 1, True, np.int64(1), "text", None, np.ones(1), [1.0]])
def test_other_types_are_not_recognised(other):
    out = ones()
    bind = recent(fresh(), out, 1.0).bind
    assert bind((out, 1.5)) is not None
    assert bind((out, other)) is None
    assert bind((other, 1.0)) is None


def test_other_arrays_are_not_recognised():
    bind = recent(fresh(), ones(), 1.0).bind
    new = ones()
    assert bind((new, 1.0)) is None, "nothing derived from it yet"
    known = describe(new)
    assert bind((new, 1.0)).startswith(known.dense)
    for other in (ones(np.float32), ones(step=2), ones().read_only(), ones().reshape(2, 4)):
        assert describe(other).code != known.code
        assert bind((other, 1.0)) is None
    assert bind((new,)) is None
    assert bind((new, 1.0, 1.0)) is None


def test_arrays_behind_padding():
    @hip.jit("void(int8, float64[:], boolean, float64[::1])")
    def copy(shift, source, negative, out):
        i = hip.grid(1)
        if i < out.size:
            out[i] = -source[i + shift] if negative else source[i + shift]

    source, out = hip.to_device(np.arange(20.0)), hip.to_device(np.zeros(8))
    for shift, negative in ((1, False), (2, True), (12, False)):
        ready = recent(copy, shift, source, negative, out)
        args = shift, source, negative, out
        assert ready.bind(args) == ready.loaded.pack_exactly(args)
        np.testing.assert_array_equal(out.copy_to_host(), (np.arange(8.0) + shift) * (-1 if negative else 1))


def test_numbers_that_do_not_fit():
    kernel, out = fresh("void(float64[:], int32)"), ones()
    ready = recent(kernel, out, 3)
    assert ready.bind((out, 2**31)) is None
    assert ready.bind((out, 2**63)) is None
    with pytest.raises(KernelArgumentError, match="'step'"):
        kernel[1, 8](out, 2**31)
    kernel[1, 8](out, -1)
    np.testing.assert_array_equal(out.copy_to_host(), 3)


def test_large_integers_are_unsigned():
    kernel, out = fresh(), ones(np.uint64)
    for step in (1, 2**63, 5, 2**63):
        kernel[1, 8](out, step)
    np.testing.assert_array_equal(out.copy_to_host(), 7)


def test_launches_by_turns():
    kernel = fresh()
    outs = [ones(dtype, step) for dtype in (np.float32, np.float64, np.int32) for step in (1, 3)]
    for _ in range(3):
        for out in outs:
            for number in (1, 2.0, np.float32(3)):
                kernel[1, 8](out, number)
                kernel[1, 8](out, number)
    for out in outs:
        np.testing.assert_array_equal(out.copy_to_host(), 1 + 3 * 2 * 6)


def test_a_launch_like_the_last_one_goes_the_short_way(monkeypatch):
    kernel, out, seen = fresh(), ones(), []
    kernel[1, 8](out, 1.0)
    monkeypatch.setattr(Dispatcher, "_launch_unlike", lambda *args: pytest.fail("not recognised"))
    configured = kernel[1, 8]
    configured.pre_launch_callbacks.append(lambda code, launched: seen.append((code.name, launched)))
    configured(out, 2.0)
    kernel[1, 8](out, step=4.0)
    name = next(iter(configured.ready.values())).loaded.code.name
    assert seen == [(name, configured)] * 2
    np.testing.assert_array_equal(out.copy_to_host(), 8)


def test_without_arguments():
    @hip.jit
    def nothing():
        pass

    nothing[1, 1]()
    ready = nothing[1, 1].ready.recent
    assert ready.bind(()) == b""
    assert ready.bind((1,)) is None


def test_tuples_are_left_to_the_long_way():
    assert binder((7,), (types.UniTuple(types.int64, 2),), (lambda value: b"",)) is None
