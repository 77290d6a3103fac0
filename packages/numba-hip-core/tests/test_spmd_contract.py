"""What the compiler declares for the CPU device is what the SPMD contract says."""

from __future__ import annotations

from typing import Any

import llvmlite.binding as llvm
from numba import float32, void

import numba_hip as hip
from hip_devicelib import spmd


def everything(out: Any) -> None:
    shared, dynamic = hip.shared.array(32, float32), hip.shared.array(0, float32)
    i = hip.grid(1) + hip.threadIdx.y + hip.threadIdx.z + hip.blockIdx.y + hip.blockIdx.z + hip.blockDim.y
    j = hip.blockDim.z + hip.gridDim.x + hip.gridDim.y + hip.gridDim.z + hip.laneid + hip.warpsize + dynamic.shape[0]
    shared[i % 32] = dynamic[0]
    hip.syncthreads()
    votes = hip.syncthreads_count(i) + hip.ballot(i > 3) + hip.activemask()
    hip.syncwarp()
    hip.cg.this_grid().sync()
    value = hip.shfl(shared[0], 1) + hip.shfl(1.5, 1) + hip.shfl(i, 1) + hip.shfl(votes, 1)
    if out[i + 9] == 0:
        raise ValueError
    out[i] = value + j


def called_with(module: llvm.ModuleRef) -> dict[str, int]:
    """How many arguments the functions of the contract are given: LLVM lets it be more than they take."""
    counts = {}
    for function in module.functions:
        for block in function.blocks:
            for instruction in block.instructions:
                if instruction.opcode == "call":
                    *arguments, callee = instruction.operands
                    if callee.name.startswith(spmd.PREFIX):
                        assert counts.setdefault(callee.name, len(arguments)) == len(arguments)
    return counts


def test_every_declaration_is_that_of_the_contract() -> None:
    text, _ = hip.compile(
        everything, void(float32[::1]), target="cpu", output="llvm", exceptions=True, boundscheck=True
    )
    declared = {}
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if function.name.startswith(spmd.PREFIX):
            assert function.is_declaration
            item, *parameters = (str(argument.type) for argument in function.arguments)
            assert item == "ptr"
            result = str(function.global_value_type).partition(" (")[0]
            declared[function.name] = result, tuple(parameters)
    assert declared == {name: spmd.signature(name) for name in declared}
    assert called_with(module) == {name: 1 + len(parameters) for name, (_, parameters) in declared.items()}
    called = {spmd.SHARED if name.startswith(spmd.SHARED) else name for name in declared}
    synchronising = {spmd.GRID_BARRIER, spmd.BARRIER, spmd.BARRIER_COUNT, spmd.BALLOT, spmd.ACTIVE_LANES}
    assert called >= {spmd.SHARED, spmd.DYNAMIC_SHARED, spmd.FAULT, spmd.LANE, spmd.WAVE_SIZE, *synchronising}
    assert called >= {name(axis) for name in (spmd.thread_idx, spmd.block_idx, spmd.grid_dim) for axis in spmd.AXES}
