"""Runs programs written for `numba.cuda` on `numba.hip`.

>>> import numba_hip_cuda
>>> numba_hip_cuda.pose_as_cuda()
>>> from numba import cuda

From a shell: ``python -m numba_hip_cuda script.py arguments``.
"""

# before the imports below, which would fail without an explanation
from numba_hip_cuda import _lower_layer as _lower_layer

# isort: split
import hip_runtime.device
from numba_hip_cuda.pose import PoseError, is_posing, pose_as_cuda, posing, stop_posing

hip_runtime.device.LAYERS.add("numba_hip_cuda")

__all__ = ["PoseError", "is_posing", "pose_as_cuda", "posing", "stop_posing"]
__version__ = "0.2.0"
