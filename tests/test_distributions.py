"""The four distributions fit each other, and the metadata says what it should."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import distribution, version
from itertools import pairwise
from pathlib import Path

import numba
import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import hip_devicelib
import hip_runtime
import numba_hip
import numba_hip_cuda

ROOT = Path(__file__).parents[1]
MODULES = {
    "hip-devicelib": hip_devicelib,
    "hip-runtime": hip_runtime,
    "numba-hip-core": numba_hip,
    "numba-hip-cuda-compat": numba_hip_cuda,
}
WITH_ROCM = ("hip-runtime", "numba-hip-core")


def requirements(package: str) -> list[Requirement]:
    return [Requirement(text) for text in distribution(package).requires or ()]


def extra(package: str, name: str, python: str) -> list[str]:
    """What the extra *name* adds under a version of Python."""
    environment = {"python_version": python, "extra": name}
    return sorted(
        f"{requirement.name}{requirement.specifier}"
        for requirement in requirements(package)
        if requirement.marker and "extra" in str(requirement.marker) and requirement.marker.evaluate(environment)
    )


@pytest.mark.parametrize("package", MODULES)
def test_versions_are_those_of_the_modules(package: str) -> None:
    assert version(package) == MODULES[package].__version__
    changes = (ROOT / "packages" / package / "CHANGELOG.md").read_text()
    assert f"## {MODULES[package].__version__}" in changes


def test_each_depends_on_those_beneath_it_only() -> None:
    packages = list(MODULES)
    for place, package in enumerate(packages):
        ours = [requirement for requirement in requirements(package) if requirement.name in packages]
        needs = {requirement.name for requirement in ours if "extra" not in str(requirement.marker)}
        assert needs == set(packages[max(place - 1, 0) : place])
        for requirement in ours:
            # An extra may ask for those further down, and for another extra of its own package.
            assert requirement.name in packages[: place + 1]
            assert Version(version(requirement.name)) in requirement.specifier


@pytest.mark.parametrize(("package", "lower"), list(pairwise(reversed(MODULES))))
def test_what_is_checked_on_import_is_what_pip_is_told(package: str, lower: str) -> None:
    module = import_module(f"{MODULES[package].__name__}._lower_layer")
    assert Requirement(module.REQUIREMENT) in requirements(package)
    change = f"import {MODULES[lower].__name__} as lower; lower.__version__ = '0.1.7'"
    command = (sys.executable, "-c", f"{change}; import {MODULES[package].__name__}")
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr.splitlines()[-1].startswith(f"ImportError: {package} needs {module.REQUIREMENT}, and 0.1.7 is")


@pytest.mark.parametrize("package", MODULES)
def test_the_licence_is_the_same_everywhere_and_comes_along(package: str) -> None:
    text = (ROOT / "LICENSE").read_text()
    assert text.startswith("MIT License")
    assert (ROOT / "packages" / package / "LICENSE").read_text() == text
    metadata = distribution(package).metadata
    assert "MIT" in (metadata.get("License-Expression"), metadata.get("License"))


@pytest.mark.parametrize("package", WITH_ROCM)
def test_extras_are_spelt_as_documented(package: str) -> None:
    """With underscores: pip before 23.3 compares them letter by letter."""
    extras = distribution(package).metadata.get_all("Provides-Extra")
    rocm = [name for name in extras if name.startswith("rocm")]
    assert {"rocm_6_1_2", "rocm_6_2_0", "rocm_7_2_2", "rocm_10_0_0"} <= set(rocm)
    assert all(re.fullmatch(r"rocm_\d+_\d+_\d+", name) for name in rocm)


@pytest.mark.parametrize("package", WITH_ROCM)
@pytest.mark.parametrize("python", ["3.10", "3.11", "3.12", "3.13", "3.14"])
def test_an_extra_brings_the_hip_python_of_its_rocm(package: str, python: str) -> None:
    series = ["hip-python<6.3,>=6.2.0.499.16"] if python in ("3.10", "3.11") else ["hip-python<6.4,>=6.3"]
    assert extra(package, "rocm_6_1_2", python) == series
    assert extra(package, "rocm_6_2_0", python) == series
    assert extra(package, "rocm_6_4_1", python) == ["hip-python==6.4.1.*"]
    assert extra(package, "rocm_10_0_0", python) == ["hip-python==10.0.0.*"]


def test_both_packages_have_the_same_extras() -> None:
    runtime, core = (
        {str(requirement) for requirement in requirements(package) if "rocm-" in str(requirement.marker)}
        for package in WITH_ROCM
    )
    assert len(runtime) == 22
    assert runtime == core


def test_numba_hip_is_installed_beside_numba() -> None:
    files = [str(file) for file in distribution("numba-hip-core").files or ()]
    assert "numba/hip/__init__.py" in files
    installed = Path(str(distribution("numba-hip-core").locate_file("numba/hip/__init__.py")))
    assert installed.read_text() == (ROOT / "packages/numba-hip-core/src/numba/hip/__init__.py").read_text()
    assert installed.parents[1] == Path(numba.__file__).parent


def test_the_readme_and_the_run_of_everything_agree() -> None:
    run = (ROOT / ".ci" / "run").read_text()
    readme = (ROOT / "README.md").read_text()
    assert "python3 -m pip install nox uv && python3 -m nox -s tests" in run
    assert "python3 -m pip install nox uv && python3 -m nox -s tests" in readme
    assert "python3 -m pip install nox uv && python3 -m nox -s demo" in readme
