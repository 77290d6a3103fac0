"""The syntax tree of pseudocode."""

from __future__ import annotations

from dataclasses import dataclass


class PseudocodeError(Exception):
    """Text that this parser does not understand, or whose meaning is not known."""


@dataclass(frozen=True)
class Number:
    """A literal. ``kind`` is u, i or f, or n for an integer that takes the kind of the other operand."""

    value: int | float
    kind: str
    bits: int
    is_pattern: bool = False  # written in hexadecimal: as a float, it is a bit pattern


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class View:
    """*value* as a type, ``.u32``: the bits are the same."""

    value: Expression
    kind: str
    bits: int


@dataclass(frozen=True)
class Field:
    """A named part of a register, ``WAVE_MODE.IEEE``."""

    value: Expression
    name: str


@dataclass(frozen=True)
class Slice:
    value: Expression
    high: Expression
    low: Expression


@dataclass(frozen=True)
class Index:
    value: Expression
    index: Expression


@dataclass(frozen=True)
class Call:
    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Cast:
    """*value* converted: ``64'U(x)``."""

    kind: str
    bits: int
    value: Expression


@dataclass(frozen=True)
class Concat:
    """Bits side by side, the highest first."""

    parts: tuple[Expression, ...]


@dataclass(frozen=True)
class Unary:
    operator: str
    value: Expression


@dataclass(frozen=True)
class Binary:
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Choice:
    condition: Expression
    then: Expression
    otherwise: Expression


Expression = Number | Name | View | Field | Slice | Index | Call | Cast | Concat | Unary | Binary | Choice


@dataclass(frozen=True)
class Assignment:
    """All *targets* get the value of the expression. With an operator, they are updated."""

    targets: tuple[Expression, ...]
    operator: str
    value: Expression


@dataclass(frozen=True)
class Conditional:
    branches: tuple[tuple[Expression, tuple[Statement, ...]], ...]
    otherwise: tuple[Statement, ...]


@dataclass(frozen=True)
class Loop:
    variable: str
    first: Expression
    last: Expression
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Declaration:
    name: str
    kind: str
    bits: int
    count: int


@dataclass(frozen=True)
class Function:
    name: str
    parameters: tuple[str, ...]
    body: tuple[Statement, ...]


@dataclass(frozen=True)
class Return:
    value: Expression


@dataclass(frozen=True)
class Break:
    pass


@dataclass(frozen=True)
class Evaluation:
    """An expression statement."""

    value: Expression


Statement = Assignment | Conditional | Loop | Declaration | Function | Return | Break | Evaluation
