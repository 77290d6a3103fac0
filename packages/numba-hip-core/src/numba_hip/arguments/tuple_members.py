"""Tuples and named tuples with other members in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def with_members(value: tuple[Any, ...], made: Callable[[Any], Any]) -> tuple[Any, ...]:
    """*value* with what *made* makes of each member; *value* itself where all of them stay what they are."""
    members = [made(member) for member in value]
    if all(member is given for member, given in zip(members, value, strict=True)):
        return value
    return value._make(members) if hasattr(value, "_make") else tuple(members)
