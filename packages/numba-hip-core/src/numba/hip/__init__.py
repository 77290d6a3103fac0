"""``numba.hip``, another name of `numba_hip`: whoever imports this module gets that one."""

import sys

import numba_hip

# The import system hands out what it finds here once this file has run, and sets it as the attribute of `numba`.
sys.modules[__name__] = numba_hip
