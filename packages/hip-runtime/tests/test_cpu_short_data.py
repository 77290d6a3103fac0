"""What is computed from loaded data with 32 bits instead of 64, compared with Python."""

from __future__ import annotations

import random
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, GLOBAL_X, code, pack

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.ir.model import Function
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused
from hip_runtime.drivers.cpu.passes.short_data import shorten_data

THREADS = 96
KINDS = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
INPUTS = 4
LONG = ((1 << 31), (1 << 32) - 1, (1 << 32) + 1, 1 << 40)
"""Numbers that have more than 32 bits, with a sign."""

HEAD = f"""
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.abs.i64(i64, i1)
define void @k(ptr noalias %item, ptr noalias %out, ptr noalias %low, ptr noalias %real, ptr noalias %in) {{
entry:
{GLOBAL_X}
"""


class Program:
    """Random code on numbers of 64 bits that are made of loaded ones, and what Python computes."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.conversion = self.random.choice(["sitofp", "uitofp"])
        self.lines: list[str] = []
        self.inputs: list[tuple[str, bool]] = []
        self.formulas: dict[str, Any] = {}
        for number in range(INPUTS):
            self._load(number)
        for number in range(self.random.randint(3, 14)):
            self._compute(f"%v{number}")

    def _load(self, number: int) -> None:
        kind, signed = self.random.choice(list(KINDS)), self.random.random() < 0.5
        self.inputs.append((kind, signed))
        self.lines += [
            f"%p{number} = getelementptr [{INPUTS} x i64], ptr %in, i64 %i, i64 {number}",
            f"%l{number} = load {kind}, ptr %p{number}",
            f"%x{number} = {'sext' if signed else 'zext'} {kind} %l{number} to i64",
        ]
        self.formulas[f"%x{number}"] = lambda values: values[number]

    def _operand(self) -> tuple[str, Any]:
        if self.random.random() < 0.2:
            number = self.random.choice([0, 1, 2, 7, 255, -1, -9, 1 << 16, -(1 << 31), *LONG])
            return str(number), lambda values: number
        name = self.random.choice(list(self.formulas)[-6:])
        return name, self.formulas[name]

    def _compute(self, result: str) -> None:
        (left, one), (right, other) = self._operand(), self._operand()
        by = self.random.choice([1, 2, 3, 27, 100, *LONG])
        choices = [
            (f"add i64 {left}, {right}", lambda v: one(v) + other(v)),
            (f"sub i64 {left}, {right}", lambda v: one(v) - other(v)),
            (f"mul i64 {left}, {right}", lambda v: one(v) * other(v)),
            (f"and i64 {left}, {right}", lambda v: one(v) & other(v)),
            (f"or i64 {left}, {right}", lambda v: one(v) | other(v)),
            (f"xor i64 {left}, {right}", lambda v: one(v) ^ other(v)),
            (f"shl i64 {left}, {by % 7}", lambda v: one(v) << by % 7),
            (f"ashr i64 {left}, {by % 64}", lambda v: one(v) >> by % 64),
            (f"ashr i64 {left}, 63", lambda v: one(v) >> 63),
            (f"lshr i64 {left}, {by % 7}", lambda v: one(v) % 2**64 >> by % 7),
            (f"sdiv i64 {left}, {by}", lambda v: abs(one(v)) // by * (-1 if one(v) < 0 else 1)),
            (f"srem i64 {left}, {by}", lambda v: abs(one(v)) % by * (-1 if one(v) < 0 else 1)),
            (f"udiv i64 {left}, {by}", lambda v: one(v) % 2**64 // by),
            (f"urem i64 {left}, {by}", lambda v: one(v) % 2**64 % by),
            (f"call i64 @llvm.smax.i64(i64 {left}, i64 {right})", lambda v: max(one(v), other(v))),
            (f"call i64 @llvm.smin.i64(i64 {left}, i64 {right})", lambda v: min(one(v), other(v))),
            (f"call i64 @llvm.umax.i64(i64 {left}, i64 {right})", lambda v: max(one(v) % 2**64, other(v) % 2**64)),
            (f"call i64 @llvm.umin.i64(i64 {left}, i64 {right})", lambda v: min(one(v) % 2**64, other(v) % 2**64)),
            (f"call i64 @llvm.abs.i64(i64 {left}, i1 false)", lambda v: abs(one(v))),
            self._select(result, (left, one), (right, other)),
            *self._mix(result, (left, one), (right, other)),
        ]
        text, formula = self.random.choice(choices)
        self.lines.append(f"{result} = {text}")
        self.formulas[result] = lambda values: wrap(formula(values))

    def _select(self, result: str, one: tuple[str, Any], other: tuple[str, Any]) -> tuple[str, Any]:
        (left, first), (right, second) = one, other
        predicate, compare = self.random.choice([
            ("slt", lambda a, b: a < b), ("ult", lambda a, b: a % 2**64 < b % 2**64), ("eq", lambda a, b: a == b),
            ("uge", lambda a, b: a % 2**64 >= b % 2**64), ("sle", lambda a, b: a <= b),
        ])  # fmt: skip
        self.lines.append(f"{result}.c = icmp {predicate} i64 {left}, {right}")
        text = f"select i1 {result}.c, i64 {left}, i64 {right}"
        return text, lambda v: first(v) if compare(first(v), second(v)) else second(v)

    def _mix(self, result: str, one: tuple[str, Any], other: tuple[str, Any]) -> list[tuple[str, Any]]:
        """What is computed of combined bits, of which LLVM hardly knows how large they are, and of a long number."""
        (left, first), (right, second) = one, other
        self.lines.append(f"{result}.m = xor i64 {left}, {right}")
        mixed, by = f"{result}.m", self.random.choice(LONG)
        return [
            (f"sdiv i64 {mixed}, {by}", lambda v: abs(first(v) ^ second(v)) // by * sign(first(v) ^ second(v))),
            (f"srem i64 {mixed}, {by}", lambda v: abs(first(v) ^ second(v)) % by * sign(first(v) ^ second(v))),
            (f"call i64 @llvm.smin.i64(i64 {mixed}, i64 {by})", lambda v: min(first(v) ^ second(v), by)),
            (f"call i64 @llvm.smax.i64(i64 {mixed}, i64 {-by})", lambda v: max(first(v) ^ second(v), -by)),
        ]

    def text(self) -> str:
        """The kernel: it stores the last number, its low 16 bits, and the one before it as a float."""
        *_, before, last = self.formulas
        return "\n".join(
            [
                HEAD,
                *self.lines,
                f"""
  %low16 = trunc i64 {last} to i16
  %as.real = {self.conversion} i64 {before} to double
  %po = getelementptr i64, ptr %out, i64 %i
  store i64 {last}, ptr %po
  %pl = getelementptr i16, ptr %low, i64 %i
  store i16 %low16, ptr %pl
  %pr = getelementptr double, ptr %real, i64 %i
  store double %as.real, ptr %pr
  ret void
}}
""",
            ]
        )


def sign(number: int) -> int:
    """-1 if *number* is negative, else 1."""
    return -1 if number < 0 else 1


def wrap(number: int) -> int:
    """*number* with 64 bits and a sign."""
    return (number + 2**63) % 2**64 - 2**63


def make_inputs(program: Program, seed: int) -> tuple[np.ndarray[Any, Any], list[list[int]]]:
    """The bytes of what each thread loads, and the numbers that these are."""
    generator = np.random.default_rng(seed)
    whole = generator.integers(-(2**63), 2**63 - 1, (THREADS, INPUTS))
    whole[generator.random(whole.shape) < 0.2] = 0
    whole[generator.random(whole.shape) < 0.1] = -1
    whole[generator.random(whole.shape) < 0.1] = 0x80008080 - (1 << 32)
    columns = []
    for number, (kind, signed) in enumerate(program.inputs):
        dtype = np.dtype(KINDS[kind] if signed else f"u{np.dtype(KINDS[kind]).name}")
        columns.append(whole[:, number].astype(f"u{dtype.itemsize}").view(dtype).tolist())
    return whole, [list(row) for row in zip(*columns, strict=True)]


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(200))
def test_random_programs(device: Device, seed: int) -> None:
    program = Program(seed)
    whole, rows = make_inputs(program, seed)
    parameters = [(name, "ptr") for name in ("out", "low", "real", "in")]
    out, low = np.zeros(THREADS, np.int64), np.zeros(THREADS, np.int16)
    there = [to_device(array) for array in (out, low, out.astype(float), whole)]
    with config.cpu_form.scope("vectors"):
        function = device.load(code(program.text(), "k", parameters)).function("k")
        function.launch(2, THREADS // 2, pack(function.kernel, *(array.address for array in there)))
    *_, before, last = program.formulas.values()
    expected = [last(row) for row in rows]
    np.testing.assert_array_equal(there[0].copy_to_host(), expected)
    np.testing.assert_array_equal(there[1].copy_to_host(), np.array(expected).astype(np.int16))
    np.testing.assert_array_equal(
        there[2].copy_to_host(),
        [float(before(row) % 2**64 if program.conversion == "uitofp" else before(row)) for row in rows],
    )


def read(body: str) -> Function:
    text = f"""
declare i32 @spmd.thread_idx.x(ptr)
define void @k(ptr %item, ptr %in, ptr %out) {{
entry:
  %l = load i16, ptr %in
  %x = sext i16 %l to i64
{body}
  store i64 %r, ptr %out
  ret void
}}
"""
    return read_function(PrintedModule(llvm.parse_assembly(text, llvm.create_context())), "k", ir.Context())


_SHOWN = frozenset({"add", "mul", "lshr", "srem"})


def widths(function: Function) -> dict[str, int]:
    """How many bits the operations of *function* have, by opcode."""
    return {value.opcode: value.type.width for value in function.instructions() if value.opcode in _SHOWN}


@pytest.mark.parametrize(("body", "expected"), [
    ("%r = add i64 %x, 5", {"add": 32}),
    ("%s = mul i64 %x, %x\n %r = add i64 %s, %s", {"mul": 32, "add": 64}),  # the square of -32768, twice
    ("%r = mul i64 %x, 65536", {"mul": 32}),
    ("%r = mul i64 %x, 65537", {"mul": 64}),
    ("%r = srem i64 %x, 7", {"srem": 32}),
    ("%r = srem i64 %x, 2147483648", {"srem": 64}),  # as a number of 32 bits, it has a sign
    ("%r = srem i64 %x, 4294967297", {"srem": 64}),  # and this is 1
    ("%q = sdiv i64 %x, 3\n %r = lshr i64 %q, 1", {"lshr": 64}),
    ("%q = and i64 %x, 255\n %r = lshr i64 %q, 1", {"lshr": 32}),
    ("%t = call i32 @spmd.thread_idx.x(ptr %item)\n %w = zext i32 %t to i64\n %r = add i64 %w, 5", {"add": 64}),
    ("%t = call i32 @spmd.thread_idx.x(ptr %item)\n %w = zext i32 %t to i64\n %r = add i64 %w, %x", {"add": 64}),
])  # fmt: skip
def test_what_fits_and_is_data(body: str, expected: dict[str, int]) -> None:
    function = read(body)
    shorten_data(function)
    remove_unused(function)
    assert widths(function) == expected


def test_most_random_programs_are_shortened() -> None:
    found = []
    for seed in range(60):
        module = llvm.parse_assembly(Program(seed).text() + DECLARATIONS, llvm.create_context())
        found.append(shorten_data(read_function(PrintedModule(module), "k", ir.Context())))
    assert sum(found) > 20
