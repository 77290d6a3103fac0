"""What is told of a kernel: by line, by its types, by the machine code; and the warnings that are made of it."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import numba_hip as hip
from numba_hip import config
from numba_hip.errors import DeviceFunctionError, KernelArgumentError, NotCompiledError, PerformanceWarning
from numba_hip.explanation.model import Explanation

pytestmark = pytest.mark.cpu_device("explain tells of it by default")

VECTOR, MATRIX = "float32[::1]", "float32[:, ::1]"


def notes_at(told: Explanation, source: str) -> str:
    """The notes of the only line that contains *source*."""
    (found,) = {line.number: line for line in told.lines if source in line.source}.values()
    return "; ".join(found.notes)


def messages_at(told: Explanation, source: str) -> str:
    numbers = {line.number for line in told.lines if source in line.source}
    return "; ".join(one.message for one in told.findings if one.line in numbers)


@hip.jit
def accesses(x: Any, index: Any, out: Any) -> None:
    i = hip.grid(1)
    if i < out.size:
        near = x[i]
        same = x[3]
        pair = x[2 * i]
        far = x[index[i]]
        out[i + 2] = far + same + pair
        if near > 0:
            out[i] = near
        hip.atomic.exch(x, index[i], near)


def test_how_each_line_is_executed() -> None:
    told = accesses.explain(f"({VECTOR}, int64[::1], {VECTOR})")
    assert (told.form, told.lanes > 1, told.block, told.target) == ("vectors", True, (256, 1, 1), "the CPU device")
    assert notes_at(told, "i = hip.grid(1)") == "linear in the lane"
    assert notes_at(told, "near = x[i]") == "load of float32: contiguous"
    assert notes_at(told, "same = x[3]") == "load of float32: uniform"
    assert notes_at(told, "pair =") == "load of float32: strided, every second element"
    assert notes_at(told, "far =") == "load of int64: contiguous; load of float32: gathered"
    assert notes_at(told, "if near > 0") == "varying; lanes diverge"
    assert notes_at(told, "out[i] = near") == "store of float32: contiguous; masked"
    assert "scalarised" in notes_at(told, "hip.atomic.exch")
    assert "a gather: threads that are neighbours along x" in messages_at(told, "far =")
    assert "one thread after another" in messages_at(told, "hip.atomic.exch")
    assert not messages_at(told, "near = x[i]")
    assert told.promotions == ()
    assert list(told.findings) == sorted(told.findings, key=lambda one: -one.weight)


@hip.jit
def counts(bins: Any, index: Any) -> None:
    i = hip.grid(1)
    if i < index.size:
        hip.atomic.add(bins, index[i], 1)


def test_atomic_operations_in_tables() -> None:
    told = counts.explain("(int32[::1], int64[::1])")
    assert "atomic add of int32: in a table" in notes_at(told, "hip.atomic.add")
    assert "in a table of each CPU thread; sum up in a variable" in messages_at(told, "hip.atomic.add")


@hip.jit(fastmath=True)  # or lanes would load several elements of their rows at once
def sums_of_rows(matrix: Any, out: Any) -> None:
    i = hip.grid(1)
    if i < out.size:
        total = np.float32(0)
        for j in range(matrix.shape[1]):
            total += matrix[i, j]
        out[i] = total


@hip.jit
def sums_of_columns(matrix: Any, out: Any) -> None:
    i = hip.grid(1)
    if i < out.size:
        total = np.float32(0)
        for j in range(matrix.shape[0]):
            total += matrix[j, i]
        out[i] = total


def test_a_strided_kernel_and_its_mended_form() -> None:
    strided, mended = (kernel.explain(f"({MATRIX}, {VECTOR})") for kernel in (sums_of_rows, sums_of_columns))
    assert strided.form == "loop"
    assert "would be slower" in strided.reason
    assert "one after another" in strided.remark
    assert notes_at(strided, "total +=").startswith("load of float32: gathered")
    assert "so threads run one after another" in strided.findings[0].message
    assert (mended.form, mended.findings, mended.remark) == ("vectors", (), "")
    assert notes_at(mended, "total +=") == "load of float32: contiguous"
    text, html = str(strided), strided._repr_html_()
    assert text.startswith("kernel              sums_of_rows(array(float32, 2d, C), array(float32, 1d, C))\n")
    assert "            total += matrix[i, j]" in text
    assert "what is slow, the worst first:\n  1. line " in text
    assert "if i &lt; out.size:" in html
    assert html.count("<table>") == html.count("</table>") == 3


@hip.jit(device=True)
def twice(value: Any) -> Any:
    return value * 2.1


@hip.jit
def promotes(x: Any, count: Any, out: Any) -> None:
    i = hip.grid(1)
    if i < out.size:
        total = 0.0
        total += x[i]
        out[i] = total
        out[i + 1] = x[i] * 0.1
        out[i + 2] = x[i] * 2.0
        out[i + 3] = x[i] * np.float32(0.1)
        out[i + 4] = x[i] + count[i]
        out[i + 5] = twice(x[i])


def test_where_float32_becomes_float64() -> None:
    told = promotes.explain(f"({VECTOR}, int64[::1], {VECTOR})")
    lines = Path(__file__).read_text().splitlines()
    found = {lines[one.line - 1].strip(): f"{one.what}; {one.instead}" for one in told.promotions}
    assert found == {
        "return value * 2.1": "value is a float32, 2.1 a float64; write np.float32(2.1)",
        "out[i + 1] = x[i] * 0.1": "x[...] is a float32, 0.1 a float64; write np.float32(0.1)",
        "out[i + 4] = x[i] + count[i]": "x[...] is a float32, count[...] an int64: together they are computed as "
        "float64; convert the integer: np.float32(count[...])",
    }, "sums with 0.0 and products with 2.0 are those of float32, and LLVM knows that"
    assert "computed as float64" in messages_at(told, "x[i] * 0.1")


@hip.jit
def private(x: Any, out: Any) -> None:
    i = hip.grid(1)
    small = hip.local.array(2, np.float32)
    table = hip.local.array((2, 4), np.float32)
    small[0] = x[i]
    for j in range(8):
        table[j // 4, j % 4] = small[0] * np.float32(j)
    out[i] = table[0, int(x[i]) & 3]


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
def test_private_arrays(target: str) -> None:
    told = private.explain(f"({VECTOR}, {VECTOR})", target=target)
    small, table = told.private_arrays
    assert (small.name, small.shape, small.nbytes, small.where) == ("small", (2,), 8, "registers")
    assert (table.name, table.shape, table.dtype, table.nbytes) == ("table", (2, 4), "float32", 32)
    if target == "cpu":
        assert "on the stack" in table.where
        assert "the private array table is in memory" in str(told)


@hip.jit
def block_sum(x: Any, out: Any) -> None:
    part = hip.shared.array(4096, np.float32)
    i = hip.threadIdx.x
    part[i] = x[hip.grid(1)]
    hip.syncthreads()
    out[hip.grid(1)] = part[255 - i]


def test_registers_and_occupancy_of_a_gpu() -> None:
    told = block_sum.explain(f"({VECTOR}, {VECTOR})", target="gfx942", block=64)
    needs = told.resources
    assert needs is not None
    assert (needs.lds_bytes, needs.lds_limit, needs.wave_size, needs.most_waves) == (16384, 65536, 64, 8)
    assert (needs.occupancy, needs.limited_by) == (1, "LDS"), "four blocks of one wave have room, on four SIMD units"
    assert needs.vector_registers > 0
    assert needs.scratch_bytes == needs.vector_spills == 0
    assert "1 of 8 waves fit on a SIMD unit, limited by LDS" in told.findings[0].message
    assert notes_at(told, "part[i] =") == "load of float32: contiguous; store of shared float32: contiguous"
    assert "occupancy" in str(told)


@pytest.mark.long
def test_spilled_registers() -> None:
    @hip.jit(max_registers=12)
    def crowded(x: Any, out: Any) -> None:
        i = hip.grid(1)
        a, b, c, d, e, f, g, h = x[i], x[i + 1], x[i + 2], x[i + 3], x[i + 4], x[i + 5], x[i + 6], x[i + 7]
        hip.syncthreads()
        k, m, n, o, p, q, r, s = x[i + 8], x[i + 9], x[i + 10], x[i + 11], x[i + 12], x[i + 13], x[i + 14], x[i + 15]
        hip.syncthreads()
        out[i] = a * k + b * m + c * n + d * o + e * p + f * q + g * r + h * s

    told = crowded.explain("(float64[::1], float64[::1])", target="gfx90a")
    assert told.resources is not None
    assert told.resources.vector_spills > 0
    assert any("registers are spilled" in one.message for one in told.findings)


def test_for_arguments_and_for_the_shape_that_was_launched() -> None:
    x = np.zeros(128, np.float32)
    with pytest.raises(KernelArgumentError, match="3 arguments"):
        accesses.explain(x)
    block_sum[1, 128](x, x)
    told = block_sum.explain(x, x)
    assert (told.form, told.block) == ("regions", (128, 1, 1))
    assert "spmd.barrier" in told.reason
    assert "store of shared float32: contiguous" in notes_at(told, "part[i] =")
    assert [*told.stages] == [
        "type inference", "lowering", "linking and optimising", "choosing the form and vectorising", "LLVM's passes",
        "emitting machine code",
    ]  # fmt: skip
    assert all(seconds > 0 for seconds in told.stages.values())
    with pytest.raises(DeviceFunctionError):
        twice.explain("(float32,)")


def test_warnings_at_the_line() -> None:
    matrix, out = np.zeros((3, 3), np.float32), np.zeros(3, np.float32)
    kernel = hip.jit(sums_of_rows.py_func, fastmath=True)
    kernel[1, 32](matrix, out)
    kernel = hip.jit(sums_of_rows.py_func, fastmath=True)
    with config.performance_warnings.scope(True):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            kernel[1, 32](matrix, out)
        assert {one.category for one in told} == {PerformanceWarning}
        assert "kernel sums_of_rows, the CPU device: as lanes this would be a gather" in str(told[0].message)
        assert {Path(one.filename).name for one in told} == {Path(__file__).name}
        line = Path(__file__).read_text().splitlines()[told[0].lineno - 1]
        assert line.strip() == "total += matrix[i, j]"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            kernel[2, 32](matrix, out)


@hip.jit
def by_the_first(x: Any, places: Any, out: Any) -> None:
    i = hip.grid(1)
    out[i] = x[i] * 2
    if hip.threadIdx.x == 0:
        out[places[i]] = x[places[i]]


def test_what_one_lane_does_is_no_gather() -> None:
    told = by_the_first.explain(f"({VECTOR}, int64[::1], {VECTOR})", block=64)
    assert "store of float32: by one lane" in notes_at(told, "out[places[i]]")
    assert not messages_at(told, "out[places[i]]")


def test_a_kernel_is_explained_for_the_only_signature_that_it_was_compiled_for() -> None:
    @hip.jit
    def double(x: Any, out: Any) -> None:
        i = hip.grid(1)
        if i < out.size:
            out[i] = 2 * x[i]

    with pytest.raises(NotCompiledError, match=r"kernel double .* Pass arguments .* compiled for: none yet"):
        double.explain()
    double[1, 64](np.ones(64, np.float32), np.zeros(64, np.float32))
    told = double.explain()
    assert notes_at(told, "2 * x[i]").startswith("load of float32: contiguous")
    assert told.block == (64, 1, 1)
    assert double[1, 128].explain().block == (128, 1, 1)
    double[1, 64](np.ones(64), np.zeros(64))
    with pytest.raises(NotCompiledError, match=r"float32, 1d, C.*; \(.*float64, 1d, C"):
        double.explain()


@hip.jit(device=True)
def walk_through_array(x: float) -> float:
    kept = hip.local.array(8, np.float64)
    for i in range(8):
        kept[i] = x * i
    total = 0.0
    for i in range(100):
        total += math.sin(kept[int(x + i) % 8] * i) + math.cos(total)
        total += math.exp(kept[int(x + i) % 8] * i) + math.log(total + x)
    return total


def test_a_device_function_that_lanes_call_one_after_another() -> None:
    @hip.jit
    def kernel(values: Any) -> None:
        i = hip.grid(1)
        if i < values.size:
            values[i] = walk_through_array(values[i]) + walk_through_array(2 * values[i])

    told = kernel.explain("(float64[::1],)", block=128)
    assert told.findings[0].message.startswith(
        "the device function walk_through_array is called for one thread after another; with forceinline=True"
    )
