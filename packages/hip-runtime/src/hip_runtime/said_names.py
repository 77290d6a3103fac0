"""What messages call this library: by the name that the program knows, which is another while a package poses as one.

Where a message is made, it asks for a name here: ``our("shared.array")`` is ``hip.shared.array``, or
``cuda.shared.array`` in a program for `numba.cuda`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple


class Wording(NamedTuple):
    """The words of messages that depend on what the program imported."""

    platform: str
    """What kernels are written for."""
    module: str
    """The module by which the program names this library."""
    has: Callable[[str], bool]
    """Whether that module has a name; the others are said as ours, for programs that use both."""
    variables: Mapping[str, str]
    """Environment variables that stand for some of ours."""


OWN = Wording("HIP", "hip", lambda name: True, {})
"""What a program says that uses `numba.hip`."""

_spoken = [OWN]


def speak(wording: Wording) -> None:
    """Use *wording* from now on; a package that poses as another one calls this, and again with `OWN` at the end."""
    _spoken[0] = wording


def our(name: str = "") -> str:
    """*name* of this library, such as ``jit`` or ``shared.array``, as the program writes it; without, the library."""
    wording = _spoken[0]
    if not name:
        return wording.module
    module = wording.module if wording.has(name.partition(".")[0]) else OWN.module
    return f"{module}.{name}"


def is_ours(text: str) -> bool:
    """Whether *text* begins with a name of this library."""
    return text.partition(".")[0] in (OWN.module, _spoken[0].module)


def platform() -> str:
    """What the program's kernels are written for, as it calls that."""
    return _spoken[0].platform


def our_variable(name: str) -> str:
    """The environment variable *name*, or the one that the program's users know for it."""
    return _spoken[0].variables.get(name, name)
