"""Numba for AMD GPUs: `from numba import hip`."""

from numba_hip import _alias

__version__ = "0.1.0"

_alias.install()
