"""Values of the pseudocode as LLVM values: integers of any width, signed or unsigned, and floats."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from llvmlite import ir

from tools.amd_executor.pseudocode.tree import PseudocodeError

FLOATS = {16: ir.HalfType(), 32: ir.FloatType(), 64: ir.DoubleType()}
_NAMES = {16: "f16", 32: "f32", 64: "f64"}


def on_stack(builder: ir.IRBuilder, kind: ir.Type) -> ir.Value:
    """A stack slot of that type, initialised to zero."""
    with builder.goto_entry_block():
        place = builder.alloca(kind)
        place.type = ir.PointerType()  # llvmlite's has the type of the value
        builder.store(ir.Constant(kind, None), place)
    return place


@dataclass(frozen=True)
class Value:
    """*bits* is the width, *kind* one of u and i (integers), n (an integer that takes the kind of the other operand), f
    (a float) and bf (a bfloat, kept as its bits). *known* is the number if it is a constant, as its bits."""

    llvm: ir.Value
    kind: str
    bits: int
    known: int | None = None
    is_pattern: bool = False

    @property
    def is_float(self) -> bool:
        return self.kind in ("f", "bf")


def constant(number: int, bits: int = 32, kind: str = "n", *, is_pattern: bool = False) -> Value:
    """An integer."""
    number &= (1 << bits) - 1
    return Value(ir.Constant(ir.IntType(bits), number), kind, bits, number, is_pattern)


def real(number: float, bits: int) -> Value:
    """A float."""
    return Value(ir.Constant(FLOATS[bits], number), "f", bits)


def signed(value: Value) -> int:
    """The constant of *value*, signed if its kind is."""
    assert value.known is not None
    negative = value.kind in ("i", "n") and value.known >> (value.bits - 1)
    return value.known - (1 << value.bits) if negative else value.known


class Values:
    """Operations on values, written at the position of *builder*."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder

    def intrinsic(self, name: str, *arguments: ir.Value, result: ir.Type | None = None) -> ir.Value:
        """A call of an LLVM intrinsic, or of a function of the C library."""
        kind = ir.FunctionType(result or arguments[0].type, [argument.type for argument in arguments])
        module = self.builder.module
        function = module.globals.get(name) or ir.Function(module, kind, name)
        return self.builder.call(function, arguments)

    # conversions

    def pattern(self, value: Value) -> Value:
        """The bits of *value*."""
        if value.kind != "f":
            return Value(value.llvm, "u", value.bits, value.known)
        return Value(self.builder.bitcast(value.llvm, ir.IntType(value.bits)), "u", value.bits)

    def resize(self, value: Value, bits: int, kind: str | None = None) -> Value:
        """An integer in another width, sign-extended if it is signed."""
        kind = kind or value.kind
        if value.known is not None:
            return constant(signed(value), bits, kind)
        target = ir.IntType(bits)
        if bits < value.bits:
            return Value(self.builder.trunc(value.llvm, target), kind, bits)
        if bits > value.bits:
            extend = self.builder.sext if value.kind in ("i", "n") and value.bits > 1 else self.builder.zext
            return Value(extend(value.llvm, target), kind, bits)
        return Value(value.llvm, kind, bits)

    def view(self, value: Value, kind: str, bits: int) -> Value:
        """The low *bits* of *value*, as another type."""
        raw = self.resize(self.pattern(value), bits, "u")
        if kind == "f":
            if bits not in FLOATS:
                raise PseudocodeError(f"a float of {bits} bits")
            return Value(self.builder.bitcast(raw.llvm, FLOATS[bits]), "f", bits)
        return Value(raw.llvm, kind, bits, raw.known)

    def single(self, value: Value) -> Value:
        """A bfloat as a float."""
        if value.kind != "bf":
            return value
        wide = self.builder.shl(self.builder.zext(value.llvm, ir.IntType(32)), ir.Constant(ir.IntType(32), 16))
        return Value(self.builder.bitcast(wide, FLOATS[32]), "f", 32)

    def real(self, value: Value, bits: int) -> Value:
        """*value* as a float of *bits*: converted, or reinterpreted if it was written as a bit pattern."""
        if value.is_pattern:
            return self.view(value, "f", bits)
        value = self.single(value)
        target = FLOATS[bits]
        if value.kind == "f":
            if bits == value.bits:
                return value
            if (value.bits, bits) == (64, 16):
                return self.real(self.rounded_to_odd(value), 16)
            convert = self.builder.fpext if bits > value.bits else self.builder.fptrunc
            return Value(convert(value.llvm, target), "f", bits)
        convert = self.builder.uitofp if value.kind == "u" else self.builder.sitofp
        return Value(convert(value.llvm, target), "f", bits)

    def rounded_to_odd(self, value: Value) -> Value:
        """A double as a float that records in its last bit whether it is inexact, so that it can be rounded once
        more."""
        near = self.real(value, 32)
        back = self.real(near, 64)
        farther = self.compare(">", self.named("fabs", back), self.named("fabs", value)).llvm
        inexact = self.builder.fcmp_ordered("!=", back.llvm, value.llvm)
        raw = self.pattern(near).llvm
        below = self.builder.sub(raw, self.builder.zext(farther, raw.type))
        return self.view(Value(self.builder.or_(below, self.builder.zext(inexact, raw.type)), "u", 32), "f", 32)

    def whole(self, value: Value, kind: str, bits: int) -> Value:
        """A float as an integer: truncated, saturated, NaN as 0."""
        value = self.single(value)
        name = f"llvm.fpto{'s' if kind == 'i' else 'u'}i.sat.i{bits}.{_NAMES[value.bits]}"
        return Value(self.intrinsic(name, value.llvm, result=ir.IntType(bits)), kind, bits)

    def cast(self, value: Value, kind: str, bits: int) -> Value:
        """``64'U(value)``."""
        if kind == "bf":
            return self.bfloat(value)
        if kind == "f":
            return self.real(value, bits)
        if value.is_float:
            return self.resize(self.pattern(value), bits, kind)
        return self.resize(value, bits, kind)

    def bfloat(self, value: Value) -> Value:
        """The nearest bfloat, ties to even."""
        if value.kind == "bf":
            return value
        raw = self.pattern(self.real(value, 32)).llvm
        word = raw.type
        odd = self.builder.and_(self.builder.lshr(raw, ir.Constant(word, 16)), ir.Constant(word, 1))
        rounded = self.builder.add(self.builder.add(raw, odd), ir.Constant(word, 0x7FFF))
        nan = self.builder.icmp_unsigned(
            ">", self.builder.and_(raw, ir.Constant(word, 0x7FFFFFFF)), ir.Constant(word, 0x7F800000)
        )
        kept = self.builder.select(nan, self.builder.or_(raw, ir.Constant(word, 0x400000)), rounded)
        high = self.builder.lshr(kept, ir.Constant(word, 16))
        return Value(self.builder.trunc(high, ir.IntType(16)), "bf", 16)

    def fit(self, value: Value, kind: str, bits: int) -> Value:
        """*value* as it is stored in a variable of that type."""
        if kind == "f":
            return self.real(value, bits) if value.is_float else self.view(value, "f", bits)
        if kind == "bf":
            return self.bfloat(value) if value.is_float else self.view(value, "bf", bits)
        return self.resize(self.pattern(value) if value.is_float else value, bits, kind)

    def truth(self, value: Value) -> ir.Value:
        """Whether *value* is not zero."""
        if value.is_float:
            return self.builder.fcmp_unordered("!=", value.llvm, ir.Constant(value.llvm.type, 0.0))
        if value.bits == 1:
            return value.llvm
        return self.builder.icmp_unsigned("!=", value.llvm, ir.Constant(value.llvm.type, 0))

    def flag(self, llvm: ir.Value) -> Value:
        return Value(llvm, "u", 1)

    # arithmetic

    def meet(self, left: Value, right: Value) -> tuple[Value, Value]:
        """Both operands in the type in which an operation on them is computed."""
        left, right = self.single(left), self.single(right)
        if left.is_float or right.is_float:
            bits = max(value.bits for value in (left, right) if value.is_float)
            return self.real(left, bits), self.real(right, bits)
        bits = max(left.bits, right.bits)
        kinds = {left.kind, right.kind} - {"n"}
        kind = "u" if "u" in kinds else "i" if kinds else "n"
        if kinds == {"i", "u"} and left.bits != right.bits:
            kind = left.kind if left.bits > right.bits else right.kind
        return self.resize(left, bits, kind), self.resize(right, bits, kind)

    def operate(self, operator: str, left: Value, right: Value) -> Value:
        """``left operator right``."""
        if operator in ("&&", "||"):
            join = self.builder.and_ if operator == "&&" else self.builder.or_
            return self.flag(join(self.truth(left), self.truth(right)))
        if operator in ("<<", ">>"):
            return self.shift(operator, left, right)
        if operator == "**":
            return self.scale(left, right)
        left, right = self.meet(left, right)
        if operator in ("==", "!=", "<>", "<", ">", "<=", ">="):
            return self.compare(operator, left, right)
        if left.known is not None and right.known is not None and operator in _KNOWN:
            return constant(_KNOWN[operator](signed(left), signed(right)), left.bits, left.kind)
        operation = (_REAL if left.is_float else _WHOLE).get(operator)
        if operation is None:
            raise PseudocodeError(f"the operator {operator} for {left.kind}{left.bits}")
        return Value(operation(self.builder, left.llvm, right.llvm), left.kind, left.bits)

    def compare(self, operator: str, left: Value, right: Value) -> Value:
        unequal = operator == "<>"  # less or greater, so false for NaN
        if left.is_float:
            order = self.builder.fcmp_unordered if operator == "!=" else self.builder.fcmp_ordered
            return self.flag(order("!=" if unequal else operator, left.llvm, right.llvm))
        operator = "!=" if unequal else operator
        order = self.builder.icmp_unsigned if left.kind == "u" else self.builder.icmp_signed
        return self.flag(order(operator, left.llvm, right.llvm))

    def shift(self, operator: str, left: Value, right: Value) -> Value:
        """Bits shifted out are lost, at any distance; signed integers keep the sign."""
        if left.known is not None and right.known is not None:
            number = signed(left)
            number = number << right.known if operator == "<<" else number >> right.known
            return constant(number, left.bits, left.kind)
        amount = self.resize(self.pattern(right), max(left.bits, right.bits), "u").llvm
        within = self.builder.icmp_unsigned("<", amount, ir.Constant(amount.type, left.bits))
        last = self.builder.select(within, amount, ir.Constant(amount.type, left.bits - 1))
        last = self.builder.trunc(last, left.llvm.type) if right.bits > left.bits else last
        if operator == ">>" and left.kind == "i":
            return Value(self.builder.ashr(left.llvm, last), left.kind, left.bits)
        shifted = (self.builder.shl if operator == "<<" else self.builder.lshr)(left.llvm, last)
        zero = ir.Constant(left.llvm.type, 0)
        return Value(self.builder.select(within, shifted, zero), left.kind, left.bits)

    def scale(self, left: Value, right: Value) -> Value:
        """``2.0F ** right``: the manuals use no other power of an integer."""
        one = real(1.0, left.bits)
        if str(left.llvm.constant) != "2.0" or right.is_float:
            raise PseudocodeError("a power of something else than 2")
        return self.ldexp(one, right)

    def ldexp(self, value: Value, exponent: Value) -> Value:
        """*value* times a power of 2, rounded once."""
        power = self.resize(exponent, 32, "i").llvm
        name = f"llvm.ldexp.{_NAMES[value.bits]}.i32"
        return Value(self.intrinsic(name, value.llvm, power), "f", value.bits)

    def bit(self, value: Value, index: Value) -> Value:
        """One bit."""
        raw = self.pattern(value)
        return self.view(self.shift(">>", raw, index), "u", 1)

    def named(self, name: str, *values: Value) -> Value:
        """LLVM's intrinsic of that name for floats of one width."""
        result = self.intrinsic(f"llvm.{name}.{_NAMES[values[0].bits]}", *(value.llvm for value in values))
        return Value(result, "f", values[0].bits)


_KNOWN: dict[str, Callable[[int, int], int]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "&": lambda left, right: left & right,
    "|": lambda left, right: left | right,
}
_WHOLE: dict[str, Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]] = {
    "+": ir.IRBuilder.add,
    "-": ir.IRBuilder.sub,
    "*": ir.IRBuilder.mul,
    "&": ir.IRBuilder.and_,
    "|": ir.IRBuilder.or_,
    "^": ir.IRBuilder.xor,
}
_REAL: dict[str, Callable[[ir.IRBuilder, ir.Value, ir.Value], ir.Value]] = {
    "+": ir.IRBuilder.fadd,
    "-": ir.IRBuilder.fsub,
    "*": ir.IRBuilder.fmul,
    "/": ir.IRBuilder.fdiv,
}
