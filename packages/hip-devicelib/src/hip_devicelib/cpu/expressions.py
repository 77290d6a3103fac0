"""Formulas as Python expressions that build LLVM IR.

A `Code` is the place where instructions are written, with the format (float32 or float64) that they use. A `Real` is a
number of that format, a `Word` an integer, a `Flag` a truth value. Operators on them append instructions without
fast-math flags. There are no calls other than LLVM's intrinsics that are single instructions, and no branches other
than `Code.rarely`. `muladd` is a fused multiply-add where the processor has one (`Code.fused`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Union, overload

from llvmlite import ir

from hip_devicelib.cpu.coefficients import CONSTANTS, POLYNOMIALS


@dataclass(frozen=True)
class Format:
    """A binary floating-point format of IEEE 754."""

    bits: int
    fraction: int
    """Bits of the significand that are stored."""

    @property
    def bias(self) -> int:
        return (1 << (self.bits - self.fraction - 2)) - 1

    @property
    def name(self) -> str:
        return f"f{self.bits}"

    @property
    def real(self) -> Any:
        return ir.FloatType() if self.bits == 32 else ir.DoubleType()

    @property
    def word(self) -> Any:
        return ir.IntType(self.bits)

    @property
    def tiny(self) -> float:
        """The smallest normal number."""
        return 2.0 ** (1 - self.bias)

    @property
    def least(self) -> float:
        """The smallest number above 0."""
        return self.tiny * 2.0**-self.fraction

    @property
    def largest(self) -> float:
        return (2.0 - 2.0**-self.fraction) * 2.0**self.bias

    @property
    def round_magic(self) -> float:
        """Added to a number below 2**(fraction - 1) in magnitude, it leaves the nearest integer in the low bits."""
        return 1.5 * 2.0**self.fraction


FLOAT32 = Format(32, 23)
FLOAT64 = Format(64, 52)
FORMATS = {32: FLOAT32, 64: FLOAT64}

RealLike = Union["Real", float]
WordLike = Union["Word", int]


class Code:
    """The place where a function's instructions are written."""

    def __init__(self, builder: ir.IRBuilder, form: Format, fused: bool = True) -> None:
        self.builder = builder
        self.format = form
        self.fused = fused
        """Whether the instructions are for processors with a fused multiply-add."""

    @property
    def single(self) -> bool:
        """Whether the format is float32."""
        return self.format.bits == 32

    def widened(self) -> Code:
        """The same place, but computing in float64."""
        return Code(self.builder, FLOAT64, self.fused)

    def real(self, value: RealLike) -> Real:
        return value if isinstance(value, Real) else Real(self, ir.Constant(self.format.real, value))

    def word(self, value: WordLike, bits: int | None = None) -> Word:
        if isinstance(value, Word):
            return value
        bits = bits or self.format.bits
        return Word(self, ir.Constant(ir.IntType(bits), value & ((1 << bits) - 1)))

    def constant(self, name: str) -> tuple[float, ...]:
        """The words of a constant of the coefficients, in this format."""
        return CONSTANTS[name, self.format.bits]

    def intrinsic(self, name: str, *arguments: Real) -> Real:
        """A call of LLVM's intrinsic *name*, whose result and arguments are of one type."""
        kind = arguments[0].value.type
        signature = ir.FunctionType(kind, [kind] * len(arguments))
        function = self.builder.module.declare_intrinsic(name, [kind], signature)
        return Real(self, self.builder.call(function, [argument.value for argument in arguments]))

    def polynomial(self, x: Real, name: str) -> Real:
        """The polynomial *name* at *x*."""
        return self.series(x, POLYNOMIALS[name, self.format.bits])

    def plain_polynomial(self, x: Real, name: str) -> Real:
        """The same by Horner's rule alone: the fewest instructions, but each waits for the one before."""
        return self.horner(x, POLYNOMIALS[name, self.format.bits])

    def series(self, x: Real, coefficients: Sequence[float]) -> Real:
        """sum(c * x**k) for \\|x\\| <= 1: by Horner's rule, a long sum in two halves, which shortens the latency.

        Halves rather than odd and even terms: if signs alternate, sums of every other term would be larger than the
        whole.
        """
        if len(coefficients) < 7:
            return self.horner(x, coefficients)
        doublings = 3 if len(coefficients) > 12 else 2
        power = x
        for _ in range(doublings):
            power = power * power
        middle = 1 << doublings
        return muladd(self.horner(x, coefficients[middle:]), power, self.horner(x, coefficients[:middle]))

    def horner(self, x: Real, coefficients: Sequence[float]) -> Real:
        """sum(c * x**k) by Horner's rule."""
        *rest, last = coefficients
        total = self.real(last)
        for coefficient in reversed(rest):
            total = muladd(total, x, coefficient)
        return total

    def nearest(self, x: Real, factor: float) -> tuple[Real, Word]:
        """x * factor, rounded to an integer: as a number, and as a word whose low bits are that integer.

        For results below 2**(fraction - 1) in magnitude. No conversion is needed, which AVX2 lacks for float64.
        """
        shifted = muladd(x, factor, self.format.round_magic)
        return shifted - self.format.round_magic, shifted.word()

    def power_of_two(self, exponent: Word) -> Real:
        """2**exponent for a normal result; only the low bits of *exponent* count."""
        form = self.format
        return ((exponent << form.fraction) + (form.bias << form.fraction)).real()

    def rarely(
        self, condition: Flag, alternative: Callable[[], tuple[Real | Word, ...]], usual: tuple[Any, ...]
    ) -> tuple[Any, ...]:
        """*usual*, or if *condition* holds, the result of *alternative*, behind a branch."""
        before = self.builder.block
        with self.builder.if_then(condition.value, likely=False):
            inside = alternative()
            last = self.builder.block
        results = []
        for old, new in zip(usual, inside, strict=True):
            phi = self.builder.phi(old.value.type)
            phi.add_incoming(old.value, before)
            phi.add_incoming(new.value, last)
            results.append(type(old)(self, phi))
        return tuple(results)


@dataclass(frozen=True, eq=False)
class Flag:
    """A truth value."""

    code: Code
    value: Any

    def __and__(self, other: Flag) -> Flag:
        return Flag(self.code, self.code.builder.and_(self.value, other.value))

    def __or__(self, other: Flag) -> Flag:
        return Flag(self.code, self.code.builder.or_(self.value, other.value))

    def __xor__(self, other: Flag) -> Flag:
        return Flag(self.code, self.code.builder.xor(self.value, other.value))

    def __invert__(self) -> Flag:
        return Flag(self.code, self.code.builder.not_(self.value))


@dataclass(frozen=True, eq=False)
class Word:
    """An integer; arithmetic wraps around, comparisons and right shifts are unsigned."""

    code: Code
    value: Any

    @property
    def bits(self) -> int:
        return int(self.value.type.width)

    def _binary(self, operation: str, other: WordLike) -> Word:
        right = self.code.word(other, self.bits)
        return Word(self.code, getattr(self.code.builder, operation)(self.value, right.value))

    def __add__(self, other: WordLike) -> Word:
        return self._binary("add", other)

    def __sub__(self, other: WordLike) -> Word:
        return self._binary("sub", other)

    def __mul__(self, other: WordLike) -> Word:
        return self._binary("mul", other)

    def __and__(self, other: WordLike) -> Word:
        return self._binary("and_", other)

    def __or__(self, other: WordLike) -> Word:
        return self._binary("or_", other)

    def __xor__(self, other: WordLike) -> Word:
        return self._binary("xor", other)

    def __lshift__(self, other: WordLike) -> Word:
        return self._binary("shl", other)

    def __rshift__(self, other: WordLike) -> Word:
        return self._binary("lshr", other)

    def __lt__(self, other: WordLike) -> Flag:
        right = self.code.word(other, self.bits)
        return Flag(self.code, self.code.builder.icmp_unsigned("<", self.value, right.value))

    def equals(self, other: WordLike) -> Flag:
        right = self.code.word(other, self.bits)
        return Flag(self.code, self.code.builder.icmp_unsigned("==", self.value, right.value))

    def odd(self) -> Flag:
        """Whether the lowest bit is set."""
        return ~(self & 1).equals(0)

    def resized(self, bits: int) -> Word:
        """The low *bits*, zero-extended or truncated."""
        builder = self.code.builder
        change = builder.trunc if bits < self.bits else builder.zext
        return Word(self.code, change(self.value, ir.IntType(bits)))

    def within(self, code: Code) -> Word:
        """The same integer, for expressions of *code*."""
        return Word(code, self.value)

    def real(self) -> Real:
        """The number with these bits."""
        return Real(self.code, self.code.builder.bitcast(self.value, self.code.format.real))


@dataclass(frozen=True, eq=False)
class Real:
    """A floating-point number. Comparisons are false if an operand is NaN."""

    code: Code
    value: Any

    def _binary(self, operation: str, other: RealLike, swap: bool = False) -> Real:
        operands = [self.value, self.code.real(other).value]
        if swap:
            operands.reverse()
        return Real(self.code, getattr(self.code.builder, operation)(*operands))

    def __add__(self, other: RealLike) -> Real:
        return self._binary("fadd", other)

    def __radd__(self, other: float) -> Real:
        return self._binary("fadd", other, swap=True)

    def __sub__(self, other: RealLike) -> Real:
        return self._binary("fsub", other)

    def __rsub__(self, other: float) -> Real:
        return self._binary("fsub", other, swap=True)

    def __mul__(self, other: RealLike) -> Real:
        return self._binary("fmul", other)

    def __rmul__(self, other: float) -> Real:
        return self._binary("fmul", other, swap=True)

    def __truediv__(self, other: RealLike) -> Real:
        return self._binary("fdiv", other)

    def __rtruediv__(self, other: float) -> Real:
        return self._binary("fdiv", other, swap=True)

    def __neg__(self) -> Real:
        return Real(self.code, self.code.builder.fneg(self.value))

    def __abs__(self) -> Real:
        return self.code.intrinsic("llvm.fabs", self)

    def _compare(self, operation: str, other: RealLike) -> Flag:
        right = self.code.real(other)
        return Flag(self.code, self.code.builder.fcmp_ordered(operation, self.value, right.value))

    def __lt__(self, other: RealLike) -> Flag:
        return self._compare("<", other)

    def __le__(self, other: RealLike) -> Flag:
        return self._compare("<=", other)

    def __gt__(self, other: RealLike) -> Flag:
        return self._compare(">", other)

    def __ge__(self, other: RealLike) -> Flag:
        return self._compare(">=", other)

    def equals(self, other: RealLike) -> Flag:
        return self._compare("==", other)

    def unordered(self, other: RealLike) -> Flag:
        """Whether this or the other is NaN."""
        right = self.code.real(other)
        return Flag(self.code, self.code.builder.fcmp_unordered("uno", self.value, right.value))

    def is_nan(self) -> Flag:
        return self.unordered(self)

    def sqrt(self) -> Real:
        return self.code.intrinsic("llvm.sqrt", self)

    def rint(self) -> Real:
        """The nearest integer, ties to even, of any magnitude."""
        return self.code.intrinsic("llvm.rint", self)

    def with_sign_of(self, other: Real) -> Real:
        return self.code.intrinsic("llvm.copysign", self, other)

    def at_least(self, limit: RealLike) -> Real:
        """The larger one; NaN if this is NaN."""
        bound = self.code.real(limit)
        return select(self < bound, bound, self)

    def at_most(self, limit: RealLike) -> Real:
        """The smaller one; NaN if this is NaN."""
        bound = self.code.real(limit)
        return select(self > bound, bound, self)

    def word(self) -> Word:
        """The bits of this number."""
        return Word(self.code, self.code.builder.bitcast(self.value, self.code.format.word))

    def widened(self) -> Real:
        """The same number in float64."""
        code = self.code.widened()
        return Real(code, code.builder.fpext(self.value, code.format.real))

    def narrowed(self, code: Code) -> Real:
        """This number of float64, rounded to the format of *code*."""
        return Real(code, code.builder.fptrunc(self.value, code.format.real))


def fma(x: Real, y: RealLike, z: RealLike) -> Real:
    """x * y + z, rounded once; a call of the C library where the processor has no instruction for it."""
    code = x.code
    return code.intrinsic("llvm.fma", x, code.real(y), code.real(z))


def muladd(x: Real, y: RealLike, z: RealLike) -> Real:
    """x * y + z: rounded once where the processor has an instruction for that, otherwise product and sum.

    For formulas that bear both. Where the product's rounding error is what is wanted, `pairs` has it.
    """
    return fma(x, y, z) if x.code.fused else x * y + z


@overload
def select(condition: Flag, yes: Real, no: RealLike) -> Real: ...
@overload
def select(condition: Flag, yes: float, no: Real) -> Real: ...
@overload
def select(condition: Flag, yes: Word, no: WordLike) -> Word: ...
def select(condition: Flag, yes: Any, no: Any) -> Any:
    """*yes* if the condition holds, otherwise *no*."""
    pattern = yes if isinstance(yes, (Real, Word)) else no
    code = pattern.code
    if isinstance(pattern, Real):
        yes, no = code.real(yes), code.real(no)
    else:
        yes, no = code.word(yes, pattern.bits), code.word(no, pattern.bits)
    return type(pattern)(code, code.builder.select(condition.value, yes.value, no.value))


def choose(condition: Flag, yes: float, no: float) -> Real:
    """One of two constants."""
    code = condition.code
    return select(condition, code.real(yes), code.real(no))
