# The semantics of operations in kernels, as functions of one thread. `njit` compiles those that do not wait. Signed
# sums and differences that wrap around are undefined there, so they are computed unsigned.

import numba
import numpy as np
from numba.extending import register_jitable


def make_cast(kind):
    """Floating-point numbers cast to *kind*: saturated, and 0 for NaN."""
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
    """``//`` and ``%`` of *kind*: rounded down; the lowest number divided by -1 wraps around."""
    if np.iinfo(kind).min == 0:
        return register_jitable(lambda one, two: kind(one // two)), register_jitable(lambda one, two: kind(one % two))
    minus, zero = kind(-1), kind(0)

    @register_jitable
    def floor_divide(one, two):
        return kind(-one) if two == minus else kind(one // two)

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
    array[place] = array.dtype.type(np.uint64(old) + np.uint64(value))
    return old


@register_jitable
def atomic_sub(array, place, value):
    old = array[place]
    array[place] = array.dtype.type(np.uint64(old) - np.uint64(value))
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
    """Numbers of all sizes, including those at which the behaviour changes."""
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
    """Runs all threads of all blocks one after another, or in turns if they wait for each other."""
    with np.errstate(all="ignore"):
        for block in range(blocks):
            made = {}

            def shared(name, count, dtype, made=made):
                return made.setdefault(name, np.zeros(count, dtype))

            running = [thread(block, t, shared, *arrays, n) for t in range(threads)]
            if waits:
                take_turns(running, wave)


def take_turns(running, wave):
    """Run the threads' generators from one common operation to the next."""
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
    """The result for thread *t* of the operation that all threads *asked* for."""
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
    """The places where numbers differ in any bit, except for the bits of NaN."""
    if right.dtype.kind != "f":
        return right != found
    bits = np.dtype(f"u{right.itemsize}")
    return (right.view(bits) != found.view(bits)) & ~(np.isnan(right) & np.isnan(found))


def run_with_njit(thread, arrays, n, blocks, threads):
    """The same compiled by Numba for the processor, for threads that do not wait."""
    compiled = numba.njit(error_model="numpy")(thread)
    for block in range(blocks):
        for t in range(threads):
            compiled(block, t, 0, *arrays, n)
