"""Waves in lock step: programs that race within a wave, evaluated with NumPy, one memory access after another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from spmd_blocks import kernel, launch
from spmd_programs import check_case

from hip_runtime import Device, config, to_device
from hip_runtime.errors import UnsupportedError

BLOCKS: list[Any] = [2, 31, 64, 65, (16, 4), (5, 3, 7), 192]


@pytest.fixture
def step() -> Iterator[None]:
    with config.cpu_lockstep.scope(True):
        yield


def run(device: Device, body: str, block: Any, *arrays: np.ndarray, **properties: Any) -> tuple[list[np.ndarray], str]:
    """What *body* makes of *arrays*, its parameters a and o; and the form of the code."""
    given = [to_device(array) for array in arrays]
    parameters = [(name, "ptr") for name in "ao"[: len(arrays)]]
    function = launch(device, kernel(body, parameters, **properties), 1, block, *(array.address for array in given))
    assert function.form is not None
    return [array.copy_to_host() for array in given], function.form


def waves(block: Any, size: int = 64) -> list[np.ndarray]:
    """The numbers of the threads of each wave."""
    threads = int(np.prod(block))
    return [np.arange(first, min(first + size, threads)) for first in range(0, threads, size)]


TURN = """
  %t1 = add i32 %t, 1
  %last = icmp uge i32 %t1, %threads
  %next = select i1 %last, i32 0, i32 %t1
  %p = getelementptr i32, ptr %a, i32 %t
  %q = getelementptr i32, ptr %a, i32 %next
  %v = load i32, ptr %q
  store i32 %v, ptr %p
  ret void
"""


@pytest.mark.sample(6)
@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("size", [32, 64])
def test_all_lanes_read_before_any_writes(device: Device, block: Any, size: int) -> None:
    threads = int(np.prod(block))
    (found,), form = run(device, TURN, block, np.arange(threads, dtype=np.int32), wave_size=size)
    expected = np.arange(threads)
    for lanes in waves(block, size):  # one wave after another
        expected[lanes] = expected[(lanes + 1) % threads]
    np.testing.assert_array_equal(found, expected)
    assert f"regions (NUMBA_HIP_CPU_LOCKSTEP asks for waves in lock step; 1 of 1 regions run {size} threads" in form


OVERWRITE = """
  %p = getelementptr i32, ptr %o, i32 %t
  %v = load i32, ptr %a
  %w = add i32 %v, %t
  store i32 %w, ptr %a
  store i32 %v, ptr %p
  ret void
"""


@pytest.mark.usefixtures("step")
def test_all_lanes_read_what_all_overwrite(device: Device) -> None:
    (a, b), _ = run(device, OVERWRITE, 64, np.array([5], np.int32), np.zeros(64, np.int32))
    np.testing.assert_array_equal(b, np.full(64, 5))
    assert a[0] in range(5, 69)


OWN_LOAD = """
  %p = getelementptr i32, ptr %a, i32 %t
  %v = load i32, ptr %p
  %s = add i32 %v, %t
  %s1 = add i32 %s, 1
  %place = urem i32 %s1, %threads
  %q = getelementptr i32, ptr %a, i32 %place
  %old = atomicrmw add ptr %q, i32 3 monotonic
  %r = getelementptr i32, ptr %o, i32 %t
  store i32 %old, ptr %r
  ret void
"""


@pytest.mark.usefixtures("step")
def test_what_only_an_atomic_operation_uses_is_loaded_before_it(device: Device) -> None:
    (a, b), _ = run(device, OWN_LOAD, 64, np.zeros(64, np.int32), np.ones(64, np.int32))
    np.testing.assert_array_equal(a, np.full(64, 3))
    np.testing.assert_array_equal(b, np.zeros(64))


SUM = """
  %s = call ptr @spmd.shared.s.1024.16(ptr %item)
  %p = getelementptr i32, ptr %a, i32 %t
  %v = load i32, ptr %p
  %own = getelementptr i32, ptr %s, i32 %t
  store i32 %v, ptr %own
  call void @spmd.barrier(ptr %item)
  br label %head
head:
  %k = phi i32 [ 32, %entry ], [ %half, %latch ]
  %within = icmp ult i32 %t, %k
  br i1 %within, label %add, label %latch
add:
  %there = add i32 %t, %k
  %other = getelementptr i32, ptr %s, i32 %there
  %x = load i32, ptr %own
  %y = load i32, ptr %other
  %z = add i32 %x, %y
  store i32 %z, ptr %own
  br label %latch
latch:
  %half = lshr i32 %k, 1
  %more = icmp ne i32 %half, 0
  br i1 %more, label %head, label %end
end:
  %all = load i32, ptr %s
  store i32 %all, ptr %p
  call void @spmd.barrier(ptr %item)
  ret void
"""


@pytest.mark.usefixtures("step")
def test_sum_without_barriers(device: Device) -> None:
    values = np.random.default_rng(1).integers(0, 1000, 64).astype(np.int32)
    declared = "declare ptr @spmd.shared.s.1024.16(ptr)\n"
    (found,), form = run(device, SUM, 64, values, functions=declared, shared_bytes=1024)
    np.testing.assert_array_equal(found, np.full(64, values.sum()))
    assert "3 of 3 regions run 64 threads at a time" in form


TWO_STEPS = """
  %in = icmp ult i32 %t, 32
  br i1 %in, label %do, label %end
do:
  %p = getelementptr i32, ptr %a, i32 %t
  %far = getelementptr i32, ptr %p, i32 32
  %near = getelementptr i32, ptr %p, i32 16
  %v = load i32, ptr %p
  %w = load i32, ptr %far
  %x = add i32 %v, %w
  store i32 %x, ptr %p
  %y = load i32, ptr %near
  %z = add i32 %x, %y
  store i32 %z, ptr %p
  br label %end
end:
  ret void
"""


@pytest.mark.usefixtures("step")
def test_what_a_thread_writes_twice_others_read_in_between(device: Device) -> None:
    """As the code of one thread the first of the two would be left out."""
    values = np.arange(64, dtype=np.int32) * 7
    (found,), _ = run(device, TWO_STEPS, 64, values)
    expected, lanes = values.copy(), np.arange(32)
    for step in (32, 16):
        expected[lanes] = expected[lanes] + expected[lanes + step]
    np.testing.assert_array_equal(found, expected)


ROUNDS = """
  %p = getelementptr i32, ptr %a, i32 %t
  %c = getelementptr i32, ptr %o, i32 %t
  %rounds = load i32, ptr %c
  %t1 = add i32 %t, 1
  %next = urem i32 %t1, %threads
  %q = getelementptr i32, ptr %a, i32 %next
  br label %head
head:
  %k = phi i32 [ 0, %entry ], [ %k1, %do ]
  %more = icmp ult i32 %k, %rounds
  br i1 %more, label %do, label %end
do:
  %x = load i32, ptr %q
  %y = mul i32 %x, 3
  %z = add i32 %y, %k
  store i32 %z, ptr %p
  %k1 = add i32 %k, 1
  br label %head
end:
  %w = load i32, ptr %q
  %u = add i32 %w, 1
  store i32 %u, ptr %p
  ret void
"""


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("threads", [7, 64])
def test_loop_that_lanes_leave_in_different_rounds(device: Device, threads: int) -> None:
    """Lanes that left wait after the loop, and continue together."""
    choose = np.random.default_rng(threads)
    start, rounds = choose.integers(0, 100, threads, np.int32), choose.integers(0, 6, threads, np.int32)
    (found, _), _ = run(device, ROUNDS, threads, start, rounds)
    expected, lanes = start.copy(), np.arange(threads)
    for k in range(6):
        active = lanes[k < rounds]
        expected[active] = expected[(active + 1) % threads] * 3 + k
    expected = expected[(lanes + 1) % threads] + 1
    np.testing.assert_array_equal(found, expected)


FUNCTION = """
define i32 @swap(ptr %place, i32 %value) {
  %old = load i32, ptr %place
  %new = add i32 %old, %value
  store i32 %new, ptr %place
  ret i32 %old
}
"""

CALLING = """
  %v = call i32 @swap(ptr %a, i32 1)
  %p = getelementptr i32, ptr %o, i32 %t
  store i32 %v, ptr %p
  ret void
"""


@pytest.mark.usefixtures("step")
def test_functions_are_in_step_too(device: Device) -> None:
    (a, b), _ = run(device, CALLING, 64, np.zeros(1, np.int32), np.ones(64, np.int32), functions=FUNCTION)
    assert a[0] == 1
    np.testing.assert_array_equal(b, np.zeros(64))


@pytest.mark.sample(3)
@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("seed", range(2, 10))
def test_random_programs(device: Device, seed: int) -> None:
    check_case(device, seed)


def test_a_block_of_one_thread_is_as_ever(device: Device) -> None:
    with config.cpu_lockstep.scope(True), config.cpu_form.scope("loop"):
        _, form = run(device, OVERWRITE, 1, np.zeros(1, np.int32), np.zeros(1, np.int32))
    assert "loop (" in form


# what cannot be in step

NOT_INLINED = FUNCTION.replace("{", "noinline {", 1)

SPINNING = """
  br label %spin
spin:
  %seen = load atomic i32, ptr %a monotonic, align 4
  %there = icmp eq i32 %seen, 1
  br i1 %there, label %end, label %spin
end:
  ret void
"""

WIDE = """
  %v = load i128, ptr %a
  %i1 = zext i32 %t to i128
  %w = mul i128 %v, %i1
  %s = lshr i128 %w, 7
  %n = trunc i128 %s to i32
  %p = getelementptr i32, ptr %o, i32 %t
  store i32 %n, ptr %p
  ret void
"""


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize(
    ("body", "functions", "reason"),
    [(CALLING, NOT_INLINED, "it calls 'swap', which reads or writes memory and cannot be inlined"),
     (SPINNING, "", "its threads wait for one another in a loop"),
     (WIDE, "", "vectors cannot hold values of type i128")],
    ids=["call", "spin", "type"],
)  # fmt: skip
def test_what_cannot_be_in_step_is_an_error(device: Device, body: str, functions: str, reason: str) -> None:
    arrays = np.ones(4, np.int32), np.ones(64, np.int32)
    with pytest.raises(UnsupportedError, match=rf"kernel 'k' .* \(NUMBA_HIP_CPU_LOCKSTEP=1\): {reason}"):
        run(device, body, 64, *arrays, functions=functions)


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("form", ["loop", "regions"])
def test_form_that_has_no_lanes(device: Device, form: str) -> None:
    with config.cpu_form.scope(form), pytest.raises(UnsupportedError, match=f"the form '{form}', .* unset it"):
        run(device, TURN, 64, np.zeros(64, np.int32))
