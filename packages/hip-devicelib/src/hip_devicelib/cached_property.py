"""`cached_property` without a lock, as in Python 3.12 and later.

In earlier versions, all objects of a class share a lock while the property is computed, in any thread. In a child that
is forked meanwhile, that lock is never released. Without the lock, two threads may compute the same value.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, TypeVar

__all__ = ["cached_property"]

T = TypeVar("T")

if sys.version_info >= (3, 12):
    from functools import cached_property
else:

    class cached_property(functools.cached_property[T]):
        """Like Python's, without its lock."""

        def __init__(self, func: Callable[[Any], T]) -> None:
            super().__init__(func)
            self.lock = nullcontext()
