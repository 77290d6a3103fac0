"""Indices of 32 bits: what is known of them in grids with fewer threads than they can count."""

from __future__ import annotations

import pytest
from llvmlite import ir
from spmd_kernels import DECLARATIONS, code

from hip_runtime.drivers.cpu.abi.grid_rules import MOST_OF_SHORT_INDICES, ShortIndices
from hip_runtime.drivers.cpu.abi.narrow_grids import Gangs, NarrowGrids
from hip_runtime.drivers.cpu.finalise import finalise_kernel
from hip_runtime.drivers.cpu.ir.model import Function, Instruction
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.drivers.cpu.ir.reader import read_function
from hip_runtime.drivers.cpu.ir.verifier import find_problems
from hip_runtime.drivers.cpu.llvm_context import LlvmContext
from hip_runtime.drivers.cpu.object_code.program_image import read_program, write_program
from hip_runtime.drivers.cpu.passes.short_indices import bound_short_indices, has_short_indices
from hip_runtime.errors import LaunchError

PARAMETERS = [("out", "ptr"), ("n", "i64")]
KERNEL = """
define void @k(ptr noalias %item, ptr noalias %out, i64 %n) {{
entry:
  %b = call i32 @spmd.block_idx.x(ptr %item)
  %d = call i32 @spmd.block_dim.x(ptr %item)
  %g = call i32 @spmd.grid_dim.x(ptr %item)
  %t = call i32 @spmd.thread_idx.x(ptr %item)
  {product}
  {index}
  %negative = icmp slt i32 %i, 0
  %add = select i1 %negative, i64 %n, i64 0
  %start = getelementptr i32, ptr %out, i64 %add
  %long = sext i32 %i to i64
  %q = getelementptr i32, ptr %start, i64 %long
  store i32 1, ptr %q
  ret void
}}
"""
PRODUCT = "%p = mul i32 %b, 256"
SUM = "%i = add i32 %p, %t"

BOUNDED = {
    "the index of a thread": (PRODUCT, SUM),
    "a shifted product": ("%p = shl i32 %b, 8", SUM),
    "the number of threads": ("%p = mul i32 %g, 256", "%i = add i32 %p, -1"),
    "a product with less": ("%p = mul i32 %b, 100", SUM),
}
MAY_BE_NEGATIVE = {
    "one before": (PRODUCT, "%s = add i32 %p, %t\n  %i = add i32 %s, -1"),
    "a product with more": ("%p = mul i32 %b, 300", SUM),
    "a sum with an argument": (PRODUCT, "%m = trunc i64 %n to i32\n  %i = add i32 %p, %m"),
    "a place in the block": (PRODUCT, "%i = add i32 %t, -100"),
    "a negative product": ("%p = mul i32 %b, -256", SUM),
}
NOT_SHORT = {
    "what cannot wrap around": ("%p = mul nsw i32 %b, 256", SUM),
    "no product": ("%p = add i32 %b, %g", SUM),
    "a product of 64 bits": ("%w = zext i32 %b to i64\n  %p = mul i64 %w, 256", "%i = add i32 %b, %t"),
}


def read(case: tuple[str, str]) -> Function:
    product, index = case
    module = LlvmContext().read_text(KERNEL.format(product=product, index=index) + DECLARATIONS)
    return read_function(PrintedModule(module), "k", ir.Context())


def named(function: Function, name: str) -> Instruction:
    (found,) = (value for value in function.instructions() if value.name == name)
    return found


@pytest.mark.parametrize("case", BOUNDED)
def test_an_index_that_is_bounded(case: str) -> None:
    function = read(BOUNDED[case])
    assert has_short_indices(function)
    bound_short_indices(function, (256, 1, 1))
    assert not list(find_problems(function))
    assert "nsw" in named(function, "p").flags
    assert "nsw" in named(function, "i").flags
    assert {"icmp", "select"}.isdisjoint(value.opcode for value in function.instructions())
    assert named(function, "q").operands[0] is function.arguments[1]


@pytest.mark.parametrize("case", MAY_BE_NEGATIVE)
def test_an_index_that_may_be_negative(case: str) -> None:
    function = read(MAY_BE_NEGATIVE[case])
    assert has_short_indices(function)
    bound_short_indices(function, (256, 1, 1))
    assert not list(find_problems(function))
    assert {"icmp", "select"} <= {value.opcode for value in function.instructions()}


def test_what_may_wrap_around_is_not_marked() -> None:
    function = read(MAY_BE_NEGATIVE["a product with more"])
    bound_short_indices(function, (256, 1, 1))
    assert not named(function, "p").flags
    assert not named(function, "i").flags


@pytest.mark.parametrize("case", NOT_SHORT)
def test_other_kernels(case: str) -> None:
    assert not has_short_indices(read(NOT_SHORT[case]))


def test_grids() -> None:
    rule = ShortIndices("k", None)
    assert rule.for_blocks((256, 1, 1))((MOST_OF_SHORT_INDICES // 256, 1, 1), b"") is None
    assert rule.for_blocks((1024, 8, 1))((1, MOST_OF_SHORT_INDICES // 8, 2), b"") is None
    for grid, block, axis in (((1 << 23, 1, 1), (256, 1, 1), "x"), ((1, 1 << 28, 1), (4, 8, 1), "y")):
        with pytest.raises(LaunchError, match=rf"kernel 'k'.*2147483648 threads along {axis}"):
            rule.for_blocks(block)(grid, b"")


def test_narrow_grids_have_other_gangs_as_before() -> None:
    narrow = NarrowGrids(axis=1, other=0, width=16, least=5, rows=64, lanes=8)
    rule = ShortIndices("k", narrow)
    for grid in ((8, 1, 1), (8, 2, 1), (8, 8, 1)):
        assert rule.for_blocks((16, 3, 1))(grid, b"") == narrow.for_blocks((16, 3, 1))(grid, b"")
    assert rule.for_blocks((16, 3, 1))((8, 1, 1), b"") == Gangs(0)


def test_a_program_that_was_kept_says_so() -> None:
    for cases, expected in ((BOUNDED, True), (NOT_SHORT, False)):
        product, index = next(iter(cases.values()))
        kernels = code(KERNEL.format(product=product, index=index), "k", PARAMETERS)
        made = finalise_kernel(kernels, kernels.kernels[0], (256, 1, 1))
        assert made.has_short_indices is expected
        assert read_program(write_program(made)).has_short_indices is expected
