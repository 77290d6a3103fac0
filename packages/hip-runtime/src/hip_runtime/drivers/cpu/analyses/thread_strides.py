"""How far apart the accesses of neighbouring threads are, where that is a constant."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.analyses.affine import AFFINE, coefficient
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Block, Instruction, Value

ADDRESSING = frozenset({"getelementptr", "zext", "sext", "shl", "br"})
"""What a loop over threads computes once, or in the address of an access."""

_COMPUTED_PER_LOAD, _COMPUTED_PER_STORE = 6, 8
"""Instructions for each load and store at whose number lanes, which gather and scatter, take as long as one thread
after another, by the costs of `cost_model`."""

_LEAST_OF_ROW = 4
"""Elements of a row that are loaded together."""


class ThreadStrides:
    """Strides along *axis*, of code of which *varying* are the values that differ between threads."""

    def __init__(self, axis: str, varying: Collection[Instruction], size_of: SizeOf) -> None:
        self._index = spmd.thread_idx(axis)
        self._varying = varying
        self._size_of = size_of
        self._strides: dict[Instruction, int | None] = {}

    def farthest(self, blocks: Iterable[Block], opcode: str) -> int | None:
        """The largest distance, in elements, of what two neighbours access by an *opcode*, ``load`` or ``store``, in
        *blocks*; ``None`` if one is not a constant or no whole number of elements."""
        strides = [self._elements(value) for block in blocks for value in block.instructions if value.opcode == opcode]
        known = [abs(stride) for stride in strides if stride is not None]
        return max(known, default=0) if len(known) == len(strides) else None

    def goes_through_rows(self, blocks: Iterable[Block], most: int) -> bool:
        """Whether threads load several elements each that lie further than *most* elements from the next thread's, as
        of a row each: gangs load parts of rows and turn them, where LLVM gathers one element after another."""
        strides = [self._elements(value) for block in blocks for value in block.instructions if value.opcode == "load"]
        return sum(stride is not None and abs(stride) > most for stride in strides) >= _LEAST_OF_ROW

    def scatters(self, blocks: Sequence[Block], most: int) -> bool:
        """Whether what *blocks* do is mostly to access elements that are further apart than *most*, and some of these
        are stored: as lanes, threads would gather and scatter them."""
        loads = stores = others = 0
        for block in blocks:
            for value in block.instructions:
                stride = self._elements(value) if value.opcode in ("load", "store") else 0
                far = stride is not None and abs(stride) > most
                loads += far and value.opcode == "load"
                stores += far and value.opcode == "store"
                others += value in self._varying and value.opcode not in ADDRESSING
        return stores > 0 and others <= _COMPUTED_PER_LOAD * loads + _COMPUTED_PER_STORE * stores

    def _elements(self, access: Instruction) -> int | None:
        stride, nbytes = self.of(access.address), self._size_of(access.accessed)
        return None if stride is None or stride % nbytes else stride // nbytes

    def of(self, value: Value) -> int | None:
        """By how much *value* grows from one thread to the next; ``None`` if not by a constant."""
        if not isinstance(value, Instruction) or value not in self._varying:
            return 0
        if value not in self._strides:
            self._strides[value] = None  # for values that depend on themselves
            if value.callee == self._index:
                self._strides[value] = 1
            elif value.opcode in AFFINE:
                self._strides[value] = coefficient(
                    value, [self.of(operand) for operand in value.operands], self._size_of
                )
        return self._strides[value]
