"""Blocks of several lengths that one program runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack, sample

from hip_runtime import Device, Function, KernelFault, config, to_device
from hip_runtime.drivers.cpu import finalise
from hip_runtime.drivers.cpu.abi.block_lengths import LONGEST, Lengths, lengths_like
from hip_runtime.drivers.cpu.strategies.form_choice import default_lanes

LENGTHS = (2, 3, 4, 5, 7, 8, 13, 16, 31, 32, 33, 63, 64, 65, 96, 100, 128, 256, 1000, 1024)

ROW = f"""
define void @row(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %place = getelementptr i32, ptr %out, i64 %i
  %old = load i32, ptr %place
  %odd = mul i32 %t32, 3
  %sum = add i32 %old, %odd
  %new = add i32 %sum, %b32
  store i32 %new, ptr %place
  ret void
}}"""
"""Adds to each number three times the index of its thread and that of its block; no thread returns before."""

STRIDED = f"""
define void @strided(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %g32 = call i32 @spmd.grid_dim.x(ptr %item)
  %g = zext i32 %g32 to i64
  %step = mul i64 %g, %d
  br label %head
head:
  %j = phi i64 [ %i, %0 ], [ %next, %body ]
  %more = icmp slt i64 %j, %n
  br i1 %more, label %body, label %done
body:
  %place = getelementptr i32, ptr %out, i64 %j
  %old = load i32, ptr %place
  %new = add i32 %old, %t32
  store i32 %new, ptr %place
  %next = add nsw i64 %j, %step
  br label %head
done:
  ret void
}}"""
"""Adds the index of its thread to each number, in a grid-stride loop."""

MIRROR = f"""
define void @mirror(ptr noalias %item, ptr %out, i64 %n) {{
{GLOBAL_X}
  %last = sub i64 %d, 1
  %across = sub i64 %last, %t
  %j = add i64 %start, %across
  %place = getelementptr i32, ptr %out, i64 %j
  store i32 %t32, ptr %place
  ret void
}}"""
"""Writes the index of its thread at the place of the thread that is as far from the other end of the block."""


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
    return device.load(code(text, name, [("out", "ptr"), ("n", "i64")])).function(name)


def run(function: Function, blocks: int, length: int, numbers: np.ndarray) -> np.ndarray:
    array = to_device(numbers)
    function.launch(blocks, length, pack(function.kernel, array.address, len(numbers)))
    return array.copy_to_host()


def check_row(function: Function, length: int) -> None:
    numbers = np.arange(3 * length + 5, dtype=np.int32)
    wanted = numbers.copy()
    wanted[: 3 * length] += np.tile(3 * np.arange(length), 3) + np.repeat(np.arange(3), length)
    np.testing.assert_array_equal(run(function, 3, length, numbers), wanted)


def test_blocks_with_gangs_alike_share_machine_code(device: Device, made: list[int]) -> None:
    function = load(device, ROW, "row")
    for length in LENGTHS:
        check_row(function, length)
    # blocks of three threads share the code of two, or have their own with an older LLVM, whose loads are frozen
    assert [length for length in made if length != 3] == [2, 4, 5, 8, 13, 16, 31, 32, 33, 64, 65]
    for length in reversed(LENGTHS):  # and each has the length that it was launched with
        check_row(function, length)
    assert set(function.handle.workers) == {(length, 1, 1) for length in LENGTHS}


def test_code_for_gangs_that_may_return_early_is_for_any_length(device: Device, made: list[int]) -> None:
    function = device.load(sample("saxpy")).function("saxpy")
    for length in LENGTHS:
        x, y = (to_device(np.arange(1100, dtype=np.float32)) for _ in range(2))
        function.launch(-(-1100 // length), length, pack(function.kernel, y.address, x.address, 2.0, 1090))
        wanted = np.arange(1100) * np.where(np.arange(1100) < 1090, 3, 1)
        np.testing.assert_array_equal(y.copy_to_host(), wanted)
    joined = default_lanes() // 2  # shorter blocks are, each to gangs of as many as it takes
    assert made == [
        *(length for length in LENGTHS if length < joined), *(lanes for lanes in (4, 8, 16, 32, 64) if lanes >= joined)
    ]  # fmt: skip


@pytest.mark.parametrize("form", ["auto", "vectors"])
def test_grid_stride_loops_step_by_the_length_of_the_block(device: Device, made: list[int], form: str) -> None:
    function = load(device, STRIDED, "strided")
    with config.cpu_form.scope(form):
        for length in (33, 64, 40, 100, 512):
            found = run(function, 3, length, np.zeros(5000, np.int32))
            np.testing.assert_array_equal(found, np.arange(5000) % length)
    assert made == [33, 64]


def test_code_that_computes_with_the_length_is_for_one_length(device: Device, made: list[int]) -> None:
    function = load(device, MIRROR, "mirror")
    for length in (3, 2, 64, 128, 100):
        found = run(function, 2, length, np.zeros(2 * length, np.int32))
        np.testing.assert_array_equal(found, np.tile(np.arange(length)[::-1], 2))
    assert made == [3, 2, 64, 128, 100]


def test_other_shapes_and_settings_have_code_of_their_own(device: Device, made: list[int]) -> None:
    function = load(device, ROW, "row")
    for length in (64, (64, 1, 1), (1, 64), 1, (64, 2)):
        run(function, 1, length, np.zeros(200, np.int32))  # type: ignore[arg-type]
    assert made == [64, 1, 1, 64]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(8):
        check_row(function, 128)
        check_row(function, 256)
    assert made[4:] == [128]
    assert "8 threads at a time" in str(function.handle.forms[128, 1, 1])


def test_code_that_is_to_be_seen_is_made(device: Device, made: list[int], tmp_path: Path) -> None:
    function = load(device, ROW, "row")
    with config.dump.scope(frozenset({"asm"})), config.dump_directory.scope(tmp_path):
        for length in (64, 128):
            check_row(function, length)
    assert made == [64, 128]


def test_faults_name_the_block_and_the_thread(device: Device, made: list[int]) -> None:
    function = device.load(sample("fault")).function("fault")
    seen = to_device(np.zeros(2000, np.uint8))
    for length in (64, 128, 256):
        where = 3 * length + length - 2
        with pytest.raises(KernelFault) as caught:
            function.launch(5, length, pack(function.kernel, seen.address, where, 1))
        assert (caught.value.block, caught.value.thread) == ((3, 0, 0), (length - 2, 0, 0))
    assert made == [64]


def test_code_is_kept_for_blocks_of_several_lengths(device: Device, made: list[int], tmp_path: Path) -> None:
    for length in (64, 128, 65, 64, 70, 512):  # made for 64, it cannot run 65
        function = load(device, ROW, "row")
        function.keep_code(tmp_path, "WHERE")
        check_row(function, length)
    assert made == [64, 65]


def test_lengths_that_are_alike_have_gangs_of_as_many_lanes() -> None:
    for length in range(2, LONGEST + 1):
        least, most = lengths_like(length, 4)
        assert least <= length <= most
        assert lengths_like(least, 4) == lengths_like(most, 4) == (least, most)
        assert min(length, 64).bit_length() == min(most, 64).bit_length() or most == 3
    assert Lengths(8, 15, 8).fit((8, 1, 1))
    for block in ((9, 1, 1), (16, 1, 1), (4, 1, 1), (8, 2, 1), (8, 1, 2)):
        assert not Lengths(8, 15, 8).fit(block)


def test_lines_are_those_of_the_code_that_is_shared(device: Device) -> None:
    function = load(device, ROW, "row")
    check_row(function, 65)
    check_row(function, 128)
    first, second = (function.handle.workers[length, 1, 1] for length in (65, 128))
    assert second.block == (128, 1, 1)
    assert second.made_for == first.made_for == (65, 1, 1)
    assert second.image is first.image
    assert second.entry != first.entry
