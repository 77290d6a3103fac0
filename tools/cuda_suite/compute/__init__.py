"""Stand-ins for what NVIDIA's tests of `cuda.compute` import besides it."""
