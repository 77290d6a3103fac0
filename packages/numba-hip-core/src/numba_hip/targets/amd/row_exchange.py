"""Lanes of AMD GPUs that read from another one at a fixed distance, by data-parallel primitives (DPP).

A vector instruction can take its first operand from another lane of the same row, 16 lanes, which takes no time of its
own and does not go through LDS, as ``ds_bpermute`` does. Which lanes it reaches, the instruction says. From gfx10 on
another instruction, ``v_permlanex16``, reads any lane of the other row of a half, which are all rows in waves of 32.
"""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_devicelib.target import Target
from numba_hip.language.warp import Way
from numba_hip.named_calls import call_named

I1, I32 = ir.IntType(1), ir.IntType(32)
ROW = 16
"""Lanes of a row."""

_FROM_ABOVE, _FROM_BELOW, _ROTATED = 0x100, 0x110, 0x120
_OF_NEIGHBOUR_ABOVE, _OF_NEIGHBOUR_BELOW = 0x130, 0x138
_MIRRORED, _HALVES_MIRRORED, _XOR = 0x140, 0x141, 0x160
_QUADS = {1: 0xB1, 2: 0x4E, 3: 0x1B}
"""Controls: a distance is added to those above and below, a mask to that of exclusive or; a quad has four numbers."""

_SAME = 0xE4
"""The control of a quad whose lanes keep their places."""

_FIRST_ROWS, _SECOND_ROWS, _EVERY = 0b0101, 0b1010, 0b1111
"""Masks of the rows of a wave that are written."""

_SWIZZLED_XOR, _SWIZZLED_LANES = 10, 0x1F
"""Of ``ds_swizzle``, which reaches the 32 lanes of a half: where its mask is, and that all bits of the lane count."""


def fetch_at(target: Target, builder: ir.IRBuilder, word: ir.Value, way: Way, distance: int) -> ir.Value | None:
    """The *word* of the lane at *distance* in this *way*, on *target*; None if the target has no quick way."""
    if way in ("row_up", "row_down") and 0 < distance < ROW:
        return _move(builder, word, (_FROM_BELOW if way == "row_up" else _FROM_ABOVE) + distance)
    if way == "xor":
        return _fetch_xor(target, builder, word, distance)
    if way in ("up", "down") and 0 < distance < ROW:
        return _fetch_at_distance(target, builder, word, distance if way == "up" else -distance)
    return None


def _fetch_at_distance(target: Target, builder: ir.IRBuilder, word: ir.Value, distance: int) -> ir.Value | None:
    """The *word* of the lane that is *distance* below, or above if that is negative."""
    if _is_gfx9(target):
        if abs(distance) != 1:
            return None
        return _move(builder, word, _OF_NEIGHBOUR_BELOW if distance > 0 else _OF_NEIGHBOUR_ABOVE)
    if target.wave_size != 2 * ROW:
        return None
    lanes = [(lane - distance) % ROW for lane in range(ROW)]
    from_other = _fetch_other_row(builder, word, lanes)
    at_end = _move(builder, from_other, _SAME, word, _SECOND_ROWS if distance > 0 else _FIRST_ROWS)
    return _move(builder, word, (_FROM_BELOW if distance > 0 else _FROM_ABOVE) + abs(distance), at_end)


def _fetch_other_row(builder: ir.IRBuilder, word: ir.Value, lanes: Sequence[int]) -> ir.Value:
    """The *word* of one of *lanes* of the other row, which are given for each lane of a row; the own one of lanes whose
    other one is not active."""
    chosen = sum(lane << 4 * place for place, lane in enumerate(lanes))
    halves = (_signed(chosen & 0xFFFFFFFF), _signed(chosen >> 32))
    name = "llvm.amdgcn.permlanex16.i32"
    return call_named(builder, name, I32, word, word, *map(I32, halves), I1(0), I1(0))


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


def _fetch_xor(target: Target, builder: ir.IRBuilder, word: ir.Value, mask: int) -> ir.Value | None:
    """The *word* of the lane whose number is this one's exclusive or *mask*; None if no instruction says that."""
    control = _control_of_xor(target, mask)
    if control is not None:
        return _move(builder, word, control)
    if ROW <= mask < 2 * ROW and not _is_gfx9(target):
        return _fetch_other_row(builder, word, [lane ^ (mask - ROW) for lane in range(ROW)])
    if 0 < mask <= _SWIZZLED_LANES:
        pattern = mask << _SWIZZLED_XOR | _SWIZZLED_LANES
        return call_named(builder, "llvm.amdgcn.ds.swizzle", I32, word, I32(pattern))
    return None


def _control_of_xor(target: Target, mask: int) -> int | None:
    if mask in _QUADS:
        return _QUADS[mask]
    if not _is_gfx9(target):
        return _XOR + mask if 0 < mask < ROW else None
    return {7: _HALVES_MIRRORED, 8: _ROTATED + 8, 15: _MIRRORED}.get(mask)


def _is_gfx9(target: Target) -> bool:
    return target.name.startswith("gfx9")


def _move(
    builder: ir.IRBuilder, word: ir.Value, control: int, other: ir.Value | None = None,
    rows: int = _EVERY,
) -> ir.Value:  # fmt: skip
    """The *word* of the lane that *control* says, in these *rows*; *other*, or the own one, where there is none."""
    kept = word if other is None else other
    return call_named(
        builder, "llvm.amdgcn.update.dpp.i32", I32, kept, word, I32(control), I32(rows), I32(_EVERY), I1(0)
    )
