"""ROCm's device libraries: OCML (math), OCKL (runtime support of the language), and the constants that configure them.

They are bitcode in one folder (``amdgcn/bitcode``) that depends on the target only through these constants: the ISA
version, the wave size, the version of the code object ABI, and the precision of math.
"""

from __future__ import annotations

from pathlib import Path

from hip_devicelib.errors import NotFoundError
from hip_devicelib.target import Target, parse_target

_MATH = ("oclc_finite_only_off", "oclc_unsafe_math_off", "oclc_correctly_rounded_sqrt_on", "oclc_daz_opt_off")


def read_device_libraries(folder: Path, target: str | Target) -> tuple[bytes, ...]:
    """The bitcode of the device libraries in *folder*, configured for *target*: precise math, denormals kept.

    For use among the libraries of `optimise`. `NotFoundError` names a missing file: a folder that does not support
    *target* lacks its ISA version.
    """
    resolved = target if isinstance(target, Target) else parse_target(target)
    names = (
        "ocml",
        "ockl",
        f"oclc_isa_version_{resolved.name.removeprefix('gfx')}",
        f"oclc_abi_version_{resolved.code_object_version}",
        f"oclc_wavefrontsize64_{'on' if resolved.wave_size == 64 else 'off'}",
        *_MATH,
    )
    return tuple(_read(folder / f"{name}.bc", resolved) for name in names)


def _read(path: Path, target: Target) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise NotFoundError(f"the device libraries for {target.id} need {path}: {error.strerror}") from None
