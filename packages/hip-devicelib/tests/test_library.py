"""The bitcode library: its logic on a compiler that writes LLVM IR itself, and all of it on the real compilers."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import llvmlite.binding as llvm
import pytest
from devicelib_samples import has_math

import hip_devicelib as hip
from hip_devicelib import CompileError, InvalidIRError, MissingExtraError, NotFoundError, Rocm
from hip_devicelib.cache import Cache
from hip_devicelib.cached_libraries import supply_declarations, supply_library
from hip_devicelib.compilers import Compiler, Hiprtc, find_compiler, find_compilers
from hip_devicelib.declarations import Declarations
from hip_devicelib.device_libraries import read_device_libraries
from hip_devicelib.isolated_codegen import make_host_machine
from hip_devicelib.library import build_library
from hip_devicelib.linkers import find_linkers
from hip_devicelib.manifest import load_reference
from hip_devicelib.rocm import look_up
from hip_devicelib.target import Target
from hip_devicelib.wrappers import FILE_NAME, write_wrappers


def some(*names: str) -> Declarations:
    """Those of the shipped declarations that are called *names*."""
    functions = tuple(function for name in names for function in load_reference().by_name[name])
    return Declarations(functions, (), "0" * 64, None)


@dataclass
class Writer:
    """A compiler that reads the wrappers and writes IR with functions of the same names.

    ``rejects`` are symbols that it complains of, ``types`` those that it compiles with another type than the shipped
    declarations say, ``calls`` what a function calls, by its symbol.
    """

    rejects: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)
    calls: Mapping[str, str] = field(default_factory=dict)
    forgets: str = ""
    device_libraries: Path | None = None
    identity: str = "writer 1"
    rounds: int = 0

    def compile(self, source: str, target: Target, options: Sequence[str] = ()) -> bytes:
        self.rounds += 1
        lines = source.partition(f'#line 1 "{FILE_NAME}"\n')[2].splitlines()
        symbols = [found.group(1) for line in lines if (found := re.search(r" (hipdl_\S+?)\(", line))]
        log = "\n".join(
            f"{FILE_NAME}:{number}:9: error: {self.rejects[symbol]}"
            for number, symbol in enumerate(symbols, 1)
            if symbol in self.rejects
        )
        if log:
            raise CompileError("it does not compile", log=log)
        text = "".join(f"declare void @{name}()\n" for name in sorted(set(self.calls.values()) - set(symbols)))
        for symbol in symbols:
            if symbol != self.forgets:
                text += self._define(symbol)
        return bytes(llvm.parse_assembly(text).as_bitcode())

    def _define(self, symbol: str) -> str:
        kind = self.types[symbol] if symbol in self.types else load_reference().by_symbol[symbol].llvm_type
        result, _, arguments = kind.partition(" (")
        value = "ret void" if result == "void" else f"ret {result} zeroinitializer"
        value = value.replace("zeroinitializer", "null") if result == "ptr" else value
        call = f"call void @{self.calls[symbol]}()\n" if symbol in self.calls else ""
        return f"define {result} @{symbol}({arguments} {{ {call} {value} }}\n"


SIN, COS, ADD = "hipdl_sinf__f32", "hipdl_cosf__f32", "hipdl_atomicAdd__pf32_f32"


def test_a_library_holds_what_was_declared() -> None:
    declarations = some("sinf", "cosf", "atomicAdd")
    library = build_library(declarations, Writer(), "gfx90a:xnack+")
    assert (library.target, library.compiler, library.dropped) == ("gfx90a:xnack+", "writer 1", ())
    assert library.functions == declarations.functions
    text = hip.llvm_text(library.bitcode)
    assert all(f"@{function.symbol}(" in text for function in declarations.functions)
    assert build_library(declarations, Writer(), "gfx90a:xnack+") == library


def test_linking_takes_only_what_is_needed() -> None:
    library = build_library(some("sinf", "cosf"), Writer(), "gfx942")
    kernel = (
        f"declare float @{SIN}(float)\n"
        "define amdgpu_kernel void @k(ptr addrspace(1) %p, float %x) {\n"
        f"  %y = call float @{SIN}(float %x)\n  store float %y, ptr addrspace(1) %p\n  ret void\n}}\n"
    )
    bitcode = hip.optimise(kernel, "gfx942", libraries=[library.bitcode], level=0)
    assert hip.undefined_symbols(bitcode) == ()
    text = hip.llvm_text(bitcode)
    assert SIN in text
    assert COS not in text


def test_what_the_compiler_rejects_is_dropped_by_name() -> None:
    compiler = Writer(rejects={COS: "no such function"})
    library = build_library(some("sinf", "cosf"), compiler, "gfx90a")
    assert [function.symbol for function in library.functions] == [SIN]
    assert [(item.name, item.reason) for item in library.dropped] == [
        ("cosf", "the compiler rejects it: no such function")
    ]
    assert compiler.rounds == 2


def test_a_type_that_differs_from_the_declaration_is_dropped() -> None:
    library = build_library(some("sinf", "cosf"), Writer(types={SIN: "double (double)"}), "gfx90a")
    assert [(item.name, item.reason) for item in library.dropped] == [
        ("sinf", "it is declared as float (float) and was compiled as double (double)")
    ]


def test_what_the_compiler_forgot_is_dropped() -> None:
    library = build_library(some("sinf", "cosf"), Writer(forgets=SIN), "gfx90a")
    assert [(item.name, item.reason) for item in library.dropped] == [("sinf", "the compiler made no definition of it")]


def test_what_needs_something_undefined_is_dropped_with_all_that_needs_it() -> None:
    library = build_library(some("sinf", "cosf", "tanf"), Writer(calls={SIN: "nowhere", COS: SIN}), "gfx90a")
    assert [function.name for function in library.functions] == ["tanf"]
    assert {item.name: item.reason for item in library.dropped} == {
        "sinf": "the device libraries lack nowhere",
        "cosf": "the device libraries lack nowhere",
    }


def test_nothing_left_is_an_error() -> None:
    said = r"compiles for gfx90a: float sinf\(float __x\): the compiler made no definition of it$"
    with pytest.raises(CompileError, match=said):
        build_library(some("sinf"), Writer(forgets=SIN), "gfx90a")
    needy = {function.symbol: "nowhere" for function in some("sinf", "cosf", "tanf", "expf").functions}
    with pytest.raises(CompileError, match="float tanf.*: the device libraries lack nowhere; and 1 more$"):
        build_library(some("sinf", "cosf", "tanf", "expf"), Writer(calls=needy), "gfx90a")


def test_an_error_that_is_of_no_function_is_raised() -> None:
    class Broken(Writer):
        def compile(self, source: str, target: Target, options: Sequence[str] = ()) -> bytes:
            raise CompileError("out of memory", log="out of memory")

    with pytest.raises(CompileError, match="out of memory"):
        build_library(some("sinf"), Broken(), "gfx90a")


def test_bitcode_that_llvm_cannot_read() -> None:
    class Newer(Writer):
        def compile(self, source: str, target: Target, options: Sequence[str] = ()) -> bytes:
            return b"BC\xc0\xde from the future"

    with pytest.raises(InvalidIRError, match="of llvmlite cannot read what the compiler made"):
        build_library(some("sinf"), Newer(), "gfx90a")


def test_wrappers_have_a_line_for_each_function() -> None:
    functions = load_reference().functions
    lines = write_wrappers(functions).partition(f'#line 1 "{FILE_NAME}"\n')[2].splitlines()
    assert len(lines) == len(functions)
    for line, function in zip(lines, functions, strict=True):
        assert f" {function.symbol}(" in line


def test_no_compiler_says_what_would_do(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="ROCm, which was not found.*Install HIPRTC"):
        find_compiler(None)
    with pytest.raises(NotFoundError, match="looked for HIPRTC and clang in"):
        find_compiler(Rocm(tmp_path, "a test", {}))


def test_a_hiprtc_that_does_not_load(tmp_path: Path) -> None:
    path = tmp_path / "libhiprtc.so.6"
    path.write_bytes(b"no library")
    with pytest.raises(CompileError, match="invalid ELF header|file too short"):
        Hiprtc(path, "6.0").compile("", hip.parse_target("gfx90a"))


def test_device_libraries_that_are_missing_are_named(tmp_path: Path) -> None:
    for name in ("ocml", "ockl"):
        (tmp_path / f"{name}.bc").write_bytes(b"")
    with pytest.raises(NotFoundError, match="for gfx11-generic need .*oclc_isa_version_11-generic.bc"):
        read_device_libraries(tmp_path, "gfx11-generic")


def test_a_library_for_another_header_is_made_without_libclang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the shipped declarations, with what the compiler rejects dropped; and made again when the header changes."""
    monkeypatch.setitem(sys.modules, "clang", None)
    cache, writer = Cache(tmp_path / "cache"), Writer(rejects={COS: "use of undeclared identifier 'cosf'"})
    rocms = [rocm_with_header(tmp_path / name, f"// {name}\n") for name in ("one", "other")]
    for rocm, rounds in ((rocms[0], 2), (rocms[0], 2), (rocms[1], 4)):
        library = supply_library("gfx90a", rocm=rocm, compiler=cast(Compiler, writer), cache=cache)
        assert writer.rounds == rounds
        assert len(library.functions) == len(load_reference().functions) - 1
        (dropped,) = library.dropped
        assert (dropped.name, "undeclared identifier" in dropped.reason) == ("cosf", True)
    with pytest.raises(MissingExtraError, match="HIP C\\+\\+ is read by libclang"):
        supply_declarations(rocms[0], cache)


@pytest.mark.usefixtures("libclang")
def test_functions_whose_types_have_changed_are_there_with_both(tmp_path: Path) -> None:
    text = "__attribute__((device)) int __fns32(unsigned long long mask, unsigned base, int offset) { return 0; }\n"
    rocm = rocm_with_header(tmp_path / "rocm", text)
    types = {"hipdl___fns32__u64l_u32_i32": "i32 (i64, i32, i32)"}
    writer = Writer(rejects={COS: "use of undeclared identifier"}, types=types)
    for _ in range(2):  # the second time from the cache
        library = supply_library("gfx90a", rocm=rocm, compiler=cast(Compiler, writer), cache=Cache(tmp_path / "cache"))
        symbols = {function.symbol for function in library.functions if function.name == "__fns32"}
        assert symbols == {"hipdl___fns32__u64l_u32_i32", "hipdl___fns32__u32_u32_i32"}
        assert [item.name for item in library.dropped] == ["cosf"]


def rocm_with_header(root: Path, text: str) -> Rocm:
    """A ROCm at *root* that has nothing but the library with HIP's header, which is *text*."""
    size = len(text)
    encoded = "".join(f"\\{byte:02x}" for byte in text.encode())
    module = llvm.parse_assembly(
        f'@__hipRTC_header = constant [{size} x i8] c"{encoded}"\n@__hipRTC_header_size = constant i32 {size}\n'
    )
    path = root / "lib" / "libhiprtc-builtins.so.7.0.0"
    path.parent.mkdir(parents=True)
    path.write_bytes(make_host_machine().emit_object(module))
    return Rocm(root, "a test", look_up(root))


# What follows needs a real ROCm.

TARGETS = ("gfx90a", "gfx942:xnack-", "gfx1030", "gfx1201", "gfx11-generic")


@pytest.fixture(scope="module")
def compilers(real_rocm: Rocm) -> list[Compiler]:
    found = list(find_compilers(real_rocm))
    if not found:
        pytest.skip("needs a compiler of HIP C++")
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_the_real_library(real_rocm: Rocm, compilers: list[Compiler], target: str) -> None:
    for compiler in compilers:
        if not has_math(compiler) or ("generic" in target and compiler.device_libraries is None):
            continue
        library = build_library(load_reference(), compiler, target)
        assert len(library.functions) >= 1300, library.dropped[:5]
        assert not [item for item in library.dropped if "declared as" in item.reason]
        assert hip.undefined_symbols(library.bitcode) == ()
        kernel = (
            "declare double @hipdl_sin__f64(double)\ndeclare float @hipdl_atomicAdd__pf32_f32(ptr, float)\n"
            "define amdgpu_kernel void @k(ptr addrspace(1) %p, double %x, float %f) {\n"
            "  %y = call double @hipdl_sin__f64(double %x)\n  store double %y, ptr addrspace(1) %p\n"
            "  %q = addrspacecast ptr addrspace(1) %p to ptr\n"
            "  %z = call float @hipdl_atomicAdd__pf32_f32(ptr %q, float %f)\n  ret void\n}\n"
        )
        bitcode = hip.optimise(kernel, target, libraries=[library.bitcode])
        assert hip.undefined_symbols(bitcode) == ()
        (found,) = hip.read_kernels(hip.object_code(bitcode, target))
        assert found.name == "k"
        assert found.private_bytes < 1024
        for linker in find_linkers(real_rocm):
            assert hip.link(hip.object_code(bitcode, target), linker=linker).kernels == (found,)


def test_convergent_functions_stay_convergent(compilers: list[Compiler]) -> None:
    for compiler in compilers:
        library = build_library(some("__syncthreads", "__shfl", "__shfl_sync", "__ballot"), compiler, "gfx90a")
        module = llvm.parse_bitcode(library.bitcode, llvm.create_context())
        for function in library.functions:
            attributes = b" ".join(module.get_function(function.symbol).attributes).decode()
            assert "convergent" in attributes.split(), function


def test_a_compile_error_shows_the_line_of_the_user(compilers: list[Compiler]) -> None:
    source = 'extern "C" __attribute__((device)) int twice(int x) {\n  return undeclared * x;\n}\n'
    for compiler in compilers:
        with pytest.raises(CompileError, match=r":2:10: error: use of undeclared identifier 'undeclared'") as caught:
            compiler.compile(source, hip.parse_target("gfx90a"))
        assert "return undeclared * x;" in caught.value.log


def test_device_libraries_alone_link_into_a_kernel(real_rocm: Rocm) -> None:
    if "device-libraries" not in real_rocm.files:
        pytest.skip("needs ROCm's device libraries")
    kernel = (
        "declare double @__ocml_sin_f64(double)\n"
        "define amdgpu_kernel void @k(ptr addrspace(1) %p, double %x) {\n"
        "  %y = call double @__ocml_sin_f64(double %x)\n  store double %y, ptr addrspace(1) %p\n  ret void\n}\n"
    )
    for target in ("gfx90a", "gfx1100", "gfx12-generic"):
        libraries = read_device_libraries(real_rocm.files["device-libraries"].parent, target)
        assert hip.undefined_symbols(hip.optimise(kernel, target, libraries=libraries)) == ()
