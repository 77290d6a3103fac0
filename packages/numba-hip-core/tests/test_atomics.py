"""Atomic operations: the elements after, and the values returned, against one thread after another in Python."""

import numpy as np
import pytest
from numba.core.errors import NumbaError

import numba_hip as hip
from hip_runtime import config

UNSIGNED = [np.uint32, np.uint64]
INTEGERS = [np.int32, np.int64, *UNSIGNED]
FLOATS = [np.float32, np.float64]


@hip.jit
def histogram(values, counts):
    i = hip.grid(1)
    if i < values.size:
        hip.atomic.add(counts, values[i], 1)


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.sample(3)
def test_a_histogram_by_all_cores(dtype, scaled):
    values = np.random.default_rng(1).integers(0, 16, scaled(200_000)).astype(np.uint8)
    counts = np.zeros(16, dtype)
    histogram[values.size // 256 + 1, 256](values, counts)
    np.testing.assert_array_equal(counts, np.bincount(values, minlength=16))


def kernel_of(operation):
    @hip.jit
    def kernel(target, operands, old):
        i = hip.grid(1)
        if i < operands.size:
            old[i] = operation(target, 0, operands[i])

    return kernel


def applied(start, operands, step):
    """The element after each operand in turn, and what it was before each."""
    before = []
    current = start
    for operand in operands:
        before.append(current)
        current = step(current, operand)
    return current, before


STEPS = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "max": lambda a, b: max(a, b),
    "min": lambda a, b: min(a, b),
    "nanmax": lambda a, b: np.fmax(a, b),
    "nanmin": lambda a, b: np.fmin(a, b),
    "and_": lambda a, b: a & b,
    "or_": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "exch": lambda a, b: b,
    "inc": lambda a, b: a * 0 if a >= b else a + a.dtype.type(1),
    "dec": lambda a, b: b if a == 0 or a > b else a - a.dtype.type(1),
}
OF_INTEGERS = {"and_", "or_", "xor", "inc", "dec"}


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("name", "dtype"),
    [(name, dtype) for name in STEPS for dtype in (INTEGERS if name in OF_INTEGERS else INTEGERS + FLOATS)],
)
def test_one_thread_at_a_time(name, dtype):
    # Also numbers with the highest bit, which has to be that of a sign, or to count, as the type says.
    operands = np.random.default_rng(3).integers(0, 50, 40)
    if name not in ("inc", "dec") or dtype in UNSIGNED:
        highest = 1 << (np.dtype(dtype).itemsize * 8 - 1)
        special = np.array([highest - 1, highest, highest + 1, 2 * highest - 1], np.uint64)
        operands = np.append(operands.astype(np.uint64), np.tile(special, 3))
        operands = np.random.default_rng(3).permutation(operands)
    operands = operands.astype(f"u{np.dtype(dtype).itemsize}").view(dtype) if dtype in INTEGERS else operands - 30.0
    operands = operands.astype(dtype)
    start = dtype(20)
    with np.errstate(over="ignore"):
        wanted, before = applied(start, operands, STEPS[name])
    target, old = np.array([start]), np.zeros_like(operands)
    kernel = kernel_of(getattr(hip.atomic, name))
    for i in range(operands.size):  # a launch each, so that the order is known
        kernel[1, 1](target, operands[i : i + 1], old[i : i + 1])
    assert target[0] == wanted
    np.testing.assert_array_equal(old, np.array(before, dtype))


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_extremes_at_the_sign_bit(dtype):
    @hip.jit
    def kernel(found, operands):
        i = hip.grid(1)
        hip.atomic.max(found, 0, operands[i])
        hip.atomic.nanmax(found, 1, operands[i])
        hip.atomic.min(found, 2, operands[i])
        hip.atomic.nanmin(found, 3, operands[i])

    operands = np.array([5, 2**31 - 1, 2**31, 2**32 - 1], np.uint32).view(dtype)
    found = np.full(4, 7, dtype)
    kernel[1, 4](found, operands)
    assert found.tolist() == [operands.max()] * 2 + [operands.min()] * 2


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
@pytest.mark.parametrize("name", ["max", "min", "nanmax", "nanmin"])
def test_extremes_of_many_threads(name, dtype, scaled):
    operands = np.random.default_rng(4).permutation(100_000)[: scaled(100_000)].astype(dtype)
    if dtype in INTEGERS:
        operands <<= dtype(np.dtype(dtype).itemsize * 8 - 17)  # half of them have the highest bit
    target, old = operands[:1].copy(), np.zeros_like(operands)
    kernel_of(getattr(hip.atomic, name))[operands.size // 256 + 1, 256](target, operands, old)
    assert target[0] == (operands.max() if "max" in name else operands.min())


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.sample(1)
def test_missing_numbers(dtype):
    nan = np.nan
    for name, start, operand, wanted in (
        ("max", 1, nan, 1), ("max", nan, 1, nan), ("min", 1, nan, 1), ("min", nan, 1, nan),
        ("nanmax", 1, nan, 1), ("nanmax", nan, 1, 1), ("nanmin", 1, nan, 1), ("nanmin", nan, 1, 1),
    ):  # fmt: skip
        target, old = np.array([start], dtype), np.zeros(1, dtype)
        kernel_of(getattr(hip.atomic, name))[1, 1](target, np.array([operand], dtype), old)
        np.testing.assert_array_equal(target, [wanted], f"{name}({start}, {operand})")
        np.testing.assert_array_equal(old, [start])


@pytest.mark.sample(4)
@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_a_lock_by_compare_and_swap(dtype):
    @hip.jit
    def claim(owner, free, winners, losers):
        i = hip.grid(1)
        if hip.atomic.cas(owner, (0, 0), free, i + 1) == free:
            hip.atomic.add(winners, 0, 1)
        else:
            hip.atomic.add(losers, 0, 1)

    owner, winners, losers = np.full((1, 1), 77, dtype), np.zeros(1, np.int32), np.zeros(1, np.int32)
    claim[20, 64](owner, dtype(77), winners, losers)
    assert (winners[0], losers[0]) == (1, 20 * 64 - 1)
    assert 1 <= owner[0, 0] <= 20 * 64


@pytest.mark.parametrize("candidates", [2, 20, 640])
def test_maxima_by_compare_and_swap(candidates):
    """What a thread found before its loop is what it goes on with, whatever others have swapped since."""

    @hip.jit
    def largest(values, places, out):
        i = hip.grid(1)
        value, place = values[i], places[i]
        old = out[place]
        while value > old:
            seen = hip.atomic.cas(out, place, old, value)
            if seen == old:
                break
            old = seen

    random = np.random.default_rng(candidates)
    for _ in range(20):
        values, places = np.zeros(640, np.int64), random.integers(0, 3, 640)
        values[random.permutation(640)[:candidates]] = random.permutation(1000)[:candidates] + 1
        out, wanted = np.zeros(3, np.int64), np.zeros(3, np.int64)
        largest[10, 64](values, places, out)
        np.maximum.at(wanted, places, values)
        np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("block", [1, (1, 2), (1, 1, 3), (4, 2)])
def test_blocks_of_few_threads_that_swap(block):
    """Vectors of one lane are none: with them LLVM 22 ends the process."""

    @hip.jit
    def count(places, out):
        number = hip.blockIdx.x * hip.blockDim.x * hip.blockDim.y * hip.blockDim.z
        number += (hip.threadIdx.z * hip.blockDim.y + hip.threadIdx.y) * hip.blockDim.x + hip.threadIdx.x
        place = places[number]
        while True:
            old = out[place]
            if hip.atomic.cas(out, place, old, old + 1) == old:
                break

    places = np.random.default_rng(3).integers(0, 3, 100 * np.prod(block))
    for form in ("vectors", "auto"):
        out = np.zeros(3, np.int32)
        with config.cpu_form.scope(form):
            hip.jit(count.py_func)[100, block](places, out)
        np.testing.assert_array_equal(out, np.bincount(places, minlength=3))


def test_places_that_are_claimed_up_to_a_limit():
    @hip.jit
    def claim(wanted, taken, limit, places):
        i = hip.grid(1)
        place = taken[0]
        while place + wanted[i] <= limit:
            seen = hip.atomic.cas(taken, 0, place, place + wanted[i])
            if seen == place:
                places[i] = place
                break
            place = seen

    random = np.random.default_rng(3)
    for few in (3, 4, 10, 64):
        wanted, taken, places = np.full(64, 1000), np.zeros(1, np.int64), np.full(64, -1)
        wanted[random.permutation(64)[:few]] = 3
        claim[1, 64](wanted, taken, 10, places)
        assert taken[0] == 9
        np.testing.assert_array_equal(np.sort(places[places >= 0]), [0, 3, 6])


def test_compare_and_swap_of_element_zero():
    @hip.jit
    def kernel(target, old):
        old[0] = hip.atomic.compare_and_swap(target, 5, 6)
        old[1] = hip.atomic.compare_and_swap(target, 5, 7)

    target, old = np.array([5, 5], np.int32), np.zeros(2, np.int32)
    kernel[1, 1](target, old)
    np.testing.assert_array_equal(target, [6, 5])
    np.testing.assert_array_equal(old, [5, 6])


def test_every_form_of_an_index():
    @hip.jit
    def kernel(line, plane, cube):
        i = hip.grid(1)
        hip.atomic.add(line, -1, 1)
        hip.atomic.add(line, np.uint8(2), 1)
        hip.atomic.add(line, (i % 2,), 1)
        hip.atomic.add(plane, (1, i % 3), 1)
        hip.atomic.add(plane, (np.int32(-2), np.uint64(0)), 1)
        hip.atomic.add(cube[i % 2], (0, i % 3), 1)

    line, plane, cube = np.zeros(5), np.zeros((2, 3))[:, ::-1], np.zeros((2, 1, 3), np.int32)
    kernel[1, 12](line, plane, cube)
    np.testing.assert_array_equal(line, [6, 6, 12, 0, 12])
    np.testing.assert_array_equal(plane, [[12, 0, 0], [4, 4, 4]])
    np.testing.assert_array_equal(cube[:, 0], [[2, 2, 2], [2, 2, 2]])


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.sample(1)
def test_complex_numbers(dtype):
    @hip.jit
    def kernel(sums, values, old):
        i = hip.grid(1)
        if i < values.size:
            hip.atomic.add(sums, i % 3, values[i])
            hip.atomic.sub(sums, (3 + i % 2,), values[i])
            old[i] = hip.atomic.add(sums, 5 + i, values[i])

    count = 1000
    values = (np.arange(count) % 17 - 1j * (np.arange(count) % 5)).astype(dtype)
    sums, old = np.zeros(5 + count, dtype), np.full(count, 7, dtype)
    sums[5:] = 2j
    kernel[5, 256](sums, values, old)
    np.testing.assert_array_equal(sums[:3], [values[k::3].sum() for k in range(3)])
    np.testing.assert_array_equal(sums[3:5], [-values[k::2].sum() for k in range(2)])
    np.testing.assert_array_equal(sums[5:], values + 2j)
    np.testing.assert_array_equal(old, 2j)
    with pytest.raises(NumbaError, match="max works on integers, float16, float32 and float64, not on complex"):
        hip.compile(lambda a: hip.atomic.max(a, 0, 1), "void(complex64[::1])")


def test_operands_are_cast_to_the_elements():
    @hip.jit
    def kernel(integers, floats):
        hip.atomic.add(integers, 0, 2.75)
        hip.atomic.add(floats, 0, 1)

    integers, floats = np.zeros(1, np.int32), np.zeros(1, np.float32)
    kernel[1, 10](integers, floats)
    assert (integers[0], floats[0]) == (20, 10)


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("hip.atomic.add(out, (0, 0), 1)", "an array of 1 dimensions cannot be indexed with"),
        ("hip.atomic.add(out, 1j, 1)", "cannot be indexed with complex128"),
        ("hip.atomic.add(3, 0, 1)", "the first argument has to be an array"),
        ("hip.atomic.and_(out, 0, 1)", "works on integers, not on float64"),
        ("hip.atomic.add(table, 0, 1)", "read-only"),
        (
            "hip.atomic.add(flags, 0, 1)",
            "works on integers, float16, float32 and float64, and complex numbers, not on bool",
        ),
        ("hip.atomic.add(out, 0)", r"hip.atomic.add takes \(ary, idx, val, scope\)"),
        ("hip.atomic.add(out, 0, 1, 'grid')", "the scope has to be one of 'block', 'device', 'system'"),
        ("hip.atomic.cas(out, 0, 1, 2, scope=3)", "the scope has to be one of"),
    ],
)
def test_misuse(source, says):
    namespace = {"hip": hip, "table": np.zeros(3)}
    exec(f"def kernel(out, flags):\n    {source}", namespace)
    with pytest.raises(NumbaError, match=says):
        hip.jit(namespace["kernel"])[1, 1](np.zeros(1), np.zeros(1, np.bool_))


def test_an_index_that_is_a_remainder_of_mixed_signs():
    @hip.jit
    def kernel(table, places):
        i = hip.grid(1)
        rows, columns = table.shape
        hip.atomic.add(table, (places[i] % rows, places[i] % columns), 1)

    @hip.jit
    def by_float(line, place):
        hip.atomic.add(line, place, 1)
        hip.atomic.add(line, (-place,), 10)

    line = np.zeros(4, np.int32)
    by_float[1, 2](line, 1.5)
    assert line.tolist() == [0, 2, 0, 20]
    table, places = np.zeros((3, 4), np.int32), np.arange(24, dtype=np.uint64)
    kernel[1, 24](table, places)
    assert (table == 2).all()


def among(counts, extremes):
    hip.atomic.add(counts, 0, 1, "block")
    hip.atomic.sub(counts, 1, 1, scope="device")
    hip.atomic.exch(counts, 2, 7, scope="system")
    hip.atomic.max(extremes, 0, hip.grid(1), scope="block")
    hip.atomic.add(extremes, 1, 0.5, scope="system")
    hip.atomic.cas(counts, 3, 0, 5, scope="system")
    hip.atomic.compare_and_swap(counts[4:], 0, 6, "block")


def test_scopes():
    counts, extremes = np.zeros(5, np.int32), np.zeros(2, np.float32)
    hip.jit(among)[2, 32](counts, extremes)
    assert counts.tolist() == [64, -64, 7, 5, 6]
    assert extremes.tolist() == [63, 32]


@pytest.mark.parametrize("target", ["gfx90a", "gfx1201"])
@pytest.mark.sample(1)
def test_scopes_for_amd_gpus(target):
    signature = "(int32[::1], float32[::1])"
    text, _ = hip.compile(among, signature, target=target, output="llvm")
    operations = [line for line in text.splitlines() if "atomicrmw" in line or "cmpxchg" in line]

    def scoped(operation, number=0):
        return [line for line in operations if operation in line][number]

    assert 'syncscope("workgroup") monotonic' in scoped("atomicrmw add")
    assert 'syncscope("agent") monotonic' in scoped("atomicrmw sub")
    for operation in ("atomicrmw xchg", "atomicrmw fadd"):
        assert "syncscope" not in scoped(operation)
        assert "amdgpu.no" not in scoped(operation), "the host's memory may be meant"
    assert 'syncscope("workgroup") monotonic monotonic' in text
    assert hip.compile(among, signature, target=target, output="object")[0][:4] == b"\x7fELF"


def test_atomics_on_float16():
    @hip.jit
    def kernel(values):
        hip.atomic.add(values, 0, 0.5)
        hip.atomic.sub(values, 1, 1)
        hip.atomic.max(values, 2, hip.grid(1))
        hip.atomic.min(values, 3, -hip.grid(1))
        hip.atomic.nanmax(values, 4, hip.grid(1))
        hip.atomic.exch(values, 5, 7)
        hip.atomic.cas(values, 6, np.float16(2), np.float16(3))

    values = np.array([0, 0, 0, 0, np.nan, 1, 2], np.float16)
    kernel[2, 8](values)
    assert values.tolist() == [8, -16, 15, -15, 15, 7, 3]
    assert "s_endpgm" in hip.compile(kernel, "void(float16[::1])", target="gfx1100")[0]
