"""The suites that can be run, and the one that this process and its children run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tools.cuda_suite import repository
from tools.cuda_suite.repository import Repository, fetch_repository
from tools.cuda_suite.wheel import fetch_tests

SUITE = "CUDA_SUITE"
"""Environment variable with the name of the suite."""

HERE = Path(__file__).parent
EXPECTED = HERE / "expected"


STAND_INS = (
    ("numba.cuda.testing", "testing.py"),
    ("numba.cuda.memory_management", "memory.py"),
    ("numba.cuda.memory_management.nrt", "memory.py"),
    ("numba.cuda._compat", "bindings.py"),
    ("numba.cuda.cudadrv.nvrtc", "absent.py"),
    ("numba.cuda.libdevicefuncs", "libdevice_table.py"),
    ("cuda", "bindings.py"),
    ("cuda.core", "bindings.py"),
    ("cuda.core._utils", "bindings.py"),
    ("cuda.core._utils.cuda_utils", "bindings.py"),
)
"""Modules that only serve tests, or that numba-cuda depends on, and our files that stand for them."""


@dataclass(frozen=True)
class Suite:
    """A suite: the folder of its lists of expectations, and the tests that are never run."""

    name: str
    expected: Path
    repository: Repository | None = None
    """The source of its tests; None for those in the wheel of numba-cuda."""
    copied: tuple[str, str] | None = None
    """The folder with a copy of another suite's tests, and that suite's name: tests that do not apply there do not
    apply here."""
    left_out: tuple[str, ...] = ()
    """Folders of modules that the suite's own authors do not run with the others."""
    expects_own_faults: bool = False
    """Whether tests that are expected to fail show faults that its authors have not mended, so that they may pass
    here."""
    plugins: tuple[str, ...] = ()
    """Modules that replace its ``conftest.py``."""
    served: tuple[tuple[str, str], ...] = ()
    """Packages that are found in a folder, which is named from that of the tests."""
    stand_ins: tuple[tuple[str, str], ...] = STAND_INS
    ours: tuple[tuple[str, str], ...] = ()
    """Modules, and our files that stand for them, in addition to *stand_ins*."""

    imported: tuple[str, ...] = ()
    """Modules that tests find because others import them."""

    def fetch(self, cache: Path, source: Path | None) -> Path:
        """The folder of its tests: in *source*, a copy of its repository, or downloaded into *cache*; `FetchError`."""
        if self.repository is None:
            return fetch_tests(cache)
        return fetch_repository(cache, self.repository, source)

    def modules(self) -> dict[str, Path]:
        """The modules that files of ours stand for."""
        return {name: HERE / file for name, file in (*self.stand_ins, *self.ours)}


NUMBA_CUDA = Suite("numba-cuda", EXPECTED, served=(("numba.cuda.tests", "."),))

NUMBA_CUDA_MLIR = Suite(
    "numba-cuda-mlir",
    EXPECTED / "numba-cuda-mlir",
    repository.NUMBA_CUDA_MLIR,
    copied=("numba_cuda_tests", "numba-cuda"),
    left_out=("benchmarks", "doc_examples"),
    expects_own_faults=True,
    plugins=("tools.cuda_suite.mlir_fixtures",),
    served=(("numba.cuda.tests", "../src/numba_cuda_mlir/numba_cuda/tests"),),
    ours=(
        ("gpu_utils", "gpu_utils.py"),
        ("numba.cuda.cudadrv.nvvm", "absent.py"),
        ("numba_cuda_mlir.testing", "mlir_testing.py"),
        ("numba_cuda_mlir.memory_management", "memory.py"),
        ("numba_cuda_mlir.memory_management.rtsys", "memory.py"),
    ),
)

NUMBA_HIP = Suite(
    "numba-hip",
    EXPECTED / "numba-hip",
    repository.NUMBA_HIP,
    served=(("numba.hip.tests", "."),),
    stand_ins=(),
)

CUDA_CCCL = Suite(
    "cuda-cccl",
    EXPECTED / "cuda-cccl",
    repository.CUDA_CCCL,
    left_out=("examples",),
    expects_own_faults=True,
    served=(("_utils", "../_utils"),),
    stand_ins=(
        ("cuda.core", "compute/core.py"),
        ("cuda.core.system", "compute/core.py"),
        ("_utils.device_array", "compute/device_array.py"),
        ("cuda.compute._cccl_interop", "compute/insides.py"),
        ("cuda.compute._utils", "compute/insides.py"),
        ("cuda.compute._utils.protocols", "compute/insides.py"),
        ("cuda.compute._utils.temp_storage_buffer", "compute/insides.py"),
    ),
    imported=("cuda.compute._cccl_interop",),
)

SUITES = {suite.name: suite for suite in (NUMBA_CUDA, NUMBA_CUDA_MLIR, NUMBA_HIP, CUDA_CCCL)}


def choose(name: str) -> Suite:
    """Let this process and those that it starts run the suite *name*."""
    os.environ[SUITE] = name
    return SUITES[name]


def chosen() -> Suite:
    """The suite that this process runs."""
    return SUITES[os.environ.get(SUITE, NUMBA_CUDA.name)]
