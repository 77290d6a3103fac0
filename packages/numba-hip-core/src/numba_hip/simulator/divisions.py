"""Divisions by zero of NumPy's numbers in the simulator. Those of Python's own raise in any case."""

from __future__ import annotations

import dis

import numpy as np

from numba_hip.simulator.frames import calling_frame

DIVISIONS = {
    *("/", "//", "%", "/=", "//=", "%="),
    *(f"{kind}_{name}" for kind in ("BINARY", "INPLACE") for name in ("TRUE_DIVIDE", "FLOOR_DIVIDE", "MODULO")),
}
"""How `dis` names the operators; the latter in Python 3.10."""


class DivisionByZero(ZeroDivisionError, FloatingPointError):
    """The error of compiled kernels, which is also that of Numba CUDA's simulator."""


def divisions(raising: bool) -> np.errstate:
    """A block without warnings of NumPy's, in which a division of its numbers by zero is a `DivisionByZero` if
    *raising*, and else a number.

    NumPy reports what a processor does: nothing, where infinity or NaN is divided by zero, and of infinity by infinity
    the same as of zero by zero.
    """
    if not raising:
        return np.errstate(all="ignore")
    return np.errstate(all="ignore", divide="call", invalid="call", call=_check)


def _check(kind: str, flags: int) -> None:
    """Raise if the program is at a division, rather than at a logarithm or a difference of infinities."""
    del kind, flags
    frame = calling_frame()
    found = next(one for one in dis.get_instructions(frame.f_code) if one.offset == frame.f_lasti)
    if not DIVISIONS.isdisjoint((found.opname, found.argrepr)):
        raise DivisionByZero("division by zero")
