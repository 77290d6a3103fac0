"""Statements of pseudocode as LLVM IR; loops are unrolled."""

from __future__ import annotations

import re
from collections.abc import Sequence

from llvmlite import ir

from tools.amd_executor.pseudocode.expressions import Environment, ExpressionLowering, Variable
from tools.amd_executor.pseudocode.tree import (
    Assignment,
    Break,
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
    PseudocodeError,
    Return,
    Slice,
    Statement,
    View,
)
from tools.amd_executor.pseudocode.values import Value, constant, on_stack

_LONGEST_LOOP = 64
_REGISTER = re.compile(r"[DS]\d$|VCC|EXEC|SCC$|PC$|M0$|VGPR$|SGPR|MEM$|HW_|ROUND_MODE|WAVE_|[A-Z]+DATA$")


class Lowering(ExpressionLowering):
    """Writes statements at the position of *builder*."""

    def __init__(self, builder: ir.IRBuilder, environment: Environment) -> None:
        super().__init__(builder, environment)
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
        """Set a variable or register, or its low bits."""
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
        """A new variable, unless the name is that of an unknown register."""
        if _REGISTER.match(name):
            raise PseudocodeError(f"the register {name}")
        return self.declare(name, kind, bits)

    def insert(self, name: str, target: Expression, value: Value) -> None:
        """Set some bits of a variable: a slice, possibly viewed as a type, or one bit."""
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

    # functions that pseudocode defines

    def call(self, name: str, arguments: list[Value]) -> Value:
        function = self.functions.get(name)
        if function is None:
            return super().call(name, arguments)
        if len(function.body) == 1 and isinstance(function.body[0], Return):
            return self.inline(function, arguments)
        outer = self.known
        self.known = {**outer, **dict(zip(function.parameters, arguments, strict=True))}
        result = Variable(on_stack(self.builder, ir.IntType(8)), "u", 8)  # the only functions with a body return bytes
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
