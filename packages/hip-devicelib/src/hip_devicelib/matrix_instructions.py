"""The instructions of AMD GPUs that multiply small matrices: MFMA of the CDNA GPUs, WMMA of the RDNA GPUs.

All lanes of a wave execute one together: ``d = a @ b + c``, where *a* has shape (m, k), *b* (k, n), and *c* and *d*
(m, n). Each lane has some elements of each matrix. Which ones is in AMD's manuals of the instruction sets and in its
matrix instruction calculator (https://github.com/ROCm/amd_matrix_instruction_calculator); for gfx950, in LLVM's tests
and its "User Guide for AMDGPU Backend". The intrinsics are those of LLVM's ``IntrinsicsAMDGPU.td``.

- Lane *l* has elements of row ``l % m`` of *a*, and of column ``l % n`` of *b*. Its `parts` neighbours along *k* are
  those from ``l // m * parts`` on. On gfx11 both halves of a wave have the same, whole rows and columns.
- Lane *l* has elements of column ``l % n`` of *c* and *d*. The rows come in turns: `together` rows to the first *n*
  lanes, as many to the next, and so on, and round again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

from hip_devicelib.target import Target

OCP = MappingProxyType({"fp8": "float8_e4m3fn", "bf8": "float8_e5m2"})
FNUZ = MappingProxyType({"fp8": "float8_e4m3fnuz", "bf8": "float8_e5m2fnuz"})
"""Which formats of 8 bits the instructions mean by these names: gfx942 others than all later GPUs."""


@dataclass(frozen=True)
class MatrixInstruction:
    """One instruction: shape, types by their names in NumPy or ml_dtypes, and LLVM's intrinsic."""

    shape: tuple[int, int, int]
    """m, n and k."""
    a: str
    b: str
    accumulator: str
    parts: int
    """Elements of *a*, and of *b*, that a lane has: neighbours along *k*."""
    together: int
    """Neighbouring rows of *c* and *d* that a lane has."""
    intrinsic: str
    operand: str
    """The LLVM type of *a* and *b*, such as ``<4 x half>`` or ``i64``."""
    signs: bool = False
    """Whether a flag before each factor tells that it is signed, and one at the end whether sums saturate."""
    controls: int = 0
    """How many constants, all 0, follow the operands."""

    @property
    def wave_size(self) -> int:
        """The lanes of a wave that can execute it."""
        return 64 if self.intrinsic.startswith("llvm.amdgcn.mfma") else 32


def matrix_instructions(target: Target) -> tuple[MatrixInstruction, ...]:
    """Those of *target* for waves of the size that it is compiled for; none if it has no matrix cores."""
    return tuple(one for one in _instructions(target.name) if one.wave_size == target.wave_size)


def matrix_wave_size(target: Target) -> int | None:
    """The lanes of the waves in which *target* multiplies matrices; None if it has no instructions for that."""
    return next((one.wave_size for one in _instructions(target.name)), None)


@cache
def _instructions(name: str) -> tuple[MatrixInstruction, ...]:
    if name == "gfx908":
        return tuple(one for one in _mfma_of_cdna2() if one.a != "bfloat16")
    if name == "gfx90a":
        return (*_mfma_of_cdna2(), *_mfma_doubles())
    if name == "gfx942":
        return (*_mfma_of_cdna3(FNUZ), *_mfma_doubles())
    if name == "gfx950":
        return (*_mfma_of_cdna4(), *_mfma_of_cdna3(OCP), *_mfma_doubles())
    if name.startswith(("gfx110", "gfx115", "gfx11-")):
        return tuple(_wmma_of_gfx11())
    if name.startswith(("gfx120", "gfx12-")):
        return tuple(_wmma_of_gfx12())
    return ()


def _mfma(shape: tuple[int, int, int], a: str, b: str, sums: str, name: str, operand: str) -> MatrixInstruction:
    together = 1 if sums == "float64" else 4
    return MatrixInstruction(
        shape, a, b, sums, shape[0] * shape[2] // 64, together, f"llvm.amdgcn.mfma.{name}", operand, controls=3
    )


def _mfma_of_both(k: int, kind: str, sums: str, name: str, operand: str) -> Iterable[MatrixInstruction]:
    """The two shapes with equally long operands: 16 x 16 with *k*, and 32 x 32 with half of it."""
    for side, depth in ((16, k), (32, k // 2)):
        called = name.format(shape=f"{side}x{side}x{depth}")
        yield _mfma((side, side, depth), kind, kind, sums, called, operand)


def _mfma_of_cdna2() -> Iterable[MatrixInstruction]:
    yield from _mfma_floats()
    yield from _mfma_of_both(16, "int8", "int32", "i32.{shape}i8", "i32")


def _mfma_floats() -> Iterable[MatrixInstruction]:
    yield from _mfma_of_both(16, "float16", "float32", "f32.{shape}f16", "<4 x half>")
    yield from _mfma_of_both(16, "bfloat16", "float32", "f32.{shape}bf16.1k", "<4 x i16>")
    yield from _mfma_of_both(4, "float32", "float32", "f32.{shape}f32", "float")


def _mfma_doubles() -> Iterable[MatrixInstruction]:
    yield _mfma((16, 16, 4), "float64", "float64", "float64", "f64.16x16x4f64", "double")


def _mfma_of_cdna3(formats: MappingProxyType[str, str]) -> Iterable[MatrixInstruction]:
    yield from _mfma_floats()
    yield from _mfma_of_both(32, "int8", "int32", "i32.{shape}.i8", "i64")
    for side, depth in ((16, 32), (32, 16)):
        for a in formats:
            for b in formats:
                called = f"f32.{side}x{side}x{depth}.{a}.{b}"
                yield _mfma((side, side, depth), formats[a], formats[b], "float32", called, "i64")


def _mfma_of_cdna4() -> Iterable[MatrixInstruction]:
    yield from _mfma_of_both(32, "float16", "float32", "f32.{shape}.f16", "<8 x half>")
    yield from _mfma_of_both(32, "bfloat16", "float32", "f32.{shape}.bf16", "<8 x bfloat>")
    yield from _mfma_of_both(64, "int8", "int32", "i32.{shape}.i8", "<4 x i32>")


_CUBE = (16, 16, 16)


def _wmma_of_gfx11() -> Iterable[MatrixInstruction]:
    for kind, letter, name in (("float16", "half", "f16"), ("bfloat16", "i16", "bf16")):
        mangled = f"llvm.amdgcn.wmma.f32.16x16x16.{name}.v8f32.v16{'f16' if letter == 'half' else letter}"
        yield MatrixInstruction(_CUBE, kind, kind, "float32", 16, 1, mangled, f"<16 x {letter}>")
    mangled = "llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v4i32"
    yield MatrixInstruction(_CUBE, "int8", "int8", "int32", 16, 1, mangled, "<4 x i32>", signs=True)


def _wmma_of_gfx12() -> Iterable[MatrixInstruction]:
    for kind, letter, name in (("float16", "half", "f16"), ("bfloat16", "i16", "bf16")):
        mangled = f"llvm.amdgcn.wmma.f32.16x16x16.{name}.v8f32.v8{'f16' if letter == 'half' else letter}"
        yield MatrixInstruction(_CUBE, kind, kind, "float32", 8, 8, mangled, f"<8 x {letter}>")
    mangled = "llvm.amdgcn.wmma.i32.16x16x16.iu8.v8i32.v2i32"
    yield MatrixInstruction(_CUBE, "int8", "int8", "int32", 8, 8, mangled, "<2 x i32>", signs=True)
    for a in OCP:
        for b in OCP:
            mangled = f"llvm.amdgcn.wmma.f32.16x16x16.{a}.{b}.v8f32.v2i32"
            yield MatrixInstruction(_CUBE, OCP[a], OCP[b], "float32", 8, 8, mangled, "<2 x i32>")


@cache
def known_instructions() -> tuple[MatrixInstruction, ...]:
    """Those of all GPUs."""
    every = (one for name in ("gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200") for one in _instructions(name))
    return tuple(dict.fromkeys(every))
