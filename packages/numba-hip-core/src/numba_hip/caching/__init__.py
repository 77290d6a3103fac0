"""Compiled kernels from one process to the next, and what tells whether they still hold."""
