"""The index of a thread in its block, that of its block in the grid, and the sizes of both."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import RequireLiteralValue, TypingError
from numba.core.typing.templates import AttributeTemplate
from numba.extending import models, register_model, typeof_impl

from hip_runtime.said_names import our
from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import INTERPRETED, Lower, Stub, device_function, given, interpreter

AXES = ("x", "y", "z")
IS_THE_LAUNCHES = "the launch decides which thread is where; assign it to a variable, and change that"


class Dim3(Stub):
    """Three numbers, one for each axis: attributes ``x``, ``y`` and ``z``, each an int32."""

    def __init__(self, name: str, meaning: str, query: str) -> None:
        super().__init__(name, meaning, __name__)
        self.query = query
        """Name of the method of the target context that answers for one axis."""

    def __getattr__(self, axis: str) -> Any:
        thread = interpreter()
        if axis not in AXES and thread is not None:
            raise AttributeError(f"Unknown attribute {axis!r} of {our(self.__qualname__)}; there are x, y and z")
        if thread is None:
            raise AttributeError(f"{our(self.__qualname__)} has no attribute {axis!r} outside of kernels")
        return INTERPRETED[f"{self.__qualname__}.axis"](thread, AXES.index(axis))

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuses the axes: a number that was set would hide those of all threads, in later launches, too."""
        if name in AXES:
            raise AttributeError(f"{our(self.__qualname__)}.{name} cannot be set: {IS_THE_LAUNCHES}")
        super().__setattr__(name, value)

    def __str__(self) -> str:
        """The three numbers, for the simulated thread that prints them."""
        return str(tuple(getattr(self, axis) for axis in AXES)) if interpreter() is not None else repr(self)


class Dim3Type(types.Dummy):
    """The type of a `Dim3`, one for each."""

    def __init__(self, stub: Dim3) -> None:
        self.stub = stub
        super().__init__(f"hip.{stub.__name__}")


threadIdx = Dim3("threadIdx", "Index of this thread in its block.", "thread_index")
blockIdx = Dim3("blockIdx", "Index of this thread's block in the grid.", "block_index")
blockDim = Dim3("blockDim", "Threads of a block along each axis.", "block_dim")
gridDim = Dim3("gridDim", "Blocks of the grid along each axis.", "grid_dim")

register_model(Dim3Type)(models.OpaqueModel)


@typeof_impl.register(Dim3)
def _typeof_dim3(value: Dim3, context: Any) -> Dim3Type:
    del context
    return Dim3Type(value)


@typing.register_attr
class _Dim3Attributes(AttributeTemplate):
    key = Dim3Type

    def generic_resolve(self, dim3: Dim3Type, attribute: str) -> types.Type | None:
        return types.int32 if attribute in AXES else None


def _lower_axis(axis: str) -> None:
    @lowering.lower_getattr(Dim3Type, axis)
    def _axis(context: Any, builder: ir.IRBuilder, dim3: Dim3Type, value: ir.Value) -> ir.Value:
        del value
        return getattr(context, dim3.stub.query)(builder, axis)


for _name in AXES:
    _lower_axis(_name)


def _along_axes(
    name: str, ndim: types.Type, along: Callable[[Any, ir.IRBuilder, str], ir.Value]
) -> tuple[types.Type, Lower]:
    count = given(ndim)
    if count is None:
        raise RequireLiteralValue(f"the number of axes for {our(name)} has to be a literal 1, 2 or 3")
    if count not in (1, 2, 3):
        raise TypingError(f"{our(name)}({count}): the number of axes can be 1, 2 or 3")

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        del args
        values = [along(context, builder, axis) for axis in AXES[:count]]
        return values[0] if count == 1 else context.make_tuple(builder, sig.return_type, values)

    return (types.int64 if count == 1 else types.UniTuple(types.int64, count)), lower


@device_function("grid")
def grid(ndim: types.Type) -> tuple[types.Type, Lower]:
    """``grid(ndim)``: index of this thread in the whole grid.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
    return _along_axes("grid", ndim, _grid_index)


@device_function("gridsize")
def gridsize(ndim: types.Type) -> tuple[types.Type, Lower]:
    """``gridsize(ndim)``: threads of the whole grid along each axis.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
    return _along_axes("gridsize", ndim, _grid_extent)


def _grid_index(context: Any, builder: ir.IRBuilder, axis: str) -> ir.Value:
    before = context.threads_of(builder, context.block_index(builder, axis), context.block_dim(builder, axis))
    thread = builder.zext(context.thread_index(builder, axis), before.type)
    return builder.zext(builder.add(before, thread, flags=("nuw",)), ir.IntType(64))


def _grid_extent(context: Any, builder: ir.IRBuilder, axis: str) -> ir.Value:
    threads = context.threads_of(builder, context.grid_dim(builder, axis), context.block_dim(builder, axis))
    return builder.zext(threads, ir.IntType(64))
