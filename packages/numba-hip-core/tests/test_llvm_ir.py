"""LLVM IR by the names of AMD's numba-hip."""

from __future__ import annotations

from typing import Any

import pytest
from llvmlite import binding as llvm
from numba.core import types

import numba_hip as hip
from hip_devicelib.errors import UnknownTargetError

SIGNATURE = "void(float32[::1], float32)"


def fill(out: Any, value: Any) -> None:
    i = hip.grid(1)
    if i < out.size:
        out[i] = value


def twice(value: Any) -> Any:
    return value * 2


@pytest.mark.parametrize("target", [None, "gfx90a", "gfx1100"])
def test_a_kernel_is_text_bytes_or_bitcode(target: str | None) -> None:
    text, result = hip.compile_llvm_ir(fill, SIGNATURE, amdgpu_arch=target)
    assert result == types.none
    module = llvm.parse_assembly(text)
    assert module.get_function("fill").type
    assert ("amdgpu_kernel" in text) == (target is not None or not hip.get_current_device().is_cpu)
    assert hip.compile_llvm_ir(fill, SIGNATURE, amdgpu_arch=target, ir_as_str=False)[0] == text.encode()
    bitcode, _ = hip.compile_llvm_ir(fill, SIGNATURE, amdgpu_arch=target, to_bc=True)
    assert str(llvm.parse_bitcode(bitcode)) == text


def test_it_can_have_another_name() -> None:
    text, _ = hip.compile_llvm_ir(fill, SIGNATURE, amdgpu_arch="gfx90a", name="mine")
    kernels = [one.name for one in llvm.parse_assembly(text).functions if not one.is_declaration]
    assert kernels == ["mine"]
    assert fill.__name__ == "fill"
    text, result = hip.compile_llvm_ir(twice, "float32(float32)", device=True, name="mine", amdgpu_arch="gfx90a")
    assert [one.name for one in llvm.parse_assembly(text).functions] == ["mine"]
    assert result == types.float32


def test_the_names_of_ptx_give_the_same() -> None:
    text, _ = hip.compile_llvm_ir(fill, SIGNATURE, amdgpu_arch="gfx90a")
    assert hip.compile_ptx(fill, SIGNATURE, cc="gfx90a")[0] == text
    assert hip.compile_ptx(fill, SIGNATURE, False, False, False, False, "gfx90a", True)[0] == text
    here, _ = hip.compile_llvm_ir_for_current_device(fill, SIGNATURE)
    assert here == hip.compile_ptx_for_current_device(fill, SIGNATURE)[0] == hip.compile_llvm_ir(fill, SIGNATURE)[0]
    one = hip.compile_ptx_for_current_device(twice, "float32(float32)", False, False, True, False, True)
    assert one == hip.compile_llvm_ir(twice, "float32(float32)", device=True)
    assert here != text or not hip.get_current_device().is_cpu


def test_what_cannot_be_compiled_is_refused() -> None:
    with pytest.raises(UnknownTargetError, match="gfx1"):
        hip.compile_llvm_ir(fill, SIGNATURE, amdgpu_arch="gfx1")
    with pytest.raises(TypeError, match="takes a Python function"):
        hip.compile_llvm_ir(3, SIGNATURE, name="mine")


def test_linked_as_a_device_function_it_gives_its_values() -> None:
    """What is compiled here is what `declare_device` takes, by the same convention."""
    code, _ = hip.compile_llvm_ir(twice, "float32(float32)", device=True, to_bc=True, name="twice_elsewhere")
    elsewhere = hip.declare_device("twice_elsewhere", "float32(float32)", link=hip.LinkedCode(code))

    @hip.jit
    def kernel(out):
        out[0] = elsewhere(out[0])

    out = hip.to_device([21.0])
    kernel[1, 1](out)
    assert out.copy_to_host()[0] == 42
