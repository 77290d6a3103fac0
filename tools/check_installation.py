"""Checks an environment in which the four wheels were just installed, or just uninstalled.

``python tools/check_installation.py installed|uninstalled``, run by the Python of that environment; used by
``nox -s build``.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

DISTRIBUTIONS = ("hip-devicelib", "hip-runtime", "numba-hip-core", "numba-hip-cuda-compat")
MODULES = ("hip_devicelib", "hip_runtime", "numba_hip", "numba_hip_cuda")
SITE = Path(sysconfig.get_path("purelib"))
README = Path(__file__).parents[1] / "README.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n+```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def check_installed() -> None:
    """Everything comes from this environment, under both names, with types, and with the requested hip-python."""
    for module in MODULES:
        spec = importlib.util.find_spec(module)
        assert spec, f"{module} is not installed"
        folder = Path(str(spec.origin)).parent
        assert folder == SITE / module, f"{module} comes from {folder}, not from {SITE}"
        assert (folder / "py.typed").exists(), f"{module} lacks its py.typed"
    assert (SITE / "numba" / "hip" / "__init__.py").exists(), "numba/hip is not installed beside Numba"
    assert not importlib.util.find_spec("clang"), "libclang is there, which is for an extra alone"
    code = "import numba.hip, numba_hip; from numba import hip; assert hip is numba_hip is numba.hip"
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)
    subprocess.run([sys.executable, "-m", "numba_hip"], check=True)
    run_example()
    expected = "6.2." if sys.version_info < (3, 12) else "6.3."
    assert version("hip-python").startswith(expected), f"rocm_6_1_2 brought hip-python {version('hip-python')}"
    print("installed:", ", ".join(f"{name} {version(name)}" for name in (*DISTRIBUTIONS, "hip-python")))
    print(f"they take {size_of(DISTRIBUTIONS):.1f} MB, and all that they need {size_of(dependencies()):.0f} MB")


def run_example() -> None:
    """The README's first example prints the output shown there."""
    found = EXAMPLE.search(README.read_text())
    assert found, f"{README} has no example"
    done = subprocess.run([sys.executable, "-c", found[1]], capture_output=True, text=True, check=False)
    assert done.stdout == found[2], f"the example of the README prints {done.stdout!r}: {done.stderr}"


def dependencies() -> set[str]:
    """The names of our distributions and, without extras, of all their dependencies."""
    found: set[str] = set()
    waiting = [*DISTRIBUTIONS]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            needed = [text for text in distribution(name).requires or () if "extra ==" not in text]
            waiting += [re.split(r"[^\w.-]", text, maxsplit=1)[0] for text in needed]
    return found


def size_of(names: Iterable[str]) -> float:
    """The size of the distributions *names* in megabytes."""
    files = [Path(str(file.locate())) for name in names for file in distribution(name).files or ()]
    return sum(file.stat().st_size for file in files if file.exists()) / 1e6


def check_uninstalled() -> None:
    """No file, folder or name is left, and Numba works as before."""
    for name in DISTRIBUTIONS:
        try:
            raise AssertionError(f"{name} {version(name)} is still there")
        except PackageNotFoundError:
            pass
    for module in (*MODULES, "numba.hip"):
        assert importlib.util.find_spec(module) is None, f"{module} can still be imported"
    left = [path for name in (*MODULES, "numba/hip") for path in SITE.glob(name)]
    left += [path for name in DISTRIBUTIONS for path in SITE.glob(f"*{name.replace('-', '_')}*")]
    assert not left, f"left behind: {left}"
    import numba

    assert numba.njit(lambda x: x + 1)(1) == 2
    print("uninstalled: nothing is left")


if __name__ == "__main__":
    {"installed": check_installed, "uninstalled": check_uninstalled}[sys.argv[1]]()
