"""Stack slots where AMD GPUs have them: in the private address space.

Numba asks for stack slots without naming an address space. On AMD GPUs they lie in address space 5, and are used
through a pointer to the flat address space; LLVM resolves that cast once functions are inlined.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import ir
from llvmlite.ir.instructions import AllocaInstr, CastInstr, GEPInstr, LoadInstr, PhiInstr, StoreInstr
from llvmlite.ir.values import MetaDataArgument

PRIVATE = 5


class PrivateSlot(AllocaInstr):
    """An ``alloca`` in the private address space."""

    def __init__(self, slot: AllocaInstr) -> None:
        super().__init__(
            slot.parent, slot.allocated_type, slot.operands[0] if slot.operands else None, f"{slot.name}.private"
        )
        self.align = slot.align
        self.type = ir.PointerType(slot.allocated_type, PRIVATE)

    def descr(self, buf: list[str]) -> None:
        """Write the instruction's text, without its name, to *buf*."""
        count = "".join(f", {operand.type} {operand.get_reference()}" for operand in self.operands)
        align = "" if self.align is None else f", align {self.align}"
        buf.append(f"{self.opname} {self.allocated_type}{count}{align}, addrspace({PRIVATE})")


def place_in_private_memory(module: ir.Module) -> None:
    """Put every stack slot of *module* into the private address space, behind a cast to a flat pointer."""
    for function in module.functions:
        casts: dict[int, CastInstr] = {}
        slots = [one for block in function.blocks for one in block.instructions if type(one) is AllocaInstr]
        for block in function.blocks:
            _place_slots(block, casts)
        if casts:
            _redirect_uses(function, casts)
        del slots  # kept alive until now, so that their ids were unique


def keep_phis_in_memory(module: ir.Module) -> None:
    """Replace every phi of *module*, which is not to be optimised, by a stack slot that its predecessors write.

    LLVM 22 gives a phi of three or more values a wrong one where a value costs nothing, such as a member of a structure
    (llvm-project, pull request 183792). Optimised code has few such values; other code is full of them. That its
    functions are ``optnone``, as clang's are without optimisation, keeps the slots what they are.
    """
    for function in module.functions:
        if not function.is_declaration and "alwaysinline" not in function.attributes:
            function.attributes.add("noinline")
            function.attributes.add("optnone")
        loads: dict[int, ir.Instruction] = {}
        phis = [one for block in function.blocks for one in block.instructions if isinstance(one, PhiInstr)]
        for phi in phis:
            slot = AllocaInstr(function.entry_basic_block, phi.type, None, f"{phi.name}.slot")
            function.entry_basic_block.instructions.insert(0, slot)
            for value, source in phi.incomings:
                store = StoreInstr(source, value, slot)
                store.align = None
                source.instructions.insert(-1, store)
            loads[id(phi)] = LoadInstr(phi.parent, slot, phi.name)
        for block in function.blocks:
            block.instructions[:] = [loads.get(id(one), one) for one in block.instructions]
        if loads:
            _redirect_uses(function, loads)
        del phis  # kept alive until now, so that their ids were unique


def _place_slots(block: ir.Block, casts: dict[int, CastInstr]) -> None:
    instructions: list[ir.Instruction] = []
    for instruction in block.instructions:
        if type(instruction) is AllocaInstr:
            slot = PrivateSlot(instruction)
            cast = CastInstr(block, "addrspacecast", slot, instruction.type, instruction.name)
            casts[id(instruction)] = cast
            instructions += [slot, cast]
        else:
            instructions.append(instruction)
    block.instructions[:] = instructions


def _redirect_declaration(instruction: ir.Instruction, casts: Mapping[int, ir.Instruction]) -> None:
    """Where *instruction* declares the variable in a slot, let it name the slot itself: so LLVM can follow it."""
    for position, operand in enumerate(instruction.operands):
        if isinstance(operand, MetaDataArgument) and id(operand.wrapped_value) in casts:
            (slot,) = casts[id(operand.wrapped_value)].operands
            instruction.operands[position] = MetaDataArgument(slot)


def _redirect_uses(function: ir.Function, casts: Mapping[int, ir.Instruction]) -> None:
    own = {id(cast) for cast in casts.values()}
    for block in function.blocks:
        for instruction in block.instructions:
            if id(instruction) in own:
                continue
            incoming = [value for value, _ in instruction.incomings] if isinstance(instruction, PhiInstr) else []
            _redirect_declaration(instruction, casts)
            for operand in (*instruction.operands, *incoming):
                if id(operand) in casts:
                    instruction.replace_usage(operand, casts[id(operand)])
            _redirect_kept(instruction, casts)


def _redirect_kept(instruction: ir.Instruction, casts: Mapping[int, ir.Instruction]) -> None:
    """What llvmlite's instructions keep apart from their operands, and write from there."""
    for name in ("pointer", "aggregate", "value"):
        kept = vars(instruction).get(name)
        if id(kept) in casts:
            setattr(instruction, name, casts[id(kept)])
    if isinstance(instruction, GEPInstr):
        instruction.indices = [casts.get(id(index), index) for index in instruction.indices]
