"""Random indices, computed as users do: clamped, also behind what is clamped, reflected, continued at the other edge,
and as quotients and remainders of integers of all widths with and without a sign.

An index expression is the same text in kernel and reference. All numbers are `numpy.int64`, unless a cast is spelt.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

NARROW = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
"""The types in which quotients and remainders are computed."""

SIGNED = ("int16", "int32", "int64")
"""Those that hold all numbers of a launch, which are below 2 ** 15, and their negatives."""


@dataclass
class Axis:
    """An axis of an array: the name of its extent, and of the variable that counts along it."""

    extent: str
    place: str


@dataclass
class IndexGenerator:
    """Generates indices of elements for the kernel of *seed*."""

    seed: int
    rows: tuple[str, str] | None = None
    """The variables with the row and column of the thread's element, if there are some."""
    inner: list[str] = field(default_factory=list)
    """Further variables that are valid indices here."""
    numbers: list[str] = field(default_factory=list)
    """Further variables with small numbers here, which may be negative."""
    least: int = 1
    """The smallest number of elements that suits all indices so far."""
    side: int = 1
    """The smallest number of rows, and of elements of a row."""
    used: set[str] = field(default_factory=set)
    """The arrays that are used."""

    def __post_init__(self) -> None:
        self.choose = random.Random(f"indices {self.seed}")
        self.counted = 0

    def one_of(self, *choices: str) -> str:
        """One of *choices*."""
        return self.choose.choice(choices)

    def small(self, axis: Axis | None = None, most: int = 4) -> int:
        """A small number; *axis* has more elements."""
        found = self.choose.choice((1, 1, self.choose.randint(1, most)))
        if axis is None or axis.extent == "n":
            self.least = max(self.least, found + 1)
        else:
            self.side = max(self.side, found + 1)
        return found

    def new(self, prefix: str) -> str:
        """The name of a new variable."""
        self.counted += 1
        return f"{prefix}{self.counted}"

    def use(self, name: str) -> str:
        """The array *name*, which is used from now on."""
        self.used.add(name)
        return name

    # One axis.

    def axes(self) -> tuple[Axis, Axis]:
        """Those of rows and columns; only for threads with a row and a column."""
        assert self.rows
        return Axis("h", self.rows[0]), Axis("w", self.rows[1])

    def inside(self, axis: Axis | None = None, depth: int = 2) -> str:
        """A number from 0 to below the extent of *axis*, by default of arrays with an element for each thread."""
        axis = axis or Axis("n", self.one_of("q", "q", "q", *self.inner))
        place, extent = axis.place, axis.extent
        which = self.choose.randrange(20)
        if depth <= 0 or which < 3:
            return self.one_of(place, place, f"({extent} - 1 - {place})", f"({place} // 2)", f"({place} & ~3)")
        if which < 7:
            return self._clamp(self.outside(axis, depth - 1), "0", f"{extent} - 1")
        if which == 7:  # the first bound may be beyond the second one
            low = self.one_of("3", "w", "h", f"{extent} // 2", "7")
            return f"min(max({self.outside(axis, depth - 1)}, {low}), {extent} - 1)"
        if which == 8:
            high = self.one_of(f"{extent} - 9", f"{extent} // 2", f"{extent} - 1")
            return f"max(min({self.outside(axis, depth - 1)}, {high}), 0)"
        if which < 12:  # both bounds are clamped themselves
            low = self._clamp(f"{place} - {self.choose.randint(1, 5)}", "0", f"{extent} - 1")
            high = self._clamp(f"{place} + {self.choose.randint(1, 5)}", "0", f"{extent} - 1")
            return self._clamp(self.outside(axis, depth - 1), low, high)
        if which < 14:
            return self._reflect(axis)
        if which < 16:
            return self._wrap(axis)
        if which == 16 and extent == "n":
            return f"np.int64({self.use('places')}[{place}])"
        return self._remainder(self.outside(axis, depth - 1), extent)

    def outside(self, axis: Axis, depth: int = 1) -> str:
        """A number that may be beyond both ends of *axis*, but is small."""
        if self.choose.random() < 0.4:
            return f"({axis.place} {self.one_of('+', '-')} {self.choose.randint(1, 4)})"
        one = self.inside(axis, depth)
        return self.one_of(
            f"({one} + {self.choose.randint(1, 4)})", f"({one} - {self.choose.randint(1, 4)})",
            f"({one} - {self.inside(axis, depth)})", f"(2 * {one} - {axis.extent})", f"({axis.place} * 3 - 7)",
            f"np.int64(np.int8({one}))", f"np.int64(np.uint8({one} + 200))", f"(-1 - {one})", "s", "(s - t)",
            *self.numbers,
        )  # fmt: skip

    def index(self, axis: Axis | None = None) -> str:
        """An index, which may count from the end."""
        axis = axis or Axis("n", "q")
        if self.choose.random() < 0.1:
            return f"{self.inside(axis, 1)} - {axis.extent}"
        if self.choose.random() < 0.1:  # it counts from the end for some threads only
            return f"{axis.place} - {self.small(axis)}"
        return self.inside(axis)

    def _clamp(self, number: str, low: str, high: str) -> str:
        which = self.choose.randrange(4)
        if which == 0:
            return f"max(min({number}, {high}), {low})" if low == "0" else f"min(max({number}, {low}), {high})"
        if which == 1 and len(number + low + high) < 30:
            return f"({low} if {number} < {low} else ({high} if {number} > {high} else {number}))"
        if which == 2 and len(number + low) < 30:
            return f"min(({number} if {number} > {low} else {low}), {high})"
        return f"min(max({number}, {low}), {high})"

    def _reflect(self, axis: Axis) -> str:
        """What is beyond one edge is reflected at it."""
        place, extent, by = axis.place, axis.extent, self.small(axis)
        if self.choose.random() < 0.5:
            before = f"{place} - {by}"
            return self.one_of(
                f"abs({before})", f"(-({before}) if {before} < 0 else {before})",
                f"(-1 - ({before}) if {before} < 0 else {before})",
            )  # fmt: skip
        behind = f"{place} + {by}"
        return self.one_of(
            f"({behind} if {behind} < {extent} else 2 * {extent} - 2 - ({behind}))",
            f"(2 * {extent} - 1 - ({behind}) if {behind} >= {extent} else {behind})",
            f"({extent} - 1 - abs({extent} - 1 - ({behind})))",
        )

    def _wrap(self, axis: Axis) -> str:
        """What is beyond one edge goes on at the other one."""
        place, extent, by = axis.place, axis.extent, self.small(axis)
        return self.one_of(
            f"({place} - {by} if {place} >= {by} else {place} - {by} + {extent})",
            f"({place} - {by} + {extent} if {place} - {by} < 0 else {place} - {by})",
            f"({place} + {by} - {extent} if {place} + {by} >= {extent} else {place} + {by})",
            f"({place} + 1 if {place} + 1 < {extent} else 0)", f"(0 if {place} == {extent} - 1 else {place} + 1)",
            f"(({place} + {by}) % {extent})", f"(({place} - {by}) % {extent})",
            f"(({place} - {by} + {extent}) % {extent})",
        )  # fmt: skip

    # Quotients and remainders.

    def _remainder(self, number: str, extent: str) -> str:
        """The rest of any *number*, divided by *extent*, with the sign of that."""
        kind = self.one_of("int64", "int64", *NARROW)
        if kind == "int8":  # does not hold all extents
            return f"((({number}) & 63) % {extent})"
        if kind == "uint8":
            return f"(np.int64(np.uint8({number})) % {extent})"
        if kind == "int64":
            return self.one_of(f"(({number}) % {extent})", f"(({number}) - ({number}) // {extent} * {extent})")
        return f"np.int64(np.{kind}({number}) % np.{kind}({extent}))"

    def quotient(self, number: str) -> str:
        """A row for *number*, from -n to below n, of an array with rows of w elements."""
        which = self.choose.randrange(8)
        if which < 2:
            return f"({number} // w)"
        if which < 4:  # rounded toward 0
            return self.one_of(f"np.int64({number} / w)", f"int({number} / w)")
        if which < 6:
            kind = self.one_of(*SIGNED)
            return f"np.int64(np.{kind}({number}) // np.{kind}(w))"
        kind = self.one_of("uint32", "uint64", "uint16", "int64")
        return f"np.int64((np.{kind}({number}) // np.{kind}(w)) % np.{kind}(h))"

    def rest(self, number: str) -> str:
        """A column for *number*, as for `quotient`."""
        which = self.choose.randrange(8)
        if which < 2:
            return f"({number} % w)"
        if which == 2:
            return f"({number} - {number} // w * w)"
        if which == 3:
            return f"np.int64(math.fmod({number}, w))"
        kind = self.one_of("uint64", "uint64", "uint32", "uint32", "uint16", *SIGNED)
        return f"np.int64(np.{kind}({number}) % np.{kind}(w))"

    def cell(self) -> str:
        """The row and the column of an element of an array of h rows of w elements."""
        if self.rows and self.choose.random() < 0.65:
            row, column = self.axes()
            return f"{self.index(row)}, {self.index(column)}"
        number = self.one_of("q", "q", *self.inner, f"(q - {self.small(most=9)})", f"(q - {self.small(most=9)})")
        return f"{self.quotient(number)}, {self.rest(number)}"

    def fixed_cell(self, columns: int) -> str:
        """The same of an array with *columns* columns, and more elements than there are threads."""
        number = self.one_of("q", "q", f"(q - {self.small(most=9)})")
        row = self.one_of(f"{number} // {columns}", f"int({number} / {columns})", f"np.int32({number}) // {columns}")
        column = f"{number} % {columns}"
        if columns & (columns - 1) == 0:
            row = self.one_of(row, f"{number} >> {columns.bit_length() - 1}")
            column = self.one_of(column, f"{number} & {columns - 1}")
        kind = self.one_of("uint64", "uint32", "int32")
        return f"{row}, {self.one_of(column, column, f'np.int64(np.{kind}({number}) % np.{kind}({columns}))')}"
