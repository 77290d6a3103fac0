"""What the types that Numba inferred say: float32 values that become float64, and private arrays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from numba.core import ir, types

from hip_runtime.said_names import our
from numba_hip.explanation.model import Promotion
from numba_hip.language.array_allocation import constant_shape

_LOCAL_ARRAY = "local.array of hip"
_DEEPEST = 6
"""Through how many assignments a value is followed."""


@dataclass(frozen=True)
class TypedFunction:
    """A function as Numba typed it. *called_from* are the places, as ``file:line``, at which the kernel calls it,
    directly or not; none for the kernel itself."""

    blocks: Mapping[int, ir.Block]
    typemap: Mapping[str, types.Type]
    calltypes: Mapping[Any, Any]
    called_from: frozenset[str] = frozenset()

    def assignments(self) -> Iterator[ir.Assign]:
        """All of them, in the order of the source."""
        for _, block in sorted(self.blocks.items()):
            yield from block.find_insts(ir.Assign)

    def definitions(self, name: str) -> Iterator[Any]:
        """What the variable *name* is assigned."""
        for one in self.assignments():
            if one.target.name == name:
                yield one.value

    def places(self, loc: ir.Loc) -> frozenset[str]:
        """Where code of the line *loc* can be in the kernel: at the line itself, or at calls of this function."""
        return self.called_from | {f"{loc.filename}:{loc.line}"}


@dataclass(frozen=True)
class DeclaredArray:
    """A call of ``hip.local.array``."""

    name: str
    shape: tuple[int, ...]
    dtype: types.Type
    loc: ir.Loc
    places: frozenset[str]


def typed_functions(annotation: Any) -> Iterator[TypedFunction]:
    """The kernel with Numba's *annotation*, and the functions that it calls and that are compiled by themselves."""
    seen: set[int] = set()
    waiting = [TypedFunction(annotation.blocks, annotation.typemap, annotation.calltypes)]
    while waiting:
        function = waiting.pop()
        yield function
        for one in function.assignments():
            callee = _annotation_of_callee(function, one.value)
            if callee is not None and id(callee) not in seen:
                seen.add(id(callee))
                places = function.called_from or function.places(one.loc)
                waiting.append(TypedFunction(callee.blocks, callee.typemap, callee.calltypes, places))


def _annotation_of_callee(function: TypedFunction, value: Any) -> Any:
    if not isinstance(value, ir.Expr) or value.op != "call":
        return None
    kind = function.typemap.get(value.func.name)
    if not isinstance(kind, types.Dispatcher):
        return None
    signature = function.calltypes[value]
    compiled = getattr(kind.dispatcher, "overloads", {}).get(tuple(signature.args))
    return getattr(compiled, "type_annotation", None)


def find_promotions(function: TypedFunction, converted: frozenset[str] | None) -> Iterator[Promotion]:
    """Where a float32 takes part in an operation on float64, as far as code for that is left: *converted* are the
    places, as ``file:line``, of conversions in the code; None if that is not known."""
    seen: set[tuple[str, int]] = set()
    for one in function.assignments():
        place = (one.loc.filename, one.loc.line)
        if place in seen or (converted is not None and function.places(one.loc).isdisjoint(converted)):
            continue
        promotion = _promotion_in(function, one)
        if promotion is not None:
            seen.add(place)
            yield promotion


def _promotion_in(function: TypedFunction, one: ir.Assign) -> Promotion | None:
    value = one.value
    signature = function.calltypes.get(value) if isinstance(value, ir.Expr) else None
    if signature is None or value.op not in ("binop", "inplace_binop", "call"):
        return None
    operands = [value.lhs, value.rhs] if value.op != "call" else list(value.args)
    pairs = list(zip(operands, signature.args, strict=False))
    narrow = [operand for operand, kind in pairs if _is_promoted(function, operand, kind)]
    if not narrow:
        return None
    others = [operand for operand, _ in pairs if operand not in narrow]
    cause, instead = _explain(function, others)
    return Promotion(one.loc.filename, one.loc.line, f"{_spell(function, narrow[0])} is a float32{cause}", instead)


def _is_promoted(function: TypedFunction, operand: ir.Var, kind: types.Type) -> bool:
    return bool(kind == types.float64 and types.unliteral(function.typemap[operand.name]) == types.float32)


def _explain(function: TypedFunction, others: list[ir.Var]) -> tuple[str, str]:
    """Why values are converted that meet *others*, and what to do."""
    for other in others:
        kind = types.unliteral(function.typemap[other.name])
        constant = _constant_behind(function, other)
        shown = _spell(function, other)
        if isinstance(kind, types.Float) and constant is not None:
            begins = "" if shown == repr(constant) else f", which begins as {constant!r}"
            return f", {shown} a float64{begins}", f"write np.float32({constant!r})"
        if kind == types.float64:
            return f", {shown} a float64", f"pass or make it a float32: np.float32({shown})"
        if isinstance(kind, types.Integer):
            return (
                f", {shown} an {kind}: together they are computed as float64",
                f"convert the integer: np.float32({shown})",
            )
    return ", and this operation is on float64", "use one for float32"


def _constant_behind(function: TypedFunction, variable: ir.Var, depth: int = 0) -> float | None:
    """The number in the source that *variable* is, or begins as."""
    for value in function.definitions(variable.name):
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)) and isinstance(value.value, (int, float)):
            return value.value
        followed = [value] if isinstance(value, ir.Var) else []
        if isinstance(value, ir.Expr) and value.op == "phi":
            followed = [one for one in value.incoming_values if isinstance(one, ir.Var)]
        for one in followed if depth < _DEEPEST else ():
            found = _constant_behind(function, one, depth + 1)
            if found is not None:
                return found
    return None


def _spell(function: TypedFunction, variable: ir.Var, depth: int = 0) -> str:
    """*variable* as it stands in the source, as far as that is short."""
    if not variable.name.startswith("$"):
        return str(variable.unversioned_name)
    for value in function.definitions(variable.name):
        if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)):
            return repr(value.value) if isinstance(value, ir.Const) else str(value.name)
        if depth >= _DEEPEST:
            break
        if isinstance(value, ir.Var):
            return _spell(function, value, depth + 1)
        if isinstance(value, ir.Expr):
            return _spell_expression(function, value, depth + 1)
    return "a value"


def _spell_expression(function: TypedFunction, value: ir.Expr, depth: int) -> str:
    if value.op in ("getitem", "static_getitem", "typed_getitem"):
        return f"{_spell(function, value.value, depth)}[...]"
    if value.op == "getattr":
        return f"{_spell(function, value.value, depth)}.{value.attr}"
    if value.op == "call":
        return f"{_spell(function, value.func, depth)}(...)"
    if value.op == "cast":
        return _spell(function, value.value, depth)
    return "what is computed"


def declared_arrays(function: TypedFunction) -> Iterator[DeclaredArray]:
    """The arrays of ``hip.local.array``."""
    for one in function.assignments():
        value = one.value
        if not isinstance(value, ir.Expr) or value.op != "call":
            continue
        if _LOCAL_ARRAY not in str(function.typemap.get(value.func.name)):
            continue
        signature = function.calltypes[value]
        name = _name_of(function, one.target)
        kind = signature.return_type
        extents = constant_shape(our("local.array"), signature.args[0])
        yield DeclaredArray(name, extents, kind.dtype, one.loc, function.places(one.loc))


def _name_of(function: TypedFunction, target: ir.Var) -> str:
    """The name that what *target* holds is given."""
    if not target.name.startswith("$"):
        return str(target.unversioned_name)
    for one in function.assignments():
        if isinstance(one.value, ir.Var) and one.value.name == target.name:
            return _name_of(function, one.target)
    return "an array"


def bytes_of(array: DeclaredArray, context: Any) -> int:
    """The bytes of *array*, for the target *context*."""
    return math.prod(array.shape) * int(context.get_abi_sizeof(context.get_data_type(array.dtype)))
