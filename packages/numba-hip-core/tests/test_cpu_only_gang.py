"""Steps in shared memory that only the first threads of a block do, on the CPU device: their gang has as many lanes,
and accesses registers as a whole."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, int16, int32, int64, uint8

import numba_hip as hip
from hip_runtime import config
from hip_runtime.drivers.cpu.analyses.shared_places import find_shared_place
from hip_runtime.drivers.cpu.vectorize import gang_function
from hip_runtime.drivers.cpu.vectorize.shared_cells import CellWidener

KINDS = (uint8, int16, int32, int64, float64)
BLOCKS = (32, 48, 64, 100, 128, 256)
Array = np.ndarray[Any, Any]


class Steps:
    """Random steps: in each, the first threads compute elements of one of two shared arrays of the *kinds* that are
    *places* long, from others that no other thread changes meanwhile. `source` writes them for the device, and for
    Python, where they are the body of loops over the threads."""

    def __init__(self, seed: int) -> None:
        self._choose = choose = random.Random(seed)
        self.threads = choose.choice(BLOCKS)
        self.kinds = choose.choice(KINDS), choose.choice(KINDS)
        self.places = [self.threads + choose.choice((0, 0, 1, 7, 16, 64)) for _ in self.kinds]
        self._steps = [self._make_step() for _ in range(choose.randrange(2, 9))]

    def source(self, *, on_device: bool) -> str:
        indent = " " * (4 if on_device else 8)
        lines = (
            ["def run(a, b, counts, numbers, out, t):"] if not on_device else ["def run(numbers, out):", *self._start]
        )
        for number, step in enumerate(self._steps):
            lines += [] if on_device else [f"    for t in range({self.threads}):"]
            lines += [indent + line for line in step]
            lines += [f"{indent}hip.syncthreads()"] if on_device else [f"    # {number}"]
        return "\n".join([*lines, *(self._end if on_device else ["    return"])])

    @property
    def _start(self) -> list[str]:
        (one, other), (size, rest) = self.kinds, self.places
        return [
            f"    a, b = hip.shared.array({size}, {one}), hip.shared.array({rest}, {other})",
            "    counts = hip.shared.array(4, int32)",
            "    t = hip.threadIdx.x",
            "    if t == 0:",
            f"        for i in range({size}):",
            "            a[i] = numbers[i] % 100",
            f"        for i in range({rest}):",
            "            b[i] = numbers[i] % 50",
            "        for i in range(4):",
            "            counts[i] = 0",
            "    hip.syncthreads()",
        ]

    @property
    def _end(self) -> list[str]:
        size, rest = self.places
        return [
            "    if t == 0:",
            f"        for i in range({size}):",
            "            out[0, i] = a[i]",
            f"        for i in range({rest}):",
            "            out[1, i] = b[i]",
            "        for i in range(4):",
            "            out[2, i] = counts[i]",
        ]

    def _make_step(self) -> list[str]:
        choose = self._choose
        active = choose.choice((1, 2, 3, 4, 5, 8, 12, 16, 17, 24, 31, 32))
        target = choose.randrange(2)
        place = choose.randrange(self.places[target] - active + 1)
        lines = [f"{'ab'[target]}[t + {place}] {choose.choice(('=', '+='))} {self._value(active, target, place)}"]
        if choose.random() < 0.3:
            lines.append(f"{'ab'[target]}[t + {place}] += {self._value(active, target, place)}")
        if choose.random() < 0.2:
            lines.append(f"hip.atomic.add(counts, t % {choose.choice((1, 3, 4))}, 1)")
        if choose.random() < 0.4:
            condition = choose.choice(
                ("t % 2 == 1", "t != 3", "t == 1", f"{self._value(active, target, place)} % 3 == 0")
            )
            lines = [f"if {condition}:", *(f"    {line}" for line in lines)]
        elif choose.random() < 0.2:
            lines = [f"for _ in range({choose.randrange(1, 4)}):", *(f"    {line}" for line in lines)]
        return [f"if t < {active}:", *(f"    {line}" for line in lines)]

    def _value(self, active: int, target: int, place: int) -> str:
        terms = [self._term(active, target, place) for _ in range(self._choose.randrange(1, 4))]
        return f"({' + '.join(terms)})"

    def _term(self, active: int, target: int, place: int) -> str:
        choose, array = self._choose, self._choose.randrange(2)
        places = range(self.places[array] - active + 1)
        free = [first for first in places if array != target or first == place or abs(first - place) >= active]
        kinds = ["number", "global", *(["element"] * 6 if free else [])]
        kind = choose.choice(kinds)
        if kind == "element":
            return f"int64({'ab'[array]}[t + {choose.choice(free)}])"
        return f"int64(numbers[t + {choose.randrange(9)}])" if kind == "global" else str(choose.randrange(9))


class Wrapping:
    """An array whose elements wrap around, as they do on the device."""

    def __init__(self, kind: Any, size: int) -> None:
        self.values = np.zeros(size, str(kind))

    def __getitem__(self, place: int) -> Any:
        return self.values[place].item()

    def __setitem__(self, place: int, value: Any) -> None:
        kind = self.values.dtype
        self.values[place] = np.array(int(value), np.int64).astype(kind) if kind.kind in "iu" else value


def run_by_python(steps: Steps, numbers: Array, out: Array) -> None:
    one, other = (Wrapping(kind, size) for kind, size in zip(steps.kinds, steps.places, strict=True))
    counts = Wrapping(int32, 4)
    for i in range(steps.places[0]):
        one[i] = int(numbers[i]) % 100
    for i in range(steps.places[1]):
        other[i] = int(numbers[i]) % 50

    class Atomic:
        @staticmethod
        def add(array: Wrapping, place: int, value: int) -> None:
            array[place] += value

    class Hip:
        atomic = Atomic

    space: dict[str, Any] = {"hip": Hip, "int64": int}
    exec(steps.source(on_device=False), space)
    space["run"](one, other, counts, numbers, out, 0)
    for row, values in enumerate((one.values, other.values, counts.values)):
        out[row, : len(values)] = values


def check(seed: int) -> None:
    steps = Steps(seed)
    numbers = np.random.default_rng(seed).integers(0, 1000, 512).astype(np.int64)
    wanted = np.zeros((3, 400))
    run_by_python(steps, numbers, wanted)
    space: dict[str, Any] = {"hip": hip, **{str(kind): kind for kind in (*KINDS, int64)}}
    exec(steps.source(on_device=True), space)
    kernel = hip.jit(space["run"])
    for threads in (steps.threads, 64, 192):
        found = np.zeros((3, 400))
        kernel[1, threads](numbers, found)
        np.testing.assert_array_equal(found, wanted, err_msg=steps.source(on_device=True))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.sample(1)
def test_random_steps(seed: int) -> None:
    check(seed)


@pytest.fixture
def accessed(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each access to neighbours by the only gang of a step, whether it takes registers as a whole."""
    found: list[bool] = []

    class Spy(CellWidener):
        def _find_cells(self, kind: Any, pointer: Any) -> Any:
            cells = super()._find_cells(kind, pointer)
            if find_shared_place(pointer, self.item, self.shapes.size_of) is not None:
                found.append(cells is not None)
            return cells

    monkeypatch.setattr(gang_function, "CellWidener", Spy)
    return found


def tree(kind: Any, places: int, first: int, rows: int) -> Any:
    """A kernel that adds up *places* elements in an array with *first* others before them, in blocks of *rows*."""
    size = first + places

    @hip.jit
    def add(numbers, sums):
        part = hip.shared.array(size, kind)
        thread = hip.threadIdx.x
        if rows > 1:
            thread += hip.threadIdx.y * hip.blockDim.x
        part[thread + first] = numbers[hip.blockIdx.x, thread]
        hip.syncthreads()
        count = places
        while count > 1:
            half = (count + 1) // 2
            if thread + half < count:
                part[thread + first] += part[thread + first + half]
            hip.syncthreads()
            count = half
        if thread == 0:
            sums[hip.blockIdx.x] = part[first]

    return add


def check_tree(kind: Any, places: int, first: int = 0, rows: int = 1) -> None:
    numbers = np.random.default_rng(places).integers(0, 9, (3, places)).astype(str(kind))
    sums = np.zeros(3, str(kind))
    tree(kind, places, first, rows)[3, (places // rows, rows)](numbers, sums)
    np.testing.assert_array_equal(sums, numbers.sum(axis=1, dtype=str(kind)))


@pytest.mark.parametrize("kind", [uint8, int16, int32, int64, float32, float64])
@pytest.mark.parametrize("places", [64, 256])
@pytest.mark.sample(3)
def test_steps_of_a_tree(accessed: list[bool], kind: Any, places: int) -> None:
    check_tree(kind, places)
    assert accessed
    assert all(accessed)


@pytest.mark.parametrize("places", [33, 48, 96, 100, 127, 192])
@pytest.mark.sample(2)
def test_steps_of_any_number_of_threads(accessed: list[bool], places: int) -> None:
    """Where registers would reach beyond the array, elements are accessed as any."""
    check_tree(float32, places)
    assert any(accessed)
    assert places != 33 or not all(accessed)


@pytest.mark.parametrize("first", [1, 4, 7, 16, 30])
@pytest.mark.sample(3)
def test_steps_from_any_place_on(first: int) -> None:
    check_tree(int32, 64, first)


def test_blocks_of_several_rows(accessed: list[bool]) -> None:
    """The first threads of each row take part, and no gang is the only one."""
    check_tree(int32, 64, rows=4)
    assert not accessed


def test_a_chosen_width_is_kept(accessed: list[bool]) -> None:
    with config.cpu_width.scope(8):
        check_tree(int32, 64)
    assert not accessed


def test_the_largest_element_and_its_place(accessed: list[bool]) -> None:
    """What is stored where data decides leaves the other elements as they are."""

    @hip.jit
    def find(numbers, found):
        highest, place = hip.shared.array(128, float32), hip.shared.array(128, int64)
        thread = hip.threadIdx.x
        highest[thread], place[thread] = numbers[thread], thread
        hip.syncthreads()
        half = 64
        while half > 0:
            if thread < half and highest[thread + half] > highest[thread]:
                highest[thread] = highest[thread + half]
                place[thread] = place[thread + half]
            hip.syncthreads()
            half //= 2
        found[thread, 0], found[thread, 1] = highest[thread], place[thread]

    numbers = np.random.default_rng(5).permutation(128).astype(np.float32)
    found = np.zeros((128, 2))
    find[1, 128](numbers, found)
    highest, place = numbers.copy(), np.arange(128)
    for half in (64, 32, 16, 8, 4, 2, 1):
        (larger,) = np.nonzero(highest[half : 2 * half] > highest[:half])
        highest[larger], place[larger] = highest[larger + half], place[larger + half]
    np.testing.assert_array_equal(found, np.stack([highest, place], axis=1))
    assert any(accessed)


def test_elements_of_another_thread_are_kept() -> None:
    """One lane of the gang stores, in a register of which others have stored elements before."""

    @hip.jit
    def store(out):
        part = hip.shared.array(64, int32)
        thread = hip.threadIdx.x
        part[thread] = thread
        hip.syncthreads()
        if thread < 16:
            if thread == 3:
                part[thread + 2] = -1
            if thread % 2 == 0:
                part[thread + 16] += 100
        hip.syncthreads()
        out[thread] = part[thread]

    out = np.zeros(64, np.int32)
    store[1, 64](out)
    wanted = np.arange(64)
    wanted[5] = -1
    wanted[16:32:2] += 100
    np.testing.assert_array_equal(out, wanted)


@pytest.mark.parametrize("takes_part", [False, True])
def test_the_only_lane_of_a_block_takes_no_part(takes_part: bool) -> None:
    """Nor does it store then."""

    @hip.jit
    def store(flags, out):
        part = hip.shared.array(64, int32)
        thread = hip.threadIdx.x
        part[thread] = thread
        hip.syncthreads()
        if thread < 16 and flags[thread] > part[thread + 16]:
            part[thread + 32] += 1
            if thread == 3:
                part[thread + 2] = -1
        hip.syncthreads()
        out[thread] = part[thread]

    flags, out = np.full(64, 50), np.zeros(64, np.int32)
    flags[3] *= takes_part
    store[1, 64](flags, out)
    wanted = np.arange(64)
    wanted[32:48] += flags[:16] > 0
    wanted[5] = -1 if takes_part else 5
    np.testing.assert_array_equal(out, wanted)


def test_dynamic_shared_memory(accessed: list[bool]) -> None:
    @hip.jit
    def add(numbers, sums):
        part = hip.shared.array(0, float32)
        thread = hip.threadIdx.x
        part[thread] = numbers[thread]
        hip.syncthreads()
        half = hip.blockDim.x // 2
        while half > 0:
            if thread < half:
                part[thread] += part[thread + half]
            hip.syncthreads()
            half //= 2
        if thread == 0:
            sums[0] = part[0]

    sums = np.zeros(1, np.float32)
    add[1, 64, 0, 256](np.arange(64, dtype=np.float32), sums)
    assert sums[0] == 2016
    assert accessed
    assert all(accessed)
