"""From a Python function to code for a device: Numba's passes, LLVM modules, linking, what a kernel takes."""
