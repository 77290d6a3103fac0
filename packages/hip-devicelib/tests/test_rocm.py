import json
import os
import sys
from functools import partial
from pathlib import Path

import pytest

from hip_devicelib import CodeObjectError, NotFoundError, doctor, rocm
from hip_devicelib.__main__ import main
from hip_devicelib.rocm import CATALOG, FIND_STEPS, Step, find_rocm, look_up


@pytest.fixture(autouse=True)
def no_rocm_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*rocm.ROOT_VARIABLES, "LD_LIBRARY_PATH"):
        monkeypatch.delenv(name, raising=False)


def make(root: Path, *files: str) -> Path:
    for name in files:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    return root


def link(root: Path, name: str, target: str) -> None:
    (root / name).symlink_to(target)


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """A ROCm as Debian's packages lay it out: versioned names in a folder for the architecture."""
    root = tmp_path / "usr"
    lib = "lib/x86_64-linux-gnu"
    for stem, version in (("hiprtc", "6.4.43484"), ("hiprtc-builtins", "6.4.43484"), ("amdhip64", "6.4.43484")):
        make(root, f"{lib}/lib{stem}.so.{version}")
        link(root, f"{lib}/lib{stem}.so.6", f"lib{stem}.so.{version}")
    make(root, f"{lib}/libamd_comgr.so.3")
    return root


def test_versioned_libraries_are_found(debian: Path) -> None:
    found = find_rocm(debian)
    assert found.found_by == "the argument root"
    assert found.require("hiprtc").name == "libhiprtc.so.6"
    assert found.version("hiprtc") == "6.4.43484"
    assert found.version("comgr") == "3"
    assert found.version("clang") is None
    assert set(found.files) == {"hiprtc", "hiprtc-builtins", "hip", "comgr"}


def test_the_layout_of_rocm_itself(tmp_path: Path) -> None:
    root = make(
        tmp_path / "rocm",
        "lib/libhiprtc.so",
        "lib/libhiprtc.so.7",
        "lib/libhiprtc.so.10",
        "lib/llvm/bin/clang++",
        "lib/llvm/bin/ld.lld",
        "include/hip/hip_runtime.h",
        "amdgcn/bitcode/ocml.bc",
    )
    files = look_up(root)
    assert set(files) == {"hiprtc", "clang", "ld.lld", "hip-header", "device-libraries"}
    assert files["device-libraries"] == root / "amdgcn/bitcode/ocml.bc"


def test_a_file_that_a_rocm_lacks_is_named(debian: Path) -> None:
    with pytest.raises(NotFoundError, match=r"has no ld\.lld \(links code objects\); looked for ld\.lld in .*llvm/bin"):
        find_rocm(debian).require("ld.lld")


@pytest.mark.parametrize("variable", rocm.ROOT_VARIABLES)
def test_environment_variables_are_asked(variable: str, debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, str(debian))
    assert find_rocm().found_by == variable
    assert find_rocm().root == debian


def test_a_place_that_was_named_is_believed(debian: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("HIP_PATH", str(debian))
    with pytest.raises(NotFoundError, match=r"ROCM_PATH says that ROCm is at '.*nowhere', which is not a directory"):
        find_rocm()
    (tmp_path / "nowhere").mkdir()
    with pytest.raises(NotFoundError, match=r"none of these is there: libhiprtc.so, "):
        find_rocm()
    assert find_rocm(debian).root == debian


def test_the_first_step_with_a_file_decides(debian: Path, tmp_path: Path) -> None:
    other = make(tmp_path / "other", "lib/libhiprtc.so.5", "bin/ld.lld")
    places = (("empty", tmp_path / "empty"), ("second", debian), ("third", other))
    steps = [Step(name, False, partial(iter, [(name, path)])) for name, path in places]
    found = find_rocm(steps=steps)
    assert (found.found_by, found.root) == ("second", debian)
    assert "ld.lld" not in found.files, "files of two ROCms were mixed"


def test_no_rocm_at_all_says_where_it_looked(tmp_path: Path) -> None:
    steps = (Step("wheels", False, lambda: iter([("a wheel", tmp_path / "nothing")])),)
    with pytest.raises(
        NotFoundError, match=r"looked at ROCM_PATH, .*nothing \(a wheel\)\. Install ROCm, or set ROCM_PATH"
    ):
        find_rocm(steps=steps)


def test_wheels_are_found_without_being_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "_rocm_sdk_core/__init__.py", "_rocm_sdk_core/lib/libhiprtc.so.7")
    (tmp_path / "_rocm_sdk_core/__init__.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    wheels = next(step for step in FIND_STEPS if step.name == "wheels")
    found = find_rocm(steps=[wheels])
    assert found.files["hiprtc"] == tmp_path / "_rocm_sdk_core/lib/libhiprtc.so.7"
    assert "_rocm_sdk_core" not in sys.modules


def test_the_library_path_is_searched(debian: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", f"/nowhere{os.pathsep}{debian / 'lib/x86_64-linux-gnu'}")
    loader = next(step for step in FIND_STEPS if step.name == "loader")
    assert find_rocm(steps=[loader]).version("hip") == "6.4.43484"


def test_doctor_reports_libraries_that_do_not_load(debian: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--rocm", str(debian)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("problem  hiprtc ") and "does not load: OSError" in line for line in lines)
    assert any(line.startswith("missing  ld.lld ") for line in lines)
    assert any(line.startswith("ok       fit ") and "6.4.43484" in line for line in lines)
    assert any(line.startswith("ok       llvmlite ") for line in lines)


def test_doctor_reports_versions_that_do_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "_try_to_load", lambda path: None)
    root = make(tmp_path / "rocm", "lib/libhiprtc.so.6.4.1", "lib/libhiprtc-builtins.so.6.2.0")
    findings = {finding.name: finding for finding in doctor.examine(str(root))}
    assert findings["fit"].verdict == "problem"
    assert "hiprtc 6.4.1, hiprtc-builtins 6.2.0" in findings["fit"].detail
    assert findings["linker"].verdict == "missing"
    assert set(CATALOG) <= set(findings)


def test_doctor_without_rocm_is_no_problem(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def nothing(root: str | None) -> rocm.Rocm:
        raise NotFoundError("no ROCm on this machine")

    monkeypatch.setattr(doctor, "find_rocm", nothing)
    assert main(["doctor", "--json"]) == 0
    report = {finding["name"]: finding for finding in json.loads(capsys.readouterr().out)}
    assert report["ROCm"]["verdict"] == "missing"


def test_doctor_at_a_place_without_rocm(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--rocm", str(tmp_path / "nowhere")]) == 1
    assert "not a directory" in capsys.readouterr().out


def test_inspect_prints_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from devicelib_samples import SAXPY

    import hip_devicelib as hip

    path = tmp_path / "kernels.o"
    path.write_bytes(hip.object_code(hip.optimise(SAXPY, "gfx942"), "gfx942"))
    assert main(["inspect", str(path)]) == 0
    out = capsys.readouterr().out
    assert "target gfx942, 2 kernel(s)" in out
    assert "small(ptr out at 0)" in out
    assert main(["inspect", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["kernels"][0]["shared_bytes"] == 256


def test_inspect_of_what_is_no_code_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "nothing")]) == 1
    assert "cannot read" in capsys.readouterr().err
    make(tmp_path, "empty")
    assert main(["inspect", str(tmp_path / "empty")]) == 1
    assert "not a 64-bit little-endian ELF file" in capsys.readouterr().err
    assert issubclass(CodeObjectError, ValueError)
