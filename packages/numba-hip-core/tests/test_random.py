"""Random numbers against the generator's definition, written down here in Python's own integers."""

import subprocess
import sys

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import random

MASK = 2**64 - 1


def rotated(x, k):
    return (x << k | x >> (64 - k)) & MASK


class Generator:
    """xoroshiro128+ of 2016, seeded by SplitMix64."""

    def __init__(self, seed):
        z = (seed + 0x9E3779B97F4A7C15) & MASK
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & MASK
        z = (z ^ z >> 27) * 0x94D049BB133111EB & MASK
        self.state = [z ^ z >> 31] * 2

    def next(self):
        s0, s1 = self.state
        s1 ^= s0
        self.state = [rotated(s0, 55) ^ s1 ^ (s1 << 14 & MASK), rotated(s1, 36)]
        return (s0 + (s1 ^ s0)) & MASK

    def jump(self):
        found = [0, 0]
        for word in (0xBEAC0467EBA5FACB, 0xD86B048B86AA9922):
            for bit in range(64):
                if word >> bit & 1:
                    found = [a ^ b for a, b in zip(found, self.state, strict=True)]
                self.next()
        self.state = found


@hip.jit
def draw(states, out):
    i = hip.grid(1)
    for k in range(out.shape[1]):
        out[i, k] = random.xoroshiro128p_next(states, i)


@pytest.mark.parametrize(("seed", "start"), [(0, 0), (1, 0), (2**64 - 1, 2)])
@pytest.mark.sample(1)
def test_the_sequence_of_every_thread(seed, start):
    states = random.create_xoroshiro128p_states(5, seed, start)
    assert hip.is_device_array(states)
    out = np.zeros((5, 20), np.uint64)
    draw[1, 5](states, out)
    draw[1, 5](states, again := np.zeros((5, 3), np.uint64))
    reference = Generator(seed)
    for _ in range(start):
        reference.jump()
    for row, more in zip(out, again, strict=True):
        own = Generator(0)
        own.state = list(reference.state)
        assert [int(x) for x in (*row, *more)] == [own.next() for _ in range(23)]
        reference.jump()


def test_states_seeded_and_advanced_in_a_kernel():
    @hip.jit
    def kernel(states, out):
        i = hip.grid(1)
        random.init_xoroshiro128p_state(states, i, i + 7)
        random.xoroshiro128p_jump(states, i)
        out[i] = random.xoroshiro128p_next(states, i)

    out = np.zeros(3, np.uint64)
    kernel[1, 3](hip.device_array(3, random.xoroshiro128p_dtype), out)
    for i in range(3):
        reference = Generator(i + 7)
        reference.jump()
        assert int(out[i]) == reference.next()


@hip.jit
def sample(states, f32, f64, n32, n64):
    i = hip.grid(1)
    for k in range(f32.shape[1]):
        f32[i, k] = random.xoroshiro128p_uniform_float32(states, i)
        f64[i, k] = random.xoroshiro128p_uniform_float64(states, i)
        n32[i, k] = random.xoroshiro128p_normal_float32(states, i)
        n64[i, k] = random.xoroshiro128p_normal_float64(states, i)


def uniform(generator):
    """A uniform float64, and the float32 that it is rounded to."""
    wide = (generator.next() >> 11) * 2.0**-53
    return wide, np.float32(wide)


@pytest.mark.parametrize("simulator", [False, True])
def test_numbers_made_of_the_bits(simulator, monkeypatch):
    monkeypatch.setenv("NUMBA_HIP_SIMULATOR", str(int(simulator)))
    arrays = [np.zeros((4, 10), dtype) for dtype in (np.float32, np.float64) * 2]
    hip.jit(sample.py_func)[1, 4](random.create_xoroshiro128p_states(4, 99), *arrays)
    reference = Generator(99)
    for k in range(10):
        assert arrays[0][0, k] == uniform(reference)[1]
        assert arrays[1][0, k] == uniform(reference)[0]
        a, b = (uniform(reference)[1] for _ in range(2))
        wanted = np.sqrt(np.float32(-2) * np.log(a)) * np.cos(np.float32(2 * np.pi) * b)
        np.testing.assert_allclose(arrays[2][0, k], wanted, rtol=1e-4, atol=1e-6)
        a, b = (uniform(reference)[1] for _ in range(2))
        wanted = np.sqrt(-2 * np.float64(np.log(a))) * np.cos(2 * np.pi * np.float64(b))
        np.testing.assert_allclose(arrays[3][0, k], wanted, rtol=3e-7)


def test_the_numbers_of_numba_cuda():
    """Those of numba-cuda 0.30.4 on an H100: uniform bit by bit, normal but for the last bit of a logarithm."""
    kinds = {
        "uniform_float32": ["0x1.8f2f88p-1", "0x1.d763ccp-1"],
        "uniform_float64": ["0x1.8f2f879164c83p-1", "0x1.d763cbe1e4593p-1"],
        "normal_float32": ["0x1.3d4d18p-1", "-0x1.5675acp+0", "-0x1.cacccc0p-2"],
        "normal_float64": ["0x1.3d4d14351383dp-1", "-0x1.5675aa9af285cp+0", "-0x1.caccc72c28652p-2"],
    }
    for kind, known in kinds.items():
        function = getattr(random, f"xoroshiro128p_{kind}")

        @hip.jit
        def kernel(states, out):
            for k in range(out.size):
                out[k] = function(states, 0)  # noqa: B023

        out = np.zeros(len(known), kind.partition("_")[2])
        kernel[1, 1](random.create_xoroshiro128p_states(1, 7), out)
        wanted = np.array([float.fromhex(number) for number in known])
        np.testing.assert_allclose(out, wanted, rtol=0 if kind.startswith("uniform") else 2e-7)


def test_distributions():
    arrays = [np.zeros((256, 64), dtype) for dtype in (np.float32, np.float64) * 2]
    sample[4, 64](random.create_xoroshiro128p_states(256, 5), *arrays)
    for uniform in arrays[:2]:
        assert uniform.min() >= 0
        assert uniform.max() <= 1
        assert abs(uniform.mean() - 0.5) < 0.01
        assert abs(uniform.std() - 12**-0.5) < 0.01
    for normal in arrays[2:]:
        assert abs(normal.mean()) < 0.03
        assert abs(normal.std() - 1) < 0.03


def test_an_array_of_states_that_is_seeded_again():
    stream = hip.stream()
    states = random.create_xoroshiro128p_states(3, 1, stream=stream)
    random.init_xoroshiro128p_states(states, 2, stream=stream)
    stream.synchronize()
    np.testing.assert_array_equal(states.copy_to_host(), random.create_xoroshiro128p_states(3, 2).copy_to_host())
    assert random.create_xoroshiro128p_states(0, 1).size == 0


def test_what_is_no_seed():
    least = random.create_xoroshiro128p_states(3, np.int64(-1)).copy_to_host()
    np.testing.assert_array_equal(least, random.create_xoroshiro128p_states(3, 2**64 - 1).copy_to_host())
    with pytest.raises(ValueError, match="seed is 18446744073709551616; it can be -9223372036854775808 to 184467440"):
        random.create_xoroshiro128p_states(3, 2**64)
    with pytest.raises(TypeError, match="seed is 1.5; it has to be a whole number"):
        random.create_xoroshiro128p_states(3, 1.5)
    with pytest.raises(ValueError, match="n is -3"):
        random.create_xoroshiro128p_states(-3, 1)
    with pytest.raises(ValueError, match=r"states have shape \(4,\) and dtype float64"):
        random.init_xoroshiro128p_states(hip.device_array(4), 1)


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_for_amd_gpus(target):
    from numba import types

    states = types.Array(random.xoroshiro128p_type, 1, "C")
    kinds = [types.Array(kind, 2, "C") for kind in (types.float32, types.float64) * 2]
    assert hip.compile(sample, (states, *kinds), target=target, output="object")[0][:4] == b"\x7fELF"


def test_the_module_is_an_attribute():
    code = (
        "from numba import hip; import sys; assert 'numba_hip.random' not in sys.modules; hip.random.xoroshiro128p_next"
    )
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    assert "random" in dir(hip)
