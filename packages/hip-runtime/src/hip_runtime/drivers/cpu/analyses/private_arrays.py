"""Private arrays that can be interleaved by lane: element 0 of all lanes, then element 1 of all lanes, and so on.

Where all lanes access the same element, that is a contiguous vector then, and an array whose elements are all known
when the kernel is compiled becomes registers. Thread by thread, each lane's element is as far from the next one's as
the array is large.

All accesses to an array have to be of one size, at multiples of that size, and its address must not get anywhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Function, Instruction, Value

_ACCESSES = frozenset({"load", "store", "atomicrmw", "cmpxchg"})
_LARGEST_ELEMENT = 8
_MOST_ASSUMED = 64


@dataclass
class PrivateArrayUses:
    """An array with elements of *nbytes* each: what derives addresses from its own, what accesses an element, what
    fills parts of it, and what copies parts of it from or to other memory."""

    nbytes: int
    addresses: list[Instruction] = field(default_factory=list)
    fills: list[Instruction] = field(default_factory=list)
    accesses: list[Instruction] = field(default_factory=list)
    copies: list[Instruction] = field(default_factory=list)


def find_private_arrays(function: Function, size_of: SizeOf) -> dict[Instruction, PrivateArrayUses]:
    """The private arrays of *function* that can be interleaved, by alloca."""
    allocas = [value for value in function.instructions() if value.opcode == "alloca"]
    if not allocas:
        return {}
    users: dict[Value, list[Instruction]] = {}
    for instruction in function.instructions():
        for operand in dict.fromkeys(instruction.operands):
            users.setdefault(operand, []).append(instruction)
    described = {alloca: _describe(alloca, users, size_of) for alloca in allocas}
    found = {alloca: array for alloca, array in described.items() if array is not None}
    while alone := [alloca for alloca in found if not _is_copied_alike(found[alloca], found)]:
        for alloca in alone:
            del found[alloca]
    return found


def private_array_of(address: Value) -> Instruction | None:
    """The alloca of the private array that *address* is certainly within."""
    while isinstance(address, Instruction) and address.opcode == "getelementptr":
        address = address.operands[0]
    return address if isinstance(address, Instruction) and address.opcode == "alloca" else None


def is_private_address(address: Value) -> bool:
    """Whether *address* is certainly within a private array."""
    return private_array_of(address) is not None


def _describe(alloca: Instruction, users: dict[Value, list[Instruction]], size_of: SizeOf) -> PrivateArrayUses | None:
    addresses: list[Instruction] = []
    fills: list[Instruction] = []
    accesses: list[Instruction] = []
    copies: list[Instruction] = []
    sizes: set[int] = set()
    derived: set[Value] = {alloca}
    waiting: list[Instruction] = [alloca]
    while waiting:
        address = waiting.pop()
        for user in users.get(address, []):
            if user.opcode in _ACCESSES and _is_address_only(user, address):
                sizes.add(size_of(user.accessed))
                accesses.append(user)
            elif user.callee.startswith("llvm.memset.") and _is_address_only(user, address):
                fills.append(user)
            elif user.callee.startswith("llvm.memcpy."):
                copies.append(user)
            elif user.opcode == "getelementptr" and user.operands[0] is address:
                if user not in derived:
                    derived.add(user)
                    addresses.append(user)
                    waiting.append(user)
            else:
                return None
    if len(sizes) != 1 or (nbytes := sizes.pop()) > _LARGEST_ELEMENT or nbytes & (nbytes - 1):
        return None
    if not all(_steps_over_elements(address, nbytes, size_of) for address in addresses):
        return None
    if not all(signed_number(fill.arguments[1]) is not None for fill in fills):
        return None
    if not all(_has_whole_elements(written, nbytes) for written in (*fills, *copies)):
        return None
    return PrivateArrayUses(nbytes, addresses, list(dict.fromkeys(fills)), accesses, list(dict.fromkeys(copies)))


def _is_address_only(user: Instruction, address: Value) -> bool:
    """Whether *user* accesses the memory at *address*, and does nothing else with that."""
    position = 1 if user.opcode == "store" else 0
    return [number for number, operand in enumerate(user.operands) if operand is address] == [position]


def _steps_over_elements(address: Instruction, nbytes: int, size_of: SizeOf) -> bool:
    """Whether *address* is a multiple of *nbytes* away from what it is derived from."""
    kind = address.source_type
    for number, index in enumerate(address.operands[1:]):
        if number:
            if not isinstance(kind, ir.ArrayType):
                return False
            kind = kind.element
        assert kind is not None
        if size_of(kind) % nbytes and not _is_multiple(index, max(nbytes // size_of(kind), 1), set()):
            return False
    return True


_LINEAR = frozenset({"add", "sub", "or", "phi", "select", "freeze", "zext", "sext", "trunc"})
"""Opcodes whose results are multiples of a power of two if their operands are, but for the condition of a select."""


def _is_multiple(value: Value, factor: int, assumed: set[tuple[Value, int]]) -> bool:
    """Whether *value* is known to be a multiple of *factor*, a power of two, if those *assumed* are of theirs, of which
    it is one from now on."""
    number = signed_number(value)
    if number is not None or factor == 1 or (value, factor) in assumed:
        return (number or 0) % factor == 0
    if not isinstance(value, Instruction) or len(assumed) > _MOST_ASSUMED:
        return False
    assumed.add((value, factor))
    if value.opcode == "shl":
        bits = signed_number(value.operands[1])
        return bits is not None and _is_multiple(value.operands[0], factor >> min(bits, _LARGEST_ELEMENT) or 1, assumed)
    if value.opcode in ("mul", "and"):
        return any(_is_multiple(operand, factor, set(assumed)) for operand in dict.fromkeys(value.operands))
    operands = value.operands[1:] if value.opcode == "select" else value.operands
    return value.opcode in _LINEAR and all(_is_multiple(operand, factor, assumed) for operand in operands)


def _is_copied_alike(array: PrivateArrayUses, found: Mapping[Instruction, PrivateArrayUses]) -> bool:
    """Whether all private arrays that *array* is copied from or to are in *found*, too, with elements of that size."""
    for copy in array.copies:
        others = filter(None, map(private_array_of, copy.arguments[:2]))
        if not all(other in found and found[other].nbytes == array.nbytes for other in others):
            return False
    return True


def _has_whole_elements(written: Instruction, nbytes: int) -> bool:
    """Whether *written*, a fill or a copy, is of whole elements, and not volatile."""
    length, is_volatile = written.arguments[2:]
    return _is_multiple(length, nbytes, set()) and signed_number(is_volatile) == 0
