"""The target context: how typed code becomes LLVM IR, as far as all devices agree.

Where devices differ, a feature of the kernel language calls one of the few methods that the subclasses for the
CPU device and for AMD GPUs define.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from hip_devicelib.cached import cached_property
from hip_devicelib.large_constants import spell_bytes
from hip_runtime import DeviceArray
from numba_hip import language
from numba_hip._numba.compiler import lowered_symbol
from numba_hip._numba.contexts import BaseContext, NoAllocation, mangle
from numba_hip._numba.lowering import import_lowering_of_builtins, mark_fastmath
from numba_hip._numba.models import default_manager
from numba_hip.language.arrays import CANNOT_ALLOCATE
from numba_hip.language.captured_arrays import refer
from numba_hip.language.fp16 import float_models
from numba_hip.language.methods import find_attribute
from numba_hip.language.warp import ModuleQueries
from numba_hip.targets import c_helpers
from numba_hip.targets.callconv import HipCallConv
from numba_hip.targets.variable_info import debug_builder

if TYPE_CHECKING:
    from llvmlite import binding as llvm

    from numba_hip.targets.code_library import HipCodeLibrary
    from numba_hip.targets.codegen import HipCodegen
    from numba_hip.targets.typing import HipTypingContext

I32 = ir.IntType(32)

TOO_DEEP = "functions call one another so often that the stack is full"


class HipContext(BaseContext):
    """Lowering for one compile target."""

    strict_alignment = True
    """For arrays in records; see `sentry_record_alignment`."""
    enable_nrt = True
    """So that functions may return arrays, which Numba refuses without its memory manager; here that is `nrt`."""
    DIBuilder = staticmethod(debug_builder)
    runs_in_process = False
    """Whether kernels run in the process that compiles them, so that they may call its functions."""
    constant_address_space = 0
    global_address_space = 0
    """Address spaces of captured arrays and of variables of a module."""
    most_shared_bytes: int | None = None
    most_private_bytes: int | None = None
    """What a block has of shared memory, and a thread of private memory; None where that is not known here."""

    def __init__(self, typing_context: HipTypingContext, numba_name: str, codegen: HipCodegen) -> None:
        self._codegen = codegen
        codegen.calling_library = lambda: self.active_code_library
        codegen.supply_helpers = self._supply_helpers
        super().__init__(typing_context, numba_name)
        self.data_model_manager: Any = float_models.chain(default_manager)

    def sentry_record_alignment(self, rectyp: types.Record, attr: str) -> None:
        """Refuse an array within a record whose elements are not aligned: whoever reads the array takes them to be.

        Fields that are numbers or records may lie anywhere; where a record says so, they are read byte by byte."""
        if isinstance(rectyp.typeof(attr), types.NestedArray):
            super().sentry_record_alignment(rectyp, attr)

    def call_unresolved(self, builder: ir.IRBuilder, name: str, sig: Any, args: Any) -> ir.Value:
        """A call that closes a circle of functions."""
        self._check_stack(builder)
        return super().call_unresolved(builder, name, sig, args)

    def call_internal(self, builder: ir.IRBuilder, fndesc: Any, sig: Any, args: Any) -> ir.Value:
        """A call of a function whose descriptor is at hand, such as that of a function by itself."""
        if lowered_symbol(fndesc) == builder.function.name:
            self._check_stack(builder)
        return super().call_internal(builder, fndesc, sig, args)

    def _check_stack(self, builder: ir.IRBuilder) -> None:
        """Raise `RecursionError` where the stack has no room for one more call."""
        with builder.if_then(self.stack_is_low(builder), likely=False):
            self.call_conv.return_user_exc(builder, RecursionError, (TOO_DEEP,))

    # What a device defines.

    @abstractmethod
    def stack_is_low(self, builder: ir.IRBuilder) -> ir.Value:
        """Whether the stack has no room for one more call of functions that call one another, an i1."""

    @abstractmethod
    def thread_index(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Index of the thread in its block along *axis* (``"x"``, ``"y"``, ``"z"``), an i32."""

    @abstractmethod
    def block_index(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Index of the block in the grid along *axis*, an i32."""

    @abstractmethod
    def block_dim(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Threads of a block along *axis*, an i32."""

    @abstractmethod
    def grid_dim(self, builder: ir.IRBuilder, axis: str) -> ir.Value:
        """Blocks of the grid along *axis*, an i32."""

    def threads_of(self, builder: ir.IRBuilder, blocks: ir.Value, block_dim: ir.Value) -> ir.Value:
        """Threads of *blocks* blocks along an axis: an i64, or an i32 where no grid has more, without a sign."""
        wide = ir.IntType(64)
        return builder.mul(builder.zext(blocks, wide), builder.zext(block_dim, wide), flags=("nuw", "nsw"))

    @abstractmethod
    def barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for all threads of the block, which then see each other's writes."""

    @abstractmethod
    def barrier_count(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """A `barrier`, and for how many threads *vote* (i1) is true, an i32."""

    @abstractmethod
    def grid_barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for all threads of a cooperative launch, which then see each other's writes."""

    @abstractmethod
    def wave_barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for the active lanes of the wave, which then see each other's writes."""

    @abstractmethod
    def fence(self, builder: ir.IRBuilder, scope: str) -> None:
        """Order this thread's memory accesses for the threads of *scope*: ``"block"``, ``"device"`` or ``"system"``."""

    @abstractmethod
    def ordering(self, scope: str) -> str:
        """Scope and ordering, as LLVM writes them, of relaxed atomic operations among the threads of *scope*."""

    @property
    def atomic_ordering(self) -> str:
        """Scope and ordering, as LLVM writes them, of atomic operations among the threads of the device."""
        return self.ordering("device")

    def atomic_rmw(
        self, builder: ir.IRBuilder, operation: str, pointer: ir.Value, value: ir.Value, scope: str = "device"
    ) -> ir.Value:
        """LLVM's atomic *operation*, such as ``"fadd"``, with *value* at *pointer*; what was there before."""
        return builder.atomic_rmw(operation, pointer, value, self.ordering(scope))

    @abstractmethod
    def shared_memory(self, builder: ir.IRBuilder, storage: ir.Type, alignment: int) -> ir.Value:
        """A flat pointer to new shared memory for a *storage*, aligned to *alignment* bytes."""

    @abstractmethod
    def dynamic_shared_memory(self, builder: ir.IRBuilder) -> tuple[ir.Value, ir.Value]:
        """A flat pointer to the dynamic shared memory of the launch, and its bytes, an i64."""

    @abstractmethod
    def lane(self, builder: ir.IRBuilder) -> ir.Value:
        """Index of the thread in its wave, an i32."""

    @abstractmethod
    def wave_size(self, builder: ir.IRBuilder) -> ir.Value:
        """Lanes of a wave, an i32."""

    @abstractmethod
    def active_lanes(self, builder: ir.IRBuilder) -> ir.Value:
        """The lanes of the wave that are active here, bits of an i64."""

    @abstractmethod
    def ballot(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """The active lanes whose *vote* (i1) is true, bits of an i64."""

    @abstractmethod
    def shuffle(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """The *value* (i32, i64, float or double) of *lane* (i32); what an inactive one gives is not defined."""

    def read_lane(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """As `shuffle`, with a *lane* that is the same for all active lanes."""
        return self.shuffle(builder, value, lane)

    def push(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """What the highest active lane that names this one as *lane* (i32) has as *value* (i32 or float), else 0.

        Lanes are asked one after the other.
        """
        active, own = self.active_lanes(builder), self.lane(builder)
        slot = cgutils.alloca_once(builder, value.type)
        builder.store(ir.Constant(value.type, 0), slot)
        with cgutils.loop_nest(builder, [self.wave_size(builder)], I32) as (index,):
            target, pushed = (self.read_lane(builder, word, index) for word in (lane, value))
            wide = active.type
            bit = builder.and_(builder.lshr(active, builder.zext(index, wide)), ir.Constant(wide, 1))
            mine = builder.and_(builder.icmp_signed("==", target, own), builder.trunc(bit, ir.IntType(1)))
            builder.store(builder.select(mine, pushed, builder.load(slot)), slot)
        return builder.load(slot)

    @abstractmethod
    def clock(self, builder: ir.IRBuilder) -> ir.Value:
        """A counter of cycles, an i64."""

    @abstractmethod
    def wall_clock(self, builder: ir.IRBuilder) -> ir.Value:
        """A counter of constant frequency, an i64."""

    @abstractmethod
    def sleep(self, builder: ir.IRBuilder, nanoseconds: ir.Value) -> None:
        """Do nothing for about this time (i32), if that makes sense."""

    @abstractmethod
    def stop_for_debugger(self, builder: ir.IRBuilder) -> None:
        """Let a debugger of the device's code, if there is one, stop the thread here."""

    @abstractmethod
    def call_math(self, builder: ir.IRBuilder, name: str, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call function *name* of the C math library on floats or doubles; the result has the first one's type."""

    @abstractmethod
    def saturate(self, builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, signed: bool) -> ir.Value:
        """*value*, a half, float or double, as an integer: the nearest that there is to it without its fraction, 0 for
        NaN."""

    @abstractmethod
    def build_entry(
        self, library: HipCodeLibrary, function: Any, name: str, options: Any
    ) -> tuple[tuple[str, str], ...]:
        """Add kernel *name*, which runs compiled *function*, to *library*; returns its parameters: names and types."""

    # What Numba asks for.

    @property
    def enable_boundscheck(self) -> bool:
        """Whether an index out of bounds raises."""
        return False

    @enable_boundscheck.setter
    def enable_boundscheck(self, value: bool) -> None:
        """Numba sets this for every function; devices decide for themselves."""

    def compile_subroutine(self, builder: ir.IRBuilder, impl: Any, sig: Any, *args: Any, **kws: Any) -> Any:
        """Compile a function of Numba's own, without lines and variables: what it is made of is nobody's source.

        It is kept for whatever calls it later, too.
        """
        if self.enable_debuginfo:
            return self.subtarget(enable_debuginfo=False).compile_subroutine(builder, impl, sig, *args, **kws)
        return super().compile_subroutine(builder, impl, sig, *args, **kws)

    def _supply_helpers(self, module: ir.Module) -> None:
        """Numba lowers subroutines of its own without telling of each instruction."""
        for function in list(module.functions):
            c_helpers.supply(self, function, in_process=self.runs_in_process)

    def codegen(self) -> HipCodegen:
        """What turns modules into code for this target."""
        return self._codegen

    def create_module(self, name: str) -> ir.Module:
        """An empty module with the triple and data layout of the target."""
        return self._codegen.empty_module(name)

    @property
    def target_data(self) -> llvm.TargetData:
        """LLVM's sizes and alignments on this target."""
        return self._codegen.target_data

    @cached_property
    def call_conv(self) -> HipCallConv:
        """How functions call one another."""
        return HipCallConv(self)

    @cached_property
    def nonconst_module_attrs(self) -> ModuleQueries:
        """Attributes of modules that only the device knows."""
        return ModuleQueries()

    @cached_property
    def nrt(self) -> NoAllocation:
        """Numba's memory manager, which refuses."""
        return NoAllocation(self, CANNOT_ALLOCATE)

    def get_ufunc_info(self, ufunc_key: Any) -> dict[str, Any]:
        """How each loop of a ufunc is lowered; `KeyError` for one that kernels do not have."""
        from numba_hip.language.ufuncs import ufunc_loops  # Numba's table of loops takes its time to load

        return ufunc_loops(ufunc_key)

    def post_lowering(self, mod: ir.Module, library: HipCodeLibrary) -> None:
        """What is left to do with a module once a function is lowered: the flags of ``fastmath``."""
        del library
        if self.fastmath:
            mark_fastmath(mod, self.fastmath)

    def get_constant_generic(self, builder: ir.IRBuilder, ty: Any, val: Any) -> ir.Value:
        """Numba's hook for a global value. A device array is the array itself; a function is known by its type.

        Once anything was compiled by ``njit``, Numba itself would take the address of the function's dispatcher.
        """
        if isinstance(ty, types.Dispatcher):
            return self.get_dummy_value()
        if isinstance(val, DeviceArray):
            return refer(self, builder, ty, val)
        return super().get_constant_generic(builder, ty, val)

    def get_getattr(self, typ: Any, attr: str) -> Any:
        """Numba's hook for reading an attribute: those that were defined for kernels go before all others."""
        return find_attribute(typ, attr) or super().get_getattr(typ, attr)

    def load_additional_registries(self) -> None:
        """Install the lowering of Python's builtins, and then that of the kernel language, which goes before it."""
        for registry in (*import_lowering_of_builtins(), language.lowering_registry()):
            self.install_registry(registry)

    def mangler(self, name: str, argtypes: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
        """The symbol of a function; options are left out of it, a library never holds two variants of one."""
        del abi_tags
        return mangle(name, argtypes, uid)

    def check_assembly(self, assembly: ir.InlineAsm) -> None:
        """Raise `hip_devicelib.errors.UnsupportedError` where LLVM cannot read *assembly*. What is not checked here is
        when code is made of the kernel."""

    def place_constant(self, module: ir.Module, data: bytes) -> ir.GlobalVariable:
        """A variable of *module*, in constant memory, with the bytes *data*."""
        value = spell_bytes(data)
        name = module.get_unique_name("constant")
        variable = ir.GlobalVariable(module, value.type, name, self.constant_address_space)
        variable.linkage, variable.global_constant, variable.initializer = "internal", True, value
        return variable

    def make_constant_array(self, builder: ir.IRBuilder, typ: Any, ary: np.ndarray[Any, Any]) -> ir.Value:
        """An array that the kernel captured: its bytes in constant memory, its shape and strides as constants."""
        order: Literal["F", "C"] = "F" if typ.layout == "F" else "C"
        packed = np.array(ary, order=order)
        variable = self.place_constant(builder.module, packed.tobytes(order="A"))
        variable.align = max(variable.align or 1, self.get_abi_alignment(self.get_data_type(typ.dtype)))
        array = self.make_array(typ)(self, builder)
        pointer = variable
        if self.constant_address_space:
            pointer = builder.addrspacecast(variable, ir.PointerType(variable.value_type))
        self.populate_array(
            array,
            data=builder.bitcast(pointer, array.data.type),
            shape=[self.get_constant(types.intp, extent) for extent in packed.shape],
            strides=[self.get_constant(types.intp, stride) for stride in packed.strides],
            itemsize=self.get_constant(types.intp, packed.itemsize),
            meminfo=None,
        )
        return array._getvalue()
