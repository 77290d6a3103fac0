"""Stands for numba-cuda's ``core.callconv``: the names that a module of tests imports whether it uses them or not."""

from numba.core.callconv import MinimalCallConv as CUDACallConv

__all__ = ["CUDACallConv"]
