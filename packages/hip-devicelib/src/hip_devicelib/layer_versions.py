"""Checks that each package finds a compatible release of the package beneath it.

pip ensures that if it installs them together. Installing without dependencies, or two environments in one
``PYTHONPATH``, can lead to other combinations, whose errors would appear wherever something is missing first.
"""

from __future__ import annotations

from itertools import takewhile
from types import ModuleType


def check_layer(package: str, module: ModuleType, requirement: str) -> None:
    """Raise `ImportError` unless *module* is a release that *package* works with.

    *requirement* is the one of its pyproject.toml, such as ``hip-devicelib>=0.2,<0.3``.
    """
    _, _, bounds = requirement.partition(">=")
    floor, _, ceiling = bounds.partition(",<")
    if not _numbers(floor) <= _numbers(module.__version__) < _numbers(ceiling):
        raise ImportError(
            f"{package} needs {requirement}, and {module.__version__} is what it found, in {module.__file__}: "
            f"pip install '{requirement}'",
            name=module.__name__,
            path=module.__file__,
        )


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of a release: (0, 2, 0) of ``0.2.0rc1``."""
    digits = ("".join(takewhile(str.isdigit, part)) for part in version.split("."))
    return tuple(int(number) for number in takewhile(bool, digits))
