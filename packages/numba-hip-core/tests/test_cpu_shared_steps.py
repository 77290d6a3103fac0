"""Steps in shared memory that access elements at known distances, as those of a scan, on the CPU device."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, int16, int32, int64, uint8

import numba_hip as hip
from hip_runtime import config
from hip_runtime.drivers.cpu.regions import shared_steps
from hip_runtime.drivers.cpu.regions.shared_steps import find_shared_steps

KINDS = (uint8, int16, int32, int64, float64)
BLOCKS = (32, 64, 96, 100, 128, 256)
Array = np.ndarray[Any, Any]


@dataclass
class Place:
    """The element number ``scale * t + first`` of the array ``a`` or ``b``, for the thread ``t``."""

    array: int
    scale: int
    first: int

    def __str__(self) -> str:
        index = f"t * {self.scale} + {self.first}" if self.first >= 0 else f"t * {self.scale} - {-self.first}"
        return f"{'ab'[self.array]}[{index}]"

    def of(self, thread: int) -> tuple[int, int]:
        return self.array, self.scale * thread + self.first


class Steps:
    """Random steps: in each, some threads compute elements of two shared arrays of the *kinds* that are *places* long
    from others. `source` writes them for the device, and `run` does them one thread after another. Where a thread would
    access what another one writes in the same step, all wait before they write."""

    def __init__(self, seed: int) -> None:
        self._choose = choose = random.Random(seed)
        self.threads = choose.choice(BLOCKS)
        self.kinds = choose.choice(KINDS), choose.choice(KINDS)
        self.places = [choose.choice((1, 2)) * self.threads + choose.choice((0, 0, 0, 1, 16, 64)) for _ in self.kinds]
        self._steps = [self._make_step() for _ in range(choose.randrange(2, 8))]

    def _make_step(self) -> tuple[int, int, list[tuple[Place, list[Place], int]]]:
        """The first thread that takes part, the one behind the last, and what each of them does: the places that it
        writes, those that it adds up for it, and a number."""
        choose = self._choose
        scale = choose.choice((1, 1, 2, 2, 4, 8, 16, 32))
        most = max(min(self.threads, min(self.places) // scale), 1)
        begin, end = (0, choose.randrange(1, most + 1)) if choose.random() < 0.6 else (choose.randrange(most), most)

        def place() -> Place:
            array = choose.randrange(2)
            lowest, highest = -scale * begin, self.places[array] - 1 - scale * (end - 1)
            near = choose.randrange(max(lowest, -2 * scale), min(highest, 2 * scale) + 1)
            return Place(array, scale, choose.choice((near, choose.randrange(lowest, highest + 1))))

        writes = choose.randrange(1, 3)
        return (
            begin,
            end,
            [(place(), [place() for _ in range(choose.randrange(1, 3))], choose.randrange(5)) for _ in range(writes)],
        )

    def _races(self, begin: int, end: int, writes: list[tuple[Place, list[Place], int]]) -> bool:
        writers: dict[tuple[int, int], int] = {}
        for thread in range(begin, end):
            for target, _, _ in writes:
                if writers.setdefault(target.of(thread), thread) != thread:
                    return True
        return any(
            writers.get(source.of(thread), thread) != thread
            for thread in range(begin, end)
            for _, sources, _ in writes
            for source in sources
        )

    def _collides(self, begin: int, end: int, writes: list[tuple[Place, list[Place], int]]) -> bool:
        """Whether two threads write the same element."""
        written = [{target.of(thread) for target, _, _ in writes} for thread in range(begin, end)]
        return len(set().union(*written)) != sum(map(len, written))

    def source(self) -> str:
        (one, other), (size, rest) = self.kinds, self.places
        lines = [
            "def run(numbers, out):",
            f"    a, b = hip.shared.array({size}, {one}), hip.shared.array({rest}, {other})",
            "    t = hip.threadIdx.x",
            f"    for i in range(t, {size}, {self.threads}):",
            "        a[i] = numbers[i] % 100",
            f"    for i in range(t, {rest}, {self.threads}):",
            "        b[i] = numbers[i] % 50",
            "    hip.syncthreads()",
        ]
        for begin, end, writes in self._steps:
            if self._collides(begin, end, writes):
                continue
            values = [
                " + ".join([*(f"int64({source})" for source in sources), str(number)]) for _, sources, number in writes
            ]
            takes_part = f"    if {begin} <= t < {end}:" if begin else f"    if t < {end}:"
            if self._races(begin, end, writes):
                lines += [f"    v{number} = 0" for number in range(len(writes))]
                lines += [takes_part, *(f"        v{number} = {value}" for number, value in enumerate(values))]
                lines += ["    hip.syncthreads()"]
                values = [f"v{number}" for number in range(len(writes))]
            lines += [takes_part]
            lines += [f"        {target} = {value}" for (target, _, _), value in zip(writes, values, strict=True)]
            lines += ["    hip.syncthreads()"]
        return "\n".join([
            *lines,
            f"    for i in range(t, {size}, {self.threads}):",
            "        out[0, i] = a[i]",
            f"    for i in range(t, {rest}, {self.threads}):",
            "        out[1, i] = b[i]",
        ])  # fmt: skip

    def run(self, numbers: Array) -> list[Array]:
        arrays = [
            (numbers[:size] % limit).astype(str(kind))
            for kind, size, limit in zip(self.kinds, self.places, (100, 50), strict=True)
        ]
        for begin, end, writes in self._steps:
            if self._collides(begin, end, writes):
                continue
            waits = self._races(begin, end, writes)
            before = [array.copy() for array in arrays]
            for thread in range(begin, end):
                for target, sources, number in writes:
                    read = before if waits else arrays
                    total = sum(int(read[source.array][source.of(thread)[1]]) for source in sources) + number
                    target_array = arrays[target.array]
                    target_array[target.of(thread)[1]] = np.array(total).astype(target_array.dtype)
        return arrays


def check(seed: int) -> None:
    steps = Steps(seed)
    numbers = np.random.default_rng(seed).integers(0, 1000, 1024).astype(np.int64)
    found = np.zeros((2, 1024))
    space: dict[str, Any] = {"hip": hip, **{str(kind): kind for kind in (*KINDS, int64)}}
    exec(steps.source(), space)
    hip.jit(space["run"])[1, steps.threads](numbers, found)
    for row, wanted in zip(found, steps.run(numbers), strict=True):
        np.testing.assert_array_equal(row[: wanted.size], wanted, err_msg=steps.source())


@pytest.mark.parametrize("seed", range(24))
@pytest.mark.sample(1)
def test_random_steps(seed: int) -> None:
    check(seed)


@pytest.fixture
def steps_found(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many elements apart the threads of each region are that gangs run so, in the order of regions."""
    found: list[int] = []

    def find(*arguments: Any) -> Any:
        steps = find_shared_steps(*arguments)
        found.extend(region.step for region in steps.values())
        return steps

    monkeypatch.setattr(shared_steps, "find_shared_steps", find)
    return found


def sums_before(numbers: Array, places: int) -> Array:
    rows = numbers.reshape(-1, places)
    return np.asarray((np.cumsum(rows, axis=1, dtype=numbers.dtype) - rows).ravel())


@pytest.mark.parametrize("kind", [int16, int32, int64, float32, float64])
@pytest.mark.parametrize("threads", [64, 256])
@pytest.mark.sample(1)
def test_a_scan_by_a_tree(steps_found: list[int], kind: Any, threads: int) -> None:
    @hip.jit
    def scan(numbers, sums):
        part = hip.shared.array(threads, kind)
        i, thread = hip.grid(1), hip.threadIdx.x
        part[thread] = numbers[i]
        step = 1
        while step < threads:
            hip.syncthreads()
            at = (thread + 1) * step * 2 - 1
            if at < threads:
                part[at] += part[at - step]
            step *= 2
        hip.syncthreads()
        if thread == 0:
            part[threads - 1] = 0
        while step > 1:
            step //= 2
            hip.syncthreads()
            at = (thread + 1) * step * 2 - 1
            if at < threads:
                left = part[at - step]
                part[at - step] = part[at]
                part[at] += left
        hip.syncthreads()
        sums[i] = part[thread]

    numbers = np.random.default_rng(threads).integers(0, 9, 3 * threads).astype(str(kind))
    sums = np.zeros_like(numbers)
    scan[3, threads](numbers, sums)
    np.testing.assert_array_equal(sums, sums_before(numbers, threads))
    assert {1, 2, 4, 8, threads // 2} <= set(steps_found)


def test_a_scan_of_two_elements_by_each_thread(steps_found: list[int]) -> None:
    """There are more lanes than threads in the block."""

    @hip.jit
    def scan(numbers, sums):
        part = hip.shared.array(256, int32)
        thread, start = hip.threadIdx.x, hip.blockIdx.x * 256
        part[2 * thread], part[2 * thread + 1] = numbers[start + 2 * thread], numbers[start + 2 * thread + 1]
        step, count = 1, 128
        while count > 0:
            hip.syncthreads()
            if thread < count:
                part[step * (2 * thread + 2) - 1] += part[step * (2 * thread + 1) - 1]
            step, count = step * 2, count // 2
        if thread == 0:
            part[255] = 0
        count = 1
        while count < 256:
            step //= 2
            hip.syncthreads()
            if thread < count:
                left, right = step * (2 * thread + 1) - 1, step * (2 * thread + 2) - 1
                value = part[left]
                part[left] = part[right]
                part[right] += value
            count *= 2
        hip.syncthreads()
        sums[start + 2 * thread], sums[start + 2 * thread + 1] = part[2 * thread], part[2 * thread + 1]

    numbers = np.random.default_rng(7).integers(0, 9, 512).astype(np.int32)
    sums = np.zeros_like(numbers)
    scan[2, 128](numbers, sums)
    np.testing.assert_array_equal(sums, sums_before(numbers, 256))
    assert {2, 4, 64} <= set(steps_found)


def scan_in_place(kind: Any, threads: int, rows: int) -> Any:
    @hip.jit
    def scan(numbers, sums):
        part = hip.shared.array(threads, kind)
        thread = hip.threadIdx.x
        if rows > 1:
            thread += hip.threadIdx.y * hip.blockDim.x
        i = hip.blockIdx.x * threads + thread
        part[thread] = numbers[i]
        step = 1
        while step < threads:
            hip.syncthreads()
            before = part[thread - step] if thread >= step else kind(0)
            hip.syncthreads()
            part[thread] += before
            step *= 2
        hip.syncthreads()
        sums[i] = part[thread]

    return scan


def check_scan_in_place(kind: Any, threads: int, rows: int = 1) -> None:
    numbers = np.random.default_rng(threads).integers(0, 9, 3 * threads).astype(str(kind))
    sums = np.zeros_like(numbers)
    scan_in_place(kind, threads, rows)[3, (threads // rows, rows)](numbers, sums)
    np.testing.assert_array_equal(sums, sums_before(numbers, threads) + numbers)


@pytest.mark.parametrize("kind", [int16, int32, float64])
@pytest.mark.parametrize("threads", [32, 100, 256, 1024])
@pytest.mark.sample(1)
def test_a_scan_in_place(steps_found: list[int], kind: Any, threads: int) -> None:
    check_scan_in_place(kind, threads)
    assert set(steps_found) == {1}


def test_blocks_of_several_rows(steps_found: list[int]) -> None:
    check_scan_in_place(int32, 128, rows=8)
    assert not steps_found


def test_a_chosen_width_is_kept(steps_found: list[int]) -> None:
    with config.cpu_width.scope(8):
        check_scan_in_place(int32, 128)
    assert not steps_found


def test_steps_of_other_numbers_than_powers_of_two(steps_found: list[int]) -> None:
    @hip.jit
    def add(numbers, sums):
        part = hip.shared.array(192, int32)
        thread = hip.threadIdx.x
        part[3 * thread], part[3 * thread + 1], part[3 * thread + 2] = numbers[thread], 1, 2
        hip.syncthreads()
        part[3 * thread] += part[3 * thread + 1] * part[3 * thread + 2]
        hip.syncthreads()
        sums[thread] = part[thread + 1]

    numbers, sums = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    add[1, 64](numbers, sums)
    wanted = np.stack([numbers + 2, np.full(64, 1), np.full(64, 2)], axis=1).ravel()
    np.testing.assert_array_equal(sums, wanted[1:65])
    assert 3 not in steps_found


def test_threads_that_ask_for_their_lane() -> None:
    """A lane between those that are threads is none of the wave."""

    @hip.jit
    def number(numbers, found):
        part = hip.shared.array(256, int32)
        thread, lane = hip.threadIdx.x, hip.laneid
        part[thread], part[thread + 128] = numbers[thread], 0
        hip.syncthreads()
        if thread < 64:
            part[2 * thread + 1] += part[2 * thread] * 100 + lane
        hip.syncthreads()
        found[thread] = part[thread]

    numbers = np.random.default_rng(3).integers(0, 9, 128).astype(np.int32)
    found = np.zeros_like(numbers)
    number[1, 128](numbers, found)
    wanted = numbers.copy()
    wanted[1::2] += 100 * numbers[::2] + np.arange(64) % hip.get_current_device().WARP_SIZE
    np.testing.assert_array_equal(found, wanted)


def test_threads_that_returned(steps_found: list[int]) -> None:
    @hip.jit
    def add(numbers, found):
        part = hip.shared.array(64, int32)
        thread = hip.threadIdx.x
        part[thread] = numbers[thread]
        hip.syncthreads()
        if numbers[thread] > 5:
            return
        if thread > 0:
            found[thread] = part[thread - 1]
        hip.syncthreads()
        if thread < 60:
            found[thread] += part[thread + 4]

    numbers = np.random.default_rng(4).integers(0, 9, 64).astype(np.int32)
    found = np.zeros_like(numbers)
    add[1, 64](numbers, found)
    wanted = np.zeros_like(numbers)
    wanted[1:] = numbers[:-1]
    wanted[:60] += numbers[4:]
    np.testing.assert_array_equal(found, np.where(numbers > 5, 0, wanted))


def test_values_that_are_counted_meanwhile(steps_found: list[int]) -> None:
    """A region with an atomic operation is none of these."""

    @hip.jit
    def add(numbers, found):
        part, count = hip.shared.array(128, int32), hip.shared.array(1, int32)
        thread = hip.threadIdx.x
        part[thread] = numbers[thread]
        count[0] = 0
        hip.syncthreads()
        if thread < 64:
            part[2 * thread] += part[2 * thread + 1]
            hip.atomic.add(count, 0, part[2 * thread])
        hip.syncthreads()
        found[thread] = part[thread] + count[0]

    numbers = np.random.default_rng(5).integers(0, 9, 128).astype(np.int32)
    found = np.zeros_like(numbers)
    add[1, 128](numbers, found)
    wanted = numbers.copy()
    wanted[::2] += numbers[1::2]
    np.testing.assert_array_equal(found, wanted + numbers.sum())
    assert not steps_found


def test_a_loop_with_a_limit_of_its_own(steps_found: list[int]) -> None:
    """Steps of a triangle, whose gangs are not written out: of the last one, some lanes do nothing."""

    @hip.jit
    def fold(numbers, steps, found):
        part = hip.shared.array(128, float64)
        thread = hip.threadIdx.x
        part[thread] = numbers[thread]
        hip.syncthreads()
        for step in range(steps):
            value = 0.0
            if thread < steps - step:
                value = part[thread + 1] * 0.5 + part[thread] * 0.25
            hip.syncthreads()
            if thread < steps - step:
                part[thread] = value
            hip.syncthreads()
        found[thread] = part[thread]

    numbers = np.random.default_rng(6).random(128)
    for steps in (0, 1, 50, 127):
        found, wanted = np.zeros(128), numbers.copy()
        fold[1, 128](numbers, steps, found)
        for step in range(steps):
            last = steps - step
            wanted[:last] = wanted[1 : last + 1] * 0.5 + wanted[:last] * 0.25
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert steps_found
