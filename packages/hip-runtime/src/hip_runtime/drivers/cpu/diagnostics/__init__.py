"""Diagnostics of kernels: source lines, and observers of threads."""
