"""The host API under Numba CUDA's names: devices, contexts, streams and memory."""
