"""``numba.cuda.api_util`` and the like: normal forms of shapes, strides, indices and launch configurations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types

from hip_runtime.launch_limits import dim3
from hip_runtime.layout import dense, normalise_shape, normalise_strides

Ints = tuple[int, ...]

missing_launch_config_msg = """
A kernel is launched over a grid: kernel[blocks, threads_per_block](argument, ...)
"""


def prepare_shape_strides_dtype(shape: Any, strides: Any, dtype: Any, order: str) -> tuple[Ints, Ints, np.dtype[Any]]:
    """*shape* and *strides* as tuples of integers, and *dtype*. If strides are missing, they follow from *order*."""
    kind = np.dtype(dtype)
    extents = normalise_shape(shape)
    if strides is None or strides == ():
        return extents, dense(extents, kind.itemsize, order).strides, kind
    return extents, normalise_strides(strides, len(extents)), kind


def normalize_indices(context: Any, builder: Any, indty: Any, inds: Any, aryty: Any, valty: Any) -> tuple[Any, Any]:
    """The type and the values of the indices *inds* as a tuple of ``intp``, one for each axis of an array of
    *valty*."""
    if indty in types.integer_domain:
        indty, values = types.UniTuple(indty, 1), [inds]
    else:
        values = cgutils.unpack_tuple(builder, inds, count=len(indty))
    if aryty.dtype != valty:
        raise TypeError(f"expect {aryty.dtype} but got {valty}")
    if aryty.ndim != len(indty):
        raise TypeError(f"indexing {aryty.ndim}-D array with {len(indty)}-D index")
    return indty, [context.cast(builder, value, kind, types.intp) for kind, value in zip(indty, values, strict=True)]


def normalize_kernel_dimensions(griddim: Any, blockdim: Any) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """Grid and block with three extents each. `hip_runtime.errors.LaunchError` if they are invalid or ``None``."""
    return dim3("griddim", griddim), dim3("blockdim", blockdim)
