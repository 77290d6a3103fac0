"""Vector variants of the elementwise functions that a kernel calls.

A function with many call sites is not inlined at each of them, which would take LLVM long. It stays a function, with a
variant whose parameters and result are vectors with an element for each lane of a gang. The variant's last parameter is
the mask of the active lanes.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes
from hip_runtime.drivers.cpu.ir.debug_locations import keep_lines
from hip_runtime.drivers.cpu.ir.model import RESULT, Function
from hip_runtime.drivers.cpu.ir.symbol_declarations import SymbolDeclarations
from hip_runtime.drivers.cpu.llvmir import I1, allocate
from hip_runtime.drivers.cpu.vectorize.predicated_function import PredicatedFunction
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder
from hip_runtime.drivers.cpu.vectorize.widen import Widener
from hip_runtime.errors import UnsupportedError


class Variants:
    """The variants in the module of *item*, each written when it is first needed."""

    def __init__(self, item: WorkItem, symbols: SymbolDeclarations, size_of: Callable[[ir.Type], int]) -> None:
        self._item = item
        self._symbols = symbols
        self._size_of = size_of

    def find(self, function: Function, width: int) -> ir.Function | None:
        """The variant of *function*, whose parameters are instructions, for *width* lanes; ``None`` if vectors cannot
        run it, and for one lane, as LLVM 22 ends the process at a parameter of type ``<1 x i1>``."""
        if width == 1:
            return None
        name = f"{function.name}.lanes.{width}"
        known = self._item.module.globals.get(name)
        if known is not None:
            return known
        try:
            return self._write(function, name, width)
        except UnsupportedError:
            self._item.module.globals.pop(name, None)
            return None

    def _write(self, function: Function, name: str, width: int) -> ir.Function:
        (result,) = (value.operands[0] for value in function.instructions() if value.opcode == RESULT)
        kinds = [ir.VectorType(value.type, width) for value in function.arguments]
        kind = ir.FunctionType(ir.VectorType(result.type, width), [*kinds, ir.VectorType(I1, width)])
        made = ir.Function(self._item.module, kind, name)
        for attribute in ("noinline", "nounwind"):
            made.attributes.add(attribute)
        entry = ir.IRBuilder(made.append_basic_block("entry"))
        builder = ir.IRBuilder(made.append_basic_block("gang"))
        if self._item.has_lines:
            keep_lines(builder)
        first, done = builder.block, builder.append_basic_block("done")
        place = allocate(entry, kind.return_type, "result")
        shapes = VectorShapes(function, {}, self._size_of, lambda alloca: 0, False)
        if any(block.terminator.opcode == "ret" for block in shapes.masked):
            raise UnsupportedError(f"lanes return from {function.name!r} in different blocks")
        *values, mask = made.args
        code = Widener(
            VectorBuilder(builder, width, entry), shapes, self._item, self._symbols, entry, [*values, place], {}, self
        )
        PredicatedFunction(code, mask, done, {}, None).write()
        entry.branch(first)
        builder.position_at_end(done)
        builder.ret(builder.load(place, typ=kind.return_type))
        return made
