"""Annotated parameters as a signature, as in `numba_cuda_mlir`."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.typing import Signature
from numba.core.typing.ctypes_utils import from_ctypes
from numba.core.typing.templates import signature
from numba.np.numpy_support import from_dtype


def annotated_signature(function: Callable[..., Any]) -> Signature | None:
    """The signature that the annotations of *function* give, or None if a parameter has no type as annotation.

    Also None for functions with ``*args``, which have many signatures.
    """
    described = inspect.signature(function)
    if any(one.kind is inspect.Parameter.VAR_POSITIONAL for one in described.parameters.values()):
        return None
    kinds = [annotated_type(one.annotation) for one in described.parameters.values()]
    if not kinds or None in kinds:
        return None
    return signature(annotated_type(described.return_annotation) or types.none, *kinds)


def annotated_type(annotation: Any) -> types.Type | None:
    """The type for *annotation*: a type of Numba, a NumPy scalar type or a `ctypes` type. None for anything else."""
    if isinstance(annotation, types.Type):
        return annotation
    if isinstance(annotation, np.dtype):
        return from_dtype(annotation)
    if not isinstance(annotation, type) or annotation is inspect.Parameter.empty:
        return None
    if issubclass(annotation, np.generic):
        return from_dtype(np.dtype(annotation))
    if issubclass(annotation, ctypes._SimpleCData):
        return from_ctypes(annotation)
    return None
