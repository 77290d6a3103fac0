"""Loads into shared memory without registers, as `numba_hip.language.shared_loads` asks for them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from hip_devicelib.direct_loads import INTRINSIC, direct_load_widths, wait_operand
from hip_devicelib.target import Target
from numba_hip.named_calls import call_named

BIT, BYTE, I32 = ir.IntType(1), ir.IntType(8), ir.IntType(32)
GLOBAL, SHARED = ir.PointerType(BYTE, 1), ir.PointerType(BYTE, 3)


class AmdDirectLoader:
    """Those of one GPU."""

    def __init__(self, context: Any, widths: tuple[int, ...]) -> None:
        self.widths = widths
        self._context = context

    @classmethod
    def of(cls, context: Any, target: Target) -> AmdDirectLoader | None:
        """That of *target*, if it has such loads."""
        widths = direct_load_widths(target)
        return cls(context, widths) if widths else None

    def can_reach(self, builder: ir.IRBuilder, source: ir.Value, target: ir.Value) -> ir.Value:
        """From global memory to shared memory. LLVM knows the answer where the arrays are the kernel's own."""
        is_shared = call_named(builder, "llvm.amdgcn.is.shared", BIT, target)
        elsewhere = [call_named(builder, f"llvm.amdgcn.is.{kind}", BIT, source) for kind in ("shared", "private")]
        return builder.and_(is_shared, builder.not_(builder.or_(*elsewhere)))

    def first_of_wave(self, builder: ir.IRBuilder, thread: ir.Value) -> ir.Value:
        """In a scalar register. The hardware forms waves of neighbours in this order."""
        first = builder.sub(thread, self._context.lane(builder))
        return call_named(builder, "llvm.amdgcn.readfirstlane.i32", I32, first)

    def load(self, builder: ir.IRBuilder, width: int, source: ir.Value, target: ir.Value) -> None:
        """One instruction."""
        addresses = builder.addrspacecast(source, GLOBAL), builder.addrspacecast(target, SHARED)
        call_named(builder, INTRINSIC, ir.VoidType(), *addresses, I32(width), I32(0), I32(0))

    def finish(self, builder: ir.IRBuilder) -> None:
        """Wait, where LLVM does not let the next barrier wait for the loads."""
        operand = wait_operand()
        if operand is not None:
            call_named(builder, "llvm.amdgcn.s.waitcnt", ir.VoidType(), I32(operand))
