"""The methods of Numba's dispatchers: what may be compiled, what was, and how arguments are typed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, float64, int64, types

import numba_hip as hip
from hip_runtime.errors import UnsupportedError
from numba_hip import config
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.errors import KernelArgumentError, NotCompiledError


def add(values: Any, step: Any = 1) -> None:
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


ARGS = (types.Array(float64, 1, "C"), float64)


def test_no_new_types_are_compiled_for_once_that_is_disabled() -> None:
    kernel = hip.jit(add)
    with pytest.raises(NotCompiledError, match=r"add has not been compiled for any types yet: .* disable_compile\(\)"):
        kernel.disable_compile()
    values = np.zeros(3)
    kernel[1, 3](values, 1.5)
    kernel.disable_compile()
    kernel[1, 3](values, np.float32(0.5))
    assert values.tolist() == [2, 2, 2]
    assert kernel.signatures == [ARGS]
    with pytest.raises(KernelArgumentError, match="kernel add was compiled for"):
        kernel[1, 3](np.zeros(3, np.int32), 1.5)
    kernel.disable_compile(False)
    kernel[1, 3](np.zeros(3, np.int32), 1.5)
    assert len(kernel.signatures) == 2


def test_signatures_of_jit_are_all_there_are_until_compiling_is_enabled() -> None:
    kernel = hip.jit("void(float64[::1], float64)")(add)
    kernel.disable_compile(False)
    values = np.zeros(3, np.int32)
    kernel[1, 3](values, 2)
    assert values.tolist() == [2, 2, 2]


def test_a_pickled_kernel_knows_its_types() -> None:
    kernel = hip.jit(add)
    kernel.compile(ARGS)
    kernel.disable_compile()
    data = pickle.dumps(kernel)
    kernel.identity = ""  # as in another process, which has no such kernel
    del kernel
    copied = pickle.loads(data)
    with pytest.raises(KernelArgumentError, match="was compiled for"):
        copied[1, 3](np.zeros(3, np.int32), 1.5)


def test_device_functions_are_compiled_for_no_new_types() -> None:
    @hip.jit(device=True)
    def half(value: Any) -> Any:
        return value / 2

    def store(out: Any, value: Any) -> None:
        out[0] = half(value)

    with pytest.raises(NotCompiledError, match="half has not been compiled"):
        half.disable_compile()
    half.compile_device((float64,))
    half.disable_compile()
    out = np.zeros(1)
    hip.jit(store)[1, 1](out, 3)
    assert out[0] == 1.5
    assert half.nopython_signatures == [float64(float64)]
    half.disable_compile(False)
    hip.jit(store)[1, 1](out, 5)
    assert half.nopython_signatures[-1].args == (int64,)


def test_caching_can_be_enabled_later(tmp_path: Path) -> None:
    with config.cache_dir.scope(tmp_path):
        kernel = hip.jit(add)
        assert kernel.stats.cache_path is None
        kernel.enable_caching()
        kernel.compile(ARGS)
        assert kernel.stats.cache_path == str(tmp_path)
        other = hip.jit(add)
        other.enable_caching()
        other.compile(ARGS)
        assert (sum(kernel.stats.cache_misses.values()), sum(other.stats.cache_hits.values())) == (1, 1)


def test_what_was_compiled_is_found_by_its_signature() -> None:
    kernel = hip.jit(add)
    code = kernel.compile(ARGS)
    assert kernel.get_overload("void(float64[::1], float64)") is code
    assert isinstance(code, KernelCode)
    assert kernel.get_metadata(ARGS) == kernel.get_metadata()[ARGS] == {"transformed_source": None}
    for ask in (kernel.get_overload, kernel.get_metadata, kernel.inspect_cfg):
        with pytest.raises(NotCompiledError, match=r"add was not compiled for \(float32\); its signatures: "):
            ask((float32,))


def test_what_was_compiled_of_a_device_function() -> None:
    @hip.jit(device=True)
    def first(value: Any, other: Any) -> Any:
        return value + other

    @hip.jit(device=True)
    def twice(value: Any) -> Any:
        return first(value, value)

    result = twice.compile_device((float32,))
    assert twice.get_overload("float32(float32)") is result
    assert twice.get_metadata((float32,)) is result.metadata
    assert "CFG for 'twice" in str(twice.inspect_cfg((float32,)))


def test_arguments_are_typed_and_put_in_order() -> None:
    kernel = hip.jit(add)
    signature, folded = kernel.fold_argument_types((ARGS[0],), {})
    assert list(signature.parameters) == ["values", "step"]
    assert folded == (ARGS[0], types.Omitted(1))
    assert kernel.fold_argument_types((), {"step": int64, "values": ARGS[0]})[1] == (ARGS[0], int64)
    assert kernel.typeof_pyval(np.zeros(3)) == kernel.typeof_pyval(hip.to_device(np.zeros(3))) == ARGS[0]
    assert kernel.typeof_pyval(3) == int64
    with pytest.raises(KernelArgumentError, match="argument 'val' is a object"):
        kernel.typeof_pyval(object())


def test_the_control_flow_graph() -> None:
    kernel = hip.jit(add)
    kernel.compile(ARGS)
    (graph,) = kernel.inspect_cfg().values()
    for shown in (graph, kernel.inspect_cfg(ARGS)):
        assert str(shown).startswith("digraph \"CFG for 'add' function\"")
        assert "fadd double" in str(shown)
    with pytest.raises(UnsupportedError, match="show_wrapper='python': what is compiled for a device has no wrapper"):
        kernel.inspect_cfg(ARGS, show_wrapper="python")
