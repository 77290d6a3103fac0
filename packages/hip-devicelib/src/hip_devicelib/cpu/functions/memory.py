"""Functions that work on an address: atomics, and loads with a cache hint. Both are relaxed, as HIP's are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from llvmlite import ir

from hip_devicelib.cpu.functions.site import Operation, Site, llvm_type

_ORDER = "monotonic"


def _pointer(site: Site) -> Any:
    """The address, as a pointer to what lies there."""
    element = site.declaration.parameters[0].type.element
    assert element is not None
    return site.builder.bitcast(site.arguments[0], llvm_type(element).as_pointer())


def _update(signed: str, unsigned: str, number: str | None) -> Operation:
    """LLVM's ``atomicrmw``, by the kind of the operand."""

    def operation(site: Site, *_: Any) -> Any:
        kind = site.declaration.parameters[1].type
        name = number if kind.kind == "float" else signed if kind.signed else unsigned
        return site.builder.atomic_rmw(name, _pointer(site), site.arguments[1], _ORDER)

    return operation


def _exchange_if_equal(site: Site, *_: Any) -> Any:
    """Compares bits, also of numbers: LLVM's ``cmpxchg`` has integers only."""
    builder, (_address, compare, value) = site.builder, site.arguments
    kind = value.type
    word = kind if isinstance(kind, ir.IntType) else ir.IntType(site.declaration.result.bits)
    pointer = builder.bitcast(site.arguments[0], word.as_pointer())
    pair = builder.cmpxchg(
        pointer, builder.bitcast(compare, word), builder.bitcast(value, word), _ORDER, failordering=_ORDER
    )
    return builder.bitcast(builder.extract_value(pair, 0), kind)


def _load(site: Site, *_: Any) -> Any:
    return site.builder.load(_pointer(site))


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
