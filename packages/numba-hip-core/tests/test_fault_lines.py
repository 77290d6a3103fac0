"""Kernels that the processor cannot go on with, or that do not go on: the report names the very line."""

import inspect
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from llvmlite import binding as llvm
from llvmlite import ir
from numba import types

import numba_hip as hip
from hip_runtime import config as runtime_config
from hip_runtime.drivers.cpu.strategies import selection
from hip_runtime.errors import MemoryFaultError, StackOverflowError, TrapError, UnsupportedError
from numba_hip.dispatch.overloads import Overloads
from numba_hip.extending import intrinsic

pytestmark = pytest.mark.cpu_device("a GPU does not tell the line of a fault")

BLOCK = 64
FAR = 1 << 40


@intrinsic
def stop(typingctx):
    """End the kernel, as what cannot be reached does."""

    def lower(context, builder, sig, args):
        builder.call(builder.module.declare_intrinsic("llvm.trap", (), ir.FunctionType(ir.VoidType(), [])), [])
        return context.get_dummy_value()

    return types.none(), lower


@intrinsic
def take_stack(typingctx, count, place):
    """The sum of two bytes of *count* more on the stack, which nobody asks whether there are as many."""

    def lower(context, builder, sig, args):
        count, place = args
        taken = builder.alloca(ir.IntType(8), count)
        builder.store(ir.IntType(8)(1), builder.gep(taken, [place], source_etype=ir.IntType(8)))
        builder.store(ir.IntType(8)(2), builder.gep(taken, [ir.IntType(64)(0)], source_etype=ir.IntType(8)))
        last = builder.gep(taken, [builder.sub(count, ir.IntType(64)(1))], source_etype=ir.IntType(8))
        return builder.zext(builder.load(last, typ=ir.IntType(8)), ir.IntType(64))

    return types.int64(types.int64, types.int64), lower


@hip.jit(device=True)
def write_far(a, i):
    a[i] = 1.0
    a[i + FAR] = 2.0


def outside(a, b, n):
    i = hip.grid(1)
    if i < n:
        total = b[i]
        for q in range(3):
            total += b[(i * q) % n]
        a[i + FAR] = total  # here
        a[i] = 1.0


def outside_behind_a_barrier(a, b, n):
    s = hip.shared.array(BLOCK, types.float64)
    i = hip.threadIdx.x
    s[i] = b[i]
    hip.syncthreads()
    a[i] = s[BLOCK - 1 - i] + b[(i * i) % n]
    hip.syncthreads()
    a[i] += b[i + n * FAR]  # here


def outside_in_a_function(a, b, n):
    a[hip.threadIdx.x] = 2.0
    write_far(a, hip.threadIdx.x)  # here


def trapped(a, b, n):
    i = hip.threadIdx.x
    a[i] = b[i]
    if b[i] == n - BLOCK + 1.0:
        stop()  # here
    a[i] = 2.0


def line_of(function):
    """The file and the line of *function* that is marked, as a report names them."""
    lines, first = inspect.getsourcelines(function)
    (found,) = (first + number for number, line in enumerate(lines) if line.rstrip().endswith("# here"))
    return f"{__file__}:{found}"


def report_of(kernel, kind, block=BLOCK):
    with pytest.raises(kind) as caught:
        kernel[2, block](np.zeros(BLOCK), np.ones(BLOCK), BLOCK)
    return str(caught.value)


@pytest.mark.parametrize(
    ("function", "form", "kind"),
    [
        (outside, "vectors", MemoryFaultError),
        (outside, "loop", MemoryFaultError),
        (outside, "regions", MemoryFaultError),
        (outside_behind_a_barrier, "auto", MemoryFaultError),
        (outside_in_a_function, "auto", MemoryFaultError),
        (trapped, "auto", TrapError),
    ],
)
@pytest.mark.sample(2)
def test_line_of_a_fault(function, form, kind):
    with runtime_config.cpu_form.scope(form):
        assert f"({line_of(function)} in {function.__name__})" in report_of(hip.jit(function), kind)


@pytest.mark.parametrize("block", [1, 3])
def test_line_in_a_block_of_few_threads(block):
    kernel = hip.jit(lineinfo=True)(outside)
    assert f"({line_of(outside)} in outside)" in report_of(kernel, MemoryFaultError, block)


def test_line_in_code_that_cannot_be_read(monkeypatch):
    def refuse(*arguments, **options):
        raise UnsupportedError("cannot run it")

    monkeypatch.setattr(selection, "plan_loop", refuse)
    with runtime_config.cpu_form.scope("loop"):
        assert f"({line_of(outside)} in outside)" in report_of(hip.jit(outside), MemoryFaultError)


STACK_SLOTS = (1000, 1530, 2048, 3000, 4000)
"""Bytes, written at their far end and in the middle: the first write beyond the stack is at its pointer or above."""


def used_up(out, count, rounds):
    total = 0
    for q in range(rounds):
        total += take_stack(count, count - 1 - (q & 1) * count // 2)  # here
    out[0] = total


def test_line_of_a_stack_overflow():
    """In a thread with little of it, so that what is beyond is found soon."""
    kernel, out, found = hip.jit(used_up), np.zeros(1, np.int64), []

    def launch():
        kernel[1, 1](out, 2048, 8)
        for size in STACK_SLOTS:
            try:
                kernel[1, 1](np.zeros(1, np.int64), size, 1 << 20)
            except StackOverflowError as error:
                found.append(str(error))
        kernel[1, 1](out, 1024, 4)

    size = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=launch)
        thread.start()
    finally:
        threading.stack_size(size)
    thread.join()
    assert len(found) == len(STACK_SLOTS)
    lines = {line_of(used_up)}
    if llvm.llvm_version_info[0] < 22:  # where the stack grows may have no line but the function's
        lines.add(f"{__file__}:{used_up.__code__.co_firstlineno}")
    for text in found:
        assert any(f"({line} in used_up)" in text for line in lines)
        assert "the stack of the processor has no room for its private arrays and calls" in text


def test_line_in_lock_step():
    with runtime_config.cpu_lockstep.scope(True):
        assert line_of(outside) in report_of(hip.jit(outside), MemoryFaultError)


def test_kernel_that_has_lines(monkeypatch):
    kernel = hip.jit(lineinfo=True)(outside)
    monkeypatch.delattr(Overloads, "_compile_with_lines")
    kernel._compile_with_lines = pytest.fail  # nothing is compiled again
    assert line_of(outside) in report_of(kernel, MemoryFaultError)


def test_kernel_that_has_changed():
    """Machine code that is not the same says nothing about this one: the line of the kernel is what is left."""
    step = 1

    def kernel(a, b, n):
        for i in range(0, n, step):
            a[i + FAR] = b[i]

    compiled = hip.jit(kernel)
    compiled[1, 1](np.zeros(1), np.ones(1), 0)
    step = 3
    assert f"({__file__}:{kernel.__code__.co_firstlineno} in kernel)" in report_of(compiled, MemoryFaultError)


@pytest.mark.long
def test_lines_of_a_kernel_that_does_not_go_on(tmp_path):
    script = tmp_path / "waits.py"
    script.write_text(
        textwrap.dedent(
            """
            import warnings
            import numpy as np
            from numba import hip
            from hip_runtime.errors import StalledKernelWarning

            @hip.jit
            def waits(flag, out):
                out[1] = 1
                while flag[0] == 0:  # line 10
                    out[0] = 2  # line 11
                out[2] = 3

            @hip.jit
            def meets(flag, out):
                if hip.threadIdx.x % 5 != 2:
                    while hip.atomic.add(flag, 0, 0) == 0:
                        pass
                hip.syncthreads()  # line 19
                flag[0] = 1

            warnings.simplefilter("error", StalledKernelWarning)
            flag = hip.to_device(np.zeros(1, np.int32))
            for kernel, shape in ((waits, (1, 1)), (meets, (2, 10))):
                try:
                    kernel[shape](flag, np.zeros(3))
                except StalledKernelWarning as warning:
                    print(warning)
            """
        )
    )
    environment = {**os.environ, "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_CPU_STALL_SECONDS": "1"}
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    alone, together = done.stdout.splitlines()
    named = alone.partition(f"({script}:")[2].partition(" in waits)")[0]
    assert named
    assert " spin; " not in alone
    assert "(block 0: threads 0 to 1, 3 to 6, 8 to 9 spin; " in together
    assert f"; threads 2, 7 wait for the block at {script}:19 in meets)" in together
    assert {int(line) for line in named.split(", ")} <= {10, 11}, done.stdout
