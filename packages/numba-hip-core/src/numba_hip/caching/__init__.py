"""Compiled kernels on disk, and the fingerprints that decide whether they are still valid."""
