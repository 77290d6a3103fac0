"""Arguments of sin, cos and tan modulo pi/2, over the whole range of the format.

float32 is reduced in float64, whose 53 bits leave room for the product: multiply by those digits of 2/pi that matter
for the quadrant and the rest (Payne and Hanek, "Radian reduction for trigonometric functions", 1983), picked by three
selects. The instructions are the same for all arguments.

For float64 up to 2**40, n pi/2 is subtracted as a sum of three words (Cody and Waite, 1980; the first difference
is exact). Beyond, four words of 2/pi are read from a table of 32 rows, and the products are kept
exact. This is behind a branch, as it costs more than everything else and hardly any argument needs it. LLVM's
vectoriser turns the branch into selects and masked gathers; our own vectoriser skips it if no lane needs it.
"""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib.cpu.coefficients import TWO_OVER_PI_ROWS, TWO_OVER_PI_SINGLE
from hip_devicelib.cpu.expressions import Code, Real, Word, muladd, select
from hip_devicelib.cpu.pairs import (
    Pair,
    add,
    add_ordered,
    error_of_short_product,
    multiply,
    multiply_constant,
    remainder_of,
)

TABLE = "__hip_cpu_two_over_pi"


USUAL_LIMIT = 2.0**40
"""The largest argument for which multiples of pi/2 are subtracted."""


def reduce(code: Code, magnitude: Real) -> tuple[Word, Pair]:
    """The quadrant n, of which the lowest two bits count, and magnitude - n pi/2; NaN for infinity and NaN."""
    return _reduce_single(code, magnitude) if code.single else _reduce_double(code, magnitude)


def _reduce_single(code: Code, magnitude: Real) -> tuple[Word, Pair]:
    """The same steps for all float32, in float64, whose 53 bits leave room for the product with a word of 2/pi."""
    wide = magnitude.widened()
    double = wide.code
    words: list[Real] = [double.real(word) for word in TWO_OVER_PI_SINGLE[0]]
    for k, row in enumerate(TWO_OVER_PI_SINGLE[1:], 1):
        beyond = wide >= 2.0 ** (24 + 26 * k)
        words = [select(beyond, new, word) for new, word in zip(row, words, strict=True)]
    product = wide * words[0]
    error = muladd(wide, words[1], error_of_short_product(words[0], wide, product))
    magic = double.format.round_magic
    shifted = product + magic
    rest = (product - (shifted - magic)) + error
    again = shifted + rest
    turn = (rest - (again - shifted)) * double.constant("half_pi")[0]
    high = turn.narrowed(code)
    return again.word().resized(32).within(code), Pair(high, (turn - high.widened()).narrowed(code))


def _reduce_double(code: Code, magnitude: Real) -> tuple[Word, Pair]:
    n, bits = code.nearest(magnitude, code.constant("two_over_pi")[0])
    first, second, third = code.constant("half_pi")
    difference = remainder_of(magnitude, n, first)
    product = multiply(n, second)
    total = add(difference, -product.high)
    high, low = add_ordered(total.high, muladd(n, -third, total.low - product.low))

    def far() -> tuple[Real | Word, ...]:
        quadrant, rest = reduce_far(code, magnitude)
        return quadrant, rest.high, rest.low

    quadrant, high, low = code.rarely(magnitude > USUAL_LIMIT, far, (bits, high, low))
    return quadrant, Pair(high, low)


def reduce_far(code: Code, magnitude: Real) -> tuple[Word, Pair]:
    """`reduce` for float64 above `USUAL_LIMIT`: the product with four words of 2/pi, with multiples of 4 removed from
    each part."""
    word = magnitude.word()
    one = code.format.bias << code.format.fraction
    row = ((word - one) >> 57) & 31  # the exponent divided by 32, masked so that any load is inside the table
    scaled = (word - (row << 57)).real()
    words = [_load(code, row, k) for k in range(4)]
    first, second, third = (multiply(scaled, factor) for factor in words[:3])
    quarter_turns = _modulo_4(first.high) + _modulo_4(first.low)
    whole, other = quarter_turns.rint(), second.high.rint()
    sum_ = add(quarter_turns - whole, second.high - other)
    again = sum_.high.rint()
    small = add(second.low, third.high)
    total = add(sum_.high - again, small.high)
    low = (small.low + total.low + sum_.low) + muladd(scaled, words[3], third.low)
    turn = add_ordered(total.high, low)
    quadrant = (_modulo_4(other) + whole + again + code.format.round_magic).word()
    rest = _quarter_turns(code, turn)
    return quadrant, Pair(select(magnitude.equals(float("inf")), code.real(float("nan")), rest.high), rest.low)


def _modulo_4(x: Real) -> Real:
    return muladd((x * 0.25).rint(), -4.0, x)


def _quarter_turns(code: Code, turn: Pair) -> Pair:
    product = multiply_constant(turn.high, code.constant("half_pi"))
    return add_ordered(product.high, muladd(turn.low, code.constant("half_pi")[0], product.low))


def _load(code: Code, row: Word, column: int) -> Real:
    builder = code.builder
    table = _table(builder.module)
    zero = ir.Constant(ir.IntType(64), 0)
    address = builder.gep(table, [zero, row.value, ir.Constant(ir.IntType(64), column)], inbounds=True)
    return Real(code, builder.load(address))


def _table(module: ir.Module) -> ir.GlobalVariable:
    """The table of 2/pi in *module*: 1 KiB, a row of four for each 32 exponents."""
    if TABLE in module.globals:
        return module.globals[TABLE]
    row = ir.ArrayType(ir.DoubleType(), 4)
    table = ir.GlobalVariable(module, ir.ArrayType(row, len(TWO_OVER_PI_ROWS)), TABLE)
    table.initializer = ir.Constant(table.value_type, [ir.Constant(row, list(values)) for values in TWO_OVER_PI_ROWS])
    table.global_constant = True
    table.linkage = "linkonce_odr"
    table.unnamed_addr = True
    table.align = 32
    return table
