"""What helpers bring to the launches of a program, as the last ones tell, as LLVM IR.

Two threads that update the same cache lines, or that memory makes wait, may take longer than one, and so may a launch
that is over by the time a helper wakes. So after some launches two are run without help, and timed: at once would make
those slow that a user times. Where help does not make launches faster, it is tried again after a while, each time a
longer one; in two launches, as the first one wakes the helpers, which have nothing in their caches. Launches of another
size are helped until it is known what these take; so are long ones, always: that one of them runs alone would cost more
than it tells.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FIRST_PAUSE, NEVER_ALONE, PROGRAM
from hip_runtime.drivers.cpu.llvmir import I32, I64, PTR, VOID

GAIN = 0.9
"""What launches with help may take of the time without."""

LONGEST = 20_000_000.0
"""Nanoseconds that all threads together take for a launch, from which on it is always helped."""

SEEN = 16
"""How many launches are helped, for each thread that takes part, before two are run alone: these then take an eighth of
the time that the program has had, at most."""

LONGEST_PAUSE = 1024
"""The most launches that are run alone before help is tried again."""

_HELPED = -1
"""In place of a pause: the last launch was helped."""

_DOUBLE = ir.DoubleType()


def define_choose(module: ir.Module) -> ir.Function:
    """``i64 choose_helpers(program, blocks, helpers)``: how many of the *helpers* are asked for so many blocks: all of
    them or none."""
    function = ir.Function(module, ir.FunctionType(I64, [PTR, I64, I64]), "spmd.choose_helpers")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    program, blocks, helpers = function.args
    known = PROGRAM.load(builder, program, "helped_blocks")
    is_like = builder.and_(
        builder.icmp_unsigned("<=", known, builder.shl(blocks, I64(1))),
        builder.icmp_unsigned("<=", blocks, builder.shl(known, I64(1))),
    )
    is_free = builder.icmp_signed("!=", PROGRAM.load(builder, program, "patience"), I32(NEVER_ALONE))
    with builder.if_then(builder.not_(builder.and_(is_like, is_free))):
        builder.ret(helpers)
    helped, alone = (PROGRAM.load(builder, program, name) for name in ("helped", "alone"))
    shares = builder.uitofp(builder.mul(blocks, builder.add(helpers, I64(1))), _DOUBLE)
    is_long = builder.fcmp_ordered(">", builder.fmul(helped, shares), _DOUBLE(LONGEST))
    with builder.if_then(is_long):
        builder.ret(helpers)
    is_untimed = builder.icmp_signed(">", PROGRAM.load(builder, program, "untimed"), I32(0))
    with builder.if_then(is_untimed):
        enough = builder.mul(builder.add(builder.trunc(helpers, I32), I32(1)), I32(SEEN))
        is_time = builder.icmp_signed(">=", PROGRAM.load(builder, program, "seen"), enough)
        builder.ret(builder.select(is_time, I64(0), helpers))
    pause = PROGRAM.load(builder, program, "pause")
    helps = builder.or_(_is_faster(builder, helped, alone), builder.icmp_signed("<=", pause, I32(0)))
    with builder.if_then(helps):
        builder.ret(helpers)
    PROGRAM.store(builder, builder.sub(pause, I32(1)), program, "pause")
    builder.ret(I64(0))
    return function


def define_note(module: ir.Module) -> ir.Function:
    """``void note_launch(program, blocks, helpers, nanoseconds)``: learn from a launch of so many blocks."""
    function = ir.Function(module, ir.FunctionType(VOID, [PTR, I64, I64, I64]), "spmd.note_launch")
    function.linkage = "internal"
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    program, blocks, helpers, nanoseconds = function.args
    each = builder.fdiv(builder.uitofp(nanoseconds, _DOUBLE), builder.uitofp(blocks, _DOUBLE))
    untimed = PROGRAM.load(builder, program, "untimed")
    is_timed = builder.icmp_signed("<=", untimed, I32(0))
    alone = PROGRAM.load(builder, program, "alone")
    with builder.if_then(builder.icmp_unsigned("==", helpers, I64(0))):
        slower = builder.fcmp_ordered(">", each, alone)
        keeps = builder.and_(slower, builder.icmp_signed("==", untimed, I32(1)))
        PROGRAM.store(builder, builder.select(keeps, alone, each), program, "alone")
        left = builder.select(is_timed, I32(0), builder.sub(untimed, I32(1)))
        PROGRAM.store(builder, left, program, "untimed")
        builder.ret_void()
    PROGRAM.store(builder, each, program, "helped")
    PROGRAM.store(builder, blocks, program, "helped_blocks")
    with builder.if_then(builder.not_(is_timed)):
        seen = builder.add(PROGRAM.load(builder, program, "seen"), I32(1))
        PROGRAM.store(builder, seen, program, "seen")
    patience = PROGRAM.load(builder, program, "patience")
    is_free = builder.icmp_signed("!=", patience, I32(NEVER_ALONE))
    with builder.if_then(builder.and_(is_timed, is_free)):
        goes_on = builder.icmp_signed("==", PROGRAM.load(builder, program, "pause"), I32(_HELPED))
        with builder.if_then(builder.not_(goes_on)):
            PROGRAM.store(builder, I32(_HELPED), program, "pause")
            builder.ret_void()
        faster = _is_faster(builder, each, alone)
        PROGRAM.store(builder, builder.select(faster, I32(_HELPED), patience), program, "pause")
        longer = builder.shl(patience, I32(1))
        longer = builder.select(builder.icmp_signed("<", longer, I32(LONGEST_PAUSE)), longer, I32(LONGEST_PAUSE))
        PROGRAM.store(builder, builder.select(faster, I32(FIRST_PAUSE), longer), program, "patience")
    builder.ret_void()
    return function


def _is_faster(builder: ir.IRBuilder, helped: ir.Value, alone: ir.Value) -> ir.Value:
    return builder.fcmp_ordered("<", helped, builder.fmul(alone, _DOUBLE(GAIN)))
