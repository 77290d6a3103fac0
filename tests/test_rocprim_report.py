"""The report beside rocPRIM: what it reads of our kernels, and of assembly that is made up."""

from __future__ import annotations

import pytest

from tools import rocprim_report
from tools.rocprim_kernels import pairs

MADE_UP = """
_Z5shortv:                              ; @_Z5shortv
\tglobal_load_dword v0, v[2:3], off
\ts_endpgm
.Lfunc_end0:
; TotalNumSgprs: 6
; NumVgprs: 4
; ScratchSize: 0
; Occupancy: 8
; LDSByteSize: 0
_Z4longIshortEv:                        ; @_Z4longIshortEv
; %bb.0:
\tglobal_load_dword v0, v[2:3], off
\tglobal_load_dwordx2 v[4:5], v[2:3], off offset:256
\ts_waitcnt lgkmcnt(0)
\tflat_load_dword v6, v[2:3]
\ts_waitcnt vmcnt(0) lgkmcnt(0)
\tglobal_load_dword v0, v[2:3], off
\ts_endpgm
.Lfunc_end1:
; TotalNumSgprs: 16
; NumVgprs: 14
; ScratchSize: 32
; Occupancy: 5
; LDSByteSize: 1024
"""


def test_the_longest_function_with_the_name_is_measured() -> None:
    assert rocprim_report.find_theirs(MADE_UP, "short") == {
        "vgprs": 14, "sgprs": 16, "lds": 1024, "scratch": 32, "occupancy": 5, "instructions": 7, "under way": 3,
    }  # fmt: skip
    assert rocprim_report.find_theirs(MADE_UP, "_Z5short")["under way"] == 1
    with pytest.raises(SystemExit, match="no kernel with lookback in its name"):
        rocprim_report.find_theirs(MADE_UP, "lookback")


@pytest.mark.parametrize("target", rocprim_report.TARGETS)
@pytest.mark.parametrize("name", [pair.name for pair in pairs(64)])
@pytest.mark.sample(6)
def test_our_kernels_use_no_scratch_and_leave_room_for_waves(name: str, target: str) -> None:
    lanes, most = (64, 8) if target.startswith("gfx9") else (32, 16)
    pair = next(pair for pair in pairs(lanes) if pair.name == name)
    figures = rocprim_report.compile_ours(pair.kernel, pair.signature, target)
    assert figures["scratch"] == 0
    assert figures["occupancy"] >= (5 * most // 8)
    in_rows = name.startswith(("reduce", "scan", "select", "sort", "histogram"))
    assert figures["under way"] >= (4 if in_rows else 1)
