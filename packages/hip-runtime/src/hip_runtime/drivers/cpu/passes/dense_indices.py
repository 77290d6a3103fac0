"""A version of a kernel for arrays whose rows follow one another without a gap, see `analyses.dense_rows`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.dense_rows import JoinedAddress, find_joined, find_lengths
from hip_runtime.drivers.cpu.analyses.divisions import Product, product_of
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I8, I64, PTR
from hip_runtime.drivers.cpu.passes.known_values import replace_known
from hip_runtime.drivers.cpu.passes.quotient_bounds import MOST_OFFSET, compare_dividends
from hip_runtime.drivers.cpu.passes.remove_unused import remove_unused
from hip_runtime.drivers.cpu.passes.written_remainders import write_remainder

MOST_LENGTH = 1 << 47
"""Elements of a row at most: more than memory has."""

_MOST_PRODUCT = (1 << 63) - MOST_OFFSET
"""Elements of a plane at most: their number does not overflow even if one of its factors is `MOST_OFFSET` more."""

_MOST_INDEX, _MOST_SHORT = 1 << 42, (1 << 31) - 1
"""More than the threads of a grid along an axis, and its most blocks."""


@dataclass(frozen=True)
class DenseVersion:
    """A copy of a kernel for launches in which *lengths* are 1 to `MOST_LENGTH`, the arguments in *rows* are the
    distances of dense rows, with what they are then, and *products* of numbers that are not negative do not overflow,
    even if they are some more."""

    function: Function
    lengths: frozenset[Argument]
    rows: Mapping[Argument, Product]
    products: frozenset[Product]


def assume_dense_rows(function: Function, size_of: SizeOf) -> DenseVersion | None:
    """The version of *function* for dense rows; ``None`` if it accesses none by quotients."""
    if not any(value.opcode in _DIVIDES for value in function.instructions()):
        return None
    copied = replace(function, blocks=list(copy_blocks(function.blocks).blocks.values()))
    products = find_lengths(copied)
    lengths = {argument for product in products for argument in product.arguments}
    ranges = _learn(copied, lengths, products)
    _write_remainders(copied, ranges)
    _drop_signs(copied, ranges)
    rows: dict[Argument, Product] = {}
    joined: list[JoinedAddress] = []
    for address in find_joined(copied, size_of):
        if all(rows.get(distance, row) == row for distance, row in address.rows.items()):
            rows.update(address.rows)
            joined.append(address)
    if not joined:
        return None
    for address in joined:
        _write(copied, address)
    products |= compare_dividends(copied, ranges)
    replace_known(copied, ranges)
    remove_unused(copied)
    return DenseVersion(copied, frozenset(lengths), rows, frozenset(products))


_DIVIDES = frozenset({"sdiv", "udiv", "lshr"})


def _learn(function: Function, lengths: set[Argument], products: set[Product]) -> KnownRanges:
    """Drop what *function* does for rows of other *lengths*, or planes of other *products* of such, and for negative
    indices that cannot be. Returns the ranges of its values."""
    ranges = KnownRanges()
    for length in lengths:
        ranges.learn(length, (1, MOST_LENGTH))
    for value in function.instructions():
        if value.callee in _INDICES:
            ranges.learn(value, (0, _MOST_INDEX if value.type == I64 else _MOST_SHORT))
        elif value.callee in intrinsics.EXTENTS:
            ranges.learn(value, (1, _MOST_SHORT))
        elif value.opcode == "mul" and value.type == I64 and product_of(value) in products:
            ranges.learn(value, (1, _MOST_PRODUCT))
    replace_known(function, ranges)
    return ranges


_INDICES = frozenset(
    name(axis) for axis in spmd.AXES for name in (spmd.thread_idx, spmd.block_idx, intrinsics.global_idx)
)  # fmt: skip


def _write_remainders(function: Function, ranges: KnownRanges) -> None:
    """Replace remainders that *function* computes from quotients, ``i - i // width * width``; their *ranges* are
    recorded, and what these decide is replaced, too, such as what Python does for quotients of negative ones."""
    while any(write_remainder(value) for value in function.instructions()):
        replace_known(function, ranges)


def _drop_signs(function: Function, ranges: KnownRanges) -> None:
    """Have divisions of numbers that are not negative by such, as *ranges* tell, be the same in any case."""
    for value in function.instructions():
        if value.opcode in _UNSIGNED and all(
            known is not None and known[0] >= 0 for known in map(ranges.of, value.operands)
        ):
            value.opcode, value.flags = _UNSIGNED[value.opcode], ()


_UNSIGNED = {"sdiv": "udiv", "srem": "urem"}


def _write(function: Function, address: JoinedAddress) -> None:
    """Have the access of *address* use that."""
    access = address.access
    (home,) = (block for block in function.blocks if access in block.instructions)
    made: list[Instruction] = []
    bases = [value for (value, _), scale in address.terms if value.type == PTR and scale == 1]
    pointer: Value = bases[0]
    offsets: list[Value] = [constant(I64, address.offset)] if address.offset else []
    for (value, arguments), scale in address.terms:
        if value is not pointer:
            factors = [*arguments, *([constant(I64, scale)] if scale != 1 else [])]
            offsets.append(_multiply(value, factors, made))
    for offset in offsets:
        made.append(Instruction(PTR, "getelementptr", [pointer, offset], "dense", source_type=I8))
        pointer = made[-1]
    place = home.instructions.index(access)
    home.instructions[place:place] = made
    access.operands = [*access.operands[:-1], pointer]


def _multiply(value: Value, factors: Sequence[Value], made: list[Instruction]) -> Value:
    for factor in factors:
        value = Instruction(I64, "mul", [value, factor], "scaled")
        made.append(value)
    return value
