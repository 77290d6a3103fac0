"""``hip.shared.load``: parts of arrays in shared memory, on values, and the instructions that AMD GPUs have for it."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from numba import hip
from numba.core import types
from numba.core.errors import TypingError

import hip_runtime
from numba_hip import config
from numba_hip.errors import RaceError, RaceWarning

WAVE = hip_runtime.current_device().attributes.wave_size
ROWS, COLUMNS, PITCH = 6, 48, 56
FAR = 100
"""Elements around an array in what `expected_part` cuts from."""


def make_kernel(dtype: Any, pitch: int = COLUMNS, **options: Any) -> Any:
    """A kernel that loads ROWS x COLUMNS elements into rows of *pitch*, and copies all of the shared array out."""

    @hip.jit(**options)
    def copy(x, out, row, column):
        tile = hip.shared.array((ROWS, pitch), dtype)
        thread = hip.threadIdx.x + hip.blockDim.x * (hip.threadIdx.y + hip.blockDim.y * hip.threadIdx.z)
        threads = hip.blockDim.x * hip.blockDim.y * hip.blockDim.z
        for i in range(thread, ROWS * pitch, threads):
            tile[i // pitch, i % pitch] = 99
        hip.syncthreads()
        hip.shared.load(tile[:, :COLUMNS], x, (row, column))
        hip.syncthreads()
        for i in range(ROWS * pitch - 1 - thread, -1, -threads):
            out[i // pitch, i % pitch] = tile[i // pitch, i % pitch]

    return copy


def expected_part(x: Any, row: int, column: int) -> Any:
    around = np.pad(x, FAR)
    return around[FAR + row : FAR + row + ROWS, FAR + column : FAR + column + COLUMNS]


PLACES = [(0, 0), (4, 8), (3, 5), (-2, -4), (17, 40), (18, 62), (-6, 0), (50, 90), (0, -48)]


def check(kernel: Any, x: Any, pitch: int, block: Any) -> None:
    host = x if isinstance(x, np.ndarray) else x.copy_to_host()
    for row, column in PLACES:
        out = np.zeros((ROWS, pitch), x.dtype)
        kernel[1, block](x, out, row, column)
        np.testing.assert_array_equal(out[:, :COLUMNS], expected_part(host, row, column), f"{row}, {column}")
        assert (out[:, COLUMNS:] == 99).all()


def matrix(dtype: Any, shape: tuple[int, int] = (20, 64)) -> Any:
    return np.random.default_rng(3).integers(1, 90, shape).astype(dtype)


@pytest.mark.sample(1)
@pytest.mark.parametrize("pitch", [COLUMNS, PITCH, COLUMNS + 1])
@pytest.mark.parametrize("dtype", [np.float32, np.int8, np.float16, np.float64, np.complex128, np.uint16])
def test_parts_of_all_types_within_and_over_the_ends(dtype: Any, pitch: int) -> None:
    check(make_kernel(dtype, pitch), matrix(dtype), pitch, 2 * WAVE)


@pytest.mark.parametrize("block", [1, WAVE - 1, 2 * WAVE + 3, (WAVE // 4, 6), (8, 3, 5)])
@pytest.mark.sample(1)
def test_blocks_of_any_shape(block: Any) -> None:
    check(FLOATS, matrix(np.float32), COLUMNS, block)


FLOATS = make_kernel(np.float32)

ORDERS = {  # views of device arrays: those of the host are copied into contiguous ones
    "columns": lambda x: hip.to_device(np.asfortranarray(x)),
    "wide rows": lambda x: hip.to_device(np.pad(x, ((0, 0), (0, 7))))[:, :-7],
    "wider rows": lambda x: hip.to_device(np.pad(x, ((0, 0), (0, 8))))[:, :-8],
    "every second": lambda x: hip.to_device(np.repeat(np.repeat(x, 2, 0), 3, 1))[::2, ::3],
    "backwards": lambda x: hip.to_device(x[::-1].copy())[::-1],
    "at half a word": lambda x: hip.to_device(np.pad(x, ((0, 0), (1, 7))))[:, 1:-7],
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize("order", ORDERS)
def test_arrays_in_any_order(order: str, dtype: Any) -> None:
    kernel = FLOATS if dtype == np.float32 else make_kernel(np.float16)
    check(kernel, ORDERS[order](matrix(dtype)), COLUMNS, 2 * WAVE)


def test_views_of_shared_arrays_in_any_order() -> None:
    @hip.jit
    def copy(x, out):
        tile = hip.shared.array((3, 12, 32), np.float32)
        hip.shared.load(tile[0][::-1], x)
        hip.shared.load(tile[1][::2, 8:24], x, (1, 4))
        hip.shared.load(tile[1][1::2, ::2], x, (2, 3))
        hip.shared.load(tile[2].T, x, (3, 2))
        hip.shared.load(tile[1][::2, :8], x, (2, 8))
        hip.shared.load(tile[1][::2, 24:], x, (4, 8))
        hip.shared.load(tile[1][1::2, 1::2], x, (2, 4))
        hip.syncthreads()
        for i in range(hip.threadIdx.x, 3 * 12 * 32, hip.blockDim.x):
            out[i // 384, i // 32 % 12, i % 32] = tile[i // 384, i // 32 % 12, i % 32]

    x, out, expected = matrix(np.float32, (60, 70)), np.zeros((3, 12, 32), np.float32), np.zeros((3, 12, 32))
    copy[1, 2 * WAVE](x, out)
    expected[0] = x[:12, :32][::-1]
    expected[1, ::2] = np.hstack([x[2:8, 8:16], x[1:7, 4:20], x[4:10, 8:16]])
    expected[1, 1::2, ::2], expected[1, 1::2, 1::2] = x[2:8, 3:19], x[2:8, 4:20]
    expected[2] = x[3:35, 2:14].T
    np.testing.assert_array_equal(out, expected)


def test_one_axis_and_the_beginning_without_a_start() -> None:
    @hip.jit
    def copy(x, out, start):
        part = hip.shared.array(100, np.int16)
        again = hip.shared.array((4, 5), np.int16)
        hip.shared.load(part, x, start)
        hip.shared.load(again, x.reshape(100, 3))
        hip.syncthreads()
        for i in range(hip.threadIdx.x, 100, hip.blockDim.x):
            out[i] = part[i]
        for i in range(hip.threadIdx.x, 20, hip.blockDim.x):
            out[100 + i] = again[i // 5, i % 5]

    x = np.arange(1, 301, dtype=np.int16)
    around = np.pad(x, 400)
    for start in (0, 2, 7, -3, 200, 230, 400):
        out = np.zeros(120, np.int16)
        copy[1, WAVE](x, out, start)
        np.testing.assert_array_equal(out[:100], around[400 + start : 500 + start])
        np.testing.assert_array_equal(out[100:].reshape(4, 5), np.pad(x.reshape(100, 3)[:4], ((0, 0), (0, 2))))


def test_a_loop_that_loads_the_next_part_while_it_adds_up_this_one() -> None:
    @hip.jit
    def add_up(x, sums):
        parts = hip.shared.array((2, 128), np.float32)
        hip.shared.load(parts[0], x, 0)
        hip.syncthreads()
        total = np.float32(0)
        for i in range(x.size // 128):
            hip.shared.load(parts[(i + 1) % 2], x, 128 * (i + 1))
            for j in range(128):
                total += parts[i % 2, (j + hip.threadIdx.x) % 128]
            hip.syncthreads()
        sums[hip.threadIdx.x] = total

    x = np.random.default_rng(1).integers(0, 9, 128 * 7).astype(np.float32)
    sums = np.zeros(2 * WAVE, np.float32)
    add_up[1, 2 * WAVE](x, sums)
    assert (sums == x.sum()).all()


def test_what_lies_in_shared_or_private_memory_is_a_source_too() -> None:
    @hip.jit
    def copy(out):
        first = hip.shared.array(64, np.float32)
        second = hip.shared.array(64, np.float32)
        own = hip.local.array(64, np.float32)
        for i in range(64):
            own[i] = 2 * i
        for i in range(hip.threadIdx.x, 64, hip.blockDim.x):
            first[i] = i
        hip.syncthreads()
        hip.shared.load(second, first)
        hip.syncthreads()
        for i in range(hip.threadIdx.x, 64, hip.blockDim.x):
            out[i] = second[63 - i]
        hip.syncthreads()
        hip.shared.load(second, own)
        hip.syncthreads()
        for i in range(hip.threadIdx.x, 64, hip.blockDim.x):
            out[64 + i] = second[63 - i]

    out = np.zeros(128, np.float32)
    copy[1, WAVE](out)
    np.testing.assert_array_equal(out, np.concatenate([np.arange(63.0, -1, -1), np.arange(126.0, -1, -2)]))


@pytest.mark.cpu_device("kernels run in the simulator, whatever the device")
def test_the_simulator() -> None:
    x = matrix(np.float16)
    with config.simulator.scope(True):
        check(make_kernel(np.float16, PITCH), x, PITCH, (16, 3))


@pytest.mark.cpu_device("races are found on the CPU device")
def test_a_read_without_a_barrier_is_a_race() -> None:
    @hip.jit(debug="race")
    def kernel(x, out, waits):
        part = hip.shared.array(64, np.float32)
        hip.shared.load(part, x)
        if waits:
            hip.syncthreads()
        out[hip.threadIdx.x] = part[63 - hip.threadIdx.x]

    x, out = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel[1, 64](x, out, True)
    assert (out == x[::-1]).all()
    with pytest.raises((RaceWarning, RaceError)):
        kernel[1, 64](x, out, False)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("hip.shared.load(tile, 3)", "source has to be an array with 1 or 2 axes"),
        ("hip.shared.load(1.5, x)", "target has to be an array"),
        ("hip.shared.load(tile, x[0])", "2 axes of float32 and 1 of float32"),
        ("hip.shared.load(tile, flags)", "2 axes of float32 and 2 of bool"),
        ("hip.shared.load(tile, x, 0.5)", "start has to be an integer or a tuple"),
        ("hip.shared.load(tile, x, (1, 2, 3))", "start has 3 numbers, and the arrays have 2 axes"),
        ("hip.shared.load(tile, x, 5)", r"pass \(row, column\)"),
        ("hip.shared.load(tile, x, n)", r"pass \(row, column\)"),
        ("hip.shared.load(tile)", "takes"),
        ("hip.shared.load(hip.const.array_like(FIXED), x)", "cannot be written"),
    ],
)
def test_what_is_refused(call: str, message: str) -> None:
    names: dict[str, Any] = {"hip": hip, "np": np, "FIXED": np.ones((4, 4), np.float32)}
    exec(f"def kernel(x, flags, n):\n    tile = hip.shared.array((4, 4), np.float32)\n    {call}", names)
    with pytest.raises(TypingError, match=message):
        hip.compile(names["kernel"], (types.float32[:, ::1], types.boolean[:, ::1], types.int64))


# Machine code.

MATRICES = {name: (kind[:, ::1], kind[:, ::1], types.int64, types.int64)
            for name, kind in (("float32", types.float32), ("float16", types.float16))}  # fmt: skip


@pytest.mark.parametrize("dtype", MATRICES)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1201"])
@pytest.mark.sample(3)
def test_gpus_that_can_load_into_shared_memory_without_registers(target: str, dtype: str) -> None:
    text = hip.compile(make_kernel(dtype, PITCH).py_func, MATRICES[dtype], target=target)[0]
    direct = set(re.findall(r"\t(global_load_lds_\w+) |\t(global_load_dword) [^\n]* lds\n", text))
    wanted = {
        "gfx90a": {"global_load_dword"}, "gfx942": {"global_load_lds_dword"},
        "gfx950": {"global_load_lds_dword", "global_load_lds_dwordx4"},
    }  # fmt: skip
    assert {one or other for one, other in direct} == wanted.get(target, set())


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950"])
@pytest.mark.sample(2)
def test_a_barrier_waits_for_the_loads(target: str) -> None:
    @hip.jit
    def kernel(x, out):
        part = hip.shared.array(1024, np.float32)
        hip.shared.load(part, x)
        hip.syncthreads()
        if hip.threadIdx.x == 1 << 10:  # none: no access of this thread could be what the wait is for
            out[0] = part[5]

    text = hip.compile(kernel.py_func, (types.float32[::1], types.float32[::1]), target=target)[0]
    behind = re.split(r"global_load_lds_dword\w* |global_load_dword [^\n]* lds\n", text)[1:]
    assert "s_barrier" in behind[-1]
    for rest in behind:
        before, barrier, _ = rest.partition("s_barrier")
        if barrier:
            assert re.search(r"s_waitcnt [^\n]*vmcnt\(0\)", before), llvm.llvm_version_info
