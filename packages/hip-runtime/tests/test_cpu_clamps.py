"""Indices that are held within limits: consecutive in gangs of which no lane is at one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

COUNT, BLOCK, WIDTH, TABLE = 160, 40, 16, 1024
PARAMETERS = [("out", "ptr"), ("table", "ptr"), ("first", "i64"), ("limit", "i64")]
Array = np.ndarray[Any, Any]


def clamp(kind: str, operations: list[str], stride: int) -> str:
    """A kernel that loads ``table[x % TABLE]``, where ``x`` is ``first + i * stride`` after *operations*."""
    width = int(kind[1:])
    steps, value = "", "%x.0"
    for number, operation in enumerate(operations):
        limit = "%n" if number == 0 else "%m"
        steps += f"  %x.{number + 1} = call {kind} @llvm.{operation}.{kind}({kind} {value}, {kind} {limit})\n"
        value = f"%x.{number + 1}"
    cut = "" if kind == "i64" else f"  %x.0 = trunc i64 %sum to {kind}\n  %n = trunc i64 %limit to {kind}\n"
    if kind == "i64":
        cut = "  %x.0 = add i64 %sum, 0\n  %n = add i64 %limit, 0\n"
    mask = min(TABLE, 1 << width - 1) - 1
    wide = f"  %wide = add i64 {value}, 0" if kind == "i64" else f"  %wide = zext {kind} {value} to i64"
    return f"""
{"".join(f"declare {kind} @llvm.{name}.{kind}({kind}, {kind})" + chr(10) for name in dict.fromkeys(operations))}
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %limit) {{
entry:
{GLOBAL_X}
  %scaled = mul i64 %i, {stride}
  %sum = add i64 %first, %scaled
{cut}
  %m = add {kind} %n, 50
{steps}
{wide}
  %at = and i64 %wide, {mask}
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


def expect(kind: str, operations: list[str], stride: int, first: int, limit: int, table: Array) -> Array:
    """What `clamp` stores, computed with Python's integers."""
    bits = int(kind[1:])

    def wrap(number: int, sign: str) -> int:
        number %= 1 << bits
        return number - (1 << bits) if sign == "s" and number >> (bits - 1) else number

    found = []
    for i in range(COUNT):
        x = first + i * stride
        for operation, by in zip(operations, (limit, limit + 50), strict=False):
            sign = "u" if operation.startswith("u") else "s"
            one, other = wrap(x, sign), wrap(by, sign)
            x = {"max": max(one, other), "min": min(one, other), "sub.sat": max(one - other, 0)}[operation[1:]]
        found.append(wrap(x, "u") & (min(TABLE, 1 << bits - 1) - 1))
    return table[found]


@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
@pytest.mark.parametrize("stride", [1, -1, 3])
@pytest.mark.parametrize(
    "operations", [["smax"], ["smin"], ["umax"], ["umin"], ["usub.sat"], ["smax", "smin"], ["umax", "umin"]]
)
def test_clamped_numbers(
    device: Device, coherent_versions: list[int], kind: str, stride: int, operations: list[str]
) -> None:
    bits = int(kind[1:])
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(clamp(kind, operations, stride), "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for limit in (0, 1, 40, -3, 100, (1 << bits - 1) - 1, 1 << bits - 1, (1 << bits) - 1):
            for first in (0, 3, -20, 60, limit - 60, limit + 40, (1 << bits - 1) - 70, (1 << bits) - 70, 1 << bits - 1):
                wrapped = [(value + (1 << 63)) % (1 << 64) - (1 << 63) for value in (first, limit)]
                out = to_device(np.zeros(COUNT, np.int32))
                function.launch(COUNT // BLOCK, BLOCK, pack(function.kernel, out.address, memory.address, *wrapped))
                expected = expect(kind, operations, stride, *wrapped, table)
                np.testing.assert_array_equal(out.copy_to_host(), expected, f"{first}, {limit}")
    assert max(coherent_versions) == 1
