"""The interface between compiled kernels and the driver: launch frame, work item, intrinsics, fault codes."""
