"""The AMD GPUs that code can be generated for: a table, and a parser for target names such as ``gfx90a:xnack+``.

LLVM is never asked about a name that is not in this table: for unknown names it prints a warning and generates code for
another processor, or ends the process. The facts are from LLVM's "User Guide for AMDGPU Backend" (tables "AMDGPU
Processors", "AMDGPU Generic Processors" and "Target ID"). The first LLVM release that knows a processor was checked
with llvmlite's LLVM 20 and LLVM 22.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from hip_devicelib.errors import UnknownTargetError, UnsupportedError

CODE_OBJECT_V5 = 500
CODE_OBJECT_V6 = 600
"""Values of the module flag ``amdhsa_code_object_version``; generic processors exist since version 6."""

_KIB = 1024
_SIMDS = 4
_TARGET_ID_PREFIX = "amdgcn-amd-amdhsa--"

STACK_BYTES = 16 << 10
"""The most private memory that the HIP runtime gives a thread if the code object cannot tell the depth of calls, as
with recursion. Its releases 6 cut larger sizes off without an error."""


@dataclass(frozen=True, slots=True)
class Target:
    """A processor, with its chosen features.

    ``name`` is the processor (``gfx90a``); ``lds_bytes`` is the most shared memory that a block can have;
    ``wave_sizes`` are the wave sizes that the processor supports and ``wave_size`` is the one to compile for;
    ``features`` are the chosen target ID features (``xnack``, ``sramecc``: on or off; code without one runs with
    either) and ``allowed_features`` those that can be chosen. ``generic`` is the generic processor whose code also runs
    here, ``code_object_version`` is the least value of LLVM's module flag for this processor, and ``since_llvm`` the
    first LLVM release that is known to support it. A block has at most ``max_block_threads`` threads.
    """

    name: str
    lds_bytes: int
    wave_size: int
    wave_sizes: tuple[int, ...]
    allowed_features: tuple[str, ...] = ()
    features: tuple[tuple[str, bool], ...] = ()
    generic: str | None = None
    code_object_version: int = CODE_OBJECT_V5
    since_llvm: int = 20
    max_block_threads: int = 1024

    @property
    def id(self) -> str:
        """The canonical target ID: the name and the chosen features in alphabetical order."""
        return self.name + "".join(f":{name}{'+' if on else '-'}" for name, on in self.features)

    @property
    def llvm_features(self) -> str:
        """The feature string for LLVM's target machine: target ID features, and the wave size unless it is the
        default."""
        chosen = [f"{'+' if on else '-'}{name}" for name, on in self.features]
        if self.wave_size != self.wave_sizes[0]:
            chosen += [f"-wavefrontsize{self.wave_sizes[0]}", f"+wavefrontsize{self.wave_size}"]
        return ",".join(chosen)

    @property
    def private_bytes(self) -> int:
        """The most private memory (scratch) that a thread can have.

        A wave has 8191 (gfx9 and gfx10), 32767 (gfx11) or 262143 (gfx12) blocks of 1 KiB: LLVM's
        ``GCNSubtarget::getMaxWaveScratchSize``.
        """
        blocks = {"gfx11": 2**15 - 1, "gfx12": 2**18 - 1}.get(self.name[:5], 2**13 - 1)
        return blocks * _KIB // self.wave_size // 16 * 16

    @property
    def has_unified_registers(self) -> bool:
        """Whether accumulation registers and vector registers share one file.

        On these processors LLVM's attribute ``amdgpu-num-vgpr`` counts half of the file:
        ``GCNSubtarget::getBaseMaxNumVGPRs``.
        """
        return self.name.startswith(("gfx90a", "gfx94", "gfx95", "gfx9-4"))

    @property
    def max_waves_per_simd(self) -> int:
        """The most waves that a SIMD unit holds at a time: LLVM's ``AMDGPU::IsaInfo::getMaxWavesPerEU``."""
        if self.name.startswith(("gfx90a", "gfx94", "gfx95", "gfx9-4")):
            return 8
        if self.name.startswith("gfx9"):
            return 10
        return 20 if self.name.startswith(("gfx101", "gfx10-1")) else 16

    def waves_per_simd(self, blocks: int, threads: int) -> int:
        """The number of waves on each SIMD unit if *blocks* of *threads* threads share a compute unit.

        A block runs on four SIMD units: those of a compute unit of gfx9, or of a workgroup processor of later ones,
        which is what HIP counts as a compute unit (LLVM's ``AMDGPU::IsaInfo::getEUsPerCU``).
        """
        waves = blocks * -(-threads // self.wave_size)
        return -(-waves // _SIMDS)

    def with_wave_size(self, wave_size: int) -> Target:
        """This target, compiled for waves of *wave_size* threads. `UnsupportedError` if the processor does not support
        them."""
        if wave_size not in self.wave_sizes:
            raise UnsupportedError(f"wave_size={wave_size!r}: {self.name} runs waves of {self.wave_sizes} threads")
        return replace(self, wave_size=wave_size)

    def __str__(self) -> str:
        return self.id


def _family(
    names: str,
    *,
    waves: tuple[int, ...],
    features: tuple[str, ...] = (),
    generic: str | None = None,
    lds: int = 64 * _KIB,
    is_generic: bool = False,
    since_llvm: int = 20,
) -> list[Target]:
    """The processors *names* (separated by blanks), which have all of these properties in common."""
    version = CODE_OBJECT_V6 if is_generic else CODE_OBJECT_V5
    return [Target(name, lds, waves[0], waves, features, (), generic, version, since_llvm) for name in names.split()]


_WAVE64 = (64,)
_WAVE32_OR_64 = (32, 64)
_BOTH = ("sramecc", "xnack")
_XNACK = ("xnack",)

TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            *_family("gfx900 gfx902 gfx904 gfx909 gfx90c", waves=_WAVE64, features=_XNACK, generic="gfx9-generic"),
            *_family("gfx906", waves=_WAVE64, features=_BOTH, generic="gfx9-generic"),
            *_family("gfx908 gfx90a", waves=_WAVE64, features=_BOTH),
            *_family("gfx942", waves=_WAVE64, features=_BOTH, generic="gfx9-4-generic"),
            *_family("gfx950", waves=_WAVE64, features=_BOTH, generic="gfx9-4-generic", lds=160 * _KIB),
            *_family(
                "gfx1010 gfx1011 gfx1012 gfx1013", waves=_WAVE32_OR_64, features=_XNACK, generic="gfx10-1-generic"
            ),
            *_family(
                "gfx1030 gfx1031 gfx1032 gfx1033 gfx1034 gfx1035 gfx1036",
                waves=_WAVE32_OR_64,
                generic="gfx10-3-generic",
            ),
            *_family(
                "gfx1100 gfx1101 gfx1102 gfx1103 gfx1150 gfx1151 gfx1152 gfx1153",
                waves=_WAVE32_OR_64,
                generic="gfx11-generic",
            ),
            *_family("gfx1200 gfx1201", waves=_WAVE32_OR_64, generic="gfx12-generic"),
            *_family("gfx1250", waves=(32,), lds=320 * _KIB, since_llvm=22),
            *_family("gfx9-generic", waves=_WAVE64, features=_XNACK, is_generic=True),
            *_family("gfx9-4-generic", waves=_WAVE64, features=_BOTH, is_generic=True),
            *_family("gfx10-1-generic", waves=_WAVE32_OR_64, features=_XNACK, is_generic=True),
            *_family("gfx10-3-generic gfx11-generic gfx12-generic", waves=_WAVE32_OR_64, is_generic=True),
        )
    }
)
"""All known processors by name."""


def parse_target(text: str, *, wave_size: int | None = None) -> Target:
    """The target for *text*: a processor, optionally with target ID features (``gfx90a:sramecc+:xnack-``).

    The long form of ROCm's tools (``amdgcn-amd-amdhsa--gfx90a``) is accepted, too. *wave_size* is the number of threads
    in a wave, by default the processor's preferred one. Raises `UnknownTargetError` for a name or a feature that does
    not exist, `UnsupportedError` for a feature or a wave size that this processor does not have.
    """
    if not isinstance(text, str):
        raise UnknownTargetError(f"target must be a string such as 'gfx90a', not {type(text).__name__}: {text!r}")
    name, *features = text.strip().removeprefix(_TARGET_ID_PREFIX).split(":")
    target = TARGETS.get(name)
    if target is None:
        raise UnknownTargetError(_describe_unknown(name))
    chosen = _parse_features(target, features)
    target = replace(target, features=tuple(sorted(chosen.items())))
    return target if wave_size is None else target.with_wave_size(wave_size)


def _parse_features(target: Target, features: list[str]) -> dict[str, bool]:
    chosen: dict[str, bool] = {}
    for text in features:
        name, sign = text[:-1], text[-1:]
        if sign not in ("+", "-") or name not in _BOTH:
            raise UnknownTargetError(
                f"target feature {text!r} of {target.name!r}: write one of {', '.join(_BOTH)} followed by '+' or '-'"
            )
        if name not in target.allowed_features:
            allowed = ", ".join(target.allowed_features) or "none"
            raise UnsupportedError(f"target feature {name!r}: {target.name} lets you choose: {allowed}")
        if name in chosen:
            raise UnknownTargetError(f"target feature {name!r} of {target.name!r} is given twice")
        chosen[name] = sign == "+"
    return chosen


def _describe_unknown(name: str) -> str:
    import difflib  # only for misspelt names

    close = difflib.get_close_matches(name.lower(), TARGETS, n=3, cutoff=0.6)
    hint = f"did you mean {' or '.join(close)}? " if close else ""
    return f"unknown AMD GPU target {name!r}; {hint}known targets: {', '.join(TARGETS)}"
