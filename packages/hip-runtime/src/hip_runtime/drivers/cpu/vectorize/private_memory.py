"""The private memory of the threads of a gang: the ``alloca`` instructions of its function."""

from __future__ import annotations

from collections.abc import Iterator

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.private_arrays import find_private_arrays
from hip_runtime.drivers.cpu.analyses.stack_usage import private_type
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.ir.model import Constant, Function, Instruction
from hip_runtime.drivers.cpu.ir.trace import record
from hip_runtime.drivers.cpu.llvmir import I8, PTR, allocate
from hip_runtime.drivers.cpu.object_code.host_machine import vector_bytes, vector_registers
from hip_runtime.drivers.cpu.passes.interleave_private import interleave_private
from hip_runtime.errors import UnsupportedError

_REGISTER_BYTES = 16 << 10
"""Private arrays of all lanes of a gang that are larger than this together are not going to be registers."""


class PrivateMemory:
    """What threads of *function* keep in memory of their own, laid out for gangs of *width* lanes: elements of arrays
    beside those of the neighbours, if all accesses allow that. That changes the function, which is called *name*."""

    def __init__(self, function: Function, size_of: SizeOf, width: int, name: str) -> None:
        self._graph = function
        self._size_of = size_of
        self._width = width
        self._arrays = find_private_arrays(function, size_of)
        self._steps: dict[Instruction, ir.Type] = {}
        if self._arrays:
            self._steps = interleave_private(function, self._arrays, width)
            record(f"interleave_private {name}", function)

    @property
    def has_arrays(self) -> bool:
        """Whether the kernel has private arrays in memory."""
        return bool(self._arrays)

    def lay_out_again(self) -> None:
        """Undo what was done to the function for this width."""
        for address, kind in self._steps.items():
            address.source_type = kind

    def fits_registers(self, width: int) -> bool:
        """Whether registers hold half of it at least in gangs of *width*, if LLVM makes values of it."""
        allocas = set(self._allocas())
        nbytes = sum(map(self._bytes, allocas)) * width
        return not allocas or (self._arrays.keys() >= allocas and nbytes <= 2 * vector_registers() * vector_bytes())

    def stride(self, alloca: Instruction) -> int:
        """How far the memory of *alloca* is from that of the next lane."""
        return self._arrays[alloca].nbytes if alloca in self._arrays else self._bytes(alloca)

    def place(self, entry: ir.IRBuilder) -> dict[Instruction, ir.Value]:
        """Memory for all lanes, allocated at *entry*. Raises `UnsupportedError` for sizes that are not constants."""
        places = {}
        for alloca in self._allocas():
            if not isinstance(alloca.operands[0], Constant) or alloca.type != PTR:
                raise UnsupportedError("private memory whose size is known only at run time")
            place = allocate(entry, ir.ArrayType(I8, self._bytes(alloca) * self._width), "private")
            place.align = max(alloca.align, 64)
            places[alloca] = place
        return places

    def place_again(self, entry: ir.IRBuilder, privates: dict[Instruction, ir.Value]) -> dict[Instruction, ir.Value]:
        """Memory for another version of the code than that with *privates*: of its own where LLVM may make registers of
        it in one of them, which it does only if it can in both."""
        total = sum(self._bytes(alloca) for alloca in privates) * self._width
        return self.place(entry) if self._arrays and total <= _REGISTER_BYTES else privates

    def _allocas(self) -> Iterator[Instruction]:
        return (value for value in self._graph.instructions() if value.opcode == "alloca")

    def _bytes(self, alloca: Instruction) -> int:
        align = max(alloca.align, 1)
        return max(-(-self._size_of(private_type(alloca)) // align) * align, 1)
