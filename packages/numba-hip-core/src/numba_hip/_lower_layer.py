"""The releases of hip-runtime that this package works with, checked before it is used."""

import hip_runtime
from hip_devicelib.layer_versions import check_layer

REQUIREMENT = "hip-runtime>=0.2,<0.3"
"""The requirement of pyproject.toml."""

check_layer("numba-hip-core", hip_runtime, REQUIREMENT)
