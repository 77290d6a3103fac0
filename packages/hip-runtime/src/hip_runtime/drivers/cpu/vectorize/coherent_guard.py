"""The condition that divisions and clamps are coherent, and what is known where it holds."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from llvmlite import ir

from hip_runtime.drivers.cpu.analyses.affine import signed_number
from hip_runtime.drivers.cpu.analyses.clamps import Clamp, Wrap
from hip_runtime.drivers.cpu.analyses.coherent_divisions import REPEATED, CoherentDivision
from hip_runtime.drivers.cpu.analyses.conditions import negate
from hip_runtime.drivers.cpu.analyses.known_ranges import KnownRanges, constant
from hip_runtime.drivers.cpu.analyses.uniformity import is_arithmetic
from hip_runtime.drivers.cpu.ir.clone import Copies
from hip_runtime.drivers.cpu.ir.model import FIRST, RAMP, Block, Constant, Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I1, I64, VOID
from hip_runtime.drivers.cpu.vectorize.row_crossing import CrossedRow
from hip_runtime.drivers.cpu.vectorize.row_split import RowGuard


class CoherentGuard:
    """The condition is computed behind the instructions *before*; what it needs of those that are *behind* it is
    computed twice."""

    def __init__(self, before: list[Instruction], behind: Collection[Instruction], width: int) -> None:
        self._made = Block("coherent", before)
        self._behind = behind
        self._width = width
        self._repeated: dict[Instruction, Instruction | None] = {}
        self._holds: list[Value] = []
        self._fits: list[Value] = []
        """Whether the lanes of a whole gang are in one row, which has room for some."""
        self._rooms: list[Value] = []
        self._divisors: list[Value] = []
        self._known: dict[tuple[Value, Value | int, int], tuple[Value, Value]] = {}
        self._replaced: dict[Instruction, Value] = {}
        self._ranges = KnownRanges()
        self._written: dict[Value, tuple[Value, set[Value], set[Value]]] = {}
        """For each quotient the remainder, what is divided, and by what."""
        self._clamps = False

    def add(self, found: CoherentDivision | Clamp, is_compared: bool = False) -> bool:
        """Require that *found* is coherent; ``False`` if that cannot be told here. A clamp that *is_compared* is not
        negative, either, so that it is known not to wrap."""
        if isinstance(found, CoherentDivision):
            return self._add_division(found)
        self._clamps = True
        return self._add_wrap(found) if isinstance(found, Wrap) else self._add_clamp(found, is_compared)

    def _add_clamp(self, clamp: Clamp, is_compared: bool) -> bool:
        """Require that *clamp* is its index in all lanes, which the first and the last one tell."""
        kind, sign = clamp.value.type, clamp.sign
        index, limit = (self._available(self._known_value(value)) for value in (clamp.index, clamp.limit))
        if index is None or limit is None:
            return False
        ends = self._require_order(index, clamp.stride, sign)
        if ends is None:
            return False
        least, largest = ends
        end, predicate = (largest, f"{sign}le") if clamp.is_upper else (least, f"{sign}ge")
        self._holds.append(self._made.append("icmp", I1, end, limit, predicate=predicate))
        difference = clamp.subtracts and self._made.append("sub", kind, index, limit)
        self._replaced[clamp.value] = difference or index
        if is_compared and sign == "s" and clamp.stride > 0:
            self._holds.append(self._compare("sge", least, 0))
            self._replaced[clamp.value] = self._made.append(RAMP, kind, least, constant(kind, clamp.stride))
        return True

    def _add_wrap(self, wrap: Wrap) -> bool:
        """Require that no lane is at the edge, which the first and the last one tell."""
        compared, bound, index = (
            self._available(self._known_value(value)) for value in (wrap.compared, wrap.bound, wrap.index)
        )
        if compared is None or bound is None or index is None:
            return False
        predicate = wrap.predicate
        ends = self._require_order(compared, wrap.step, "u" if predicate.startswith("u") else "s")
        if ends is None:
            return False
        least, largest = ends
        if predicate == "eq":
            below = self._made.append("icmp", I1, largest, bound, predicate="slt")
            above = self._made.append("icmp", I1, least, bound, predicate="sgt")
            self._holds.append(self._made.append("or", I1, below, above))
        else:
            end = least if predicate[1:].startswith("l") else largest
            self._holds.append(self._made.append("icmp", I1, end, bound, predicate=negate(predicate)))
            if predicate == "slt" and index is compared and wrap.step > 0 and signed_number(bound) == 0:
                index = self._made.append(RAMP, index.type, least, constant(index.type, wrap.step))
        self._replaced[wrap.value] = index
        return True

    def _require_order(self, index: Value, stride: int, sign: str) -> tuple[Value, Value] | None:
        """The least and the largest of the lanes' *index*, which is required not to wrap as a number with that *sign*;
        ``None`` if it always does."""
        kind = index.type
        assert isinstance(kind, ir.IntType)
        reach = (self._width - 1) * stride
        if abs(reach) >= 1 << kind.width - 1:
            return None
        first = self._made.append("freeze", kind, self._made.append(FIRST, kind, index))
        last = self._made.append("add", kind, first, constant(kind, reach))
        least, largest = (first, last) if reach > 0 else (last, first)
        self._holds.append(self._made.append("icmp", I1, least, largest, predicate=f"{sign}le"))
        return least, largest

    def _known_value(self, value: Value) -> Value:
        """What stands for *value* where the condition holds."""
        return self._replaced.get(value, value) if isinstance(value, Instruction) else value

    def _add_division(self, found: CoherentDivision) -> bool:
        division = found.value
        dividend, divisor = (self._available(operand) for operand in division.operands)
        if dividend is None or divisor is None:
            return False
        number = signed_number(division.operands[1])
        key = (division.operands[0], division.operands[1] if number is None else number, found.stride)
        if key not in self._known:
            self._known[key] = self._divide(dividend, divisor, found.stride)
            most = 1 << division.type.width - 2
            quotient, remainder = self._known[key]
            for value in (quotient, remainder, dividend, division.operands[0]):
                self._ranges.learn(value, (0, most))
            divisors = (divisor, division.operands[1], self._require_divisor(division.operands[1]))
            for value in divisors:
                if not isinstance(value, Constant):
                    self._ranges.learn(value, (1, (1 << division.type.width - 1) - 1))
            self._written[quotient] = remainder, {dividend, division.operands[0]}, {*divisors}
        self._replaced[division] = self._known[key][0 if found.is_quotient else 1]
        return True

    def add_condition(self, condition: Value, expected: bool) -> None:
        """Require that *condition*, which is uniform, is *expected*."""
        found = self._available(condition)
        if found is not None and isinstance(condition, Instruction) and condition not in self._replaced:
            holds = found if expected else self._made.append("xor", I1, found, constant(I1, 1))
            self._holds.append(holds)
            self._replaced[condition] = constant(I1, int(expected))

    def finish(self, coherent: Block, apart: Block) -> list[Instruction]:
        """The instructions up to the branch: to *coherent* if all holds, else to *apart*."""
        holds, *others = [*self._holds, *self._fits]
        for other in others:
            holds = self._made.append("and", I1, holds, other)
        self._made.append("br", VOID, self._made.append("freeze", I1, holds), targets=[coherent, apart])
        return self._made.instructions

    def describe(self, block: Block, coherent: Block, apart: Block) -> RowGuard:
        """The branch at the end of *block*, for `row_split`."""
        return RowGuard(block, coherent, apart, self._holds, self._rooms, self._divisors)

    def crossed_row(self) -> CrossedRow | None:
        """The row whose end lanes may be before and behind, if there is one, and neighbours are in it."""
        if len(self._known) != 1 or self._clamps:
            return None
        ((_, _, stride),) = self._known
        ((quotient, remainders),) = self._known.values()
        (room,), (divisor,) = self._rooms, self._divisors
        if stride != 1 or quotient.type != I64:
            return None
        return CrossedRow(quotient, remainders, room, divisor, tuple(self._holds))

    def simplify(self, copies: Copies, instead: Mapping[Value, Value] | None = None) -> dict[Instruction, Value]:
        """Replace, in *copies* of what is behind, what is known there, or what is there *instead* of that. Returns what
        stands for each original."""
        instead = instead or {}
        for value, other in instead.items():
            known = self._ranges.of(value)
            if known is not None:
                self._ranges.learn(other, known)
        known_values = {value: instead.get(known, known) for value, known in self._replaced.items()}
        replaced: dict[Value, Value] = {
            value: known for value, known in known_values.items() if value not in self._behind
        }
        for original in copies.values:
            copy = copies.values[original]
            known = self._ranges.of(original)
            if known is not None:
                self._ranges.learn(copy, known)
            copy.operands = [replaced.get(operand, operand) for operand in copy.operands]
            self._decide_choice(copy)
            found = known_values.get(original) or self._find_remainder(copy, copies, instead)
            found = found or self._ranges.simplify(copy)
            if found is not None:
                replaced[copy] = found
        for block in copies.blocks.values():
            block.instructions = [copy for copy in block.instructions if copy not in replaced]
            for copy in block.instructions:
                copy.operands = [replaced.get(operand, operand) for operand in copy.operands]
        return {original: replaced.get(copy, copy) for original, copy in copies.values.items()}

    def _decide_choice(self, value: Instruction) -> None:
        """Have *value*, if it chooses by a comparison before the guard that is decided behind it, do so by a number."""
        condition = value.operands[0] if value.opcode == "select" else None
        if isinstance(condition, Instruction) and condition.opcode == "icmp":
            value.operands[0] = self._ranges.decide(condition) or condition

    def _find_remainder(self, value: Instruction, copies: Copies, instead: Mapping[Value, Value]) -> Value | None:
        """The remainder that *value*, in *copies*, computes from the quotient: ``i - i // width * width``."""
        product = value.operands[1] if value.opcode == "sub" else None
        if not isinstance(product, Instruction) or product.opcode != "mul":
            return None
        for quotient, (remainder, dividends, divisors) in self._written.items():
            known = instead.get(quotient, quotient)
            if known in product.operands and value.operands[0] in {*dividends, *map(copies.of, dividends)}:
                by = product.operands[product.operands[0] is known]
                if by in {*divisors, *map(copies.of, divisors)}:
                    return instead.get(remainder, remainder)
        return None

    def _divide(self, dividend: Value, divisor: Value, stride: int) -> tuple[Value, Value]:
        """The first lane's quotient, and the remainders of all lanes, if all have that quotient."""
        kind = dividend.type
        assert isinstance(kind, ir.IntType)
        reach = (self._width - 1) * stride
        first = self._made.append("freeze", kind, self._made.append(FIRST, kind, dividend))
        by = self._made.append("freeze", kind, divisor)
        small = self._compare("ule", first, (1 << kind.width - 2) - reach)
        positive = self._compare("sgt", by, 0)
        by = self._made.append("select", kind, positive, by, constant(kind, 1))  # which does not fit
        quotient = self._made.append("udiv", kind, first, by)
        rest = self._made.append("sub", kind, first, self._made.append("mul", kind, quotient, by))
        room = self._made.append("sub", kind, by, rest)
        self._fits.append(self._compare("ugt", room, reach))
        self._holds += [small, positive]
        self._rooms.append(room)
        self._divisors.append(by)
        return quotient, self._made.append(RAMP, kind, rest, constant(kind, stride))

    def _require_divisor(self, divisor: Value) -> Value:
        """The divisor that the program has, where LLVM divides by 1 instead of by such that trap."""
        if isinstance(divisor, Instruction) and divisor.opcode == "select":
            condition, taken, otherwise = divisor.operands
            if isinstance(taken, Constant) != isinstance(otherwise, Constant):
                self.add_condition(condition, isinstance(otherwise, Constant))
                return otherwise if isinstance(taken, Constant) else taken
        if isinstance(divisor, Instruction) and divisor.callee.startswith(("llvm.umax.", "llvm.smax.")):
            number, least = divisor.arguments
            found = self._available(number) if signed_number(least) == 1 else None
            if found is not None:
                self._holds.append(self._compare("sgt", found, 0))
                self._replaced[divisor] = number
                return number
        return divisor

    def _compare(self, predicate: str, value: Value, number: int) -> Instruction:
        assert isinstance(value.type, ir.IntType)
        return self._made.append("icmp", I1, value, constant(value.type, number), predicate=predicate)

    def _available(self, value: Value) -> Value | None:
        """*value* or, if it is computed behind the guard, the same value computed here; ``None`` if it cannot be."""
        if not isinstance(value, Instruction) or value not in self._behind:
            return value
        if value not in self._repeated:
            self._repeated[value] = self._repeat(value)
        return self._repeated[value]

    def _repeat(self, value: Instruction) -> Instruction | None:
        if value.opcode not in REPEATED and not is_arithmetic(value.callee):
            return None
        operands = [self._available(self._known_value(operand)) for operand in value.operands]
        if None in operands:
            return None
        made = replace(value, operands=[operand for operand in operands if operand is not None])
        self._made.instructions.append(made)
        return made
