"""``cuda.atomic`` of `numba_cuda_mlir`: as in `numba_hip`, but `max` and `min` ignore NaN."""

from numba_hip.language.atomic import add, and_, cas, compare_and_swap, dec, exch, inc, nanmax, nanmin, or_, sub, xor

max = nanmax
min = nanmin

__all__ = [
    "add", "and_", "cas", "compare_and_swap", "dec", "exch", "inc", "max", "min", "nanmax", "nanmin", "or_", "sub",
    "xor",
]  # fmt: skip
