"""Indices that are reflected at an edge, or go on at the other one: consecutive in gangs of which no lane is at one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device

COUNT, BLOCK, WIDTH, TABLE = 160, 40, 16, 1024
PARAMETERS = [("out", "ptr"), ("table", "ptr"), ("first", "i64"), ("limit", "i64")]

Steps = tuple[str, Callable[[int, int, Callable[[int], int]], int]]
"""What makes ``%y`` of ``%x`` and ``%n``, as LLVM IR and in Python, which gets what keeps a number within its bits."""

BELOW = """
  %below = icmp slt KIND %x, 0
  %more = add KIND %x, %n
  %y = select i1 %below, KIND %more, KIND %x
"""
ABOVE = """
  %inside = icmp slt KIND %x, %n
  %twice = shl KIND %n, 1
  %last = add KIND %twice, -2
  %turned = sub KIND %last, %x
  %y = select i1 %inside, KIND %x, KIND %turned
"""
BOTH = """
  %z = call KIND @llvm.abs.KIND(KIND %x, i1 false)
  %outside = icmp sge KIND %z, %n
  %twice = shl KIND %n, 1
  %last = sub KIND %twice, 2
  %turned = sub KIND %last, %z
  %y = select i1 %outside, KIND %turned, KIND %z
"""
AROUND = """
  %inside = icmp slt KIND %x, %n
  %by = select i1 %inside, KIND 0, KIND %n
  %less = sub KIND 0, %by
  %below = icmp slt KIND %x, 0
  %change = select i1 %below, KIND %n, KIND %less
  %y = add KIND %change, %x
"""
MIRRORED = """
  %below = icmp slt KIND %x, 0
  %turned = xor KIND %x, -1
  %y = select i1 %below, KIND %turned, KIND %x
"""
CHOSEN = """
  %near = icmp ult KIND %x, %n
  %turned = sub KIND %n, %x
  %y = select i1 %near, KIND %turned, KIND %x
"""
SYMMETRIC = """
  %shifted = add KIND %x, 3
  %low = icmp slt KIND %shifted, 3
  br i1 %low, label %below, label %above
below:
  %negative = sub KIND 2, %shifted
  br label %joined
above:
  %outside = icmp sge KIND %x, %n
  %twice = shl KIND %n, 1
  %last = add KIND %twice, 2
  %turned = sub KIND %last, %shifted
  %inner = select i1 %outside, KIND %turned, KIND %x
  br label %joined
joined:
  %y = phi KIND [ %negative, %below ], [ %inner, %above ]
"""
"""By branches, and of a number that is compared with more added to it."""


def fold(x: int, n: int, cut: Callable[[int], int]) -> int:
    z = cut(abs(x))
    return z if z < n else cut(cut(cut(2 * n) - 2) - z)


def unsigned(number: int) -> int:
    return number % (1 << 64)


CASES: dict[str, Steps] = {
    "absolute": (
        "  %y = call KIND @llvm.abs.KIND(KIND %x, i1 false)\n",
        lambda x, n, cut: cut(abs(x)),
    ),
    "below": (BELOW, lambda x, n, cut: cut(x + n) if x < 0 else x),
    "above": (ABOVE, lambda x, n, cut: x if x < n else cut(cut(cut(2 * n) - 2) - x)),
    "both": (BOTH, fold),
    "around": (AROUND, lambda x, n, cut: cut(x + n if x < 0 else x - (0 if x < n else n))),
    "mirrored": (MIRRORED, lambda x, n, cut: ~x if x < 0 else x),
    "symmetric": (
        SYMMETRIC,
        lambda x, n, cut: (
            cut(2 - cut(x + 3)) if cut(x + 3) < 3 else cut(cut(cut(2 * n) + 2) - cut(x + 3)) if x >= n else x
        ),
    ),
    "chosen": (CHOSEN, lambda x, n, cut: cut(n - x) if unsigned(x) < unsigned(n) else x),
}


def reflect(kind: str, steps: str, stride: int) -> str:
    """A kernel that loads ``table[y % TABLE]``, where ``x`` is ``first + i * stride``."""
    cut = "add i64 {}, 0" if kind == "i64" else f"trunc i64 {{}} to {kind}"
    wide = "add i64 %y, 0" if kind == "i64" else f"zext {kind} %y to i64"
    return f"""
declare {kind} @llvm.abs.{kind}({kind}, i1)
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %table, i64 %first, i64 %limit) {{
entry:
{GLOBAL_X}
  %scaled = mul i64 %i, {stride}
  %sum = add i64 %first, %scaled
  %x = {cut.format("%sum")}
  %n = {cut.format("%limit")}
{steps.replace("KIND", kind)}
  %wide = {wide}
  %at = and i64 %wide, {TABLE - 1}
  %p = getelementptr i32, ptr %table, i64 %at
  %v = load i32, ptr %p
  %q = getelementptr i32, ptr %out, i64 %i
  store i32 %v, ptr %q
  ret void
}}
"""


@pytest.mark.parametrize("kind", ["i32", "i64"])
@pytest.mark.parametrize("stride", [1, -1, 3])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.sample(8)
def test_reflected_numbers(device: Device, coherent_versions: list[int], kind: str, stride: int, case: str) -> None:
    bits = int(kind[1:])

    def cut(number: int) -> int:
        return (number + (1 << bits - 1)) % (1 << bits) - (1 << bits - 1)

    steps, evaluate = CASES[case]
    table = np.random.default_rng(7).integers(0, 1 << 20, TABLE, np.int32)
    with config.cpu_form.scope("vectors"), config.cpu_width.scope(WIDTH):
        function = device.load(code(reflect(kind, steps, stride), "k", PARAMETERS)).function("k")
        memory = to_device(table)
        for limit in (0, 1, 40, -3, 100, (1 << bits - 1) - 1, 1 << bits - 1, 1 << bits - 2):
            for first in (0, 3, -20, 60, limit - 60, limit + 40, (1 << bits - 1) - 70, (1 << bits) - 70, 1 << bits - 1):
                out = to_device(np.zeros(COUNT, np.int32))
                arguments = pack(function.kernel, out.address, memory.address, cut(first), cut(limit))
                function.launch(COUNT // BLOCK, BLOCK, arguments)
                found = [evaluate(cut(first + i * stride), cut(limit), cut) % TABLE for i in range(COUNT)]
                np.testing.assert_array_equal(out.copy_to_host(), table[found], f"{first}, {limit}")
    # What is added below 0 is looked after where addresses are computed. LLVM has no condition for ``mirrored``, and
    # compares 64 bits of a number that has 32 otherwise.
    is_known = case in ("absolute", "both", "around", "above", "chosen") or (kind == "i64" and case == "symmetric")
    assert max(coherent_versions) == is_known
