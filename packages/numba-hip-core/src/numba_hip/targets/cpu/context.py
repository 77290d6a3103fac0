"""The CPU device: kernels as SPMD bitcode (``docs/design/spmd-bitcode.md``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

from hip_devicelib import spmd
from hip_devicelib.cached_property import cached_property
from hip_devicelib.cpu.catalog import FUNCTIONS, PREFIX, ULP4
from hip_devicelib.cpu.saturation import saturate
from hip_devicelib.large_constants import ALIGNMENT, LARGE, symbol_of_data
from numba_hip._numba.compiler import lowered_symbol
from numba_hip.abi.kernel_arguments import kernel_arguments, parameters_of
from numba_hip.language import printing
from numba_hip.named_calls import call_named
from numba_hip.targets.callconv import ITEM, SpmdCallConv
from numba_hip.targets.code_library import HipCodeLibrary
from numba_hip.targets.context import I32, HipContext
from numba_hip.targets.cpu.matrices import CpuMatrixUnit
from numba_hip.targets.function_attributes import add_attribute
from numba_hip.targets.line_tables import locate_entry

INDEX_RANGES = {"thread_idx": (0, 1024), "block_idx": (0, 2**31 - 1), "block_dim": (1, 1025), "grid_dim": (1, -(2**31))}
"""What each index can be, as LLVM's ``!range``: from the first number up to and without the second."""

NATIVE_MATH = frozenset({"ceil", "copysign", "fabs", "floor", "fma", "rint", "round", "sqrt", "trunc"})
"""Functions that processors have instructions for, or nearly so. The others come from hip-devicelib, which vectorises,
or, where it has none, from the C math library."""


class CpuContext(HipContext):
    """Lowering for the CPU device."""

    most_shared_bytes = spmd.SHARED_BYTES
    runs_in_process = True
    implement_powi_as_math_call = True
    implement_pow_as_math_call = True

    @cached_property
    def call_conv(self) -> SpmdCallConv:
        """How functions call one another: with the work item as a hidden parameter."""
        return SpmdCallConv(self)

    def hidden_parameters(self) -> Sequence[tuple[str, ir.Type]]:
        """Names and types, pointers, of what kernels take behind their arguments and hand on to what they call."""
        return ()

    def stack_is_low(self, builder: ir.IRBuilder) -> ir.Value:
        """Whether the stack of the processor has no room for one more call."""
        return self._call(builder, spmd.STACK_IS_LOW, ir.IntType(1))

    def thread_index(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Index of the thread in its block."""
        return self._index(builder, spmd.thread_idx, axis)

    def block_index(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Index of the block in the grid."""
        return self._index(builder, spmd.block_idx, axis)

    def block_dim(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Threads of a block."""
        return self._index(builder, spmd.block_dim, axis)

    def grid_dim(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Blocks of the grid."""
        return self._index(builder, spmd.grid_dim, axis)

    def _index(self, builder: ir.IRBuilder, what: Callable[[str], str], axis: str) -> ir.Value:
        call = self._query(builder, what(axis), I32)
        low, high = INDEX_RANGES[what.__name__]
        call.set_metadata("range", builder.module.add_metadata([ir.Constant(I32, low), ir.Constant(I32, high)]))
        return call

    def _call(self, builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.CallInstr:
        return call_named(builder, name, result, self.call_conv.hidden_values(builder)[0], *values)

    def _synchronise(self, builder: ir.IRBuilder, name: str, result: ir.Type, *values: ir.Value) -> ir.CallInstr:
        """An operation at which threads wait for others, with its place in the source."""
        call = self._call(builder, name, result, *values)
        location = self.active_code_library.location
        if location is not None:
            call.set_metadata(spmd.PLACE, builder.module.add_metadata([location]))
        return call

    def _query(self, builder: ir.IRBuilder, name: str, result: ir.Type) -> ir.CallInstr:
        call = self._call(builder, name, result)
        call.callee.attributes.add("nounwind")
        call.callee.attributes.add("readnone")
        return call

    def barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for all threads of the block."""
        self._synchronise(builder, spmd.BARRIER, ir.VoidType())

    def barrier_count(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """Wait, and count votes."""
        return self._synchronise(builder, spmd.BARRIER_COUNT, I32, vote)

    def grid_barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for all threads of the launch."""
        self._synchronise(builder, spmd.GRID_BARRIER, ir.VoidType())

    def wave_barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for the active lanes."""
        self._synchronise(builder, spmd.WAVE_BARRIER, ir.VoidType())

    def fence(self, builder: ir.IRBuilder, scope: str) -> None:
        """A full fence: whatever runs elsewhere does so on another core."""
        del scope
        builder.fence("seq_cst")

    def ordering(self, scope: str) -> str:
        """Relaxed, as on GPUs; for all threads of the process."""
        del scope
        return "monotonic"

    def atomic_extreme(
        self, builder: ir.IRBuilder, predicate: str, pointer: ir.Value, value: ir.Value
    ) -> ir.Value | None:  # fmt: skip
        """A function of the contract, for float32 and float64."""
        if str(value.type) not in spmd.EXTREME:
            return None
        name = (spmd.ATOMIC_MAX if predicate == ">" else spmd.ATOMIC_MIN) + str(value.type)
        call = call_named(builder, name, value.type, pointer, value)
        call.callee.attributes.add("nounwind")
        return call

    def shared_memory(self, builder: ir.IRBuilder, storage: ir.Type, alignment: int) -> ir.Value:
        """A declaration of its own for each array; its name says how much memory it is."""
        size = self.get_abi_sizeof(storage)
        number = sum(name.startswith(spmd.SHARED) for name in builder.module.globals)
        return self._query(builder, f"{spmd.SHARED}{builder.function.name}.{number}.{size}.{alignment}", ITEM)

    def dynamic_shared_memory(self, builder: ir.IRBuilder) -> tuple[ir.Value, ir.Value]:
        """Two questions to the device."""
        return (
            self._query(builder, spmd.DYNAMIC_SHARED, ITEM),
            self._query(builder, spmd.DYNAMIC_SHARED_BYTES, ir.IntType(64)),
        )

    def lane(self, builder: ir.IRBuilder) -> ir.Value:
        """Index of the thread in its wave."""
        return self._query(builder, spmd.LANE, I32)

    def wave_size(self, builder: ir.IRBuilder) -> ir.Value:
        """Lanes of a wave."""
        return self._query(builder, spmd.WAVE_SIZE, I32)

    def matrix_unit(self) -> CpuMatrixUnit:
        """Loops."""
        return CpuMatrixUnit(self)

    def active_lanes(self, builder: ir.IRBuilder) -> ir.Value:
        """The lanes that are active here."""
        return self._synchronise(builder, spmd.ACTIVE_LANES, ir.IntType(64))

    def ballot(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """The active lanes that vote true."""
        return self._synchronise(builder, spmd.BALLOT, ir.IntType(64), vote)

    def shuffle(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """The value of another lane."""
        return self._synchronise(builder, f"{spmd.SHUFFLE}{value.type}", value.type, value, lane)

    def check_assembly(self, assembly: ir.InlineAsm) -> None:
        """Make machine code of a function with nothing but *assembly*, in another process."""
        from numba_hip.targets.cpu import assembly as assemblies  # few kernels have any

        assemblies.check(assembly)

    def place_constant(self, module: ir.Module, data: bytes) -> ir.GlobalVariable:
        """A variable with the bytes *data*; large ones are told to the library and defined when a kernel is loaded."""
        if len(data) < LARGE:
            return super().place_constant(module, data)
        symbol = symbol_of_data(data)
        self.active_code_library.data[symbol] = data
        variable = module.globals.get(symbol)
        if variable is None:
            variable = ir.GlobalVariable(module, ir.ArrayType(ir.IntType(8), len(data)), symbol)
            variable.linkage, variable.global_constant, variable.align = "external", True, ALIGNMENT
        return variable

    def clock(self, builder: ir.IRBuilder) -> ir.Value:
        """The time stamp counter, or what the processor has in its place."""
        return call_named(builder, "llvm.readcyclecounter", ir.IntType(64))

    def wall_clock(self, builder: ir.IRBuilder) -> ir.Value:
        """The same counter: it runs at a constant frequency on processors of today."""
        return self.clock(builder)

    def sleep(self, builder: ir.IRBuilder, nanoseconds: ir.Value) -> None:
        """No time: it would hold up the threads that this one waits for. What the thread polls is read again."""
        builder.fence("acquire", "singlethread")

    def stop_for_debugger(self, builder: ir.IRBuilder) -> None:
        """Nothing: a trap ends the process where no debugger takes it."""

    def call_math(self, builder: ir.IRBuilder, name: str, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call a math function: an instruction, hip-devicelib's, or the C library's."""
        kind = arguments[0].type
        bits = "f32" if kind == ir.FloatType() else "f64"
        own = f"{PREFIX}{name}_{bits}"
        if self.is_within_4_units and own + ULP4 in FUNCTIONS:
            own += ULP4
        if name in NATIVE_MATH:
            symbol = f"llvm.{name}.{bits}"
        else:
            symbol = own if own in FUNCTIONS else name + ("f" if bits == "f32" else "")
        return call_named(builder, symbol, kind, *arguments)

    def saturate(self, builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, signed: bool) -> ir.Value:
        """Minimum, maximum and the processor's conversion."""
        return saturate(builder, value, kind, signed)

    def build_entry(
        self, library: HipCodeLibrary, function: Any, name: str, options: Any
    ) -> tuple[tuple[str, str], ...]:
        """Add the kernel *name*: ``void name(item, arguments...)``, which reports an exception as a fault."""
        descriptor = function.fndesc
        module = self.create_module(f"{name}.entry")
        packer = kernel_arguments(self, descriptor.argtypes)
        hidden = self.hidden_parameters()
        passed = [*packer.argument_types, *(kind for _, kind in hidden)]
        prints = printing.add_parameter(library, passed, self.global_address_space)
        entry_type = ir.FunctionType(ir.VoidType(), [ITEM, *passed])
        entry = ir.Function(module, entry_type, name)
        if not any(one.has_large_choice for one in library.closure()):
            # LLVM is to make no tables of what branches choose: lanes would gather from these, which takes two to four
            # times as long as vectors of choices. What is inlined into the entry is compiled as that says.
            add_attribute(entry, "no-jump-tables", "true")
        item, *arguments = entry.args
        item.name = "item"
        item.add_attribute("noalias")
        for parameter, (hidden_name, _) in zip(arguments[len(packer.argument_types) :], hidden, strict=False):
            parameter.name = hidden_name
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        if options.keeps_lines:
            locate_entry(self, builder, function)
        if prints:
            printing.store_parameter(builder, arguments[-1], self.global_address_space)
        callee_type = self.call_conv.get_function_type(descriptor.restype, descriptor.argtypes)
        callee = ir.Function(module, callee_type, lowered_symbol(descriptor))
        values = packer.from_arguments(builder, arguments[: len(packer.argument_types)])
        status, _ = self.call_conv.call_function(builder, callee, types.void, descriptor.argtypes, values)
        _inline_call(builder.block, callee)
        with builder.if_then(status.is_error, likely=False):
            fault_type = ir.FunctionType(ir.VoidType(), [ITEM, I32])
            builder.call(ir.Function(module, fault_type, spmd.FAULT), [item, status.code])
        builder.ret_void()
        library.add_ir_module(module)
        return parameters_of(descriptor.args, packer, arguments)


def _inline_call(block: ir.Block, callee: ir.Function) -> None:
    """Have LLVM inline the call of *callee* in *block*, however large that is: only the entry can become vectors."""
    for instruction in block.instructions:
        if isinstance(instruction, ir.CallInstr) and instruction.callee is callee:
            instruction.attributes.add("alwaysinline")
