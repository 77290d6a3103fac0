"""Loop metadata, which is attached to the branch that goes back to the loop's header."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir


class DistinctNode(ir.values.MDValue):
    """A metadata node that is not the same as any other with the same contents. With *loop* its first operand is
    itself, which is how LLVM identifies loops."""

    def __init__(self, module: ir.Module, operands: Sequence[ir.values.MDValue], loop: bool) -> None:
        super().__init__(module, list(operands), name=str(len(module.metadata)))
        self._loop = loop

    def descr(self, buf: list[str]) -> None:
        """Write it behind its name."""
        references = [node.get_reference() for node in ([self] if self._loop else []) + list(self.operands)]
        buf += ("distinct !{ ", ", ".join(references), " }\n")


def mark_loop(branch: ir.Instruction, module: ir.Module, *properties: ir.values.MDValue) -> None:
    """Add *properties* to the loop whose back edge is *branch*."""
    branch.set_metadata("llvm.loop", DistinctNode(module, properties, loop=True))


def rolled(module: ir.Module) -> ir.values.MDValue:
    """The properties of a loop that LLVM should not transform."""
    return module.add_metadata([ir.MetaDataString(module, "llvm.loop.unroll.disable")])


def unvectorized(module: ir.Module) -> ir.values.MDValue:
    """The properties of a loop of which LLVM should not make vectors."""
    return module.add_metadata([ir.MetaDataString(module, "llvm.loop.vectorize.width"), ir.Constant(ir.IntType(32), 1)])


def keep_rolled(branch: ir.Instruction, module: ir.Module) -> None:
    """Have LLVM leave the loop whose back edge is *branch* unchanged, as its body is large."""
    mark_loop(branch, module, rolled(module))
