"""Device arrays that a function captures: kernels access their memory, with its contents at run time.

Captured host arrays are constants. For a device array the address is a constant, and the compiled code keeps the array
alive. Numba types global variables and those of enclosing functions as read-only, so variables with device arrays are
replaced by a call that returns them.
"""

from __future__ import annotations

import itertools
import weakref
from typing import Any

from llvmlite import ir
from numba import typeof
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.errors import TypingError
from numba.extending import models, register_model, typeof_impl

from hip_runtime import Device, DeviceArray, as_device_array
from numba_hip._numba.compiler import redefine
from numba_hip.arguments.argument_types import is_on_device
from numba_hip.errors import KernelArgumentError
from numba_hip.language.registry import lowering
from numba_hip.language.stub import Lower, device_function

_captured: weakref.WeakKeyDictionary[Any, list[DeviceArray]] = weakref.WeakKeyDictionary()
"""Libraries, and the device arrays that their functions refer to."""


@register_pass(mutates_CFG=False, analysis_only=False)
class TakeDeviceArrays(FunctionPass):
    """The pass that replaces captured arrays of other libraries by device arrays, and makes all of them writable."""

    _name = "hip_take_device_arrays"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        """Change ``state.func_ir``; returns whether there was anything to change."""
        changed = False
        for block in state.func_ir.blocks.values():
            for statement in list(block.find_insts(numba_ir.Assign)):
                if isinstance(statement.value, (numba_ir.Global, numba_ir.FreeVar, numba_ir.Const)):
                    changed |= _take(state.func_ir, block, statement)
        return changed


def _take(func_ir: Any, block: Any, statement: Any) -> bool:
    source = statement.value
    taken = on_device(source.value)
    if not _holds_arrays(taken):
        return False
    function, argument = (statement.target.scope.redefine(name, loc=statement.loc) for name in ("$take", "$captured"))
    before = {
        function: numba_ir.Global("captured", captured, statement.loc),
        argument: numba_ir.Global("captured", Captured(taken), statement.loc),
    }
    statement.value = numba_ir.Expr.call(function, [argument], (), statement.loc)
    position = block.body.index(statement)
    block.body[position:position] = [numba_ir.Assign(value, name, statement.loc) for name, value in before.items()]
    for name, value in {**before, statement.target: statement.value}.items():
        redefine(func_ir, name.name, value)
    return True


def _holds_arrays(value: Any) -> bool:
    return any(map(_holds_arrays, value)) if isinstance(value, tuple) else isinstance(value, DeviceArray)


class Captured:
    """A device array, or a tuple with some, in a function's intermediate representation."""

    def __init__(self, value: Any) -> None:
        self.value = value
        self.type = CapturedType(self)


class CapturedType(types.Opaque):
    """The type of one such value. It does not keep the value alive, as Numba never drops types."""

    _numbers = itertools.count()

    def __init__(self, captured: Captured) -> None:
        self.captured = weakref.ref(captured)
        super().__init__(f"captured.{next(self._numbers)}")


@typeof_impl.register(Captured)
def _typeof_captured(captured: Captured, context: Any) -> CapturedType:
    del context
    return captured.type


register_model(CapturedType)(models.OpaqueModel)


@lowering.lower_constant(CapturedType)
def _no_value(context: Any, builder: ir.IRBuilder, kind: types.Type, captured: Captured) -> ir.Value:
    return context.get_dummy_value()


@device_function("captured")
def captured(value: types.Type) -> tuple[types.Type, Lower] | None:
    """The captured value; `TakeDeviceArrays` inserts calls of this into functions."""
    found = value.captured() if isinstance(value, CapturedType) else None
    if found is None:
        return None
    kind, of_host = typeof(found.value), found.value

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        return context.get_constant_generic(builder, kind, of_host)

    return kind, lower


def on_device(value: Any) -> Any:
    """*value* with arrays of other libraries that are on a device replaced by device arrays, also in tuples."""
    if isinstance(value, tuple):
        members = [on_device(member) for member in value]
        if all(member is before for member, before in zip(members, value, strict=True)):
            return value
        return value._make(members) if hasattr(value, "_make") else tuple(members)
    if isinstance(value, (type, DeviceArray)) or not is_on_device(value):
        return value
    return as_device_array(value)


def refer(context: Any, builder: ir.IRBuilder, kind: types.Type, array: DeviceArray) -> ir.Value:
    """*array* as a value of type *kind* (an array, or a record) in the function being built."""
    target = context.typing_context.compile_target.name
    if array.device.target != target:
        raise TypingError(
            f"this captures a device array of {array.device}, which code for {target} cannot refer to: pass it as an "
            "argument"
        )
    _captured.setdefault(context.active_code_library, []).append(array)
    element = kind.dtype if isinstance(kind, types.Array) else kind
    data = ir.PointerType(context.get_data_type(element), context.global_address_space)
    pointer = builder.inttoptr(ir.Constant(ir.IntType(64), array.address), data)
    if isinstance(kind, types.Record):
        return builder.bitcast(_flat(builder, pointer), context.get_value_type(kind))
    made = context.make_array(kind)(context, builder)
    context.populate_array(
        made,
        data=builder.bitcast(_flat(builder, pointer), made.data.type),
        shape=[context.get_constant(types.intp, extent) for extent in array.shape],
        strides=[context.get_constant(types.intp, stride) for stride in array.strides],
        itemsize=context.get_constant(types.intp, array.itemsize),
        meminfo=None,
    )
    return made._getvalue()


def _flat(builder: ir.IRBuilder, pointer: ir.Value) -> ir.Value:
    kind = pointer.type
    return builder.addrspacecast(pointer, ir.PointerType(kind.pointee)) if kind.addrspace else pointer


def captured_by(library: Any) -> tuple[DeviceArray, ...]:
    """The device arrays that a kernel made of *library* refers to."""
    return tuple(array for part in library.closure() for array in _captured.get(part, ()))


def check_captured(kernel: str, arrays: tuple[DeviceArray, ...], device: Device) -> None:
    """Refuse to run *kernel* on *device* if it captured arrays of another one: `KernelArgumentError`."""
    for array in arrays:
        if array.device is not device:
            raise KernelArgumentError(
                f"kernel {kernel} captured a device array of {array.device} and is launched on {device}: pass the "
                "array as an argument"
            )
