"""Ctrl-C while a kernel runs: the launch ends between two chunks of blocks, or within blocks that do not end, and
everything works afterwards."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from spmd_kernels import code, pack, sample
from test_cpu_grid_barrier import GRID, PARAMETERS, ROTATE
from test_cpu_regions import SHARED, kernel, launch

from hip_runtime import Device, DeviceArray, Function, Stream, config, to_device
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.errors import InvalidHandleError

WORK = """
define void @k(ptr noalias %item, ptr %done, i64 %turns) {
entry:
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %p = getelementptr i32, ptr %done, i32 %b
  br label %head
head:
  %turn = phi i64 [ 0, %entry ], [ %next, %head ]
  %old = load volatile i32, ptr %p
  store volatile i32 %old, ptr %p
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %head, label %out
out:
  store i32 1, ptr %p
  ret void
}"""
"""Each block takes its time, then notes that it is done."""

ENDLESS = """
define void @k(ptr noalias %item, ptr %flag, ptr %out) {
entry:
  br label %head
head:
  %v = load atomic i64, ptr %flag monotonic, align 8
  %zero = icmp eq i64 %v, 0
  br i1 %zero, label %head, label %out.block
out.block:
  %old = atomicrmw add ptr %out, i64 1 monotonic
  ret void
}"""
"""Each thread waits for the flag, then counts itself."""

ENDLESS_LIBRARY = """
declare double @cbrt(double)
define void @k(ptr noalias %item, ptr %flag, ptr %out) {
entry:
  br label %head
head:
  %v = load volatile double, ptr %flag
  %root = call double @cbrt(double %v)
  %zero = fcmp oeq double %root, 0.0
  br i1 %zero, label %head, label %out.block
out.block:
  ret void
}"""
"""Most of the time is spent in the math library."""

BLOCKS = 4000
TURNS = 2_000_000
"""So that a block takes some milliseconds, and the grid many seconds."""


@pytest.fixture(autouse=True)
def python_handles_ctrl_c() -> Iterator[None]:
    """Also where the tests run as a shell's job in the background, which ignores SIGINT from its start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@contextmanager
def signal_after(seconds: float, number: int = signal.SIGINT) -> Iterator[None]:
    timer = threading.Timer(seconds, os.kill, (os.getpid(), number))
    timer.start()
    try:
        yield
    finally:
        timer.join()


def work(device: Device) -> Function:
    """The kernel, compiled."""
    function = device.load(code(WORK, "k", [("done", "ptr"), ("turns", "i64")])).function("k")
    done = to_device(np.zeros(2, np.int32))
    function.launch(2, 1, pack(function.kernel, done.address, 1))
    return function


def check_that_it_works(device: Device) -> None:
    function = device.load(sample("saxpy")).function("saxpy")
    x, y = (to_device(np.arange(5000, dtype=np.float32)) for _ in range(2))
    function.launch(50, 100, pack(function.kernel, y.address, x.address, 2.0, 5000))
    np.testing.assert_array_equal(y.copy_to_host(), 3 * np.arange(5000))


def test_interrupt_ends_a_launch(device: Device) -> None:
    function = work(device)
    for _ in range(2):
        done = to_device(np.zeros(BLOCKS, np.int32))
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt), signal_after(0.2):
            function.launch(BLOCKS, 1, pack(function.kernel, done.address, TURNS))
        assert time.monotonic() - start < 5
        count = int(done.copy_to_host().sum())
        time.sleep(0.05)
        assert 0 < count < BLOCKS
        assert int(done.copy_to_host().sum()) == count, "blocks ran after the launch had ended"
    check_that_it_works(device)


@pytest.mark.parametrize(("grid", "block"), [(1, 32), (7, 33), (2000, 32)])
@pytest.mark.sample(2)
def test_interrupt_of_a_grid_that_waits_for_itself_again_and_again(device: Device, grid: int, block: int) -> None:
    """From one barrier to the next it takes microseconds, for which no signal is looked for within a run."""
    rotate = kernel(ROTATE, PARAMETERS, GRID + SHARED, shared_bytes=4096)
    out = to_device(np.arange(grid * block, dtype=np.int32))
    function = launch(device, rotate, grid, block, out.address, 1, cooperative=True)  # compiles
    arguments = pack(function.kernel, out.address, 1_000_000_000)
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), signal_after(0.2):
        function.launch(grid, block, arguments, cooperative=True)
    assert time.monotonic() - start < 5
    check_that_it_works(device)


def test_interrupt_of_the_first_launch(device: Device) -> None:
    """Nothing is known of the blocks yet, which take some tenths of a second: few are begun before the next look."""
    function = device.load(code(WORK, "k", [("done", "ptr"), ("turns", "i64")])).function("k")
    done = to_device(np.zeros(BLOCKS, np.int32))
    memory = np.frombuffer((ctypes.c_int32 * BLOCKS).from_address(done.address), np.int32)
    until_then: list[int] = []

    def interrupt() -> None:
        until_then.append(int(memory.sum()))
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(1.0, interrupt)
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        function.launch(BLOCKS, 1, pack(function.kernel, done.address, 120 * TURNS))
    timer.join()
    assert int(memory.sum()) - until_then[0] < 12 * len(os.sched_getaffinity(0))
    check_that_it_works(device)


def test_handler_that_does_not_raise_lets_the_kernel_go_on(device: Device) -> None:
    function = work(device)
    done = to_device(np.zeros(1500, np.int32))
    seen: list[float] = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(int(done.copy_to_host().sum())))
    try:
        with signal_after(0.05, signal.SIGUSR1):
            function.launch(1500, 1, pack(function.kernel, done.address, TURNS))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(seen) == 1
    assert seen[0] < 1500, "the handler ran only after the kernel"
    assert done.copy_to_host().all()


def test_launches_of_other_threads_go_on(device: Device) -> None:
    function = work(device)
    other, done = (to_device(np.zeros(count, np.int32)) for count in (300, BLOCKS))
    thread = threading.Thread(target=function.launch, args=(300, 1, pack(function.kernel, other.address, TURNS)))
    thread.start()
    with pytest.raises(KeyboardInterrupt), signal_after(0.1):
        function.launch(BLOCKS, 1, pack(function.kernel, done.address, TURNS))
    thread.join()
    assert other.copy_to_host().all()
    check_that_it_works(device)


def compile_endless(device: Device, text: str = ENDLESS) -> tuple[Function, DeviceArray, DeviceArray, bytes]:
    """The same as `endless`, compiled for blocks of four threads: a handler that launches must not come in between, and
    an interrupt while something is compiled may be lost where LLVM's objects are given back."""
    function, flag, out, arguments = endless(device, text)
    flag.copy_to_device(np.ones(1, np.int64))
    function.launch(1, 4, arguments)
    flag.copy_to_device(np.zeros(1, np.int64))
    out.copy_to_device(np.zeros(1, np.int64))
    return function, flag, out, arguments


def endless(device: Device, text: str = ENDLESS) -> tuple[Function, DeviceArray, DeviceArray, bytes]:
    """A kernel whose blocks do not end before the flag is set, the flag, the counter, and the arguments."""
    function = device.load(code(text, "k", [("flag", "ptr"), ("out", "ptr")])).function("k")
    flag, out = (to_device(np.zeros(1, np.int64)) for _ in range(2))
    return function, flag, out, pack(function.kernel, flag.address, out.address)


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("form", "grid", "block"),
    [("auto", 1, 32), ("auto", 4096, 256), ("loop", 2, 8), ("regions", 3, 64), ("vectors", 40, 64)],
)
def test_interrupt_within_blocks_that_do_not_end(device: Device, form: str, grid: int, block: int) -> None:
    with config.cpu_form.scope(form):
        function, flag, out, arguments = endless(device)
        flag.copy_to_device(np.ones(1, np.int64))
        function.launch(grid, block, arguments)
    assert out.copy_to_host()[0] == grid * block
    for _ in range(2):
        flag.copy_to_device(np.zeros(1, np.int64))
        with pytest.raises(KeyboardInterrupt), signal_after(0.1):
            function.launch(grid, block, arguments)
        check_that_it_works(device)
        flag.copy_to_device(np.ones(1, np.int64))
        out.copy_to_device(np.zeros(1, np.int64))
        function.launch(grid, block, arguments)
        assert out.copy_to_host()[0] == grid * block


def test_interrupt_of_a_kernel_that_calls_the_math_library(device: Device) -> None:
    function, _, _, arguments = compile_endless(device, ENDLESS_LIBRARY)
    with pytest.raises(KeyboardInterrupt), signal_after(0.3):
        function.launch(8, 4, arguments)
    check_that_it_works(device)


@pytest.mark.parametrize("grid", [1, 300])
@pytest.mark.sample(1)
def test_handler_that_runs_within_a_block(device: Device, grid: int) -> None:
    """It may launch kernels itself; the one that was interrupted goes on."""
    function, flag, out, arguments = compile_endless(device)
    check_that_it_works(device)

    def release(*_: object) -> None:
        check_that_it_works(device)
        with pytest.raises(KeyboardInterrupt), signal_after(0.1):
            function.launch(grid, 4, arguments)
        out.copy_to_device(np.zeros(1, np.int64))
        flag.copy_to_device(np.ones(1, np.int64))

    before = signal.signal(signal.SIGUSR1, release)
    try:
        with signal_after(0.2, signal.SIGUSR1):
            function.launch(grid, 4, arguments)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert out.copy_to_host()[0] == 4 * grid


def test_other_threads_are_not_abandoned(device: Device) -> None:
    function, _, _, arguments = compile_endless(device)
    other, flag, out, others = compile_endless(device)
    thread = threading.Thread(target=other.launch, args=(2, 4, others))
    thread.start()
    with pytest.raises(KeyboardInterrupt), signal_after(0.3):
        function.launch(2, 4, arguments)
    assert thread.is_alive()
    flag.copy_to_device(np.ones(1, np.int64))
    thread.join()
    assert out.copy_to_host()[0] == 8


@pytest.mark.parametrize("grid", [1, 300])
@pytest.mark.sample(1)
def test_streams_are_aborted(device: Device, grid: int) -> None:
    function, _, out, arguments = endless(device)
    stream = Stream()
    told: list[BaseException | None] = []
    for _ in range(2):
        function.launch(grid, 4, arguments, stream=stream)
        function.launch(grid, 4, arguments, stream=stream)
        stream.add_callback(told.append)
        with pytest.raises(KeyboardInterrupt) as caught, signal_after(0.2):
            stream.synchronize()
        assert "abort()" in str(caught.value)
        stream.abort()
        stream.synchronize()
        check_that_it_works(device)
    assert out.copy_to_host()[0] == 0
    assert len(told) == 2
    assert None not in told
    with pytest.raises(InvalidHandleError, match="default stream"):
        Stream(device, handle=0).abort()


def test_all_streams_of_a_device_are_aborted() -> None:
    """Also those that wait for one another, and the default stream where launches on it return at once."""
    with config.cpu_async.scope(True):
        device = Device(CpuDriver(1 << 24), 0, 0)
    function, _, out, arguments = endless(device)
    first, second = Stream(device), Stream(device)
    for _ in range(2):
        function.launch(1, 4, arguments, stream=first)
        second.wait(first.record())
        function.launch(1, 4, arguments, stream=second)
        function.launch(1, 4, arguments)
        with pytest.raises(KeyboardInterrupt, match=r"Device\.abort\(\)"), signal_after(0.2):
            device.synchronize()
        device.abort()
        device.synchronize()
    assert out.copy_to_host()[0] == 0


PROCESS = """
import sys
sys.path.insert(0, sys.argv[1])
from test_cpu_interrupt import *
from hip_runtime import current_device
signal.signal(signal.SIGINT, signal.default_int_handler)
device = current_device()
function = work(device)
done = to_device(np.zeros(BLOCKS, np.int32))
print("ready", flush=True)
try:
    function.launch(BLOCKS, 1, pack(function.kernel, done.address, TURNS))
except KeyboardInterrupt:
    print("interrupted", flush=True)
check_that_it_works(device)
print("works")
"""


@pytest.mark.sample(1)
@pytest.mark.parametrize("threads", ["1", "3"])
def test_ctrl_c(threads: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", PROCESS, str(Path(__file__).parent)], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_THREADS": threads},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert out == "interrupted\nworks\n"
    assert process.returncode == 0


END = """
import sys
sys.path.insert(0, sys.argv[1])
from test_cpu_interrupt import *
from hip_runtime import current_device
function, flag, out, arguments = endless(current_device())
streams = [Stream(), Stream()]
for stream in streams:
    function.launch(300, 4, arguments, stream=stream)
print("end")
"""


@pytest.mark.long
def test_end_of_the_process_while_kernels_do_not_end() -> None:
    done = subprocess.run(
        [sys.executable, "-c", END, str(Path(__file__).parent)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "NUMBA_HIP_DEVICE": "cpu"},
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "end\n", "")
