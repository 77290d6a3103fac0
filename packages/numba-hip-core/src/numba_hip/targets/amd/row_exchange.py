"""Lanes of AMD GPUs that read from another one at a fixed distance, by data-parallel primitives (DPP).

A vector instruction can take its first operand from another lane of the same row, 16 lanes, which takes no time of its
own and does not go through LDS, as ``ds_bpermute`` does. Which lanes it reaches, the instruction says.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_devicelib.target import Target
from numba_hip.language.warp import Way

I1, I32 = ir.IntType(1), ir.IntType(32)
ROW = 16
"""Lanes of a row."""

_FROM_ABOVE, _FROM_BELOW, _ROTATED, _OF_NEIGHBOUR_BELOW = 0x100, 0x110, 0x120, 0x138
_MIRRORED, _HALVES_MIRRORED, _XOR = 0x140, 0x141, 0x160
_QUADS = {1: 0xB1, 2: 0x4E, 3: 0x1B}
"""Controls: a distance is added to those above and below, a mask to that of exclusive or; a quad has four numbers."""

_SWIZZLED_XOR, _SWIZZLED_LANES = 10, 0x1F
"""Of ``ds_swizzle``, which reaches the 32 lanes of a half: where its mask is, and that all bits of the lane count."""


def fetch_at(
    target: Target, builder: ir.IRBuilder, call: Callable[..., ir.Value], word: ir.Value, way: Way, distance: int
) -> ir.Value | None:
    """The *word* of the lane at *distance* in this *way*, on *target*; None if that takes more than one instruction.
    *call* calls intrinsics."""
    if way in ("row_up", "row_down") and 0 < distance < ROW:
        return _move(builder, call, word, (_FROM_BELOW if way == "row_up" else _FROM_ABOVE) + distance)
    if way == "xor":
        return _fetch_xor(target, builder, call, word, distance)
    if way == "up" and distance == 1 and _is_gfx9(target):
        return _move(builder, call, word, _OF_NEIGHBOUR_BELOW)
    return None


def _fetch_xor(
    target: Target, builder: ir.IRBuilder, call: Callable[..., ir.Value], word: ir.Value, mask: int
) -> ir.Value | None:
    """The *word* of the lane whose number is this one's exclusive or *mask*; None if no instruction says that."""
    control = _control_of_xor(target, mask)
    if control is not None:
        return _move(builder, call, word, control)
    if 0 < mask <= _SWIZZLED_LANES:
        pattern = mask << _SWIZZLED_XOR | _SWIZZLED_LANES
        return call(builder, "llvm.amdgcn.ds.swizzle", I32, word, I32(pattern))
    return None


def _control_of_xor(target: Target, mask: int) -> int | None:
    if mask in _QUADS:
        return _QUADS[mask]
    if not _is_gfx9(target):
        return _XOR + mask if 0 < mask < ROW else None
    return {7: _HALVES_MIRRORED, 8: _ROTATED + 8, 15: _MIRRORED}.get(mask)


def _is_gfx9(target: Target) -> bool:
    return target.name.startswith("gfx9")


def _move(builder: ir.IRBuilder, call: Callable[..., ir.Value], word: ir.Value, control: int) -> ir.Value:
    every = I32(0xF)
    return call(builder, "llvm.amdgcn.update.dpp.i32", I32, word, word, I32(control), every, every, I1(0))
