"""What NUMBA_HIP_DUMP shows of kernels."""

from __future__ import annotations

import re
from pathlib import Path

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_kernels import GLOBAL_X, code, pack, sample
from spmd_programs import Generator, write_kernel

from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.finalise import finalise_kernel, list_kernel
from hip_runtime.errors import SettingError

TITLE = re.compile(r"^=+ (.*): saxpy-64x1x1 =+$", re.MULTILINE)


def compile_saxpy() -> None:
    code = sample("saxpy")
    finalise_kernel(code, code.kernels[0], (64, 1, 1))


def test_everything_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    with config.dump.scope("ir, graph,passes,asm"):
        compile_saxpy()
    shown = capsys.readouterr().err
    titles = TITLE.findall(shown)
    assert titles[0] == "LLVM IR that was handed in"
    passes = (
        "read", "mark_elementwise_calls", "unpack_choices", "widen_odd_integers", "halve_products",
        "drop_index_freezes", "merge_phis", "divide_as_integers", "write_index_divisions", "join_quotients",
        "shorten_data", "merge_common_values", "subtract_complements", "replace_wrapped_remainders", "freeze_loads",
    )  # fmt: skip
    assert titles[1:16] == [f"after {name}" for name in passes]
    assert "after vector_shapes spmd.gang" in titles
    assert titles[-3] == "graph of spmd.gang"
    assert titles[-2].startswith("LLVM IR, optimised, as vectors: no thread waits for another; ")
    assert titles[-1] == "assembly, as vectors"
    parts = dict(zip(titles, TITLE.split(shown)[2::2], strict=True))
    assert "define void @saxpy" in parts["after read"]
    assert "; stride 4" in parts["graph of spmd.gang"]
    assert "spmd.worker:" in parts["assembly, as vectors"]
    assert parts["after insert_yields"].strip() == "no change"


def test_branches_on_data_are_no_early_exits(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"""
define void @k(ptr noalias %item, ptr %x, i64 %n) {{
entry:
{GLOBAL_X}
  %in = icmp slt i64 %i, %n
  br i1 %in, label %look, label %out
look:
  %p = getelementptr float, ptr %x, i64 %i
  %v = load float, ptr %p
  %chosen = fcmp ogt float %v, 5.0e-1
  br i1 %chosen, label %do, label %out
do:
  %twice = fmul float %v, 2.0
  store float %twice, ptr %p
  br label %out
out:
  ret void
}}
"""
    made = code(text, "k", [("x", "ptr"), ("n", "i64")])
    with config.dump.scope("graph"):
        finalise_kernel(made, made.kernels[0], (64, 1, 1))
    shown = capsys.readouterr().err
    assert shown.count("early exit") == 1
    assert "; divergent" in shown


def test_only_what_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    compile_saxpy()
    assert capsys.readouterr().err == ""
    with config.dump.scope(frozenset({"asm"})):
        compile_saxpy()
    assert TITLE.findall(capsys.readouterr().err) == ["assembly, as vectors"]


def test_a_folder_has_a_file_for_each_kernel_shape_and_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "dump"
    with config.dump.scope("ir,passes,asm"), config.dump_directory.scope(str(folder)):
        for _ in range(2):
            compile_saxpy()
        code = write_kernel(Generator(3).program(), 32, 32)
        finalise_kernel(code, code.kernels[0], (32, 1, 1))
    assert capsys.readouterr().err == ""
    names = {path.name for path in folder.iterdir()}
    assert {"saxpy-64x1x1.ll", "saxpy-64x1x1.passes.ll", "saxpy-64x1x1.s"} <= names
    assert len(names) == 6
    text = (folder / "saxpy-64x1x1.ll").read_text()
    assert text.count("; LLVM IR that was handed in\n") == 1, "the second time takes the place of the first"
    handed, optimised = text.split("; LLVM IR, optimised", 1)
    llvm.parse_assembly(handed, llvm.create_context()).verify()
    llvm.parse_assembly(";" + optimised, llvm.create_context()).verify()


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with (
        config.dump.scope("asm"),
        config.dump_directory.scope(str(file)),
        pytest.raises(SettingError, match=r"^NUMBA_HIP_DUMP_DIR=.*saxpy-64x1x1\.s cannot be written: "),
    ):
        compile_saxpy()


def test_regions_are_shown_one_by_one(capsys: pytest.CaptureFixture[str]) -> None:
    code = write_kernel(Generator(3).program(), 64, 64)
    with config.dump.scope("graph"), config.cpu_form.scope("vectors"):
        program = finalise_kernel(code, code.kernels[0], (64, 1, 1))
    assert program.form == "regions"
    titles = re.findall(r"^=+ graph of (.*?): ", capsys.readouterr().err, re.MULTILINE)
    assert titles[0] == "the kernel"
    assert {"spmd.gang.start", "spmd.gang.0"} <= set(titles)


def test_what_was_kept_is_made_anew_to_be_seen(
    device: Device, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for chosen in ("", "asm"):
        with config.dump.scope(frozenset({chosen} - {""})):
            function = device.load(sample("saxpy")).function("saxpy")
            function.keep_code(tmp_path / "code", "WHERE")
            x, y = (to_device(np.arange(64, dtype=np.float32)) for _ in range(2))
            function.launch(1, 64, pack(function.kernel, y.address, x.address, 2.0, 64))
            np.testing.assert_array_equal(y.copy_to_host(), 3 * np.arange(64))
    assert TITLE.findall(capsys.readouterr().err) == ["assembly, as vectors"]


@pytest.mark.parametrize("text", ["llvm", "ir;asm", "ir,,asm"])
def test_kinds_that_do_not_exist(text: str) -> None:
    with pytest.raises(SettingError, match="is none of 'ir', 'graph', 'passes', 'asm'; give some of these"):  # noqa: SIM117
        with config.dump.scope(text):
            pass


def test_a_listing_is_that_of_the_code_that_runs() -> None:
    code = sample("saxpy")
    for form in ("vectors", "loop"):
        with config.cpu_form.scope(form):
            text, assembly = list_kernel(code, code.kernels[0], (64, 1, 1))
        llvm.parse_assembly(text, llvm.create_context()).verify()
        assert re.search(r"fmul <\d+ x float>", text)
        assert "spmd.worker" in assembly
