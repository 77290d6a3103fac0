"""The CPU device makes the same machine code of a kernel in each process, in whatever order sets have their members."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.case import Benchmark
from benchmarks.environments import ROOT
from benchmarks.user_kernels.catalog import SUBJECTS

COMPILE = """
import sys
from hip_runtime.drivers.cpu.ir import model

factor = int(sys.argv[1])
for kind in (model.Value, model.Constant, model.Argument, model.Symbol, model.Instruction, model.Block, model.Function):
    kind.__hash__ = lambda self: id(self) * factor % (2**61 - 1)

from benchmarks.user_kernels.catalog import KERNELS

for name in sys.argv[2:]:
    KERNELS[name].implementations["hip"](True).run()
"""

KERNELS_BY_SUBJECT = {
    subject.__name__.split(".")[-1]: [kernel.name for kernel in vars(subject).values() if isinstance(kernel, Benchmark)]
    for subject in SUBJECTS
}


def compile_kernels(subject: str, folder: Path, seed: int) -> dict[str, str]:
    """The assembly of the kernels about *subject*, by name, made in a process of its own whose sets are in an order of
    their own."""
    settings = {
        "NUMBA_HIP_DEVICE": "cpu", "NUMBA_HIP_DUMP": "asm", "NUMBA_HIP_DUMP_DIR": str(folder),
        "NUMBA_HIP_CACHE_DIR": str(folder / "cache"), "PYTHONHASHSEED": str(seed),
    }  # fmt: skip
    command = [sys.executable, "-c", COMPILE, str(0x9E3779B97F4A7C15 + 2 * seed), *KERNELS_BY_SUBJECT[subject]]
    subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}, check=True)
    return {file.name: file.read_text() for file in folder.glob("*.s")}


@pytest.mark.sample(3)
@pytest.mark.parametrize("subject", KERNELS_BY_SUBJECT)
def test_code_is_the_same_in_each_process(subject: str, tmp_path: Path) -> None:
    first, second = (compile_kernels(subject, tmp_path / str(seed), seed) for seed in (1, 2))
    assert len(first) >= len(KERNELS_BY_SUBJECT[subject])
    assert first == second
