"""Where lanes that are not active load and store, on processors whose gathers and scatters take no masks."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest
from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I1, PTR, VOID
from hip_runtime.drivers.cpu.vectorize import vector_builder
from hip_runtime.drivers.cpu.vectorize.vector_builder import VectorBuilder

WIDTH = 4
FLOAT = ir.FloatType()


@pytest.fixture
def gang(monkeypatch: pytest.MonkeyPatch) -> tuple[VectorBuilder, ir.Function]:
    """What writes a function of vectors of places, of a mask and of numbers, for such a processor."""
    monkeypatch.setattr(vector_builder, "has_mask_registers", lambda: False)
    kinds = [ir.VectorType(kind, WIDTH) for kind in (PTR, I1, FLOAT)]
    function = ir.Function(ir.Module(context=ir.Context()), ir.FunctionType(VOID, kinds), "f")
    entry = ir.IRBuilder(function.append_basic_block("entry"))
    builder = ir.IRBuilder(function.append_basic_block("body"))
    return VectorBuilder(builder, WIDTH, entry), function


def finish(lanes: VectorBuilder, function: ir.Function) -> llvm.ValueRef:
    """The function as LLVM has read it."""
    assert lanes.entry is not None
    lanes.entry.branch(lanes.builder.block)
    lanes.builder.ret_void()
    module = llvm.parse_assembly(str(function.module))
    module.verify()
    return module.get_function("f")


def entry_of(function: llvm.ValueRef) -> tuple[list[str], list[str]]:
    """The names of what the entry allocates, and its stores as text."""
    block = next(iter(function.blocks))
    found = list(block.instructions)
    return [one.name for one in found if one.opcode == "alloca"], [str(one) for one in found if one.opcode == "store"]


def test_lanes_that_load_find_zeros(gang: tuple[VectorBuilder, ir.Function]) -> None:
    """Not garbage, which may be a denormal number: arithmetic with that takes many times as long."""
    lanes, function = gang
    places, mask, _ = function.args
    for _ in range(2):
        lanes.gather(FLOAT, places, mask, 4)
    (place,), (store,) = entry_of(finish(lanes, function))
    assert "zeroinitializer" in store
    assert f"%{place}" in store


def test_lanes_that_store_leave_the_zeros(gang: tuple[VectorBuilder, ir.Function]) -> None:
    lanes, function = gang
    places, mask, _ = function.args
    lanes.gather(FLOAT, places, mask, 4)
    lanes.keep_idle(places, mask, 4, are_stored=True)
    written = finish(lanes, function)
    (first, second), (store,) = entry_of(written)
    assert f"%{first}" in store
    assert f"%{second}" not in store


def test_a_scatter_has_a_place_of_its_own(gang: tuple[VectorBuilder, ir.Function]) -> None:
    lanes, function = gang
    places, mask, values = function.args
    lanes.gather(FLOAT, places, mask, 4)
    lanes._scatter(values, places, mask, 4)
    assert len(entry_of(finish(lanes, function))[0]) == 2
