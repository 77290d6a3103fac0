"""Expressions of pseudocode as LLVM IR. Variables are on the stack; an environment reads and writes registers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from llvmlite import ir

from tools.amd_executor.pseudocode import functions
from tools.amd_executor.pseudocode.tree import (
    Binary,
    Call,
    Cast,
    Choice,
    Concat,
    Expression,
    Field,
    Index,
    Name,
    Number,
    PseudocodeError,
    Slice,
    Unary,
    View,
)
from tools.amd_executor.pseudocode.values import Value, Values, constant, real, signed


class Environment(Protocol):
    """The registers of an instruction."""

    def read(self, name: str) -> Value | None:
        """The value of the register *name*; None if there is no such register."""

    def write(self, name: str, value: Value) -> bool:
        """Set a register; returns false if there is no such register."""

    def read_lane(self, name: str) -> Value | None:
        """This lane's bit of a mask; None if it is not a mask, or there is no lane."""

    def write_lane(self, name: str, value: Value) -> bool:
        """Set this lane's bit of a mask."""

    def read_vector(self, lane: Value, register: Expression) -> Value:
        """``VGPR[lane][register]``."""

    def write_vector(self, lane: Value, register: Expression, value: Value) -> None:
        """Set it."""


@dataclass
class Variable:
    """Bits on the stack."""

    place: ir.Value
    kind: str
    bits: int
    count: int = 0


class ExpressionLowering:
    """Writes expressions at the position of *builder*. Variables may be predefined."""

    def __init__(self, builder: ir.IRBuilder, environment: Environment) -> None:
        self.builder = builder
        self.values = Values(builder)
        self.environment = environment
        self.variables: dict[str, Variable] = {}
        self.known: dict[str, Value] = {}

    def evaluate(self, expression: Expression) -> Value:
        match expression:
            case Number(value, kind, bits, is_pattern):
                return (
                    real(float(value), bits) if kind == "f" else constant(int(value), bits, kind, is_pattern=is_pattern)
                )
            case Name(name):
                return self.name(name)
            case View(value, kind, bits):
                return self.view(value, kind, bits)
            case Field(value, name):
                return self.field(value, name)
            case Slice(value, high, low):
                return self.slice(self.evaluate(value), self.evaluate(high), self.evaluate(low))
            case Index():
                return self.index(expression)
            case Cast(kind, bits, value):
                return self.values.cast(self.evaluate(value), kind, bits)
            case Concat(parts):
                return self.concat([self.values.pattern(self.evaluate(part)) for part in parts])
            case Unary(operator, value):
                return self.unary(operator, value)
            case Binary(operator, left, right):
                return self.binary(operator, left, right)
            case Choice():
                return self.choice(expression)
            case Call(name, arguments):
                return self.call(name, [self.evaluate(argument) for argument in arguments])
        raise PseudocodeError(f"no expression: {expression}")

    def name(self, name: str) -> Value:
        if name in self.known:
            return self.known[name]
        variable = self.variables.get(name)
        if variable is not None:
            raw = Value(self.builder.load(variable.place, typ=ir.IntType(variable.bits)), "u", variable.bits)
            return self.values.view(raw, variable.kind, variable.bits)
        found = self.environment.read(name)
        if found is not None:
            return found
        if name in ("INF", "NAN"):
            return real(float(name), 64)
        if name == "PI":
            return real(3.141592653589793, 64)
        raise PseudocodeError(f"the name {name}")

    def view(self, value: Expression, kind: str, bits: int) -> Value:
        match value:
            case Name("INF" | "NAN" as name):
                return real(float(name), bits)
            case Unary("-", Name("INF")):
                return real(-float("inf"), bits)
        return self.values.view(self.evaluate(value), kind, bits)

    def field(self, value: Expression, name: str) -> Value:
        if isinstance(value, Name):
            found = self.environment.read(f"{value.name}.{name}")
            if found is not None:
                return found
        raise PseudocodeError(f"the field {name}")

    def slice(self, value: Value, high: Value, low: Value) -> Value:
        raw = self.values.pattern(value)
        if high.known is None or low.known is None:
            raise PseudocodeError("a slice of unknown width")
        if high.known < low.known:
            if (high.known, low.known) != (0, raw.bits - 1):
                raise PseudocodeError("a slice backwards")
            return Value(self.values.intrinsic(f"llvm.bitreverse.i{raw.bits}", raw.llvm), "u", raw.bits)
        raw = self.values.resize(raw, max(raw.bits, high.known + 1), "u")
        return self.values.view(self.values.shift(">>", raw, low), "u", high.known - low.known + 1)

    def index(self, expression: Index) -> Value:
        value, index = expression.value, expression.index
        if index == Name("laneId"):
            found = self.environment.read_lane(self.root(value)[0])
            if found is not None:
                return found
        if isinstance(value, Index) and value.value == Name("VGPR"):
            return self.environment.read_vector(self.evaluate(value.index), index)
        if isinstance(value, Name) and value.name in self.variables and self.variables[value.name].count:
            variable = self.variables[value.name]
            place = self.element(variable, self.evaluate(index))
            raw = Value(self.builder.load(place, typ=ir.IntType(variable.bits)), "u", variable.bits)
            return self.values.view(raw, variable.kind, variable.bits)
        number = self.evaluate(index)
        if value == Name("S") and number.known is not None:
            return self.name(f"S{number.known}")
        return self.values.bit(self.evaluate(value), number)

    def concat(self, parts: list[Value]) -> Value:
        bits = sum(part.bits for part in parts)
        result = constant(0, bits, "u")
        for part in parts:
            moved = self.values.shift("<<", result, constant(part.bits))
            result = self.values.operate("|", moved, self.values.resize(part, bits, "u"))
        return result

    def unary(self, operator: str, expression: Expression) -> Value:
        value = self.evaluate(expression)
        if operator == "+":
            return value
        if operator == "!":
            return self.values.flag(self.builder.not_(self.values.truth(value)))
        if operator == "-" and value.is_float:
            return Value(self.builder.fneg(value.llvm), "f", value.bits)
        if value.known is not None:
            number = -signed(value) if operator == "-" else ~signed(value)
            return constant(number, value.bits, value.kind, is_pattern=value.is_pattern)
        raw = value if operator == "-" else self.values.pattern(value)
        result = self.builder.neg(raw.llvm) if operator == "-" else self.builder.not_(raw.llvm)
        return Value(result, value.kind if operator == "-" else "u", value.bits)

    def binary(self, operator: str, left: Expression, right: Expression) -> Value:
        if operator == "==" and isinstance(right, View) and right.value == Name("DENORM"):
            return functions.is_denormal(self.values, self.evaluate(left))
        return self.values.operate(operator, self.evaluate(left), self.evaluate(right))

    def choice(self, expression: Choice) -> Value:
        condition = self.evaluate(expression.condition)
        if condition.known is not None:
            return self.evaluate(expression.then if condition.known else expression.otherwise)
        then, otherwise = self.evaluate(expression.then), self.evaluate(expression.otherwise)
        if then.is_float == otherwise.is_float:
            then, otherwise = self.values.meet(then, otherwise)
        else:
            then, otherwise = self.values.pattern(then), self.values.pattern(otherwise)
        chosen = self.builder.select(self.values.truth(condition), then.llvm, otherwise.llvm)
        return Value(chosen, then.kind, then.bits)

    def call(self, name: str, arguments: list[Value]) -> Value:
        """``name(arguments)``, of a function that pseudocode does not define itself."""
        return functions.call(self.values, name, arguments)

    def root(self, target: Expression) -> tuple[str, tuple[str, int] | None]:
        """The name that *target* is a part of, and the type of its last view."""
        seen = None
        while not isinstance(target, Name):
            if isinstance(target, View):
                seen = seen or (target.kind, target.bits)
            if not isinstance(target, View | Slice | Index):
                raise PseudocodeError(f"no place to assign to: {target}")
            target = target.value
        return target.name, seen

    def element(self, variable: Variable, index: Value) -> ir.Value:
        zero = ir.Constant(ir.IntType(32), 0)
        kind = ir.ArrayType(ir.IntType(variable.bits), variable.count)
        number = self.values.resize(index, 32, "u").llvm
        return self.builder.gep(variable.place, [zero, number], source_etype=kind)
