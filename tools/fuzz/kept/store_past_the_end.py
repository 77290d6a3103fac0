# ruff: noqa
"""Random kernel 10: run it for what differs from plain Python, if anything does. NUMBA_HIP_CPU_FORM (loop, regions,
vectors) and NUMBA_HIP_CPU_WIDTH choose the form of its code."""

import os

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")

from numba import hip

BLOCKS, BLOCK, WAVE, N = 1, (5, 7), 32, 0
THREADS, WIDTH = 35, 5
ROWS = BLOCKS * THREADS

# What operations of kernels give, as functions of one thread. `njit` compiles what does not wait.

import numba
import numpy as np
from numba.extending import register_jitable


def make_cast(kind):
    """The cast of floating-point numbers to *kind*: the nearest number that it has, and 0 for NaN."""
    least, most, zero = kind(np.iinfo(kind).min), kind(np.iinfo(kind).max), kind(0)
    low, high = np.float64(least), np.float64(most)

    @register_jitable
    def cast(value):
        wide = np.float64(value)
        if wide != wide:
            return zero
        if wide <= low:
            return least
        return most if wide >= high else kind(wide)

    return cast


def make_divisions(kind):
    """``//`` and ``%`` of *kind*: towards minus infinity, and the least number by -1 wraps around."""
    if np.iinfo(kind).min == 0:
        return register_jitable(lambda one, two: kind(one // two)), register_jitable(lambda one, two: kind(one % two))
    minus, zero = kind(-1), kind(0)

    @register_jitable
    def floor_divide(one, two):
        return kind(zero - one) if two == minus else kind(one // two)

    @register_jitable
    def modulo(one, two):
        return zero if two == minus else kind(one % two)

    return floor_divide, modulo


to_int8, to_int16, to_int32, to_int64 = map(make_cast, (np.int8, np.int16, np.int32, np.int64))
to_uint8, to_uint16, to_uint32, to_uint64 = map(make_cast, (np.uint8, np.uint16, np.uint32, np.uint64))
floor_divide_int8, modulo_int8 = make_divisions(np.int8)
floor_divide_int16, modulo_int16 = make_divisions(np.int16)
floor_divide_int32, modulo_int32 = make_divisions(np.int32)
floor_divide_int64, modulo_int64 = make_divisions(np.int64)
floor_divide_uint8, modulo_uint8 = make_divisions(np.uint8)
floor_divide_uint16, modulo_uint16 = make_divisions(np.uint16)
floor_divide_uint32, modulo_uint32 = make_divisions(np.uint32)
floor_divide_uint64, modulo_uint64 = make_divisions(np.uint64)


@register_jitable
def atomic_add(array, place, value):
    old = array[place]
    array[place] = old + value
    return old


@register_jitable
def atomic_sub(array, place, value):
    old = array[place]
    array[place] = old - value
    return old


@register_jitable
def atomic_max(array, place, value):
    old = array[place]
    array[place] = max(old, value)
    return old


@register_jitable
def atomic_min(array, place, value):
    old = array[place]
    array[place] = min(old, value)
    return old


@register_jitable
def atomic_and_(array, place, value):
    old = array[place]
    array[place] = old & value
    return old


@register_jitable
def atomic_or_(array, place, value):
    old = array[place]
    array[place] = old | value
    return old


@register_jitable
def atomic_xor(array, place, value):
    old = array[place]
    array[place] = old ^ value
    return old


@register_jitable
def atomic_exch(array, place, value):
    old = array[place]
    array[place] = value
    return old


@register_jitable
def atomic_cas(array, place, compared, value):
    old = array[place]
    if old == compared:
        array[place] = value
    return old


@register_jitable
def atomic_inc(array, place, value):
    old = array[place]
    if old >= value:
        array[place] = 0
    else:
        array[place] += 1
    return old


@register_jitable
def atomic_dec(array, place, value):
    old = array[place]
    if old == 0 or old > value:
        array[place] = value
    else:
        array[place] -= 1
    return old


def numbers(generator, dtype, count):
    """Numbers of all sizes, with those at which something changes."""
    if dtype.kind == "b":
        return generator.random(count) < 0.5
    if dtype.kind in "iu":
        found = generator.integers(-(2**63), 2**63 - 1, count, np.int64, endpoint=True)
        found >>= generator.integers(0, 64, count)
        special = np.array([0, 1, -1, 2**63 - 1, -(2**63), 127, 128, 255, -128, 2**15, 2**31, -(2**31)], np.int64)
    else:
        found = generator.standard_normal(count) * 2.0 ** generator.integers(-6, 70, count)
        whole = generator.random(count) < 0.5
        found[whole] = generator.integers(-300, 300, whole.sum())
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 127.5, -128.5, 2.0**31, 2.0**63, 2.0**64])
    chosen = generator.random(count) < 0.25
    found[chosen] = generator.choice(special, chosen.sum())
    if generator.random() < 0.2:
        found[:] = found[0]
    with np.errstate(over="ignore"):
        return found.astype(dtype)


def run_reference(thread, arrays, n, blocks, threads, wave, waits):
    """All threads of all blocks one after another, or in turns where they wait for one another."""
    with np.errstate(all="ignore"):
        for block in range(blocks):
            made = {}

            def shared(name, count, dtype, made=made):
                return made.setdefault(name, np.zeros(count, dtype))

            running = [thread(block, t, shared, *arrays, n) for t in range(threads)]
            if waits:
                take_turns(running, wave)


def take_turns(running, wave):
    """Run generators of threads from one operation of all to the next."""
    answers = dict.fromkeys(range(len(running)))
    while answers:
        asked = {}
        for t, answer in answers.items():
            try:
                found = running[t].send(answer)
            except StopIteration:
                continue
            asked[t] = found if isinstance(found, tuple) else (found,)
        assert len({found[0] for found in asked.values()}) <= 1
        answers = {t: answer_one(t, asked, wave) for t in asked}


def answer_one(t, asked, wave):
    """What thread *t* is given by the operation that all threads *asked* for."""
    kind, *given = asked[t]
    if kind == "barrier":
        return None
    if kind in ("count", "and", "or"):
        votes = [bool(found[1]) for found in asked.values()]
        return {"count": sum(votes), "and": all(votes), "or": any(votes)}[kind]
    first = t - t % wave
    lanes = {other - first: found for other, found in asked.items() if first <= other < first + wave}
    if kind == "shuffle":
        source = int(given[1])
        return lanes[source][1] if source in lanes else given[0]
    votes = {lane: found[1] == given[0] if kind == "match" else bool(found[1]) for lane, found in lanes.items()}
    if kind in ("any", "all"):
        return {"any": any, "all": all}[kind](votes.values())
    return sum(1 << lane for lane, vote in votes.items() if vote)


def differ(right, found):
    """Where numbers differ, bit by bit but for those of NaN."""
    if right.dtype.kind != "f":
        return right != found
    bits = np.dtype(f"u{right.itemsize}")
    return (right.view(bits) != found.view(bits)) & ~(np.isnan(right) & np.isnan(found))


def run_with_njit(thread, arrays, n, blocks, threads):
    """The same, compiled by Numba for the processor; for threads that do not wait."""
    compiled = numba.njit(error_model="numpy")(thread)
    for block in range(blocks):
        for t in range(threads):
            compiled(block, t, 0, *arrays, n)


@hip.jit(wave_size=32)
def kernel(
    in_float16,
    in_int64,
    in_uint8,
    in_int32,
    in_uint16,
    in_uint32,
    cells_uint32,
    in_uint64,
    own_uint32,
    own_int32,
    own_int16,
    own_uint8,
    own_uint64,
    own_int64,
    n,
):
    t = np.int64(hip.threadIdx.x + WIDTH * hip.threadIdx.y)
    g = t + THREADS * np.int64(hip.blockIdx.x)
    v0 = np.uint64(-np.uint64(np.uint64(in_float16[3]) - np.uint64(in_int64[1::2][g])))
    v1 = np.uint32(v0)
    v2 = np.int64(
        np.int64(np.uint16(v1)) * (np.int64(v0) if (np.int8(np.int8(v0) & np.int8(7)) == np.int8(2)) else in_int64[g])
    )
    own_uint32[g, 0] = np.uint32(np.uint32(v2) << np.uint32(v1 & np.uint32(31)))


def reference(
    block,
    t,
    shared,
    in_float16,
    in_int64,
    in_uint8,
    in_int32,
    in_uint16,
    in_uint32,
    cells_uint32,
    in_uint64,
    own_uint32,
    own_int32,
    own_int16,
    own_uint8,
    own_uint64,
    own_int64,
    n,
):
    t = np.int64(t)
    g = np.int64(t + THREADS * block)
    v0 = np.uint64(-np.uint64(to_uint64(in_float16[3]) - np.uint64(in_int64[1::2][g])))
    v1 = np.uint32(v0)
    v2 = np.int64(
        np.int64(np.uint16(v1)) * (np.int64(v0) if (np.int8(np.int8(v0) & np.int8(7)) == np.int8(2)) else in_int64[g])
    )
    own_uint32[g, 0] = np.uint32(np.uint32(v2) << np.uint32(v1 & np.uint32(31)))


def make_arrays():
    generator = np.random.default_rng(10)
    return [
        numbers(generator, np.dtype("float16"), 2 * ROWS + 40),
        numbers(generator, np.dtype("int64"), 2 * ROWS + 40),
        numbers(generator, np.dtype("uint8"), 2 * ROWS + 40),
        numbers(generator, np.dtype("int32"), 2 * ROWS + 40),
        numbers(generator, np.dtype("uint16"), 2 * ROWS + 40),
        numbers(generator, np.dtype("uint32"), 2 * ROWS + 40),
        np.full(6, 77, np.uint32),
        numbers(generator, np.dtype("uint64"), 2 * ROWS + 40),
        np.full((ROWS + 70, 4), 7, np.uint32, order="F"),
        np.full((ROWS + 70, 1, 2), 7, np.int32, order="C"),
        np.full((ROWS + 70, 1), 7, np.int16, order="F"),
        np.full((ROWS + 70, 4, 2), 7, np.uint8, order="F"),
        np.full((ROWS + 70, 1), 7, np.uint64, order="C"),
        np.full((ROWS + 70, 1), 7, np.int64, order="F"),
    ]


NAMES = [
    "in_float16",
    "in_int64",
    "in_uint8",
    "in_int32",
    "in_uint16",
    "in_uint32",
    "cells_uint32",
    "in_uint64",
    "own_uint32",
    "own_int32",
    "own_int16",
    "own_uint8",
    "own_uint64",
    "own_int64",
]
WAITS = False

if __name__ == "__main__":
    right, found = make_arrays(), make_arrays()
    run_reference(reference, right, N, BLOCKS, THREADS, WAVE, WAITS)
    kernel[BLOCKS, BLOCK](*found, N)
    failed = False
    for name, one, other in zip(NAMES, right, found):
        for place in zip(*np.nonzero(differ(one, other))):
            failed = True
            print(f"{name}[{', '.join(map(str, place))}] is {other[place]!r}, must be {one[place]!r}")
    raise SystemExit(failed)
