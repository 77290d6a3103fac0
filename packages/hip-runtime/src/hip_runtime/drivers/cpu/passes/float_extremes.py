"""The greater, or the lesser, of a number in memory and another one: atomic operations on floats of the SPMD contract.

LLVM's ``fmax`` and ``fmin`` take the other number where one is NaN. Those of the contract leave memory as it is, as
``if value > memory: memory = value`` does. In the graph of a kernel they are operations of an ``atomicrmw`` of our own,
``omax`` and ``omin`` after the ordered comparisons of LLVM, so that they can be combined like all others. Functions
that stay apart call one that is defined here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.ir.model import Atomic, Function, Instruction
from hip_runtime.drivers.cpu.llvmir import PTR
from hip_runtime.drivers.cpu.passes.checked_atomics import write_checked

_PREFIX = "extremes."
_RELAXED = Atomic(("monotonic",), "")
_EXTREMES: dict[str, tuple[str, ir.Type, int]] = {
    _PREFIX + family + str(kind): (operation, kind, size)
    for family, operation in ((spmd.ATOMIC_MAX, "omax"), (spmd.ATOMIC_MIN, "omin"))
    for kind, size in ((ir.FloatType(), 4), (ir.DoubleType(), 8))
}
"""The operation, the type and its bytes, by the name of the function that is defined."""


def is_extreme(name: str) -> bool:
    """Whether the function *name* is one that is defined here."""
    return name in _EXTREMES


def define_extremes(module: Any, read: Callable[[str], Any]) -> None:
    """Define those that *module* calls, under other names; *read* parses a module."""
    definitions = ir.Module("extremes", context=ir.Context())
    for function in list(module.functions):
        name = _PREFIX + function.name
        if not is_extreme(name) or not function.is_declaration:
            continue
        number = _EXTREMES[name][1]
        kind = ir.FunctionType(number, [PTR, number])
        if str(function.global_value_type) == str(kind):
            function.name = name
            _define(definitions, name)
    if definitions.functions:
        parsed = read(str(definitions))
        parsed.triple, parsed.data_layout = module.triple, module.data_layout
        module.link_in(parsed)


def _define(module: ir.Module, name: str) -> None:
    """A function that stays one, so that `update_extremes` finds its calls."""
    operation, number, size = _EXTREMES[name]
    function = ir.Function(module, ir.FunctionType(number, [PTR, number]), name)
    function.attributes.add("noinline")
    function.attributes.add("nounwind")
    builder = ir.IRBuilder(function.append_basic_block())
    update = Instruction(number, "atomicrmw", [], operation=operation, atomic=_RELAXED, align=size)
    builder.ret(write_checked(builder, update, function.args))


def update_extremes(function: Function) -> bool:
    """Have the calls of these functions in *function* be operations; whether there were any."""
    found = [value for value in function.instructions() if value.opcode == "call" and is_extreme(value.callee)]
    for value in found:
        value.operation, _, value.align = _EXTREMES[value.callee]
        value.opcode, value.operands, value.call, value.flags = "atomicrmw", value.operands[:2], None, ()
        value.atomic = _RELAXED
    return bool(found)
