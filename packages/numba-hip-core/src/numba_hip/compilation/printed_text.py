"""Formatted text that a kernel prints: f-strings, ``%``, ``str.format``, `str`, `format` become templates and values.

Only what stands in a call of `print` is: the text is made by the host, so there is none to assign or to compare.
"""

from __future__ import annotations

import builtins
import operator
import re
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import register_pass
from numba.core.errors import UnsupportedError

from numba_hip._numba.bytecode import (
    NumbaTranslateByteCode,
    express_formats,
    keep_assigned_values,
    keyword_defaults,
    offset_of_format,
    rebuild_definitions,
)
from numba_hip.errors import UnsupportedSyntaxError
from numba_hip.language.text_templates import ReplacementField, TextTemplate

_PERCENT = re.compile(r"%(?P<name>\([^)]*\))?(?P<options>[-+ #0]*[0-9]*(?:\.[0-9]*)?)(?P<kind>.)?", re.DOTALL)
"""A place in a text for the operator %, as `printf` has them; ``%*d`` is not one of these."""

Piece = str | tuple[ReplacementField, ir.Var]


_WORKS = "formats are constants, and the values numbers, as in f'{x:.3f}', '%d' % i and '{:>5}'.format(i)"


class FormatError(UnsupportedError):
    """A format that `print` in kernels does not have."""

    def __init__(self, what: str, loc: Any) -> None:
        super().__init__(f"print in a kernel takes no {what}: {_WORKS}", loc=loc)


@register_pass(mutates_CFG=True, analysis_only=False)
class TranslateByteCode(NumbaTranslateByteCode):
    """Numba's pass, for functions that print formatted text, or assign within expressions."""

    _name = "hip_translate_bytecode"

    def run_pass(self, state: Any) -> bool:
        """Translate ``state.bc``, and take text in calls of `print` apart."""
        place = keyword_defaults(state.bc)
        if place is not None:
            raise UnsupportedSyntaxError(
                "a function inside a kernel has no keyword-only parameters with defaults: leave out the '*' in front",
                loc=place,
            )
        keep_assigned_values(state.bc)
        plain = express_formats(state.bc)
        changed = super().run_pass(state)
        take_apart(state.func_ir, plain)
        return bool(changed)


def translates(made: Any) -> bool:
    """Whether the pass *made* is the one of Numba's that `TranslateByteCode` stands for."""
    return made is NumbaTranslateByteCode


def take_apart(function: Any, plain: frozenset[int]) -> None:
    """Replace formatted text that is an argument of `print` in *function*, Numba's intermediate representation, by a
    tuple of a `TextTemplate` and the values. *plain* are the offsets of values without a format in f-strings."""
    reader = _TextReader(function, plain)
    changed = False
    for block in function.blocks.values():
        for statement in list(block.find_insts(ir.Assign)):
            if reader.calls(statement.value, builtins.print):
                changed |= _take_arguments(block, statement, reader)
    if changed:
        for block in function.blocks.values():
            block.body = [one for one in block.body if one not in reader.consumed]
        rebuild_definitions(function)
    for block in function.blocks.values():
        for statement in block.find_insts(ir.Assign):
            if reader.is_formatted(statement.value):
                raise UnsupportedError("format spec in f-strings", loc=statement.loc)


def _take_arguments(block: Any, statement: Any, reader: _TextReader) -> bool:
    call = statement.value
    arguments = list(call.args)
    changed = False
    for number, argument in enumerate(arguments):
        pieces = reader.read(argument)
        if pieces is None:
            continue
        arguments[number] = _insert_tuple(block, statement, list(_joined(pieces)))
        changed = True
    if changed:
        call.args = type(call.args)(arguments)
    return changed


def _joined(pieces: Sequence[Piece]) -> Iterator[Piece]:
    """*pieces* with neighbouring constants joined."""
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if text:
            yield text
        text = ""
        yield piece
    if text:
        yield text


def _insert_tuple(block: Any, statement: Any, pieces: list[Piece]) -> ir.Var:
    """Write a tuple of the template and the values before *statement*; its variable."""
    template = TextTemplate(tuple(piece if isinstance(piece, str) else piece[0] for piece in pieces))
    values = [piece[1] for piece in pieces if not isinstance(piece, str)]
    scope, loc = statement.target.scope, statement.loc
    constant, whole = (scope.redefine(name, loc=loc) for name in ("$text_template", "$text"))
    position = block.body.index(statement)
    block.body[position:position] = [
        ir.Assign(ir.Global("text_template", template, loc), constant, loc),
        ir.Assign(ir.Expr.build_tuple([constant, *values], loc), whole, loc),
    ]
    return whole


class _TextReader:
    """Reads the expressions that make text in one function."""

    def __init__(self, function: Any, plain: frozenset[int]) -> None:
        self._plain = plain
        self._assigned: dict[str, list[Any]] = {}
        self.consumed: list[Any] = []
        """Assignments that only make text which was taken apart."""
        for block in function.blocks.values():
            for statement in block.find_insts(ir.Assign):
                self._assigned.setdefault(statement.target.name, []).append(statement)

    def calls(self, value: Any, builtin: Any) -> bool:
        """Whether *value* is a call of *builtin*."""
        return isinstance(value, ir.Expr) and value.op == "call" and self._constant(value.func) is builtin

    def is_formatted(self, value: Any) -> bool:
        """Whether *value* stands for a value with a format, see `express_formats`."""
        is_matmul = isinstance(value, ir.Expr) and value.op == "binop" and value.fn is operator.matmul
        return is_matmul and (isinstance(self._constant(value.rhs), str) or self.read(value.rhs) is not None)

    def read(self, variable: ir.Var) -> list[Piece] | None:
        """The pieces of the text that the temporary *variable* is; None if it is none, or constant text."""
        statement = self._only(variable)
        if statement is None:
            return None
        before = len(self.consumed)
        pieces = self._read_expression(statement.value)
        if pieces is None:
            del self.consumed[before:]
        else:
            self._consume(variable)
        return pieces

    def _read_expression(self, value: Any) -> list[Piece] | None:
        if not isinstance(value, ir.Expr):
            return None
        if value.op == "binop":
            return self._read_operator(value)
        if value.op != "call":
            return None
        if self.calls(value, str) and len(value.args) == 1 and not value.kws:
            self._consume(value.func)
            return self._place(value.args[0], "" if offset_of_format(value.func) in self._plain else None)
        if self.calls(value, format) and not value.kws and 1 <= len(value.args) <= 2:
            spec = self._spec(value.args[1], value.loc) if len(value.args) == 2 else ""
            self._consume(value.func, *value.args[1:])
            return self._place(value.args[0], spec)
        return self._read_method(value)

    def _read_operator(self, value: Any) -> list[Piece] | None:
        if self.is_formatted(value):
            spec = self._spec(value.rhs, value.loc)
            self._consume(value.rhs)
            return self._place(value.lhs, spec)
        if value.fn is operator.add:
            left, right = self._text(value.lhs), self._text(value.rhs)
            return None if left is None or right is None else [*left, *right]
        text = self._constant(value.lhs)
        if value.fn is not operator.mod or not isinstance(text, str):
            return None
        given = self._only(value.rhs)
        values = [value.rhs]
        if given is not None and isinstance(given.value, ir.Expr) and given.value.op == "build_tuple":
            values = list(given.value.items)
            self._consume(value.rhs)
        self._consume(value.lhs)
        return list(self._fill_percent(text, values, value.loc))

    def _text(self, variable: ir.Var) -> list[Piece] | None:
        """The pieces of *variable*, which may be constant text."""
        constant = self._constant(variable)
        if not isinstance(constant, str):
            return self.read(variable)
        self._consume(variable)
        return [constant]

    def _place(self, variable: ir.Var, spec: str | None, percent: bool = False) -> list[Piece]:
        """A place for *variable*; text where that is constant."""
        constant = self._constant(variable)
        if isinstance(constant, str):
            self._consume(variable)
            return [str(spec) % constant if percent else format(constant, spec or "")]
        inner = self.read(variable) if not spec else None
        return [(ReplacementField(spec, percent), variable)] if inner is None else inner

    def _spec(self, variable: ir.Var, loc: Any) -> str:
        """The format that *variable* is, which has to be a constant."""
        constant = self._constant(variable)
        if isinstance(constant, str):
            return constant
        parts = []
        for piece in self.read(variable) or []:
            value = piece if isinstance(piece, str) else self._constant(piece[1])
            if value is None or (not isinstance(piece, str) and piece[0].spec):
                raise FormatError("format that is made of values that are not constants", loc=loc)
            parts.append(str(value))
        if not parts:
            raise FormatError("format that is not a constant", loc=loc)
        return "".join(parts)

    # the operator %, and str.format

    def _fill_percent(self, text: str, values: list[ir.Var], loc: Any) -> Iterator[Piece]:
        remaining = iter(values)
        end = 0
        for found in _PERCENT.finditer(text):
            yield text[end : found.start()]
            end = found.end()
            if found["kind"] == "%" and not found["options"] and not found["name"]:
                yield "%"
                continue
            if found["name"] or found["kind"] is None or found["kind"] not in "diouxXeEfFgGcrsa":
                raise FormatError(f"format {found[0]!r} of the operator %", loc=loc)
            value = next(remaining, None)
            if value is None:
                raise FormatError(f"{text!r} % ... with fewer values than places", loc=loc)
            plain = found["kind"] in "rsa" and not found["options"]
            yield from self._place(value, None if plain else found[0], percent=not plain)
        yield text[end:]
        if next(remaining, None) is not None:
            raise FormatError(f"{text!r} % ... with more values than places", loc=loc)

    def _read_method(self, call: Any) -> list[Piece] | None:
        method = self._only(call.func)
        if method is None or not isinstance(method.value, ir.Expr) or method.value.op != "getattr":
            return None
        text = self._constant(method.value.value)
        if method.value.attr != "format" or not isinstance(text, str) or call.vararg is not None:
            return None
        self._consume(call.func, method.value.value)
        return list(self._fill_fields(text, list(call.args), dict(call.kws), call.loc))

    def _fill_fields(self, text: str, args: list[ir.Var], named: Mapping[str, ir.Var], loc: Any) -> Iterator[Piece]:
        automatic = iter(range(len(args)))
        try:
            fields = list(string.Formatter().parse(text))
        except ValueError as error:
            raise FormatError(f"{text!r}.format(...), as {error}", loc=loc) from None
        for literal, field, spec, conversion in fields:
            yield literal
            if field is None:
                continue
            shown = f"{{{field}{'!' + conversion if conversion else ''}{':' + spec if spec else ''}}}"
            if "{" in (spec or "") or (spec and conversion):
                raise FormatError(f"place such as {shown} in {text!r}.format(...)", loc=loc)
            key: Any = next(automatic, None) if field == "" else int(field) if field.isdigit() else field
            value = named.get(key) if isinstance(key, str) else args[key] if key in range(len(args)) else None
            if value is None:
                raise FormatError(f"{text!r}.format(...) without a value for {shown}", loc=loc)
            yield from self._place(value, spec or "")

    # variables

    def _only(self, variable: ir.Var) -> Any:
        """The only assignment of a temporary; None for the user's variables, which may have changed since."""
        statements = self._copied(variable)
        return statements[-1] if statements else None

    def _copied(self, variable: ir.Var) -> list[Any]:
        """The assignment behind a temporary, last, after those that copy it to where blocks meet."""
        statements = self._assigned.get(variable.name, [])
        if not variable.name.startswith("$") or not statements:
            return []
        values = [one.value for one in statements]
        if all(isinstance(value, ir.Var) for value in values) and len({value.name for value in values}) == 1:
            behind = self._copied(values[0])
            return [*statements, *behind] if behind else []
        return statements if len(statements) == 1 else []

    def _constant(self, variable: ir.Var) -> Any:
        """The constant that *variable* is; None if it is none."""
        statement = self._only(variable)
        value = None if statement is None else statement.value
        return value.value if isinstance(value, (ir.Const, ir.Global, ir.FreeVar)) else None

    def _consume(self, *variables: ir.Var) -> None:
        for variable in variables:
            self.consumed += self._copied(variable)
