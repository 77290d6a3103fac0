"""The releases of numba-hip-core that this package works with, checked before anything of it is used."""

import numba_hip
from hip_devicelib.layer_versions import check_layer

REQUIREMENT = "numba-hip-core>=0.2,<0.3"
"""The requirement of pyproject.toml."""

check_layer("numba-hip-cuda-compat", numba_hip, REQUIREMENT)
