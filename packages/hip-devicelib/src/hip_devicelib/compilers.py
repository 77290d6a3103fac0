"""Compilers of HIP C++ for devices: HIPRTC, the clang of ROCm, the clang in the wheel ``ziglang``.

Each compiles source, for which HIP's device header is already included, to bitcode for one target. A compiler runs in
another process. If it rejects the source, it raises `CompileError` with the compiler's messages.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from hip_devicelib.cached_property import cached_property
from hip_devicelib.errors import CompileError, NotFoundError
from hip_devicelib.header_parser import MACROS
from hip_devicelib.hip_header import Header, read_header
from hip_devicelib.isolated_codegen import child_environment
from hip_devicelib.rocm import Rocm
from hip_devicelib.target import Target

_COMMON = (*(f"-D{macro}" for macro in MACROS), "-fgpu-rdc", "-ferror-limit=0")


class Compiler(Protocol):
    """A compiler from HIP C++ to bitcode."""

    @property
    def identity(self) -> str:
        """Name and version: compilers with the same identity produce the same bitcode from the same source."""

    @property
    def device_libraries(self) -> Path | None:
        """The folder with matching device libraries, for functions of OCML and OCKL that `compile` left undefined."""

    def compile(self, source: str, target: Target, options: Sequence[str] = ()) -> bytes:
        """Bitcode of *source* for *target*; *options* are those of clang. Raises `CompileError`."""


@dataclass(frozen=True)
class Hiprtc:
    """The HIPRTC of a ROCm. It contains the header, and the device libraries for the targets that it supports."""

    library: Path
    version: str | None
    device_libraries: Path | None = None

    @property
    def identity(self) -> str:
        return f"hiprtc {self.version or self.library.resolve().name}"

    def compile(self, source: str, target: Target, options: Sequence[str] = ()) -> bytes:
        flags = [f"--offload-arch={target.id}", *_target_flags(target), *_COMMON, *options]
        command = [sys.executable, "-m", "hip_devicelib.hiprtc", str(self.library), *flags]
        done = subprocess.run(command, input=source.encode(), capture_output=True, env=child_environment(), check=False)
        return _finish(done, self.identity, target, done.stdout)


@dataclass(frozen=True)
class Clang:
    """A clang that supports HIP. ``header`` is inserted before the source. Device libraries have to be linked
    afterwards."""

    command: tuple[str, ...]
    header: Header = field(repr=False)
    device_libraries: Path | None = None

    @cached_property
    def identity(self) -> str:
        done = subprocess.run([*self.command, "--version"], capture_output=True, text=True, check=False)
        if done.returncode:
            raise CompileError(f"{' '.join(self.command)} does not run: {done.stderr.strip()[-500:]}")
        return f"{done.stdout.splitlines()[0]}, HIP header {self.header.digest[:16]}"

    def compile(self, source: str, target: Target, options: Sequence[str] = ()) -> bytes:
        flags = [
            "-x", "hip", "--cuda-device-only", f"--offload-arch={target.id}", "-nogpuinc", "-nostdinc", "-std=c++17",
            "-D__HIPCC_RTC__", f"-D__AMDGCN_WAVEFRONT_SIZE={target.wave_size}", "-O3", "-emit-llvm", "-w",
            "-nogpulib", *_target_flags(target), *_COMMON, *options,
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            # A line marker, so that messages have the line numbers of the source alone.
            Path(folder, "program.hip").write_text(f'{self.header.text}\n#line 1 "program.hip"\n{source}')
            command = [*self.command, *flags, "-c", "program.hip", "-o", "program.bc"]
            done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
            output = Path(folder, "program.bc")
            return _finish(done, self.command[-1], target, output.read_bytes() if output.exists() else b"")


def _target_flags(target: Target) -> list[str]:
    flags = [f"-mcode-object-version={target.code_object_version // 100}"]
    if target.wave_size != target.wave_sizes[0]:
        flags.append(f"-mwavefrontsize{target.wave_size}")
    return flags


def _finish(done: subprocess.CompletedProcess[bytes], name: str, target: Target, output: bytes) -> bytes:
    log = done.stderr.decode(errors="replace").strip()
    if done.returncode == 0 and output:
        return output
    lines = log.splitlines()
    first = next((number for number, line in enumerate(lines) if "error" in line), max(len(lines) - 20, 0))
    shown = "\n".join(lines[first : first + 20]) or f"exit status {done.returncode}"
    raise CompileError(f"{name} does not compile this for {target.id}:\n{shown}", log=log)


def find_compilers(rocm: Rocm | None) -> Iterator[Compiler]:
    """The available compilers, best first: HIPRTC and clang of *rocm*, then the clang of ``ziglang``.

    Both clangs need the header of *rocm*.
    """
    if rocm is None:
        return
    libraries = rocm.files["device-libraries"].parent if "device-libraries" in rocm.files else None
    if "hiprtc" in rocm.files:
        yield Hiprtc(rocm.files["hiprtc"], rocm.version("hiprtc"), libraries)
    commands: list[tuple[str, ...]] = [(str(rocm.files["clang"]),)] if "clang" in rocm.files else []
    if importlib.util.find_spec("ziglang"):
        commands.append((sys.executable, "-m", "ziglang", "clang"))
    if commands and "hiprtc-builtins" in rocm.files:
        header = read_header(rocm)
        for command in commands:
            yield Clang(command, header, libraries)


def find_compiler(rocm: Rocm | None) -> Compiler:
    """The first of `find_compilers`. `NotFoundError` says what to install if there is none."""
    for compiler in find_compilers(rocm):
        return compiler
    raise NotFoundError(
        "no compiler of HIP C++: looked for HIPRTC and clang in "
        f"{rocm.root if rocm else 'ROCm, which was not found'}, and for the Python package ziglang, which needs the "
        "header in ROCm's libhiprtc-builtins. Install HIPRTC (libhiprtc and libhiprtc-builtins)"
    )
