"""Kernels in HIP C++ compiled by hipcc and launched by our runtime: only the machine code is theirs.

For empty launches, the loop in C++ is theirs as well. `compile_sources` compiles everything; a worker finds it in the
folder that the environment variable `FOLDER` names.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks import black_scholes as bs
from benchmarks import histogram as hist
from benchmarks import mandelbrot as mandel
from benchmarks import matmul, reduction
from benchmarks import nbody as bodies
from benchmarks import saxpy as axpy
from benchmarks import stencil as five
from benchmarks.launch_loop import HipLaunches
from benchmarks.problem import HipToolkit

FOLDER = "BENCHMARKS_HIPCC"
KERNELS, LAUNCHES = "kernels.hsaco", "launches.so"
"""The code object, and the library with the loop of launches."""

_SOURCES = Path(__file__).parent
_LONGEST_MESSAGE = 2000
_ELF = b"\x7fELF"


class CompileError(Exception):
    """hipcc is not available, or does not compile this; the text says which."""


def compile_sources(target: str, folder: Path) -> str:
    """Compile the kernels for *target*, and the loop of launches, into *folder*; returns hipcc's version.

    `CompileError` if it cannot.
    """
    hipcc = os.environ.get("HIPCC") or shutil.which("hipcc") or shutil.which("hipcc", path=_rocm_programs())
    if not hipcc:
        raise CompileError("there is no hipcc: not on PATH, nor in ROCM_PATH or /opt/rocm; HIPCC can name it")
    options = ("-x", "hip", "--cuda-device-only", "--no-gpu-bundle-output", f"--offload-arch={target}", "-O3")
    _say(hipcc, *options, "-ffast-math", str(_SOURCES / "hipcc_kernels.hip"), "-o", str(folder / KERNELS))
    _say(hipcc, "-shared", "-fPIC", "-O3", str(_SOURCES / "hipcc_launches.cpp"), "-o", str(folder / LAUNCHES))
    for output in (folder / KERNELS, folder / LAUNCHES):
        if not output.is_file() or not output.read_bytes().startswith(_ELF):
            raise CompileError(f"{hipcc} wrote no code to {output}")
    return _say(hipcc, "--version").splitlines()[0]


def _rocm_programs() -> str:
    return str(Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / "bin")


def _say(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        raise CompileError(f"{command[0]} does not run: {error.strerror}") from None
    if done.returncode:
        raise CompileError(f"{' '.join(command)} failed: {done.stderr.strip()[-_LONGEST_MESSAGE:]}")
    return done.stdout.strip() or "no version told"


class Hipcc(HipToolkit):
    """Arrays are those of `numba.hip`."""


@cache
def _module() -> Any:
    from hip_devicelib import CodeObject, read_kernels, read_target
    from hip_runtime import Module

    image = Path(os.environ[FOLDER], KERNELS).read_bytes()
    return Module(None, CodeObject(read_target(image), image, read_kernels(image)))


def _launcher(name: str, grid: Any, block: Any, *values: Any) -> Callable[[], None]:
    function = _module().function(name)
    kernel = function.kernel
    packed = bytearray(kernel.argument_bytes)
    for parameter, value in zip(kernel.parameters, values, strict=True):
        data = np.int64(value) if isinstance(value, int) else value
        raw = np.uint64(data.address).tobytes() if hasattr(data, "address") else data.tobytes()
        assert len(raw) == parameter.size, f"{name}: {parameter.size} bytes at {parameter.offset}, not {len(raw)}"
        packed[parameter.offset : parameter.offset + parameter.size] = raw
    launch, arguments = function.configure(grid, block), bytes(packed)
    return lambda: launch(arguments, values)


def _row(name: str, size: int, threads: int, *values: Any) -> Callable[[], None]:
    return _launcher(name, -(-size // threads), threads, *values)


def _square(name: str, size: int, block: tuple[int, int], *values: Any) -> Callable[[], None]:
    return _launcher(name, (-(-size // block[0]), -(-size // block[1])), block, *values)


def saxpy(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _row("saxpy", problem.size, axpy.THREADS, problem.a, on.x, on.y, problem.size)


def black_scholes(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    values = (on.stock, on.strike, on.years, problem.rate, problem.volatility, on.call, on.put)
    return _row("black_scholes", problem.size, bs.THREADS, *values, problem.size)


def mandelbrot(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _square("mandelbrot", problem.size, mandel.BLOCK, on.image, problem.size, problem.size, problem.step)


def nbody(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    values = (on.x, on.y, on.z, on.mass, on.ax, on.ay, on.az)
    return _row("n_body", problem.size, bodies.THREADS, *values, problem.size)


def matmul_naive(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    sizes = (problem.size,) * 3
    return _square("matmul_naive", problem.size, (matmul.TILE, matmul.TILE), on.a, on.b, on.c, *sizes)


def matmul_tiled(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    sizes = (problem.size,) * 2
    return _square("matmul_tiled", problem.size, (matmul.TILE, matmul.TILE), on.a, on.b, on.c, *sizes)


def _reduction(problem: Any, on: SimpleNamespace, name: str, factor: int) -> Callable[[], None]:
    steps = [_row(name, count, reduction.THREADS, *step) for step in problem.steps(on, factor) for count in [step[1]]]

    def launch() -> None:
        for step in steps:
            step()

    return launch


def tree_reduction(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _reduction(problem, on, "tree_reduction", reduction.THREADS)


def warp_reduction(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    from hip_runtime import current_device

    return _reduction(problem, on, "warp_reduction", current_device().attributes.wave_size)


def histogram(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    clear = _launcher("clear", 1, hist.BINS, on.counts)
    count = _launcher("histogram", hist.BLOCKS, hist.THREADS, on.values, problem.size, on.counts)

    def launch() -> None:
        clear()
        count()

    return launch


def stencil(problem: Any, on: SimpleNamespace) -> Callable[[], None]:
    return _square("stencil", problem.size, five.BLOCK, on.source, on.target, problem.size, problem.size)


class Launches(HipLaunches):
    """Empty launches by a loop in C++."""

    def __init__(self, quick: bool) -> None:
        super().__init__(quick)
        folder = Path(os.environ[FOLDER])
        self.image = (folder / KERNELS).read_bytes()
        self.library = ctypes.CDLL(str(folder / LAUNCHES))
        self.addresses = [ctypes.c_void_p(array.address) for array in self.device_arrays]
        self.ask(self.library.prepare(self.image))

    def run(self) -> None:
        self.ask(self.library.launch(ctypes.c_long(self.operations), *self.addresses))
        self.launched += self.operations

    def ask(self, error: int) -> None:
        """Raise an error for a status of HIP."""
        if error:
            raise RuntimeError(f"HIP answers {error}")
