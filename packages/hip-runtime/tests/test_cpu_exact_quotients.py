"""Integers that are divided as float64 for their integer quotient: which are divided as integers, and the results."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.verifier import find_problems
from hip_runtime.drivers.cpu.passes.exact_quotients import divide_as_integers

KERNEL = """
define void @k(ptr noalias %item, ptr %out, ptr %numbers, i64 %n, i32 %m) {{
entry:
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %d = call i32 @spmd.block_dim.x(ptr %item), !range !0
  %wt = zext i32 %t to i64
  %wb = zext i32 %b to i64
  %wd = zext nneg i32 %d to i64
  %begin = mul nuw nsw i64 %wb, %wd
  %i = add nuw nsw i64 %begin, %wt
  %from = getelementptr i64, ptr %numbers, i64 %i
  %x = load i64, ptr %from
  %s = trunc i64 %x to i32
  {lines}
  %to = getelementptr i64, ptr %out, i64 %i
  store i64 %r, ptr %to
  ret void
}}
!0 = !{{i32 1, i32 1025}}
!1 = !{{i64 1, i64 0}}
declare i64 @spmd.dynamic_shared_bytes(ptr)
declare double @llvm.floor.f64(double)
declare double @llvm.ceil.f64(double)
declare double @llvm.rint.f64(double)
"""
SATURATED = """
  %above = fcmp ogt double %q, 0xC3E0000000000000
  %lower = select i1 %above, double %q, double 0xC3E0000000000000
  %below = fcmp olt double %lower, 0x43DFFFFFFFFFFFFF
  %clamped = select i1 %below, double %lower, double 0x43DFFFFFFFFFFFFF
  %whole = fptosi double %clamped to i64
  %exceeds = fcmp oge double %q, 0x43E0000000000000
  %largest = select i1 %exceeds, i64 9223372036854775807, i64 %whole
  %number = fcmp ord double %q, 0.000000e+00
  %r = select i1 %number, i64 %largest, i64 0"""
NARROW = """
  %whole = fptosi double %q to i32
  %r = sext i32 %whole to i64"""
BY_BLOCK = "%a = uitofp nneg i64 %i to double\n  %c = uitofp nneg i32 %d to double\n  %q = fdiv double %a, %c"
OF_INT32 = "%a = sitofp i32 %s to double\n  %q = fdiv double %a, {divisor}"

DIVIDED = {
    "the index by the length of a block": BY_BLOCK + SATURATED,
    "an int32 by 7": OF_INT32.format(divisor="7.000000e+00") + SATURATED,
    "an int32 by 7, to an int64": OF_INT32.format(divisor="7.000000e+00") + "\n  %r = fptosi double %q to i64",
    "half an int32": "%a = sitofp i32 %s to double\n  %q = fmul double %a, 5.000000e-01" + SATURATED,
    "a 64th of the index": "%a = sitofp i64 %i to double\n  %q = fmul double %a, 1.562500e-02" + SATURATED,
    "a difference of int32": (
        "%w = sext i32 %s to i64\n  %e = sub i64 %w, %i\n  %a = sitofp i64 %e to double\n"
        "  %q = fdiv double %a, 3.000000e+00" + SATURATED
    ),
    "a product of int32": (
        "%w = sext i32 %s to i64\n  %e = shl i64 %w, 20\n"
        "  %a = sitofp i64 %e to double\n  %q = fdiv double %a, 1.000000e+01" + SATURATED
    ),
    "an int32 that wraps around": (
        "%e = mul i32 %s, %s\n  %a = sitofp i32 %e to double\n  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
    "what an int64 leaves": (
        "%e = srem i64 %x, 6300\n  %a = sitofp i64 %e to double\n  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
    "what one without a sign leaves": (
        "%e = urem i64 %x, 6300\n  %a = sitofp i64 %e to double\n  %q = fdiv double %a, 9.000000e+01" + SATURATED
    ),
    "a quotient of the index": (
        "%e = sdiv i64 %i, -3\n  %a = sitofp i64 %e to double\n  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
}
LEFT = {
    "what an int64 leaves of a large number": (
        "%e = srem i64 %x, 9007199254740994\n  %a = sitofp i64 %e to double\n"
        "  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
    "a quotient of an int64": (
        "%e = sdiv i64 %x, 90\n  %a = sitofp i64 %e to double\n  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
    "an int64": "%a = sitofp i64 %x to double\n  %q = fdiv double %a, 7.000000e+00" + SATURATED,
    "what is not exact": (
        "%w = sext i32 %s to i64\n  %e = shl i64 %w, 30\n  %a = sitofp i64 %e to double\n"
        "  %q = fdiv double %a, 3.000000e+00" + SATURATED
    ),
    "by what may be 0": "%c = sitofp i32 %m to double\n  " + OF_INT32.format(divisor="%c") + SATURATED,
    "by a negative number": OF_INT32.format(divisor="-7.000000e+00") + SATURATED,
    "by a fraction": OF_INT32.format(divisor="2.500000e+00") + SATURATED,
    "times a fraction": "%a = sitofp i32 %s to double\n  %q = fmul double %a, 3.000000e-01" + SATURATED,
    "times 2": "%a = sitofp i32 %s to double\n  %q = fmul double %a, 2.000000e+00" + SATURATED,
    "to what may be too narrow": (
        "%w = sext i32 %s to i64\n  %e = shl i64 %w, 8\n  %a = sitofp i64 %e to double\n"
        "  %q = fdiv double %a, 3.000000e+00" + NARROW
    ),
    "what is anything but 0": (
        "%e = call i64 @spmd.dynamic_shared_bytes(ptr %item), !range !1\n  %a = sitofp i64 %e to double\n"
        "  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
    "a sum that wraps around": (
        "%e = mul i64 %i, 4611686018427387904\n  %f = mul i64 %e, 7\n  %a = sitofp i64 %f to double\n"
        "  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
    "an integer without a sign": (
        "%e = sub i64 %i, 100\n  %a = uitofp i64 %e to double\n  %q = fdiv double %a, 7.000000e+00" + SATURATED
    ),
}
BY_ARGUMENT = """%e = sub nsw i64 %i, {less}
  %a = sitofp i64 %e to double
  %c = sitofp {kind} {divisor} to double
  %q = fdiv double %a, %c"""
GUARDED = {
    "by an int64": BY_ARGUMENT.format(less=100, kind="i64", divisor="%n") + SATURATED,
    "by an int32": BY_ARGUMENT.format(less=0, kind="i32", divisor="%m") + SATURATED,
    "to an int32": (
        BY_ARGUMENT.format(less=100, kind="i32", divisor="%m") + SATURATED.replace("%r =", "%v =")
        + "\n  %narrow = trunc i64 %v to i32\n  %r = sext i32 %narrow to i64"
    ),
    "with a test that is spread": (
        BY_ARGUMENT.format(less=100, kind="i64", divisor="%n") + SATURATED.replace("%r =", "%v =")
        + "\n  %large = fcmp oge double %q, 0x43E0000000000000\n  %all = sext i1 %large to i64\n  %w = add i64 %all, 0"
        + "\n  %r = or i64 %v, %w"
    ),
    "with tests of its own": (
        BY_ARGUMENT.format(less=100, kind="i64", divisor="%n") + SATURATED.replace("%r =", "%v =")
        + "\n  %large = fcmp ult double %q, 0x43E0000000000000\n  %r = select i1 %large, i64 %v, i64 -5"
    ),
}  # fmt: skip
BLOCKS, THREADS = 5, 48


def _read(lines: str) -> Function:
    text = KERNEL.format(lines=lines) + DECLARATIONS
    return read_function(PrintedModule(llvm.parse_assembly(text)), "k", ir.Context())


@pytest.mark.parametrize("lines", DIVIDED.values(), ids=DIVIDED)
def test_what_is_exact_is_divided_as_integers(lines: str) -> None:
    function = _read(lines)
    assert divide_as_integers(function)
    opcodes = [value.opcode for value in function.instructions()]
    assert "sdiv" in opcodes
    assert not {"fdiv", "fmul", "fcmp", "fptosi", "select"} & set(opcodes)
    assert not list(find_problems(function))


@pytest.mark.parametrize("lines", LEFT.values(), ids=LEFT)
def test_other_quotients_stay(lines: str) -> None:
    function = _read(lines)
    before = [value.opcode for value in function.instructions()]
    assert not divide_as_integers(function)
    assert [value.opcode for value in function.instructions()] == before


@pytest.mark.parametrize("form", ["loop", "vectors", "regions"])
@pytest.mark.parametrize("lines", DIVIDED.values(), ids=DIVIDED)
def test_results_are_those_of_float64(device: Device, lines: str, form: str) -> None:
    edges = [0, 1, -1, 6, 7, 8, -6, -7, -8, 2**31 - 1, -(2**31), 2**31 - 2, 1 - 2**31, 127, 128, -127, -128]
    drawn = np.random.default_rng(3).integers(-(2**31), 2**31, BLOCKS * THREADS - len(edges))
    numbers = np.array([*edges, *drawn], np.int64)
    index = np.arange(numbers.size)
    quotients = {
        "the index by the length of a block": index / THREADS,
        "half an int32": numbers / 2,
        "a 64th of the index": index / 64,
        "a difference of int32": (numbers - index) / 3,
        "a product of int32": (numbers << 20) / 10,
        "an int32 that wraps around": (numbers * numbers).astype(np.int32) / 7,
        "what an int64 leaves": np.fmod(numbers, 6300) / 7,
        "what one without a sign leaves": numbers.view(np.uint64) % np.uint64(6300) / 90,
        "a quotient of the index": np.trunc(index / -3) / 7,
    }
    name = next(name for name, text in DIVIDED.items() if text is lines)
    expected = np.trunc(quotients.get(name, numbers / 7)).astype(np.int64)
    parameters = [("out", "ptr"), ("numbers", "ptr"), ("n", "i64"), ("m", "i32")]
    function = device.load(code(KERNEL.format(lines=lines), "k", parameters)).function("k")
    with config.cpu_form.scope(form):
        given, out = to_device(numbers), to_device(np.zeros_like(numbers))
        function.launch(BLOCKS, THREADS, pack(function.kernel, out.address, given.address, 9, 9))
        np.testing.assert_array_equal(out.copy_to_host(), expected)


@pytest.mark.parametrize("lines", GUARDED.values(), ids=GUARDED)
def test_divisors_that_may_be_zero_are_tested_once(lines: str) -> None:
    function = _read(lines)
    assert divide_as_integers(function)
    opcodes = [value.opcode for value in function.instructions()]
    assert opcodes.count("sdiv") == 1
    assert not {"fdiv", "fcmp", "fptosi"} & set(opcodes)
    assert not list(find_problems(function))


@pytest.mark.parametrize("form", ["loop", "vectors", "regions"])
@pytest.mark.parametrize("divisor", [0, 1, -1, 7, -7, 1000, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("case", GUARDED)
@pytest.mark.sample(12)
def test_what_becomes_of_zero_is_that_of_float64(device: Device, case: str, divisor: int, form: str) -> None:
    dividends = np.arange(BLOCKS * THREADS) - (0 if case == "by an int32" else 100)
    if divisor:
        expected = np.trunc(dividends / divisor).astype(np.int64)
    else:
        expected = np.select([dividends > 0, dividends < 0], [2**63 - 1, -(2**63)], 0)
        if case == "to an int32":
            expected = expected.astype(np.int32).astype(np.int64)
        if case == "with a test that is spread":
            expected[dividends > 0] = -1
        if case == "with tests of its own":
            expected[dividends > 0] = -5
    parameters = [("out", "ptr"), ("numbers", "ptr"), ("n", "i64"), ("m", "i32")]
    function = device.load(code(KERNEL.format(lines=GUARDED[case]), "k", parameters)).function("k")
    with config.cpu_form.scope(form):
        out = to_device(np.zeros_like(expected))
        function.launch(BLOCKS, THREADS, pack(function.kernel, out.address, out.address, divisor, divisor))
        np.testing.assert_array_equal(out.copy_to_host(), expected)


ROUNDED = (
    "%a = uitofp nneg i64 %i to double\n  %c = sitofp i64 {divisor} to double\n  %p = fdiv double %a, %c\n"
    "  %q = call double @llvm.{rounding}.f64(double %p)" + SATURATED
)


@pytest.mark.parametrize("rounding", ["floor", "ceil"])
def test_what_is_rounded_is_divided_as_integers(rounding: str) -> None:
    function = _read(ROUNDED.format(rounding=rounding, divisor="%n"))
    assert divide_as_integers(function)
    assert not {"fdiv", "fptosi", f"llvm.{rounding}.f64"} & {
        name for value in function.instructions() for name in (value.opcode, value.callee)
    }
    assert not list(find_problems(function))


def test_what_is_rounded_to_even_or_may_be_negative_stays() -> None:
    assert not divide_as_integers(_read(ROUNDED.format(rounding="rint", divisor="%n")))
    assert not divide_as_integers(
        _read(ROUNDED.format(rounding="floor", divisor="%n").replace("uitofp nneg", "sitofp"))
    )


def test_quotients_of_several_roundings() -> None:
    both = SATURATED.replace("%r =", "%v =") + "\n  %z = fptosi double %p to i64\n  %r = sub i64 %v, %z"
    function = _read(ROUNDED.format(rounding="ceil", divisor="%wd").replace(SATURATED, both))
    assert divide_as_integers(function)
    assert [value.opcode for value in function.instructions()].count("sdiv") == 2


@pytest.mark.parametrize("form", ["loop", "vectors", "regions"])
@pytest.mark.parametrize("divisor", [0, 1, -1, 7, -7, 1000, -1000, 2**53 + 2, -(2**53) - 2, 2**63 - 1, -(2**63)])
@pytest.mark.parametrize("rounding", ["floor", "ceil"])
@pytest.mark.sample(12)
def test_rounded_quotients_are_those_of_float64(device: Device, rounding: str, divisor: int, form: str) -> None:
    index = np.arange(BLOCKS * THREADS)
    if divisor:
        expected = getattr(np, rounding)(index / float(divisor)).astype(np.int64)
    else:
        expected = np.where(index > 0, 2**63 - 1, 0)
    parameters = [("out", "ptr"), ("numbers", "ptr"), ("n", "i64"), ("m", "i32")]
    text = KERNEL.format(lines=ROUNDED.format(rounding=rounding, divisor="%n"))
    function = device.load(code(text, "k", parameters)).function("k")
    with config.cpu_form.scope(form):
        out = to_device(np.zeros_like(expected))
        function.launch(BLOCKS, THREADS, pack(function.kernel, out.address, out.address, divisor, 0))
        np.testing.assert_array_equal(out.copy_to_host(), expected)


def test_quotients_that_are_used_as_such_stay() -> None:
    function = _read(BY_BLOCK + SATURATED + "\n  %fraction = bitcast double %q to i64\n  store i64 %fraction, ptr %out")
    assert not divide_as_integers(function)


def test_a_spread_test_of_an_infinite_quotient_is_all_ones() -> None:
    function = _read(GUARDED["with a test that is spread"])
    assert divide_as_integers(function)
    chosen = {
        signed_number(operand)
        for value in function.instructions()
        if value.opcode == "select"
        for operand in value.operands[1:]
    }
    assert -1 in chosen
