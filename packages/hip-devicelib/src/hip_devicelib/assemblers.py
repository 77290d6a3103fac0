"""Assembles the text that LLVM writes for a module with assembly of the program's own, which llvmlite's LLVM cannot:
it has no parser of AMD's instructions.

The assembler is that of comgr, which every HIP runtime comes with, or of a clang: ROCm's, or the one in ``ziglang``.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Protocol

from hip_devicelib.comgr import Comgr, options_of
from hip_devicelib.errors import CompileError, NotFoundError
from hip_devicelib.isolated_codegen import TRIPLE, child_environment
from hip_devicelib.rocm import Rocm, find_rocm
from hip_devicelib.target import Target


class Assembler(Protocol):
    """A program that assembles for AMD GPUs."""

    def assemble(self, text: bytes, target: Target) -> bytes:
        """The relocatable object of the assembly *text*. Raises `CompileError` with the assembler's messages."""


@dataclass(frozen=True)
class ClangAssembler:
    """A clang, started by ``command``."""

    command: tuple[str, ...]

    def assemble(self, text: bytes, target: Target) -> bytes:
        """The relocatable object of the assembly *text*."""
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "kernel.s").write_bytes(text)
            options = ["-target", TRIPLE, f"-mcpu={target.id}", *options_of(target), "-c", "kernel.s", "-o", "kernel.o"]
            environment = child_environment()
            done = subprocess.run(
                [*self.command, *options], cwd=folder, capture_output=True, env=environment, check=False
            )
            made = Path(folder, "kernel.o")
            if done.returncode == 0 and made.exists():
                return made.read_bytes()
        said = done.stderr.decode(errors="replace").strip()[:2000] or f"exit status {done.returncode}"
        raise CompileError(f"{self.command[-1]} does not assemble this for {target.id}: {said}", log=said)


def find_assemblers(rocm: Rocm | None) -> Iterator[Assembler]:
    """The available assemblers, quickest first: comgr and clang of *rocm*, then the clang of ``ziglang``."""
    if rocm is not None and "comgr" in rocm.files:
        yield Comgr(rocm.files["comgr"])
    if rocm is not None and "clang" in rocm.files:
        yield ClangAssembler((str(rocm.files["clang"]),))
    if sys.executable and importlib.util.find_spec("ziglang"):
        yield ClangAssembler((sys.executable, "-m", "ziglang", "clang"))


@cache
def find_assembler() -> Assembler:
    """The first of `find_assemblers`, with the ROCm that is found. `NotFoundError` says what to install."""
    rocm = None
    with suppress(NotFoundError):
        rocm = find_rocm()
    for assembler in find_assemblers(rocm):
        return assembler
    raise NotFoundError(
        "no assembler for AMD GPUs, which kernels with hip.asm need: looked for comgr and clang in "
        f"{rocm.root if rocm else 'ROCm, which was not found'}, and for the Python package ziglang. Install one of "
        "them; 'pip install ziglang' is enough"
    )
