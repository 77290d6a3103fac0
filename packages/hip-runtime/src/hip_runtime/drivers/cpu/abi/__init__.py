"""What compiled kernels and the driver agree on: the launch frame, the work item, intrinsics, fault codes."""
