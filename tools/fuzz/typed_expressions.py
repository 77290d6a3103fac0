"""Random expressions of all types of numbers, for the kernels of `typed`."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from tools.fuzz.program import Text, arithmetic, both, same

INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
KINDS = INTEGERS + FLOATS

LONG = (1 << 31, (1 << 32) - 1, (1 << 32) + 1)
"""Numbers that more than 32 bits are needed for, with a sign."""


@dataclass
class ExpressionGenerator:
    """Generates the expressions of the kernel of *seed*. If *simulated*, Python runs the kernel, so it spells out the
    results of numbers that are out of range, and of the lowest number divided by -1."""

    seed: int
    simulated: bool = False
    arrays: dict[str, str] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.choose = random.Random(self.seed)
        self.waits, self.fast = self.choose.random() < 0.3, self.choose.random() < 0.15
        self.waves = self.waits and self.choose.random() < 0.6
        self.halves = self.choose.random() < 0.2 and not self.fast

    def _input(self, kind: str) -> str:
        self.arrays.setdefault(f"in_{kind}", f'numbers(generator, np.dtype("{kind}"), 2 * ROWS + 40)')
        return f"in_{kind}"

    def loaded(self) -> tuple[Text, str]:
        """An array element, and its type."""
        kind = self.choose.choice(INTEGERS if self.fast else (*KINDS, "bool", *["float16"] * self.halves))
        array = self._input(kind)
        place = self.choose.choice(
            ("[g]", "[g + 1]", "[(g * 3 + 1) % 37]", "[-1 - g]", "[::-1][g]", "[1::2][g]", "[5 - t % 9]", "[3]")
        )
        return same(array + place), kind

    def cast(self, value: Text, source: str, kind: str) -> Text:
        """*value*, of type *source*, as one of type *kind*."""
        if source == kind:
            return value
        if source.startswith("float") and kind in INTEGERS:
            return self._spell(f"np.{kind}({value.hip})", f"to_{kind}({{}})", value)
        return both(f"np.{kind}({{}})", value)

    def _spell(self, compiled: str, told: str, *parts: Text) -> Text:
        """An operation as the kernel has it, and as the function that defines its result."""
        return both(told, *parts) if self.simulated else Text(compiled, told.format(*(part.plain for part in parts)))

    def value(self, kind: str, depth: int) -> Text:
        """An expression of type *kind*."""
        choose = self.choose
        if kind in FLOATS and self.fast:
            return self._exact(kind)
        which = choose.random()
        if depth <= 0 or which < 0.2:
            if self.variables and choose.random() < 0.6:
                name = choose.choice([*self.variables])
                return self.cast(same(name), self.variables[name], kind)
            return self.cast(*self.loaded(), kind)
        if which < 0.35:
            other = choose.choice(KINDS)
            return self.cast(self.value(other, depth - 1), other, kind)
        if which < 0.45:
            one, two = self.value(kind, depth - 1), self.value(kind, depth - 1)
            return both("({} if {} else {})", one, self.condition(depth - 1), two)
        if which < 0.5:
            number = choose.choice((0, 1, 7, 100, *LONG * (kind in ("int64", "uint64"))))
            return same(f"np.{kind}({number})")
        return self._operation(kind, depth - 1)

    def _operation(self, kind: str, depth: int) -> Text:
        choose = self.choose
        one, two = self.value(kind, depth), self.value(kind, depth)
        if kind in FLOATS:
            if choose.random() < 0.2:
                return both(f"np.{kind}({{}} / (abs({{}}) + np.{kind}(1)))", one, two)
            return both(f"np.{kind}({{}} {choose.choice('+-*')} {{}})", one, two)
        which = choose.random()
        if which < 0.6:
            return arithmetic(kind, choose.choice("+-*&|^"), one, two)
        if which < 0.75:
            mask = {"8": 7, "6": 15, "2": 31, "4": 63}[kind[-1]]
            operation = choose.choice(("<<", ">>"))
            return both(f"np.{kind}({{}} {operation} np.{kind}({{}} & np.{kind}({mask})))", one, two)
        if which < 0.85:
            return both(f"{choose.choice(('min', 'max'))}({{}}, {{}})", one, two)
        if which < 0.92:
            return both(f"np.{kind}(abs({{}}))", one) if not kind.startswith("u") else one
        return both(f"np.{kind}(-{{}})", one)

    def _exact(self, kind: str) -> Text:
        """An expression whose result depends neither on the order of operations nor on rounding."""
        parts = [both(f"np.{kind}({{}} & 255)", self.value("int32", 1)) for _ in range(3)]
        return both(f"np.{kind}({{}} * {{}} {self.choose.choice('+-')} {{}} + np.{kind}(0.5))", *parts)

    def condition(self, depth: int) -> Text:
        """A condition."""
        choose = self.choose
        kind = choose.choice(INTEGERS if self.fast else KINDS)
        if choose.random() < 0.5 and kind in INTEGERS:
            mask = choose.choice((1, 3, 7))
            low = both(f"np.{kind}({{}} & np.{kind}({mask}))", self.value(kind, depth - 1))
            return both(f"({{}} == np.{kind}({choose.randint(0, mask)}))", low)
        return both(
            f"({{}} {choose.choice(('<', '>=', '!=', '=='))} {{}})", *(self.value(kind, depth - 1) for _ in "ab")
        )
