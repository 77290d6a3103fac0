"""The arguments of a kernel as its entry point takes them, and as the function that it calls takes them.

Both follow Numba's data models, except for arrays, of which a kernel gets fewer values
(`numba_hip.abi.array_parameters`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import models

from numba_hip._numba.models import ArgPacker
from numba_hip.abi.array_parameters import arrays_in, stride_axes


class PassedArrayModel(models.ArrayModel):
    """An array among the arguments of a kernel."""

    def __init__(self, context: Any, manager: Any, kind: types.Array) -> None:
        super().__init__(manager, kind)
        self._context = context

    def get_argument_type(self) -> tuple[Any, ...]:
        """The address, the extents, and the strides that are passed."""
        number = self._context.get_value_type(types.intp)
        data = self._context.get_value_type(types.CPointer(self.fe_type.dtype))
        return data, (number,) * self.fe_type.ndim, (number,) * len(stride_axes(self.fe_type))

    def from_argument(self, builder: ir.IRBuilder, value: Sequence[Any]) -> ir.Value:
        """The array, with the other fields of Numba's array structure. LLVM is told that no extent is negative."""
        context, kind = self._context, self.fe_type
        data, shape, passed = value
        for extent in shape:
            builder.assume(builder.icmp_signed(">=", extent, extent.type(0)))
        itemsize = context.get_constant(types.intp, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
        known = dict(zip(stride_axes(kind), passed, strict=True))
        strides = [known.get(axis, itemsize) for axis in range(kind.ndim)]
        array = context.make_array(kind)(context, builder)
        context.populate_array(array, data=data, shape=shape, strides=strides, itemsize=itemsize, meminfo=None)
        return array._getvalue()


def kernel_arguments(context: Any, kinds: Sequence[types.Type]) -> ArgPacker:
    """The packer for the parameters of a kernel with argument types *kinds*, which rebuilds Numba's values from
    them."""
    manager = context.data_model_manager.copy()
    for kind in {types.Array, *(type(array) for array in arrays_in(kinds))}:
        manager.register(kind, partial(PassedArrayModel, context))
    return ArgPacker(manager, kinds)


def parameters_of(names: Sequence[str], packer: Any, arguments: Sequence[ir.Argument]) -> tuple[tuple[str, str], ...]:
    """Names and LLVM types of the parameters of a kernel entry; each name starts with that of its argument."""
    packer.assign_names(arguments[: len(packer.argument_types)], names)
    return tuple(
        (argument.name, "ptr" if isinstance(argument.type, ir.PointerType) else str(argument.type))
        for argument in arguments
    )
