"""The target context: lowers typed code to LLVM IR, as far as devices agree.

For the rest, features of the kernel language call one of the few methods that the subclasses for the CPU device and for
AMD GPUs define.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types

from hip_devicelib.cached_property import cached_property
from hip_devicelib.large_constants import spell_bytes
from hip_runtime import DeviceArray
from numba_hip import language
from numba_hip._numba.compiler import lowered_symbol
from numba_hip._numba.contexts import BaseContext, NoAllocation, count_declarations, mangle
from numba_hip._numba.lowering import import_lowering_of_builtins, mark_fastmath
from numba_hip._numba.models import default_manager
from numba_hip.language.array_allocation import cannot_allocate
from numba_hip.language.captured_arrays import refer
from numba_hip.language.fp16 import float_models
from numba_hip.language.methods import find_attribute
from numba_hip.language.warp import ModuleQueries, Way
from numba_hip.named_calls import call_named
from numba_hip.targets import c_helpers
from numba_hip.targets.callconv import HipCallConv
from numba_hip.targets.variable_info import debug_builder

if TYPE_CHECKING:
    from llvmlite import binding as llvm

    from numba_hip.float8 import Float8
    from numba_hip.language.matrix.unit import MatrixUnit
    from numba_hip.language.shared_loads import DirectLoader
    from numba_hip.targets.code_library import HipCodeLibrary
    from numba_hip.targets.codegen import HipCodegen
    from numba_hip.targets.typing import HipTypingContext

I32 = ir.IntType(32)

TOO_DEEP = "functions call one another so often that the stack is full"


class HipContext(BaseContext):
    """Lowering for one compile target."""

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
        self._declarations = -1
        self._subroutines_within_4_units: dict[Any, Any] = {}
        super().__init__(typing_context, numba_name)
        self.data_model_manager: Any = float_models.chain(default_manager)

    def call_unresolved(self, builder: ir.IRBuilder, name: str, sig: Any, args: Any) -> ir.Value:
        """A call that closes a cycle of functions: recursion."""
        self._check_stack(builder)
        return super().call_unresolved(builder, name, sig, args)

    def call_internal(self, builder: ir.IRBuilder, fndesc: Any, sig: Any, args: Any) -> ir.Value:
        """A call of a function whose descriptor is known, such as a call of a function by itself."""
        if lowered_symbol(fndesc) == builder.function.name:
            self._check_stack(builder)
        return super().call_internal(builder, fndesc, sig, args)

    def _check_stack(self, builder: ir.IRBuilder) -> None:
        """Raise `RecursionError` if the stack has no room for one more call."""
        with builder.if_then(self.stack_is_low(builder), likely=False):
            self.call_conv.return_user_exc(builder, RecursionError, (TOO_DEEP,))

    # What a device defines.

    @abstractmethod
    def stack_is_low(self, builder: ir.IRBuilder) -> ir.Value:
        """Whether the stack has no room for one more call of mutually recursive functions, an i1."""

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
        """The threads of *blocks* blocks along an axis: an i64, or an unsigned i32 if no grid has more."""
        wide = ir.IntType(64)
        return builder.mul(builder.zext(blocks, wide), builder.zext(block_dim, wide), flags=("nuw", "nsw"))

    @abstractmethod
    def barrier(self, builder: ir.IRBuilder) -> None:
        """Wait for all threads of the block, which then see each other's writes."""

    @abstractmethod
    def barrier_count(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """A `barrier` that also counts the threads whose *vote* (i1) is true, an i32."""

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
        """LLVM's scope and ordering of relaxed atomic operations among the threads of *scope*."""

    @property
    def atomic_ordering(self) -> str:
        """LLVM's scope and ordering of atomic operations among the threads of the device."""
        return self.ordering("device")

    def atomic_rmw(
        self, builder: ir.IRBuilder, operation: str, pointer: ir.Value, value: ir.Value, scope: str = "device"
    ) -> ir.Value:
        """LLVM's atomic *operation*, such as ``"fadd"``, with *value* at *pointer*; returns the old value."""
        return builder.atomic_rmw(operation, pointer, value, self.ordering(scope))

    def atomic_extreme(
        self, builder: ir.IRBuilder, predicate: str, pointer: ir.Value, value: ir.Value
    ) -> ir.Value | None:  # fmt: skip
        """Replace the float at *pointer* by *value* where that compares as *predicate*, ``">"`` or ``"<"``, with it;
        the old value. ``None``, and nothing is written, if the device has no such operation on its type."""
        return None

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
        """The lanes of the wave that are active here, as bits of an i64."""

    @abstractmethod
    def ballot(self, builder: ir.IRBuilder, vote: ir.Value) -> ir.Value:
        """The active lanes whose *vote* (i1) is true, as bits of an i64."""

    @abstractmethod
    def shuffle(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """The *value* (i32, i64, float or double) of *lane* (i32); undefined for an inactive lane."""

    def read_lane(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """As `shuffle`, with a *lane* that is the same for all active lanes."""
        return self.shuffle(builder, value, lane)

    def read_first_lane(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """The *value* (as for `shuffle`) of the lowest active lane."""
        active, no_zero = self.active_lanes(builder), ir.Constant(ir.IntType(1), 1)
        lowest = call_named(builder, "llvm.cttz.i64", active.type, active, no_zero)
        return self.shuffle(builder, value, builder.trunc(lowest, I32))

    def keep_in_scalar(self, builder: ir.IRBuilder, value: ir.Value) -> ir.Value:
        """The *value* (as for `shuffle`) that all active lanes have, in a scalar register where there are such."""
        return value

    def shuffle_by(self, builder: ir.IRBuilder, value: ir.Value, way: Way, distance: int) -> ir.Value | None:
        """As `shuffle`, from a lane at a *distance* that is a constant; None if nothing is gained by knowing it."""
        return None

    def push(self, builder: ir.IRBuilder, value: ir.Value, lane: ir.Value) -> ir.Value:
        """The *value* (i32 or float) of the highest active lane whose *lane* (i32) is this one, or 0.

        The lanes are visited one after another.
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

    def widen_float8(self, builder: ir.IRBuilder, bits: ir.Value, kind: Float8) -> ir.Value | None:
        """The float32 that a number of 8 bits is; None if the device has no instruction for it."""
        return None

    def narrow_float8(self, builder: ir.IRBuilder, value: ir.Value, kind: Float8) -> ir.Value | None:
        """The bits of a float32 as a number of 8 bits, the largest where it is larger; None if the device has no
        instruction for it."""
        return None

    @abstractmethod
    def matrix_unit(self) -> MatrixUnit:
        """What the device has of `numba_hip.language.matrix`."""

    def direct_loader(self) -> DirectLoader | None:
        """What loads into shared memory without registers; None where the device does not."""
        return None

    @abstractmethod
    def clock(self, builder: ir.IRBuilder) -> ir.Value:
        """A counter of cycles, an i64."""

    @abstractmethod
    def wall_clock(self, builder: ir.IRBuilder) -> ir.Value:
        """A counter of constant frequency, an i64."""

    @abstractmethod
    def sleep(self, builder: ir.IRBuilder, nanoseconds: ir.Value) -> None:
        """Sleep for about this time (i32), if the device can, and read anew after it what was read before."""

    @abstractmethod
    def stop_for_debugger(self, builder: ir.IRBuilder) -> None:
        """Stop the thread in a debugger for the device's code, if there is one."""

    @abstractmethod
    def call_math(self, builder: ir.IRBuilder, name: str, arguments: Sequence[ir.Value]) -> ir.Value:
        """Call function *name* of the C math library on floats or doubles; the result has the first argument's type."""

    @abstractmethod
    def saturate(self, builder: ir.IRBuilder, value: ir.Value, kind: ir.IntType, signed: bool) -> ir.Value:
        """Convert *value*, a half, float or double, to an integer: it loses its fraction and saturates; NaN becomes
        0."""

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
        """Ignored: Numba sets this for every function, but devices decide for themselves."""

    @property
    def is_within_4_units(self) -> bool:
        """Whether math functions of what is compiled may have errors of up to 4 units in the last place."""
        return bool(getattr(self.fastmath, "ulp4", False))

    def compile_subroutine(self, builder: ir.IRBuilder, impl: Any, sig: Any, *args: Any, **kws: Any) -> Any:
        """Compile an internal function of Numba, without line and variable information: it has no source that users
        know.

        It is cached for later callers.
        """
        if self.enable_debuginfo:
            return self.subtarget(enable_debuginfo=False).compile_subroutine(builder, impl, sig, *args, **kws)
        own = self._subroutines_within_4_units
        if self.is_within_4_units and self.cached_internal_func is not own:
            return self.subtarget(cached_internal_func=own).compile_subroutine(builder, impl, sig, *args, **kws)
        return super().compile_subroutine(builder, impl, sig, *args, **kws)

    def _supply_helpers(self, module: ir.Module) -> None:
        """Numba lowers its internal subroutines without locations for each instruction."""
        for function in list(module.functions):
            c_helpers.supply(self, function, in_process=self.runs_in_process)

    def codegen(self) -> HipCodegen:
        """The code generator of this target."""
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
        """The calling convention."""
        return HipCallConv(self)

    @cached_property
    def nonconst_module_attrs(self) -> ModuleQueries:
        """Attributes of modules that only the device knows."""
        return ModuleQueries()

    @cached_property
    def nrt(self) -> NoAllocation:
        """Numba's memory manager, which rejects allocations."""
        return NoAllocation(self, cannot_allocate())

    def get_ufunc_info(self, ufunc_key: Any) -> dict[str, Any]:
        """The lowering of each loop of a ufunc; raises `KeyError` for a loop that kernels do not have."""
        from numba_hip.language.ufuncs import ufunc_loops  # Numba's table of loops takes long to load

        return ufunc_loops(ufunc_key)

    def post_lowering(self, mod: ir.Module, library: HipCodeLibrary) -> None:
        """Finish a module after a function was lowered: applies the flags of ``fastmath``."""
        del library
        if self.fastmath:
            mark_fastmath(mod, self.fastmath)

    def get_constant_generic(self, builder: ir.IRBuilder, ty: Any, val: Any) -> ir.Value:
        """Numba's hook for a global value. A device array is used in place; a function is identified by its type.

        Otherwise Numba would take the address of the function's dispatcher, once ``njit`` has compiled anything.
        """
        if isinstance(ty, types.Dispatcher):
            return self.get_dummy_value()
        if isinstance(val, DeviceArray):
            return refer(self, builder, ty, val)
        return super().get_constant_generic(builder, ty, val)

    def get_getattr(self, typ: Any, attr: str) -> Any:
        """Numba's hook for reading an attribute: attributes defined for kernels take precedence."""
        return find_attribute(typ, attr) or super().get_getattr(typ, attr)

    def refresh(self) -> None:
        """Numba's hook: install what was declared meanwhile, here and in the typing context."""
        count = count_declarations(self)
        if count == self._declarations:
            self.typing_context.refresh()
        else:
            super().refresh()
            self._declarations = count

    def load_additional_registries(self) -> None:
        """Install the lowering of Python's builtins, then that of the kernel language, which takes precedence."""
        for registry in (*import_lowering_of_builtins(), language.lowering_registry()):
            self.install_registry(registry)

    def mangler(self, name: str, argtypes: Any, *, abi_tags: Any = (), uid: Any = None) -> str:
        """The symbol of a function. It does not contain options, as a library never holds two variants of a
        function."""
        del abi_tags
        return mangle(name, argtypes, uid)

    def check_assembly(self, assembly: ir.InlineAsm) -> None:
        """Raise `hip_devicelib.errors.UnsupportedError` if LLVM cannot parse *assembly*. What is not checked here is
        checked when machine code is generated."""

    def choose_assembly(self, text: str | Mapping[str, str]) -> str | None:
        """Which *text* of `hip.asm` is for this target; None if it takes the function in Python."""
        return None

    def place_constant(self, module: ir.Module, data: bytes) -> ir.GlobalVariable:
        """A variable of *module*, in constant memory, with the bytes *data*."""
        value = spell_bytes(data)
        name = module.get_unique_name("constant")
        variable = ir.GlobalVariable(module, value.type, name, self.constant_address_space)
        variable.linkage, variable.global_constant, variable.initializer = "internal", True, value
        return variable

    def make_constant_array(self, builder: ir.IRBuilder, typ: Any, ary: np.ndarray[Any, Any]) -> ir.Value:
        """An array that the kernel captured: its bytes in constant memory, its shape and strides as constants."""
        from numba_hip.targets.constant_arrays import build_constant_array  # few kernels capture any

        return build_constant_array(self, builder, typ, ary)
