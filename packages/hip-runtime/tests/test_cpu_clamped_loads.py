"""Loads of neighbours at clamped indices, in gangs of which some lanes are at a limit: contiguous vectors under a mask,
and one element for all lanes at a limit. No other memory is accessed."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack
from test_cpu_alignments import Accesses
from test_cpu_strided import before_a_guard, behind_a_guard

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir import remarks
from hip_runtime.drivers.cpu.object_code.host_machine import spreads_masks

BLOCKS, BLOCK, WIDTH = 4, 40, 16
COUNT = BLOCKS * BLOCK
PARAMETERS = [(name, "ptr") for name in ("out", "x", "flags")] + [(name, "i64") for name in ("base", "low", "high")]
TYPES = {"i8": np.int8, "float": np.float32}

CLAMPS: dict[str, tuple[list[str], Callable[[Any, int, int], Any]]] = {
    "smax": (["smax %i, %low"], lambda i, low, high: np.maximum(i, low)),
    "umin": (["umin %high, %i"], lambda i, low, high: np.minimum(i, high)),
    "smax, smin": (["smax %low, %i", "smin %c.0, %high"], lambda i, low, high: np.minimum(np.maximum(i, low), high)),
    "umin, umax": (["umin %i, %high", "umax %low, %c.0"], lambda i, low, high: np.maximum(np.minimum(i, high), low)),
    "usub.sat": (["usub.sat %i, %low"], lambda i, low, high: np.maximum(i - low, 0)),
    "usub.sat, umin": (
        ["usub.sat %i, %low", "umin %high, %c.0"], lambda i, low, high: np.minimum(np.maximum(i - low, 0), high)
    ),
    "smin, usub.sat": (
        ["smin %i, %high", "usub.sat %c.0, %low"], lambda i, low, high: np.maximum(np.minimum(i, high) - low, 0)
    ),
    "elsewhere below": (["slt %i, %low, %high"], lambda i, low, high: np.where(i < low, high, i)),
    "elsewhere above": (["ugt %i, %high, %low"], lambda i, low, high: np.where(i > high, low, i)),
    "elsewhere at": (["eq %i, %high, %low"], lambda i, low, high: np.where(i == high, low, i)),
    "elsewhere below, smin": (
        ["slt %i, %low, 170", "smin %c.0, %high"],
        lambda i, low, high: np.minimum(np.where(i < low, 170, i), high),
    ),
    "smax, elsewhere above": (
        ["smax %i, %low", "sgt %c.0, %high, 0"],
        lambda i, low, high: np.where(np.maximum(i, low) > high, 0, np.maximum(i, low)),
    ),
}  # fmt: skip


def kernel(kind: str, step: int, clamps: list[str], checks: bool, loops: bool) -> str:
    """Loads x[clamped * step + base] in threads whose flag is set if it *checks*, else in all; in a loop that adds up
    two such if it *loops*."""
    lines = []
    for number, clamp in enumerate(clamps):
        name, one, other, *elsewhere = clamp.replace(",", "").split()
        if elsewhere:
            lines.append(f"  %e.{number} = icmp {name} i64 {one}, {other}")
            lines.append(f"  %c.{number} = select i1 %e.{number}, i64 {elsewhere[0]}, i64 {one}")
        else:
            lines.append(f"  %c.{number} = call i64 @llvm.{name}.i64(i64 {one}, i64 {other})")
    declared = sorted(
        {f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("smax", "smin", "umax", "umin", "usub.sat")}
    )
    newline = "\n"
    flag = "icmp ne i8 %flag, 0" if checks else "icmp slt i64 %i, 1000"
    return f"""
{newline.join(declared)}
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %x, ptr %flags, i64 %base, i64 %low, i64 %high) {{
entry:
{GLOBAL_X}
  %f = getelementptr i8, ptr %flags, i64 %i
  %flag = load i8, ptr %f
  %on = {flag}
  br i1 %on, label %do, label %end
do:
{newline.join(lines)}
  br label %body
body:
  %n = phi i64 [ 0, %do ], [ %next, %body ]
  %times = mul i64 %c.{len(clamps) - 1}, {step}
  %more = add i64 %times, %base
  %at = add i64 %more, %n
  %p = getelementptr {kind}, ptr %x, i64 %at
  %v = load {kind}, ptr %p
  %turn = mul i64 %n, {COUNT}
  %to = add i64 %i, %turn
  %q = getelementptr {kind}, ptr %out, i64 %to
  store {kind} %v, ptr %q
  %next = add i64 %n, 1
  %again = icmp ult i64 %next, {2 if loops else 1}
  br i1 %again, label %body, label %end
end:
  ret void
}}
"""


@pytest.mark.sample(4)
@pytest.mark.parametrize("guarded", [before_a_guard, behind_a_guard])
@pytest.mark.parametrize("loops", [False, True])
@pytest.mark.parametrize("checks", [False, True])
@pytest.mark.parametrize("step", [1, 2, 3])
@pytest.mark.parametrize("clamps", CLAMPS)
@pytest.mark.parametrize("kind", TYPES)
def test_neighbours_at_clamped_indices(
    device: Device, kind: str, clamps: str, step: int, checks: bool, loops: bool,
    guarded: Callable[[int], AbstractContextManager[int]],
) -> None:  # fmt: skip
    dtype, random = TYPES[kind], np.random.default_rng(5)
    operations, compute = CLAMPS[clamps]
    told = Accesses()
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(kernel(kind, step, operations, checks, loops), "k", PARAMETERS)).function("k")
    for low, high in ((0, 159), (3, 157), (1, 158), (50, 52), (20, 139), (0, 0), (70, 1000), (159, 159)):
        on = random.integers(0, 2, COUNT).astype(np.uint8) if checks else np.ones(COUNT, np.uint8)
        threads = np.flatnonzero(on)
        places = compute(threads, low, high) * step
        first, turns = int(places.min()), 2 if loops else 1
        values = random.integers(0, 100, places.max() - first + turns).astype(dtype)
        out, flags = to_device(np.full(2 * COUNT, 111, dtype)), to_device(on)
        with guarded(values.nbytes) as x, remarks.listening(told), config.cpu_form.scope("vectors"):
            ctypes.memmove(x, values.ctypes.data, values.nbytes)
            function.launch(BLOCKS, BLOCK, pack(function.kernel, out.address, x, flags.address, -first, low, high))
        expected = np.full(2 * COUNT, 111, dtype)
        for turn in range(turns):
            expected[threads + turn * COUNT] = values[places - first + turn]
        np.testing.assert_array_equal(out.copy_to_host(), expected, f"{low}, {high}")
    is_first = not any("elsewhere" in name for name in clamps.split(", ")[1:])  # else each lane would be asked anew
    assert remarks.CLAMPED in told.forms or not is_first or (step > 1 and not spreads_masks())


def test_indices_of_other_arrays_are_gathered(device: Device) -> None:
    """What is added to a clamped index differs from lane to lane, too."""
    text = kernel("i64", 1, ["smax %i, %low"], False, False).replace(
        "%at = add i64 %more, %n", "%at = add i64 %more, %i"
    )
    values = np.random.default_rng(6).integers(0, 100, 2 * COUNT)
    told = Accesses()
    x, out, flags = to_device(values), to_device(np.zeros(COUNT, np.int64)), to_device(np.ones(COUNT, np.uint8))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH), remarks.listening(told):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        addresses = out.address, x.address, flags.address
        function.launch(BLOCKS, BLOCK, pack(function.kernel, *addresses, 0, 75, 0))
    index = np.arange(COUNT)
    np.testing.assert_array_equal(out.copy_to_host(), values[np.maximum(index, 75) + index])
    assert remarks.CLAMPED not in told.forms
