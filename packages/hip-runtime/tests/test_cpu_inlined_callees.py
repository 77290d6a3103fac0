"""Functions that LLVM finds too large to be inlined, and that store their result as those of Numba do."""

from __future__ import annotations

import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import list_kernel

STEPS = 80
"""Three operations each: more than LLVM inlines at several places."""


def function(name: str, steps: int = STEPS, attributes: str = "", inner: str = "") -> str:
    """*name* stores x times 3 plus 1, *steps* times, to its first argument; *inner* comes before that."""
    lines = [
        f"  %a{n} = mul i32 %{f'c{n - 1}' if n else 'x'}, 3\n  %b{n} = add i32 %a{n}, 1\n  %c{n} = xor i32 %b{n}, {n}"
        for n in range(steps)
    ]
    body = "\n".join([inner, *lines])
    return (
        f"define internal i32 @{name}(ptr noalias %result, i32 %x) {attributes} {{\n{body}\n"
        f"  store i32 %c{steps - 1}, ptr %result\n  ret i32 0\n}}\n"
    )


def expected(x: np.ndarray, steps: int = STEPS) -> np.ndarray:
    x = x.astype(np.uint32)
    for n in range(steps):
        x = (x * np.uint32(3) + np.uint32(1)) ^ np.uint32(n)
    return x


def kernel_that_calls(functions: str, times: int = 2) -> str:
    """Each thread passes its number on *times* times."""
    calls = "\n".join(
        f"  %status{n} = call i32 @f(ptr %slot, i32 %v{n})\n  %v{n + 1} = load i32, ptr %slot" for n in range(times)
    )
    return f"""
    {functions}
    define void @k(ptr noalias %item, ptr %out, ptr %x) {{
    entry:
      %slot = alloca i32
    {GLOBAL_X}
      %from = getelementptr i32, ptr %x, i64 %i
      %v0 = load i32, ptr %from
    {calls}
      %to = getelementptr i32, ptr %out, i64 %i
      store i32 %v{times}, ptr %to
      ret void
    }}"""


def run(device: Device, text: str) -> tuple[np.ndarray, str]:
    """What threads store, and the optimised code."""
    made = code(text, "k", [("out", "ptr"), ("x", "ptr")])
    x, out = to_device(np.arange(200, dtype=np.int32)), to_device(np.zeros(200, np.int32))
    with config.cpu_form.scope("vectors"):
        kernel = device.load(made).function("k")
        kernel.launch(2, 100, pack(kernel.kernel, out.address, x.address))
        listed, _ = list_kernel(made, made.kernels[0], (100, 1, 1))
    return out.copy_to_host().view(np.uint32), listed


def twice(x: np.ndarray) -> np.ndarray:
    return expected(expected(x))


def test_a_large_function_is_vectorised(device: Device) -> None:
    found, listed = run(device, kernel_that_calls(function("f")))
    np.testing.assert_array_equal(found, twice(np.arange(200)))
    assert "@f(" not in listed
    assert " x i32>" in listed


def test_through_another_function(device: Device) -> None:
    outer = """
    define internal i32 @f(ptr noalias %result, i32 %x) {
      %slot = alloca i32
      %status = call i32 @g(ptr %slot, i32 %x)
      %y = load i32, ptr %slot
      %other = call i32 @g(ptr %slot, i32 %y)
      %z = load i32, ptr %slot
      store i32 %z, ptr %result
      ret i32 0
    }
    """
    found, listed = run(device, kernel_that_calls(function("g") + outer))
    np.testing.assert_array_equal(found, twice(twice(np.arange(200))))
    assert "@f(" not in listed
    assert "@g(" not in listed


@pytest.mark.parametrize(
    ("functions", "times"),
    [(function("f"), 30), (function("f", attributes="noinline"), 2)],
    ids=["too many copies", "noinline"],
)
def test_what_stays_a_function(device: Device, functions: str, times: int) -> None:
    found, listed = run(device, kernel_that_calls(functions, times))
    x = np.arange(200)
    for _ in range(times):
        x = expected(x)
    np.testing.assert_array_equal(found, x)
    assert "@f(" in listed


def test_a_private_array_stays_in_its_function(device: Device) -> None:
    inner = """
      %row = alloca [64 x i32]
      %low = and i32 %x, 63
      %place = getelementptr [64 x i32], ptr %row, i32 0, i32 %low
      store volatile i32 %x, ptr %place
    """
    found, listed = run(device, kernel_that_calls(function("f", inner=inner)))
    np.testing.assert_array_equal(found, twice(np.arange(200)))
    assert "@f(" in listed


def test_a_function_that_calls_itself_stays_one(device: Device) -> None:
    recursive = """
    define internal i32 @f(ptr noalias %result, i32 %x) {
      %slot = alloca i32
      %more = icmp sgt i32 %x, 7
      br i1 %more, label %again, label %end
    again:
      %less = sub i32 %x, 7
      %status = call i32 @f(ptr %slot, i32 %less)
      %y = load i32, ptr %slot
      %sum = mul i32 %y, 5
      br label %end
    end:
      %z = phi i32 [ %x, %0 ], [ %sum, %again ]
      store i32 %z, ptr %result
      ret i32 0
    }
    """
    found, _ = run(device, kernel_that_calls(recursive, 1))

    def plain(x: int) -> int:
        return plain(x - 7) * 5 if x > 7 else x

    np.testing.assert_array_equal(found, [plain(x) % 2**32 for x in range(200)])
