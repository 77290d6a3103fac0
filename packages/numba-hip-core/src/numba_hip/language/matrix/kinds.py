"""The types of fragments: small matrices that the lanes of a wave have together."""

from __future__ import annotations

from functools import cache

from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model

from hip_devicelib.matrix_instructions import MatrixInstruction, known_instructions
from numba_hip.bfloat import bfloat16
from numba_hip.errors import MatrixError
from numba_hip.float8 import FLOAT8

A, B, ACCUMULATOR = "a", "b", "accumulator"
ROLES = (A, B, ACCUMULATOR)

MOST_DEPTH = 128
"""The most that k of a fragment can be: a lane has all its elements in registers."""

ELEMENTS: dict[str, types.Type] = {
    "int8": types.int8, "int32": types.int32, "float16": types.float16, "float32": types.float32,
    "float64": types.float64, "bfloat16": bfloat16, **FLOAT8,
}  # fmt: skip
"""The element types that some GPU multiplies, or adds up in, by their names."""


class Fragment(types.Type):
    """The Numba type. A value is the address of the elements of the lane, in memory of its own, which LLVM keeps in
    registers."""

    def __init__(self, role: str, shape: tuple[int, int, int], dtype: types.Type) -> None:
        self.role, self.dims, self.dtype = role, shape, dtype
        """The role in the product, its m, n and k, and the type of the elements."""
        super().__init__(f"fragment({role!r}, {shape}, {dtype})")

    @property
    def rows(self) -> int:
        """The rows of the whole matrix."""
        return self.dims[2] if self.role == B else self.dims[0]

    @property
    def columns(self) -> int:
        """The columns of the whole matrix."""
        return self.dims[2] if self.role == A else self.dims[1]


@register_model(Fragment)
class _AddressModel(models.PrimitiveModel):
    def __init__(self, manager: object, kind: Fragment) -> None:
        super().__init__(manager, kind, ir.IntType(8).as_pointer())


def together(kind: Fragment) -> int:
    """The neighbours along *k* of a *b* that the CPU device and the simulator have together, a row of such after
    another: what processors multiply in one instruction."""
    if kind.role != B:
        return 1
    return 2 if kind.dtype == bfloat16 else 4 if kind.dtype == types.int8 else 1


def can_multiply(one: MatrixInstruction, shape: tuple[int, int, int]) -> bool:
    """Whether *one* multiplies matrices of *shape*, where k may take it several times."""
    return one.shape[:2] == shape[:2] and shape[2] % one.shape[2] == 0


def takes(one: MatrixInstruction, kind: Fragment) -> bool:
    """Whether *kind* can be an operand of *one*."""
    of_role = {A: one.a, B: one.b, ACCUMULATOR: one.accumulator}[kind.role]
    return of_role == str(kind.dtype) and can_multiply(one, kind.dims)


def check_kind(kind: Fragment) -> None:
    """Raise `MatrixError` for a fragment that no GPU has."""
    depth = kind.dims[2]
    if str(kind.dtype) not in ELEMENTS:
        raise MatrixError(f"hip.matrix.fragment: dtype is {kind.dtype}; matrix cores take {', '.join(ELEMENTS)}")
    if depth > MOST_DEPTH:
        raise MatrixError(f"hip.matrix.fragment: shape is {kind.dims}; its last extent, k, can be {MOST_DEPTH} at most")
    if depth < 1 or not any(takes(one, kind) for one in known_instructions()):
        raise MatrixError(
            f"hip.matrix.fragment: no GPU has a fragment {kind.role!r} of shape (m, n, k) = {kind.dims} and "
            f"{kind.dtype}; there are {describe(known_instructions(), kind)}"
        )


def check_operands(d: Fragment, a: Fragment, b: Fragment, c: Fragment) -> None:
    """Raise `MatrixError` unless the fragments of a product ``d = a @ b + c`` fit one another."""
    for name, kind, role in (("d", d, ACCUMULATOR), ("a", a, A), ("b", b, B), ("c", c, ACCUMULATOR)):
        if kind.role != role:
            raise MatrixError(f"hip.matrix.mma: {name} has to be a fragment of role {role!r}, not {kind}")
        if kind.dims != d.dims:
            raise MatrixError(f"hip.matrix.mma: {name} is {kind}, and d is {d}: the shapes differ")
    if c.dtype != d.dtype:
        raise MatrixError(f"hip.matrix.mma: c is {c}, and d is {d}: the types differ")


def check_product(d: Fragment, a: Fragment, b: Fragment) -> None:
    """Raise `MatrixError` for a product that no GPU has."""
    having = known_instructions()
    if not any(takes(one, a) and takes(one, b) and takes(one, d) for one in having):
        raise MatrixError(f"hip.matrix.mma: no GPU has a {describe_product(d, a, b)}; there are {describe(having, a)}")


def describe_product(d: Fragment, a: Fragment, b: Fragment) -> str:
    """What a call of `mma` asks for."""
    return f"product of {a.dtype} and {b.dtype} added up in {d.dtype} with shape {a.dims}"


@cache
def describe(having: tuple[MatrixInstruction, ...], kind: Fragment | None = None) -> str:
    """What the instructions *having* multiply; only those with the type of *kind* in its role, if there are any."""
    if kind is not None:
        of_type = tuple(one for one in having if str(kind.dtype) == _named(one, kind.role))
        having = of_type or having
    least: dict[tuple[str, str, int], int] = {}
    for one in having:
        key = (f"{one.a} @ {one.b} + {one.accumulator}", f"{one.shape[0]}, {one.shape[1]}", 0)
        least[key] = min(one.shape[2], least.get(key, MOST_DEPTH))
    parts = [f"{types_} in shapes ({sides}, multiples of {k})" for (types_, sides, _), k in least.items()]
    return "; ".join(parts) or "none"


def _named(one: MatrixInstruction, role: str) -> str:
    return {A: one.a, B: one.b, ACCUMULATOR: one.accumulator}[role]
