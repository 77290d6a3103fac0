"""DWARF descriptions of Numba's types: LLVM's metadata for the types of variables.

The offsets of structure members come from the target's data layout. Sizes and offsets in the metadata are in bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types

BITS = 8
ARRAY_MEMBERS = frozenset({"nitems", "itemsize", "data", "shape", "strides"})
"""What of an array means something in a kernel: nothing is allocated there, so that no object owns its memory."""


class TypeDescriber:
    """Describes types in one *module*, each once, for the target of *context*."""

    def __init__(self, module: ir.Module, context: Any) -> None:
        self._module = module
        self._context = context
        self._known: dict[types.Type, ir.DIValue] = {}

    def describe(self, kind: types.Type) -> ir.DIValue:
        """The metadata of *kind*; a type that does not consist of numbers is described as an array of bytes."""
        found = self._known.get(kind)
        if found is None:
            found = self._known[kind] = self._describe(kind)
        return found

    def _describe(self, kind: types.Type) -> ir.DIValue:
        if isinstance(kind, types.Boolean):
            return self._number("bool", 1, "boolean")
        if isinstance(kind, types.Integer):
            return self._number(kind.name, kind.bitwidth // BITS, "signed" if kind.signed else "unsigned")
        if isinstance(kind, types.Float):
            return self._number(kind.name, kind.bitwidth // BITS, "float")
        if isinstance(kind, types.Literal):
            return self.describe(kind.literal_type)
        if isinstance(kind, types.CPointer):
            return self._add("DIDerivedType", tag="pointer_type", baseType=self.describe(kind.dtype), size=64)
        if isinstance(kind, types.UniTuple):
            return self._row(str(kind), self.describe(kind.dtype), kind.count, self._size(kind))
        if isinstance(self._context.get_value_type(kind), ir.IntType):
            return self._number(str(kind), self._size(kind), "signed")
        model = self._context.data_model_manager[kind]
        names, members = getattr(model, "_fields", ()), getattr(model, "_members", ())
        if not names or not isinstance(model.get_value_type(), ir.LiteralStructType):
            return self._row(str(kind), self._number("byte", 1, "unsigned_char"), self._size(kind), self._size(kind))
        return self._structure(str(kind), kind, names, members)

    def _structure(self, name: str, kind: types.Type, names: Sequence[str], kinds: Sequence[types.Type]) -> ir.DIValue:
        members, end = [], 0
        for member, member_kind in zip(names, kinds, strict=True):
            storage = self._context.get_value_type(member_kind)
            alignment = int(self._context.get_abi_alignment(storage))
            start = -(-end // alignment) * alignment
            size = self._size(member_kind)
            end = start + size
            if isinstance(kind, types.Array) and member not in ARRAY_MEMBERS:
                continue
            base = self.describe(member_kind)
            members.append(
                self._add(
                    "DIDerivedType", tag="member", name=member, baseType=base, size=BITS * size, offset=BITS * start
                )
            )
        elements = self._module.add_metadata(members)
        return self._add(
            "DICompositeType", tag="structure_type", name=name, size=BITS * self._size(kind), elements=elements
        )

    def _row(self, name: str, element: ir.DIValue, count: int, size: int) -> ir.DIValue:
        elements = self._module.add_metadata([self._add("DISubrange", count=count)])
        return self._add(
            "DICompositeType", tag="array_type", name=name, baseType=element, size=BITS * size, elements=elements
        )

    def _number(self, name: str, size: int, encoding: str) -> ir.DIValue:
        return self._add("DIBasicType", name=name, size=BITS * size, encoding=ir.DIToken(f"DW_ATE_{encoding}"))

    def _size(self, kind: types.Type) -> int:
        return int(self._context.get_abi_sizeof(self._context.get_value_type(kind)))

    def _add(self, node: str, *, tag: str | None = None, **operands: Any) -> ir.DIValue:
        tagged = operands if tag is None else {"tag": ir.DIToken(f"DW_TAG_{tag}"), **operands}
        return self._module.add_debug_info(node, tagged)
