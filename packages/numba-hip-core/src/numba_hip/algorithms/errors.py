"""Errors of algorithms."""

from __future__ import annotations

from numba_hip.errors import HipError


class AlgorithmError(HipError, TypeError, ValueError):
    """An argument of an algorithm that it cannot work with: its name, what it is, and what it can be."""
