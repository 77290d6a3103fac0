"""Interleaves private arrays by lane: the addresses of a gang's threads, for memory in which an element of one lane is
followed by that of the next lane. See `analyses.private_arrays`.

An alloca is the address of its first element then, which is an element further for each lane, and every step from there
is as many times as long as the gang has lanes.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.private_arrays import PrivateArrayUses
from hip_runtime.drivers.cpu.ir.model import Block, Constant, Function, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64, PTR, VOID

_FILLED_ONE_BY_ONE = 16
"""The most elements that are filled without a loop."""


def interleave_private(function: Function, arrays: dict[Instruction, PrivateArrayUses], width: int) -> None:
    """Change the addresses of *function* within *arrays* for gangs of *width* lanes."""
    for array in arrays.values():
        for address in array.addresses:
            assert address.source_type is not None
            address.source_type = _spread(address.source_type, len(address.operands) - 2, width)
        for access in array.accesses:
            access.align = min(access.align or array.nbytes, array.nbytes)
    fills = {fill: array.nbytes for array in arrays.values() for fill in array.fills}
    for block in list(function.blocks) if fills else ():
        _write_fills(function, block, fills, width)


def _spread(kind: ir.Type, depth: int, width: int) -> ir.Type:
    """*kind* with *width* of each of the elements that *depth* more indices lead to."""
    return ir.ArrayType(_spread(kind.element, depth - 1, width), kind.count) if depth else ir.ArrayType(kind, width)


def _write_fills(function: Function, block: Block, fills: dict[Instruction, int], width: int) -> None:
    """Write each of *fills* in *block* as stores of one element after another."""
    for fill in [value for value in block.instructions if value in fills]:
        nbytes = fills[fill]
        address, value, length, _ = fill.arguments
        byte, count = signed_number(value), (signed_number(length) or 0) // nbytes
        assert byte is not None
        kind = ir.IntType(8 * nbytes)
        number = int.from_bytes(bytes([byte & 0xFF]) * nbytes, "little")
        element, step = Constant(kind, str(number), number), ir.ArrayType(kind, width)
        position = block.instructions.index(fill)
        del block.instructions[position]
        if count <= _FILLED_ONE_BY_ONE:
            stores = [made for index in range(count) for made in _store(element, address, _number(index), step)]
            block.instructions[position:position] = stores
        else:
            index = Instruction(I64, "phi", [], "fill.index")
            block = _insert_loop(function, block, position, index, count, _store(element, address, index, step))


def _store(element: Constant, address: Value, index: Value, step: ir.Type) -> list[Instruction]:
    place = Instruction(PTR, "getelementptr", [address, index], "filled", flags=("inbounds",), source_type=step)
    return [place, Instruction(VOID, "store", [element, place], align=element.type.width // 8)]


def _insert_loop(
    function: Function, block: Block, position: int, index: Instruction, count: int, body: list[Instruction]
) -> Block:
    """Run *body* for *count* values of *index*, before the instruction at *position* of *block*; the block that begins
    with that."""
    loop, after = Block(f"{block.name}.fill"), Block(f"{block.name}.filled", block.instructions[position:])
    for following in after.successors:
        for phi in following.phis:
            phi.targets = [after if source is block else source for source in phi.targets]
    block.instructions[position:] = [Instruction(VOID, "br", [], targets=[loop])]
    following_index = Instruction(I64, "add", [index, _number(1)], "fill.next", flags=("nuw", "nsw"))
    more = Instruction(I1, "icmp", [following_index, _number(count)], "fill.more", predicate="ult")
    index.operands, index.targets = [_number(0), following_index], [block, loop]
    loop.instructions = [index, *body, following_index, more, Instruction(VOID, "br", [more], targets=[loop, after])]
    place = function.blocks.index(block) + 1
    function.blocks[place:place] = [loop, after]
    return after


def _number(number: int) -> Constant:
    return Constant(I64, str(number), number)
