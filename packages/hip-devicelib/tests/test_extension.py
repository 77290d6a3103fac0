from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from devicelib_samples import has_math

import hip_devicelib as hip
from hip_devicelib import CompileError, Extension, HeaderError, Library, Rocm, supply_extension
from hip_devicelib.cache import Cache
from hip_devicelib.compilers import Compiler, find_compilers
from hip_devicelib.extension import build_extension
from hip_devicelib.header_parser import parse_extension
from hip_devicelib.hip_header import Header, read_header

pytestmark = pytest.mark.usefixtures("libclang")

HEADER = Header("__attribute__((device)) float sinf(float x) { return x; }\n", None)

SOURCE = """
#include "scale.h"
namespace mine { __device__ float cube(float x) { return x * x * x; } }
template <typename T> __device__ T twice(T x) { return x + x; }
__device__ void divide(int a, int b, int *quotient, int *rest) {
  *quotient = a / b;
  *rest = a % b;
}
__device__ double wave(double x) { return sin(x) * SCALE; }
__device__ int count(int x) { return twice(x); }
"""


def test_only_what_the_user_wrote_is_declared(tmp_path: Path) -> None:
    (tmp_path / "scale.h").write_text("__attribute__((device)) inline double scale(double x) { return x * 3; }\n")
    source = "#define __device__ __attribute__((device))\n" + SOURCE.replace("sin(x)", "sinf(x)")
    found, included = parse_extension(HEADER, source, [f"-I{tmp_path}", "-DSCALE=2"])
    assert included == (tmp_path / "scale.h",)
    assert [function.qualified for function in found.functions] == ["scale", "mine::cube", "divide", "wave", "count"]
    assert [(item.name, item.reason.split(":")[0]) for item in found.omissions] == [("twice", "is a function template")]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("int host;\nint other = missing;", "line 2: use of undeclared identifier 'missing'"),
        ("int host(int x) { return x; }", "declares no device function"),
        ('#include "nowhere.h"', "line 1: 'nowhere.h' file not found"),
    ],
)
def test_source_that_is_wrong(source: str, message: str) -> None:
    with pytest.raises(HeaderError, match=message):
        parse_extension(HEADER, source)


# What follows needs a real ROCm.


@pytest.fixture(scope="module")
def compilers(real_rocm: Rocm) -> list[Compiler]:
    found = list(find_compilers(real_rocm))
    if not found:
        pytest.skip("needs a compiler of HIP C++")
    return found


@pytest.fixture
def extension(tmp_path: Path) -> Extension:
    (tmp_path / "scale.h").write_text("__device__ inline double scale(double x) { return x * SCALE; }\n")
    return Extension(SOURCE, (tmp_path,), ("-DSCALE=3",), {"divide": {"quotient": "out", "rest": "out"}})


def test_an_extension_is_linked_like_the_own_functions(
    real_rocm: Rocm, compilers: list[Compiler], extension: Extension
) -> None:
    header = read_header(real_rocm)
    other = Extension("__device__ float half_of(float x) { return x / 2; }", name="other.hip")
    for compiler in compilers:
        library = build_extension(extension, header, compiler, "gfx90a")
        second = build_extension(other, header, compiler, "gfx90a")
        found = {function.name: function for function in library.functions}
        is_whole = has_math(compiler)
        assert set(found) == {"scale", "cube", "divide", "count"} | ({"wave"} if is_whole else set())
        assert [parameter.intent for parameter in found["divide"].parameters] == ["value", "value", "out", "out"]
        dropped = {item.name: item.reason for item in library.dropped}
        assert set(dropped) == {"twice"} | (set() if is_whole else {"wave"})
        assert is_whole or dropped["wave"] == "the device libraries lack __ocml_sin_f64"
        double = "wave" if is_whole else "scale"
        kernel = (
            f"declare double @hipdl_{double}__f64(double)\ndeclare float @hipdl_half_of__f32(float)\n"
            "declare void @hipdl_divide__i32_i32_pi32_pi32(i32, i32, ptr, ptr)\n"
            "define amdgpu_kernel void @k(ptr addrspace(1) %p, double %x, float %f, i32 %i) {\n"
            f"  %w = call double @hipdl_{double}__f64(double %x)\n  store double %w, ptr addrspace(1) %p\n"
            "  %h = call float @hipdl_half_of__f32(float %f)\n  store float %h, ptr addrspace(1) %p\n"
            "  %q = addrspacecast ptr addrspace(1) %p to ptr\n"
            "  call void @hipdl_divide__i32_i32_pi32_pi32(i32 %i, i32 3, ptr %q, ptr %q)\n  ret void\n}\n"
        )
        bitcode = hip.optimise(kernel, "gfx90a", libraries=[library.bitcode, second.bitcode])
        assert hip.undefined_symbols(bitcode) == ()
        assert hip.read_kernels(hip.object_code(bitcode, "gfx90a"))[0].name == "k"


def test_the_compiler_names_the_line_of_the_user(real_rocm: Rocm, compilers: list[Compiler]) -> None:
    wrong = Extension("__device__ int f(int x) {\n  return x +\n    missing;\n}\n", name="mine.hip")
    for compiler in compilers:
        with pytest.raises(CompileError, match=r"mine\.hip:3:5: error: use of undeclared identifier 'missing'"):
            build_extension(wrong, read_header(real_rocm), compiler, "gfx1100")


@pytest.mark.parametrize(
    ("intents", "message"),
    [
        ({"nothing": {}}, "no device function 'nothing'; there are: f"),
        ({"f": {"y": "out"}}, "'f' has no pointer parameter 'y'; it has: p"),
        ({"f": {"x": "out"}}, "'f' has no pointer parameter 'x'"),
        ({"f": {"p": "sideways"}}, "f.p has 'sideways'; it must be 'in', 'out', 'inout' or 'address'"),
    ],
)
def test_intents_of_what_is_not_there(
    real_rocm: Rocm, compilers: list[Compiler], intents: dict[str, dict[str, str]], message: str
) -> None:
    wrong = Extension("__device__ void f(int x, int *p) { *p = x; }", intents=intents)  # type: ignore[arg-type]
    with pytest.raises(HeaderError, match=message):
        build_extension(wrong, read_header(real_rocm), compilers[0], "gfx90a")


class Counting:
    """A compiler that counts what it is asked."""

    def __init__(self, compiler: Compiler) -> None:
        self.compiler = compiler
        self.compiled = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.compiler, name)

    def compile(self, *args: Any) -> bytes:
        self.compiled += 1
        return self.compiler.compile(*args)


def test_an_extension_is_built_again_when_something_in_it_changes(
    real_rocm: Rocm, compilers: list[Compiler], extension: Extension, tmp_path: Path
) -> None:
    store, compiler = Cache(tmp_path / "cache"), Counting(compilers[0])

    def supply(wanted: Extension, target: str = "gfx90a") -> tuple[Library, bool]:
        before = compiler.compiled
        library = supply_extension(wanted, target, rocm=real_rocm, compiler=cast(Compiler, compiler), cache=store)
        return library, compiler.compiled > before

    first, built = supply(extension)
    assert built
    again, built = supply(extension)
    assert not built
    assert again == first
    for changed in (replace(extension, options=("-DSCALE=4",)), replace(extension, source=SOURCE + "\n#define MORE\n")):
        assert supply(changed)[1]
    assert supply(extension, "gfx1100")[1]
    (tmp_path / "scale.h").write_text("__device__ inline double scale(double x) { return x - SCALE; }\n")
    other, built = supply(extension)
    assert built
    assert other.bitcode != first.bitcode
    (tmp_path / "scale.h").write_text("__device__ inline double scale(double x) { return x + missing; }\n")
    with pytest.raises(CompileError, match=r"scale\.h:1:\d+: error: use of undeclared identifier 'missing'"):
        supply(extension)


def test_a_clang_in_rocm_compiles_with_the_header_of_that_rocm(real_rocm: Rocm, tmp_path: Path) -> None:
    """A clang where ROCm has its own. The one that runs is ziglang's: no other that knows AMD GPUs is in a wheel."""
    if importlib.util.find_spec("ziglang") is None:
        pytest.skip("needs ziglang")
    program = tmp_path / "llvm/bin/clang++"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ziglang clang "$@"\n')
    program.chmod(0o755)
    (tmp_path / "lib").mkdir()
    builtins = real_rocm.files["hiprtc-builtins"].resolve()
    (tmp_path / "lib" / builtins.name).symlink_to(builtins)
    if "device-libraries" in real_rocm.files:
        (tmp_path / "amdgcn").mkdir()
        (tmp_path / "amdgcn/bitcode").symlink_to(real_rocm.files["device-libraries"].parent)
    rocm = hip.find_rocm(tmp_path)
    found = find_compilers(rocm)
    compiler = next(found)
    assert compiler.identity.startswith("clang version")
    function = "__sinf" if has_math(compiler) else "__int_as_float"  # the latter needs no device library
    extension = Extension(f"__device__ float both(float x) {{ return {function}(int(x)) + __popc(int(x)); }}")
    library = build_extension(extension, read_header(rocm), compiler, "gfx1100")
    assert [function.symbol for function in library.functions] == ["hipdl_both__f32"]
    with pytest.raises(CompileError, match=r"clang\+\+ does not compile this .*\n.*extension\.hip:1:\d+: error"):
        build_extension(Extension("__device__ int f() { return missing; }"), read_header(rocm), compiler, "gfx1100")
