"""What sessions of nox install: read from the packages' requirements, for the machine that they run on.

The noxfile imports this with the Python that runs nox, so it needs nothing that nox does not bring.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from packaging.requirements import Requirement

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10; nox itself depends on tomli there
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba-hip-cuda-compat")
"""From the bottom layer to the top: each depends only on those before it."""


def installed_rocm() -> str:
    """The version of this machine's ROCm, or an empty string."""
    told = Path(os.environ.get("ROCM_PATH", "/opt/rocm")) / ".info" / "version"
    return told.read_text().strip() if told.is_file() else ""


def hip_python_extra(rocm: str) -> str:
    """The extra of hip-runtime with the hip-python for this version of ROCm: the newest that is not newer, otherwise
    the oldest. If the version is unknown, the newest of all."""
    project = tomllib.loads((ROOT / "packages" / "hip-runtime" / "pyproject.toml").read_text())["project"]
    extras = {name: _numbers(name) for name in project["optional-dependencies"] if name.startswith("rocm_")}
    fitting = [name for name, release in extras.items() if not rocm or release <= _numbers(rocm)]
    return max(fitting or [min(extras, key=extras.__getitem__)], key=extras.__getitem__)


def _numbers(version: str) -> tuple[int, ...]:
    """The first three numbers in a version, however they are separated."""
    return tuple(int(number) for number in re.findall("[0-9]+", version)[:3])


def lowest_versions() -> list[str]:
    """The lower bound of each dependency of our packages, as an exact requirement, with its marker."""
    lowest = set()
    for package in PACKAGES:
        project = tomllib.loads((ROOT / "packages" / package / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"]
        for text in [*project["dependencies"], *extras.get("headers", []), *extras["test"]]:
            requirement = Requirement(text)
            if requirement.name in PACKAGES:
                continue
            (bound,) = (part.version for part in requirement.specifier if part.operator == ">=")
            marker = f" ; {requirement.marker}" if requirement.marker else ""
            lowest.add(f"{requirement.name}=={bound}{marker}")
    return sorted(lowest)
