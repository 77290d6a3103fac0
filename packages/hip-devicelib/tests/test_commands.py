from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest
from devicelib_samples import SAXPY, kernel_around, run_python

import hip_devicelib as hip
from hip_devicelib import InvalidIRError, NotFoundError, Rocm, subcommands
from hip_devicelib.__main__ import main
from hip_devicelib.cache import DIRECTORY_VARIABLE, Cache, make_key
from hip_devicelib.isolated_codegen import check_apart
from hip_devicelib.linkers import find_linkers


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(DIRECTORY_VARIABLE, str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    """What a command prints; *status* is the exit status that it must have."""
    assert main(arguments) == status
    printed = capsys.readouterr()
    return printed.out if status == 0 else printed.err


def test_list(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "list").splitlines()
    assert len(lines) == len(hip.load_reference().functions)
    assert run(capsys, "list", "sinf") == "float sinf(float __x)\n"
    listed = json.loads(run(capsys, "list", "atomicAdd", "--json"))
    assert {item["llvm_type"] for item in listed} >= {"i32 (ptr, i32)", "float (ptr, float)"}
    assert listed[0]["parameters"][0]["intent"] == "address"
    assert run(capsys, "list", "nothing*") == ""


def test_a_reader_that_has_read_enough_is_no_error() -> None:
    command = [sys.executable, "-m", "hip_devicelib", "list", "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == "[\n"
        process.stdout.close()
        assert process.stderr.read() == ""


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "show", "frexpf").splitlines() == [
        "float frexpf(float __x, int * __nptr)",
        "  wrapper     hipdl_frexpf__f32_pi32: float (float, ptr)",
        "  parameters  __x (value), __nptr (out)",
    ]
    assert "not declared: takes a variable number of arguments" in run(capsys, "show", "printf")
    shown = json.loads(run(capsys, "show", "sinf", "--json"))
    assert shown["functions"][0]["symbol"] == "hipdl_sinf__f32"
    assert "did you mean" in run(capsys, "show", "sinff", status=1)
    assert "'hip-devicelib list' prints all" in run(capsys, "show", "zzzzzzzz", status=1)


def test_cache(capsys: pytest.CaptureFixture[str], own_cache: Path) -> None:
    assert run(capsys, "cache").startswith(f"{own_cache}: 0 entries, 0 bytes")
    Cache().put(make_key("x"), b"data")
    shown = json.loads(run(capsys, "cache", "--json"))
    assert (shown["directory"], len(shown["entries"])) == (str(own_cache), 1)
    assert run(capsys, "cache", "--clear") == f"{own_cache}: 1 entries removed\n"
    own_cache.chmod(0o777)
    assert "others can write" in run(capsys, "cache", status=1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rocm", "/nowhere", "--arch", "gfx90a"], "argument root says that ROCm is at '/nowhere'"),
        (["--arch", "gfx90b"], "unknown AMD GPU target|no ROCm"),
    ],
)
def test_build_without_what_it_needs(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    import re

    assert re.search(message, run(capsys, "build", *arguments, status=1))


def test_link_of_what_is_wrong(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    source = tmp_path / "kernels.ll"
    source.write_text(SAXPY)
    assert "--arch is needed" in run(capsys, "link", str(source), status=2)
    assert "unknown AMD GPU target 'gfx90b'" in run(capsys, "link", str(source), "--arch", "gfx90b", status=1)
    assert "cannot read" in run(capsys, "link", str(tmp_path / "nothing.ll"), status=1)
    source.write_bytes(b"\xff\xfe\x00")
    assert "neither an ELF object nor LLVM bitcode" in run(capsys, "link", str(source), status=1)
    source.write_text("define amdgpu_kernel void @k( {")
    assert "does not parse" in run(capsys, "link", str(source), "--arch", "gfx90a", status=1)
    source.write_bytes(hip.optimise(SAXPY, "gfx90a")[:-20])
    assert "no bitcode that LLVM can read" in run(capsys, "link", str(source), "--arch", "gfx90a", status=1)


def test_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["fly"], ["build"], ["link"], ["link", "-O", "7", "x.ll"]):
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        assert caught.value.code == 2
    assert "usage: hip-devicelib" in capsys.readouterr().err


def test_damaged_bitcode_ends_another_process_and_not_this_one() -> None:
    bitcode = hip.optimise(SAXPY, "gfx90a")
    check_apart(bitcode, "a module")
    generator = random.Random(1)
    refused = 0
    for _ in range(8):
        damaged = bytearray(bitcode)
        for _ in range(6):
            damaged[generator.randrange(len(damaged))] ^= 1 << generator.randrange(8)
        try:
            check_apart(bytes(damaged), "a module")
        except InvalidIRError:
            refused += 1
    assert refused >= 4


def test_the_module_runs_as_a_program() -> None:
    done = run_python(
        "import runpy, sys; sys.argv = ['x', 'list', 'cosf']; runpy.run_module('hip_devicelib', run_name='__main__')"
    )
    assert (done.returncode, done.stdout) == (0, "float cosf(float __x)\n")


def test_link_makes_a_code_object(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    try:
        rocm: Rocm | None = hip.find_rocm()
    except NotFoundError:
        rocm = None
    if not list(find_linkers(rocm)):
        pytest.skip("needs a linker: comgr, ld.lld or ziglang")
    text, bitcode, extra, output = (tmp_path / name for name in ("a.ll", "b.bc", "c.o", "out.hsaco"))
    text.write_text(SAXPY)
    assert "saxpy, small" in run(capsys, "link", str(text), "--arch", "gfx1100", "-O1", "-o", str(output))
    assert json.loads(run(capsys, "inspect", "--json", str(output)))["target"] == "gfx1100"
    bitcode.write_bytes(hip.optimise(SAXPY, "gfx1100"))
    other = tmp_path / "other.ll"
    other.write_text(kernel_around("call void @helper()", before="declare void @helper()"))
    helper = hip.optimise("define void @helper() { ret void }", "gfx1100", keep=["helper"])
    extra.write_bytes(hip.object_code(helper, "gfx1100"))
    files = [str(extra), str(bitcode), str(other)]
    run(capsys, "link", *files, "--arch", "gfx1100", "-o", str(output))
    assert {kernel.name for kernel in hip.describe(output.read_bytes()).kernels} == {"saxpy", "small", "k"}
    assert "cannot write" in run(capsys, "link", str(extra), "-o", str(tmp_path / "no" / "where"), status=2)


def test_link_with_the_library(capsys: pytest.CaptureFixture[str], tmp_path: Path, real_rocm: Rocm) -> None:
    source, output = tmp_path / "a.ll", tmp_path / "out.hsaco"
    source.write_text(
        kernel_around(
            "%x = call double @hipdl_cos__f64(double %d)\n  store double %x, ptr addrspace(1) %p",
            before="declare double @hipdl_cos__f64(double)",
        )
    )
    run(capsys, "link", str(source), "--arch", "gfx90a", "-o", str(output))
    assert [kernel.name for kernel in hip.describe(output.read_bytes()).kernels] == ["k"]
    message = run(capsys, "link", str(source), "--arch", "gfx90a", "--no-library", "-o", str(output), status=1)
    assert "undefined symbol: hipdl_cos__f64" in message
    source.write_text(source.read_text().replace("hipdl_cos__f64", "__ocml_cos_f64"))
    if "device-libraries" in real_rocm.files:
        run(capsys, "link", str(source), "--arch", "gfx1201", "-o", str(output))
        assert hip.describe(output.read_bytes()).target == "gfx1201"
    assert "1384 functions" in run(capsys, "build", "--arch", "gfx90a", "-o", str(tmp_path / "lib.bc"))
    assert hip.undefined_symbols((tmp_path / "lib.bc").read_bytes()) == ()
    report = json.loads(run(capsys, "build", "--arch", "gfx90a", "--json"))
    assert len(report["functions"]) == 1384
    assert run(capsys, "list", "sinf", "--rocm", str(real_rocm.root)) == "float sinf(float __x)\n"


def test_every_command_is_there() -> None:
    wanted = {"build", "cache", "doctor", "inspect", "link", "list", "show"}
    assert {name.removeprefix("run_") for name in vars(subcommands) if name.startswith("run_")} == wanted
