"""The doctor: ``python -m numba_hip`` tells what is installed and works here, what does not, and what to do.

This process looks at what is installed; another one, of `doctor_probe`, imports and runs it. So a library that fails,
ends the process that loads it, or never answers is a line of the report like any other. This module imports nothing but
the standard library for the same reason.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from typing import Any, Literal

from numba_hip.installed_packages import distribution, version

Verdict = Literal["ok", "note", "missing", "problem"]
"""``missing`` is what kernels can do without; only a ``problem`` makes the exit status 1."""

TITLE = "__HIP Information__"
OUR_PACKAGES = ("numba-hip-core", "hip-runtime", "hip-devicelib")
NUMBA_PACKAGES = ("numba", "llvmlite", "numpy")
OPTIONAL_PACKAGES = {
    "numba-hip-cuda-compat": "runs programs that import numba.cuda: pip install numba-hip-cuda-compat",
    "hip-python": "drives AMD GPUs: pip install 'numba-hip-core[rocm_7_2_0]', with the release of your ROCm",
}
"""Packages that not everybody needs: what for, and how to install them."""

CONFLICTING = "numba-hip"
"""AMD's package, which brings a ``numba/hip`` of its own."""

PATIENCE = 120.0
"""Seconds after which a probe that has not ended is given up."""


@dataclass(frozen=True)
class Check:
    """One line of the report. ``detail`` says what was found, and what to do about it."""

    name: str
    verdict: Verdict
    detail: str


def examine(patience: float = PATIENCE) -> list[Check]:
    """Check the installation, and in another process whether it works."""
    return [*_check_python(), *_check_packages(), *_check_requirements(), *_check_variables(), *_run_probe(patience)]


def _check_python() -> Iterator[Check]:
    found = f"{platform.python_version()} on {platform.platform()}"
    if platform.python_implementation() != "CPython":
        yield Check("Python", "problem", f"{found} is {platform.python_implementation()}: Numba needs CPython")
    elif sys.platform != "linux":
        yield Check("Python", "problem", f"{found}: ROCm and these packages need Linux")
    else:
        yield Check("Python", "ok", f"{found}, {sys.executable}")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        yield Check("free threading", "note", "this build of Python was never tried with these packages")


def _check_packages() -> Iterator[Check]:
    for name in (*OUR_PACKAGES, *NUMBA_PACKAGES):
        try:
            yield Check(name, "ok", version(name))
        except PackageNotFoundError:
            yield Check(name, "problem", f"not installed: pip install {name}")
    for name, purpose in OPTIONAL_PACKAGES.items():
        try:
            yield Check(name, "ok", version(name))
        except PackageNotFoundError:
            yield Check(name, "missing", f"not installed; it {purpose}")
    try:
        conflicting = version(CONFLICTING)
    except PackageNotFoundError:
        return
    advice = f"pip uninstall {CONFLICTING}, then pip install --force-reinstall --no-deps numba-hip-core"
    yield Check(CONFLICTING, "problem", f"{conflicting} is another package that has numba.hip: {advice}")


def _check_requirements() -> Iterator[Check]:
    """Of what our packages say they need: releases that are installed and not those.

    Needs the package packaging, which most environments have; without it, only the probe shows what does not fit.
    """
    try:
        from packaging.requirements import Requirement
    except ImportError:
        return
    for package in OUR_PACKAGES:
        try:
            needed = [Requirement(text) for text in distribution(package).requires or ()]
        except PackageNotFoundError:
            continue
        for one in needed:
            if one.marker is not None and not one.marker.evaluate({"extra": ""}):
                continue
            advice = f"{package} needs {one.name}{one.specifier}: pip install '{one.name}{one.specifier}'"
            try:
                found = version(one.name)
            except PackageNotFoundError:
                if one.name not in (*OUR_PACKAGES, *NUMBA_PACKAGES):  # these were told of already
                    yield Check(one.name, "problem", f"not installed, and {advice}")
                continue
            if not one.specifier.contains(found, prereleases=True):
                yield Check(one.name, "problem", f"{found} is installed, and {advice}")


def _check_variables() -> Iterator[Check]:
    for name, value in sorted(os.environ.items()):
        if name.startswith("NUMBA_HIP"):
            yield Check(f"{name}={value}", "ok", "set in the environment")


def _run_probe(patience: float) -> Iterator[Check]:
    """What the other process tells, and how it ended if not well."""
    script = str(Path(__file__).with_name("doctor_probe.py"))
    command = [sys.executable, "-c", f"import runpy; runpy.run_path({script!r}, run_name='__main__')"]
    pipe, late = subprocess.PIPE, False
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            printed, complaints = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            late = True
            process.kill()
            printed, complaints = process.communicate()
    stage = "the probe"
    for told in _read_lines(printed):
        if "stage" in told:
            stage = told["stage"]
        else:
            yield Check(told["name"], told["verdict"], told["detail"])
    if late:
        yield Check(stage, "problem", f"did not end within {patience:g} s, and was ended")
    elif process.returncode < 0:
        yield Check(stage, "problem", f"ends the process, by signal {-process.returncode}")
    elif process.returncode:
        words = complaints.strip().splitlines() or ["nothing was printed"]
        yield Check(stage, "problem", f"ends the process, with status {process.returncode}: {words[-1]}")


def _read_lines(printed: str) -> Iterator[dict[str, Any]]:
    """The lines that the probe printed, without those of libraries that print."""
    for line in printed.splitlines():
        try:
            told = json.loads(line)
        except ValueError:
            continue
        if isinstance(told, dict):
            yield told


def main(arguments: Sequence[str] = ()) -> int:
    """Print the report. The exit status is 0 if nothing is wrong, 1 if there is a problem, 2 for wrong usage."""
    parser = argparse.ArgumentParser(
        prog="python -m numba_hip",
        description="What is installed here and works, what does not, and what to do. "
        "`python -m numba_hip precompile MODULE` compiles the kernels of a module into the cache.",
    )
    parser.add_argument("--json", action="store_true", help="print the report as JSON")
    parsed = parser.parse_args(list(arguments))
    checks = examine()
    problems = [check for check in checks if check.verdict == "problem"]
    if parsed.json:
        print(json.dumps({"healthy": not problems, "checks": [asdict(check) for check in checks]}, indent=2))
    else:
        print("\n".join([TITLE, *map(_line, checks), "", _summary(problems)]))
    return 1 if problems else 0


def _line(check: Check) -> str:
    return f"{check.verdict:8} {check.name}: {check.detail}"


def _summary(problems: Sequence[Check]) -> str:
    if not problems:
        return "Kernels can be compiled and run here."
    names = ", ".join(dict.fromkeys(check.name for check in problems))
    return f"{len(problems)} problem{'s' * (len(problems) > 1)}: {names}"
