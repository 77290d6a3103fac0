"""What ``numba.hip.hipdrv.driver`` of AMD's numba-hip has, and that of numba-cuda by now has not."""

USE_NV_BINDING = True
"""Whether handles of streams and the like are plain numbers to `int`, rather than numbers of `ctypes`: they are."""
