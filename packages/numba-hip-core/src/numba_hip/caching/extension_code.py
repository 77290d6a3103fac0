"""Code that a kernel reaches without naming it: what extensions have registered with Numba.

The function of an overload is Python that runs while a kernel is typed. What it refers to, and what it returns, can
come from anywhere; a kernel that is kept has to be compiled anew when any of that changes. Which overloads a kernel
will need is known only when it is compiled, so all count that it can reach.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba_hip._numba.identity import registered_code
from numba_hip.caching.versioned_modules import is_covered, module_of
from numba_hip.language.registry import lowering, typing


def reachable_code(words: set[str], seen: Any) -> Iterator[Any]:
    """Functions and classes of extensions that can be reached from code with *words* as its names and texts, and that
    refers to all objects of which *seen* is true. Those of Numba and of our packages are left out.

    Overloads of functions of Numba, NumPy and Python count always: Numba's own code can call them.
    """
    for subject, code in registered_code([typing], [lowering]):
        if not is_covered(module_of(code)) and _is_reachable(subject, words, seen):
            yield code


def _is_reachable(subject: Any, words: set[str], seen: Any) -> bool:
    if isinstance(subject, str):
        return subject in words or not subject.isidentifier() or subject in OPERATIONS
    if isinstance(subject, type) or not callable(subject):
        return True
    return is_covered(module_of(subject)) or bool(seen(subject))


OPERATIONS = frozenset(
    "getitem setitem static_getitem static_setitem getiter iternext delitem call typed_getitem".split()
)
"""What registries call operations that have no name in the code of a kernel."""
