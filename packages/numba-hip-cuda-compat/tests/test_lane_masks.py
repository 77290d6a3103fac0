"""Masks of lanes have the types that Numba CUDA gives them, where waves have 32 lanes."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np
import pytest

import numba_hip
from hip_runtime import config as runtime_config
from numba_hip import config
from numba_hip_cuda import posing

SIGNED = "sign leader leading lanes_below reversed all is_minus_one is_unsigned shifted positive matched same active"
NARROW = "one8 minus8 word minus32 wide"
COLUMNS = (SIGNED + " " + NARROW).split()


def kernel_of(cuda: Any) -> Any:
    def kernel(out, numbers):  # type: ignore[no-untyped-def]
        t = cuda.threadIdx.x
        some, full = cuda.ballot_sync(0xFFFFFFFF, t >= 5), cuda.ballot_sync(0xFFFFFFFF, True)
        mine = cuda.match_any_sync(0xFFFFFFFF, t % 5)
        matched, same = cuda.match_all_sync(full, 7)
        out[t, 0], out[t, 1], out[t, 2] = some, 31 - cuda.clz(mine), cuda.clz(some)
        out[t, 3], out[t, 4] = cuda.clz(cuda.lanemask_lt()), cuda.brev(some)
        out[t, 5], out[t, 6], out[t, 7] = cuda.all_sync(full, t < 32), full == -1, full == 0xFFFFFFFF
        out[t, 8], out[t, 9] = cuda.ballot_sync(0xFFFFFFFF, t != 3) >> t, full > 0
        out[t, 10], out[t, 11], out[t, 12] = matched, same, cuda.activemask()
        out[t, 13], out[t, 14] = cuda.brev(np.uint8(1)), cuda.brev(np.int8(-128))
        out[t, 15], out[t, 16] = cuda.brev(np.uint32(2)), cuda.brev(np.int32(-1))
        out[t, 17] = cuda.brev(np.uint64(2))

    return kernel


def column(out: np.ndarray[Any, Any], name: str) -> list[int]:
    return out[:, COLUMNS.index(name)].tolist()


@pytest.mark.parametrize("simulated", [False, True])
def test_they_are_signed_and_have_32_bits(cuda: ModuleType, simulated: bool) -> None:
    out = np.zeros((32, len(COLUMNS)), np.int64)
    with config.simulator.scope(simulated):
        cuda.jit(kernel_of(cuda))[1, 32](out, 0)
    lanes = range(32)
    assert column(out, "sign") == [-32] * 32
    assert column(out, "leader") == [max(n for n in lanes if n % 5 == t % 5) for t in lanes]
    assert column(out, "leading") == [0] * 32
    assert column(out, "lanes_below") == [32 - t for t in lanes]
    assert column(out, "reversed") == [0x07FFFFFF] * 32
    assert column(out, "all") == column(out, "is_minus_one") == column(out, "same") == [1] * 32
    assert column(out, "is_unsigned") == column(out, "positive") == [0] * 32
    assert column(out, "shifted") == [-9 >> t for t in lanes]
    assert column(out, "matched") == [-1] * 32
    assert column(out, "active") == [2**32 - 1] * 32
    assert out[0, -5:].tolist() == [2**31, 0x01FFFFFF, 2**30, 2**32 - 1, 2**62]


def test_where_waves_have_64_lanes_they_have_64_bits(cuda: ModuleType) -> None:
    with runtime_config.cpu_wave_size.scope(64):
        out = np.zeros((64, len(COLUMNS)), np.int64)
        cuda.jit(kernel_of(cuda))[1, 64](out, 0)
    assert column(out, "sign") == [2**32 - 32] * 64
    assert column(out, "active") == [-1] * 64  # of a uint64
    assert column(out, "positive") == [1] * 64
    assert column(out, "lanes_below") == [64 - t for t in range(64)]


def test_those_of_hip_are_unsigned_while_posing(cuda: ModuleType) -> None:
    out = np.zeros((32, len(COLUMNS)), np.int64)
    numba_hip.jit(kernel_of(numba_hip))[1, 32](out, 0)
    assert column(out, "sign") == [2**32 - 32] * 32
    assert column(out, "leading") == [32] * 32
    assert out[0, -5:-3].tolist() == [128, 1]


@pytest.mark.parametrize(("target", "bits"), [("gfx942", 64), ("gfx1100", 32), ("gfx1201", 32)])
@pytest.mark.sample(1)
def test_amd_gpus_have_them_by_the_size_of_their_waves(cuda: ModuleType, target: str, bits: int) -> None:
    masks = cuda.jit(lambda t: (cuda.ballot_sync(-1, t > 1), cuda.lanemask_lt()), device=True)
    _, returned = numba_hip.compile(masks.py_func, "(int32,)", target=target, output="llvm", device=True)
    signed, unsigned = ("int32", "uint32") if bits == 32 else ("uint64", "uint64")
    assert str(returned) == f"Tuple({signed}, {unsigned})" or str(returned) == f"UniTuple({signed} x 2)"
    kernel = kernel_of(cuda)
    assembly, _ = numba_hip.compile(kernel, "void(int64[:, ::1], int64)", target=target, output="asm")
    assert "v_cmp" in assembly


@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_floats_match_by_their_bits(cuda: ModuleType, simulated: bool, dtype: type) -> None:
    def kernel(values, same, all_of_them):  # type: ignore[no-untyped-def]
        t = cuda.threadIdx.x
        same[t] = cuda.match_any_sync(0xFFFFFFFF, values[t])
        all_of_them[t] = cuda.match_all_sync(0xFFFFFFFF, values[t % 2 * 2])[1]

    same, all_of_them = np.zeros(4, np.int64), np.zeros(4, bool)
    with config.simulator.scope(simulated):
        cuda.jit(kernel)[1, 4](np.array([np.nan, 0.0, np.nan, -0.0], dtype), same, all_of_them)
    assert same.tolist() == [0b0101, 0b0010, 0b0101, 0b1000]
    assert all_of_them.all()


@pytest.mark.parametrize("simulated", [False, True])
def test_numbers_of_lanes_match_as_they_are(cuda: ModuleType, simulated: bool) -> None:
    def kernel(out):  # type: ignore[no-untyped-def]
        lane = cuda.laneid
        out[lane, 0] = cuda.match_any_sync(0xFFFFFFFF, lane)
        out[lane, 1] = cuda.match_all_sync(0xFFFFFFFF, cuda.laneid)[1]
        out[lane, 2] = cuda.shfl_up_sync(0xFFFFFFFF, lane, 1) + cuda.shfl_sync(0xFFFFFFFF, cuda.warpsize, 5)

    out = np.zeros((8, 3), np.int64)
    with config.simulator.scope(simulated):
        cuda.jit(kernel)[1, 8](out)
    assert out.tolist() == [[1 << lane, 0, max(lane - 1, 0) + 32] for lane in range(8)]


def test_a_kernel_in_the_cache_is_that_of_its_waves(cuda: ModuleType, tmp_path: Any) -> None:
    found = []
    with config.cache_dir.scope(str(tmp_path)):
        for lanes in (32, 64, 32):
            with runtime_config.cpu_wave_size.scope(lanes):
                kernel = cuda.jit(kernel_of(cuda), cache=True)
                out = np.zeros((64, len(COLUMNS)), np.int64)
                kernel[1, 64](out, 0)
                found.append((column(out, "sign")[0], sum(kernel.stats.cache_hits.values())))
    assert found == [(-32, 0), (2**32 - 32, 0), (-32, 1)]


def test_a_call_that_is_wrong_is_named_as_in_the_program() -> None:
    with posing() as cuda, pytest.raises(Exception, match=r"cuda.ballot_sync takes \(mask, predicate\)"):
        cuda.jit(lambda out: cuda.ballot_sync(1))[1, 1](np.zeros(1))
