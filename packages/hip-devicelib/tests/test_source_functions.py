"""Functions in C, C++ and HIP C++ as bitcode: what is compiled, what is kept, what a compiler says."""

from __future__ import annotations

from pathlib import Path

import llvmlite.binding as llvm
import pytest

from hip_devicelib import source_functions
from hip_devicelib.cache import Cache
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.cpu import functions
from hip_devicelib.errors import CompileError, NotFoundError
from hip_devicelib.extension import Extension
from hip_devicelib.llvm_context import make_context
from hip_devicelib.source_functions import digest_of, included_files, supply_functions

pytest.importorskip("ziglang", reason="needs a compiler of C++: pip install ziglang")

HIP = """
#include <hip/hip_runtime.h>
template <typename T> static __device__ T twice(T x) { return x + x; }
extern "C" __device__ float grow(float x) { return twice(x) + FIRST; }
"""


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path / "cache")


def types_in(bitcode: bytes, *, defined: bool = True) -> dict[str, str]:
    """The functions that a module defines, or only declares, and their types."""
    module = llvm.parse_bitcode(bitcode, make_context())
    return {one.name: str(one.global_value_type) for one in module.functions if one.is_declaration != defined}


@pytest.mark.parametrize("target", [CPU_TARGET, "gfx90a", "gfx942", "gfx1100", "gfx1201"])
def test_functions_of_hip_cpp(target: str, cache: Cache) -> None:
    bitcode = supply_functions(Extension(HIP, options=("-DFIRST=1",)), target, cache=cache)
    assert types_in(bitcode) == {"grow": "float (float)"}
    assert types_in(bitcode, defined=False) == {}
    assert ("amdgcn" in llvm.parse_bitcode(bitcode, make_context()).triple) == (target != CPU_TARGET)


def test_c_is_no_cpp(cache: Cache) -> None:
    source = "int class(int new) { return new ? class(new - 1) + 1 : 0; }"
    assert "class" in types_in(supply_functions(Extension(source, name="words.c"), CPU_TARGET, cache=cache))
    with pytest.raises(CompileError, match="words.cpp:1"):
        supply_functions(Extension(source, name="words.cpp"), CPU_TARGET, cache=cache)


def test_hip_functions_of_numbers_on_the_cpu_device(cache: Cache) -> None:
    source = 'extern "C" __device__ double wave(double x) { return sinpi(x) + __popc(7) + rsqrtf(4.0f); }'
    bitcode = supply_functions(Extension(source), CPU_TARGET, cache=cache)
    assert types_in(bitcode) == {"wave": "double (double)"}
    needed = types_in(bitcode, defined=False)
    assert needed
    assert set(needed) <= set(functions.FUNCTIONS), "all are in the library that kernels are linked with"


def test_included_files_are_a_part_of_it(tmp_path: Path, cache: Cache) -> None:
    (tmp_path / "inner").mkdir()
    (tmp_path / "outer.h").write_text('#include "inner/factor.h"\n#include <stddef_of_nobody.h>\n')
    (tmp_path / "inner" / "factor.h").write_text("#define FACTOR 3\n")
    text = '#include "outer.h"\nextern "C" __device__ int scale(int x) { return x * FACTOR; }'
    source = Extension(text, include_paths=(tmp_path,))
    assert [path.name for path in included_files(source)] == ["outer.h", "factor.h"]
    (tmp_path / "outer.h").write_text('#include "inner/factor.h"\n')
    before, first = digest_of(source), supply_functions(source, CPU_TARGET, cache=cache)
    (tmp_path / "inner" / "factor.h").write_text("#define FACTOR 5\n")
    assert digest_of(source) != before
    assert supply_functions(source, CPU_TARGET, cache=cache) != first


def test_it_is_compiled_once(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Extension(HIP, options=("-DFIRST=1",))
    first = supply_functions(source, CPU_TARGET, cache=cache)
    monkeypatch.setattr(source_functions, "compile_for_cpu", lambda source: pytest.fail("it was compiled again"))
    assert supply_functions(source, CPU_TARGET, cache=cache) == first


@pytest.mark.parametrize("target", [CPU_TARGET, "gfx942"])
def test_mistakes_have_the_line_of_the_user(target: str, cache: Cache) -> None:
    source = Extension('\nextern "C" __device__ int wrong(int x) { return y; }', name="mine.hip")
    with pytest.raises(CompileError, match=r"mine\.hip:2:.*undeclared identifier 'y'"):
        supply_functions(source, target, cache=cache)


@pytest.mark.parametrize("target", [CPU_TARGET, "gfx942"])
def test_variables_and_nothing(target: str, cache: Cache) -> None:
    source = Extension('__device__ int number = 3; extern "C" __device__ int get() { return number; }')
    module = llvm.parse_bitcode(supply_functions(source, target, cache=cache), make_context())
    assert module.get_global_variable("number").linkage.name == "external"
    assert types_in(supply_functions(Extension(""), target, cache=cache)) == {}


def test_without_rocm_its_functions_are_missing(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    source_functions._compiler.cache_clear()
    monkeypatch.setattr(source_functions, "find_compilers", lambda rocm: iter(()))
    monkeypatch.setattr(source_functions, "find_rocm", lambda: None)
    source = Extension('extern "C" __device__ float wave(float x) { return sinf(x); }')
    with pytest.raises(CompileError, match=r"'sinf'(.|\n)*There is no ROCm.*HIPRTC"):
        supply_functions(source, "gfx942", cache=cache)
    monkeypatch.setattr(source_functions, "find_spec", lambda name: None)
    source_functions._compiler.cache_clear()
    with pytest.raises(NotFoundError, match="pip install ziglang"):
        supply_functions(source, "gfx942", cache=cache)
    source_functions._compiler.cache_clear()


def test_nothing_needs_no_compiler(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_functions, "find_cpu_compiler", lambda: pytest.fail("a compiler was looked for"))
    monkeypatch.setattr(source_functions, "_compiler", lambda: pytest.fail("a compiler was looked for"))
    for target in (CPU_TARGET, "gfx942"):
        assert types_in(supply_functions(Extension(" \n"), target, cache=cache)) == {}
