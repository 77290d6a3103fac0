"""``numba.cuda.vector_types``: vector types by name, with their attributes."""

from __future__ import annotations

from typing import NamedTuple

from numba.core import types

from numba_hip.language.vector_types import VECTORS, VectorStub


class VectorType(NamedTuple):
    """A vector type of *num_elements* numbers of type *base_type*. Kernels construct it with *user_facing_object*."""

    name: str
    base_type: types.Type
    num_elements: int
    user_facing_object: VectorStub

    @property
    def attr_names(self) -> tuple[str, ...]:
        """The names of its elements in kernels."""
        return tuple("xyzw"[: self.num_elements])


vector_types = {
    stub.kind.name: VectorType(stub.kind.name, stub.kind.base, stub.kind.count, stub)
    for stub in VECTORS.values()
    if stub.kind.base != types.float16  # no vectors of these in `numba.cuda`
}
"""Each type once, by its own name. Its other names are in ``user_facing_object.aliases``."""
