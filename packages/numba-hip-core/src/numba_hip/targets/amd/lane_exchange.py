"""How lanes of AMD GPUs read words from each other.

``ds_bpermute`` reaches all lanes of a wave, except in waves of 64 lanes on gfx10 and gfx11: these run as two halves of
32, and LDS instructions stay within one half. There words go through scalar registers, one lane after another.
(``v_permlane64`` of gfx11 swaps the halves, but writes nothing to inactive lanes.)
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

from hip_devicelib.target import Target
from numba_hip.named_calls import call_named

I32, I64 = ir.IntType(32), ir.IntType(64)
HALF = 32


def has_halves(target: Target) -> bool:
    """Whether LDS instructions only reach half of a wave."""
    return target.wave_size == 2 * HALF and target.name.startswith(("gfx10", "gfx11"))


def fetch(target: Target, builder: ir.IRBuilder, word: ir.Value, lane: ir.Value) -> ir.Value:
    """The *word* of *lane*, both i32, on *target*."""
    if has_halves(target):
        return _fetch_one_by_one(builder, word, lane)
    byte = builder.shl(lane, I32(2))  # lanes are named by the bytes of their words
    return call_named(builder, "llvm.amdgcn.ds.bpermute", I32, byte, word)


def _fetch_one_by_one(builder: ir.IRBuilder, word: ir.Value, lane: ir.Value) -> ir.Value:
    """Each requested lane is read in turn, for all lanes that request it."""
    before, loop = builder.block, builder.append_basic_block("ask")
    after = builder.append_basic_block("answered")
    builder.branch(loop)
    builder.position_at_end(loop)
    known = builder.phi(I32)
    asked = call_named(builder, "llvm.amdgcn.readfirstlane.i32", I32, lane)
    found = call_named(builder, "llvm.amdgcn.readlane.i32", I32, word, asked)
    answered = builder.icmp_unsigned("==", asked, lane)
    result = builder.select(answered, found, known)  # in a vector register, as lanes leave the loop one by one
    known.add_incoming(I32(0), before)
    known.add_incoming(result, loop)
    builder.cbranch(answered, after, loop)
    builder.position_at_end(after)
    return result


def move_words(builder: ir.IRBuilder, value: ir.Value, move: Callable[[ir.Value], ir.Value | None]) -> ir.Value | None:
    """Apply *move* to each 32-bit word of *value* (i32, i64, float or double); None if *move* gives that."""
    if value.type in (I32, ir.FloatType()):
        moved = move(builder.bitcast(value, I32))
        return None if moved is None else builder.bitcast(moved, value.type)
    bits = builder.bitcast(value, I64)
    words = [move(builder.trunc(word, I32)) for word in (bits, builder.lshr(bits, I64(32)))]
    if None in words:
        return None
    low, high = (builder.zext(word, I64) for word in words)
    return builder.bitcast(builder.or_(low, builder.shl(high, I64(32))), value.type)
