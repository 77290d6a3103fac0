"""Arguments that are distances between elements of an array, and what they probably are.

The innermost extents of an image or of an array of records are arguments like any other, so that neighbours along the
last axis but one lie at a distance that is known at run time only. How far the elements reach that a kernel accesses at
one place, as the three colours of a pixel, tells what the distance is where these are all that there is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.cfg import Order, order_function
from hip_runtime.drivers.cpu.analyses.shape_rules import MAX_STRIDE
from hip_runtime.drivers.cpu.analyses.trip_counts import count_iterations
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.clone import copy_blocks
from hip_runtime.drivers.cpu.ir.model import Argument, Block, Constant, Function, Instruction, Value

_THREADS = frozenset(name(axis) for axis in "xyz" for name in (spmd.thread_idx, intrinsics.global_idx))

_COLOURS = 3
"""What a loop over the last axis of an array of bytes with three axes probably runs through."""

_MOST_TERMS = 16
"""Addresses are sums of at most so many terms."""


@dataclass
class _Address:
    """A sum of an array's address, an *offset* in bytes, which is at most *reach* more, and indices times *strides*."""

    base: Argument | None = None
    strides: set[Argument] = field(default_factory=set)
    of_threads: set[Argument] = field(default_factory=set)
    """Those of the strides whose index differs between threads of a block."""
    offset: int = 0
    reach: int = 0
    counts_colours: bool = False
    """Whether the index along the last axis is that of a loop whose number of iterations is not known."""
    terms: int = 0
    is_known: bool = True


def guess_strides(function: Function, size_of: SizeOf, most: int = MAX_STRIDE) -> dict[Argument, int]:
    """The arguments of the kernel *function* that are the innermost distances of arrays which are not known when it is
    compiled, with the number of bytes that each of them probably is: one to *most* elements."""
    guesser = _Guesser(order_function(function), size_of)
    spans: dict[Argument, tuple[int, int, int]] = {}
    refused: set[Argument] = set()
    for value in function.instructions():
        if value.opcode not in ("load", "store") or value.volatile or value.atomic is not None:
            continue
        address = guesser.take_apart(value.address)
        if address.base is None or not address.strides:
            continue
        inner = max(address.strides, key=lambda argument: argument.index)
        nbytes = size_of(value.accessed)
        end, known, axes = spans.get(inner, (0, nbytes, 0))
        if (
            inner not in address.of_threads
            or not address.is_known
            or known != nbytes
            or address.offset < 0
            or address.offset % nbytes
            or (address.counts_colours and (nbytes > 1 or len(address.strides) == 1))
        ):
            refused.add(inner)
        reach = address.offset + address.reach + nbytes
        spans[inner] = max(end, reach), nbytes, max(axes, len(address.strides))
    return {
        argument: end for argument, (end, nbytes, axes) in spans.items()
        if argument not in refused and (2 if axes == 1 else 1) <= end // nbytes <= most
    }  # fmt: skip


def assume_strides(function: Function, strides: Mapping[Argument, int]) -> Function:
    """A copy of *function* with constants for the arguments in *strides*."""
    constants: dict[Value, Value] = {
        argument: Constant(argument.type, str(number), number) for argument, number in strides.items()
    }
    copies = copy_blocks(function.blocks)
    for value in copies.values.values():
        value.operands = [constants.get(operand, operand) for operand in value.operands]
    return replace(function, blocks=list(copies.blocks.values()))


class _Guesser:
    def __init__(self, order: Order, size_of: SizeOf) -> None:
        self._size_of = size_of
        self._reaches: dict[Value, int] = {}
        """Counters of loops that start at 0, with the largest number that they become."""
        self._unknown: set[Value] = set()
        """Those of loops whose number of iterations is not known."""
        self._threads: dict[Instruction, bool] = {}
        for block in order.blocks:
            if order.loops[block] and order.header_of(order.loops[block][-1]) is block:
                self._count(block, order.loops[block][-1])

    def _count(self, header: Block, loop: frozenset[Block]) -> None:
        counters = [phi for phi in header.phis if _counts_from_zero(phi, loop)]
        count = count_iterations(loop, header, MAX_STRIDE) if counters else None
        if count is not None:
            self._reaches.update((phi, count - 1) for phi in counters)
        else:
            self._unknown.update(counters)

    def _depends_on_thread(self, value: Value) -> bool:
        """Whether *value* is computed from the index of a thread."""
        if not isinstance(value, Instruction):
            return False
        if value not in self._threads:
            self._threads[value] = False  # for values that depend on themselves
            self._threads[value] = value.callee in _THREADS or any(map(self._depends_on_thread, value.operands))
        return self._threads[value]

    def take_apart(self, pointer: Value) -> _Address:
        """*pointer* as a sum."""
        address = _Address()
        while isinstance(pointer, Instruction) and pointer.opcode == "getelementptr":
            if len(pointer.operands) != 2 or pointer.source_type is None:
                address.is_known = False
                return address
            self._add(address, pointer.operands[1], self._size_of(pointer.source_type))
            pointer = pointer.operands[0]
        address.base = pointer if isinstance(pointer, Argument) else None
        return address

    def _add(self, address: _Address, value: Value, scale: int) -> None:
        """Add *scale* times *value* to *address*."""
        number = signed_number(value)
        address.terms += 1
        if number is not None:
            address.offset += number * scale
        elif value in self._reaches:
            address.reach += self._reaches[value] * scale
        elif value in self._unknown:
            address.reach += (_COLOURS - 1) * scale
            address.counts_colours = True
        elif not isinstance(value, Instruction) or address.terms > _MOST_TERMS:
            address.is_known = False
        elif value.opcode == "add":
            for operand in value.operands:
                self._add(address, operand, scale)
        elif value.opcode == "shl" and (bits := signed_number(value.operands[1])) is not None and 0 <= bits < 8:
            self._add(address, value.operands[0], scale << bits)
        elif value.opcode == "mul" and scale == 1 and (stride := _find_stride(value)) is not None:
            address.strides.add(stride)
            if any(self._depends_on_thread(operand) for operand in value.operands):
                address.of_threads.add(stride)
        else:
            address.is_known = False


def _find_stride(product: Instruction) -> Argument | None:
    """The one factor of *product* that is an argument of 64 bits."""
    found = [
        operand for operand in product.operands if isinstance(operand, Argument) and operand.type == ir.IntType(64)
    ]
    return found[0] if len(found) == 1 else None


def _counts_from_zero(phi: Instruction, loop: frozenset[Block]) -> bool:
    """Whether *phi* counts iterations of *loop*."""
    for value, source in zip(phi.operands, phi.targets, strict=True):
        if source not in loop:
            if signed_number(value) != 0:
                return False
        elif (
            not isinstance(value, Instruction)
            or value.opcode != "add"
            or value.operands[0] is not phi
            or signed_number(value.operands[1]) != 1
        ):
            return False
    return True
