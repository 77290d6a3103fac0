"""Device arrays filled, converted and listed, and what is said of arithmetic."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hip_runtime as rt
from hip_runtime.errors import ArrayError, ArrayTypeError, CopyError, EventTypeError


def same(found: Any, expected: Any) -> None:
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("shape", [(), 0, 1, 7, 1000, (3, 0), (5, 3), (2, 3, 4)], ids=str)
@pytest.mark.parametrize("dtype", ["f8", "i4", "?", "c8", "M8[D]"])
def test_new_arrays(shape: Any, dtype: str) -> None:
    for order in "CF":
        for make, host in ((rt.zeros, np.zeros), (rt.ones, np.ones)):
            if dtype[0] == "M":
                continue
            made = make(shape, dtype, order)
            same(made.copy_to_host(), host(shape, dtype))
            assert made.is_c_contiguous() if order == "C" else made.is_f_contiguous()
    value = np.ones((), dtype)[()] if dtype[0] != "M" else np.datetime64("2024-02-29")
    same(rt.full(shape, value).copy_to_host(), np.full(shape, value))
    same(rt.full(shape, value, dtype).copy_to_host(), np.full(shape, value, dtype))


def test_defaults_are_numpys() -> None:
    assert rt.zeros(2).dtype == rt.ones(2).dtype == np.zeros(2).dtype
    assert rt.full(2, 3).dtype == np.full(2, 3).dtype
    assert rt.full(2, 3j).dtype == np.full(2, 3j).dtype
    stream = rt.Stream()
    assert rt.full(2, 3, stream=stream).stream is stream
    with pytest.raises(ArrayError):
        rt.zeros(-1)


def test_fill() -> None:
    host = np.arange(60.0).reshape(3, 4, 5)
    for index in ((), np.s_[::2], np.s_[:, 1], np.s_[..., ::-1], np.s_[1:1], np.s_[1, 2, 3:4]):
        array, expected = rt.to_device(host), host.copy()
        array[index].fill(7)
        expected[index] = 7
        same(array.copy_to_host(), expected)
    record = np.array((3, 0.5), [("a", "i4"), ("b", "f8")])
    array = rt.to_device(np.zeros(5, record.dtype))
    array.fill(record)
    same(array.copy_to_host(), np.full(5, record))
    with pytest.raises(CopyError, match="is read-only"):
        array.read_only().fill(record)
    with pytest.raises(ArrayError):
        rt.zeros(3).fill("text")


@pytest.mark.parametrize("size", [1, 2, 21_845, 21_846, 65_537, 200_000])
def test_fill_of_many_elements(size: int) -> None:
    """Some go to the device in one copy, 64 KiB of them, and are doubled there; what is around them stays."""
    pair = np.array((3, 9), [("a", "u1"), ("b", "u2")])
    for given in (np.uint8(7), np.float32(-0.0), np.void(b"abc"), pair):
        kind, stream = given.dtype, rt.Stream()
        around = np.zeros(size + 2, kind)
        array = rt.to_device(around)
        array[1:-1].fill(given)
        around[1:-1] = given
        assert array.copy_to_host().tobytes() == around.tobytes()
        array[1:-1].fill(rt.to_device(np.zeros(1, kind)), stream)
        around[1:-1] = np.zeros(1, kind)
        assert array.copy_to_host(stream=stream).tobytes() == around.tobytes()


def test_arrays_repeated_to_fill_a_shape() -> None:
    for shape, value in ((3, [1, 2, 3]), ((2, 3), [1, 2, 3]), ((2, 2), np.array([[1], [2]])), (2, np.array([4]))):
        same(rt.full(shape, value).copy_to_host(), np.full(shape, value))
    same(rt.full((2, 2), rt.to_device(np.arange(2))).copy_to_host(), np.full((2, 2), np.arange(2)))
    with pytest.raises(CopyError, match=r"from shape \(2,\) into shape \(3,\)"):
        rt.full(3, [1, 2])
    for several in ([1, 2], np.arange(2.0), rt.to_device(np.arange(2.0))):
        with pytest.raises(
            CopyError, match=r"fill takes one number, not an array of shape \(2,\): array\[...\] = value"
        ):
            rt.zeros(3).fill(several)


def test_what_is_no_device_array_to_copy_to() -> None:
    with pytest.raises(ArrayTypeError, match=r"to is of type ndarray; it must be a device array"):
        rt.to_device(np.zeros(3), to=np.zeros(3))  # type: ignore[arg-type]


def test_what_is_no_event() -> None:
    event: Any = 3
    recorded = rt.Event()
    recorded.record()
    for wrong in (lambda: recorded.elapsed_time(event), lambda: rt.Stream().wait(event)):
        with pytest.raises(EventTypeError, match="is 3; it must be an event of"):
            wrong()


def test_elements_that_are_there() -> None:
    for host in (np.arange(3), np.arange(6.0).reshape(2, 3), np.arange(12).reshape(2, 2, 3)[:, ::-1], np.array(2)):
        array = rt.to_device(host)
        for value in (2, 2.0, 100, -1):
            assert (value in array) == (value in host)


def test_conversions() -> None:
    host = np.arange(6.0).reshape(2, 3) + 0.75
    for array, expected in ((rt.to_device(host), host), (rt.to_device(host).T, host.T), (rt.to_device(host)[:, ::2],
                            host[:, ::2])):  # fmt: skip
        for dtype in ("f4", "i8", "f8", "?"):
            converted = array.astype(dtype)
            same(converted.copy_to_host(), expected.astype(dtype))
            assert converted.address != array.address, "a copy, also of the same type"
        assert array.tolist() == expected.tolist()
    assert rt.full((), 3).tolist() == 3
    with pytest.raises(ArrayError):
        rt.zeros(3).astype(object)


ARITHMETIC = [
    operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
    operator.matmul, operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt,
    operator.le, operator.gt, operator.ge, operator.iadd, operator.imul,
]  # fmt: skip


@pytest.mark.parametrize("operation", ARITHMETIC, ids=lambda operation: operation.__name__)
def test_arithmetic_says_what_to_use(operation: Callable[[Any, Any], Any]) -> None:
    array = rt.to_device(np.arange(3))
    for operands in ((array, array), (array, 2), (2, array)):
        with pytest.raises(ArrayTypeError, match=r"has no operator .*: .*np.asarray\(array\).*vectorize.*CuPy"):
            operation(*operands)
    assert array.tolist() == [0, 1, 2]


@pytest.mark.parametrize("operation", [operator.neg, operator.pos, operator.invert, abs])
def test_arithmetic_of_one_says_what_to_use(operation: Callable[[Any], Any]) -> None:
    with pytest.raises(ArrayTypeError, match=r"has no operator .*: .*np.asarray\(array\).*hip.algorithms"):
        operation(rt.zeros(3))


def test_arithmetic_of_others_is_theirs() -> None:
    class Theirs:
        def __radd__(self, other: Any) -> str:
            return "theirs"

    array = rt.to_device(np.arange(3.0))
    assert array + Theirs() == "theirs"
    same(array + np.ones(3), np.arange(3) + 1.0)
    same(np.ones(3) + array, np.arange(3) + 1.0)
    assert np.sum(array) == 3
    assert array == array
    assert len({array, array}) == 1


def test_methods_of_numpys_arrays_are_told() -> None:
    array = rt.zeros(3)
    with pytest.raises(AttributeError, match=r"^a device array has no method sum: .*np.asarray\(array\)"):
        array.sum()
    assert not hasattr(array, "mean")
    with pytest.raises(AttributeError, match="'DeviceArray' object has no attribute 'smu'"):
        array.smu()
    if array.device.is_cpu:
        with pytest.raises(AttributeError, match="is in host memory"):
            array.__cuda_array_interface__  # noqa: B018 - the property's own words
