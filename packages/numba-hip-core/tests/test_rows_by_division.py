"""Random kernels whose threads find the row and the column of an element by division, against plain Python."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numba import hip

from hip_runtime import current_device

WIDTHS = (1, 2, 3, 7, 8, 13, 16, 29, 31, 32, 33, 48, 63, 64, 65, 70, 127, 128, 129, 254, 500)
BLOCKS = (32, 48, 64, 100, 128, 256, 512, 640, 1024)
Array = np.ndarray[Any, Any]


class Kernel:
    """A random kernel of threads *i*, or of elements *i* in steps of the grid if it has *steps*; `source` writes it for
    the device or, with a function for atomic additions, as the body of a loop in Python."""

    def __init__(self, seed: int, *, steps: bool = False) -> None:
        self._choose = random.Random(seed)
        self._steps = steps
        self._lines: list[str] = []
        self._write()

    def source(self, *, on_device: bool) -> str:
        start = ["def kernel(x, out, turned, counts, n, h, w):", "    i = hip.grid(1)"]
        if not on_device:
            start = ["def kernel(i, x, out, turned, counts, n, h, w):"]
        add = "hip.atomic.add" if on_device else "add"
        lines = [line.replace("ADD", add) for line in self._lines]
        if self._steps and on_device:
            start[-1] = "    for i in range(hip.grid(1), n, hip.gridsize(1)):"
            lines = ["    " + line.replace("return", "continue") for line in lines]
        return "\n".join([*start, *lines])

    def _write(self) -> None:
        choose = self._choose
        indent = "    "
        if choose.random() < 0.6:
            self._lines += [f"{indent}if i >= n:", f"{indent}    return"]
        else:
            self._lines.append(f"{indent}if i < n:")
            indent += "    "
        index = choose.choice(("i", "i", "(n - 1 - i)", "np.int32(i)", "i + 1"))
        self._lines += [f"{indent}k = {index}", f"{indent}r = {choose.choice(('k // w', 'k // w % (h + 1)'))}"]
        self._lines.append(f"{indent}c = {choose.choice(('k % w', 'k - r * w if k // w == r else k % w'))}")
        self._lines += [f"{indent}v = x[r, c]", f"{indent}s = 0"]
        for _ in range(choose.randrange(1, 4)):
            self._write_statement(indent)
        self._lines += [f"{indent}{choose.choice(('out[r, c] = v', 'out[r, c] += v + s', 'out[r, c] = v * 2 - s'))}"]

    def _write_statement(self, indent: str) -> None:
        kind = self._choose.choice(("neighbour", "row", "data", "loop", "count", "turned", "leave", "patch", "rest"))
        condition = self._choose.choice(("r > 1", "c > 0", "c < w - 1", "r % 2 == 0", "c % 3 == 1", "v > 40"))
        lines = {
            "neighbour": [f"if {condition}:", "    v += x[r, c + 1] - x[r + 1, c]"],
            "row": ["if r % 2:", "    v = -v", "else:", "    s += c"],
            "data": [f"if {condition}:", "    v = v * 3 % 1000", "    s -= r"],
            "loop": ["for t in range(c % 4 + 1):", "    s += x[r, t]", "    if s > 200:", "        break"],
            "count": ["ADD(counts, r % 5, c + 1)"],
            "turned": ["turned[c, r] = v"],
            "patch": ["m = h // 2 + 1", "s += c // m * 3 - c % m", "v += x[c // m % h, c % m % w]"],
            "rest": ["s += k - r * w", "v += k - r * h"],
            "leave": [f"if {condition}:", "    out[r, c] = -7", "    return"],
        }[kind]
        self._lines += [indent + line for line in lines]


def run_in_python(kernel: Kernel, threads: int, *arguments: Any) -> None:
    def add(array: Array, at: int, value: int) -> None:
        array[at] += value

    names: dict[str, Any] = {"add": add, "np": np}
    exec(kernel.source(on_device=False), names)
    body: Callable[..., None] = names["kernel"]
    for i in range(threads):
        body(i, *arguments)


@pytest.mark.parametrize("steps", [False, True], ids=["threads", "steps"])
@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sample(1)
def test_rows_and_columns(seed: int, steps: bool) -> None:
    choose = random.Random(1000 + seed)
    kernel = Kernel(seed, steps=steps)
    names: dict[str, Any] = {"hip": hip, "np": np}
    exec(kernel.source(on_device=True), names)
    compiled = hip.jit(names["kernel"])
    dtype = choose.choice((np.int8, np.int32, np.int64))
    for _ in range(8):
        width, block = choose.choice(WIDTHS), choose.choice(BLOCKS)
        height = choose.randrange(1, max(3, 1500 // width))
        x = np.random.default_rng(seed).integers(0, 100, (height + 3, max(width, 4) + 2)).astype(dtype)
        out, turned = np.full_like(x, 5), np.zeros(x.shape[::-1], dtype)
        counts = np.zeros(5, np.int64)
        n = choose.choice((height * width, height * width - 1, height * width // 2))
        expected = [array.astype(np.int64) for array in (out, turned, counts)]
        run_in_python(kernel, n, x.astype(np.int64), *expected, n, height, width)
        blocks = choose.randrange(1, n // block + 2) if steps else n // block + 1
        compiled[blocks, block](x, out, turned, counts, n, height, width)
        for found, wanted in zip((out, turned, counts), expected, strict=True):
            note = f"{height} x {width}, blocks of {block}, {n} threads\n{kernel.source(on_device=True)}"
            np.testing.assert_array_equal(found, wanted.astype(found.dtype), note)


@hip.jit
def patches(image, columns, size):
    i = hip.grid(1)
    height, width = image.shape[0] - size + 1, image.shape[1] - size + 1
    if i < columns.size:
        row, place = i // columns.shape[1], i % columns.shape[1]
        y, x = place // width, place % width
        if y < height:
            columns[row, place] = image[y + row // size, x + row % size]


def test_divisions_of_what_a_division_left() -> None:
    for height, width, size in ((40, 70, 3), (5, 300, 2), (34, 33, 2), (9, 9, 9)):
        image = np.random.default_rng(1).random((height, width), np.float32)
        inside = np.lib.stride_tricks.sliding_window_view(image, (size, size))
        expected = inside.transpose(2, 3, 0, 1).reshape(size * size, -1)
        columns = np.zeros(expected.shape, np.float32)
        patches[-(-columns.size // 128), 128](image, columns, size)
        np.testing.assert_array_equal(columns, expected)


@hip.jit
def differences(x, first, out):
    for i in range(hip.grid(1), x.size, hip.gridsize(1)):
        row, column = i // x.shape[1], i % x.shape[1]
        if column + 1 < x.shape[1]:
            out[row, column] = x[row, column + 1] - first[row]


@pytest.mark.cpu_device("it explains which values lanes have in common")
def test_gangs_in_steps_of_the_grid_are_in_rows() -> None:
    """What a row begins with is one number for a gang, though the loop has a branch."""
    x = np.random.default_rng(3).integers(0, 100, (50, 300))
    first, out = x[:, 0].copy(), np.zeros_like(x)
    differences[4, 256](x, first, out)
    np.testing.assert_array_equal(out[:, :-1], x[:, 1:] - first[:, None])
    told = str(differences.explain(x, first, out, block=256))
    (line,) = (line for line in told.splitlines() if "- first[row]  " in line)
    assert "loads of int64: uniform" in line, told


@hip.jit
def rows_of_waves(x, out):
    i = hip.grid(1)
    row, lane = i // 32, i % 32
    if row < x.shape[0]:
        for column in range(lane, x.shape[1], 32):
            out[row, column] = 2 * x[row, column]


@pytest.mark.parametrize("block", [32, 64, 96, 128, 1024])
def test_threads_that_go_through_a_row_together(block: int) -> None:
    x = np.random.default_rng(4).integers(0, 100, (37, 130))
    out = np.zeros_like(x)
    rows_of_waves[-(-37 * 32 // block), block](x, out)
    np.testing.assert_array_equal(out, 2 * x)
    if current_device().is_cpu:
        assert "gathered" not in str(rows_of_waves.explain(x, out, block=block))


@hip.jit
def box_by_planes(x, out):
    p = hip.grid(1)
    i = p // (x.shape[1] * x.shape[2])
    rest = p % (x.shape[1] * x.shape[2])
    j, k = rest // x.shape[2], rest % x.shape[2]
    if i < x.shape[0]:
        out[i, j, k] = 2 * x[i, j, k] + 100 * i + 10 * j + k


@hip.jit
def box_with_edges(x, out):
    """Rows in planes in boxes; the first and the last element of each row is another."""
    p = hip.grid(1)
    plane = x.shape[1] * x.shape[2]
    i = p // plane
    if i < x.shape[0]:
        j = (p - i * plane) // x.shape[2]
        k = (p - i * plane) % x.shape[2]
        out[i, j, k] = 2 * x[i, j, k] + 100 * i + 10 * j + k
        if 0 < k < x.shape[2] - 1 and j > 0:
            out[i, j, k] += x[i, j - 1, k + 1] - x[i, j - 1, k + 1]


@hip.jit
def tesseract(x, out):
    """Four axes, of which the last two are one for the caller."""
    p = hip.grid(1)
    rows = x.shape[2] // 2
    i, rest = p // (x.shape[1] * x.shape[2]), p % (x.shape[1] * x.shape[2])
    if i < x.shape[0]:
        j, rest = rest // x.shape[2], rest % x.shape[2]
        k = rest // rows if rows > 0 else 0
        place = rest - k * rows
        out[i, j, k * rows + place] = 2 * x[i, j, k * rows + place] + 100 * i + 10 * j + rest


@pytest.mark.parametrize(
    "shape", [(3, 4, 5), (7, 33, 64), (2, 70, 90), (5, 1, 130), (1, 1, 1000), (4, 40, 31), (3, 9, 1)]
)
@pytest.mark.parametrize("kernel", [box_by_planes, box_with_edges, tesseract], ids=lambda one: one.py_func.__name__)
def test_rows_of_planes(kernel: Any, shape: tuple[int, int, int]) -> None:
    x = np.random.default_rng(6).integers(0, 100, shape).astype(np.int32)
    i, j, k = np.indices(shape)
    for block in (32, 96, 256):
        out = np.zeros_like(x)
        kernel[-(-x.size // block), block](x, out)
        np.testing.assert_array_equal(out, 2 * x + 100 * i + 10 * j + k, f"blocks of {block}")
