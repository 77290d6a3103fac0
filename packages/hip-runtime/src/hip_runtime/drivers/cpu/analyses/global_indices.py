"""Global indices: how kernels compute them, ``block index * block extent + thread index``.

A kernel that uses the two indices along an axis for nothing else cannot tell where one block ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Callable

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.alignments import SPLITTING
from hip_runtime.drivers.cpu.analyses.effects import DIVISIONS
from hip_runtime.drivers.cpu.analyses.users import find_users
from hip_runtime.drivers.cpu.ir.model import Argument, Function, Instruction, Value

_OF_ANY_BLOCK = frozenset({spmd.FAULT, spmd.GRID_BARRIER})
"""What takes the work item, and does not tell the block of the thread."""

_SHORTEST_ROW = 64
"""Constants that may be the length of a row."""

_WIDENING = frozenset({"zext", "sext"})
_SUMMING = _WIDENING | {"trunc", "add", "sub", "or", "freeze"}


def find_global_indices(function: Function, axis: str, extent: int | None) -> list[Instruction] | None:
    """The sums that are the global index along *axis*, of blocks with *extent* threads there, ``None`` for what only
    the launch knows; ``None`` if the indices of the thread or of its block are used otherwise, or if the thread is not
    used for indices only."""
    if not uses_item_for_indices(function):
        return None
    users = find_users(function.instructions())
    threads = _follow(function, users, spmd.thread_idx(axis), 1)
    blocks = _follow(function, users, spmd.block_idx(axis), extent, spmd.block_dim(axis))
    if not threads or blocks is None or set(threads) != set(blocks):
        return None
    sums = list(dict.fromkeys(threads))
    return sums if len(sums) == len(threads) == len(blocks) and all(map(_is_sum, sums)) else None


def uses_item_for_indices(function: Function) -> bool:
    """Whether all that *function* does with the work item is to ask for indices, or what does not tell the block."""
    users = find_users(function.instructions()).get(function.arguments[0], [])
    return all(user.callee in _OF_ANY_BLOCK or spmd.is_pure(user.callee) for user in users)


def divides_index(function: Function, axis: str) -> bool:
    """Whether *function* divides the index of a thread along *axis*, or a sum with it, by a number that is not a small
    constant, as for the row and the column of an element."""
    users = find_users(function.instructions())
    waiting = [call for call in function.instructions() if call.callee == spmd.thread_idx(axis)]
    seen = set(waiting)
    while waiting:
        value = waiting.pop()
        for user in users.get(value, []):
            if user.opcode in DIVISIONS and user.operands[0] is value:
                divisor = signed_number(user.operands[1])
                if divisor is None or divisor >= _SHORTEST_ROW:
                    return True
            if user.opcode in _SUMMING and user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


def computes_with_extent(function: Function, axis: str, may_step: bool = False) -> bool:
    """Whether *function* does more with the extent of a block along *axis* than to multiply it, as for a global index
    or the threads of a grid, or takes such an index apart at a constant, as into the lane and the number of a wave.
    With *may_step*, it may also be the step of loops whose number of iterations is not known from the block alone."""
    users = find_users(function.instructions())
    products: list[Instruction] = []
    waiting = [call for call in function.instructions() if call.callee == spmd.block_dim(axis)]
    while waiting:
        for user in users.get(waiting.pop(), []):
            if user.opcode in _WIDENING:
                waiting.append(user)
            elif user.opcode == "mul":
                products.append(user)
            elif not (may_step and _is_step(user, users)):
                return True
    return _are_split(products, users)


def _is_step(value: Instruction, users: dict[Value, list[Instruction]]) -> bool:
    """Whether *value* is the next value of a loop's counter that is compared with what only the launch tells, or the
    last value after which that is in bounds."""
    if value.opcode == "sub":
        return _is_told(value.operands[0])
    if value.opcode != "add":
        return False
    counters = [
        operand
        for operand in value.operands
        if isinstance(operand, Instruction) and operand.opcode == "phi" and value in operand.operands
    ]
    compared = [
        part
        for counter in (value, *counters)
        for user in users.get(counter, [])
        if user.opcode == "icmp"
        for part in user.operands
        if part is not counter
    ]
    return bool(counters) and all(_is_told(part) for part in compared)


def _is_told(value: Value) -> bool:
    """Whether *value* is an argument, or is loaded, or computed from such."""
    waiting, seen = [value], {value}
    while waiting:
        part = waiting.pop()
        if isinstance(part, Argument) or (isinstance(part, Instruction) and part.opcode == "load"):
            return True
        if isinstance(part, Instruction) and part.opcode in _SUMMING | _PRODUCTS.keys():
            operands = [operand for operand in part.operands if operand not in seen]
            waiting += operands
            seen.update(operands)
    return False


def _are_split(products: list[Instruction], users: dict[Value, list[Instruction]]) -> bool:
    """Whether a sum with one of *products* is taken apart at a constant."""
    waiting, seen = list(products), set(products)
    while waiting:
        for user in users.get(waiting.pop(), []):
            if user.opcode in SPLITTING and signed_number(user.operands[1]) is not None:
                return True
            if user.opcode in _SUMMING and user not in seen:
                seen.add(user)
                waiting.append(user)
    return False


def _is_sum(value: Instruction) -> bool:
    return value.opcode == "add" or (value.opcode == "or" and "disjoint" in value.flags)


def _follow(
    function: Function, users: dict[Value, list[Instruction]], name: str, factor: int | None, length: str = ""
) -> list[Instruction] | None:
    """The sums that the index *name* ends in, once it was multiplied by *factor*, or by what the function *length*
    gives if that is ``None``; ``None`` if it is used otherwise."""
    found: list[Instruction] = []
    waiting: list[tuple[Instruction, int | None]] = [
        (call, 1) for call in function.instructions() if call.callee == name
    ]
    while waiting:
        value, scale = waiting.pop()
        for user in users.get(value, []):
            if user.opcode in _WIDENING:
                waiting.append((user, scale))
            elif factor is None and scale == 1 and user.opcode == "mul" and _multiplies(user, length):
                waiting.append((user, None))
            elif user.opcode in _PRODUCTS:
                other = next((signed_number(part) for part in user.operands if part is not value), None)
                if other is None or scale is None or user.operands[0] is not value:
                    return None
                waiting.append((user, _PRODUCTS[user.opcode](scale, other)))
            elif scale == factor and _is_sum(user):
                found.append(user)
            else:
                return None
    return found


def _multiplies(product: Instruction, name: str) -> bool:
    """Whether a factor of *product* is what the function *name* gives."""
    for factor in product.operands:
        while isinstance(factor, Instruction) and factor.opcode in _WIDENING:
            (factor,) = factor.operands
        if isinstance(factor, Instruction) and factor.callee == name:
            return True
    return False


_PRODUCTS: dict[str, Callable[[int, int], int]] = {
    "mul": lambda scale, other: scale * other,
    "shl": lambda scale, other: scale << min(max(other, 0), 63),
}
