"""Loads and stores with cache hints, under CUDA's names: ``ldcg(ary, idx)``, ``stcg(ary, idx, val)``.

A hint never changes what is read or written. ``ldcv`` and ``stwt`` are relaxed atomic accesses, which are never merged
or removed. ``ldcs``, ``ldlu`` and ``stcs`` are nontemporal on AMD GPUs, as those of HIP C++'s
``__builtin_nontemporal_load`` are: what they pass through the caches makes room first. The others are plain accesses
here. Elements are integers and floats, of an array or behind a pointer, ``ldcg(pointer, i)``.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError

from hip_runtime.said_names import our
from numba_hip.language.array_elements import element_pointer
from numba_hip.language.stub import Lower, Stub, device_function
from numba_hip.named_calls import call_named


def _check(function: str, ary: types.Type, idx: types.Type) -> None:
    if not isinstance(ary, (types.Array, types.CPointer)) or not isinstance(ary.dtype, (types.Integer, types.Float)):
        raise TypingError(
            f"{our(function)}: the first argument has to be an array of integers or floats, or a pointer to them, "
            f"got {ary}"
        )
    if isinstance(ary, types.CPointer):
        if not isinstance(idx, types.Integer):
            raise TypingError(f"{our(function)}: a pointer cannot be indexed with {idx}")
        return
    indices = list(idx) if isinstance(idx, types.BaseTuple) else [idx]
    if len(indices) != ary.ndim or not all(isinstance(index, types.Integer) for index in indices):
        raise TypingError(f"{our(function)}: an array of {ary.ndim} dimensions cannot be indexed with {idx}")


def _address(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
    """The address of the element in the first two arguments of a call: an array or a pointer, and an index."""
    kind, index = sig.args[:2]
    if not isinstance(kind, types.CPointer):
        return element_pointer(context, builder, sig, args)
    return builder.gep(args[0], [context.cast(builder, args[1], index, types.intp)], inbounds=True)


def _mark_passing(context: Any, builder: ir.IRBuilder, access: Any) -> None:
    """Say that *access*, an instruction, is the only one to its memory for a while, where the device has a use for it:
    a processor's nontemporal stores bypass its caches."""
    if not context.runs_in_process:
        access.set_metadata("nontemporal", builder.module.add_metadata([ir.IntType(32)(1)]))


def _load(name: str, meaning: str, *, anew: bool = False, once: bool = False) -> Stub:
    def define(ary: types.Type, idx: types.Type) -> tuple[types.Type, Lower]:
        _check(name, ary, idx)

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            pointer = _address(context, builder, sig, args)
            if anew:
                return builder.load_atomic(pointer, context.atomic_ordering, ary.dtype.bitwidth // 8)
            loaded = builder.load(pointer)
            if once:
                _mark_passing(context, builder, loaded)
            return loaded

        return ary.dtype, lower

    return _document(name, f"``{name}(ary, idx)``: ``ary[idx]``, {meaning}.", define)


def _store(name: str, meaning: str, *, anew: bool = False, once: bool = False) -> Stub:
    def define(ary: types.Type, idx: types.Type, val: types.Type) -> tuple[types.Type, Lower]:
        _check(name, ary, idx)
        if not ary.mutable:
            raise TypingError(f"{our(name)}: the array is read-only")

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            value = context.cast(builder, args[2], sig.args[2], ary.dtype)
            pointer = _address(context, builder, sig, args)
            if anew:
                builder.store_atomic(value, pointer, context.atomic_ordering, ary.dtype.bitwidth // 8)
            else:
                stored = builder.store(value, pointer)
                if once:
                    _mark_passing(context, builder, stored)
            return context.get_dummy_value()

        return types.void, lower

    return _document(name, f"``{name}(ary, idx, val)``: ``ary[idx] = val``, {meaning}.", define)


def _document(name: str, doc: str, define: Any) -> Stub:
    define.__doc__ = doc
    define.__module__ = __name__
    return device_function(name)(define)


@device_function("expect_store")
def expect_store(ary: types.Type, idx: types.Type) -> tuple[types.Type, Lower]:
    """``expect_store(ary, idx)``: have the memory of ``ary[idx]`` in the cache of this processor, which will store to
    it; for algorithms on the CPU device."""

    def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
        pointer = element_pointer(context, builder, sig, args)
        number = ir.IntType(32)
        is_store, of_first_level, is_data = (number(one) for one in (1, 3, 1))
        call_named(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, is_store, of_first_level, is_data)
        return context.get_dummy_value()

    return types.void, lower


ldca = _load("ldca", "which may stay in all caches")
ldcg = _load("ldcg", "cached for all threads of the device")
ldcs = _load("ldcs", "which is read once", once=True)
ldlu = _load("ldlu", "which is not read again", once=True)
ldcv = _load("ldcv", "read from memory again each time", anew=True)
stcg = _store("stcg", "cached for all threads of the device")
stcs = _store("stcs", "which is read once", once=True)
stwb = _store("stwb", "written back whenever the cache does")
stwt = _store("stwt", "written to memory at once", anew=True)
