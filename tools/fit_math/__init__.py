"""Fits the polynomials and splits the constants of the CPU device's math, and writes them as a Python module."""
