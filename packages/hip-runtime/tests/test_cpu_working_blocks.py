"""Launches end with the last block that has a thread which does anything."""

from __future__ import annotations

import ctypes
import re
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.analyses.index_bounds import find_index_bounds
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.object_code.host_machine import target_machine
from hip_runtime.drivers.cpu.object_code.program import Program, ProgramWords, function_at

PARAMETERS = [("out", "ptr"), ("n", "i64"), ("m", "i64"), ("short", "i32")]
HEAD = "define void @k(ptr noalias %item, ptr %out, i64 %n, i64 %m, i32 %short) {\nentry:"
GLOBAL_Y = re.sub(r"%(\w+)", r"%\1.y", GLOBAL_X.replace(".x(", ".y(")).replace("%item.y", "%item").replace("%i.y", "%j")


def checked(checks: str) -> str:
    """Adds 1 to element i + 64 * j of *out*, in threads for which *checks* leave %on true."""
    return f"""{HEAD}
{GLOBAL_X}{GLOBAL_Y}{checks}
  br i1 %on, label %do, label %end
do:
  %row = mul i64 %j, 64
  %at = add i64 %row, %i
  %p = getelementptr i32, ptr %out, i64 %at
  %old = load i32, ptr %p
  %new = add i32 %old, 1
  store i32 %new, ptr %p
  br label %end
end:
  ret void
}}
"""


def count_blocks(program: Program, grid: tuple[int, int, int], arguments: bytes) -> int:
    """How many blocks of *grid* a launch of *program* has to run."""
    limit = ProgramWords.from_address(program.entry).limit
    layout = target_machine().target_data
    frame = ctypes.create_string_buffer(FRAME.type.get_abi_size(layout))
    packed = ctypes.create_string_buffer(arguments)

    def put(field: str, value: Any) -> None:
        at = FRAME.type.get_element_offset(layout, list(FRAME.fields).index(field))
        ctypes.memmove(ctypes.addressof(frame) + at, ctypes.byref(value), ctypes.sizeof(value))

    put("grid", (ctypes.c_int32 * 3)(*grid))
    put("arguments", ctypes.c_void_p(ctypes.addressof(packed)))
    put("program", ctypes.c_void_p(program.entry))
    return int(function_at(limit, ctypes.c_int64, ctypes.c_void_p)(ctypes.addressof(frame)))


LEAST = -(1 << 63)

CHECKS = {
    "below": ("%on = icmp slt i64 %i, %n", lambda i, j, n, m: i < n),
    "not beyond": ("%on = icmp sle i64 %i, %n", lambda i, j, n, m: i <= n),
    "mirrored": ("%on = icmp sgt i64 %n, %i", lambda i, j, n, m: i < n),
    "before the last": (
        "%l = add i64 %n, -1\n %a = icmp slt i64 %i, %l\n %b.on = icmp sgt i64 %i, 0\n %on = and i1 %a, %b.on",
        lambda i, j, n, m: (i > 0) & (i < (n - 1 if n > LEAST else -1 - LEAST)),
    ),
    "a constant": ("%on = icmp ult i64 %i, 21", lambda i, j, n, m: i < 21),
    "of 32 bits": ("%w = sext i32 %short to i64\n %on = icmp slt i64 %i, %w", lambda i, j, n, m: i < n),
    "both axes": (
        "%a = icmp slt i64 %i, %n\n %c = icmp slt i64 %j, %m\n %on = select i1 %a, i1 %c, i1 false",
        lambda i, j, n, m: (i < n) & (j < m),
    ),
    "along y": ("%on = icmp slt i64 %j, %m", lambda i, j, n, m: j < m),
    "either": (
        "%a = icmp slt i64 %i, %n\n %c = icmp slt i64 %j, %m\n %on = or i1 %a, %c",
        lambda i, j, n, m: (i < n) | (j < m),
    ),
    "from a number on": ("%on = icmp sge i64 %i, %n", lambda i, j, n, m: i >= n),
    "without a sign": ("%on = icmp ult i64 %i, %n", lambda i, j, n, m: (i < n) | (n < 0)),
}  # fmt: skip
"""How each computes %on, and for which threads that is true."""

UNLIMITED = {"either", "from a number on"}
"""Checks that may be true for any block."""


NUMBERS = [(0, 0), (1, 64), (17, 3), (63, 33), (64, 1), (200, 200), (-1, 9), (9, LEAST), (LEAST, 9)]


@pytest.mark.parametrize("form", ["auto", "loop", "regions"])
@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("block", [(16, 1), (4, 4), (5, 3)])
def test_blocks_run_up_to_the_last_with_work(device: Device, check: str, form: str, block: tuple[int, int]) -> None:
    text, passes = CHECKS[check]
    grid = 64 // block[0], 64 // block[1]
    i, j = np.meshgrid(*(np.arange(blocks * threads) for blocks, threads in zip(grid, block, strict=True)))
    with config.cpu_form.scope(form):
        function = device.load(code(checked(text), "k", PARAMETERS)).function("k")
        for n, m in NUMBERS:
            out = to_device(np.zeros((64, 64), np.int32))
            arguments = pack(function.kernel, out.address, n, m, max(n, -(1 << 31)))
            function.launch(grid, block, arguments)
            works = np.broadcast_to(passes(i, j, n, m), i.shape)
            found = out.copy_to_host()
            np.testing.assert_array_equal(found[: i.shape[0], : i.shape[1]], works)
            assert found.sum() == works.sum()
            (program,) = function.handle.workers.values()
            if check in UNLIMITED:
                assert not ProgramWords.from_address(program.entry).limit
            elif works.any():
                y, x = (indices // threads for indices, threads in zip(np.nonzero(works), block[::-1], strict=True))
                along_y = "along y" in program.reason
                numbers = x * grid[1] + y if along_y else y * grid[0] + x
                assert count_blocks(program, (*grid, 1), arguments) == numbers.max() + 1


def test_blocks_of_any_length(device: Device) -> None:
    """One program serves for several lengths, which its launches tell."""
    function = device.load(code(checked(CHECKS["below"][0]), "k", PARAMETERS)).function("k")
    for length in (32, 64, 48, 256):
        out = to_device(np.zeros((64, 64), np.int32))
        arguments = pack(function.kernel, out.address, 100, 0, 0)
        function.launch(4096 // length, length, arguments)
        np.testing.assert_array_equal(out.copy_to_host().ravel(), np.arange(4096) < 100)
        program = function.handle.workers[length, 1, 1]
        assert count_blocks(program, (4096 // length, 1, 1), arguments) == -(-100 // length)


@pytest.mark.parametrize("form", ["auto", "loop", "regions"])
def test_what_is_done_before_the_check_is_done_by_all(device: Device, form: str) -> None:
    before = "%seen = getelementptr i32, ptr %out, i64 64\n  %count = atomicrmw add ptr %seen, i32 1 monotonic\n"
    with config.cpu_form.scope(form):
        function = device.load(code(checked(before + CHECKS["below"][0]), "k", PARAMETERS)).function("k")
        out = to_device(np.zeros(4096, np.int32))
        function.launch(8, 64, pack(function.kernel, out.address, 7, 0, 0))
    np.testing.assert_array_equal(out.copy_to_host()[:65], [*[1] * 7, *[0] * 57, 512])
    (program,) = function.handle.workers.values()
    assert not ProgramWords.from_address(program.entry).limit


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("icmp slt i64 %g, %n", "slt"), ("icmp sgt i64 %n, %g", "slt"), ("icmp sge i64 %g, %n", None),
        ("icmp sle i64 %g, %n", "sle"), ("icmp ule i64 %g, 9", "ule"), ("icmp slt i64 %n, %g", None),
        ("icmp slt i64 %g, %loaded", None), ("icmp slt i64 %g, %quotient", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("expected", [True, False])
def test_bounds_of_indices(condition: str, found: str | None, expected: bool) -> None:
    """Where the condition has to fail, its opposite holds."""
    targets = "%on, label %off" if expected else "%off, label %on"
    text = f"""
declare i64 @spmd.global_idx.y(ptr)
define void @k(ptr %item, i64 %n, i64 %m, ptr %p) {{
entry:
  %g = call i64 @spmd.global_idx.y(ptr %item)
  %loaded = load i64, ptr %p
  %quotient = sdiv i64 %n, %m
  %c = {condition}
  br i1 %c, label {targets}
on:
  store i64 0, ptr %p
  ret void
off:
  ret void
}}
{DECLARATIONS}"""
    function = read_function(PrintedModule(llvm.parse_assembly(text)), "k", ir.Context())
    bounds = find_index_bounds(function, {"x": None, "y": 16})
    opposite = {"icmp sge i64 %g, %n": "slt", "icmp slt i64 %n, %g": "sle"}.get(condition)
    wanted = found if expected else opposite
    assert {axis: bound.predicate for axis, bound in bounds.items()} == ({"y": wanted} if wanted else {})
