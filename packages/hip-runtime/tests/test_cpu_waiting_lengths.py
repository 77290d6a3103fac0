"""Blocks of several lengths whose threads wait for each other, and that one program runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from spmd_programs import check_length_case

from hip_runtime import Device, Function, config, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.errors import BarrierDivergenceError

LENGTHS = (2, 3, 4, 5, 7, 8, 13, 16, 24, 31, 32, 33, 63, 64, 65, 96, 100, 128, 160, 192, 1000, 1024)

SHARED = "declare ptr @spmd.shared.s.4096.16(ptr)\ndeclare void @spmd.barrier(ptr)\n"

STAGED = f"""{SHARED}
define void @staged(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %in = icmp slt i64 %i, %n
  br i1 %in, label %stage, label %done
stage:
  %place = getelementptr i32, ptr %out, i64 %i
  %own = getelementptr i32, ptr %s, i64 %t
  %v = load i32, ptr %place
  store i32 %v, ptr %own
  call void @spmd.barrier(ptr %item)
  %first = icmp eq i32 %t32, 0
  %less = sub i64 %t, 1
  %j = select i1 %first, i64 %t, i64 %less
  %before = getelementptr i32, ptr %s, i64 %j
  %w = load i32, ptr %before
  %sum = add i32 %w, %b32
  store i32 %sum, ptr %place
  br label %done
done:
  ret void
}}"""
"""Moves each of the first n numbers to the next thread of its block, and adds the index of the block."""

STEPS = f"""{SHARED}
define void @steps(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  br label %head
head:
  %j = phi i64 [ %t, %0 ], [ %next, %body ]
  %sum = phi i32 [ 0, %0 ], [ %more, %body ]
  %in = icmp slt i64 %j, BOUND
  br i1 %in, label %body, label %wait
body:
  %p = getelementptr i32, ptr %out, i64 %j
  %v = load i32, ptr %p
  %more = add i32 %sum, %v
  %next = add nsw i64 %j, %d
  br label %head
wait:
  %own = getelementptr i32, ptr %s, i64 %t
  store i32 %sum, ptr %own
  call void @spmd.barrier(ptr %item)
  %begin = add i64 %n, %start
  br label %again
again:
  %k = phi i64 [ %t, %wait ], [ %following, %write ]
  %inside = icmp slt i64 %k, BOUND
  br i1 %inside, label %write, label %done
write:
  %q = getelementptr i32, ptr %s, i64 %t
  %w = load i32, ptr %q
  %place = getelementptr i32, ptr %out, i64 %begin
  %r = getelementptr i32, ptr %place, i64 %t
  store i32 %w, ptr %r
  %following = add nsw i64 %k, %d
  br label %again
done:
  ret void
}}"""
"""Sums up the first numbers in steps as long as the block, and writes the sum of each thread behind the first n."""

PLAIN = f"""{SHARED}
define void @plain(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %s = call ptr @spmd.shared.s.4096.16(ptr %item)
  %place = getelementptr i32, ptr %out, i64 %i
  %own = getelementptr i32, ptr %s, i64 %t
  %v = load i32, ptr %place
  store i32 %v, ptr %own
  call void @spmd.barrier(ptr %item)
  %flipped = xor i64 %t, 1
  %other = getelementptr i32, ptr %s, i64 %flipped
  %w = load i32, ptr %other
  store i32 %w, ptr %place
  ret void
}}"""
"""Exchanges the numbers of neighbours; LLVM makes vectors of the loops over threads."""

DIVERGENT = f"""{SHARED}
define void @divergent(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %apart = icmp eq i64 %i, %n
  br i1 %apart, label %one, label %other
one:
  call void @spmd.barrier(ptr %item)
  br label %done
other:
  call void @spmd.barrier(ptr %item)
  store i32 %t32, ptr %out
  br label %done
done:
  ret void
}}"""
"""Waits at another barrier in the thread with the global index n."""


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of the blocks that machine code was made for."""
    lengths: list[int] = []
    make = finalise.finalise_kernel

    def count(code_object: Any, kernel: Any, block: Any) -> Any:
        lengths.append(block[0])
        return make(code_object, kernel, block)

    monkeypatch.setattr(finalise, "finalise_kernel", count)
    return lengths


def load(device: Device, text: str, name: str) -> Function:
    parameters = [("out", "ptr"), ("n", "i64")]
    return device.load(code(text, name, parameters, shared_bytes=4096)).function(name)


def check_staged(function: Function, length: int, rest: int = 2) -> None:
    """All threads but *rest* of those of three blocks do something."""
    numbers = np.random.default_rng(length).integers(0, 1 << 20, 3 * length, np.int32)
    wanted = numbers.copy().reshape(3, length)
    wanted[:, 1:] = wanted[:, :-1].copy()
    wanted += np.arange(3, dtype=np.int32)[:, np.newaxis]
    wanted = np.where(np.arange(3 * length) < 3 * length - rest, wanted.ravel(), numbers)
    out = to_device(numbers)
    function.launch(3, length, pack(function.kernel, out.address, 3 * length - rest))
    np.testing.assert_array_equal(out.copy_to_host(), wanted)


@pytest.mark.parametrize(
    ("form", "wanted"), [("auto", [2, 3, 4, 8, 16, 32, 64, 65]), ("vectors", [2, 4, 8, 16, 32, 64, 65])]
)
@pytest.mark.sample(1)
def test_blocks_with_gangs_alike_share_machine_code(
    device: Device, made: list[int], form: str, wanted: list[int]
) -> None:
    function = load(device, STAGED, "staged")
    with config.cpu_form.scope(form):
        for length in LENGTHS:
            check_staged(function, length)
        assert made == wanted
        for length in reversed(LENGTHS):  # and each has the length that it was launched with
            for rest in (0, 1, length, length + 1):
                check_staged(function, length, rest)
    assert set(function.handle.workers) == {(length, 1, 1) for length in LENGTHS}
    assert made == wanted


def run_steps(function: Function, length: int, count: int) -> np.ndarray:
    numbers = np.zeros(count + length, np.int32)
    numbers[:count] = np.arange(count)
    out = to_device(numbers)
    function.launch(1, length, pack(function.kernel, out.address, count))
    return out.copy_to_host()[count:]


@pytest.mark.parametrize(("bound", "shared"), [("%n", True), ("300", False)])
def test_loops_that_step_by_the_length(device: Device, made: list[int], bound: str, shared: bool) -> None:
    function = load(device, STEPS.replace("BOUND", bound), "steps")
    for length in (64, 128, 256, 192):
        wanted = [np.arange(300)[first::length].sum() for first in range(length)]
        np.testing.assert_array_equal(run_steps(function, length, 300), wanted)
    assert made == ([64] if shared else [64, 128, 256, 192])


def test_code_for_a_multiple_serves_no_other_length(device: Device, made: list[int]) -> None:
    function = load(device, STEPS.replace("BOUND", "%n"), "steps")
    for length in (96, 160, 64, 65, 128, 255):  # made for 96, it has gangs of 32 threads, all of them full
        wanted = [np.arange(300)[first::length].sum() for first in range(length)]
        np.testing.assert_array_equal(run_steps(function, length, 300), wanted)
    assert made == [96, 65]


def test_loops_over_single_threads_have_code_for_each_length(device: Device, made: list[int]) -> None:
    function = load(device, PLAIN, "plain")
    for length in (64, 128, 256):
        out = to_device(np.arange(2 * length, dtype=np.int32))
        function.launch(2, length, pack(function.kernel, out.address, 0))
        np.testing.assert_array_equal(out.copy_to_host(), np.arange(2 * length) ^ 1)
    assert made == [64, 128, 256]


@pytest.mark.parametrize("length", [64, 192, 1024])
@pytest.mark.sample(2)
def test_divergent_barriers_name_the_thread(device: Device, made: list[int], length: int) -> None:
    function = load(device, DIVERGENT, "divergent")
    out = to_device(np.zeros(1, np.int32))
    with config.cpu_form.scope("vectors"):
        function.handle.worker((128, 1, 1))
        assert function.handle.worker((length, 1, 1)).made_for == (128, 1, 1)
        for thread in (0, 5, length - 1):
            with pytest.raises(BarrierDivergenceError) as caught:
                function.launch(3, length, pack(function.kernel, out.address, length + thread))
            assert caught.value.block == (1, 0, 0)
            assert caught.value.thread in ((thread, 0, 0), (0 if thread else 1, 0, 0))
    assert made == [128]


def test_code_is_kept_for_blocks_of_several_lengths(device: Device, made: list[int], tmp_path: Path) -> None:
    for length in (64, 128, 65, 64, 70, 512):  # made for 64, it cannot run 65
        function = load(device, STAGED, "staged")
        function.keep_code(tmp_path, "WHERE")
        check_staged(function, length)
    assert made == [64, 65]


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(12))
def test_program_in_blocks_of_another_length(device: Device, seed: int) -> None:
    check_length_case(device, seed)
