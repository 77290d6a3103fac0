"""A parser for pseudocode.

The language is small: assignments, ``if``, ``for``, functions that are one expression or a body, numbers that carry
their width (``16'4U``), and views of bits (``S0.u32[4 : 0]``, ``D0.f64``). Text that is not in it is a
`PseudocodeError`.
"""

from __future__ import annotations

import re
from typing import NoReturn

from tools.amd_executor.pseudocode.tree import (
    Assignment,
    Binary,
    Break,
    Call,
    Cast,
    Choice,
    Concat,
    Conditional,
    Declaration,
    Evaluation,
    Expression,
    Field,
    Function,
    Index,
    Loop,
    Name,
    Number,
    PseudocodeError,
    Return,
    Slice,
    Statement,
    Unary,
    View,
)

_KINDS = {"U": "u", "I": "i", "F": "f", "B": "u", "BF": "bf"}
_TOKEN = re.compile(
    r"""(?P<space>\s+|//[^\n]*)
    |(?P<cast>\d+'(?:BF|[UIFB])(?![A-Za-z0-9]))
    |(?P<sized>\d+'-?(?:0x[0-9a-fA-F]+|\d+\.\d+|\d+)U?)
    |(?P<hex>0x[0-9a-fA-F]+(?:ULL|LL|U|L)?)
    |(?P<real>\d+\.\d+F?)
    |(?P<whole>\d+(?:ULL|LL|U|L|F)?(?![A-Za-z0-9_]))
    |(?P<word>[A-Za-z_]\w*)
    |(?P<mark><<=|>>=|\*\*|<<|>>|<=|>=|==|!=|<>|&&|\|\||\+=|-=|\|=|&=|\^=|[-+*/%&|^~!?:;,.(){}\[\]<>=])
    |(?P<other>.)""",
    re.VERBOSE,
)
_LEVELS = (
    ("||",),
    ("&&",),
    ("|",),
    ("^",),
    ("&",),
    ("==", "!=", "<>"),
    ("<", ">", "<=", ">="),
    ("<<", ">>"),
    ("+", "-"),
    ("*", "/", "%"),
    ("**",),
)
_ASSIGNMENTS = {"=", "+=", "-=", "|=", "&=", "^=", "<<=", ">>="}
_VIEW = re.compile(r"(u|i|f|b|bf)(\d+)$")


def parse(text: str) -> tuple[Statement, ...]:
    """The statements of *text*."""
    return _Parser(text).parse()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [(match.lastgroup or "", match.group()) for match in _TOKEN.finditer(text)]
        self.tokens = [token for token in self.tokens if token[0] != "space"]
        self.place = 0

    def parse(self) -> tuple[Statement, ...]:
        body = self.body(())
        if self.place < len(self.tokens):
            self.fail("a statement")
        return body

    def fail(self, wanted: str) -> NoReturn:
        near = " ".join(text for _, text in self.tokens[max(0, self.place - 3) : self.place + 4])
        raise PseudocodeError(f"pseudocode: {wanted} was expected near {near!r}")

    def peek(self, ahead: int = 0) -> str:
        place = self.place + ahead
        return self.tokens[place][1] if place < len(self.tokens) else ""

    def take(self, text: str = "") -> str:
        found = self.peek()
        if not found or (text and found != text):
            self.fail(repr(text) if text else "more")
        self.place += 1
        return found

    def accept(self, text: str) -> bool:
        if self.peek() != text:
            return False
        self.place += 1
        return True

    # statements

    def body(self, ends: tuple[str, ...]) -> tuple[Statement, ...]:
        statements: list[Statement] = []
        while self.accept(";"):
            pass
        while self.peek() and self.peek() not in ends:
            statements.append(self.statement())
            separated = self.accept(";")
            while self.accept(";"):
                pass
            if not separated and self.peek() not in ends:
                # The manuals leave some separators out, after `endif` and before a new line.
                if self.peek() == ")" or not self.peek():
                    break
                if self.tokens[self.place][0] != "word" and self.peek() != "{":
                    self.fail("';'")
        return tuple(statements)

    def statement(self) -> Statement:
        word = self.peek()
        if word == "if":
            return self.conditional()
        if word == "for":
            return self.loop()
        if word == "declare":
            return self.declaration()
        if word == "return":
            self.take()
            return Return(self.expression())
        if word == "break":
            self.take()
            return Break()
        value = self.postfix()
        if self.peek() == "=" and self.peek(1) == "lambda" and isinstance(value, Name):
            return self.function(value.name)
        if self.peek() in _ASSIGNMENTS:
            return self.assignment(value)
        return Evaluation(value)

    def assignment(self, first: Expression) -> Statement:
        targets = [first]
        operator = self.take()
        value = self.expression()
        while operator == "=" and self.accept("="):
            targets.append(value)
            value = self.expression()
        return Assignment(tuple(targets), operator[:-1], value)

    def conditional(self) -> Statement:
        branches = []
        self.take("if")
        while True:
            condition = self.expression()
            self.take("then")
            branches.append((condition, self.body(("elsif", "else", "endif"))))
            if not self.accept("elsif"):
                break
        otherwise = self.body(("endif",)) if self.accept("else") else ()
        self.take("endif")
        return Conditional(tuple(branches), otherwise)

    def loop(self) -> Statement:
        self.take("for")
        variable = self.take()
        self.take("in")
        first = self.expression()
        self.take(":")
        last = self.expression()
        self.take("do")
        body = self.body(("endfor",))
        self.take("endfor")
        return Loop(variable, first, last, body)

    def declaration(self) -> Statement:
        self.take("declare")
        name = self.take()
        self.take(":")
        kind, bits = self.cast()
        count = 0
        if self.accept("["):
            count = int(self.take())
            self.take("]")
        return Declaration(name, kind, bits, count)

    def function(self, name: str) -> Statement:
        self.take("=")
        self.take("lambda")
        parameters = tuple(part.name for part in self.list("(", ")") if isinstance(part, Name))
        self.take("(")
        start = self.place
        if self.peek() in ("if", "declare"):
            body = self.body((")",))
        else:
            self.place = start
            body = (Return(self.expression()),)
        self.take(")")
        return Function(name, parameters, body)

    # expressions

    def expression(self) -> Expression:
        condition = self.binary(0)
        if not self.accept("?"):
            return condition
        then = self.expression()
        self.take(":")
        return Choice(condition, then, self.expression())

    def binary(self, level: int) -> Expression:
        if level == len(_LEVELS):
            return self.unary()
        left = self.binary(level + 1)
        while self.peek() in _LEVELS[level] and self.peek(1) != ":":
            operator = self.take()
            left = Binary(operator, left, self.binary(level + 1))
        return left

    def unary(self) -> Expression:
        if self.peek() in ("!", "~", "-", "+"):
            operator = self.take()
            return Unary(operator, self.unary())
        return self.postfix()

    def postfix(self) -> Expression:
        value = self.primary()
        while True:
            if self.accept("."):
                name = self.take()
                match = _VIEW.match(name)
                value = (
                    View(value, "u" if match[1] == "b" else match[1], int(match[2])) if match else Field(value, name)
                )
            elif self.accept("["):
                value = self.part(value)
                self.take("]")
            elif isinstance(value, Name) and self.peek() == "(":
                value = Call(value.name, self.list("(", ")"))
            else:
                return value

    def part(self, value: Expression) -> Expression:
        """The contents of brackets: one bit or element, ``high : low``, or ``low +: count``."""
        index = self.expression()
        if self.accept(":"):
            return Slice(value, index, self.expression())
        if self.peek() == "+" and self.peek(1) == ":":
            self.place += 2
            last = Binary("-", self.expression(), Number(1, "n", 32))
            return Slice(value, Binary("+", index, last), index)
        return Index(value, index)

    def primary(self) -> Expression:
        kind, text = self.tokens[self.place] if self.place < len(self.tokens) else ("", "")
        if kind == "cast":
            return self.conversion()
        if kind in ("sized", "hex", "real", "whole"):
            self.take()
            return _number(kind, text)
        if kind == "word":
            return Name(self.take())
        if text == "{":
            return Concat(self.list("{", "}"))
        if self.accept("("):
            value = self.expression()
            self.take(")")
            return value
        return self.fail("an expression")

    def conversion(self) -> Expression:
        kind, bits = self.cast()
        self.take("(")
        value = self.expression()
        self.take(")")
        return Cast(kind, bits, value)

    def cast(self) -> tuple[str, int]:
        bits, _, kind = self.take().partition("'")
        if kind not in _KINDS:
            self.fail("a type")
        return _KINDS[kind], int(bits)

    def list(self, start: str, end: str) -> tuple[Expression, ...]:
        self.take(start)
        parts: list[Expression] = []
        while not self.accept(end):
            parts.append(self.expression())
            if not self.accept(","):
                self.take(end)
                break
        return tuple(parts)


def _number(kind: str, text: str) -> Number:
    if kind == "sized":
        bits, _, rest = text.partition("'")
        if "." in rest:
            return Number(float(rest), "f", int(bits))
        digits = rest.rstrip("U")
        return Number(int(digits, 0), "u" if rest.endswith("U") else "n", int(bits), "0x" in rest)
    if kind == "real" or (kind == "whole" and text.endswith("F")):
        return Number(float(text.rstrip("F")), "f", 32 if text.endswith("F") else 64)
    digits = text.rstrip("ULF") if kind == "whole" else re.sub("[UL]+$", "", text)
    suffix = text[len(digits) :]
    value = int(digits, 0)
    width = 64 if "LL" in suffix or value >= 1 << 32 else 32
    return Number(value, "u" if "U" in suffix else "i" if "LL" in suffix else "n", width, kind == "hex")
