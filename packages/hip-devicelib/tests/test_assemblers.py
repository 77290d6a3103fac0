"""Modules with inline assembly: LLVM writes their text, and an assembler makes an object of it."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from devicelib_samples import kernel_around

import hip_devicelib as hip
from hip_devicelib import CompileError, LinkError, NotFoundError, assemblers
from hip_devicelib.assemblers import Assembler, ClangAssembler, find_assemblers
from hip_devicelib.backend_limits import has_assembly
from hip_devicelib.comgr import Comgr
from hip_devicelib.kernel_metadata import read_kernels, read_target
from hip_devicelib.target import parse_target

NOT = 'call i32 asm sideeffect "v_not_b32 $0, $1", "=v,v"(i32 7)'


def source(call: str) -> str:
    return kernel_around(f"  %found = {call}\n  store i32 %found, ptr addrspace(1) %p")


@pytest.fixture(scope="module")
def real_assemblers() -> list[Assembler]:
    try:
        rocm = hip.find_rocm()
    except NotFoundError:
        rocm = None
    found = list(find_assemblers(rocm))
    if not found:
        pytest.skip("needs an assembler: comgr, clang or ziglang")
    return found


@pytest.mark.parametrize("target", ["gfx90a:sramecc+:xnack-", "gfx942", "gfx1030", "gfx1100", "gfx1201"])
@pytest.mark.sample(4)
def test_each_assembler_makes_the_object_of_the_target(real_assemblers: list[Assembler], target: str) -> None:
    wanted = parse_target(target)
    text = hip.assembly(hip.optimise(source(NOT), wanted), wanted).encode()
    for assembler in real_assemblers:
        made = assembler.assemble(text, wanted)
        assert read_target(made) == target
        assert [kernel.name for kernel in read_kernels(made)] == ["k"]


def test_waves_of_another_size(real_assemblers: list[Assembler]) -> None:
    wanted = parse_target("gfx1100", wave_size=64)
    text = hip.assembly(hip.optimise(source(NOT), wanted), wanted).encode()
    for assembler in real_assemblers:
        assert read_kernels(assembler.assemble(text, wanted))


def test_errors_have_the_words_of_the_assembler(real_assemblers: list[Assembler]) -> None:
    target = parse_target("gfx942")
    for assembler in real_assemblers:
        with pytest.raises(CompileError, match=r"does not assemble this for gfx942: .*invalid instruction"):
            assembler.assemble(b"v_no_such_thing v0, v1\n", target)
    with pytest.raises(CompileError, match="false does not assemble this for gfx942: exit status 1"):
        ClangAssembler(("false",)).assemble(b"", target)


def test_object_code_needs_an_assembler(real_assemblers: list[Assembler]) -> None:
    bitcode = hip.optimise(source(NOT), "gfx942")
    assert read_kernels(hip.object_code(bitcode, "gfx942"))
    assemblers.find_assembler.cache_clear()
    with (
        mock.patch.object(assemblers, "find_assemblers", return_value=iter(())),
        pytest.raises(NotFoundError, match="no assembler for AMD GPUs.*'pip install ziglang' is enough"),
    ):
        hip.object_code(bitcode, "gfx942")
    assemblers.find_assembler.cache_clear()


def test_comgr_that_does_not_load(tmp_path: Path) -> None:
    with pytest.raises(LinkError, match="does not load"):
        Comgr(tmp_path / "libamd_comgr.so.3").assemble(b"", parse_target("gfx942"))


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ('  %1 = call i32 asm "x", "=v"()', True),
        ('  tail call void asm sideeffect "x", ""()', True),
        ('module asm "x"', True),
        ('  %1 = load i32, ptr @" asm "', False),
        ('@name = constant [5 x i8] c" asm "', False),
    ],
)
def test_assembly_is_found(text: str, has: bool) -> None:
    assert has_assembly(f"; a module\n{text}\n") is has
