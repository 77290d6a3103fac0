"""Kernels whose threads leave loops one after another, so that the last ones run the rest alone on the CPU device."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from numba import hip, int32, int64

from hip_runtime import config as runtime_config
from hip_runtime.drivers.cpu.vectorize import gang_function

COUNT = 400


@hip.jit
def visit(starts, counts):
    """How many nodes of a tree whose children follow from numbers a search with a stack visits."""
    i = hip.grid(1)
    if i < starts.size:
        stack = hip.local.array(16, int64)
        stack[0] = starts[i]
        height, count = 1, 0
        while height > 0:
            height -= 1
            node = stack[height]
            count += 1
            if node > 3 and height < 13:
                if node % 2 == 0:
                    stack[height] = node // 2
                    height += 1
                if node % 3 == 0:
                    stack[height] = node // 3
                    height += 1
                if node % 5 < 2:
                    stack[height] = node // 4
                    height += 1
        counts[i] = count


def count_visits(start: int) -> int:
    stack, count = [start], 0
    while stack:
        node = stack.pop()
        count += 1
        if node > 3 and len(stack) < 13:
            stack += [node // 2] * (node % 2 == 0) + [node // 3] * (node % 3 == 0) + [node // 4] * (node % 5 < 2)
    return count


@hip.jit
def sort_digits(starts, counts):
    """The digits of a number in order, by insertion to an array, as a number again."""
    i = hip.grid(1)
    if i < starts.size:
        digits = hip.local.array(20, int32)
        rest, count = starts[i], 0
        while rest > 0:
            digit, place = rest % 10, count
            while place > 0 and digits[place - 1] > digit:
                digits[place] = digits[place - 1]
                place -= 1
            digits[place] = digit
            rest //= 10
            count += 1
        number = 0
        for place in range(count):
            number = 10 * number + digits[place]
        counts[i] = number


@hip.jit
def count_remainders(starts, counts):
    """What the steps of Collatz leave when they are divided by three, added up in places that are known."""
    i = hip.grid(1)
    if i < starts.size:
        sums = hip.local.array(3, int64)
        for k in range(3):
            sums[k] = 0
        number = starts[i]
        while number > 1:
            for k in range(3):
                sums[k] += (number + k) % 3
            number = number // 2 if number % 2 == 0 else 3 * number + 1
        counts[i] = sums[starts[i] % 3] + 1000 * sums[starts[i] // 2 % 3]


def add_remainders(start: int) -> int:
    sums, number = [0, 0, 0], start
    while number > 1:
        sums = [total + (number + k) % 3 for k, total in enumerate(sums)]
        number = number // 2 if number % 2 == 0 else 3 * number + 1
    return sums[start % 3] + 1000 * sums[start // 2 % 3]


KERNELS: list[tuple[Any, Callable[[int], int]]] = [
    (visit, count_visits),
    (sort_digits, lambda number: int("".join(sorted(str(number))))),
    (count_remainders, add_remainders),
]


@contextmanager
def few_lanes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many lanes are few, for each loop of which the rest is written for single threads."""
    found: list[int] = []
    find = gang_function.find_loops_left_late

    def spy(*given: Any) -> Any:
        late = find(*given)
        found.extend(late.values())
        return late

    with monkeypatch.context() as patch:
        patch.setattr(gang_function, "find_loops_left_late", spy)
        yield found


@pytest.mark.parametrize(("kernel", "evaluate"), KERNELS, ids=lambda given: getattr(given, "__name__", ""))
@pytest.mark.parametrize("block", [64, 50])
@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_threads_go_on_alone(kernel: Any, evaluate: Callable[[int], int], block: int, dtype: type) -> None:
    starts = np.random.default_rng(9).integers(1, 4000, COUNT).astype(dtype)
    counts = np.zeros(COUNT, np.int64)
    kernel[-(-COUNT // block), block](starts, counts)
    np.testing.assert_array_equal(counts, list(map(evaluate, starts.tolist())))


@pytest.mark.cpu_device("loops are written twice for its lanes")
@pytest.mark.parametrize(("kernel", "is_late"), [(visit, True), (count_remainders, False)])
def test_loops_over_places_that_are_known_are_left_together(
    monkeypatch: pytest.MonkeyPatch, kernel: Any, is_late: bool
) -> None:  # fmt: skip
    """Registers may hold such an array. If a lane went on alone, its addresses would be known at run time only."""
    starts = np.random.default_rng(10).integers(1, 4000, 64)
    with few_lanes(monkeypatch) as found, runtime_config.cpu_form.scope("vectors"), runtime_config.cpu_width.scope(16):
        hip.jit(kernel.py_func)[1, 64](starts, np.zeros(64, np.int64))
    assert bool(found) is is_late
