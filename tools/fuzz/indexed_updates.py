"""Random atomic operations and operations of waves of kernels with computed indices."""

from __future__ import annotations

from dataclasses import dataclass

from tools.fuzz.indexed_loops import LoopGenerator
from tools.fuzz.indexed_values import BINS, code, plain, store
from tools.fuzz.program import Line, Text, group


@dataclass
class UpdateGenerator(LoopGenerator):
    """Generates what several threads do to the same memory, or together."""

    # Atomic operations. Those on counters of several threads commute, or are of different counters.

    def _atomic(self, depth: int) -> list[Line]:
        which = self.choose.randrange(8)
        one = f"{self.value(1)} % {BINS}"  # of all threads, of a block, of neighbours, of any
        bin_ = self.one_of("3", f"hip.blockIdx.x % {BINS}", f"q // 16 % {BINS}", one, one, one)
        small = self.one_of("1", "s & 15", "t & 7", "q & 3")
        if which < 2:
            name, operation = self.choose.choice((
                ("sums", "add"), ("sums", "add"), ("sums", "sub"), ("greatest", "max"), ("least", "min"),
                ("real_sums", "add"), ("real_greatest", "max"), ("real_least", "min"), ("flips", "xor"),
            ))  # fmt: skip
            given = (
                small
                if operation in ("add", "sub", "xor")
                else f"{self.value(1)} % 301 - {310 if operation == 'max' else 5}"
            )
            if name == "flips":
                given = "1 << (s & 15)"
            given = f"np.float32({given})" if name.startswith("real") else given
            return [code(f"hip.atomic.{operation}({self.use(name)}, {bin_}, {given})")]
        if which == 2:  # next to each other
            place = self.new("b")
            changes = [
                code(f"hip.atomic.{operation}({self.use('both')}, ({place}, {column}), {given})")
                for column, (operation, given) in enumerate((("add", small), ("max", "s"), ("min", "t"), ("add", "1")))
            ]
            return [group(code(f"{place} = {bin_}"), *changes)]
        if which == 3:
            told = f"if hip.atomic.cas({self.use('flags')}, {bin_}, 0, 1) == 0:"
            return [code(told, code(f"hip.atomic.add({self.use('sums')}, 0, 1)"))]
        if which == 4:
            return [code(f"hip.atomic.inc({self.use('rounds')}, {bin_}, np.uint32(np.int64(9)))")]
        if which == 5 and depth == 1 and "list_found" not in self.used:
            place, value = self.new("p"), self.one_of("q", "s & 63")
            ask = code(f"{place} = hip.atomic.add({self.use('count')}, 0, 1)")
            put = store(self.use("list_found"), place, value)
            return [group(ask, code(f"if {place} < list_found.size:", put))]
        return self._own_atomic(small)

    def _own_atomic(self, small: str) -> list[Line]:
        """Operations on the thread's own element, whose results are used or not, next to those on another array."""
        lines = []
        for _ in range(self.choose.randint(1, 3)):
            array, place = self.use(self.one_of("own", "own_reals")), "q"
            operation = self.one_of("add", "sub", "max", "min", "exch", "cas")
            kind = "float64" if array == "own_reals" else "int64"
            if operation == "cas" and kind == "float64":
                operation = "min"
            given = f"np.{kind}({small})"
            given = f"np.int64({self.one_of('s', 't', '7')}), {given}" if operation == "cas" else given
            call = f"hip.atomic.{operation}({array}, {place}, {given})"
            lines.append(self._target(f"np.int64({call})") if self.choose.random() < 0.5 else code(call))
            if self.choose.random() < 0.3:
                lines.append(self._target(f"np.int64({array}[{place}])"))
        return lines

    # Operations of waves. Those lanes take part that are there.

    def _key(self) -> str:
        return f"({', '.join(self.turns)},)"

    def _ballot(self, depth: int) -> list[Line]:
        name, condition, which = self.new("m"), self.condition(), self.one_of("ballot", "ballot", "any", "all")
        ask = Text(f"{name} = hip.{which}({condition})", f'{name} = yield "{which}", {self._key()}, {plain(condition)}')
        if which == "ballot":
            use = self.one_of(f"np.int64(hip.popc({name}))", f"np.int64(hip.ffs({name}))", f"np.int64({name} & 255)")
            if "255" in use:
                return [
                    group(
                        Line(ask), Line(Text(f"t = t ^ np.int64({name} & np.uint64(255))", f"t = t ^ ({name} & 255)"))
                    )
                ]
        else:
            use = f"(5 if {name} else 2)"
        return [group(Line(ask), self._target(use))]

    def _shuffle(self, depth: int) -> list[Line]:
        """The number of the first lane that is there."""
        mask, name = self.new("m"), self.new("x")
        ask = Text(f"{mask} = hip.ballot(True)", f'{mask} = yield "ballot", {self._key()}, True')
        source = f"int(hip.ffs({mask})) - 1"
        self.turns.append("0")
        told = f'{name} = yield "shuffle", {self._key()}, s, {plain(source)}'
        self.turns.pop()
        return [
            group(Line(ask), Line(Text(f"{name} = hip.shfl(s, {source})", told)), self._target(f"np.int64({name})"))
        ]
