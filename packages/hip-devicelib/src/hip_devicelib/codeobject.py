"""A code object: the value that a compiler hands to a runtime.

It contains the machine code (for the CPU device, LLVM bitcode) of one or more kernels, and what a launch needs to know
about each. It is frozen, can be pickled, and has the same meaning in every process.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from hip_devicelib.cached_property import cached_property
from hip_devicelib.errors import CodeObjectError

CPU_TARGET = "cpu"
"""Name of the target whose code objects hold SPMD bitcode for the CPU device."""

SCALAR_SIZES: dict[str, int] = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8,
    "half": 2, "bfloat": 2, "float": 4, "double": 8, "ptr": 8,
}  # fmt: skip
"""The size of each LLVM type that a kernel parameter can have; each is aligned to its size."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a kernel, in the buffer of packed arguments.

    ``offset`` and ``size`` are in bytes; ``type`` is the text of an LLVM scalar type, a key of `SCALAR_SIZES`.
    """

    name: str
    type: str
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """What a launch needs to know about one kernel.

    ``name`` is the symbol; sizes are in bytes. ``shared_bytes`` is the static part of shared memory (LDS),
    ``private_bytes`` the scratch memory of one thread. Register counts are ``None`` for bitcode, which has no
    registers.
    """

    name: str
    parameters: tuple[Parameter, ...]
    argument_bytes: int
    shared_bytes: int = 0
    private_bytes: int = 0
    wave_size: int = 64
    max_block_threads: int = 1024
    vector_registers: int | None = None
    scalar_registers: int | None = None
    has_dynamic_stack: bool = False
    """Whether a thread may need more than ``private_bytes``, because calls are recursive or their depth is unknown."""
    likely_arguments: tuple[tuple[int, int], ...] = ()
    """The positions of integer parameters, with the numbers that most launches pass, as the distances in arrays whose
    elements lie side by side: a driver may make code for these beside that for any."""


@dataclass(frozen=True)
class CodeObject:
    """Code of one or more kernels for one target.

    ``target`` is `CPU_TARGET` or the name of an AMD GPU with its features (``gfx90a:xnack+``); ``image`` is LLVM
    bitcode for the former and a linked ELF file for the latter.
    """

    target: str
    image: bytes = field(repr=False)
    kernels: tuple[Kernel, ...]
    data: Mapping[str, bytes] = field(default_factory=dict, repr=False, compare=False)
    """Large constants that bitcode refers to, by symbols that contain the digests of their contents; see
    `constants`."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of target and image, in hexadecimal: the same code has the same digest everywhere."""
        return hashlib.sha256(self.target.encode() + b"\0" + self.image).hexdigest()

    def kernel(self, name: str) -> Kernel:
        """The kernel called *name*; `CodeObjectError` with the names of the kernels if there is none."""
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        known = ", ".join(kernel.name for kernel in self.kernels) or "none"
        raise CodeObjectError(f"no kernel {name!r} in this code object for {self.target}; it holds: {known}")


def lay_out(parameters: Sequence[tuple[str, str]]) -> tuple[tuple[Parameter, ...], int]:
    """Lay out *parameters*, pairs of a name and an LLVM scalar type, in a packed argument buffer.

    Each parameter is aligned to its own size. This is how the AMDGPU backend lays out the kernarg segment (LLVM,
    "User Guide for AMDGPU Backend", Kernarg segment), and the CPU device follows it, so that one buffer serves both.
    Returns the parameters and the size of the buffer in bytes.
    """
    laid_out: list[Parameter] = []
    end = 0
    for name, kind in parameters:
        size = SCALAR_SIZES.get(kind)
        if size is None:
            raise CodeObjectError(
                f"kernel parameter {name!r} has LLVM type {kind!r}; allowed are {sorted(SCALAR_SIZES)}"
            )
        offset = -(-end // size) * size
        laid_out.append(Parameter(name, kind, offset, size))
        end = offset + size
    return tuple(laid_out), end
