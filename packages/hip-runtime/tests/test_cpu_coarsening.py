"""Kernels whose gangs cover several rows of a block."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

PARAMETERS = [("c", "ptr"), ("left", "ptr"), ("right", "ptr"), ("m", "i64"), ("n", "i64"), ("k", "i64")]

PRODUCT = f"""
define void @k(ptr noalias %item, ptr %c, ptr %left, ptr %right, i64 %m, i64 %n, i64 %k) {{
entry:
{GLOBAL_X}
  %ty32 = call i32 @spmd.thread_idx.y(ptr %item)
  %by32 = call i32 @spmd.block_idx.y(ptr %item)
  %dy32 = call i32 @spmd.block_dim.y(ptr %item)
  %above32 = mul nuw nsw i32 %by32, %dy32
  %y32 = add nuw nsw i32 %above32, %ty32
  %y = zext i32 %y32 to i64
  %private = alloca float
  store float 0.0, ptr %private
  %inx = icmp slt i64 %i, %n
  %iny = icmp slt i64 %y, %m
  %in = and i1 %inx, %iny
  br i1 %in, label %begin, label %end
begin:
  %row = mul i64 %y, %k
  %first = getelementptr float, ptr %left, i64 %row
  br label %loop
loop:
  %q = phi i64 [ 0, %begin ], [ %more, %next ]
  %sum = phi float [ 0.0, %begin ], [ %total, %next ]
  %pa = getelementptr float, ptr %first, i64 %q
  %va = load float, ptr %pa
  %below = mul i64 %q, %n
  %index = add i64 %below, %i
  %pb = getelementptr float, ptr %right, i64 %index
  %vb = load float, ptr %pb
  %product = fmul float %va, %vb
  %total = fadd float %sum, %product
  br i1 BREAK, label %store, label %next
next:
  %more = add nuw nsw i64 %q, 1
  %again = icmp slt i64 %more, %k
  br i1 %again, label %loop, label %store
store:
  %place = mul i64 %y, %n
  %at = add i64 %place, %i
  %pc = getelementptr float, ptr %c, i64 %at
  store volatile float %total, ptr %private
  store float %total, ptr %pc
  br label %end
end:
  ret void
}}
"""

PLAIN = PRODUCT.replace("  store volatile float %total, ptr %private\n", "")


def multiply(
    device: Device, text: str, block: tuple[int, int], width: int | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, str]:
    """A product of matrices of 21 x 9 and 9 x 70 by kernel *text*, the matrices, and the form of the kernel."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(0, 9, (21, 9)).astype(np.float32), rng.integers(0, 9, (9, 70)).astype(np.float32)
    c, first, second = to_device(np.full((21, 70), -1, np.float32)), to_device(a), to_device(b)
    grid = (-(-70 // block[0]), -(-21 // block[1]))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        function = device.load(code(text, "k", PARAMETERS)).function("k")
        function.launch(grid, block, pack(function.kernel, c.address, first.address, second.address, 21, 70, 9))
    assert function.form is not None
    return c.copy_to_host(), a, b, function.form


@pytest.mark.parametrize(
    ("block", "width", "rows"),
    [
        ((16, 8), 16, 4),
        ((16, 8), 4, 4),
        ((32, 6), 16, 2),
        ((16, 3), 16, 1),
        ((20, 4), 16, 4),
        ((72, 4), 16, 1),
        ((64, 2), 64, 2),
    ],
)
@pytest.mark.sample(3)
def test_product_of_matrices(device: Device, block: tuple[int, int], width: int, rows: int) -> None:
    """The last blocks have rows and columns that are not there; rows that fill gangs in part run at once only where
    they are joined to those of other blocks."""
    found, a, b, form = multiply(device, PLAIN.replace("BREAK", "false"), block, width)
    assert f"; {width * rows} threads at a time" in form
    assert f", in {rows} rows" in form if rows > 1 else "rows" not in form
    assert ("neighbours along x in up to" in form) == (block[0] < 4 * width)
    np.testing.assert_array_equal(found, a @ b)


def test_rows_that_leave_their_loop_in_different_rounds(device: Device) -> None:
    text = PLAIN.replace("  br i1 BREAK", "  %late = icmp ugt i64 %q, %y\n  br i1 %late")
    found, a, b, form = multiply(device, text, (16, 8), 16)
    assert "; 16 threads at a time;" in form
    expected = [a[y, : y + 2] @ b[: y + 2] for y in range(21)]
    np.testing.assert_array_equal(found, expected)


def test_rows_with_a_volatile_access_run_one_after_another(device: Device) -> None:
    found, a, b, form = multiply(device, PRODUCT.replace("BREAK", "false"), (16, 8), 16)
    assert "; 16 threads at a time;" in form
    np.testing.assert_array_equal(found, a @ b)


SCALED = f"""
define void @k(ptr noalias %item, ptr %out, ptr %table, i64 %m, i64 %n) {{
entry:
{GLOBAL_X}
  %ty32 = call i32 @spmd.thread_idx.y(ptr %item)
  %by32 = call i32 @spmd.block_idx.y(ptr %item)
  %dy32 = call i32 @spmd.block_dim.y(ptr %item)
  %above32 = mul nuw nsw i32 %by32, %dy32
  %y32 = add nuw nsw i32 %above32, %ty32
  %y = zext i32 %y32 to i64
  %inx = icmp slt i64 %i, %n
  %iny = icmp slt i64 %y, %m
  %in = and i1 %inx, %iny
  br i1 %in, label %begin, label %end
begin:
  %fx = DIVIDEND
  %fn = sitofp i64 %n to double
  %part = fdiv double %fx, %fn
  %twenty = fmul double %part, 2.0e+01
  %column = fptosi double %twenty to i64
  %p = getelementptr double, ptr %table, i64 %column
  %v = load double, ptr %p
  %fy = sitofp i64 %y to double
  %product = fmul double %v, %fy
  %sum = fadd double %product, %part
  %place = mul i64 %y, %n
  %at = add i64 %place, %i
  %q = getelementptr double, ptr %out, i64 %at
  %old = load double, ptr %q
  %new = fadd double %sum, %old
  store double %new, ptr %q
  br label %end
end:
  ret void
}}
"""


@pytest.mark.parametrize(
    ("block", "width", "rows"), [((16, 8), 16, 4), ((32, 6), 16, 2), ((16, 3), 16, 1), ((20, 4), 8, 4)]
)
def test_divisions_for_all_rows(device: Device, block: tuple[int, int], width: int, rows: int) -> None:
    """What depends on the column alone is divided once for several rows; the last blocks have rows and columns that are
    not there."""
    found, expected, form = scale(device, SCALED.replace("DIVIDEND", "sitofp i64 %i to double"), block, width)
    assert f", in {rows} rows" in form if rows > 1 else "rows" not in form
    np.testing.assert_array_equal(found, expected)


def test_divisions_of_each_row(device: Device) -> None:
    """Rows whose divisions are their own gain nothing."""
    text = SCALED.replace("DIVIDEND", "sitofp i64 %far to double").replace("begin:", "begin:\n  %far = add i64 %i, %y")
    text = text.replace(
        "%column = fptosi double %twenty", "%zero = fmul double %twenty, 0.0\n  %column = fptosi double %zero"
    )
    found, _, form = scale(device, text, (16, 8), 16)
    assert "rows" not in form
    part = (np.arange(70) + np.arange(21.0)[:, None]) / 70
    np.testing.assert_array_equal(found, part + np.arange(21.0 * 70).reshape(21, 70))


def scale(device: Device, text: str, block: tuple[int, int], width: int) -> tuple[np.ndarray, np.ndarray, str]:
    """What a kernel like `SCALED` makes of 21 rows of 70, what it should, and its form."""
    table, before = np.arange(20.0) ** 2, np.arange(21.0 * 70).reshape(21, 70)
    out, memory = to_device(before), to_device(table)
    grid = (-(-70 // block[0]), -(-21 // block[1]))
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(width):
        parameters = [("out", "ptr"), ("table", "ptr"), ("m", "i64"), ("n", "i64")]
        function = device.load(code(text, "k", parameters)).function("k")
        function.launch(grid, block, pack(function.kernel, out.address, memory.address, 21, 70))
    assert function.form is not None
    part = np.arange(70) / 70
    expected = table[(part * 20).astype(int)] * np.arange(21.0)[:, None] + part + before
    return out.copy_to_host(), expected, function.form
