"""No lane of a gather's addresses is undefined when code is generated, and defined lanes keep their values."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import llvmlite.binding as llvm
import numpy as np
import pytest

from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code import host_machine
from hip_runtime.drivers.cpu.passes.gather_workaround import define_gather_lanes

MODULE = """declare <4 x i64> @llvm.masked.gather.v4i64.v4p0(<4 x ptr>, <4 x i1>, <4 x i64>)
declare <4 x i64> @llvm.masked.load.v4i64.p0(ptr, <4 x i1>, <4 x i64>)
declare <4 x i64> @llvm.umin.v4i64(<4 x i64>, <4 x i64>)

define void @f(ptr %out, ptr %in, ptr %n, ptr %known) {{
entry:
  %by = load i64, ptr %n, align 8
  %steps = load <4 x i64>, ptr %known, align 8
  %first = insertelement <4 x i64> poison, i64 %by, i64 0
  %all = shufflevector <4 x i64> %first, <4 x i64> poison, <4 x i32> zeroinitializer
  %more = icmp ne i64 %by, 0
  br i1 %more, label %other, label %next

other:                                            ; preds = %entry
  br label %next

next:                                             ; preds = %other, %entry
  {lines}
  %addresses = getelementptr i64, ptr %in, <4 x i64> %places
  %bytes = getelementptr i8, <4 x ptr> %addresses, i64 16
  %found = tail call <4 x i64> @llvm.masked.gather.v4i64.v4p0(<4 x ptr> align 8 %bytes, <4 x i1> <{mask}>, <4 x i64> undef)
  store <4 x i64> %found, ptr %out, align 8
  ret void
}}
"""  # noqa: E501

MASK = "i1 true, i1 true, i1 false, i1 false"

CASES = {
    "constant": (
        ["%places = add nuw <4 x i64> %all, <i64 0, i64 1, i64 poison, i64 undef>"],
        ["%places = add nuw <4 x i64> %all, <i64 0, i64 1, i64 0, i64 0>"],
        [5, 6],
    ),
    "lanes that stay where they are": (
        [
            "%places = shufflevector <4 x i64> %steps, <4 x i64> poison, "
            "<4 x i32> <i32 0, i32 1, i32 poison, i32 poison>"
        ],
        ["%places = shufflevector <4 x i64> %steps, <4 x i64> poison, <4 x i32> <i32 0, i32 1, i32 2, i32 3>"],
        [1, 2],
    ),
    "one number for all lanes": (
        [
            "%places = shufflevector <4 x i64> %first, <4 x i64> poison, "
            "<4 x i32> <i32 0, i32 0, i32 poison, i32 poison>"
        ],
        ["%places = shufflevector <4 x i64> %first, <4 x i64> poison, <4 x i32> <i32 0, i32 0, i32 0, i32 0>"],
        [5, 5],
    ),
    "lanes of two": (
        [
            "%places = shufflevector <4 x i64> %steps, <4 x i64> <i64 undef, i64 9, i64 poison, i64 poison>, "
            "<4 x i32> <i32 0, i32 5, i32 6, i32 2>"
        ],
        [
            "%places = shufflevector <4 x i64> %steps, <4 x i64> <i64 undef, i64 9, i64 0, i64 poison>, "
            "<4 x i32> <i32 0, i32 5, i32 6, i32 2>"
        ],
        [1, 9],
    ),
    "inserted": (
        [
            "%one = insertelement <4 x i64> poison, i64 %by, i64 0",
            "%places = insertelement <4 x i64> %one, i64 7, i64 1, !note !0",
        ],
        [
            "%one = insertelement <4 x i64> zeroinitializer, i64 %by, i64 0",
            "%places = insertelement <4 x i64> %one, i64 7, i64 1, !note !0",
        ],
        [5, 7],
    ),
    "of two blocks": (
        [
            "%way = phi <4 x i64> [ <i64 2, i64 3, i64 poison, i64 poison>, %entry ], [ %steps, %other ]",
            "%places = select i1 %more, <4 x i64> %way, <4 x i64> poison",
        ],
        [
            "%way = phi <4 x i64> [ <i64 2, i64 3, i64 0, i64 0>, %entry ], [ %steps, %other ]",
            "%places = select i1 %more, <4 x i64> %way, <4 x i64> poison",
        ],
        [1, 2],
    ),
    "of narrower numbers": (
        [
            "%narrow = bitcast <4 x i64> <i64 4, i64 2, i64 poison, i64 poison> to <8 x i32>",
            "%low = shufflevector <8 x i32> %narrow, <8 x i32> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>",
            "%places = zext nneg <4 x i32> %low to <4 x i64>",
        ],
        [
            "%narrow = bitcast <4 x i64> <i64 4, i64 2, i64 0, i64 0> to <8 x i32>",
            "%low = shufflevector <8 x i32> %narrow, <8 x i32> poison, <4 x i32> <i32 0, i32 2, i32 4, i32 6>",
            "%places = zext nneg <4 x i32> %low to <4 x i64>",
        ],
        [4, 2],
    ),
    "of calls": (
        [
            f"%read = call <4 x i64> @llvm.masked.load.v4i64.p0(ptr align 8 %known, <4 x i1> <{MASK}>, "
            "<4 x i64> poison)",
            "%places = call <4 x i64> @llvm.umin.v4i64(<4 x i64> %read, <4 x i64> <i64 9, i64 0, i64 poison, i64 9>)",
        ],
        [
            f"%read = call <4 x i64> @llvm.masked.load.v4i64.p0(ptr align 8 %known, <4 x i1> <{MASK}>, "
            "<4 x i64> zeroinitializer)",
            "%places = call <4 x i64> @llvm.umin.v4i64(<4 x i64> %read, <4 x i64> <i64 9, i64 0, i64 0, i64 9>)",
        ],
        [1, 0],
    ),
    "nothing to do": (["%places = add <4 x i64> %all, <i64 3, i64 4, i64 0, i64 0>"], None, [8, 9]),
}


@pytest.fixture
def scratch() -> Iterator[LlvmContext]:
    with LlvmContext() as found:
        yield found


def printed(scratch: LlvmContext, lines: list[str]) -> str:
    """The module with *lines*, as LLVM prints it."""
    text = MODULE.format(lines="\n  ".join(lines), mask=MASK)
    if llvm.llvm_version_info[0] < 22:  # where the alignment of a masked access is an operand
        for address in ("<4 x ptr>", "ptr"):
            text = text.replace(f"({address}, <4 x i1>", f"({address}, i32, <4 x i1>")
        for operand in ("%bytes", "%known"):
            text = text.replace(f"align 8 {operand}, <4", f"{operand}, i32 8, <4")
    module = scratch.read_text(f"{text}\n!0 = !{{}}\n" if "!note" in text else text)
    module.verify()
    return str(module)


@pytest.mark.parametrize("case", CASES)
def test_lanes_of_addresses_are_numbers(scratch: LlvmContext, case: str) -> None:
    lines, changed, found = CASES[case]
    text = printed(scratch, lines)
    defined = define_gather_lanes(text)
    if changed is None:
        assert defined is text
    else:
        assert str(scratch.read_text(defined)) == printed(scratch, changed)
    assert run(scratch, defined, 5)[:2] == [100 + 2 + place for place in found]


def run(scratch: LlvmContext, text: str, by: int) -> list[int]:
    """What ``f`` of the module *text* gathers of 100, 101, and so on."""
    machine = host_machine.target_machine.__wrapped__()
    module = scratch.read_text(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    arrays = np.zeros(4, np.int64), np.arange(100, 116), np.array([by]), np.array([1, 2, 3, 4])
    with llvm.create_mcjit_compiler(module, machine) as engine:
        engine.finalize_object()
        function = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 4)(engine.get_function_address("f"))
        function(*(array.ctypes.data for array in arrays))
    return [int(number) for number in arrays[0]]


def test_other_code_stays_as_it_is() -> None:
    text = "declare <4 x i64> @llvm.masked.gather.v4i64.v4p0(<4 x ptr>, <4 x i1>, <4 x i64>)\n"
    assert define_gather_lanes(text) is text
    text = "define <4 x i64> @f() {\n  ret <4 x i64> <i64 0, i64 poison, i64 0, i64 0>\n}\n"
    assert define_gather_lanes(text) is text
