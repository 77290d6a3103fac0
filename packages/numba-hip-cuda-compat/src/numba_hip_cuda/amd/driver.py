"""Names of AMD's ``numba.hip.hipdrv.driver`` that numba-cuda's driver no longer has."""

USE_NV_BINDING = True
"""Whether handles of streams and the like are Python integers rather than `ctypes` objects. They are."""
