"""Checks at a kernel's start that the first and the last lane of a gang decide for all of them."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

PARAMETERS = [("y", "ptr"), ("c", "i64")]
BLOCK, THREADS = 32, 320
END = 1 << 63


def skipping(kind: str, number: str, predicate: str) -> str:
    """A kernel that writes 1 for each thread whose *number*, of type *kind*, is not the one of the argument ``c``."""
    sides = "%out, label %do" if predicate == "eq" else "%do, label %out"
    wanted = "%c" if kind == "i64" else "%wanted"
    narrow = "" if kind == "i64" else f"  %wanted = trunc i64 %c to {kind}\n"
    return f"""
define void @k(ptr noalias %item, ptr %y, i64 %c) {{
{GLOBAL_X}
{narrow}{number}
  %skipped = icmp {predicate} {kind} %number, {wanted}
  br i1 %skipped, label {sides}
do:
  %p = getelementptr i8, ptr %y, i64 %i
  store i8 1, ptr %p
  br label %out
out:
  ret void
}}
"""


NUMBERS = {
    "the index": ("i64", "  %number = add i64 %i, 0", lambda i: i),
    "from below zero": ("i64", "  %number = sub i64 %i, 100", lambda i: i - 100),
    "downwards": ("i64", "  %number = sub i64 100, %i", lambda i: 100 - i),
    "every third": ("i64", "  %number = mul i64 %i, 3", lambda i: 3 * i),
    "i64, around its end": ("i64", f"  %number = add i64 %i, {END - 8}", lambda i: i - 8 - (END - 1) - 1),
    "i8, around its end": ("i8", "  %number = trunc i64 %i to i8", lambda i: (i + 128) % 256 - 128),
    "against lanes": ("i64", "  %twice = mul i64 %i, 2\n  %number = sub i64 %twice, %i", lambda i: i),
}


@pytest.mark.parametrize("predicate", ["eq", "ne"])
@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.sample(3)
def test_one_number_is_left_out(device: Device, number: tuple[str, str, object], predicate: str) -> None:
    kind, text, compute = number
    numbers = compute(np.arange(THREADS))  # type: ignore[operator]
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(16):
        function = device.load(code(skipping(kind, text, predicate), "k", PARAMETERS)).function("k")
        for c in (0, 1, 7, 15, 16, 31, 33, 99, 100, 127, -1, -8, -100, -128, 300, 1 << 40, END - 3, 5 - END):
            y = to_device(np.zeros(THREADS, np.int8), device=device)
            function.launch(THREADS // BLOCK, BLOCK, pack(function.kernel, y.address, c))
            known = c if kind == "i64" else (c + 128) % 256 - 128
            np.testing.assert_array_equal(y.copy_to_host(), numbers != known, err_msg=f"{c}")
