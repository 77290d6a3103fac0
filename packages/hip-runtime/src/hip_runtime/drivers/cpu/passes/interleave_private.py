"""Interleaves private arrays by lane: the addresses of a gang's threads, for memory in which an element of one lane is
followed by that of the next lane. See `analyses.private_arrays`.

An alloca is the address of its first element then, which is an element further for each lane, and every step from there
is as many times as long as the gang has lanes.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.private_arrays import PrivateArrayUses, private_array_of
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64, PTR, VOID

_WRITTEN_ONE_BY_ONE = 16
"""The most elements that are filled or copied without a loop."""


def interleave_private(
    function: Function, arrays: dict[Instruction, PrivateArrayUses], width: int
) -> dict[Instruction, ir.Type]:
    """Change the addresses of *function* within *arrays* for gangs of *width* lanes. Returns the types that each of
    these had steps of; with them again, nothing is interleaved."""
    for array in arrays.values():
        for block in list(function.blocks) if array.fills or array.copies else ():
            _write_elements(function, block, array, arrays)
        for access in array.accesses:
            access.align = min(access.align or array.nbytes, array.nbytes)
    before: dict[Instruction, ir.Type] = {}
    for address in (address for array in arrays.values() for address in array.addresses):
        assert address.source_type is not None
        before[address] = address.source_type
        address.source_type = _spread(address.source_type, len(address.operands) - 2, width)
    return before


def _spread(kind: ir.Type, depth: int, width: int) -> ir.Type:
    """*kind* with *width* of each of the elements that *depth* more indices lead to."""
    return ir.ArrayType(_spread(kind.element, depth - 1, width), kind.count) if depth else ir.ArrayType(kind, width)


def _write_elements(
    function: Function, block: Block, array: PrivateArrayUses, arrays: Mapping[Instruction, PrivateArrayUses]
) -> None:  # fmt: skip
    """Write each fill or copy of *array* in *block* as accesses to one element after another."""
    written, nbytes = {*array.fills, *array.copies}, array.nbytes
    for call in [value for value in block.instructions if value in written]:
        length, position = call.arguments[2], block.instructions.index(call)
        del block.instructions[position]
        count = signed_number(length)
        if count is not None and count // nbytes <= _WRITTEN_ONE_BY_ONE:
            numbers = [_number(number) for number in range(count // nbytes)]
            made = [access for number in numbers for access in _write_element(call, number, arrays)]
            block.instructions[position:position] = made
        else:
            index = Instruction(I64, "phi", [], "element.index")
            block = _insert_loop(function, block, position, index, length, nbytes, _write_element(call, index, arrays))


def _write_element(
    call: Instruction, index: Value, arrays: Mapping[Instruction, PrivateArrayUses]
) -> list[Instruction]:  # fmt: skip
    """What *call* does to the element *index* of those of *arrays* that it writes or reads."""
    target, source = call.arguments[:2]
    filled, copied = _array_of(target, arrays), _array_of(source, arrays)
    nbytes = next(array.nbytes for array in (filled, copied) if array is not None)
    kind = ir.IntType(8 * nbytes)
    place = _address(target, index, kind)
    if filled is not None:
        filled.addresses.append(place)
    if call.callee.startswith("llvm.memset."):
        byte = signed_number(source)
        assert byte is not None
        number = int.from_bytes(bytes([byte & 0xFF]) * nbytes, "little")
        return [place, Instruction(VOID, "store", [Constant(kind, str(number), number), place], align=nbytes)]
    origin = _address(source, index, kind)
    if copied is not None:
        copied.addresses.append(origin)
    loaded = Instruction(kind, "load", [origin], "copied", align=1 if copied is None else nbytes)
    return [origin, place, loaded, Instruction(VOID, "store", [loaded, place], align=1 if filled is None else nbytes)]


def _array_of(address: Value, arrays: Mapping[Instruction, PrivateArrayUses]) -> PrivateArrayUses | None:
    """That of *arrays* that *address* is within."""
    alloca = private_array_of(address)
    return None if alloca is None else arrays.get(alloca)


def _address(base: Value, index: Value, kind: ir.Type) -> Instruction:
    return Instruction(PTR, "getelementptr", [base, index], "element.at", flags=("inbounds",), source_type=kind)


def _insert_loop(
    function: Function, block: Block, position: int, index: Instruction, length: Value, nbytes: int,
    body: list[Instruction],
) -> Block:  # fmt: skip
    """Run *body* for each *index* of the elements of *length* bytes, which may be 0, before the instruction at
    *position* of *block*; the block that begins with that."""
    name = block.name
    loop, after = Block(f"{name}.elements"), Block(f"{name}.written", block.instructions[position:])
    for following in after.successors:
        for phi in following.phis:
            phi.targets = [after if source is block else source for source in phi.targets]
    kind, bits = length.type, nbytes.bit_length() - 1
    count = Instruction(kind, "lshr", [length, Constant(kind, str(bits), bits)], "elements", flags=("exact",))
    wide = [] if kind == I64 else [Instruction(I64, "zext", [count], "elements.wide")]
    elements = wide[0] if wide else count
    some = Instruction(I1, "icmp", [elements, _number(0)], "elements.some", predicate="ne")
    block.instructions[position:] = [count, *wide, some, Instruction(VOID, "br", [some], targets=[loop, after])]
    following_index = Instruction(I64, "add", [index, _number(1)], "element.next", flags=("nuw", "nsw"))
    more = Instruction(I1, "icmp", [following_index, elements], "element.more", predicate="ult")
    index.operands, index.targets = [_number(0), following_index], [block, loop]
    loop.instructions = [index, *body, following_index, more, Instruction(VOID, "br", [more], targets=[loop, after])]
    place = function.blocks.index(block) + 1
    function.blocks[place:place] = [loop, after]
    return after


def _number(number: int) -> Constant:
    return Constant(I64, str(number), number)
