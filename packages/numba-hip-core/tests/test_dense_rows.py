"""Threads that find row and column by a quotient, in arrays whose rows follow one another, and in others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import float32, hip, uint64

from hip_runtime import config as runtime_config

FORMS = ["auto", "loop", "vectors"]
WIDTHS = [1, 2, 3, 8, 20, 64, 100]
ROWS = 13


@hip.jit
def scale(a, out):
    i = hip.grid(1)
    width = out.shape[1]
    if i < out.size:
        row, column = i // width, i % width
        out[row, column] = a[row, column] * 2 + i


@hip.jit
def add_row_before(a, width, count, out):
    i = hip.grid(1)
    if i < count:
        row = i // width
        column = i - row * width
        out[row, column] = a[row + 1, column] - a[row, column]


@hip.jit
def count_of_eight(values, out):
    i = hip.blockIdx.x * hip.blockDim.x + hip.threadIdx.x
    if i < values.size:
        out[i // 8, i % 8] = values[i] * float32(3)


@hip.jit
def scale_in_steps(a, out):
    """A thread goes on with the element that is as many behind as the grid has threads."""
    width = out.shape[1]
    for i in range(hip.grid(1), out.size, hip.gridsize(1)):
        out[i // width, i % width] = a[i // width, i % width] * 2 + i


@hip.jit
def scale_from(a, first, step, out):
    """Where a step may be negative, nothing is known of the index."""
    width = out.shape[1]
    for i in range(first + hip.grid(1), first + 3 * step, step):
        out[i // width, i % width] = a[i // width, i % width] * 2


@hip.jit
def first_is_the_last_row(a, out):
    """In the first row, the one before is the last."""
    i = hip.grid(1)
    width = out.shape[1]
    if i < out.size:
        out[i // width, i % width] = a[i // width - 1, i % width]


@hip.jit
def planes_by_rows(a, out, limits):
    p = hip.grid(1)
    row = p // a.shape[2]
    i, j, k = row // a.shape[1], row % a.shape[1], p % a.shape[2]
    if i < limits.shape[0]:
        out[i, j, k] = a[i, j, k] + p


@hip.jit
def planes_by_all(a, out, limits):
    p = hip.grid(1)
    i = p // (a.shape[1] * a.shape[2])
    j, k = p // a.shape[2] % a.shape[1], p % a.shape[2]
    if i < limits.shape[0] and j < limits.shape[1] and k < limits.shape[2]:
        out[i, j, k] = a[i, j, k] + p


@hip.jit
def planes_by_rest(a, out, limits):
    p = hip.grid(1)
    plane = a.shape[1] * a.shape[2]
    i, rest = p // plane, p % plane
    j, k = rest // a.shape[2], rest % a.shape[2]
    if i >= limits.shape[0] or j >= a.shape[1] or k >= a.shape[2]:
        return
    out[i, j, k] = a[i, j, k] + p


@hip.jit
def planes_in_steps(a, out, limits):
    for p in range(hip.grid(1), limits.size, hip.gridsize(1)):
        row = p // a.shape[2]
        i, j, k = row // a.shape[1], row % a.shape[1], p % a.shape[2]
        out[i, j, k] = a[i, j, k] + p


@hip.jit
def row_by_quotient(a, out, limits):
    """A thread goes along a row."""
    p = hip.grid(1)
    i, j = p // a.shape[1], p % a.shape[1]
    if i <= limits.shape[0] - 1:
        for k in range(a.shape[2]):
            out[i, j, k] = a[i, j, k] + (p * a.shape[2] + k)


PLANES, HEIGHT, WIDTH = 5, 9, 30


@hip.jit
def planes_of_constants(a, out, limits):
    """LLVM computes quotients of small numbers with 32 bits, and of smaller ones with 16."""
    p = hip.grid(1)
    if p < PLANES * HEIGHT * WIDTH:
        i, j, k = p // (HEIGHT * WIDTH), p // WIDTH % HEIGHT, p % WIDTH
        out[i, j, k] = a[i, j, k] + p


@hip.jit
def planes_by_int(a, out, limits):
    """As C's integer division is often written."""
    p = hip.grid(1)
    if p < PLANES * HEIGHT * WIDTH:
        i = int(p / (HEIGHT * WIDTH))
        j = int((p - i * HEIGHT * WIDTH) / WIDTH)
        k = p - i * HEIGHT * WIDTH - j * WIDTH
        out[i, j, k] = a[i, j, k] + p


@hip.jit
def inside_of_constants(a, out, limits):
    p = hip.grid(1)
    if p < PLANES * HEIGHT * WIDTH:
        i, j, k = p // (HEIGHT * WIDTH), p // WIDTH % HEIGHT, p % WIDTH
        if 0 < i < PLANES - 1 and 0 < j < HEIGHT - 1 and 0 < k < WIDTH - 1:
            out[i, j, k] = a[i - 1, j, k] + a[i, j + 1, k] - a[i, j, k - 1]
        else:
            out[i, j, k] = p % 7 - k % 4


def laid_out(kind: str, shape: tuple[int, ...]) -> np.ndarray:
    """Random numbers in rows that follow one another, or do not."""
    numbers = np.random.default_rng(2).integers(0, 100, shape).astype(np.float64)
    *rows, columns = shape
    if kind == "with room behind rows":
        made = np.zeros((*rows, columns + 3))[..., :columns]
    elif kind == "with room behind planes":
        made = np.zeros((rows[0], rows[1] + 2, columns))[:, : rows[1]]
    elif kind == "every second row":
        made = np.zeros((2 * rows[0], *rows[1:], columns))[::2]
    else:
        made = np.zeros(shape, order="F" if kind == "Fortran" else "C")
    made[:] = numbers
    return made


LAYOUTS = ["dense", "with room behind rows", "every second row", "Fortran"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.sample(3)
def test_layouts(width: int, layout: str, form: str) -> None:
    a = laid_out(layout, (ROWS, width))
    for out in (np.zeros_like(a, order="C"), np.zeros((ROWS, width), order="F")):
        with runtime_config.cpu_form.scope(form):
            scale[-(-a.size // 64), 64](a, out)
        np.testing.assert_array_equal(out, a * 2 + np.arange(a.size).reshape(a.shape))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.sample(3)
def test_neighbours_in_other_rows(width: int, form: str) -> None:
    """The width is an argument, and may be less than rows are long."""
    for extent in (width, width + 2):
        a = laid_out("dense", (ROWS + 1, extent))
        out = np.full((ROWS, extent), -1.0)
        with runtime_config.cpu_form.scope(form):
            add_row_before[ROWS * width // 32 + 1, 32](a, width, ROWS * width, out)
        np.testing.assert_array_equal(out[:, :width], np.diff(a, axis=0)[:, :width])
        assert (out[:, width:] == -1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.sample(3)
def test_steps_of_the_grid(width: int, layout: str, form: str) -> None:
    a = laid_out(layout, (ROWS, width))
    out = np.zeros((ROWS, width))
    with runtime_config.cpu_form.scope(form):
        scale_in_steps[2, 64](a, out)
    np.testing.assert_array_equal(out, a * 2 + np.arange(a.size).reshape(a.shape))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", [*LAYOUTS, "with room behind planes"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 3, 7), (3, 20, 16), (2, 5, 100)])
@pytest.mark.parametrize("kernel", [planes_by_rows, planes_by_all, planes_by_rest, planes_in_steps, row_by_quotient])
@pytest.mark.sample(4)
def test_planes(kernel: Any, shape: tuple[int, int, int], layout: str, form: str) -> None:
    """Threads of a grid that is larger than the array stop at the limits, which may be less than the array has."""
    a = laid_out(layout, shape)
    for planes in {shape[0], shape[0] - 1}:
        out = np.full_like(a, -1, order="C")
        with runtime_config.cpu_form.scope(form):
            kernel[a.size // 64 + 3, 64](a, out, np.empty((planes, *shape[1:])))
        np.testing.assert_array_equal(out[:planes], (a + np.arange(a.size).reshape(shape))[:planes])
        assert (out[planes:] == -1).all()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("layout", [*LAYOUTS, "with room behind planes"])
@pytest.mark.sample(4)
def test_planes_of_constants(layout: str, form: str) -> None:
    shape = PLANES, HEIGHT, WIDTH
    a = laid_out(layout, shape)
    place = np.arange(a.size).reshape(shape)
    out, inside = np.zeros(shape), np.zeros(shape)
    with runtime_config.cpu_form.scope(form):
        planes_of_constants[a.size // 64 + 3, 64](a, out, a)
        inside_of_constants[a.size // 64 + 3, 64](a, inside, a)
    np.testing.assert_array_equal(out, a + place)
    expected = place % 7 - place % WIDTH % 4 + 0.0
    expected[1:-1, 1:-1, 1:-1] = a[:-2, 1:-1, 1:-1] + a[1:-1, 2:, 1:-1] - a[1:-1, 1:-1, :-2]
    np.testing.assert_array_equal(inside, expected)


WAYS = {
    "by rows": "row = p // 30\n        k = p % 30\n        i, j = row // 9, row % 9",
    "written out": "i = p // 270\n        r = p - i * 270\n        j = r // 30\n        k = r - j * 30",
    "by rest": "i, r = p // 270, p % 270\n        j, k = r // 30, r % 30",
    "by divmod": "i, r = divmod(p, 270)\n        j, k = divmod(r, 30)",
    "by int": "i = int(p / 270)\n        j = int((p - i * 270) / 30)\n        k = p - i * 270 - j * 30",
    "of 32 bits": "q = np.int32(p)\n        i, j, k = q // 270, q // 30 % 9, q % 30",
    "of less than 100": "q = p % 100\n        i, j, k = q // 50, q // 6 % 8, q - q // 6 * 6",
    "by arguments": "i = p // (ny * nz)\n        j, k = p // nz % ny, p % nz",
    "by arguments, written out": "i = p // (ny * nz)\n        r = p - i * ny * nz\n        j = r // nz\n"
    "        k = r - j * nz",
    "from the end": "q = 1349 - p\n        i, j, k = q // 270, q // 30 % 9, q % 30",
}  # fmt: skip
BODIES = {
    "copy": "out[i, j, k] = a[i, j, k] + i * 7 - k",
    "weights": "out[i, j, k] = a[i, j, k] * w[k] - w[j]",
    "inside": "if 0 < i < 4 and 0 < j < 8 and 0 < k < 29:\n"
    "            out[i, j, k] = a[i - 1, j, k] + a[i, j + 1, k] * w[k] - a[i, j, k - 1]",
    "around": "out[i, j, k] = a[(i + 1) % 5, j, k] - a[i, (j - 1) % 9, k] + a[i, j, (k + 29) % 30]",
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("indices", WAYS)
@pytest.mark.sample(8)
def test_indices_that_are_taken_apart(indices: str, body: str) -> None:
    names: dict[str, Any] = {"hip": hip, "np": np}
    lines = f"{WAYS[indices]}\n        {BODIES[body]}\n"
    exec(f"def kernel(a, w, ny, nz, out):\n    p = hip.grid(1)\n    if p < 1350:\n        {lines}", names)
    exec(f"def serial(a, w, ny, nz, out):\n    for p in range(1350):\n        {lines}", names)
    kernel = hip.jit(names["kernel"])
    for layout in ("dense", "with room behind rows", "Fortran"):
        a, w = laid_out(layout, (PLANES, HEIGHT, WIDTH)), np.arange(WIDTH) / 4
        out, expected = np.zeros(a.shape), np.zeros(a.shape)
        names["serial"](a, w, HEIGHT, WIDTH, expected)
        kernel[-(-1350 // 64) + 1, 64](a, w, HEIGHT, WIDTH, out)
        np.testing.assert_array_equal(out, expected, layout)


@pytest.mark.parametrize("form", FORMS)
def test_rows_that_are_limited_by_other_extents(form: str) -> None:
    """A remainder is below its divisor, but not below the extent of another array."""
    a = laid_out("dense", (4, 6, 9))
    for limits in ((4, 6, 7), (4, 3, 9), (4, 0, 9), (0, 6, 9)):
        out = np.full_like(a, -1)
        with runtime_config.cpu_form.scope(form):
            planes_by_all[5, 64](a, out, np.empty(limits))
        expected = np.full_like(a, -1)
        inside = tuple(slice(extent) for extent in limits)
        expected[inside] = (a + np.arange(a.size).reshape(a.shape))[inside]
        np.testing.assert_array_equal(out, expected)


@hip.jit
def read_by_two_quotients(a, width, height, out):
    p = hip.grid(1)
    if p < out.size:
        out[p] = a[p // width + p // height, p % width + p % height]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("width", "height"), [(40, 40), (40, 20), (20, 40), (7, 3)])
def test_sums_of_quotients(width: int, height: int, form: str) -> None:
    """Rows have one length at most."""
    a = laid_out("dense", (200, 40))
    place = np.arange(400)
    row, column = place // width + place // height, place % width + place % height
    inside = (row < 200) & (column < 40)
    place = np.arange(np.argmin(inside) if not inside.all() else 400)
    out = np.zeros(place.size)
    with runtime_config.cpu_form.scope(form):
        read_by_two_quotients[2, 256](a, width, height, out)
    np.testing.assert_array_equal(out, a[row[place], column[place]])


LARGE = (1 << 62) + 3
BOUNDS = [
    "i > 0", "i >= 1", "i != 0", "3 > i", "i < a.shape[0] - 1", "i + 1 < a.shape[0]", "i <= a.shape[0] - 2",
    "i - 1 < a.shape[0] - 3", "0 < i < a.shape[0] - 1", "i < n", "i + 2 >= n", "i > n - 1", "i - 70000 < n",
    "np.uint64(i) < np.uint64(n)", "np.uint64(i - 1) < np.uint64(a.shape[0] - 2)", "i * 2 < n", "j < a.shape[1] - 1",
    "j + 1 < a.shape[1]", "j > 0", "j < a.shape[1]", "j < n", "i + j < n", "k < a.shape[2]", "k + 1 < a.shape[2]",
]  # fmt: skip
INDICES = {
    "by rows": "row = p // a.shape[2]\n    i, j, k = row // a.shape[1], row % a.shape[1], p % a.shape[2]",
    "written out": "row = p // a.shape[2]\n    k = p - row * a.shape[2]\n    i = row // a.shape[1]\n"
    "    j = row - i * a.shape[1]",
    "by rest": "plane = a.shape[1] * a.shape[2]\n    i, rest = p // plane, p % plane\n"
    "    j, k = rest // a.shape[2], rest % a.shape[2]",
}  # fmt: skip


@pytest.mark.parametrize("indices", INDICES)
@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.sample(4)
def test_bounds_of_planes_and_rows(bound: str, indices: str) -> None:
    """Numbers that quotients are compared with are multiplied, unless that would overflow."""
    lines = f"def kernel(a, n, out):\n    p = hip.grid(1)\n    {INDICES[indices]}\n    if p < a.size and {bound}:\n"
    names: dict[str, Any] = {"hip": hip, "np": np}
    exec(f"{lines}        out[i, j, k] = a[i, j, k] + p\n", names)
    kernel = hip.jit(names["kernel"])
    for layout, shape in (("dense", (5, 4, 33)), ("with room behind rows", (4, 7, 10)), ("dense", (1, 1, 40))):
        a = laid_out(layout, shape)
        for n in (-1, 0, 3, LARGE, -LARGE):
            out = np.full(shape, -1.0)
            kernel[a.size // 128 + 2, 128](a, n, out)
            expected = np.full(shape, -1.0)
            for p, (i, j, k) in enumerate(np.ndindex(shape)):
                if eval(bound.replace("np.uint64", "unsigned"), {"unsigned": lambda x: x % 2**64}, locals()):
                    expected[i, j, k] = a[i, j, k] + p
            np.testing.assert_array_equal(out, expected, f"{layout}, {shape}, {n}")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("first", "step"), [(0, 40), (128, -40), (0, -40)])
def test_steps_in_both_directions(first: int, step: int, form: str) -> None:
    """Rows are counted from the end where the index is negative."""
    a = laid_out("dense", (8, 20))
    out = np.zeros_like(a)
    with runtime_config.cpu_form.scope(form):
        scale_from[1, 32](a, first, step, out)
    expected = np.zeros_like(a)
    for thread in range(32):
        for i in range(first + thread, first + 3 * step, step):
            expected[i // 20, i % 20] = 2 * a[i // 20, i % 20]
    np.testing.assert_array_equal(out, expected)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [1, 5, 64])
def test_a_row_that_is_counted_from_the_end(width: int, form: str) -> None:
    a = laid_out("dense", (ROWS, width))
    out = np.zeros_like(a)
    with runtime_config.cpu_form.scope(form):
        first_is_the_last_row[-(-a.size // 64), 64](a, out)
    np.testing.assert_array_equal(out, np.roll(a, 1, axis=0))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("columns", [8, 9])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int16])
def test_rows_of_eight(kind: Any, columns: int, form: str) -> None:
    values = np.arange(1000, dtype=kind) % 100
    out = np.zeros((125, columns), kind)
    with runtime_config.cpu_form.scope(form):
        count_of_eight[8, 128](values, out)
    np.testing.assert_array_equal(out[:, :8].ravel(), values * 3)


@pytest.mark.filterwarnings("ignore:divide by zero")
def test_negative_widths_divide_as_python_does() -> None:
    a = np.arange(200.0).reshape(10, 20)
    out = np.zeros_like(a)
    for width in (-7, -1):
        add_row_before[1, 32](a, width, 1, out)  # the thread 0 is in row 0, column 0
        assert out[0, 0] == 20.0


@hip.jit
def mix_signs(a, width, out):
    i = hip.grid(1)
    if i < out.size:
        k = i - 5
        out[i] = a[int(k / width), int(uint64(k) % uint64(width))]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("width", [8, 33])
def test_quotients_with_a_sign_and_remainders_without_one(width: int, form: str) -> None:
    """Those of the same negative number do not belong together: of -5, the quotient by 33 is 0, and 2**64 - 5 has the
    remainder 11."""
    a = np.arange(42 * width).reshape(42, width)[1:-1]
    out = np.zeros(9 * width, np.int64)
    with runtime_config.cpu_form.scope(form):
        mix_signs[5, 64](a, width, out)
    k = range(-5, out.size - 5)
    np.testing.assert_array_equal(out, [a[int(one / width), one % 2**64 % width] for one in k])


@pytest.mark.cpu_device("it explains which accesses are gathers")
@pytest.mark.parametrize("kernel", [scale, scale_in_steps, count_of_eight])
def test_lanes_access_neighbours(kernel: Any) -> None:
    types = "(float64[::1], float64[:, ::1])" if kernel is count_of_eight else "(float64[:, ::1], float64[:, ::1])"
    told = kernel.explain(types, block=128)
    assert "with a version" in told.reason
    assert "gathered" not in str(told)


@pytest.mark.cpu_device("it explains which accesses are gathers")
@pytest.mark.parametrize(
    "kernel", [planes_by_rows, planes_by_rest, planes_in_steps, planes_of_constants, planes_by_int]
)
def test_lanes_access_neighbours_in_planes(kernel: Any) -> None:
    types = "(float64[:, :, ::1], float64[:, :, ::1], float64[:, :, ::1])"
    told = kernel.explain(types, block=128)
    assert "with a version" in told.reason
    assert "gathered" not in str(told)
