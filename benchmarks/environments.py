"""Environments for the peers, created by ``python -m benchmarks.environments FOLDER``.

Their contents, or why a peer is not available on this machine, are stored in ``environments.json`` in the folder, which
``python -m benchmarks --environments FOLDER`` reads. An existing environment is kept.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.debian_packages import LIBRARIES, UnavailableError, unpack_packages, write_launcher

ROOT = Path(__file__).resolve().parent.parent
INDEX = "environments.json"
_POCL_VERSION = "import pyopencl; print(pyopencl.get_platforms()[0].version)"

REQUIREMENTS: Mapping[str, tuple[str, ...]] = {
    "opencl-intel": ("pyopencl>=2025", "intel-opencl-rt>=2025", "intel-cmplr-lib-rt>=2025"),
    "opencl-pocl": ("pyopencl>=2025",),
    "taichi": ("taichi>=1.7",),
    "warp": ("warp-lang>=1.6",),
}
"""What is from PyPI of each peer; intel-opencl-rt loads libraries of intel-cmplr-lib-rt without depending on it."""

POCL_SUITE, POCL_PACKAGES = "trixie", ("pocl-opencl-icd", "libstdc++6")
"""PoCL 6 of Debian 13. The one on PyPI is 3.0 of 2022, whose compiler does not know today's processors."""

ON_GPUS = ("hipcc",)
"""Peers that only run on AMD GPUs; ``tools.gpu_report`` creates what they need."""


@dataclass(frozen=True)
class Environment:
    """The Python of a peer's environment, with the environment variables that the peer needs; or why there is none."""

    python: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    packages: Mapping[str, str] = field(default_factory=dict)
    missing: str = ""


class CommandError(Exception):
    """A command that failed, with the end of its output."""


def make(folder: Path) -> dict[str, Environment]:
    """Create the environments of all peers in *folder*; existing ones are kept."""
    folder.mkdir(parents=True, exist_ok=True)
    made = load(folder) if (folder / INDEX).exists() else {}
    for name in REQUIREMENTS:
        if name not in made or made[name].missing:
            made[name] = _make_one(folder.resolve() / name, name)
            print(f"{name}: {made[name].missing or made[name].packages}", flush=True)
        (folder / INDEX).write_text(json.dumps({name: asdict(one) for name, one in made.items()}, indent=1) + "\n")
    return made


def load(folder: Path) -> dict[str, Environment]:
    """The environments in *folder*."""
    return {name: Environment(**fields) for name, fields in json.loads((folder / INDEX).read_text()).items()}


def _make_one(folder: Path, name: str) -> Environment:
    python = folder / "bin" / "python"
    try:
        venv.create(folder, clear=True, with_pip=True)
        _say([str(python), "-m", "pip", "install", "--quiet", "numpy", *REQUIREMENTS[name]])
        listed = json.loads(_say([str(python), "-m", "pip", "list", "--format", "json"]))
        packages = {one["name"]: one["version"] for one in listed if one["name"] not in ("pip", "setuptools")}
        variables = _intel_variables(folder) if name == "opencl-intel" else {}
        if name == "opencl-pocl":
            python, variables = _make_pocl(folder, python)
            packages["pocl"] = _say([str(python), "-c", _POCL_VERSION], variables=variables).strip()
        _probe(str(python), name, variables)
    except (CommandError, UnavailableError, OSError, subprocess.CalledProcessError) as error:
        return Environment(missing=str(error))
    return Environment(str(python), variables, packages)


def _make_pocl(folder: Path, python: Path) -> tuple[Path, dict[str, str]]:
    """A Python that runs with Debian's PoCL, and the variables that say where that is."""
    root = unpack_packages(folder / "debian", POCL_SUITE, POCL_PACKAGES)
    library = min((root / LIBRARIES).glob("libpocl.so.*"))  # the name that does not change with each release
    launcher = python.parent / "pocl-python"
    variables = _select_runtime(folder, "pocl", library)
    write_launcher(root, python, launcher, {})
    return launcher, variables


def _intel_variables(folder: Path) -> dict[str, str]:
    """Where the OpenCL loader finds Intel's runtime: the file in its wheel has a placeholder for the path."""
    return _select_runtime(folder, "intel", folder / "lib" / "libintelocl.so")


def _select_runtime(folder: Path, name: str, library: Path) -> dict[str, str]:
    """The variables with which the OpenCL loader finds *library* and no other runtime."""
    vendors = folder / "vendors"
    vendors.mkdir(exist_ok=True)
    (vendors / f"{name}.icd").write_text(f"{library}\n")
    return {"OCL_ICD_VENDORS": str(vendors)}


def _probe(python: str, name: str, variables: Mapping[str, str]) -> None:
    """Run one small kernel and check it; `CommandError` if that fails."""
    command = [python, "-m", "benchmarks.worker", "saxpy", name, "quick"]
    answers = _say(command, commands="check\nquit\n", variables=variables).splitlines()
    if json.loads(answers[-1]) != {"right": True}:
        raise CommandError(f"computes a wrong saxpy: {answers[-1]}")


def _say(command: list[str], *, commands: str = "", variables: Mapping[str, str] | None = None) -> str:
    result = subprocess.run(
        command, cwd=ROOT, input=commands, capture_output=True, text=True, env={**os.environ, **(variables or {})}
    )
    if result.returncode:
        words = [line.strip() for line in result.stderr.splitlines() if "error" in line.lower()]
        raise CommandError(words[-1] if words else f"ended with status {result.returncode}")
    return result.stdout


if __name__ == "__main__":
    make(Path(sys.argv[1]))
