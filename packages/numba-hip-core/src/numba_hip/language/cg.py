"""``hip.cg``: cooperative groups. ``hip.cg.this_grid().sync()`` waits for all threads of a grid."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, AttributeTemplate, signature
from numba.extending import models, register_model

from numba_hip.language.registry import lowering, typing
from numba_hip.language.stub import Lower, device_function


class GridGroupType(types.Type):
    """The type of the group of all threads of a launch."""

    def __init__(self) -> None:
        super().__init__("hip.cg.GridGroup")


register_model(GridGroupType)(models.OpaqueModel)
GRID_GROUP = GridGroupType()


@device_function("cg.this_grid")
def this_grid() -> tuple[types.Type, Lower]:
    """``cg.this_grid()``: the group of all threads of the grid. A kernel that calls its ``sync`` is launched
    cooperatively: all its blocks have to run at the same time; a `LaunchError` reports if they cannot."""
    return GRID_GROUP, lambda context, builder, sig, args: context.get_dummy_value()


class _Sync(AbstractTemplate):
    key = "hip.cg.GridGroup.sync"

    def generic(self, args: tuple[types.Type, ...], kws: dict[str, Any]) -> Any:
        return None if args or kws else signature(types.int32, recvr=self.this)


@typing.register_attr
class _GridGroupAttributes(AttributeTemplate):
    key = GridGroupType

    def resolve_sync(self, group: GridGroupType) -> types.BoundFunction:
        return types.BoundFunction(_Sync, group)


@lowering.lower("hip.cg.GridGroup.sync", GridGroupType)
def _sync(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    context.grid_barrier(builder)
    return ir.Constant(ir.IntType(32), 0)
