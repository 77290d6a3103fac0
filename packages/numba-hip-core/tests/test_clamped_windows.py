"""Windows whose indices are held within an array by ``min`` and ``max``."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip

SHAPES = ((1, 1), (3, 200), (37, 64), (65, 130), (5, 31))
BLOCKS = ((16, 16), (32, 4), (64, 1), (8, 8))


@hip.jit
def box_by_constants(a, out):
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        total = 0
        for dy in range(-2, 3):
            for dx in range(-2, 3):
                total += a[min(max(y + dy, 0), height - 1), min(max(x + dx, 0), width - 1)]
        out[y, x] = total


@hip.jit
def box_by_radius(a, out, radius):
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        total = 0
        for dy in range(-radius, radius + 1):
            row = max(min(y + dy, height - 1), 0)
            for dx in range(-radius, radius + 1):
                column = max(min(x + dx, width - 1), 0)
                if dy == 0 or a[row, column] % 2 == 0:
                    total += a[row, column]
                else:
                    total -= a[row, column]
        out[y, x] = total


@hip.jit
def mirrored(a, out):
    i = hip.grid(1)
    n = a.size
    if i < n:
        out[i] = a[max(n - 1 - i - 3, 0)] + 2 * a[min(n - 1 - i + 2, n - 1)]


@hip.jit
def within_data(a, limits, out):
    i = hip.grid(1)
    if i >= a.size:
        return
    low, high = limits[0], limits[1]
    at = min(max(np.int32(i) - 5, low), high)
    out[i] = a[at]
    if a[i] > 50:
        out[i] += a[min(i + 1, a.size - 1)]


@hip.jit
def before_and_behind(a, out):
    i = hip.grid(1)
    if i < a.size:
        out[i] = a[i - 1] - a[i - 2]
        if i != 0:
            out[i] += 2 * a[i - 1]


def integers(shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 100, shape).astype(dtype)


def window(a: np.ndarray[Any, Any], dy: int, dx: int) -> np.ndarray[Any, Any]:
    rows = np.clip(np.arange(a.shape[0]) + dy, 0, a.shape[0] - 1)
    columns = np.clip(np.arange(a.shape[1]) + dx, 0, a.shape[1] - 1)
    return a.astype(np.int64)[np.ix_(rows, columns)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.sample(1)
def test_boxes(block: tuple[int, int], order: Any, dtype: Any) -> None:
    for shape in SHAPES:
        a = np.asarray(integers(shape, dtype), order=order)
        grid = tuple(-(-extent // threads) for extent, threads in zip(shape[::-1], block, strict=True))
        out = np.zeros(shape, np.int64)
        box_by_constants[grid, block](a, out)
        reach = range(-2, 3)
        np.testing.assert_array_equal(out, sum(window(a, dy, dx) for dy in reach for dx in reach))
        for radius in (0, 1, 4):
            out = np.zeros(shape, np.int64)
            box_by_radius[grid, block](a, out, radius)
            reach = range(-radius, radius + 1)
            parts = [(dy, window(a, dy, dx)) for dy in reach for dx in reach]
            expected = sum(np.where((dy == 0) | (part % 2 == 0), part, -part) for dy, part in parts)
            np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("length", [1, 2, 5, 64, 100, 1000])
@pytest.mark.sample(4)
def test_rows_from_the_end_and_limits_in_memory(length: int) -> None:
    a, index = integers(length, np.int64), np.arange(length)
    out = np.zeros_like(a)
    mirrored[-(-length // 64), 64](a, out)
    back = length - 1 - index
    np.testing.assert_array_equal(out, a[np.maximum(back - 3, 0)] + 2 * a[np.minimum(back + 2, length - 1)])
    for low, high in ((0, length - 1), (length // 3, length // 2), (length - 1, 0)):
        within_data[-(-length // 64), 64](a, np.array([low, high], np.int32), out)
        expected = a[np.minimum(np.maximum(index - 5, low), high)]
        expected += np.where(a > 50, a[np.minimum(index + 1, length - 1)], 0)
        np.testing.assert_array_equal(out, expected)


@hip.jit
def blurred(image, out):
    i, j = hip.grid(2)
    height, width, colours = image.shape
    if i < height and j < width:
        for colour in range(colours):
            total = 0
            for d in range(-1, 2):
                for e in range(-1, 2):
                    total += image[min(max(i + d, 0), height - 1), min(max(j + e, 0), width - 1), colour]
            out[i, j, colour] = total // 9


@pytest.mark.parametrize("colours", [1, 3, 4])
@pytest.mark.sample(1)
def test_pixels_with_the_first_axis_along_x(colours: int) -> None:
    image = integers((37, 75, colours), np.uint8)
    out = np.zeros_like(image)
    blurred[(3, 5), (16, 16)](image, out)
    reach = range(-1, 2)
    for colour in range(colours):
        sums = sum(window(image[..., colour], d, e) for d in reach for e in reach)
        np.testing.assert_array_equal(out[..., colour], sums // 9)


@pytest.mark.cpu_device("looks at its strategy")
def test_lanes_are_along_the_clamped_neighbours_in_memory() -> None:
    """Distances of pixels are guessed, too, where a loop runs through their colours."""
    image = integers((37, 75, 3), np.uint8)
    told = blurred[(3, 5), (16, 16)].explain(image, np.zeros_like(image))
    assert told.form == "vectors"
    assert "neighbours along y" in told.reason
    assert "a version for the distances that arrays probably have" in told.reason


@pytest.mark.parametrize("dtype", [np.int8, np.int64])
@pytest.mark.parametrize("length", [2, 63, 64, 65, 1000])
@pytest.mark.sample(5)
def test_indices_that_are_negative_in_few_threads(dtype: Any, length: int) -> None:
    """They count from the end: LLVM asks whether the index is 0, where it cannot be less."""
    a = integers(length, dtype)
    for block in (32, 64, 100, 256):
        out = np.zeros(length, np.int64)
        before_and_behind[-(-length // block), block](a, out)
        wide = a.astype(np.int64)
        expected = np.roll(wide, 1) - np.roll(wide, 2) + 2 * np.where(np.arange(length) > 0, np.roll(wide, 1), 0)
        np.testing.assert_array_equal(out, expected)


@hip.jit
def truncated_box(a, out, radius):
    x, y = hip.grid(2)
    height, width = a.shape
    if x < width and y < height:
        total, count = 0, 0
        for row in range(max(y - radius, 0), min(y + radius + 1, height)):
            for column in range(max(x - radius, 0), min(x + radius + 1, width)):
                total += a[row, column]
                count += 1
        out[y, x] = 1000 * count + total


@hip.jit
def truncated_row(a, out, before, behind, step):
    i = hip.grid(1)
    n = a.size
    if i < n:
        total = 0
        for j in range(max(i - before, 0), min(i + behind, n), step):
            total += (j - i) * a[j]
        for j in range(max(n - 1 - i - before, 0), min(n - 1 - i + behind, n)):  # from the end
            total += a[j]
        out[i] = total


@hip.jit
def until_found(a, out, reach):
    i = hip.grid(1)
    if i < a.size:
        found = -1
        for j in range(max(i - reach, 0), min(i + reach + 1, a.size)):
            if a[j] == 7:
                found = j
                break
        out[i] = found


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.float64])
@pytest.mark.sample(1)
def test_boxes_that_end_at_the_edges(dtype: Any) -> None:
    for shape in SHAPES:
        a = integers(shape, dtype)
        padded_to = np.arange(shape[0]), np.arange(shape[1])
        for radius in (0, 1, 3, 70):
            out = np.zeros(shape, np.int64)
            sums, ones = (np.zeros((shape[0] + 1, shape[1] + 1), np.int64) for _ in range(2))
            sums[1:, 1:] = a.astype(np.int64).cumsum(0).cumsum(1)
            ones[1:, 1:] = np.ones(shape, np.int64).cumsum(0).cumsum(1)
            (top, left), (bottom, right) = (
                [np.clip(along - radius, 0, None) for along in padded_to],
                [np.minimum(along + radius + 1, extent) for along, extent in zip(padded_to, shape, strict=True)],
            )
            inside = [
                table[np.ix_(bottom, right)] - table[np.ix_(top, right)]
                - table[np.ix_(bottom, left)] + table[np.ix_(top, left)]
                for table in (ones, sums)
            ]  # fmt: skip
            for block in BLOCKS:
                grid = tuple(-(-extent // threads) for extent, threads in zip(shape[::-1], block, strict=True))
                truncated_box[grid, block](a, out, radius)
                np.testing.assert_array_equal(out, 1000 * inside[0] + inside[1])


@pytest.mark.parametrize("length", [1, 5, 64, 130, 1000])
@pytest.mark.parametrize(("before", "behind", "step"), [(2, 3, 1), (0, 0, 1), (7, 100, 3), (-4, 9, 1), (90, -80, 2)])
@pytest.mark.sample(10)
def test_rows_that_end_at_the_edges(length: int, before: int, behind: int, step: int) -> None:
    a = integers(length, np.int64)
    out = np.zeros_like(a)
    expected = []
    for i in range(length):
        along = range(max(i - before, 0), min(i + behind, length), step)
        back = length - 1 - i
        from_end = range(max(back - before, 0), min(back + behind, length))
        expected.append(sum((j - i) * int(a[j]) for j in along) + sum(int(a[j]) for j in from_end))
    for block in (32, 64, 96):
        truncated_row[-(-length // block), block](a, out, before, behind, step)
        np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("length", [1, 64, 300])
def test_searches_within_reach(length: int) -> None:
    a = integers(length, np.int16)
    a[::13] = 7
    out = np.zeros(length, np.int64)
    until_found[-(-length // 64), 64](a, out, 5)
    for i in range(length):
        near = [j for j in range(max(i - 5, 0), min(i + 6, length)) if a[j] == 7]
        assert out[i] == (near[0] if near else -1)


@pytest.mark.cpu_device("looks at its strategy")
def test_windows_of_most_gangs_have_no_mask() -> None:
    """Threads of a gang have loops of as many iterations where none is at an edge."""
    a = integers((64, 256), np.float32)
    told = truncated_box[(8, 8), (32, 8)].explain(a, np.zeros(a.shape, np.int64), 2)
    assert told.form == "vectors"
    loads = [line for line in str(told).splitlines() if "a[row, column]" in line]
    assert loads, told
    assert any("contiguous" in line for line in loads), told
