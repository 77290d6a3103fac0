"""Function attributes that are pairs of strings, which llvmlite's own set of attributes rejects."""

from __future__ import annotations

from llvmlite import ir


class StringAttributes(ir.values.FunctionAttributes):
    """Function attributes: pairs of strings, and those that LLVM defines by name."""

    def __init__(self, plain: ir.values.FunctionAttributes) -> None:
        super().__init__(tuple(plain))
        self.pairs: dict[str, str] = {}

    def __bool__(self) -> bool:
        return bool(self.pairs) or len(self) > 0  # llvmlite leaves out a set that is false

    def _to_list(self, ret_type: ir.Type) -> list[str]:
        return [*super()._to_list(ret_type), *(f'"{name}"="{value}"' for name, value in sorted(self.pairs.items()))]


def add_attribute(function: ir.Function, name: str, value: str) -> None:
    """Give *function* the attribute ``"name"="value"``."""
    if not isinstance(function.attributes, StringAttributes):
        function.attributes = StringAttributes(function.attributes)
    function.attributes.pairs[name] = value
