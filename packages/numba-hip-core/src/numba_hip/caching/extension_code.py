"""Code that a kernel uses without naming it: what extensions have registered with Numba.

The function of an overload is Python code that runs while a kernel is typed. It can refer to anything and return
anything; if any of that changes, a cached kernel has to be compiled anew. Which overloads a kernel needs is only known
once it is compiled, so all that it could reach count.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numba_hip._numba.identity import registered_code
from numba_hip.caching.versioned_modules import is_covered, module_of
from numba_hip.language.registry import lowering, typing


def reachable_code(words: set[str], seen: Any) -> Iterator[Any]:
    """Functions and classes of extensions that code can reach which contains the names and strings *words* and refers
    to the objects for which *seen* is true. Those of Numba and of our packages are left out.

    Overloads of functions of Numba, NumPy and Python always count: Numba's own code can call them.
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
