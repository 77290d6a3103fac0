"""``wave_size``: kernels with waves of 32 or of 64 lanes, where the target has them."""

import inspect

import numpy as np
import pytest
from numba.core.errors import TypingError

import numba_hip as hip
from hip_devicelib import kernel_metadata
from hip_devicelib.errors import UnknownTargetError, UnsupportedError
from numba_hip import config
from numba_hip.errors import OptionError

RDNA = ["gfx1030", "gfx1100", "gfx12-generic"]
SIGNATURE = "(int32[::1], uint64[::1])"


def lanes(out, votes):
    i = hip.grid(1)
    out[i] = 1000 * hip.warpsize + hip.laneid
    votes[i] = hip.ballot(i % 3 == 0)


def reversed_lanes(values, out):
    i = hip.threadIdx.x
    if i != 5:
        out[i] = hip.shfl(values[i], hip.warpsize - 1 - hip.laneid)


@pytest.mark.cpu_device("a GPU may have waves of one size only")
@pytest.mark.parametrize("simulated", [False, True])
@pytest.mark.parametrize("wave_size", [32, 64])
@pytest.mark.sample(2)
def test_a_kernel_has_the_waves_that_it_asks_for(wave_size, simulated):
    out, votes = np.zeros(128, np.int32), np.zeros(128, np.uint64)
    values, turned = np.arange(128.0), np.full(128, -1.0)
    with config.simulator.scope(simulated):
        hip.jit(wave_size=wave_size)(lanes)[1, 128](out, votes)
        hip.jit(wave_size=wave_size)(reversed_lanes)[1, 128](values, turned)
    thread = np.arange(128)
    first = thread // wave_size * wave_size
    np.testing.assert_array_equal(out, 1000 * wave_size + thread % wave_size)
    expected = [sum(1 << lane for lane in range(wave_size) if (start + lane) % 3 == 0) for start in first]
    np.testing.assert_array_equal(votes, np.array(expected, np.uint64))
    expected = first + wave_size - 1 - thread % wave_size
    asks_an_inactive_lane = expected == 5
    np.testing.assert_array_equal(turned[(thread != 5) & ~asks_an_inactive_lane],
                                  expected[(thread != 5) & ~asks_an_inactive_lane])  # fmt: skip
    assert turned[5] == -1


@pytest.mark.cpu_device("a GPU may have waves of one size only")
def test_kernels_in_the_cache_differ_by_it(tmp_path):
    with config.cache_dir.scope(str(tmp_path)):
        for expected_hits in (0, 1):
            for wave_size in (32, 64):
                kernel = hip.jit(wave_size=wave_size, cache=True)(lanes)
                out = np.zeros(64, np.int32)
                kernel[1, 64](out, np.zeros(64, np.uint64))
                assert out[63] == 1000 * wave_size + 63 % wave_size
                assert sum(kernel.stats.cache_hits.values()) == expected_hits


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", RDNA)
def test_in_the_metadata_of_rdna(target):
    sizes, codes = [], set()
    for wave_size in (None, 32, 64):
        image, _ = hip.compile(lanes, SIGNATURE, target=target, output="object", wave_size=wave_size)
        (kernel,) = kernel_metadata.read_kernels(image)
        sizes.append(kernel.wave_size)
        codes.add(image)
    assert sizes == [32, 32, 64]
    assert len(codes) == 2, "32 is what these GPUs prefer"


@pytest.mark.parametrize("checked", [False, True])
@pytest.mark.parametrize("target", ["gfx1030", "gfx1100", "gfx1201"])
@pytest.mark.sample(2)
def test_shuffles_reach_the_whole_wave(target, checked):
    narrow, wide = (
        hip.compile(reversed_lanes, "(float64[::1], float64[::1])", target=target, wave_size=size, boundscheck=checked)[
            0
        ]
        for size in (32, 64)
    )
    assert "ds_bpermute_b32" in narrow
    in_halves = target != "gfx1201"
    assert ("ds_bpermute_b32" in wide) is not in_halves
    assert ("v_readlane_b32" in wide) is in_halves


def test_pushed_words_reach_the_whole_wave():
    def kernel(words):
        i = hip.threadIdx.x
        words[i] = hip.ds_permute(4 * (63 - i), words[i])

    for target, by_instruction in (("gfx90a", True), ("gfx1100", False), ("gfx1201", True)):
        text, _ = hip.compile(kernel, "(int32[::1],)", target=target, wave_size=64)
        assert ("ds_permute_b32" in text) is by_instruction


def test_a_dispatcher_brings_its_own():
    wide = hip.jit(wave_size=64)(lanes)
    assert wide.compile(SIGNATURE, target="gfx1100").kernel.wave_size == 64
    assert hip.jit(lanes).compile(SIGNATURE, target="gfx1100").kernel.wave_size == 32
    image, _ = hip.compile(wide, SIGNATURE, target="gfx1100", output="object", wave_size=32)
    assert kernel_metadata.read_kernels(image)[0].wave_size == 32


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx950", "gfx9-generic", "gfx9-4-generic"])
@pytest.mark.sample(2)
def test_cdna_has_64_only(target):
    assert "wavefront_size: 64" in hip.compile(lanes, SIGNATURE, target=target, wave_size=64)[0]
    with pytest.raises(TypingError) as caught:
        hip.compile(lanes, SIGNATURE, target=target, wave_size=32)
    message = str(caught.value)
    assert f"wave_size=32: {target} has waves of 64 lanes" in message
    assert "(kernel lanes)" in message
    assert f'test_wave_size.py", line {inspect.getsourcelines(lanes)[1]}' in message


def test_other_errors_stay_what_they_are():
    with pytest.raises(UnknownTargetError):
        hip.compile(lanes, SIGNATURE, target="gfx9999", wave_size=32)
    with pytest.raises(UnsupportedError, match="xnack"):
        hip.compile(lanes, SIGNATURE, target="gfx1100:xnack+", wave_size=32)


@pytest.mark.parametrize("wave_size", [0, 16, 128, -32, "64", 64.0, True, (64,)])
def test_what_no_wave_can_have(wave_size):
    with pytest.raises(OptionError, match="a wave can have 32 or 64 lanes"):
        hip.jit(wave_size=wave_size)(lanes)


def test_a_device_function_has_the_waves_of_its_kernel():
    with pytest.raises(OptionError, match="wave_size=32 of a device function: its waves are those of the kernel"):
        hip.jit(device=True, wave_size=32)(lambda x: x)
