"""HIP's device functions as frozen values: the declarations of a header, and the C ABI with which each can be called.

The C ABI is that of the wrappers (`hip_devicelib.wrappers`): scalars are unchanged, ``__half`` is LLVM's ``half``,
``hip_bfloat16`` its 16 bits, HIP's vector types are LLVM vectors, pointers and references are generic pointers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from hip_devicelib.cached_property import cached_property

Kind = Literal["void", "bool", "integer", "float", "half", "bfloat16", "vector", "pointer", "reference"]
Intent = Literal["value", "in", "out", "inout", "address"]
"""The purpose of a parameter. ``value`` is passed by value. Through a pointer, a function reads (``in``), writes
(``out``) or both (``inout``), or uses the address itself, as atomics do (``address``, also if nothing else is
known)."""


SYMBOL_PREFIX = "hipdl_"
"""The prefix of the names of all wrappers."""


@dataclass(frozen=True, slots=True)
class CType:
    """A type of HIP C++.

    ``spelling`` is its canonical name in C++. ``bits`` is the size of a scalar, ``signed`` whether an integer is
    signed. ``element`` is the element type of a vector of ``count`` elements, or the target type of a pointer or
    reference; ``const`` then tells whether the target is constant, and ``space`` is its address space (LLVM's number; 0
    is generic). ``native`` distinguishes a vector or half type of the compiler (``ext_vector_type``, ``_Float16``) from
    HIP's class with the same meaning.
    """

    spelling: str
    kind: Kind
    bits: int = 0
    signed: bool = False
    element: CType | None = None
    count: int = 1
    const: bool = False
    space: int = 0
    native: bool = True

    @property
    def llvm(self) -> str:
        """The LLVM type that the C ABI uses for it."""
        if self.kind == "integer":
            return f"i{self.bits}"
        if self.kind == "float":
            return {32: "float", 64: "double"}[self.bits]
        if self.kind == "vector" and self.element is not None:
            return f"<{self.count} x {self.element.llvm}>" if self.count > 1 or self.native else self.element.llvm
        if self.kind in ("pointer", "reference"):
            return "ptr" if self.space == 0 else f"ptr addrspace({self.space})"
        return {"void": "void", "bool": "i1", "half": "half", "bfloat16": "i16"}[self.kind]

    @property
    def code(self) -> str:
        """A short code for the type in the name of a wrapper."""
        if self.kind in ("pointer", "reference") and self.element is not None:
            return f"p{self.space or ''}{self.element.code}"
        if self.kind == "vector" and self.element is not None:
            return f"v{self.count}{self.element.code}{'n' if self.native else ''}"
        if self.kind == "integer":
            # C++ has two types of 64 bits (long, long long) and three of 8 bits, which overloads distinguish.
            twin = "l" if self.spelling.endswith("long long") else "c" if self.spelling == "char" else ""
            return f"{'i' if self.signed else 'u'}{self.bits}{twin}"
        half = "f16" if self.native else "h"
        return {"void": "v", "bool": "b1", "half": half, "bfloat16": "bf", "float": f"f{self.bits}"}[self.kind]


@dataclass(frozen=True, slots=True)
class ParameterDeclaration:
    """A parameter of a device function."""

    name: str
    type: CType
    intent: Intent


@dataclass(frozen=True, slots=True)
class FunctionDeclaration:
    """A device function of HIP, or one instance of a function template.

    ``name`` is HIP's spelling, ``namespace`` is ``std`` or empty. ``symbol`` is the name of its wrapper with the C ABI.
    ``attributes`` are those of the header that matter to a compiler (``const``, ``convergent``, ``noreturn``,
    ``pure``). ``defined`` tells whether the header has its body; otherwise it is in a device library.
    ``template_arguments`` are those of a template instance, as C++ spells them.
    """

    name: str
    namespace: str
    result: CType
    parameters: tuple[ParameterDeclaration, ...]
    symbol: str
    attributes: tuple[str, ...] = ()
    defined: bool = True
    template_arguments: tuple[str, ...] = ()

    @property
    def qualified(self) -> str:
        """The name with its namespace and template arguments, as C++ calls it."""
        arguments = f"<{', '.join(self.template_arguments)}>" if self.template_arguments else ""
        return f"{self.namespace}::{self.name}{arguments}" if self.namespace else f"{self.name}{arguments}"

    @property
    def llvm_type(self) -> str:
        """The LLVM type of its wrapper, as LLVM prints it: ``float (float, ptr)``."""
        return f"{self.result.llvm} ({', '.join(parameter.type.llvm for parameter in self.parameters)})"

    def __str__(self) -> str:
        listed = ", ".join(f"{parameter.type.spelling} {parameter.name}".rstrip() for parameter in self.parameters)
        return f"{self.result.spelling} {self.qualified}({listed})"


@dataclass(frozen=True, slots=True)
class Omission:
    """A device function that was left out of the declarations, and why."""

    name: str
    signature: str
    reason: str


@dataclass(frozen=True)
class Declarations:
    """The declarations of one header. ``header_digest`` is the SHA-256 of its text, ``version`` that of its ROCm."""

    functions: tuple[FunctionDeclaration, ...]
    omissions: tuple[Omission, ...]
    header_digest: str
    version: str | None

    @cached_property
    def by_name(self) -> Mapping[str, tuple[FunctionDeclaration, ...]]:
        """The overloads and instances of each name, in the header's order."""
        grouped: dict[str, list[FunctionDeclaration]] = {}
        for function in self.functions:
            grouped.setdefault(function.name, []).append(function)
        return MappingProxyType({name: tuple(functions) for name, functions in grouped.items()})

    @cached_property
    def by_symbol(self) -> Mapping[str, FunctionDeclaration]:
        """Each function, by the name of its wrapper."""
        return MappingProxyType({function.symbol: function for function in self.functions})


def make_symbol(name: str, namespace: str, types: tuple[CType, ...], template_arguments: tuple[str, ...] = ()) -> str:
    """The name of a function's wrapper: a C identifier that is unique among overloads and instances."""
    path = f"{namespace}::{name}" if namespace else name
    parts = [path, *template_arguments]
    words = [
        "".join(letter if letter.isalnum() or letter == "_" else _escape(letter) for letter in part) for part in parts
    ]
    codes = "".join(f"_{kind.code}" for kind in types) or "_v"
    return f"{SYMBOL_PREFIX}{'_'.join(words)}_{codes}"


def _escape(letter: str) -> str:
    return "_" if letter in ": " else f"${ord(letter):x}"
