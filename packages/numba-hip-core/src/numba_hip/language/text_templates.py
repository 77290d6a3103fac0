"""Text with places for values, which `print` in kernels takes: what f-strings and formats are made into.

A kernel makes no text. What it prints are the template and the values; the host formats these with Python itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model, typeof_impl

from numba_hip.language.registry import lowering


@dataclass(frozen=True)
class ReplacementField:
    """A place for a value: the *spec* that it is formatted with, as of `format` or, with a %, of the operator %; None
    for what `str` makes of it."""

    spec: str | None
    percent: bool = False


@dataclass(frozen=True)
class TextTemplate:
    """Constant text and places, in their order."""

    pieces: tuple[str | ReplacementField, ...]


class TemplateType(types.Opaque):
    """The type of a template, which is a constant."""

    def __init__(self, template: TextTemplate) -> None:
        self.template = template
        super().__init__(name=f"text({template.pieces!r})")


register_model(TemplateType)(models.OpaqueModel)


@typeof_impl.register(TextTemplate)
def _typeof_template(value: TextTemplate, context: Any) -> TemplateType:
    del context
    return TemplateType(value)


@lowering.lower_constant(TemplateType)
def _no_value(context: Any, builder: ir.IRBuilder, kind: types.Type, template: TextTemplate) -> ir.Value:
    return context.get_dummy_value()
