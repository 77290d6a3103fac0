"""Loops over ``range``, and indices that may be negative: as in Python, wherever LLVM may think that they are not."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numba import int32, int64

import numba_hip as hip

MOST = 24
LIMITS = {np.int32: 2**31, np.int64: 2**63}


@hip.jit
def collect(start, stop, step, numbers, count):
    found = 0
    for number in range(start, stop, step):
        if found == numbers.size:
            break
        numbers[found] = number
        found += 1
    count[0] = found


def numbers_of(kind, start, stop, step):
    numbers, count = np.zeros(MOST, kind), np.zeros(1, np.int64)
    collect[1, 1](kind(start), kind(stop), kind(step), numbers, count)
    return numbers[: count[0]].tolist()


def length_of(kind, start, stop, step):
    """As `len` in the type of the range, in which the longest ones wrap around."""
    length, limit = max(0, -((start - stop) // step)), LIMITS[kind]
    return length - 2 * limit if length >= limit else length


def bounds(kind):
    limit = LIMITS[kind]
    near = st.sampled_from([-limit, 0, limit - 1]).flatmap(lambda at: st.integers(at - 20, at + 20))
    return st.one_of(near, st.integers(-limit, limit - 1)).filter(lambda number: -limit <= number < limit)


@settings(max_examples=150, deadline=None)
@given(st.data(), st.sampled_from([np.int32, np.int64]))
def test_a_range_has_the_numbers_that_it_has_in_python(data, kind):
    start, stop = data.draw(bounds(kind)), data.draw(bounds(kind))
    step = data.draw(bounds(kind).filter(bool))
    assert numbers_of(kind, start, stop, step) == list(range(start, stop, step)[:MOST])


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_ranges_that_reach_the_limits_of_their_type_end(kind):
    low, high = -LIMITS[kind], LIMITS[kind] - 1
    for start, stop, step in [
        (high - 3, high, 1), (high - 5, high, 2), (high - 1, high, high), (low, high, high), (low, high, high // 2 + 1),
        (low + 3, low, -1), (low + 5, low, -2), (high, low, low), (high, low, low // 2), (low, low, 1),
        (high, high, -1), (high, low, 1), (low, high, -1), (low, low + 1, high),
    ]:  # fmt: skip
        assert numbers_of(kind, start, stop, step) == list(range(start, stop, step)[:MOST]), (start, stop, step)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_ranges_have_the_length_that_they_have_in_python(kind):
    @hip.jit
    def measure(starts, stops, steps, lengths):
        i = hip.grid(1)
        lengths[i] = len(range(starts[i], stops[i], steps[i]))

    low, high = -LIMITS[kind], LIMITS[kind] - 1
    ranges = [
        (0, 10, 3), (10, 0, -3), (0, 0, 1), (5, 1, 1), (1, 5, -1), (0, low, -1), (0, low, low), (low, high, high),
        (low, 0, 1), (high, low, low), (high, low, -2), (low, high, 2), (-1, low, -1), (low, low, -1),
    ]  # fmt: skip
    lengths = np.zeros(len(ranges), np.int64)
    measure[1, len(ranges)](*(np.array(bounds, kind) for bounds in zip(*ranges, strict=True)), lengths)
    assert lengths.tolist() == [length_of(kind, *bounds) for bounds in ranges]


def test_a_step_of_zero_is_an_error():
    kernel = hip.jit(exceptions=True)(collect.py_func)
    with pytest.raises(ValueError, match="range\\(\\) arg 3 must not be zero"):
        kernel[1, 1](1, 5, 0, np.zeros(MOST), np.zeros(1, np.int64))


@hip.jit
def count_down(source, target):
    for i in range(source.size - 1, -1, -1):
        target[source.size - 1 - i] = source[i]
    for i in range(-source.size, 0):
        target[source.size + i] += source[i]


def test_ranges_of_numbers_below_zero_are_indices_from_the_end():
    source, target = np.arange(1.0, 8.0), np.zeros(7)
    count_down[1, 1](source, target)
    assert target.tolist() == (source[::-1] + source).tolist()


@hip.jit
def neighbours(source, target):
    i = hip.threadIdx.x + hip.blockIdx.x * hip.blockDim.x
    if i < source.size:
        target[i, 0] = source[i - 1]
        target[i, -1] = source[-1 - i]
        target[i, 1] = source[i - source.size]
        for k in range(2):
            target[i, 2] += source[i - k] * source[k - i]


@settings(max_examples=20, deadline=None)
@given(st.integers(2, 70), st.sampled_from([1, 7, 64]))
@example(70, 7)
def test_indices_below_zero_count_from_the_end(size, threads):
    source, target = np.arange(3.0, 3.0 + size), np.zeros((size, 4))
    neighbours[-(-size // threads), threads](source, target)
    i = np.arange(size)
    products = source * source[-i] + source[i - 1] * source[(1 - i) % size]
    wanted = [source[i - 1], source[i - size], products, source[::-1]]
    assert target.tolist() == np.stack(wanted, axis=1).tolist()


@hip.jit
def grid_stride(source, target):
    for i in range(hip.grid(1), source.size, hip.gridsize(1)):
        target[i] += source[i] + source[i - 1]


def test_loops_over_a_whole_grid():
    source, target = np.arange(1000.0), np.zeros(1000)
    grid_stride[3, 32](source, target)
    assert target.tolist() == (source + np.roll(source, 1)).tolist()


@hip.jit(device=True)
def last(numbers):
    found = -1
    for number in numbers:
        found = number
    return found


@hip.jit
def pass_ranges(target):
    target[0] = last(range(7))
    target[1] = last(range(int32(3), int32(20), int32(4)))
    target[2] = last(range(int64(9), 2, -3))
    target[3] = len(range(5, 17, 5))
    for position, number in enumerate(range(40, 43)):
        for left, right in zip(range(3), range(number, 100)):  # noqa: B905 -- Numba's has no strict
            target[4 + position] += left * right


def test_ranges_are_values():
    target = np.zeros(7, np.int64)
    pass_ranges[1, 1](target)
    pairs = [sum(left * (number + left) for left in range(3)) for number in range(40, 43)]
    assert target.tolist() == [6, 19, 3, 3, *pairs]


UNSIGNED = [
    (2**63, 2**63 - 3, -1), (2**63 + 2, 2**63 - 3, -2), (5, 1, -1), (2**63 - 2, 2**63 + 3, 1), (2**63 + 1, 0, -(2**62)),
    (0, 2**64 - 1, 2**62), (2**64 - 3, 2**64 - 1, 2), (3, 3, 1), (2**63, 5, 1), (5, 2**63, -1), (1, 0, -(2**63) + 1),
    (2**64 - 2, 0, -(2**63) + 1),
]  # fmt: skip


def test_ranges_of_numbers_without_a_sign():
    """Their distance may be more than a number with one can be; the step has one."""

    @hip.jit
    def kernel(starts, stops, steps, out, lengths):
        i = hip.grid(1)
        if i < starts.size:
            lengths[i] = len(range(starts[i], stops[i], steps[i]))
            total, number = np.uint64(0), 0
            for value in range(starts[i], stops[i], steps[i]):
                number += 1
                total = total * np.uint64(31) + value
            out[i, 0], out[i, 1] = total, number

    starts, stops = (np.array([case[part] for case in UNSIGNED], np.uint64) for part in range(2))
    out, lengths = np.zeros((len(UNSIGNED), 2), np.uint64), np.zeros(len(UNSIGNED), np.int64)
    kernel[1, 32](starts, stops, np.array([case[2] for case in UNSIGNED], np.int64), out, lengths)
    for case, (total, number), length in zip(UNSIGNED, out.tolist(), lengths.tolist(), strict=True):
        values = range(*case)
        expected = 0
        for value in values:
            expected = (expected * 31 + value) % 2**64
        assert (total, number, length) == (expected, len(values), len(values)), case
