"""Random numbers in kernels: xoroshiro128+, one state a thread. Names are those of ``numba.cuda.random``.

Source of the generator, of its constants and of the jump: D. Blackman and S. Vigna, "xoroshiro128plus.c", version of
2016, https://prng.di.unimi.it/; of the seeding: S. Vigna, "splitmix64.c", there too. The states of an array are 2**64
steps apart, so that threads never draw from the same part of the sequence.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba import njit

from hip_runtime import DeviceArray, Stream, to_device
from numba_hip._numba.identity import load_extensions
from numba_hip._numba.typing import from_dtype
from numba_hip.decorators import jit

xoroshiro128p_dtype = np.dtype([("s0", np.uint64), ("s1", np.uint64)], align=True)
xoroshiro128p_type = from_dtype(xoroshiro128p_dtype)

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
MIX_1, MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
JUMP = np.array([0xBEAC0467EBA5FACB, 0xD86B048B86AA9922], np.uint64)
ONE = np.uint64(1)
ROTATE_0, SHIFT_1, ROTATE_1 = np.uint64(55), np.uint64(14), np.uint64(36)
WIDTH = np.uint64(64)
SPACING = 2.0**-53
TWO_PI_32, TWO_PI_64 = np.float32(2 * math.pi), 2 * math.pi


def _device(function: Callable[..., Any]) -> Any:
    return jit(device=True)(function)


# These run on the host, and are called by kernels.


@njit
def xoroshiro128p_next(states: Any, index: Any) -> Any:
    """Advance ``states[index]``, and return 64 random bits, a uint64."""
    s0 = states[index]["s0"]
    s1 = states[index]["s1"]
    result = s0 + s1
    s1 ^= s0
    states[index]["s0"] = ((s0 << ROTATE_0) | (s0 >> (WIDTH - ROTATE_0))) ^ s1 ^ (s1 << SHIFT_1)
    states[index]["s1"] = (s1 << ROTATE_1) | (s1 >> (WIDTH - ROTATE_1))
    return result


@njit
def xoroshiro128p_jump(states: Any, index: Any) -> None:
    """Advance ``states[index]`` by 2**64 steps."""
    s0 = np.uint64(0)
    s1 = np.uint64(0)
    for i in range(2):
        for bit in range(64):
            if JUMP[i] & (ONE << np.uint64(bit)):
                s0 ^= states[index]["s0"]
                s1 ^= states[index]["s1"]
            xoroshiro128p_next(states, index)
    states[index]["s0"] = s0
    states[index]["s1"] = s1


@njit
def init_xoroshiro128p_state(states: Any, index: Any, seed: Any) -> None:
    """Seed ``states[index]``."""
    z = np.uint64(seed) + GOLDEN
    z = (z ^ (z >> np.uint64(30))) * MIX_1
    z = (z ^ (z >> np.uint64(27))) * MIX_2
    z = z ^ (z >> np.uint64(31))
    states[index]["s0"] = z
    states[index]["s1"] = z


@njit
def fill_states(states: Any, seed: Any, start: Any) -> None:
    """Seed *states*, an array on the host: the first as *seed* says, *start* jumps on, and each a jump further."""
    if not states.size:
        return
    init_xoroshiro128p_state(states, 0, seed)
    for _ in range(start):
        xoroshiro128p_jump(states, 0)
    for i in range(1, states.size):
        states[i]["s0"] = states[i - 1]["s0"]
        states[i]["s1"] = states[i - 1]["s1"]
        xoroshiro128p_jump(states, i)


def _whole(name: str, value: Any, least: int, most: int) -> int:
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it has to be a whole number") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}; it can be {least} to {most}")
    return number


def _states(count: int, seed: Any, subsequence_start: Any) -> np.ndarray[Any, Any]:
    first = _whole("seed", seed, -(2**63), 2**64 - 1) % 2**64
    skipped = _whole("subsequence_start", subsequence_start, 0, 2**63 - 1)
    states = np.zeros(count, xoroshiro128p_dtype)
    if count:
        load_extensions()
        fill_states(states, np.uint64(first), skipped)
    return states


def init_xoroshiro128p_states(
    states: DeviceArray, seed: int, subsequence_start: int = 0, stream: Stream | int | None = None
) -> None:
    """Seed *states*, an array on the device of one axis and dtype `xoroshiro128p_dtype`.

    State 0 is that of *seed*, *subsequence_start* times 2**64 steps on; each is 2**64 steps after the one before. A
    negative seed is that of its 64 bits: -1 is 2**64 - 1.
    """
    if states.ndim != 1 or states.dtype != xoroshiro128p_dtype:
        raise ValueError(
            f"states have shape {states.shape} and dtype {states.dtype}; they need one axis and dtype "
            f"{xoroshiro128p_dtype}"
        )
    states.copy_to_device(_states(states.size, seed, subsequence_start), stream=stream)


def create_xoroshiro128p_states(
    n: int, seed: int, subsequence_start: int = 0, stream: Stream | int | None = None
) -> DeviceArray:
    """A new array of *n* states on the device, seeded as `init_xoroshiro128p_states` does."""
    return to_device(_states(_whole("n", n, 0, 2**48), seed, subsequence_start), stream=stream)


# The numbers are bit by bit those of Numba CUDA, whose float32 are float64 that are rounded, and whose normal float64
# are made of uniform float32.


@_device
def uint64_to_unit_float32(x: Any) -> Any:
    """What `uint64_to_unit_float64` gives, rounded to a float32: one in 3e7 numbers is 1."""
    return np.float32(uint64_to_unit_float64(x))


@_device
def uint64_to_unit_float64(x: Any) -> Any:
    """The 53 highest bits of *x* as a float64 from 0 up to and without 1."""
    return np.float64(np.uint64(x) >> np.uint64(11)) * SPACING


@_device
def xoroshiro128p_uniform_float32(states: Any, index: Any) -> Any:
    """Advance ``states[index]``, and return a float32, uniform from 0 to 1; one in 3e7 is rounded to 1."""
    return uint64_to_unit_float32(xoroshiro128p_next(states, index))


@_device
def xoroshiro128p_uniform_float64(states: Any, index: Any) -> Any:
    """Advance ``states[index]``, and return a float64, uniform from 0 up to and without 1."""
    return uint64_to_unit_float64(xoroshiro128p_next(states, index))


@_device
def xoroshiro128p_normal_float32(states: Any, index: Any) -> Any:
    """Advance ``states[index]`` twice, and return a float32 of the standard normal distribution (Box and Muller)."""
    radius = xoroshiro128p_uniform_float32(states, index)
    angle = xoroshiro128p_uniform_float32(states, index)
    return math.sqrt(np.float32(-2) * math.log(radius)) * math.cos(TWO_PI_32 * angle)


@_device
def xoroshiro128p_normal_float64(states: Any, index: Any) -> Any:
    """Advance ``states[index]`` twice, and return a float64 of the standard normal distribution (Box and Muller).

    It is made of two uniform float32, so that it has no more than some 25 random bits of each.
    """
    radius = xoroshiro128p_uniform_float32(states, index)
    angle = xoroshiro128p_uniform_float32(states, index)
    logarithm = np.float64(np.float32(math.log(radius)))  # of a float32, also in the simulator
    return math.sqrt(-2.0 * logarithm) * math.cos(TWO_PI_64 * np.float64(angle))
