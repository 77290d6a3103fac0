"""The blocks of a grid up to the last one that has threads which do anything.

A kernel that begins with ``if i < n`` is often launched with far more blocks than have an element. Only the arguments
tell what *n* is, so the program has a function that computes from them where the launch can end. Blocks before that are
run, whether they do anything or not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from llvmlite import ir

from hip_devicelib.codeobject import Kernel
from hip_runtime.drivers.cpu.abi.launch_frame import FRAME, LIMIT_TYPE, PROGRAM
from hip_runtime.drivers.cpu.abi.thread_order import AXES
from hip_runtime.drivers.cpu.abi.work_item import WorkItem
from hip_runtime.drivers.cpu.abi.worker import load_parameter
from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.index_bounds import IndexBound
from hip_runtime.drivers.cpu.ir.model import Argument, Instruction, Value
from hip_runtime.drivers.cpu.ir.writer import write_instruction
from hip_runtime.drivers.cpu.llvmir import I64

_LIMIT_SYMBOL = "spmd.limit"


def define_limit(kernel: Kernel, item: WorkItem, bounds: Mapping[str, IndexBound]) -> ir.Function:
    """Define ``i64 limit(ptr frame)``, the number of blocks to run of a launch, in the module of *item*: 1 at least.
    *bounds* are those of *kernel* by axis."""
    function = ir.Function(item.module, LIMIT_TYPE, _LIMIT_SYMBOL)
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block("entry"))
    (frame,) = function.args
    numbers = _LaunchNumbers(builder, kernel, FRAME.load(builder, frame, "arguments"))
    last: ir.Value = I64(0)
    for axis in reversed(item.order.axes):
        blocks = working = builder.zext(FRAME.load(builder, frame, "grid", axis), I64)
        if (bound := bounds.get(AXES[axis])) is not None:
            threads = _extent(builder, frame, item, axis)
            working = _least(builder, blocks, _count(builder, numbers.limit(bound), threads))
        last = builder.add(builder.mul(last, blocks), builder.sub(working, I64(1)))
    builder.ret(_most(builder, builder.add(last, I64(1)), I64(1)))
    return function


@dataclass(frozen=True)
class _LaunchNumbers:
    """Writes numbers that the packed arguments at *place* give."""

    builder: ir.IRBuilder
    kernel: Kernel
    place: ir.Value

    def limit(self, bound: IndexBound) -> ir.Value:
        """The number that all indices within *bound* are below, without a sign."""
        number = self._value(bound.value)
        if bound.predicate in ("slt", "sle"):
            number = _most(self.builder, number, I64(0 if bound.predicate == "slt" else -1))
        if bound.predicate in ("sle", "ule"):
            following = self.builder.add(number, I64(1))
            is_last = self.builder.icmp_signed("==", following, I64(0))
            number = following if bound.predicate == "sle" else self.builder.select(is_last, number, following)
        return number

    def _value(self, value: Value) -> ir.Value:
        if isinstance(value, Instruction):
            # What the kernel assumes about it need not hold for a launch in which an earlier check fails.
            operands = [self._value(operand) for operand in value.operands]
            return write_instruction(self.builder, replace(value, flags=(), name=""), operands)
        if isinstance(value, Argument):
            return load_parameter(self.builder, self.place, self.kernel.parameters[value.index - 1])
        return ir.Constant(value.type, signed_number(value))


def _extent(builder: ir.IRBuilder, frame: ir.Value, item: WorkItem, axis: int) -> ir.Value:
    """The threads of a block along *axis*."""
    if axis > 0 or item.order.lengths is None:
        return I64(item.order.block[axis])
    return builder.zext(PROGRAM.load(builder, FRAME.load(builder, frame, "program"), "length"), I64)


def _count(builder: ir.IRBuilder, limit: ir.Value, threads: ir.Value) -> ir.Value:
    """The blocks of *threads* in which an index below *limit* is."""
    whole, rest = builder.udiv(limit, threads), builder.urem(limit, threads)
    return builder.add(whole, builder.zext(builder.icmp_unsigned("!=", rest, I64(0)), I64))


def _least(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_unsigned("<", one, other), one, other)


def _most(builder: ir.IRBuilder, one: ir.Value, other: ir.Value) -> ir.Value:
    return builder.select(builder.icmp_signed(">", one, other), one, other)
