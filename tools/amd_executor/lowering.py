"""Pseudocode as LLVM IR: loops are written out, variables lie on the stack, registers are the environment's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from llvmlite import ir

from tools.amd_executor import functions
from tools.amd_executor.pseudocode import (
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
from tools.amd_executor.values import Value, Values, constant, on_stack, real, signed

_LONGEST_LOOP = 64
_REGISTER = re.compile(r"[DS]\d$|VCC|EXEC|SCC$|PC$|M0$|VGPR$|SGPR|MEM$|HW_|ROUND_MODE|WAVE_|[A-Z]+DATA$")


class Environment(Protocol):
    """The registers of an instruction."""

    def read(self, name: str) -> Value | None:
        """The register called *name*; None where it is none."""

    def write(self, name: str, value: Value) -> bool:
        """Set a register; false where it is none."""

    def read_lane(self, name: str) -> Value | None:
        """This lane's bit of a mask; None where it is no mask, or there is no lane."""

    def write_lane(self, name: str, value: Value) -> bool:
        """Set this lane's bit of a mask."""

    def read_vector(self, lane: Value, register: Expression) -> Value:
        """``VGPR[lane][register]``."""

    def write_vector(self, lane: Value, register: Expression, value: Value) -> None:
        """Set it."""


@dataclass
class Variable:
    """A place on the stack that holds bits."""

    place: ir.Value
    kind: str
    bits: int
    count: int = 0


class Lowering:
    """Writes statements at the place of *builder*. Variables may be there before."""

    def __init__(self, builder: ir.IRBuilder, environment: Environment) -> None:
        self.builder = builder
        self.values = Values(builder)
        self.environment = environment
        self.variables: dict[str, Variable] = {}
        self.known: dict[str, Value] = {}
        self.functions: dict[str, Function] = {}
        self.exits: list[tuple[ir.Block, Variable | None]] = []

    # statements

    def run(self, statements: Sequence[Statement]) -> None:
        for statement in statements:
            if self.builder.block.is_terminated:
                return
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        match statement:
            case Assignment(targets, operator, value):
                self.assign_all(targets, operator, value)
            case Conditional():
                self.conditional(statement)
            case Loop():
                self.loop(statement)
            case Declaration(name, kind, bits, count):
                self.declare(name, kind, bits, count)
            case Function(name):
                self.functions[name] = statement
            case Return(value):
                self.leave(value)
            case Break():
                self.builder.branch(self.exits[-1][0])
            case Evaluation(value):
                self.evaluate(value)

    def declare(self, name: str, kind: str, bits: int, count: int = 0) -> Variable:
        kind = "u" if kind == "n" and count else "i" if kind == "n" else kind
        word = ir.IntType(bits)
        place = on_stack(self.builder, ir.ArrayType(word, count) if count else word)
        self.variables[name] = Variable(place, kind, bits, count)
        return self.variables[name]

    def assign_all(self, targets: Sequence[Expression], operator: str, expression: Expression) -> None:
        value = self.evaluate(expression)
        for target in targets:
            self.assign(target, self.values.operate(operator, self.evaluate(target), value) if operator else value)

    def conditional(self, statement: Conditional) -> None:
        end = self.builder.append_basic_block("end")
        for condition, body in statement.branches:
            value = self.evaluate(condition)
            if value.known == 0:
                continue
            then = self.builder.append_basic_block("then")
            other = self.builder.append_basic_block("else")
            self.builder.cbranch(self.values.truth(value), then, other)
            self.builder.position_at_end(then)
            self.run(body)
            self.reach(end)
            self.builder.position_at_end(other)
        self.run(statement.otherwise)
        self.reach(end)
        self.builder.position_at_end(end)

    def reach(self, block: ir.Block) -> None:
        if not self.builder.block.is_terminated:
            self.builder.branch(block)

    def loop(self, statement: Loop) -> None:
        first, last = self.evaluate(statement.first), self.evaluate(statement.last)
        if first.known is None or last.known is None or last.known - first.known >= _LONGEST_LOOP:
            raise PseudocodeError("a loop whose length is not known")
        end = self.builder.append_basic_block("done")
        self.exits.append((end, None))
        for number in range(first.known, last.known + 1):
            if self.builder.block.is_terminated:
                break
            self.known[statement.variable] = constant(number)
            self.run(statement.body)
        self.exits.pop()
        self.known.pop(statement.variable, None)
        self.reach(end)
        self.builder.position_at_end(end)

    # places

    def assign(self, target: Expression, value: Value) -> None:
        if isinstance(target, Concat):
            self.assign_parts(target, value)
            return
        if isinstance(target, Field) and isinstance(target.value, Name):
            if not self.environment.write(f"{target.value.name}.{target.name}", value):
                raise PseudocodeError(f"the field {target.name} of {target.value.name}")
            return
        root, bits = self.root(target)
        if isinstance(target, Index) and target.index == Name("laneId"):
            if not self.environment.write_lane(root, self.flag(value)):
                raise PseudocodeError(f"a lane's bit of {root}")
            return
        if isinstance(target, Index) and isinstance(target.value, Index) and root == "VGPR":
            self.environment.write_vector(self.evaluate(target.value.index), target.index, value)
            return
        kind, wanted = bits or (value.kind, value.bits)
        match target:
            case Name() | View(Name()):
                self.store(root, self.values.fit(value, kind, wanted), is_whole=isinstance(target, Name))
            case Index(Name(), index) if root in self.variables and self.variables[root].count:
                place = self.element(self.variables[root], self.evaluate(index))
                self.builder.store(self.values.fit(value, "u", self.variables[root].bits).llvm, place)
            case _:
                self.insert(root, target, value)

    def flag(self, value: Value) -> Value:
        return self.values.flag(self.values.truth(value))

    def root(self, target: Expression) -> tuple[str, tuple[str, int] | None]:
        """The name that *target* is a part of, and the type that it is seen as at last."""
        seen = None
        while not isinstance(target, Name):
            if isinstance(target, View):
                seen = seen or (target.kind, target.bits)
            if not isinstance(target, View | Slice | Index):
                raise PseudocodeError(f"no place to assign to: {target}")
            target = target.value
        return target.name, seen

    def assign_parts(self, target: Concat, value: Value) -> None:
        shift = 0
        raw = self.values.pattern(value)
        for part in reversed(target.parts):
            if not isinstance(part, View):
                raise PseudocodeError("a part without a width is assigned to")
            moved = self.values.shift(">>", raw, constant(shift))
            self.assign(part, self.values.view(moved, part.kind, part.bits))
            shift += part.bits

    def store(self, name: str, value: Value, *, is_whole: bool) -> None:
        """Set a variable or register, or the low bits of it."""
        variable = self.variables.get(name)
        if variable is None:
            if self.environment.write(name, value):
                return
            variable = self.variable(name, value.kind, value.bits)
        elif is_whole:
            value = self.values.fit(value, variable.kind, variable.bits)
        raw = self.values.pattern(value)
        if raw.bits < variable.bits:
            self.put_bits(variable, raw, constant(0))
            return
        self.builder.store(self.values.resize(raw, variable.bits).llvm, variable.place)

    def variable(self, name: str, kind: str, bits: int) -> Variable:
        """A new variable; a register that is not known is none."""
        if _REGISTER.match(name):
            raise PseudocodeError(f"the register {name}")
        return self.declare(name, kind, bits)

    def insert(self, name: str, target: Expression, value: Value) -> None:
        """Set some bits of a variable: a slice, perhaps seen as a type, or one bit."""
        part = target.value if isinstance(target, View) else target
        if isinstance(target, View):
            value = self.values.fit(value, target.kind, target.bits)
        variable = self.variables.get(name) or self.variable(name, "u", 128)
        raw = self.values.pattern(value)
        match part:
            case Slice(_, high, low):
                first, last = self.evaluate(low), self.evaluate(high)
                if first.known is None or last.known is None:
                    raise PseudocodeError("a slice of unknown width is assigned to")
                raw = self.values.resize(raw, last.known - first.known + 1, "u")
                self.put_bits(variable, raw, first)
            case Index(_, index):
                self.put_bits(variable, self.flag(value), self.evaluate(index))
            case _:
                raise PseudocodeError(f"no place to assign to: {target}")

    def put_bits(self, variable: Variable, raw: Value, first: Value) -> None:
        old = Value(self.builder.load(variable.place, typ=ir.IntType(variable.bits)), "u", variable.bits)
        wide = self.values.resize(raw, variable.bits, "u")
        mask = self.values.shift("<<", constant((1 << raw.bits) - 1, variable.bits, "u"), first)
        kept = self.builder.and_(old.llvm, self.builder.not_(mask.llvm))
        new = self.builder.or_(kept, self.values.shift("<<", wide, first).llvm)
        self.builder.store(new, variable.place)

    def element(self, variable: Variable, index: Value) -> ir.Value:
        zero = ir.Constant(ir.IntType(32), 0)
        kind = ir.ArrayType(ir.IntType(variable.bits), variable.count)
        number = self.values.resize(index, 32, "u").llvm
        return self.builder.gep(variable.place, [zero, number], source_etype=kind)

    # expressions

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

    # functions of the text

    def call(self, name: str, arguments: list[Value]) -> Value:
        function = self.functions.get(name)
        if function is None:
            return functions.call(self.values, name, arguments)
        if len(function.body) == 1 and isinstance(function.body[0], Return):
            return self.inline(function, arguments)
        outer = self.known
        self.known = {**outer, **dict(zip(function.parameters, arguments, strict=True))}
        result = Variable(on_stack(self.builder, ir.IntType(8)), "u", 8)  # the only ones with a body give bytes
        end = self.builder.append_basic_block("returned")
        self.exits.append((end, result))
        self.run(function.body)
        self.exits.pop()
        self.reach(end)
        self.builder.position_at_end(end)
        self.known = outer
        return Value(self.builder.load(result.place, typ=ir.IntType(8)), "u", 8)

    def inline(self, function: Function, arguments: list[Value]) -> Value:
        outer = self.known
        self.known = {**outer, **dict(zip(function.parameters, arguments, strict=True))}
        statement = function.body[0]
        assert isinstance(statement, Return)
        result = self.evaluate(statement.value)
        self.known = outer
        return result

    def leave(self, expression: Expression) -> None:
        end, result = self.exits[-1]
        if result is None:
            raise PseudocodeError("a return out of a loop")
        self.builder.store(self.values.fit(self.evaluate(expression), "u", result.bits).llvm, result.place)
        self.builder.branch(end)
