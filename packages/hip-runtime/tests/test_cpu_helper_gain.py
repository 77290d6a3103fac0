"""Whether helpers make the launches of a program faster, as it learns from the last ones."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from itertools import pairwise

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_blocks import kernel
from spmd_kernels import code, pack

from hip_devicelib.isolated_codegen import make_host_machine
from hip_runtime import Device, to_device
from hip_runtime.drivers.cpu.abi.launch_frame import FIRST_PAUSE, NEVER_ALONE, TIMED_ALONE
from hip_runtime.drivers.cpu.execution.block_scheduler import block_scheduler
from hip_runtime.drivers.cpu.execution.helper_gain import LONGEST, LONGEST_PAUSE, SEEN, define_choose, define_note
from hip_runtime.drivers.cpu.object_code.program import ProgramWords

HELPERS, BLOCKS = 3, 100
FIRST = SEEN * (HELPERS + 1)
"""Launches before any is timed alone."""


class Learner:
    """Launches of a program that take a given time."""

    def __init__(self, choose: Callable[..., int], note: Callable[..., None]) -> None:
        self.words = ProgramWords(untimed=TIMED_ALONE, patience=FIRST_PAUSE)
        self._choose, self._note = choose, note

    def choose(self, blocks: int = BLOCKS) -> int:
        helpers: int = self._choose(ctypes.addressof(self.words), blocks, HELPERS)
        return helpers

    def launch(self, helped: int, alone: int, blocks: int = BLOCKS) -> bool:
        """A launch that takes so many nanoseconds for each block; whether it was helped."""
        helpers = self.choose(blocks)
        assert helpers in (0, HELPERS)
        self._note(ctypes.addressof(self.words), blocks, helpers, blocks * (helped if helpers else alone))
        return helpers > 0

    def launches(self, count: int, helped: int, alone: int) -> list[bool]:
        return [self.launch(helped, alone) for _ in range(count)]


@pytest.fixture
def learner() -> Iterator[Learner]:
    module = ir.Module()
    for function in (define_choose(module), define_note(module)):
        function.linkage = ""
    word = ctypes.c_int64
    with llvm.create_mcjit_compiler(llvm.parse_assembly(str(module)), make_host_machine()) as engine:
        engine.finalize_object()
        choose = ctypes.CFUNCTYPE(word, ctypes.c_void_p, word, word)
        note = ctypes.CFUNCTYPE(None, ctypes.c_void_p, word, word, word)
        yield Learner(
            choose(engine.get_function_address("spmd.choose_helpers")),
            note(engine.get_function_address("spmd.note_launch")),
        )


def test_two_launches_are_timed_alone(learner: Learner) -> None:
    found = learner.launches(FIRST + 8, helped=100, alone=300)
    assert found == [*[True] * FIRST, False, False, *[True] * 6]


def test_pauses_grow_while_help_does_not_help(learner: Learner) -> None:
    found = learner.launches(5000, helped=300, alone=100)
    assert found[: FIRST + 4] == [*[True] * FIRST, False, False, True, True]
    helped = [number for number, was_helped in enumerate(found) if was_helped][FIRST:]
    assert all(after == before + 1 for before, after in zip(helped[::2], helped[1::2], strict=True))
    pauses = [after - before - 2 for before, after in pairwise(helped[::2])]
    assert pauses == [min(FIRST_PAUSE << number, LONGEST_PAUSE) for number in range(len(pauses))]
    assert pauses[-1] == LONGEST_PAUSE


def test_help_that_hardly_helps_is_not_asked_for(learner: Learner) -> None:
    learner.launches(FIRST + 4, helped=95, alone=100)
    assert not any(learner.launches(FIRST_PAUSE, helped=95, alone=100))


def test_what_becomes_slow_alone_is_helped_at_once(learner: Learner) -> None:
    learner.launches(FIRST + 6, helped=300, alone=100)
    assert learner.launches(4, helped=300, alone=1000) == [False, True, True, True]
    assert learner.words.patience == FIRST_PAUSE


def test_the_faster_one_of_two_launches_alone_counts(learner: Learner) -> None:
    learner.launches(FIRST, helped=100, alone=0)
    for alone in (90, 5000):
        learner.launch(helped=0, alone=alone)
    assert learner.words.alone == 90


def test_the_launch_that_wakes_helpers_is_not_judged(learner: Learner) -> None:
    learner.launches(FIRST + 2, helped=300, alone=100)
    assert learner.launch(helped=300, alone=100)
    assert all(learner.launches(20, helped=60, alone=100))


@pytest.mark.parametrize("blocks", [BLOCKS // 3, 3 * BLOCKS])
def test_launches_of_another_size_are_helped(learner: Learner, blocks: int) -> None:
    learner.launches(FIRST + 6, helped=300, alone=100)
    assert learner.choose(blocks) == HELPERS
    assert learner.choose(BLOCKS) == 0


def test_long_launches_are_always_helped(learner: Learner) -> None:
    each = int(LONGEST / BLOCKS / (HELPERS + 1))
    assert all(learner.launches(2 * FIRST, helped=each + 1, alone=1))
    assert not all(learner.launches(20, helped=each - 1, alone=1))


def test_kernels_that_may_not_run_alone_do_not(learner: Learner) -> None:
    learner.words.patience = NEVER_ALONE
    assert all(learner.launches(2 * FIRST, helped=300, alone=100))


COUNT = """
  %p = getelementptr i64, ptr %out, i32 %i
  %old = load i64, ptr %p
  %new = add i64 %old, 1
  store i64 %new, ptr %p
  ret void
"""


def test_launches_are_timed(device: Device) -> None:
    """Each thread runs once in each launch, whoever runs them."""
    if not block_scheduler().helpers:
        pytest.skip("needs helpers: two threads of the processor or more")
    blocks, threads, times = 6000, 64, SEEN * (block_scheduler().helpers + 1) + 50
    function = device.load(kernel(COUNT, [("out", "ptr")])).function("k")
    out = to_device(np.zeros(blocks * threads, np.int64))
    words = ProgramWords.from_address(function.handle.worker((threads, 1, 1)).entry)
    for _ in range(times):
        function.launch(blocks, threads, pack(function.kernel, out.address))
    assert words.helped_blocks == blocks
    assert words.helped > 0
    assert words.alone > 0
    assert words.untimed == 0
    np.testing.assert_array_equal(out.copy_to_host(), times)


WAIT = """
define void @k(ptr %item, ptr %flag) {
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %is.last = icmp eq i32 %b, 1
  br i1 %is.last, label %tell, label %head
tell:
  store atomic i32 1, ptr %flag monotonic, align 4
  br label %done
head:
  %v = load atomic i32, ptr %flag monotonic, align 4
  %told = icmp ne i32 %v, 0
  br i1 %told, label %done, label %head
done:
  ret void
}
"""


@pytest.mark.parametrize("threads", [1, 32])
def test_blocks_that_wait_are_not_run_alone(device: Device, threads: int) -> None:
    function = device.load(code(WAIT, "k", [("flag", "ptr")])).function("k")
    words = ProgramWords.from_address(function.handle.worker((threads, 1, 1)).entry)
    assert words.patience == NEVER_ALONE
