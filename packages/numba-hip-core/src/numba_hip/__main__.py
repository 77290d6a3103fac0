"""``python -m numba_hip``: prints the devices, versions and settings, for a bug report; ``precompile`` fills the cache.

``numba -s`` lists the packages and the ``NUMBA_HIP_*`` variables, but offers targets no way to add to its report.
"""

from __future__ import annotations

import os
import platform
import sys
import warnings
from collections.abc import Iterator, Sequence
from importlib.metadata import PackageNotFoundError

import numba_hip
from hip_runtime.config import misspelt_variables
from numba_hip.installed_packages import version

PACKAGES = (
    "numba-hip-core", "hip-runtime", "hip-devicelib", "numba-hip-cuda-compat", "hip-python", "numba", "llvmlite",
    "numpy",
)  # fmt: skip


def report() -> Iterator[str]:
    """The lines of the report."""
    yield "__HIP Information__"
    yield f"Python: {platform.python_version()} on {platform.platform()}"
    for package in PACKAGES:
        try:
            yield f"{package}: {version(package)}"
        except PackageNotFoundError:
            yield f"{package}: not installed"
    misspelt = misspelt_variables()
    for name, value in sorted(os.environ.items()):
        if name.startswith("NUMBA_HIP"):
            yield f"{name}={value}" + (f" (no setting; {misspelt[name]} is one)" if name in misspelt else "")


def main() -> int:
    """Print the report; the exit status is 0 if there is a device."""
    for line in report():
        print(line)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = numba_hip.detect()
    for warning in caught:
        print(f"note: {warning.message}")
    return 0 if found else 1


def run(arguments: Sequence[str]) -> int:
    """The report, or the command that *arguments* begin with; the exit status."""
    if not arguments:
        return main()
    if arguments[0] == "precompile":
        from numba_hip.precompilation import main as precompile

        return precompile(arguments[1:])
    print(f"no command {arguments[0]!r}; there is: precompile MODULE...", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
