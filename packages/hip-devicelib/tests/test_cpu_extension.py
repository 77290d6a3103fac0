"""HIP C++ of a user, compiled for the processor."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest
from llvmlite import binding as llvm

from hip_devicelib import Extension
from hip_devicelib.cache import Cache
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.cpu import functions
from hip_devicelib.cpu.extension import host_header, supply_cpu_extension
from hip_devicelib.errors import CompileError, HeaderError
from hip_devicelib.isolated_codegen import make_host_machine

pytest.importorskip("ziglang", reason="the wheel ziglang is not there, whose clang compiles HIP C++ for processors")

SOURCE = """
__device__ int divide(int a, int b, int *rest) { *rest = a % b; return a / b; }
__device__ __forceinline__ unsigned int bits(unsigned int x) { return __popc(x) + FIRST; }
__device__ int64_t largest(int64_t a, int64_t b) { return a < b ? b : a; }
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


@pytest.mark.usefixtures("libclang")
def test_its_functions_do_what_they_say(cache: Cache) -> None:
    library = supply_cpu_extension(Extension(SOURCE, options=("-DFIRST=100",)), cache=cache)
    assert library.target == CPU_TARGET
    names = {function.name: function.symbol for function in library.functions}
    assert sorted(names) == ["bits", "divide", "largest"]

    module = llvm.parse_bitcode(library.bitcode)
    needed = [one.name for one in module.functions if one.is_declaration and one.name.startswith("hipdl_")]
    assert "hipdl___popc__u32" in needed
    module.link_in(llvm.parse_bitcode(functions.bitcode_of(needed)))
    engine = llvm.create_mcjit_compiler(module, make_host_machine())
    engine.finalize_object()
    rest = ctypes.c_int()
    divide = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_int))
    assert divide(engine.get_function_address(names["divide"]))(17, 5, ctypes.byref(rest)) == 3
    assert rest.value == 2
    bits = ctypes.CFUNCTYPE(ctypes.c_uint, ctypes.c_uint)
    assert bits(engine.get_function_address(names["bits"]))(0b10110) == 103


@pytest.mark.usefixtures("libclang")
def test_it_is_kept_until_it_changes(cache: Cache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from hip_devicelib.cpu import extension as module

    compiled = []
    compile_once = module._compile
    monkeypatch.setattr(module, "_compile", lambda *args: compiled.append(1) or compile_once(*args))
    first = supply_cpu_extension(Extension(SOURCE, options=("-DFIRST=1",)), cache=cache)
    assert supply_cpu_extension(Extension(SOURCE, options=("-DFIRST=1",)), cache=cache).bitcode == first.bitcode
    assert len(compiled) == 1
    assert supply_cpu_extension(Extension(SOURCE, options=("-DFIRST=2",)), cache=cache).bitcode != first.bitcode
    assert len(compiled) == 2

    including = Extension('#include "first.h"\n' + SOURCE, include_paths=(tmp_path,))
    (tmp_path / "first.h").write_text("#define FIRST 3")
    before = supply_cpu_extension(including, cache=cache).bitcode
    (tmp_path / "first.h").write_text("#define FIRST 4")
    assert supply_cpu_extension(including, cache=cache).bitcode != before


@pytest.mark.usefixtures("libclang")
def test_mistakes_are_told_with_the_line_of_the_user(cache: Cache) -> None:
    with pytest.raises(CompileError, match=r"mine\.hip:2:.*undeclared identifier 'missing'"):
        supply_cpu_extension(Extension("\n__device__ int f() { return missing; }", name="mine.hip"), cache=cache)
    with pytest.raises(HeaderError, match="no device function"):
        supply_cpu_extension(Extension("int f() { return 1; }"), cache=cache)


def test_what_it_can_call_are_scalar_functions_that_have_a_body() -> None:
    text = host_header().text
    assert "float sinf(float a0);" in text
    assert "__popc(unsigned int a0);" in text
    assert "float4" not in text
