"""The host's side in Numba CUDA's words: devices, contexts, streams and memory."""
