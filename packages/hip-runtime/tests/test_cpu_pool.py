"""The pool of native threads: sizes of it, grids that are cheap or not, forks, and the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
import spmd_kernels

from hip_runtime import Device, Function, KernelFault, device_array, to_device
from hip_runtime.drivers.cpu.execution import block_scheduler
from hip_runtime.drivers.cpu.object_code import program

TESTS = Path(__file__).parent

PREAMBLE = """
import os, sys, threading, time
sys.path.insert(0, {tests!r})
import numpy as np, spmd_kernels
import hip_runtime as rt
device = rt.current_device()
def function(name):
    return device.load(spmd_kernels.sample(name)).function(name)
def sums(turns=40, n=1 << 14):
    saxpy = function("saxpy")
    x = rt.to_device(np.arange(n, dtype=np.float32) % 64)
    y = rt.to_device(np.zeros(n, np.float32))
    arguments = spmd_kernels.pack(saxpy.kernel, y.address, x.address, 1.0, n)
    for _ in range(turns):
        saxpy.launch(n // 32, 32, arguments)
    return bool((y.copy_to_host() == turns * (np.arange(n) % 64)).all())
"""


COUNT_TURNS = f"""
define void @k(ptr %item, ptr %out, i64 %turns) {{
entry:
  {spmd_kernels.GLOBAL_X}
  %p = getelementptr i64, ptr %out, i64 %i
  br label %head
head:
  %turn = phi i64 [ 0, %entry ], [ %next, %head ]
  %old = load volatile i64, ptr %p
  %new = add i64 %old, 1
  store volatile i64 %new, ptr %p
  %next = add i64 %turn, 1
  %more = icmp ult i64 %next, %turns
  br i1 %more, label %head, label %done
done:
  ret void
}}"""
"""Each thread adds 1 to its number as many times as it is told to."""


def load_count_turns(device: Device) -> Function:
    return device.load(spmd_kernels.code(COUNT_TURNS, "k", [("out", "ptr"), ("turns", "i64")])).function("k")


def run_script(text: str, *, threads: int | None = None) -> str:
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "PYTHONFAULTHANDLER": "1"}
    if threads is not None:
        environment["NUMBA_HIP_CPU_THREADS"] = str(threads)
    script = PREAMBLE.format(tests=str(TESTS)) + textwrap.dedent(text)
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", script],
        capture_output=True, text=True, timeout=60, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sample(1)
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
def test_any_number_of_threads(threads: int) -> None:
    out = run_script(
        """
        results = []
        workers = [threading.Thread(target=lambda: results.append(sums())) for _ in range(3)]
        [worker.start() for worker in workers]; [worker.join() for worker in workers]
        from hip_runtime.drivers.cpu.execution.block_scheduler import block_scheduler
        print(results, block_scheduler().helpers, device.attributes.compute_units)
        """,
        threads=threads,
    )
    assert out.split("] ") == ["[True, True, True", f"{threads - 1} {threads}\n"]


def test_all_cores_work_at_once() -> None:
    """Blocks that wait for each other to begin: this ends only if each is run by another thread. The launching thread
    wakes two helpers, and these the third, at each launch."""
    out = run_script(
        '''
        text = """
        define void @meet(ptr %item, ptr %seen) {
          %old = atomicrmw add ptr %seen, i64 1 monotonic
          br label %head
        head:
          %v = load atomic i64, ptr %seen monotonic, align 8
          %all = icmp uge i64 %v, 4
          br i1 %all, label %done, label %head
        done:
          ret void
        }"""
        code = spmd_kernels.code(text, "meet", [("seen", "ptr")])
        for _ in range(3):
            meet = device.load(code).function("meet")  # a program that never ran asks for help at once
            seen = rt.to_device(np.zeros(1, np.int64))
            meet.launch(4, 1, spmd_kernels.pack(meet.kernel, seen.address))
            print(seen.copy_to_host()[0])
        ''',
        threads=4,
    )
    assert out == "4\n" * 3


def test_a_launch_waits_for_the_block_of_a_helper() -> None:
    """Two blocks meet, and one of them then takes far longer than a thread spins: that of the helper, in one launch of
    two or so."""
    out = run_script(
        '''
        text = """
        define void @last(ptr %item, ptr %seen, i32 %slow, i32 %turns) {
          %old = atomicrmw add ptr %seen, i32 1 monotonic
          br label %head
        head:
          %v = load atomic i32, ptr %seen monotonic, align 4
          %both = icmp uge i32 %v, 2
          br i1 %both, label %met, label %head
        met:
          %mine = call i32 @spmd.block_idx.x(ptr %item)
          %fast = icmp ne i32 %mine, %slow
          br i1 %fast, label %done, label %work
        work:
          %turn = phi i32 [ 0, %met ], [ %next, %work ]
          %spent = load volatile i32, ptr %seen
          %next = add i32 %turn, 1
          %more = icmp ult i32 %next, %turns
          br i1 %more, label %work, label %done
        done:
          %end = atomicrmw add ptr %seen, i32 1 monotonic
          ret void
        }"""
        parameters = [("seen", "ptr"), ("slow", "i32"), ("turns", "i32")]
        code = spmd_kernels.code(text, "last", parameters)
        seen = np.zeros(1, np.int32)
        found = []
        for number in range(4):
            seen[0] = 0
            last = device.load(code).function("last")  # a program that never ran asks for help at once
            last.launch(2, 1, spmd_kernels.pack(last.kernel, seen.ctypes.data, number % 2, 3_000_000))
            found.append(int(seen[0]))
        print(found)
        ''',
        threads=2,
    )
    assert out == f"{[4] * 4}\n"


@pytest.mark.parametrize(
    ("mask", "which", "least", "starts"), [(31, 0, 2, "[0, 1]"), (63, 32, 64, None)], ids=["own ranges", "help"]
)
def test_two_threads_have_ranges_of_blocks_and_help_with_others(
    mask: int, which: int, least: int, starts: str | None
) -> None:
    """Each thread has 32 of 64 blocks. Where the first ones of both ranges end once both have begun, no other block
    begins before them. Where the first one of the helper ends once all blocks have begun, the launching thread runs the
    rest of that range."""
    out = run_script(
        f'''
        text = """
        define void @wait(ptr %item, ptr %count, ptr %order, i32 %which, i32 %least) {{
          %block = call i32 @spmd.block_idx.x(ptr %item)
          %mine = atomicrmw add ptr %count, i32 1 monotonic
          %place = getelementptr i32, ptr %order, i32 %block
          store i32 %mine, ptr %place
          %other = and i32 %block, {mask}
          %waits = icmp eq i32 %other, %which
          br i1 %waits, label %head, label %done
        head:
          %v = load atomic i32, ptr %count monotonic, align 4
          %enough = icmp uge i32 %v, %least
          br i1 %enough, label %done, label %head
        done:
          ret void
        }}"""
        parameters = [("count", "ptr"), ("order", "ptr"), ("which", "i32"), ("least", "i32")]
        code = spmd_kernels.code(text, "wait", parameters)
        count, order = np.zeros(1, np.int32), np.zeros(64, np.int32)
        wait = device.load(code).function("wait")  # a program that never ran asks for help at once, for single blocks
        wait.launch(64, 1, spmd_kernels.pack(wait.kernel, count.ctypes.data, order.ctypes.data, {which}, {least}))
        print(sorted(order.tolist()) == list(range(64)), sorted(order[[0, 32]].tolist()))
        ''',
        threads=2,
    )
    assert out.startswith("True")
    if starts is not None:
        assert out == f"True {starts}\n"


def test_fork_before_and_after_the_pool_started() -> None:
    out = run_script(
        """
        def child():
            sys.stdout.flush()
            pid = os.fork()
            if pid == 0:
                stream = rt.Stream()
                stream.add_callback(lambda error: print("child", sums(5), flush=True))
                stream.synchronize()
                inherited.add_callback(lambda error: print("inherited", sums(5), flush=True))
                inherited.synchronize()
                os._exit(0)
            print("parent", sums(5), os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        inherited = rt.Stream()
        child()
        print(sums())
        inherited.add_callback(lambda error: time.sleep(0.2))  # the child does not wait for the parent's work
        child()
        """,
        threads=3,
    )
    lines = sorted(out.splitlines())
    assert lines == ["True", *["child True"] * 2, *["inherited True"] * 2, *["parent True 0"] * 2]


def test_fork_under_load() -> None:
    """The child forgets the frames and threads of launches that were under way in the parent."""
    out = run_script(
        """
        stop = False
        def load():
            while not stop:
                sums(5)
        sums(1)
        workers = [threading.Thread(target=load) for _ in range(2)]
        [worker.start() for worker in workers]
        saxpy = function("saxpy")
        n = 1 << 12
        x, y = rt.to_device(np.ones(n, np.float32)), rt.to_device(np.zeros(n, np.float32))
        arguments = spmd_kernels.pack(saxpy.kernel, y.address, x.address, 1.0, n)
        saxpy.launch(n // 16, 16, arguments)
        codes = []
        for _ in range(5):
            pid = os.fork()
            if pid == 0:
                for _ in range(20):
                    saxpy.launch(n // 16, 16, arguments)
                os._exit(0 if (y.copy_to_host() == 21).all() else 1)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stop = True
        [worker.join() for worker in workers]
        print(codes)
        """,
        threads=3,
    )
    assert out == "[0, 0, 0, 0, 0]\n"


def test_fork_while_a_graph_runs() -> None:
    """The child does not wait for the launch of the parent's thread, of which it has a copy of the lock."""
    out = run_script(
        """
        spin = function("spin")
        place = rt.to_device(np.zeros(1, np.int64))
        stream = rt.Stream()
        with stream.capture() as graph:
            spin.launch(1, 1, spmd_kernels.pack(spin.kernel, place.address, 100_000_000), stream=stream, owners=place)
        executable = graph.instantiate()
        executable.launch(stream)
        while not executable._handle.lock.locked():
            time.sleep(0.001)
        pid = os.fork()
        if pid == 0:
            executable.launch(stream)
            stream.synchronize()
            os._exit(0 if place.copy_to_host()[0] >= 100_000_000 else 1)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stream.synchronize()
        print(place.copy_to_host()[0])
        """
    )
    assert out == "0\n100000000\n"


def test_process_ends_with_work_under_way() -> None:
    out = run_script(
        """
        spin = function("spin")
        place = rt.to_device(np.zeros(1, np.int64))
        stream = rt.Stream()
        for _ in range(50):
            spin.launch(1, 1, spmd_kernels.pack(spin.kernel, place.address, 20_000_000), stream=stream, owners=place)
        print("end")
        """
    )
    assert out == "end\n"


def test_cheap_grid_that_becomes_expensive_gets_help(device: Device) -> None:
    """The price of a block is learnt, then changes by a factor of 100000 and back; each thread still runs once."""
    function = load_count_turns(device)
    for blocks in (2, 3, 5, 16, 33):
        out = to_device(np.zeros(blocks, np.int64))
        total = 0
        for turns in (1, 1, 1, 100_000, 1, 100_000, 1, 1):
            function.launch(blocks, 1, spmd_kernels.pack(function.kernel, out.address, turns))
            total += turns
        assert out.copy_to_host().tolist() == [total] * blocks


def test_time_of_a_block_is_learnt(device: Device) -> None:
    """Whatever a block is said to have taken, each thread runs once, and then it is known what a block took: a turn is
    no shorter than half a cycle of 5 GHz, and no block takes longer than the launch."""
    function = load_count_turns(device)
    words = program.ProgramWords.from_address(function.handle.worker((1, 1, 1)).entry)
    learnt = 0
    for cost in (-1.0, 0.0, 1e-300, 0.5, 1e3, 1e9, 1e300):
        for turns, blocks in ((100, 2), (100, 41), (50_000, 41)):
            out = to_device(np.zeros(blocks, np.int64))
            arguments = spmd_kernels.pack(function.kernel, out.address, turns)
            words.cost = cost
            started = time.perf_counter_ns()
            function.launch(blocks, 1, arguments)
            elapsed = time.perf_counter_ns() - started
            if words.cost != cost:  # helpers may take all blocks while the launching thread has to wait for a processor
                learnt += 1
                assert turns / 10 <= words.cost <= elapsed
            assert out.copy_to_host().tolist() == [turns] * blocks
    assert learnt, "of 21 launches, on a machine however busy"


def test_first_fault_of_many_is_a_consistent_one(device: Device) -> None:
    text = """
    define void @k(ptr %item) {
      %b = call i32 @spmd.block_idx.x(ptr %item)
      %t = call i32 @spmd.thread_idx.y(ptr %item)
      %m = mul i32 %b, 100
      %code = add i32 %m, %t
      call void @spmd.fault(ptr %item, i32 %code)
      ret void
    }"""
    function = device.load(spmd_kernels.code(text, "k", [])).function("k")
    for _ in range(50):
        with pytest.raises(KernelFault) as caught:
            function.launch(64, (1, 8), b"")
        fault = caught.value
        assert fault.code == 100 * fault.block[0] + fault.thread[1]
        assert fault.thread[0] == fault.thread[2] == fault.block[1] == 0


def test_many_launches_leave_nothing_behind(device: Device) -> None:
    counter = device_array(1, np.int64)
    counter[0] = 0
    function = device.load(spmd_kernels.sample("count")).function("count")
    launch = function.configure(7, 3)
    arguments = spmd_kernels.pack(function.kernel, counter.address)
    threads = len(os.listdir("/proc/self/task"))
    for _ in range(20_000):
        launch(arguments)
    assert counter[0] == 20_000 * 21
    assert len(os.listdir("/proc/self/task")) <= threads + os.cpu_count()


def test_launches_leave_the_board_in_any_order() -> None:
    """With one helper, which is kept busy at the first place: launches leave places behind it, others come to these,
    and the helper then helps at one place after another."""
    out = run_script(
        '''
        text = """
        define void @k(ptr %item, ptr %arrived, ptr %gate) {
        entry:
          %old = atomicrmw add ptr %arrived, i32 1 seq_cst
          br label %head
        head:
          %open = load volatile i32, ptr %gate
          %shut = icmp eq i32 %open, 0
          br i1 %shut, label %head, label %done
        done:
          ret void
        }"""
        code = spmd_kernels.code(text, "k", [("arrived", "ptr"), ("gate", "ptr")])
        cells = np.zeros((8, 2), np.int32)
        launched = []
        def wait(number, count):
            until = time.monotonic() + 40
            while cells[number, 0] < count:
                assert time.monotonic() < until, (number, cells)
                time.sleep(0.001)
        def launch(number, expected):
            address = cells.ctypes.data + 8 * number
            function = device.load(code).function("k")  # a program that never ran asks for help at once
            arguments = spmd_kernels.pack(function.kernel, address, address + 4)
            launched.append(threading.Thread(target=function.launch, args=(2, 1, arguments)))
            launched[-1].start()
            wait(number, expected)
        def release(number):
            cells[number, 1] = 1
            launched[number].join(40)
            assert not launched[number].is_alive() and cells[number, 0] == 2
        launch(0, 2)
        for number in (1, 2, 3):
            launch(number, 1)
        release(2); release(3)
        launch(4, 1)
        release(1)
        launch(5, 1)
        cells[0, 1] = 1
        wait(5, 2)
        assert cells[4, 0] == 1
        launch(6, 1)  # where the first one was, so the fourth comes before it
        release(5)
        wait(4, 2)
        launch(7, 1)  # where the fifth was: behind the sixth
        assert cells[6, 0] == 1
        release(4)
        wait(6, 2)
        assert cells[7, 0] == 1
        release(6)
        wait(7, 2)
        release(7); release(0)
        print(sums(), cells[:, 0].tolist())
        ''',
        threads=2,
    )
    assert out == "True [2, 2, 2, 2, 2, 2, 2, 2]\n"


def test_helpers_want_more_tickets_than_there_are() -> None:
    out = run_script(
        f"""
        code = spmd_kernels.code({COUNT_TURNS!r}, "k", [("out", "ptr"), ("turns", "i64")])
        function = device.load(code).function("k")
        out = rt.to_device(np.zeros(96, np.int64))
        arguments = spmd_kernels.pack(function.kernel, out.address, 400)
        for _ in range(5000):
            function.launch(3, 32, arguments)
        print(set(out.copy_to_host().tolist()))
        """,
        threads=8,
    )
    assert out == "{2000000}\n"


def test_more_threads_launch_than_the_board_has_places_for() -> None:
    """Those that find no place run all of their blocks themselves."""
    out = run_script(
        """
        results = []
        threads = [threading.Thread(target=lambda: results.append(sums(200))) for _ in range(20)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        print(len(results), all(results))
        """,
        threads=3,
    )
    assert out == "20 True\n"


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ((), TypeError),
        ((0, b"", 1, 1), TypeError),
        ((0, "text", 1, 1, 1), TypeError),
        ((0, b"", 1, 1.5, 1), TypeError),
        ((0, b"", 1, 1, 2**70), OverflowError),
        (("program", b"", 1, 1, 1), TypeError),
    ],
)
def test_what_the_native_launch_cannot_take_is_an_error(given: tuple[object, ...], error: type[Exception]) -> None:
    with pytest.raises(error):
        block_scheduler.block_scheduler().call(*given)
