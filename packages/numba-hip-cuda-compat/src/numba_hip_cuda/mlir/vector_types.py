"""``cuda.vector_types`` of `numba_cuda_mlir`: the types of vectors, each once, and by their names."""

from numba_hip.language.vector_types import VECTORS

VECTOR_TYPES = list(dict.fromkeys(VECTORS.values()))
"""What kernels call for a vector; each has a ``name``, a ``dtype``, a ``shape`` and a ``length``."""

vector_types_by_name = {stub.name: stub for stub in VECTOR_TYPES}
vector_types_by_alias = {alias: stub for stub in VECTOR_TYPES for alias in stub.aliases}
