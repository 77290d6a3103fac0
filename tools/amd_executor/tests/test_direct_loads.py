"""Loads into shared memory without registers, of CDNA."""

from __future__ import annotations

import numpy as np
import pytest
from amd_kernels import machine, run

from tools.amd_executor.machine import MemoryFault


def test_loads_into_shared_memory_on_gfx942() -> None:
    declarations = (
        "@shared = internal addrspace(3) global [128 x i32] poison, align 16\n"
        "declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)\n"
    )
    body = """
  %there = mul i64 %i, 3
  %own = getelementptr i32, ptr addrspace(1) %x, i64 %there
  %start = getelementptr i32, ptr addrspace(3) @shared, i32 10
  %odd = trunc i64 %i to i1
  br i1 %odd, label %loads, label %done
loads:
  call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %own, ptr addrspace(3) %start, i32 4, i32 16, i32 0)
  br label %done
done:
  %before = getelementptr i32, ptr addrspace(3) @shared, i64 %i
  %from = getelementptr i32, ptr addrspace(3) %before, i32 14
  %value = load volatile i32, ptr addrspace(3) %from
  %to = getelementptr i32, ptr addrspace(1) %out, i64 %i
  store i32 %value, ptr addrspace(1) %to
"""
    x, out = np.arange(200, dtype=np.int32), np.zeros(64, np.int32)
    run(machine("gfx942", "ptr addrspace(1) %x, ptr addrspace(1) %out", body, declarations), [x, out])
    assert (out[1::2] == 3 * np.arange(1, 64, 2) + 4).all()
    assert (out[::2].view(np.uint32) == 0xDBDBDBDB).all()


def test_an_address_within_a_word_is_a_fault_on_gfx942() -> None:
    declarations = (
        "@shared = internal addrspace(3) global [128 x i32] poison, align 16\n"
        "declare void @llvm.amdgcn.global.load.lds(ptr addrspace(1), ptr addrspace(3), i32, i32, i32)\n"
    )
    body = """
  %odd = getelementptr i8, ptr addrspace(1) %x, i64 2
  call void @llvm.amdgcn.global.load.lds(ptr addrspace(1) %odd, ptr addrspace(3) @shared, i32 4, i32 0, i32 0)
  %value = load volatile i32, ptr addrspace(3) @shared
  store i32 %value, ptr addrspace(1) %x
"""
    with pytest.raises(MemoryFault):
        run(machine("gfx942", "ptr addrspace(1) %x", body, declarations), [np.zeros(64, np.int32)])
