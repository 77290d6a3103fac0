"""The report of what kernels take of AMD GPUs: its figures are LLVM's, and loops are found where they are."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from tools import isa_report

TARGET = "gfx1100"
SUBJECTS = {subject.name: subject for subject in isa_report.SUBJECTS}
has_clang = importlib.util.find_spec("ziglang") is not None


def of_metadata(assembly: str, key: str) -> int:
    """A figure of the only kernel, where the loader of code objects finds it."""
    (found,) = re.findall(rf"^    {re.escape(key)}: +(\d+)$", assembly, re.MULTILINE)
    return int(found)


def test_figures_are_those_of_the_metadata() -> None:
    subject = SUBJECTS["tree_reduction"]
    assembly = isa_report.compile_ours(subject, TARGET)
    figures = isa_report.measure(assembly, subject.variable, subject.once)
    assert figures["vgprs"] == of_metadata(assembly, ".vgpr_count")
    assert figures["sgprs"] == of_metadata(assembly, ".sgpr_count")
    assert figures["lds"] == of_metadata(assembly, ".group_segment_fixed_size") == 1024
    assert figures["scratch"] == of_metadata(assembly, ".private_segment_fixed_size") == 0
    assert figures["spills"] == 0
    assert figures["occupancy"] == 16, "waves per SIMD, with so few registers"
    assert figures["arguments"] == 5 * 8, "two arrays and a number"
    assert figures["instructions"] > figures["loop"]


LOOPS = """
kernel:
	s_load_b32 s0, s[0:1], 0x0
.LBB0_1:                    ; %outer
	v_mov_b32 v0, 0
.LBB0_2:                    ; =>This Inner Loop
	v_add_f32 v0, v0, v1
	s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_2)
	v_fma_f32 v1, v0, v0, v1
	v_fma_f32 v1, v0, v0, v1
	s_cbranch_scc1 .LBB0_2
	s_cbranch_vccz .LBB0_1
.LBB0_3:                    ; a shorter one
	v_nop
	s_branch .LBB0_3
	s_endpgm
"""


def test_the_longest_innermost_loop_without_hints() -> None:
    instructions, loop = isa_report.hot_loop(LOOPS, "")
    assert len(instructions) == 10
    assert [line.split()[0] for line in loop] == ["v_add_f32", "v_fma_f32", "v_fma_f32", "s_cbranch_scc1"]
    assert [line.split()[0] for line in isa_report.hot_loop(LOOPS, "v_nop")[1]] == ["v_nop", "s_branch"]
    assert isa_report.hot_loop("kernel:\n\ts_nop 0\n\ts_endpgm\n", "") == (["s_nop 0", "s_endpgm"], [])


def test_assembly_that_does_not_tell() -> None:
    with pytest.raises(SystemExit, match="the assembly of kernel does not tell vgprs"):
        isa_report.measure(LOOPS, "kernel", "")


@pytest.mark.parametrize("with_clang", [False, pytest.param(True, marks=pytest.mark.skipif(
    not has_clang, reason="needs clang, of the package ziglang"))])  # fmt: skip
def test_the_report(
    with_clang: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(isa_report, "SUBJECTS", (SUBJECTS["saxpy"],))
    if not with_clang:
        monkeypatch.setattr(isa_report, "compile_theirs", lambda target: None)
    file = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["isa_report", "--targets", TARGET, "--json", str(file)])
    isa_report.main()
    (row,) = json.loads(file.read_text())
    assert (row["name"], row["target"]) == ("saxpy", TARGET)
    assert row["ours"]["spills"] == row["ours"]["scratch"] == 0
    text = capsys.readouterr().out
    if with_clang:
        assert row["clang"]["occupancy"] == row["ours"]["occupancy"]
        assert row["ratio"] == round(row["ours"]["hot"] / row["clang"]["hot"], 2)
        assert f"| saxpy | {TARGET} | {row['ours']['vgprs']} / {row['clang']['vgprs']} |" in text
    else:
        assert "ratio" not in row
        assert "There is nothing to compare with" in text
