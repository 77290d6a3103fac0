"""``cuda.vector_types`` of `numba_cuda_mlir`: each vector type once, and by all its names."""

from numba_hip.language.vector_types import VECTORS

VECTOR_TYPES = list(dict.fromkeys(VECTORS.values()))
"""The constructors of vectors in kernels. Each has a ``name``, a ``dtype``, a ``shape`` and a ``length``."""

vector_types_by_name = {stub.name: stub for stub in VECTOR_TYPES}
vector_types_by_alias = {alias: stub for stub in VECTOR_TYPES for alias in stub.aliases}
