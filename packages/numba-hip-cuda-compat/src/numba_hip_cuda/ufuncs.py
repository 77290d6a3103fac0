"""``cuda.vectorize`` and ``cuda.guvectorize``, which also accept *target*."""

from __future__ import annotations

from typing import Any

import numba_hip
from numba_hip.array_functions.guvectorize import GUVectorizeBuilder as CUDAGUFuncVectorize
from numba_hip.array_functions.vectorize import VectorizeBuilder, vectorize_by
from numba_hip.errors import OptionError


class CUDAVectorize(VectorizeBuilder):
    """The builder behind ``numba.vectorize(..., target="cuda")`` while posing."""

    target = "cuda"


def vectorize(ftylist_or_function: Any = (), target: str = "cuda", **options: Any) -> Any:
    """`numba_hip.array_functions.vectorize`; `OptionError` if *target* is neither ``"cuda"`` nor ``"hip"``."""
    _check(target)
    return vectorize_by(CUDAVectorize, ftylist_or_function, **options)


def guvectorize(*signatures: Any, target: str = "cuda", **options: Any) -> Any:
    """`numba_hip.array_functions.guvectorize`; `OptionError` if *target* is neither ``"cuda"`` nor ``"hip"``."""
    _check(target)
    return numba_hip.guvectorize(*signatures, **options)


def _check(target: str) -> None:
    if target not in ("cuda", "hip"):
        raise OptionError(f"target is {target!r}; numba.cuda makes functions for 'cuda', numba.vectorize for others")


__all__ = ["CUDAGUFuncVectorize", "CUDAVectorize", "guvectorize", "vectorize"]
