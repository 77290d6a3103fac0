"""Compilation of a Python function for a device: Numba's passes, LLVM modules, linking, resource usage."""
