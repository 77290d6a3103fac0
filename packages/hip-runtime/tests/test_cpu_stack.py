"""The stack memory of kernels on the CPU device."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_blocks import kernel, launch

from hip_runtime import Device, UnsupportedError, config, to_device
from hip_runtime.drivers.cpu.analyses.stack_usage import stack_bytes
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine

RECURSIVE = """
declare i1 @spmd.stack_is_low(ptr)
define internal i32 @down(ptr %item, i32 %n) {
  %low = call i1 @spmd.stack_is_low(ptr %item)
  br i1 %low, label %stop, label %go
go:
  %end = icmp eq i32 %n, 0
  br i1 %end, label %done, label %more
more:
  %less = sub i32 %n, 1
  %rest = call i32 @down(ptr %item, i32 %less)
  %bad = icmp slt i32 %rest, 0
  %one = add i32 %rest, 1
  %result = select i1 %bad, i32 -1, i32 %one
  ret i32 %result
done:
  ret i32 0
stop:
  ret i32 -1
}
"""


@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
@pytest.mark.sample(2)
@pytest.mark.usefixtures("kept_programs")
def test_functions_learn_that_little_is_left(device: Device, form: str) -> None:
    body = """
  %r = call i32 @down(ptr %item, i32 %n)
  %p = getelementptr i32, ptr %out, i32 %i
  store i32 %r, ptr %p
  ret void
"""
    code = kernel(body, [("n", "i32"), ("out", "ptr")], RECURSIVE)
    with config.cpu_form.scope(form):
        for depth, expected in ((0, 0), (1000, 1000), (2**31 - 1, -1), (7, 7)):
            out = to_device(np.full(8, -5, np.int32))
            launch(device, code, 2, 4, depth, out.address)
            np.testing.assert_array_equal(out.copy_to_host(), np.full(8, expected))


def test_bytes_of_the_stack() -> None:
    text = """
%pair = type { i8, i64 }
define void @f(i32 %n) {
  %a = alloca [100 x double], align 8
  %b = alloca %pair
  %c = alloca i16, i32 7, align 64
  %d = alloca i32, i32 %n
  store i32 0, ptr %d
  ret void
}
define void @" alloca "() {
  %e = alloca <3 x float>, align 4
  ret void
}
declare void @g()
"""
    module = llvm.parse_assembly(text, llvm.create_context())
    layout = target_machine().target_data
    assert stack_bytes(module, layout, excluding="f") == 16
    assert stack_bytes(module, layout, excluding=" alloca ") == 800 + 16 + 14
    assert stack_bytes(module, layout) == 800 + 16 + 14 + 16


def test_functions_with_too_much_memory_of_their_own(device: Device) -> None:
    """In a kernel that is cut, what is not part of it cannot have its memory elsewhere."""
    functions = """
define internal i32 @big(i32 %n) noinline {
  %a = alloca [2000000 x i32]
  %p = getelementptr i32, ptr %a, i32 %n
  store volatile i32 %n, ptr %p
  %v = load volatile i32, ptr %p
  ret i32 %v
}
"""
    body = "  %v = call i32 @big(i32 %t)\n call void @spmd.barrier(ptr %item)\n store i32 %v, ptr %out\n ret void\n"
    code = kernel(body, [("out", "ptr")], functions)
    with pytest.raises(UnsupportedError, match="whose private arrays have 8000000 bytes; the stack"):
        launch(device, code, 1, 4, 0)


@pytest.mark.parametrize("form", ["loop", "regions", "vectors"])
@pytest.mark.sample(2)
def test_private_structures_with_a_name(device: Device, form: str) -> None:
    """As compilers of C make them."""
    functions = """
%pair = type { i64, i32 }
define internal void @clear(ptr %p) noinline {
  store volatile %pair zeroinitializer, ptr %p
  ret void
}
"""
    body = """
  %a = alloca %pair
  call void @clear(ptr %a)
  %second = getelementptr %pair, ptr %a, i32 0, i32 1
  %seven = mul i32 %t, 7
  store volatile i32 %seven, ptr %second
  call void @wait(ptr %item)
  %v = load volatile i32, ptr %second
  %p = getelementptr i32, ptr %out, i32 %i
  store i32 %v, ptr %p
  ret void
"""
    waits = "define internal void @wait(ptr %item) {\n call void @spmd.barrier(ptr %item)\n ret void\n}\n"
    passes = "define internal void @wait(ptr %item) {\n ret void\n}\n"
    for wait in (passes,) if form == "loop" else (waits, passes):
        out = to_device(np.zeros(8, np.int32))
        with config.cpu_form.scope(form):
            launch(device, kernel(body, [("out", "ptr")], functions + wait), 2, 4, out.address)
        np.testing.assert_array_equal(out.copy_to_host(), [0, 7, 14, 21] * 2)


HUGE = {
    "[8589934592 x i8]": 1 << 33,
    "[9223372036854775808 x i8]": 1 << 63,
    "[1099511627776 x [1099511627776 x i64]]": 1 << 83,
    "{ i8, [1152921504606846976 x { i64, i64 }] }": 1 << 64,
    "i64, i64 4611686018427387904": 1 << 65,
}
"""Types of private memory, and at least how many bytes each has."""


@pytest.mark.parametrize("kind", HUGE)
@pytest.mark.parametrize("form", ["auto", "loop"])
@pytest.mark.sample(5)
def test_more_private_memory_than_there_can_be(device: Device, kind: str, form: str) -> None:
    """Also where LLVM, which reckons in 64 bits, takes it for little."""
    body = f"""
  %own = alloca {kind}
  %p = getelementptr i32, ptr %own, i32 %i
  store i32 %i, ptr %p
  call void @use(ptr %own)
  ret void
"""
    code = kernel(body, [], "define void @use(ptr %p) noinline {\n  store volatile i8 1, ptr %p\n  ret void\n}\n")
    with config.cpu_form.scope(form), pytest.raises(UnsupportedError, match="at most 1073741824") as caught:
        launch(device, code, 1, 4)
    assert int(str(caught.value).partition(" arrays of ")[2].partition(" ")[0]) >= HUGE[kind]
