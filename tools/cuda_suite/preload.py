"""Imported once, in the process that those of the test modules are forked from: what all of them need.

That saves a second and more of each of 150 modules. Nothing that poses has been imported here, and no test.
"""

import numba.extending  # noqa: F401 - the tests import it
import pytest  # noqa: F401

import numba_hip_cuda  # noqa: F401
from hip_devicelib.codeobject import CPU_TARGET
from numba_hip.compilation.target_registry import compile_target

compile_target(CPU_TARGET)
