"""`cached_property` without a lock, as Python has it from 3.12 on.

Before, all objects of a class share a lock while one of them computes the property, in whatever thread, and a child
that is forked meanwhile has that lock taken for good. Without it two threads may compute the same value.
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
        """As Python's, without its lock."""

        def __init__(self, func: Callable[[Any], T]) -> None:
            super().__init__(func)
            self.lock = nullcontext()
