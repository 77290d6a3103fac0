"""AMD GPUs: kernels as LLVM IR for the AMDGPU backend.

Source of the facts about registers, address spaces and implicit arguments: LLVM, "User Guide for AMDGPU Backend".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba.core import cgutils, types

from hip_devicelib.target import STACK_BYTES
from numba_hip._numba.compiler import lowered_symbol
from numba_hip.abi.kernel_arguments import kernel_arguments, parameters_of
from numba_hip.language import printing
from numba_hip.language.warp import Way
from numba_hip.named_calls import call_named
from numba_hip.targets.amd import lane_exchange, row_exchange, saturation
from numba_hip.targets.amd.fault_report import report_fault
from numba_hip.targets.amd.matrices import AmdMatrixUnit
from numba_hip.targets.callconv import ITEM
from numba_hip.targets.code_library import HipCodeLibrary
from numba_hip.targets.context import I32, HipContext
from numba_hip.targets.function_attributes import add_attribute
from numba_hip.targets.line_tables import locate_entry

if TYPE_CHECKING:
    from numba_hip.float8 import Float8
    from numba_hip.language.shared_loads import DirectLoader
    from numba_hip.targets.amd.codegen import AmdCodegen
    from numba_hip.targets.typing import HipTypingContext

FLOAT = ir.FloatType()

GLOBAL, SHARED, CONSTANT = 1, 3, 4
"""Address spaces: the device's memory, shared memory (LDS), and constant memory."""

SYNC_SCOPES = {"block": "workgroup", "device": "agent", "system": None}
"""LLVM's names of scopes; the widest one has none."""

OTHER_MEMORY = ("fine.grained", "remote")
"""Kinds of memory that not all atomic instructions work on, as LLVM's metadata call them: the host's, another GPU's."""

GRID_BARRIER = "__ockl_grid_sync"

DYNAMIC_SHARED = "numba_hip.dynamic_shared"
DYNAMIC_SHARED_BYTES_OFFSET = 120
"""Offset of hidden_dynamic_lds_size (u32) in the implicit arguments of code object version 5 and later."""

GRID_DIM_OFFSETS = {"x": 0, "y": 4, "z": 8}
"""Offsets of hidden_block_count_* (u32) in the implicit arguments of code object version 5 and later."""

BLOCK_DIM_OFFSETS = {"x": 12, "y": 14, "z": 16}
"""Offsets of hidden_group_size_* (u16) there."""

NATIVE_MATH = frozenset({"ceil", "copysign", "fabs", "floor", "fma", "rint", "sqrt", "trunc"})
"""Functions that the hardware has for floats and doubles, correctly rounded; all others come from OCML."""

OCML_NAMES = {"gamma": "tgamma"}


class AmdContext(HipContext):
    """Lowering for one AMD GPU."""

    constant_address_space = CONSTANT
    global_address_space = GLOBAL
    implement_powi_as_math_call = True
    implement_pow_as_math_call = True
    _codegen: AmdCodegen

    def __init__(self, typing_context: HipTypingContext, numba_name: str, codegen: AmdCodegen) -> None:
        super().__init__(typing_context, numba_name, codegen)
        self.most_shared_bytes, self.most_private_bytes = codegen.limits

    def stack_is_low(self, builder: ir.IRBuilder) -> ir.Value:
        """Whether the function's frame is in the second half of the thread's stack.

        The address of a slot shows that: the low half of an address of private memory, also of a flat one, is the
        thread's byte offset. The second half of the stack is reserved for the frame, and for functions that are not
        recursive; linking the kernel checks that it is large enough for them.
        """
        slot = cgutils.alloca_once(builder, ir.IntType(8))
        place = builder.trunc(builder.ptrtoint(slot, ir.IntType(64)), I32)
        return builder.icmp_unsigned(">=", place, ir.Constant(I32, STACK_BYTES // 2))

    def thread_index(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Index of the thread in its block, from a vector register."""
        return self._bounded(builder, call_named(builder, f"llvm.amdgcn.workitem.id.{axis}", I32), 0, 1024)

    def block_index(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Index of the block in the grid, from a scalar register."""
        return self._bounded(builder, call_named(builder, f"llvm.amdgcn.workgroup.id.{axis}", I32), 0, 2**31 - 1)

    def block_dim(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Threads of a block, from the implicit arguments."""
        narrow = self._implicit_argument(builder, BLOCK_DIM_OFFSETS[axis], ir.IntType(16), (1, 1025))
        return builder.zext(narrow, I32)

    def grid_dim(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Blocks of the grid, from the implicit arguments."""
        return self._implicit_argument(builder, GRID_DIM_OFFSETS[axis], I32, (1, -(2**31)))

    def threads_of(self, builder: ir.IRBuilder, blocks: ir.Value, block_dim: ir.Value) -> ir.Value:
        """An i32, as the packet of a launch (HSA's AQL) counts threads along an axis in 32 bits."""
        return builder.mul(blocks, block_dim, flags=("nuw",))

    def _implicit_argument(
        self, builder: ir.IRBuilder, offset: int, kind: ir.IntType, bounds: tuple[int, int]
    ) -> ir.LoadInstr:
        base = call_named(builder, "llvm.amdgcn.implicitarg.ptr", ir.PointerType(ir.IntType(8), CONSTANT))
        address = builder.gep(base, [ir.Constant(I32, offset)], inbounds=True)
        value = builder.load(builder.bitcast(address, ir.PointerType(kind, CONSTANT)), align=kind.width // 8)
        value.set_metadata("invariant.load", builder.module.add_metadata([]))
        return self._bounded(builder, value, *bounds)

    @staticmethod
    def _bounded(builder: ir.IRBuilder, value: Any, low: int, high: int) -> Any:
        """*value*, a call or a load, annotated as being in the range from *low* up to, but not including, *high*."""
        bounds = [ir.Constant(value.type, low), ir.Constant(value.type, high)]
        value.set_metadata("range", builder.module.add_metadata(bounds))
        return value

    def barrier(self, builder: ir.IRBuilder) -> None:
        """The barrier of the block, between fences that make what was written before it visible after it."""
        builder.fence("release", "workgroup")
        call_named(builder, "llvm.amdgcn.s.barrier", ir.VoidType())
        builder.fence("acquire", "workgroup")

    def barrier_count(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """OCKL's reduction over the block, as in HIP's ``__syncthreads_count``."""
        self.barrier(builder)
        return call_named(builder, "__ockl_wgred_add_i32", I32, builder.zext(vote, I32))

    def grid_barrier(self, builder: ir.IRBuilder) -> None:
        """OCKL's barrier, as in HIP's ``grid_group::sync``, between fences for the whole device."""
        builder.fence("release", "agent")
        call_named(builder, GRID_BARRIER, ir.VoidType()).callee.attributes.add("convergent")
        builder.fence("acquire", "agent")

    def wave_barrier(self, builder: ir.IRBuilder) -> None:
        """Lanes of a wave run in lock step; only their writes have to be made visible."""
        builder.fence("release", "wavefront")
        call_named(builder, "llvm.amdgcn.wave.barrier", ir.VoidType())
        builder.fence("acquire", "wavefront")

    def fence(self, builder: ir.IRBuilder, scope: str) -> None:
        """A fence of LLVM's scope for AMD GPUs."""
        builder.fence("seq_cst", SYNC_SCOPES[scope])

    def ordering(self, scope: str) -> str:
        """Relaxed, among the threads of *scope*."""
        name = SYNC_SCOPES[scope]
        return "monotonic" if name is None else f'syncscope("{name}") monotonic'

    def atomic_rmw(
        self, builder: ir.IRBuilder, operation: str, pointer: ir.Value, value: ir.Value, scope: str = "device"
    ) -> ir.Value:
        """Adds the metadata that allows LLVM to use instructions which only work on the device's own memory, as clang
        does for HIP C++, unless the host or another GPU may access the memory."""
        instruction = super().atomic_rmw(builder, operation, pointer, value, scope)
        variant, nothing = self._codegen.variant, builder.module.add_metadata([])
        if not variant.host_atomics and scope != "system":
            for kind in OTHER_MEMORY:
                instruction.set_metadata(f"amdgpu.no.{kind}.memory", nothing)
        if variant.unsafe_fp_atomics and operation.startswith("f"):
            instruction.set_metadata("amdgpu.ignore.denormal.mode", nothing)
        return instruction

    def shared_memory(self, builder: ir.IRBuilder, storage: ir.Type, alignment: int) -> ir.Value:
        """A variable in LDS."""
        name = builder.module.get_unique_name(f"{builder.function.name}.shared")
        variable = ir.GlobalVariable(builder.module, storage, name, SHARED)
        variable.linkage, variable.initializer = "internal", ir.Constant(storage, ir.Undefined)
        # LLVM aligns it so in the end; said here, it lets loads and stores of neighbours become one of 16 bytes.
        size = self.get_abi_sizeof(storage)
        variable.align = max(alignment, next(wide for wide in (16, 8, 4, 2, 1) if wide <= size or wide == 1))
        return builder.addrspacecast(variable, ir.PointerType(ir.IntType(8)))

    def dynamic_shared_memory(self, builder: ir.IRBuilder) -> tuple[ir.Value, ir.Value]:
        """An LDS array without a size, and the implicit argument with its size."""
        variable = builder.module.globals.get(DYNAMIC_SHARED)
        if variable is None:
            empty = ir.ArrayType(ir.IntType(8), 0)
            variable = ir.GlobalVariable(builder.module, empty, DYNAMIC_SHARED, SHARED)
            variable.linkage, variable.align = "external", 16
        size = self._implicit_argument(builder, DYNAMIC_SHARED_BYTES_OFFSET, I32, (0, 2**31 - 1))
        pointer = builder.addrspacecast(variable, ir.PointerType(ir.IntType(8)))
        return pointer, builder.zext(size, ir.IntType(64))

    def lane(self, builder: ir.IRBuilder) -> ir.Value:
        """How many lanes there are below this one."""
        all_lanes, none = ir.Constant(I32, -1), ir.Constant(I32, 0)
        low = call_named(builder, "llvm.amdgcn.mbcnt.lo", I32, all_lanes, none)
        return call_named(builder, "llvm.amdgcn.mbcnt.hi", I32, all_lanes, low)

    def wave_size(self, builder: ir.IRBuilder) -> ir.Value:
        """What LLVM knows of the target."""
        return call_named(builder, "llvm.amdgcn.wavefrontsize", I32)

    def matrix_unit(self) -> AmdMatrixUnit:
        """The matrix cores of the GPU."""
        return AmdMatrixUnit(self, self._codegen.target)

    def direct_loader(self) -> DirectLoader | None:
        """The loads of gfx9 GPUs, where this is one."""
        from numba_hip.targets.amd.direct_loads import AmdDirectLoader  # few kernels use it

        return AmdDirectLoader.of(self, self._codegen.target)

    def widen_float8(self, builder: ir.IRBuilder, bits: ir.Value, kind: Float8) -> ir.Value | None:
        """By the instruction of the GPU's formats; see `numba_hip.targets.amd.float8_numbers`."""
        from numba_hip.targets.amd import float8_numbers  # few kernels have any

        return float8_numbers.widen(self._codegen.target, builder, bits, kind)

    def narrow_float8(self, builder: ir.IRBuilder, value: ir.Value, kind: Float8) -> ir.Value | None:
        """By the instruction of the GPU's formats; see `numba_hip.targets.amd.float8_numbers`."""
        from numba_hip.targets.amd import float8_numbers  # few kernels have any

        return float8_numbers.narrow(self._codegen.target, builder, value, kind)

    def active_lanes(self, builder: ir.IRBuilder) -> ir.Value:
        """The lanes that vote true when all of them do."""
        return self.ballot(builder, ir.Constant(ir.IntType(1), 1))

    def ballot(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """The active lanes that vote true."""
        return call_named(builder, "llvm.amdgcn.ballot.i64", ir.IntType(64), vote)

    def shuffle(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """Words that lanes fetch from each other; see `numba_hip.targets.amd.lane_exchange` for waves of halves."""
        target = self._codegen.target
        return lane_exchange.move_words(builder, value, lambda word: lane_exchange.fetch(target, builder, word, lane))

    def read_lane(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """Read into a scalar register, from any lane, whether active or not."""
        return lane_exchange.move_words(
            builder, value, lambda word: call_named(builder, "llvm.amdgcn.readlane.i32", I32, word, lane)
        )

    def read_first_lane(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """Read into a scalar register."""
        return lane_exchange.move_words(
            builder, value, lambda word: call_named(builder, "llvm.amdgcn.readfirstlane.i32", I32, word)
        )

    def keep_in_scalar(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """That of the lowest active lane: what LLVM calculates from it needs one instruction for a wave."""
        return self.read_first_lane(builder, value)

    def shuffle_by(self, builder: ir.IRBuilder, value: ir.Value, way: Way, distance: int) -> ir.Value | None:
        """By an instruction that knows the distance, if there is one; see `numba_hip.targets.amd.row_exchange`."""
        target = self._codegen.target
        if way == "lane":
            return self.read_lane(builder, value, I32(distance % target.wave_size))
        return lane_exchange.move_words(
            builder, value, lambda word: row_exchange.fetch_at(target, builder, word, way, distance)
        )

    def push(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """The instruction behind HIP's ``__hip_ds_permute``, if it reaches all lanes."""
        if lane_exchange.has_halves(self._codegen.target):
            return super().push(builder, value, lane)
        address = builder.shl(lane, ir.Constant(I32, 2))
        word = builder.bitcast(value, I32)
        return builder.bitcast(call_named(builder, "llvm.amdgcn.ds.permute", I32, address, word), value.type)

    def choose_assembly(self, text: str | Mapping[str, str]) -> str | None:
        """The text for this GPU; that with the longest beginning of its name."""
        if isinstance(text, str):
            return text
        fitting = [beginning for beginning in text if self._codegen.target.name.startswith(beginning)]
        return text[max(fitting, key=len)] if fitting else None

    def check_assembly(self, assembly: ir.InlineAsm) -> None:
        """Make machine code of a function with nothing but *assembly*, in another process."""
        from numba_hip.targets.amd import assembly as assemblies  # few kernels have any

        assemblies.check(assembly, self._codegen.target)

    def clock(self, builder: ir.IRBuilder) -> ir.Value:
        """The counter of shader cycles."""
        return call_named(builder, "llvm.readcyclecounter", ir.IntType(64))

    def wall_clock(self, builder: ir.IRBuilder) -> ir.Value:
        """The counter of the device's constant clock."""
        return call_named(builder, "llvm.readsteadycounter", ir.IntType(64))

    def sleep(self, builder: ir.IRBuilder, nanoseconds: ir.Value) -> None:
        """Sleeps of 64 cycles each, some 32 nanoseconds. What the thread polls is read again, from where other
        workgroups write it."""
        rounds = builder.lshr(nanoseconds, ir.Constant(I32, 5))
        with cgutils.loop_nest(builder, [rounds], I32):
            call_named(builder, "llvm.amdgcn.s.sleep", ir.VoidType(), ir.Constant(I32, 1))
        builder.fence("acquire", "agent")

    def stop_for_debugger(self, builder: ir.IRBuilder) -> None:
        """A trap after which the wave continues if there is no debugger."""
        call_named(builder, "llvm.debugtrap", ir.VoidType())

    def call_math(self, builder: ir.IRBuilder, name: str, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call a math function: an instruction of the hardware, or OCML's."""
        kind = arguments[0].type
        bits = "f32" if kind == FLOAT else "f64"
        symbol = f"llvm.{name}.{bits}" if name in NATIVE_MATH else f"__ocml_{OCML_NAMES.get(name, name)}_{bits}"
        return call_named(builder, symbol, kind, *arguments)

    def fault_details(self, builder: ir.IRBuilder) -> ir.Value | None:
        """The slot in the entry of a kernel to which all functions write details of a fault, an array of i64."""
        del builder
        return None

    def saturate(self, builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, signed: bool) -> ir.Value:
        """In one instruction where the hardware has one, see `saturation`."""
        return saturation.saturate(builder, value, kind, signed)

    def build_entry(
        self, library: HipCodeLibrary, function: Any, name: str, options: Any
    ) -> tuple[tuple[str, str], ...]:
        """Add the kernel *name*; its pointers are in the global address space, where all memory that a host passes
        is."""
        descriptor = function.fndesc
        module = self.create_module(f"{name}.entry")
        packer = kernel_arguments(self, descriptor.argtypes)
        flat = list(packer.argument_types)
        passed = [ir.PointerType(kind.pointee, GLOBAL) if isinstance(kind, ir.PointerType) else kind for kind in flat]
        prints = printing.add_parameter(library, passed, GLOBAL)
        entry = ir.Function(module, ir.FunctionType(ir.VoidType(), passed), name)
        entry.calling_convention = "amdgpu_kernel"
        add_attribute(entry, "amdgpu-flat-work-group-size", f"1,{options.max_block_threads}")
        add_attribute(entry, "uniform-work-group-size", "true")
        if options.min_unit_blocks is not None:
            waves = self._codegen.target.waves_per_simd(options.min_unit_blocks, options.max_block_threads)
            add_attribute(entry, "amdgpu-waves-per-eu", str(waves))
        if options.waves_of_unit is not None:
            fewest, most = options.waves_of_unit
            add_attribute(entry, "amdgpu-waves-per-eu", str(fewest) if most is None else f"{fewest},{most}")
        if options.max_registers is not None:
            share = 2 if self.codegen().target.has_unified_registers else 1
            add_attribute(entry, "amdgpu-num-vgpr", str(max(1, options.max_registers // share)))
        builder = ir.IRBuilder(entry.append_basic_block("entry"))
        if options.keeps_lines:
            locate_entry(self, builder, function, variables=options.debug)
        arguments = [
            builder.addrspacecast(argument, kind) if isinstance(kind, ir.PointerType) else argument
            for argument, kind in zip(entry.args, flat, strict=False)  # not the buffer for printed output
        ]
        if prints:
            printing.store_parameter(builder, entry.args[-1], GLOBAL)
        callee_type = self.call_conv.get_function_type(descriptor.restype, descriptor.argtypes)
        callee = ir.Function(module, callee_type, lowered_symbol(descriptor))
        values = packer.from_arguments(builder, arguments)
        slot = self.fault_details(builder)
        hidden = [] if slot is None else [builder.bitcast(slot, ITEM)]
        status, _ = self.call_conv.call_function(builder, callee, types.void, descriptor.argtypes, values, hidden)
        if options.reports_faults and library.can_fault():
            with builder.if_then(status.is_error, likely=False):
                details = [] if slot is None else cgutils.unpack_tuple(builder, builder.load(slot))
                report_fault(self, builder, name, status.code, details)
        builder.ret_void()
        library.add_ir_module(module)
        return parameters_of(descriptor.args, packer, entry.args)
