"""The releases of hip-devicelib that this package works with, checked before it is used."""

import hip_devicelib
from hip_devicelib.layer_versions import check_layer

REQUIREMENT = "hip-devicelib>=0.2,<0.3"
"""The requirement of pyproject.toml."""

check_layer("hip-runtime", hip_devicelib, REQUIREMENT)
