"""Kernels whose threads wait for what nobody writes are told apart from those that compute for long."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from hip_runtime.drivers.cpu.abi.thread_states import (
    SPINS,
    WAITS_FOR_BLOCK,
    WAITS_FOR_WAVE,
    describe_states,
    state_bytes,
)

PREAMBLE = """
import signal, sys, warnings
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it from its start
sys.path.insert(0, {tests!r})
from test_cpu_interrupt import *
from spmd_kernels import code, pack, sample
from hip_runtime import current_device
from hip_runtime.errors import StalledKernelWarning
device = current_device()
warnings.simplefilter("error", StalledKernelWarning)
"""


def run_script(text: str, seconds: int, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PREAMBLE.format(tests=str(Path(__file__).parent)) + textwrap.dedent(text)],
        capture_output=True, text=True, timeout=120,
        env={**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_STALL_SECONDS": str(seconds), **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sample(1)
@pytest.mark.parametrize("grid", [1, 300])
def test_threads_that_wait_for_ever(grid: int) -> None:
    """The warning, as an error, ends the launch; it names the kernel and its place, and the blocks."""
    out = run_script(
        f"""
        from hip_runtime.errors import TrapError
        function, flag, out, arguments = endless(device)
        def describe(fault):
            if isinstance(fault, TrapError):
                fault.place = "there.py:3"
            return fault
        function.describe_fault = describe
        for _ in range(2):
            try:
                function.launch({grid}, 4, arguments)
            except StalledKernelWarning as warning:
                print("'k' (there.py:3): no block has ended for 1 s; in block" in str(warning), flush=True)
            check_that_it_works(device)
        """,
        1,
    )
    assert out == "True\nTrue\n"


@pytest.mark.parametrize(("grid", "said"), [(2, False), (3, True)])
def test_more_blocks_than_run_at_once(grid: int, said: bool) -> None:
    """Such blocks may wait for those that have not begun: the warning has the numbers, and what to do."""
    out = run_script(
        f"""
        function, flag, out, arguments = endless(device)
        try:
            function.launch({grid}, 4, arguments)
        except StalledKernelWarning as warning:
            print("launched, the CPU device runs 2 at the same time" in str(warning))
            print("set NUMBA_HIP_CPU_THREADS to {grid} before the first launch" in str(warning))
        """,
        1,
        NUMBA_HIP_CPU_THREADS="2",
    )
    assert out == f"{said}\n{said}\n"


WORK_THEN_WAIT = """
define void @k(ptr noalias %item, ptr %flag, i64 %turns) {
entry:
  br label %head
head:
  %turn = phi i64 [ 0, %entry ], [ %next, %head ]
  %old = load volatile i32, ptr %flag
  store volatile i32 %old, ptr %flag
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %head, label %wait
wait:
  %v = load atomic i32, ptr %flag monotonic, align 4
  %zero = icmp eq i32 %v, 0
  br i1 %zero, label %wait, label %out
out:
  ret void
}"""
"""A thread goes round so many turns, then waits for the flag."""


@pytest.mark.long
def test_threads_that_compute_before_they_wait_for_ever() -> None:
    """They still compute when they are looked at first."""
    out = run_script(
        """
        from test_cpu_stalls import WORK_THEN_WAIT
        function = device.load(code(WORK_THEN_WAIT, "k", [("flag", "ptr"), ("turns", "i64")])).function("k")
        flag, turns, took = to_device(np.ones(1, np.int32)), TURNS, 0.0
        function.launch(1, 1, pack(function.kernel, flag.address, 1))  # compiled
        while took < 0.3:
            turns, start = 2 * turns, time.monotonic()
            function.launch(1, 1, pack(function.kernel, flag.address, turns))
            took = time.monotonic() - start
        flag.copy_to_device(np.zeros(1, np.int32))
        try:
            function.launch(1, 1, pack(function.kernel, flag.address, int(turns * 3 / took)))
        except StalledKernelWarning as warning:
            print("in block 0," in str(warning))
        check_that_it_works(device)
        """,
        1,
    )
    assert out == "True\n"


@pytest.mark.long
def test_streams() -> None:
    out = run_script(
        """
        function, flag, out, arguments = endless(device)
        stream = Stream()
        function.launch(2, 4, arguments, stream=stream)
        try:
            stream.synchronize()
        except StalledKernelWarning as warning:
            print("Stream.abort()" in str(warning))
        check_that_it_works(device)
        """,
        1,
    )
    assert out == "True\n"


@pytest.mark.long
def test_kernels_that_compute_for_long() -> None:
    """Longer than the watcher waits, by the clock."""
    out = run_script(
        """
        function = work(device)
        done = to_device(np.zeros(2, np.int32))
        turns, start = TURNS, time.monotonic()
        while time.monotonic() - start < 2.5:  # the last launch takes that long
            turns, start = 2 * turns, time.monotonic()
            function.launch(2, 1, pack(function.kernel, done.address, turns))
        print(done.copy_to_host())
        """,
        1,
    )
    assert out == "[1 1]\n"


@pytest.mark.long
def test_never() -> None:
    out = run_script(
        """
        function, flag, out, arguments = endless(device)
        flag.copy_to_device(np.ones(1, np.int64))
        function.launch(2, 4, arguments)  # compiles, so that the signal finds the kernel running
        flag.copy_to_device(np.zeros(1, np.int64))
        with pytest.raises(KeyboardInterrupt), signal_after(1.5):
            function.launch(2, 4, arguments)
        check_that_it_works(device)
        print("interrupted")
        """,
        0,
    )
    assert out == "interrupted\n"


def test_what_threads_wait_for_in_words() -> None:
    kinds, locations = (WAITS_FOR_WAVE, SPINS, WAITS_FOR_BLOCK), ("there.py:1", "there.py:2", "")
    described = describe_states([1, 1, 3, 0, 1, 2, 255, 3], kinds, locations)
    assert described == (
        "threads 2, 7 have returned; threads 0 to 1, 4 spin; thread 3 waits for its wave at there.py:1; "
        "thread 5 waits for the block"
    )
    assert describe_states([1, 1, 255], kinds, locations) == "", "nobody waits for them"
    assert describe_states([0, 1] * 10, kinds, locations).endswith(
        "threads 0, 2, 4, 6, 8, 10, ... wait for their wave at there.py:1"
    )
    assert (state_bytes(254), state_bytes(255)) == (1, 2)
