"""What the processor finds in a kernel: an error of the launch, after which everything works. All other signals go to
whom they went to before."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from spmd_kernels import code, pack, sample

from hip_runtime import Device, Function, KernelFault, Stream, config, to_device
from hip_runtime.drivers.cpu.execution.signal_handlers import Handlers
from hip_runtime.errors import MemoryFaultError, TrapError

STORE = """
define void @k(ptr noalias %item, ptr %place, i64 %at) {
  %p = getelementptr i64, ptr %place, i64 %at
  store volatile i64 1, ptr %p
  ret void
}"""

TRAP = """
declare void @llvm.trap()
define void @k(ptr noalias %item) {
  call void @llvm.trap()
  ret void
}"""

COPY = """
declare ptr @memcpy(ptr, ptr, i64)
define void @k(ptr noalias %item, ptr %place, i64 %from) {
  %p = inttoptr i64 %from to ptr
  %r = call ptr @memcpy(ptr %place, ptr %p, i64 1000000)
  ret void
}"""

HELPED = """
define void @k(ptr noalias %item, ptr %seen, i64 %at) {
entry:
  %mine = atomicrmw add ptr %seen, i64 1 monotonic
  br label %head
head:
  %v = load atomic i64, ptr %seen monotonic, align 8
  %all = icmp uge i64 %v, 3
  br i1 %all, label %do, label %head
do:
  %p = getelementptr i64, ptr %seen, i64 %at
  store volatile i64 1, ptr %p
  ret void
}"""
"""Three blocks, each on a thread of its own, fail at the same time."""

PRIVATE = """
declare void @spmd.barrier(ptr) convergent
define void @k(ptr noalias %item, ptr %place, i64 %at) {
  %own = alloca [1048576 x i8]
  %i = call i32 @spmd.thread_idx.x(ptr %item)
  %first = getelementptr i8, ptr %own, i32 %i
  store i32 %i, ptr %first
  call void @spmd.barrier(ptr %item)
  %p = getelementptr i64, ptr %place, i64 %at
  %kept = load volatile i32, ptr %first
  store volatile i32 %kept, ptr %p
  ret void
}"""
"""The threads of a block together keep more than there is room for on the stack."""

FAR = -(1 << 36)
"""Elements: half a terabyte before an array, where nothing is. As far behind it may be no address at all."""


def store(device: Device) -> Function:
    return device.load(code(STORE, "k", [("place", "ptr"), ("at", "i64")])).function("k")


def check_that_it_works(device: Device) -> None:
    function = device.load(sample("saxpy")).function("saxpy")
    x, y = (to_device(np.arange(5000, dtype=np.float32)) for _ in range(2))
    function.launch(50, 100, pack(function.kernel, y.address, x.address, 2.0, 5000))
    np.testing.assert_array_equal(y.copy_to_host(), 3 * np.arange(5000))


@pytest.mark.sample(3)
@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
@pytest.mark.parametrize(("grid", "block"), [(1, 1), (1, 64), (3000, 32)])
def test_access_outside_of_memory(device: Device, form: str, grid: int, block: int) -> None:
    place = to_device(np.zeros(1, np.int64))
    with config.cpu_form.scope(form):
        function = store(device)
        for _ in range(2):
            with pytest.raises(MemoryFaultError) as caught:
                function.launch(grid, block, pack(function.kernel, place.address, FAR))
            error = caught.value
            assert error.address == place.address + 8 * FAR
            assert error.signal == signal.SIGSEGV
            assert f"{error.address:#x}, {-8 * FAR} bytes before the 4096 bytes of device memory" in str(error)
            check_that_it_works(device)
        function.launch(grid, block, pack(function.kernel, place.address, 0))
    assert place.copy_to_host()[0] == 1


def test_addresses_that_can_be_none(device: Device) -> None:
    function = store(device)
    for address in (0, 1 << 62):
        with pytest.raises(MemoryFaultError, match="an address that is 0 or none at all"):
            function.launch(1, 1, pack(function.kernel, address, 0))


def test_access_of_a_function_that_the_kernel_calls(device: Device) -> None:
    function = device.load(code(COPY, "k", [("place", "ptr"), ("from", "i64")])).function("k")
    place = to_device(np.zeros(125_000, np.int64))
    with pytest.raises(MemoryFaultError) as caught:
        function.launch(2, 1, pack(function.kernel, place.address, place.address + 8 * FAR))
    assert caught.value.address - place.address - 8 * FAR in range(1_000_000)
    check_that_it_works(device)


@pytest.mark.parametrize("name", ["trap", "debugtrap"])
def test_instructions_that_stop_the_processor(device: Device, name: str) -> None:
    function = device.load(code(TRAP.replace("llvm.trap", f"llvm.{name}"), "k", [])).function("k")
    with pytest.raises(TrapError, match="SIGILL|SIGTRAP") as caught:
        function.launch(3, 4, b"")
    assert not isinstance(caught.value, MemoryFaultError)
    check_that_it_works(device)


def test_memory_of_a_block_that_was_left(device: Device) -> None:
    """It is freed, and no longer known to the thread when the block comes to its end."""
    function = device.load(code(PRIVATE, "k", [("place", "ptr"), ("at", "i64")])).function("k")
    place = to_device(np.zeros(1, np.int64))
    blocks = 20
    function.launch(1, 64, pack(function.kernel, place.address, 0))
    before = memory_size()
    for _ in range(blocks):
        with pytest.raises(MemoryFaultError):
            function.launch(1, 64, pack(function.kernel, place.address, FAR))
    function.launch(blocks, 64, pack(function.kernel, place.address, 0))
    assert memory_size() - before < (blocks // 2) * (64 << 20)
    check_that_it_works(device)


def memory_size() -> int:
    """Bytes of addresses that this process has."""
    return int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


def test_block_of_the_access(device: Device) -> None:
    """Blocks in chunks of their own, as they are not lanes of one gang."""
    text = """
    define void @k(ptr noalias %item, ptr %place, i64 %at) {
      %b = call i32 @spmd.block_idx.y(ptr %item)
      %last = icmp eq i32 %b, 4
      br i1 %last, label %bad, label %good
    bad:
      %p = getelementptr i64, ptr %place, i64 %at
      store volatile i64 1, ptr %p
      ret void
    good:
      ret void
    }"""
    function = device.load(code(text, "k", [("place", "ptr"), ("at", "i64")])).function("k")
    place = to_device(np.zeros(1, np.int64))
    with config.cpu_form.scope("loop"), pytest.raises(MemoryFaultError) as caught:
        function.launch((1, 5, 1), 1, pack(function.kernel, place.address, FAR))
    assert caught.value.block == (0, 4, 0)


def test_error_is_described_by_the_layer_above_and_can_be_pickled(device: Device) -> None:
    function = store(device)
    place = to_device(np.zeros(1, np.int64))

    def describe(fault: KernelFault) -> BaseException:
        assert isinstance(fault, MemoryFaultError)
        fault.place, fault.advice = "there.py:3", "; do this"
        return fault

    function.describe_fault = describe
    with pytest.raises(MemoryFaultError, match=r"'k' \(there.py:3\), block .*; do this$") as caught:
        function.launch(1, 1, pack(function.kernel, place.address, FAR))
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert again.address == caught.value.address


def test_threads_and_streams(device: Device) -> None:
    function = store(device)
    place = to_device(np.zeros(1, np.int64))
    arguments = pack(function.kernel, place.address, FAR)
    caught: list[BaseException] = []

    def launch() -> None:
        try:
            function.launch(2, 1, arguments)
        except MemoryFaultError as error:
            caught.append(error)

    for _ in range(2):
        threads = [threading.Thread(target=launch) for _ in range(3)]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
    assert len(caught) == 6
    stream = Stream()
    function.launch(2, 1, arguments, stream=stream)
    with pytest.raises(MemoryFaultError):
        stream.synchronize()
    function.launch(2, 1, pack(function.kernel, place.address, 0), stream=stream)
    stream.synchronize()
    assert place.copy_to_host()[0] == 1


PREAMBLE = """
import ctypes, os, signal, sys
sys.path.insert(0, {tests!r})
from test_cpu_traps import *
from hip_runtime import current_device
device = current_device()
place = to_device(np.zeros(1, np.int64))
function = store(device)
def fail(function=function, grid=1):
    try:
        function.launch(grid, 1, pack(function.kernel, place.address, FAR))
    except MemoryFaultError:
        print("caught", flush=True)
"""


def run_script(text: str, **environment: str) -> tuple[int, str, str]:
    script = PREAMBLE.format(tests=str(Path(__file__).parent)) + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60,
        env={**os.environ, "NUMBA_HIP_DEVICE": "cpu", **environment},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.long
def test_helpers() -> None:
    out = run_script(
        """
        helped = device.load(code(HELPED, "k", [("seen", "ptr"), ("at", "i64")])).function("k")
        for _ in range(5):
            place.copy_to_device(np.zeros(1, np.int64))
            fail(helped, 3)
        check_that_it_works(device)
        """,
        NUMBA_HIP_CPU_THREADS="3",
    )
    assert out == (0, "caught\n" * 5, "")


@pytest.mark.long
def test_forked_child() -> None:
    out = run_script(
        """
        fail()
        pid = os.fork()
        if pid == 0:
            fail()
            fail(grid=500)
            os._exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        """
    )
    assert out[:2] == (0, "caught\ncaught\ncaught\n3\n")


SEGFAULT = "Fatal Python error: Segmentation fault"


@pytest.mark.sample(1)
@pytest.mark.parametrize("enabled", [(), ("before",), ("after",), ("before", "after")])
def test_what_is_not_the_kernels_fault_ends_the_process(enabled: tuple[str, ...]) -> None:
    """Once, and with one dump where `faulthandler` is enabled, whenever that was."""
    after = "import faulthandler; faulthandler.enable()" if "after" in enabled else ""
    environment = {"PYTHONFAULTHANDLER": "1" if "before" in enabled else ""}
    code, out, errors = run_script(f"fail(); {after}\nctypes.string_at(16)", **environment)
    assert (code, out) == (-signal.SIGSEGV, "caught\n")
    assert errors.count(SEGFAULT) == bool(enabled)


def test_handler_that_came_late_is_behind_ours_once_code_is_loaded() -> None:
    code, out, errors = run_script(
        """
        fail()
        import faulthandler; faulthandler.enable()
        check_that_it_works(device)
        fail()
        ctypes.string_at(16)
        """
    )
    assert (code, out, errors.count(SEGFAULT)) == (-signal.SIGSEGV, "caught\ncaught\n", 1)


@pytest.mark.long
def test_handler_that_came_late_is_told_the_kernel() -> None:
    code, out, errors = run_script("fail()\nimport faulthandler; faulthandler.enable()\nfail()")
    assert (code, out, errors.count(SEGFAULT)) == (-signal.SIGSEGV, "caught\n", 1)
    assert f"signal {int(signal.SIGSEGV)} while kernel k was running" in errors


@pytest.mark.long
@pytest.mark.parametrize("name", ["SIGSEGV", "SIGURG"])
def test_handlers_of_the_program_are_called(name: str) -> None:
    text = f"signal.signal(signal.{name}, lambda *_: print('mine', flush=True))\n"
    send = f"os.kill(os.getpid(), signal.{name})\n"
    for script in ("fail()\n" + text + send + "check_that_it_works(device)\nfail()\n" + send, text + "fail()\n" + send):
        out = run_script(script)
        assert out[0] == 0
        assert out[1] == ("caught\nmine\ncaught\nmine\n" if script.startswith("fail") else "caught\nmine\n")


@pytest.mark.long
def test_signals_that_nobody_handles() -> None:
    assert run_script("fail(); os.kill(os.getpid(), signal.SIGURG); fail()")[:2] == (0, "caught\ncaught\n")
    assert run_script("fail(); os.kill(os.getpid(), signal.SIGBUS); fail()")[:2] == (-signal.SIGBUS, "caught\n")


def test_handlers_are_not_installed_twice(device: Device) -> None:
    from hip_runtime.drivers.cpu.execution.block_scheduler import block_scheduler

    found = block_scheduler().handlers
    assert isinstance(found, Handlers)
    counts = found.counts()
    found.install()
    assert found.counts() == counts
    assert all(count >= 1 for count in counts)
