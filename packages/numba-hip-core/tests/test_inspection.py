"""What can be seen of a kernel: what the CPU device runs, and what is shown while it is compiled."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba import float32, void

import numba_hip as hip
from hip_runtime import config
from hip_runtime.errors import UnsupportedError
from numba_hip import config as core_config

SIGNATURE = void(float32[::1], float32)


def scale(values: Any, factor: Any) -> None:
    i = hip.grid(1)
    if i < values.size:
        values[i] *= factor


def lanes(text: str) -> set[int]:
    """How many numbers are multiplied at once."""
    return {int(count or 1) for count in re.findall(r"fmul (?:<(\d+) x )?float", text)}


@pytest.mark.cpu_device("what runs there depends on the shape of blocks")
def test_the_code_of_a_block_shape_is_shown() -> None:
    kernel = hip.jit(SIGNATURE)(scale)
    assert lanes(kernel.inspect_llvm(SIGNATURE)) == {1}
    with config.cpu_width.scope(16):
        assert lanes(kernel.inspect_llvm(SIGNATURE, block=16)) == {16}
        assert lanes(kernel.inspect_llvm(SIGNATURE, block=8)) == {8}
    assert "spmd.worker" in kernel.inspect_asm(SIGNATURE, block=(8, 1, 1))
    with config.cpu_width.scope(8):
        kernel[2, 64](np.ones(100, np.float32), np.float32(2))
        (text,) = kernel.inspect_llvm().values()
        assert lanes(text) == {8}
        assert "spmd.worker" in kernel.inspect_sass(SIGNATURE)
    with config.cpu_width.scope(4):
        kernel[2, 4](np.ones(8, np.float32), np.float32(2))
        assert lanes(kernel.inspect_llvm(SIGNATURE)) == {4}
    with core_config.inspect_launched.scope(False), config.cpu_width.scope(8):
        assert lanes(kernel.inspect_llvm(SIGNATURE)) == {1}
        assert lanes(kernel.inspect_llvm(SIGNATURE, block=8)) == {8}


@pytest.mark.cpu_device("other forms are the CPU device's")
def test_a_form_that_cannot_run_it_is_an_error() -> None:
    @hip.jit(void(float32[::1]))
    def wait(values: Any) -> None:
        hip.syncthreads()
        values[0] = 1

    with config.cpu_form.scope("loop"), pytest.raises(UnsupportedError, match="'loop' cannot run a kernel that calls"):
        wait.inspect_asm(void(float32[::1]), block=32)


def test_code_for_gpus_is_the_same_for_all_blocks() -> None:
    kernel = hip.jit(SIGNATURE)(scale)
    text = kernel.inspect_asm(SIGNATURE, target="gfx942")
    assert kernel.inspect_asm(SIGNATURE, target="gfx942", block=64) == text
    assert "v_mul_f32" in text


@pytest.mark.cpu_device("a GPU shows its own code")
def test_both_devices_show_what_is_compiled(tmp_path: Path) -> None:
    with config.dump.scope("ir,asm,graph"), config.dump_directory.scope(str(tmp_path)):
        kernel = hip.jit(scale)
        kernel[1, 32](np.ones(20, np.float32), np.float32(2))
        hip.compile(scale, SIGNATURE, target="gfx1100", output="bitcode")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == [
        "scale-32x1x1.graph.ll",
        "scale-32x1x1.ll",
        "scale-32x1x1.s",
        "scale-gfx1100.ll",
        "scale-gfx1100.s",
    ]
    assert "s_endpgm" in (tmp_path / "scale-gfx1100.s").read_text()
    assert "stride 4" in (tmp_path / "scale-32x1x1.graph.ll").read_text()
