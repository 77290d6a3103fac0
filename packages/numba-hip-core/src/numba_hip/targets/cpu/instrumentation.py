"""Instrumentation: calls of ``spmd.observe`` at every access of memory and at every point where threads wait.

They are put in on llvmlite's objects, when the module of a function is complete. Left out is memory that is the
thread's own for sure, stack slots and results; what is reached through a pointer is told apart when the kernel runs.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from llvmlite.ir.instructions import (
    AllocaInstr,
    AtomicRMW,
    CallInstr,
    CastInstr,
    CmpXchg,
    Fence,
    GEPInstr,
    Instruction,
    LoadAtomicInstr,
    LoadInstr,
    StoreAtomicInstr,
    StoreInstr,
)
from numba.core import cgutils

from hip_devicelib import spmd
from numba_hip.abi.race_records import COPIES, HAS_VALUE, INNER, ONLY_READS, EventCode
from numba_hip.abi.source_sites import UNKNOWN, Site, new_number, number_of

_WAVE_OPERATIONS = (spmd.WAVE_BARRIER, spmd.BALLOT, spmd.SHUFFLE)

I32, I64, BYTES = ir.IntType(32), ir.IntType(64), ir.IntType(8).as_pointer()
_SITE = "numba_hip_site"


def note_sites(function: ir.Function, site: Site) -> None:
    """Note that what was last added to *function* comes from *site*."""
    for block in function.blocks:
        for instruction in reversed(block.instructions):
            if hasattr(instruction, _SITE):
                break
            setattr(instruction, _SITE, site)


def site_at(instruction: Instruction) -> Site | None:
    """Where in the source *instruction* comes from, if that was noted."""
    found: Site | None = getattr(instruction, _SITE, None)
    return found


def instrument(module: ir.Module, layout: Any) -> set[int]:
    """Let the functions of *module* tell what they do. Gives the bytes of each kind of access; *layout* is LLVM's."""
    sizes: set[int] = set()
    for function in module.functions:
        item = next((parameter for parameter in function.args if parameter.name == "item"), None)
        if not function.is_declaration and item is not None:
            sizes |= _Instrumenter(module, function, item, layout).run()
    return sizes


class _Instrumenter:
    """Puts calls into one function."""

    def __init__(self, module: ir.Module, function: ir.Function, item: ir.Value, layout: Any) -> None:
        self._module = module
        self._function = function
        self._item = item
        self._layout = layout
        self._sizes: set[int] = set()
        kind = ir.FunctionType(ir.VoidType(), [BYTES, I32, I32, BYTES, I64, I64])
        self._observe = cgutils.get_or_insert_function(module, kind, spmd.OBSERVE)
        self._swapped = {
            id(_root(one.operands[0]))
            for block in function.blocks
            for one in block.instructions
            if type(one) is CmpXchg
        }
        self._builder = ir.IRBuilder()
        self._site: Site = UNKNOWN

    def run(self) -> set[int]:
        """Rewrite all blocks."""
        for block in list(self._function.blocks):
            instructions = list(block.instructions)
            block.instructions.clear()
            for instruction in instructions:
                self._builder.position_at_end(block)
                self._site = site_at(instruction) or UNKNOWN
                self._before(instruction)
                block.instructions.append(instruction)
                self._builder.position_at_end(block)
                self._after(instruction)
        return self._sizes

    def _before(self, one: Instruction) -> None:
        if isinstance(one, LoadAtomicInstr):
            self._access(EventCode.ATOMIC | ONLY_READS, one.operands[0], one.type)
        elif isinstance(one, LoadInstr):
            swapped = id(_root(one.operands[0])) in self._swapped
            self._access(EventCode.ATOMIC | ONLY_READS if swapped else EventCode.READ, one.operands[0], one.type)
        elif isinstance(one, StoreAtomicInstr):
            self._access(EventCode.ATOMIC, one.operands[1], one.operands[0].type)
        elif isinstance(one, StoreInstr):
            self._write(one.operands[1], one.operands[0])
        elif isinstance(one, (AtomicRMW, CmpXchg)):
            self._access(EventCode.ATOMIC, one.operands[0], one.operands[1].type)
        elif isinstance(one, CallInstr):
            self._before_call(one)

    def _before_call(self, one: CallInstr) -> None:
        name = getattr(one.callee, "name", "")
        if name.startswith(("llvm.memcpy.", "llvm.memmove.")):
            self._copy(one)
        elif name.startswith("llvm.memset."):
            self._tell(EventCode.WRITE, one.args[0], self._note_size(one.args[2]))
        elif name.startswith((spmd.ATOMIC_MAX, spmd.ATOMIC_MIN)):
            self._access(EventCode.ATOMIC, one.args[0], one.type)
        elif name.startswith(_WAVE_OPERATIONS):
            self._tell_number(EventCode.WAVE_ENTER, new_number())
        elif (
            self._item in one.args and not name.startswith(spmd.PREFIX) and not self._site.is_inner and self._site.line
        ):
            self._tell(EventCode.CALL)

    def _after(self, one: Instruction) -> None:
        if isinstance(one, Fence):
            self._tell(EventCode.FENCE)
        elif isinstance(one, CallInstr):
            name = getattr(one.callee, "name", "")
            if name in spmd.BLOCK_WIDE or name == spmd.GRID_BARRIER:
                self._tell(EventCode.BARRIER)
                if name == spmd.GRID_BARRIER:
                    self._tell(EventCode.GRID_BARRIER)
            elif name.startswith(_WAVE_OPERATIONS):
                self._tell(EventCode.WAVE_LEAVE)
            elif name.startswith(spmd.SHARED):
                self._tell(EventCode.SHARED, one, ir.Constant(I64, int(name.rsplit(".", 2)[1])))
            elif name == spmd.DYNAMIC_SHARED:
                kind = ir.FunctionType(I64, [self._item.type])
                ask = cgutils.get_or_insert_function(self._module, kind, spmd.DYNAMIC_SHARED_BYTES)
                self._tell(EventCode.SHARED, one, self._builder.call(ask, [self._item]))

    def _write(self, pointer: ir.Value, value: ir.Value) -> None:
        if self._is_private(pointer):
            return
        bits = self._bits(value)
        event = EventCode.WRITE if bits is None else EventCode.WRITE | HAS_VALUE
        self._access(event, pointer, value.type, bits)

    def _bits(self, value: ir.Value) -> ir.Value | None:
        """*value* as a number of 64 bits, where it has no more."""
        kind = value.type
        if isinstance(kind, (ir.FloatType, ir.DoubleType, ir.HalfType)):
            width = {ir.HalfType: 16, ir.FloatType: 32, ir.DoubleType: 64}[type(kind)]
            kind = ir.IntType(width)
            value = self._builder.bitcast(value, kind)
        elif isinstance(kind, ir.PointerType):
            return self._builder.ptrtoint(value, I64)
        if not isinstance(kind, ir.IntType) or kind.width > 64:
            return None
        return value if kind.width == 64 else self._builder.zext(value, I64)

    def _access(self, event: int, pointer: ir.Value, kind: ir.Type, value: ir.Value | None = None) -> None:
        if not self._is_private(pointer):
            size = int(kind.get_abi_size(self._layout, self._module.context))
            self._tell(event, pointer, self._note_size(ir.Constant(I64, size)), value)

    def _copy(self, one: CallInstr) -> None:
        target, source, nbytes = one.args[:3]
        nbytes = self._note_size(nbytes)
        for event, pointer in ((EventCode.READ, source), (EventCode.WRITE, target)):
            if not self._is_private(pointer):
                self._tell(event | COPIES, pointer, nbytes)

    def _note_size(self, nbytes: ir.Value) -> ir.Value:
        constant = isinstance(nbytes, ir.Constant) and isinstance(nbytes.constant, int)
        self._sizes.add(nbytes.constant if constant else 1)
        return nbytes if nbytes.type == I64 else self._builder.zext(nbytes, I64)

    def _is_private(self, pointer: ir.Value) -> bool:
        root = _root(pointer)
        if isinstance(root, AllocaInstr) or root is self._function.args[0]:  # where the result goes, or the work item
            return True
        return isinstance(root, ir.GlobalVariable)

    def _tell(
        self, event: int, pointer: ir.Value | None = None, nbytes: ir.Value | None = None,
        value: ir.Value | None = None,
    ) -> None:  # fmt: skip
        site = self._site
        if site.line == 0 or site.is_inner:
            event |= INNER
        self._tell_number(event, number_of(site), pointer, nbytes, value)

    def _tell_number(
        self, event: int, number: int, pointer: ir.Value | None = None, nbytes: ir.Value | None = None,
        value: ir.Value | None = None,
    ) -> None:  # fmt: skip
        zero = ir.Constant(I64, 0)
        address = ir.Constant(BYTES, None) if pointer is None else self._builder.bitcast(pointer, BYTES)
        numbers = [ir.Constant(I32, int(event)), ir.Constant(I32, number)]
        self._builder.call(self._observe, [self._item, *numbers, address, nbytes or zero, value or zero])


def _root(pointer: ir.Value) -> ir.Value:
    """What *pointer* is made of by steps and casts."""
    while True:
        if isinstance(pointer, GEPInstr):
            pointer = pointer.pointer
        elif isinstance(pointer, CastInstr) and pointer.opname in ("bitcast", "addrspacecast"):
            pointer = pointer.operands[0]
        else:
            return pointer
