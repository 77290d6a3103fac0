"""Kernels over pixels, of which the number of channels is an extent of the array like the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime import config

SHAPE, BLOCK, GRID = (37, 75), (16, 16), (3, 5)


@hip.jit
def smooth(out: Any, image: Any, weights: Any, first: int) -> None:
    i, j = hip.grid(2)
    if first <= i < out.shape[0] - 1 and first <= j < out.shape[1] - 1:
        for c in range(3):
            total = 0
            for dy in range(-1, 2):
                for dx in range(-1, 2):
                    total += weights[dy + 1, dx + 1] * image[i + dy, j + dx, c]
            out[i, j, c] = total % 256


@hip.jit
def brighten(image: Any, more: int) -> None:
    j, i = hip.grid(2)
    if i < image.shape[0] and j < image.shape[1]:
        image[i, j, 0] = min(image[i, j, 0] + more, 100)
        image[i, j, 2] = image[i, j, 1]


def pixels(kind: str, layout: str) -> np.ndarray:
    """Random pixels whose memory is laid out in one way or another."""
    made = np.random.default_rng(5).integers(0, 100, (*SHAPE, 4)).astype(kind)
    return {
        "rgb": lambda: made[:, :, :3].copy(),
        "rgba": lambda: made,
        "columns": lambda: np.asfortranarray(made[:, :, :3]),
        "planes": lambda: made.transpose(2, 0, 1).copy().transpose(1, 2, 0),
        "part": lambda: np.repeat(made, 2, axis=1)[:, 1::2, :3],
        "backwards": lambda: made[:, ::-1, :3],
    }[layout]()


LAYOUTS = ("rgb", "rgba", "columns", "planes", "part", "backwards")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("first", [1, 0])
@pytest.mark.sample(2)
def test_windows_of_pixels(kind: str, layout: str, first: int) -> None:
    """From 0 on, the window of the first pixel reaches to the last row and column, as negative indices do."""
    image, weights = pixels(kind, layout), np.arange(9).reshape(3, 3)
    result = hip.to_device(np.zeros((*SHAPE, 3), kind))
    smooth[GRID, BLOCK](result, hip.to_device(image), hip.to_device(weights), first)
    wide = np.zeros((*SHAPE, 3), np.int64)
    for y, x in np.ndindex(3, 3):
        wide += weights[y, x] * np.roll(image[:, :, :3].astype(np.int64), (1 - y, 1 - x), (0, 1))
    inside = slice(first, SHAPE[0] - 1), slice(first, SHAPE[1] - 1)
    expected = np.zeros((*SHAPE, 3), kind)
    expected[inside] = (wide % 256).astype(kind)[inside]
    np.testing.assert_array_equal(result.copy_to_host(), expected)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("kind", ["uint8", "int32", "float64"])
@pytest.mark.sample(3)
def test_changed_in_place(kind: str, layout: str) -> None:
    image = pixels(kind, layout)
    changed = hip.to_device(image)
    brighten[(5, 3), BLOCK](changed, 40)
    expected = image.copy()
    expected[:, :, 0] = np.minimum(expected[:, :, 0] + 40, 100)
    expected[:, :, 2] = expected[:, :, 1]
    np.testing.assert_array_equal(changed.copy_to_host(), expected)


@pytest.mark.cpu_device("the axis of the lanes is its choice")
def test_neighbours_in_memory_are_lanes() -> None:
    """Though the distance of pixels is an argument, as that of rows is."""
    result, image = (hip.to_device(pixels("uint8", "rgb")) for _ in range(2))
    weights = hip.to_device(np.ones((3, 3), np.int64))
    told = str(smooth.explain(result, image, weights, 1, block=BLOCK))
    assert "along y" in told, told
    assert "gathered" not in told, told


def store_fields(count: int, signature: Any) -> Any:
    """A kernel that stores each of *count* fields of the records of a matrix by its own number."""
    lines = "\n".join(f"        out[i, j, {number}] = {number + 1}" for number in range(count))
    text = f"def store(out):\n    i, j = hip.grid(2)\n    if i < out.shape[0] and j < out.shape[1]:\n{lines}\n"
    names: dict[str, Any] = {"hip": hip}
    exec(text, names)
    return hip.jit(signature)(names["store"]) if signature else hip.jit(names["store"])


@hip.jit
def copy_records(out: Any, source: Any) -> None:
    i, j = hip.grid(2)
    if i < out.shape[0] and j < out.shape[1]:
        out[i, j, :] = source[i, j, :]


@pytest.mark.parametrize("signature", [None, "void(float32[:, :, :])"])
@pytest.mark.parametrize("count", [2, 4, 5, 8, 16])
def test_fields_of_records(count: int, signature: Any) -> None:
    store = store_fields(count, signature)
    for extent in (count, count + 3):
        out = np.zeros((*SHAPE, extent), np.float32)
        store[GRID, BLOCK](out)
        np.testing.assert_array_equal(out[..., :count], np.broadcast_to(np.arange(1, count + 1), (*SHAPE, count)))
        assert not out[..., count:].any()


@pytest.mark.parametrize("count", [1, 4, 8])
def test_copied_records(count: int) -> None:
    source = np.random.default_rng(7).random((*SHAPE, count), np.float32)
    out = np.zeros_like(source)
    copy_records[GRID, BLOCK](out, source)
    np.testing.assert_array_equal(out, source)


@pytest.mark.cpu_device("the axis of the lanes is its choice")
@pytest.mark.parametrize("signature", [None, "void(float32[:, :, :])"])
@pytest.mark.parametrize("count", [3, 4, 5, 8, 16])
def test_records_that_lie_side_by_side_are_accessed_one_after_another(count: int, signature: Any) -> None:
    """As lanes, or by one thread after another: in no case row by row, where each is in another page."""
    store, out = store_fields(count, signature), np.zeros((*SHAPE, count), np.float32)
    told = store[GRID, BLOCK].explain(out)
    assert told.form == "loop" or "neighbours along y" in told.reason
    with config.cpu_form.scope("vectors"):
        assert "neighbours along y" in store[GRID, BLOCK].explain(out).reason


CELL = np.dtype([(name, np.float32) for name in ("height", "speed", "stiffness", "damping", "force")])


@hip.jit
def move(cells: Any) -> None:
    i, j = hip.grid(2)
    if i < cells.shape[0] and j < cells.shape[1]:
        cell = cells[i, j]
        cell.speed += cell.force - cell.stiffness * cell.height - cell.damping * cell.speed
        cell.height += cell.speed


def test_records_are_changed_in_place() -> None:
    cells = np.zeros(SHAPE, CELL)
    for number, name in enumerate(CELL.names or ()):
        cells[name] = np.random.default_rng(number).integers(-4, 5, SHAPE)
    expected = cells.copy()
    expected["speed"] += cells["force"] - cells["stiffness"] * cells["height"] - cells["damping"] * cells["speed"]
    expected["height"] += expected["speed"]
    move[GRID, BLOCK](cells)
    np.testing.assert_array_equal(cells, expected)


@pytest.mark.cpu_device("it explains which vectors LLVM makes")
def test_what_is_too_far_apart_for_lanes_is_no_vector_of_llvm_either() -> None:
    told = move[GRID, BLOCK].explain(np.zeros(SHAPE, CELL))
    if "too far apart" in told.reason:  # for the vectors of this processor
        assert not any("LLVM" in note for line in told.lines for note in line.notes)
    with config.cpu_form.scope("loop"):
        assert move[GRID, BLOCK].explain(np.zeros(SHAPE, CELL)).form == "loop"
