"""Large arrays that kernels capture: they are not part of the bitcode, and get to wherever the kernel goes."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from llvmlite import ir
from numba import hip, types

from hip_devicelib.large_constants import LARGE, PREFIX, spell_bytes
from hip_runtime import SymbolError, current_device
from hip_runtime.drivers.cpu.finalise import finalise_kernel
from numba_hip import config

LARGE_TABLE = np.random.default_rng(0).permutation(LARGE).astype(np.float32)
FORTRAN = np.asfortranarray(np.arange(LARGE, dtype=np.int16).reshape(128, -1))

pytestmark = pytest.mark.skipif(current_device().target != "cpu", reason="large constants of AMD GPUs are in the code")


def read_tables(out: Any) -> None:
    i = hip.grid(1)
    out[i] = LARGE_TABLE[i * 7] + FORTRAN[i, i + 1]


EXPECTED = LARGE_TABLE[np.arange(96) * 7] + FORTRAN[np.arange(96), np.arange(96) + 1]
SIGNATURE = (types.float32[::1],)


def test_values_and_sizes() -> None:
    kernel = hip.jit(read_tables)
    out = np.zeros(96, np.float32)
    kernel[3, 32](out)
    np.testing.assert_array_equal(out, EXPECTED)
    (code,) = kernel.overloads.values()
    assert len(code.bitcode) < LARGE / 4
    assert len(code.data) == 2
    assert all(symbol.startswith(PREFIX) for symbol in code.data)
    assert LARGE_TABLE.nbytes + FORTRAN.nbytes <= code.const_mem_size < LARGE_TABLE.nbytes + FORTRAN.nbytes + LARGE


def test_code_objects_take_them_along() -> None:
    (code,) = hip.jit(SIGNATURE)(read_tables).overloads.values()
    again = pickle.loads(pickle.dumps(code.code_object))
    assert len(finalise_kernel(again, again.kernels[0], (32, 1, 1)).image) > LARGE_TABLE.nbytes + FORTRAN.nbytes
    with pytest.raises(SymbolError, match=PREFIX):
        finalise_kernel(replace(again, data={}), again.kernels[0], (32, 1, 1))


def test_the_cache_keeps_them(tmp_path: Any) -> None:
    with config.cache_dir.scope(tmp_path):
        for hits in (0, 1):
            kernel = hip.jit(cache=True)(read_tables)
            out = np.zeros(96, np.float32)
            kernel[3, 32](out)
            np.testing.assert_array_equal(out, EXPECTED)
            assert sum(kernel.stats.cache_hits.values()) == hits


def test_an_exported_function_has_them_itself() -> None:
    def look_up(i: Any) -> Any:
        return LARGE_TABLE[i]

    code, _ = hip.compile(look_up, "(int64,)", target="cpu", device=True, abi="c", output="bitcode")
    linked = hip.declare_device("look_up", types.float32(types.int64), link=hip.LinkedCode(code), abi="c")

    @hip.jit
    def kernel(out: Any) -> None:
        i = hip.grid(1)
        out[i] = linked(i)

    out = np.zeros(64, np.float32)
    kernel[2, 32](out)
    np.testing.assert_array_equal(out, LARGE_TABLE[:64])


@pytest.mark.parametrize("data", [b"", b"\0", bytes(range(256))])
def test_bytes_are_spelled_as_llvm_reads_them(data: bytes) -> None:
    value = spell_bytes(data)
    ours, theirs = (
        str(llvm.parse_assembly(f"@x = constant {one.type} {one.get_reference()}"))
        for one in (value, ir.Constant(value.type, bytearray(data)))
    )
    assert ours == theirs
