"""Regions whose threads access every *step*-th element of shared arrays, with a lane for each element.

The steps of a scan by a tree, ``at = (thread + 1) * 2 * step - 1; s[at] += s[at - step]``, leave elements between those
that they access. As lanes, threads would gather and scatter; so would what was stored be in parts of registers that the
next step loads as others. Here lane ``thread * step + phase`` is the thread, and the others do nothing: what lanes
access then are neighbours, which `vectorize.shared_cells` takes as whole registers.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.shared_places import find_shared_place
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Block, Call, Constant, Function, Instruction, Symbol, Value
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID
from hip_runtime.errors import UnsupportedError

_INDEX = ir.FunctionType(I32, [PTR])


def stretch_threads(function: Function, item: WorkItem, size_of: SizeOf, step: int, phase: int) -> None:
    """Rewrite *function*, an outlined region that `shared_steps` has found, so that each lane whose number is *phase*
    modulo *step*, a power of two, is a thread.

    Raises `UnsupportedError` if it asks for a thread's lane in its wave.
    """
    if any(value.callee == spmd.LANE for value in function.instructions()):
        raise UnsupportedError("lanes between the threads are asked which they are")
    index = spmd.thread_idx(item.order.along)
    start = Block("lanes")

    lane_place = Symbol(PTR, intrinsics.LANE_PLACE)
    place = start.append("call", I32, function.arguments[0], lane_place, call=Call(_INDEX, argument_attributes=((),)))
    thread = start.append("lshr", I32, place, _number(I32, step.bit_length() - 1))
    wide = start.append("zext", I64, place)
    is_thread = start.append(
        "icmp", I1, start.append("and", I32, place, _number(I32, step - 1)), _number(I32, phase), predicate="eq"
    )
    idle = Block("between", [Instruction(VOID, "ret", [])])
    start.append("br", VOID, is_thread, targets=[function.blocks[0], idle])
    for block in function.blocks:
        block.instructions = [
            part for value in block.instructions for part in _rewrite(value, wide, item, size_of, phase)
        ]
    for value in function.instructions():
        value.operands = [thread if _calls(operand, index) else operand for operand in value.operands]
    function.blocks = [start, idle, *function.blocks]


def _rewrite(value: Instruction, place: Value, item: WorkItem, size_of: SizeOf, phase: int) -> list[Instruction]:
    """*value*, behind what its address is computed by if it is an access: from *place*, the number of the lane."""
    if value.opcode not in ("load", "store"):
        return [value]
    found = find_shared_place(value.address, item, size_of)
    if found is None:  # what is kept from another region
        return [value]
    nbytes = size_of(value.accessed)
    kind = ir.ArrayType(I8, nbytes)
    element = Instruction(PTR, "getelementptr", [found.base, place], source_type=kind)
    offset = _number(I64, found.offset - phase * nbytes & (1 << 64) - 1)
    address = Instruction(PTR, "getelementptr", [element, offset], source_type=I8)
    value.operands = [*value.operands[:-1], address]
    return [element, address, value]


def _calls(value: Value, name: str) -> bool:
    return isinstance(value, Instruction) and value.callee == name


def _number(kind: ir.IntType, number: int) -> Constant:
    return Constant(kind, str(number), number)
