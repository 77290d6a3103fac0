"""What GPUs do not have of matrices is an error that tells what they have, and what they have is in their code."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from llvmlite.binding import llvm_version_info
from numba import hip
from numba.core import types
from numba.core.errors import TypingError

from numba_hip.errors import MatrixError

NEW_LLVM = 22

# What there is not.


def refused(body: str, *parts: str, target: str = "cpu", error: type[Exception] = MatrixError, **options: Any) -> None:
    """Compiling *body*, of the arrays x (float16, two axes) and flat (float16, one axis), fails with all *parts*."""
    names: dict[str, Any] = {"hip": hip, "np": np, "types": types}
    exec(f"def kernel(x, flat):\n    {body}", names)
    arguments = (types.float16[:, ::1], types.float16[::1])
    with pytest.raises(error) as caught:
        hip.compile(names["kernel"], arguments, target=target, **options)
    for part in parts:
        assert part in str(caught.value)


A = 'a = hip.matrix.fragment("a", (16, 16, 16), np.float16)'
BOTH = f'{A}; b = hip.matrix.fragment("b", (16, 16, 16), np.float16)'
ALL = f'{BOTH}; c = hip.matrix.fragment("accumulator", (16, 16, 16), np.float32)'


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ('hip.matrix.fragment("a", (16, 16, 15), np.float16)', ("(16, 16, 15)", "multiples of 16")),
        ('hip.matrix.fragment("a", (16, 16, 0), np.float16)', ("(16, 16, 0)",)),
        ('hip.matrix.fragment("b", (16, 32, 16), np.float16)', ("(16, 32, 16)",)),
        ('hip.matrix.fragment("a", (16, 16, 256), np.float16)', ("128 at most",)),
        ('hip.matrix.fragment("accumulator", (16, 16, 16), np.float16)', ("accumulator", "float32")),
        ('hip.matrix.fragment("a", (16, 16, 16), np.int64)', ("int64", "bfloat16")),
        (f"{ALL}; hip.matrix.mma(c, b, a, c)", ("a has to be", "role 'a'")),
        (f"{ALL}; hip.matrix.mma(a, a, b, c)", ("d has to be", "accumulator")),
        (
            f'{ALL}; d = hip.matrix.fragment("b", (16, 16, 32), np.float16); hip.matrix.mma(c, a, d, c)',
            ("b is fragment", "shapes differ"),
        ),
        (
            f'{ALL}; d = hip.matrix.fragment("accumulator", (16, 16, 16), np.int32); hip.matrix.mma(d, a, b, c)',
            ("types differ",),
        ),
        (
            f'{ALL}; d = hip.matrix.fragment("b", (16, 16, 16), np.int8); hip.matrix.mma(c, a, d, c)',
            ("float16 and int8", "float16 @ float16"),
        ),
        (f"{A}; hip.matrix.load(a, flat)", ("needs leading",)),
        (f"{A}; hip.matrix.load(a, x, 0, 0, 5)", ("array.T",)),
        (f'{A}; hip.matrix.load(a, flat, 0, 0, 5, "diagonal")', ("'diagonal'", "('row', 'col')")),
        (f"{A}; hip.matrix.load(a, flat, 0, 0, 5, partial=True)", ("two axes", "reshape")),
    ],
)
def test_what_is_refused_at_the_line(body: str, parts: tuple[str, ...]) -> None:
    refused(body, *parts)


@pytest.mark.parametrize(
    ("body", "parts"),
    [
        ('hip.matrix.fragment("c", (16, 16, 16), np.float16)', ("role is 'c'",)),
        ('hip.matrix.fragment("a", (16, 16), np.float16)', ("(16, 16)", "(m, n, k)")),
        ('hip.matrix.fragment("a", (16, 16, x.shape[0]), np.float16)', ("constants",)),
        ('hip.matrix.fragment("a", (16, 16, 16), np.complex64); x[0] = 1j', ("complex",)),
        (f"{A}; hip.matrix.load(x, a)", ("fragment has to be a fragment",)),
        (f"{A}; hip.matrix.load(a, 3)", ("source has to be an array",)),
        (f"{A}; hip.matrix.load(a, x, 0.5)", ("have to be integers",)),
        (f"{A}; hip.matrix.load(a, flat, 0, 0, 1.5)", ("leading has to be an integer",)),
        (f"{A}; hip.matrix.load(a, x, partial=x.shape[0] > 1)", ("partial has to be a constant",)),
        (f"{A}; hip.matrix.store(a, x, partial=1)", ("partial has to be a constant",)),
        (f"{A}; hip.matrix.fill(a, x)", ("value has to be a number",)),
        (f"{A}; hip.matrix.mma(a, a, a)", ("takes (d, a, b, c)",)),
    ],
)
def test_types_that_are_refused(body: str, parts: tuple[str, ...]) -> None:
    refused(body, *parts, error=TypingError)


def test_what_a_gpu_has_not_is_named_with_what_it_has() -> None:
    ocp = 'hip.matrix.fragment("a", (16, 16, 32), hip.float8_e4m3fn)'
    refused(ocp, "gfx942", "float8_e4m3fn", "float16 @ float16", target="gfx942")
    refused(ocp, "gfx1100", "int8 @ int8 + int32", target="gfx1100")
    refused(
        'hip.matrix.fragment("a", (32, 32, 16), np.float16)', "gfx1201", "16, 16, multiples of 16", target="gfx1201"
    )
    refused('hip.matrix.fragment("a", (16, 16, 4), np.float64)', "gfx1100", "float64", target="gfx1100")
    refused('hip.matrix.fragment("a", (16, 16, 16), np.int8)', "gfx942", "multiples of 32", target="gfx942")
    refused(A, "gfx1030", "there are no matrix cores", target="gfx1030")
    refused(A, "gfx1100", "waves of 64", "waves of 32", target="gfx1100", wave_size=64)


# Code for all GPUs.

EXPECTED = {
    "gfx90a": ("v_mfma_f32_16x16x16f16", 2),
    "gfx942": ("v_mfma_f32_16x16x16_f16", 2),
    "gfx950": ("v_mfma_f32_16x16x32_f16", 1),
    "gfx1100": ("v_wmma_f32_16x16x16_f16", 2),
    "gfx1201": ("v_wmma_f32_16x16x16_f16", 2),
}


@pytest.mark.parametrize("target", EXPECTED)
@pytest.mark.sample(2)
def test_code_for_each_gpu_multiplies_in_matrix_cores(target: str) -> None:
    name, count = EXPECTED[target]
    shape = (16, 16, 32)

    @hip.jit
    def multiply(x, y, out):
        left = hip.matrix.fragment("a", shape, np.float16)
        right = hip.matrix.fragment("b", shape, np.float16)
        total = hip.matrix.fragment("accumulator", shape, np.float32)
        hip.matrix.fill(total, 0)
        for k in range(0, x.shape[1], 32):
            hip.matrix.load(left, x, 0, k)
            hip.matrix.load(right, y, k, 0)
            hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out)

    matrices = types.float16[:, ::1], types.float16[::1, :], types.float32[:, ::1]
    text = hip.compile(multiply, matrices, target=target)[0]
    assert text.count(f"\t{name} ") == count
    assert not re.search(r"\t(scratch|buffer|ds)_", text)  # fragments are registers
    assert re.search(r"private_segment_fixed_size:\s+0\b", text)
    assert len(re.findall(r"\tglobal_load_(dwordx4|b128) ", text)) >= 2  # eight neighbours along k at once


@pytest.mark.parametrize("target", ["gfx942", "gfx1201"])
def test_a_tile_that_may_be_partial_is_loaded_at_once_where_it_is_not(target: str) -> None:
    @hip.jit
    def multiply(x, y, out):
        left = hip.matrix.fragment("a", (16, 16, 32), np.float16)
        right = hip.matrix.fragment("b", (16, 16, 32), np.float16)
        total = hip.matrix.fragment("accumulator", (16, 16, 32), np.float32)
        hip.matrix.fill(total, 0)
        for k in range(0, x.shape[1], 32):
            hip.matrix.load(left, x, 0, k, partial=True)
            hip.matrix.load(right, y, k, 0, partial=True)
            hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out, partial=True)

    matrices = types.float16[:, ::1], types.float16[::1, :], types.float32[:, ::1]
    text = hip.compile(multiply.py_func, matrices, target=target)[0]
    wide = re.findall(r"\tglobal_load_(?:dwordx4|b128) ", text)
    assert len(wide) >= 2
    assert len(re.findall(r"\tglobal_load_", text)) == 9 * len(wide)  # 16 bytes, or 8 elements
    assert re.search(r"private_segment_fixed_size:\s+0\b", text)


@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
@pytest.mark.parametrize("layout", "CA")
@pytest.mark.sample(2)
def test_arrays_at_odd_addresses_are_accessed_as_such(target: str, layout: str) -> None:
    @hip.jit
    def copy(x, out):
        part = hip.matrix.fragment("a", (16, 16, 16), np.float16)
        hip.matrix.load(part, x)
        hip.matrix.store(part, out)

    for aligned in (False, True):
        kinds = [types.Array(types.float16, 2, layout, aligned=aligned) for _ in range(2)]
        text = hip.compile(copy.py_func, tuple(kinds), target=target, output="llvm")[0]
        at_half = re.findall(r"(?:load|store) (?:half|<\d+ x half>)[^\n]*, align (\d+)", text)
        assert at_half
        assert aligned or set(at_half) == {"1"}
        assert not aligned or "1" not in at_half or target == "cpu"  # whose vectors are all so


@pytest.mark.parametrize("target", ["gfx1100", "gfx1201"])
def test_a_loop_along_k_counts_nothing_but_k(target: str) -> None:
    @hip.jit
    def multiply(x, y, out):
        left = hip.matrix.fragment("a", (16, 16, 32), np.float16)
        right = hip.matrix.fragment("b", (16, 16, 32), np.float16)
        total = hip.matrix.fragment("accumulator", (16, 16, 32), np.float32)
        hip.matrix.fill(total, 0)
        for k in range(0, x.shape[1], 32):
            hip.matrix.load(left, x, 0, k)
            hip.matrix.load(right, y, k, 0)
            hip.matrix.mma(total, left, right, total)
        hip.matrix.store(total, out)

    matrices = types.float16[:, ::1], types.float16[::1, :], types.float32[:, ::1]
    text = hip.compile(multiply.py_func, matrices, target=target)[0]
    (loop,) = (part.split("s_cbranch")[0] for part in re.split(r"\n\.LBB\w+:", text) if "v_wmma" in part)
    pointers = 0 if llvm_version_info[0] >= NEW_LLVM else 1  # LLVM 20 counts the other matrix's address, too
    assert len(re.findall(r"\ts_add_(?:u32|nc_u64|co_u32) ", loop)) == 1 + pointers, loop


def test_a_loop_over_elements_leaves_them_in_registers() -> None:
    @hip.jit
    def scale(x, y, bias, out):
        left = hip.matrix.fragment("a", (32, 32, 8), np.float16)
        right = hip.matrix.fragment("b", (32, 32, 8), np.float16)
        total = hip.matrix.fragment("accumulator", (32, 32, 8), np.float32)
        hip.matrix.fill(total, 0)
        for k in range(0, x.shape[1], 8):
            hip.matrix.load(left, x, 0, k)
            hip.matrix.load(right, y, k, 0)
            hip.matrix.mma(total, left, right, total)
        for i in range(len(total)):
            total[i] = max(total[i] + bias[hip.matrix.position(total, i)[1]], 0)
        hip.matrix.store(total, out)

    matrices = types.float16[:, ::1], types.float16[:, ::1], types.float32[::1], types.float32[:, ::1]
    text = hip.compile(scale.py_func, matrices, target="gfx942")[0]
    assert re.search(r"private_segment_fixed_size:\s+0\b", text)
    assert "v_mfma_f32_32x32x8_f16" in text
