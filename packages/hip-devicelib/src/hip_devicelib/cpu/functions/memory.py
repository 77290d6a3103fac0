"""Functions on addresses: atomics, and loads with a cache hint. Both are relaxed, as in HIP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from hip_devicelib.cpu.functions.function_builder import FunctionBuilder, Operation, llvm_type

_ORDER = "monotonic"


def _pointer(body: FunctionBuilder) -> Any:
    """The address, as a pointer to its element type."""
    element = body.declaration.parameters[0].type.element
    assert element is not None
    return body.builder.bitcast(body.arguments[0], llvm_type(element).as_pointer())


def _update(signed: str, unsigned: str, number: str | None) -> Operation:
    """LLVM's ``atomicrmw``, by the kind of the operand."""

    def operation(body: FunctionBuilder, *_: Any) -> Any:
        kind = body.declaration.parameters[1].type
        name = number if kind.kind == "float" else signed if kind.signed else unsigned
        return body.builder.atomic_rmw(name, _pointer(body), body.arguments[1], _ORDER)

    return operation


def _exchange_if_equal(body: FunctionBuilder, *_: Any) -> Any:
    """Compares bits, of floats as well: LLVM's ``cmpxchg`` only takes integers."""
    builder, (_address, compare, value) = body.builder, body.arguments
    kind = value.type
    word = kind if isinstance(kind, ir.IntType) else ir.IntType(body.declaration.result.bits)
    pointer = builder.bitcast(body.arguments[0], word.as_pointer())
    pair = builder.cmpxchg(
        pointer, builder.bitcast(compare, word), builder.bitcast(value, word), _ORDER, failordering=_ORDER
    )
    return builder.bitcast(builder.extract_value(pair, 0), kind)


def _load(body: FunctionBuilder, *_: Any) -> Any:
    return body.builder.load(_pointer(body))


_UPDATES = {
    "Add": _update("add", "add", "fadd"),
    "Sub": _update("sub", "sub", "fsub"),
    "Exch": _update("xchg", "xchg", "xchg"),
    "Min": _update("min", "umin", "fmin"),
    "Max": _update("max", "umax", "fmax"),
    "And": _update("and", "and", None),
    "Or": _update("or", "or", None),
    "Xor": _update("xor", "xor", None),
    "Inc": _update("uinc_wrap", "uinc_wrap", None),
    "Dec": _update("udec_wrap", "udec_wrap", None),
    "CAS": _exchange_if_equal,
}

MEMORY: Mapping[str, Operation] = {
    **{f"atomic{name}{scope}": operation for name, operation in _UPDATES.items() for scope in ("", "_system")},
    **{f"{kind}Atomic{name}": _UPDATES[name] for kind in ("safe", "unsafe") for name in ("Add", "Min", "Max")},
    **dict.fromkeys("atomicAddNoRet __ockl_atomic_add_noret_f32".split(), _UPDATES["Add"]),
    **dict.fromkeys("__ldg __ldca __ldcg __ldcs".split(), _load),
}
"""By name."""
