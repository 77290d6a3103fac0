"""Random kernels, written in Python, that have to give the same in each form of the CPU device and in plain Python."""
