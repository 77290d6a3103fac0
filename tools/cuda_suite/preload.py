"""Modules that all tests need, imported once in the process from which those of the test modules are forked.

This saves more than a second for each of 150 modules. Nothing that poses, and no test, has been imported here.
"""

import numba.extending  # noqa: F401 - the tests import it
import pytest  # noqa: F401

import numba_hip_cuda  # noqa: F401
from hip_devicelib.codeobject import CPU_TARGET
from numba_hip.compilation.target_registry import compile_target

compile_target(CPU_TARGET)
