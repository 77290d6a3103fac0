"""Tests of kernels run on the device that NUMBA_HIP_DEVICE names, the CPU device where it names none."""

import os

os.environ.setdefault("NUMBA_HIP_DEVICE", "cpu")
