"""Products of small matrices against NumPy: all types and shapes, arrays in any order, single elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numba import hip
from numba.core import types
from numba.core.errors import TypingError

import hip_runtime
from hip_devicelib.matrix_instructions import MatrixInstruction, known_instructions, matrix_instructions
from hip_devicelib.target import parse_target
from hip_runtime import config as runtime_config
from numba_hip import config
from numba_hip.errors import MatrixError
from numba_hip.language.matrix.kinds import ELEMENTS

ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes, for small floats in NumPy")

TARGET = hip_runtime.current_device().target
HAVING = known_instructions() if TARGET == "cpu" else matrix_instructions(parse_target(TARGET))
WAVE = hip_runtime.current_device().attributes.wave_size
CUBE = (16, 16, 16)

if not HAVING:
    pytest.skip(f"needs matrix cores, which {TARGET} has not", allow_module_level=True)


def products() -> list[MatrixInstruction]:
    """One instruction of each shape and types that the device has, whichever there are several of."""
    return list({(one.shape, one.a, one.b): one for one in HAVING}.values())


def called(one: MatrixInstruction) -> str:
    return f"{one.a}-{one.b}-{'x'.join(map(str, one.shape))}"


def dtype(name: str) -> np.dtype[Any]:
    return np.dtype(getattr(ml_dtypes, name, name))


def whole(rng: Any, shape: tuple[int, int], kind: str) -> Any:
    """Small whole numbers, of which no type rounds a product or a sum."""
    return rng.integers(-4, 5, shape).astype(dtype(kind))


def make_product(shape: tuple[int, int, int], a: str, b: str, sums: str, **options: Any) -> Any:
    """A kernel in which each wave, a block, computes a tile of the product."""
    rows, columns, depth = shape
    left_type, right_type, sum_type = ELEMENTS[a], ELEMENTS[b], ELEMENTS[sums]

    @hip.jit(**options)
    def multiply(x, y, out):
        row, column = hip.blockIdx.y * rows, hip.blockIdx.x * columns
        total = hip.matrix.fragment("accumulator", shape, sum_type)
        left = hip.matrix.fragment("a", shape, left_type)
        right = hip.matrix.fragment("b", shape, right_type)
        hip.matrix.fill(total, 0)
        for k in range(0, x.shape[1], depth):
            hip.matrix.load(left, x, row, k)
            hip.matrix.load(right, y, k, column)
            hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out, row, column)

    return multiply


HALVES = make_product(CUBE, "float16", "float16", "float32")


def check_product(
    kernel: Any, one: MatrixInstruction, shape: tuple[int, int, int], tiles: tuple[int, int, int]
) -> None:
    m, n, k = (extent * count for extent, count in zip(shape, tiles, strict=True))
    rng = np.random.default_rng(m + n + k)
    x, y, out = whole(rng, (m, k), one.a), whole(rng, (k, n), one.b), np.full((m, n), 99, one.accumulator)
    kernel[tiles[1::-1], WAVE](x, y, out)
    np.testing.assert_array_equal(out, x.astype(np.float64) @ y.astype(np.float64))


@pytest.mark.sample(1)
@pytest.mark.parametrize("one", products(), ids=called)
def test_products_of_all_types_and_shapes(one: MatrixInstruction) -> None:
    check_product(make_product(one.shape, one.a, one.b, one.accumulator), one, one.shape, (2, 3, 2))


@pytest.mark.sample(1)
@pytest.mark.parametrize("one", products(), ids=called)
def test_several_instructions_in_a_row(one: MatrixInstruction) -> None:
    m, n, k = one.shape
    if 3 * k > 128:
        k //= 2
    check_product(make_product((m, n, 3 * k), one.a, one.b, one.accumulator), one, (m, n, 3 * k), (1, 1, 2))


@pytest.mark.parametrize(("a", "digits"), [("float16", 11), ("bfloat16", 8)])
@pytest.mark.sample(1)
def test_sums_are_as_precise_as_float32(a: str, digits: int) -> None:
    rng = np.random.default_rng(5)
    x, y = (rng.standard_normal(shape).astype(dtype(a)) for shape in ((32, 256), (256, 48)))
    out = np.zeros((32, 48), np.float32)
    make_product(CUBE, a, a, "float32")[(3, 2), WAVE](x, y, out)
    exact = x.astype(np.float64) @ y.astype(np.float64)
    scale = np.abs(x.astype(np.float64)) @ np.abs(y.astype(np.float64))
    assert np.abs(out - exact).max() > 0  # sums are rounded somewhere
    assert (np.abs(out - exact) / scale).max() < 2.0**-18 < 2.0**-digits


def test_special_values() -> None:
    x, y = np.zeros((16, 16), np.float16), np.eye(16, dtype=np.float16)
    x[0], x[1], x[2], x[3] = np.inf, np.nan, 65504, 2.0**-24
    y[:, 5] = 1
    out = np.zeros((16, 16), np.float32)
    HALVES[1, WAVE](x, y, out)
    assert np.isnan(out[1]).all()
    assert np.isnan(out[0, 0])  # infinity times 0
    assert out[0, 5] == np.inf
    assert out[2, 5] == 16 * 65504
    assert out[3, 5] == 16 * 2.0**-24
    assert out[3, 1] == 2.0**-24


ORDERS = {  # views of device arrays: those of the host are copied into contiguous ones
    "columns": lambda x: hip.to_device(np.asfortranarray(x)),
    "wide rows": lambda x: hip.to_device(np.pad(x, ((0, 0), (0, 7))))[:, :-7],
    "every second": lambda x: hip.to_device(np.repeat(np.repeat(x, 2, 0), 3, 1))[::2, ::3],
    "backwards": lambda x: hip.to_device(x[::-1, ::-1].copy())[::-1, ::-1],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.sample(2)
def test_arrays_in_any_order(order: str) -> None:
    rng = np.random.default_rng(2)
    x, y = whole(rng, (32, 48), "float16"), whole(rng, (48, 32), "float16")
    ordered = [ORDERS[order](array) for array in (x, y, np.zeros((32, 32), np.float32))]
    HALVES[(2, 2), WAVE](*ordered)
    assert any(kinds[0].layout == ("F" if order == "columns" else "A") for kinds in HALVES.signatures)
    np.testing.assert_array_equal(ordered[2].copy_to_host(), x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", ["C", "F", "A"])
@pytest.mark.parametrize(("a", "b", "sums"), sorted({(one.a, one.b, one.accumulator) for one in HAVING}))
def test_tiles_over_the_ends_of_arrays(a: str, b: str, sums: str, order: str) -> None:
    """Loaded with zeros, and stored without what lies outside."""
    deepest = max((one for one in HAVING if (one.a, one.b) == (a, b)), key=lambda one: one.shape[2]).shape
    rows, columns, depth = deepest
    left_type, right_type, sum_type = ELEMENTS[a], ELEMENTS[b], ELEMENTS[sums]

    @hip.jit(boundscheck=True)
    def multiply(x, y, out, before):
        row, column = hip.blockIdx.y * rows - before, hip.blockIdx.x * columns - before
        total = hip.matrix.fragment("accumulator", deepest, sum_type)
        left = hip.matrix.fragment("a", deepest, left_type)
        right = hip.matrix.fragment("b", deepest, right_type)
        hip.matrix.load(total, out, row, column, partial=True)
        for k in range(0, x.shape[1], depth):
            hip.matrix.load(left, x, row, k, partial=True)
            hip.matrix.load(right, y, k, column, partial=True)
            hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out, row, column, partial=True)

    rng = np.random.default_rng(4)
    for (m, n, k), before in [((rows + 3, columns - 1, depth + 1), 0), ((1, 1, 1), 0), ((rows, columns, depth), 0),
                              ((2 * rows - 5, columns + 7, 3), 5), ((rows, columns, 0), 1)]:  # fmt: skip
        wide = [whole(rng, (m, k), a), whole(rng, (k, n), b), whole(rng, (m, n), sums)]
        if order == "A":
            around = [hip.to_device(np.pad(array, 2, constant_values=1)) for array in wide]
            x, y, out = (array[2:-2, 2:-2] for array in around)
        else:
            x, y, out = around = [hip.to_device(np.array(array, order=order)) for array in wide]
        multiply[(n // columns + 2, m // rows + 2), WAVE](x, y, out, before)
        expected = np.pad(
            wide[2] + wide[0].astype(np.float64) @ wide[1].astype(np.float64), 2 * (order == "A"), constant_values=1
        )
        np.testing.assert_array_equal(around[2].copy_to_host(), expected)


def test_flat_arrays_with_odd_distances_between_rows_and_columns() -> None:
    @hip.jit
    def multiply(x, y, out):
        left = hip.matrix.fragment("a", CUBE, np.float16)
        right = hip.matrix.fragment("b", CUBE, np.float16)
        total = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.load(left, x, 1, 2, 19)
        hip.matrix.load(right, y, 3, 1, 21, "col")
        hip.matrix.load(total, out, 0, 1, 17, layout="row")
        hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out, 0, 1, leading=17, layout="row")
        hip.matrix.store(total, out, 0, 20, leading=18, layout="col")

    rng = np.random.default_rng(3)
    x, y = whole(rng, (17, 19), "float16"), whole(rng, (17, 21), "float16")
    out = rng.integers(0, 9, 700).astype(np.float32)
    expected = out.copy()
    before = out[: 16 * 17].reshape(16, 17)[:, 1:].copy()
    product = before + x[1:17, 2:18].astype(np.float32) @ y[1:17, 3:19].T.astype(np.float32)
    multiply[1, WAVE](x.reshape(-1), y.reshape(-1), out)
    expected[: 16 * 17].reshape(16, 17)[:, 1:] = product
    expected[20 * 18 : 36 * 18].reshape(16, 18)[:, :16] = product.T
    np.testing.assert_array_equal(out, expected)


def test_tiles_in_shared_memory_that_change_after_the_load() -> None:
    @hip.jit
    def square_twice(x, out):
        tile = hip.shared.array(CUBE[:2], types.float16)
        left = hip.matrix.fragment("a", CUBE, np.float16)
        right = hip.matrix.fragment("b", CUBE, np.float16)
        total = hip.matrix.fragment("accumulator", CUBE, np.float32)
        for i in range(hip.threadIdx.x, 256, hip.blockDim.x):
            tile[i // 16, i % 16] = x[i // 16, i % 16]
        hip.syncthreads()
        hip.matrix.load(left, tile)
        hip.matrix.load(right, tile.T)
        hip.syncthreads()
        for i in range(hip.threadIdx.x, 256, hip.blockDim.x):
            tile[i // 16, i % 16] = 100
        hip.syncthreads()
        hip.matrix.fill(total, 1)
        hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out)

    x = whole(np.random.default_rng(4), (16, 16), "float16")
    out = np.zeros((16, 16), np.float32)
    square_twice[1, WAVE](x, out)
    wide = x.astype(np.float32)
    np.testing.assert_array_equal(out, wide @ wide.T + 1)


def test_elements_and_their_positions() -> None:
    @hip.jit
    def number(left_seen, right_seen, out, counts):
        left = hip.matrix.fragment("a", CUBE, np.float16)
        right = hip.matrix.fragment("b", CUBE, np.float16)
        total = hip.matrix.fragment("accumulator", CUBE, np.float32)
        for i in range(len(left)):
            row, column = hip.matrix.position(left, i)
            left[i] = row * 16 + column
            left_seen[row, column] = 1
        for i in range(len(right)):
            row, column = hip.matrix.position(right, i)
            right[i] = 1 if row == column else 0
            right_seen[row, column] = 1
        hip.matrix.fill(total, 0)
        hip.matrix.mma(total, left, right, total)
        for i in range(len(total)):
            row, column = hip.matrix.position(total, i)
            hip.atomic.add(counts, (row, column), 1)
            total[i] += 1000 * column
        if len(total) > 0:
            total[-1] = -total[len(total) - 1]
        hip.matrix.store(total, out)
        if hip.grid(1) == 0:
            counts[16, 0], counts[16, 1] = right.shape[0], total.shape[1]

    seen = [np.zeros((16, 16), np.int32) for _ in range(2)]
    out, counts = np.zeros((16, 16), np.float32), np.zeros((17, 16), np.int32)
    number[1, WAVE](*seen, out, counts)
    assert seen[0].all()
    assert seen[1].all()
    assert (counts[:16] == 1).all()  # each element of an accumulator belongs to one lane
    assert counts[16].tolist() == [16, 16] + [0] * 14
    numbered = np.arange(256).reshape(16, 16) + 1000 * np.arange(16)
    np.testing.assert_array_equal(np.abs(out), numbered)
    assert (out < 0).sum() == (1 if TARGET == "cpu" else WAVE)  # the last element of each lane that has any


@pytest.mark.cpu_device("all elements are the first lane's there")
@pytest.mark.parametrize("form", ["loop", "vectors", "regions"])
@pytest.mark.sample(1)
def test_an_element_that_a_lane_has_not(form: str) -> None:
    """It is nothing that another lane has."""

    @hip.jit
    def spoil(x, out):
        first = hip.matrix.fragment("accumulator", CUBE, np.float32)
        second = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.load(first, x)
        hip.matrix.load(second, x)
        if hip.laneid > 0:
            first[0] = -1
            first[-1] = -2
            second[-256] = -3
        hip.matrix.store(first, out)
        hip.matrix.store(second, out, 16, 0)

    @hip.jit(boundscheck=True)
    def checked(out):
        part = hip.matrix.fragment("accumulator", CUBE, np.float32)
        part[0] = out[0, 0]

    x, out = np.random.default_rng(3).random((16, 16), np.float32), np.zeros((32, 16), np.float32)
    with runtime_config.cpu_form.scope(form):
        spoil[1, WAVE](x, out)
    np.testing.assert_array_equal(out, np.concatenate([x, x]))
    with pytest.raises(IndexError):
        checked[1, WAVE](out)


@pytest.mark.sample(1)
@pytest.mark.parametrize("order", "CF")
@pytest.mark.parametrize(("role", "kind"), [("a", "bfloat16"), ("b", "bfloat16"), ("b", "int8"), ("b", "float16"),
                                            ("a", "float32"), ("accumulator", "float32")])  # fmt: skip
@pytest.mark.parametrize("shape", [(16, 16, 32), (32, 32, 24)])
def test_a_copy_by_way_of_a_fragment(role: str, kind: str, order: str, shape: tuple[int, int, int]) -> None:
    """Of all bits, from an array in one order to one in the other."""
    element = ELEMENTS[kind]
    fitting = [one for one in HAVING if one.shape[:2] == shape[:2] and shape[2] % one.shape[2] == 0]
    if not any(kind == (one.accumulator if role == "accumulator" else one.a) for one in fitting):
        pytest.skip(f"{TARGET} has no such fragment")

    @hip.jit
    def copy(x, out):
        part = hip.matrix.fragment(role, shape, element)
        hip.matrix.load(part, x)
        hip.matrix.store(part, out)

    m, n, k = shape
    extents = {"a": (m, k), "b": (k, n), "accumulator": (m, n)}[role]
    x = np.random.default_rng(8).integers(-99, 99, extents).astype(dtype(kind), order="C" if order == "F" else "F")
    out = np.zeros(extents, dtype(kind), order)
    copy[1, WAVE](hip.to_device(x), device_out := hip.to_device(out))
    np.testing.assert_array_equal(device_out.copy_to_host().astype(np.float32), x.astype(np.float32))


def test_other_types_are_converted() -> None:
    @hip.jit
    def multiply(x, y, out):
        left = hip.matrix.fragment("a", CUBE, np.float16)
        right = hip.matrix.fragment("b", CUBE, np.float16)
        total = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.load(left, x)
        hip.matrix.load(right, y)
        hip.matrix.fill(total, 0.25)
        hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out)

    rng = np.random.default_rng(6)
    x, y = rng.integers(-4, 5, (16, 16)).astype(np.int64), whole(rng, (16, 16), "float32")
    out = np.zeros((16, 16), np.float16)
    multiply[1, WAVE](x, y, out)
    np.testing.assert_array_equal(out, x @ y + 0.25)


def test_sums_of_int8_wrap_around() -> None:
    kernel = make_product((16, 16, 32), "int8", "int8", "int32")
    x, y = np.full((16, 32), -128, np.int8), np.full((32, 16), 127, np.int8)
    out = np.zeros((16, 16), np.int32)
    kernel[1, WAVE](x, y, out)
    assert (out == 32 * -128 * 127).all()


def test_several_waves_of_a_block_in_two_dimensions() -> None:
    @hip.jit
    def multiply(x, y, out):
        rank = hip.threadIdx.y * hip.blockDim.x + hip.threadIdx.x
        row = rank // hip.warpsize * 16
        left = hip.matrix.fragment("a", CUBE, np.float16)
        right = hip.matrix.fragment("b", CUBE, np.float16)
        total = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.fill(total, 0)
        hip.matrix.load(left, x, row, 0)
        hip.matrix.load(right, y)
        hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out, row, 0)

    rng = np.random.default_rng(7)
    x, y, out = whole(rng, (64, 16), "float16"), whole(rng, (16, 16), "float16"), np.zeros((64, 16), np.float32)
    multiply[1, (16, WAVE // 4)](x, y, out)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.cpu_device("the forms are the CPU device's")
@pytest.mark.sample(1)
@pytest.mark.parametrize("wave_size", [32, 64])
@pytest.mark.parametrize("form", ["loop", "vectors", "regions"])
def test_forms_of_the_cpu_device(form: str, wave_size: int) -> None:
    kernel = make_product((32, 32, 8), "bfloat16", "bfloat16", "float32", wave_size=wave_size)
    rng = np.random.default_rng(8)
    x, y, out = whole(rng, (64, 24), "bfloat16"), whole(rng, (24, 32), "bfloat16"), np.zeros((64, 32), np.float32)
    with runtime_config.cpu_form.scope(form):
        kernel[(1, 2), wave_size](x, y, out)
    np.testing.assert_array_equal(out, x.astype(np.float32) @ y.astype(np.float32))


@pytest.mark.cpu_device("kernels run in the simulator, whatever the device")
def test_the_simulator() -> None:
    def kernel(x, y, out, counts):
        left = hip.matrix.fragment("a", CUBE, types.int8)
        right = hip.matrix.fragment("b", CUBE, types.int8)
        total = hip.matrix.fragment("accumulator", CUBE, types.int32)
        hip.matrix.load(left, x, 1, 1)
        hip.matrix.load(right, y, 0, 1, 18, "col")
        hip.matrix.fill(total, 3)
        hip.matrix.mma(total, left, right, total)
        for i in range(len(total)):
            row, column = hip.matrix.position(total, i)
            counts[row, column] += len(left) * len(right) + total.shape[1]
            total[i] += row
        hip.matrix.store(total, out)

    rng = np.random.default_rng(9)
    x, y = whole(rng, (17, 17), "int8"), whole(rng, (1, 400), "int8")[0]
    results = []
    for simulated in (False, True):
        out, counts = np.zeros((16, 16), np.int32), np.zeros((16, 16), np.int32)
        with config.simulator.scope(simulated):
            hip.jit(kernel)[1, WAVE](x, y, out, counts)
        results.append((out, counts))
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1], results[1][1])
    right = y[18 : 18 + 16 * 18].reshape(16, 18)[:, :16].T
    expected = x[1:, 1:].astype(np.int32) @ right + 3 + np.arange(16)[:, None]
    np.testing.assert_array_equal(results[0][0], expected)


@pytest.mark.cpu_device("kernels run in the simulator, whatever the device")
def test_tiles_over_the_ends_in_the_simulator() -> None:
    def copy(x, out, row, column):
        part = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.load(part, x, row, column, partial=True)
        hip.matrix.store(part, out, -column, -row, partial=True)

    x, out = np.random.default_rng(2).random((9, 20), np.float32), np.zeros((19, 12), np.float32)
    with config.simulator.scope(True):
        simulated = hip.jit(copy)
        simulated[1, WAVE](x, out, -2, 6)
        with pytest.raises(MatrixError, match="two axes"):
            simulated[1, WAVE](x[0], out, 0, 0)
    tile = np.pad(x, 16)[14:30, 22:38]  # from row -2 and column 6 on
    around = np.zeros((40, 40), np.float32)
    around[10:26, 18:34] = tile  # to row -6 and column 2
    np.testing.assert_array_equal(out, around[16:35, 16:28])


@pytest.mark.parametrize(("row", "column", "axis"), [(1, 0, 0), (0, 1, 1), (-1, 0, 0)])
def test_a_tile_that_is_not_within_the_array(row: int, column: int, axis: int) -> None:
    @hip.jit(boundscheck=True)
    def load(x, out, row, column):
        part = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.load(part, x, row, column)
        hip.matrix.store(part, out)

    x, out = np.ones((16, 16), np.float32), np.zeros((16, 16), np.float32)
    load[1, WAVE](x, out, 0, 0)
    assert out.all()
    with pytest.raises(IndexError, match=f"of dimension {axis} with extent 16 of array 'x'"):
        load[1, WAVE](x, out, row, column)


def test_a_block_that_ends_within_a_wave() -> None:
    kernel = make_product(CUBE, "float16", "float16", "float32", boundscheck=True)
    x, out = np.ones((16, 16), np.float16), np.zeros((16, 16), np.float32)
    kernel[1, (8, WAVE // 4)](x, x, out)
    assert (out == 16).all()
    with pytest.raises(ValueError, match="needs whole waves"):
        kernel[1, (8, WAVE // 4 - 1)](x, x, out)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.sample(1)
def test_a_function_cannot_return_a_fragment_that_it_made(several: bool) -> None:
    @hip.jit
    def make():
        part = hip.matrix.fragment("a", CUBE, np.float16)
        return (part, part) if several else part

    @hip.jit
    def same(part):
        return part

    @hip.jit
    def filled(x):
        part = hip.matrix.fragment("accumulator", CUBE, np.float32)
        hip.matrix.fill(same(part), 2)
        hip.matrix.store(part, x)

    @hip.jit
    def kernel(x):
        make()
        x[0, 0] = 0

    x = np.zeros((16, 16), np.float32)
    filled[1, WAVE](x)
    assert (x == 2).all()
    with pytest.raises(TypingError, match="returns a fragment of hip.matrix, whose memory ends with the function"):
        kernel[1, WAVE](x)
