"""Random programs for the threads of a block: as SPMD bitcode, and evaluated with NumPy.

A program is a tree of statements. `write_kernel` writes it as LLVM IR; `evaluate` runs it for all threads of a block
at once under a mask of those that are active, as a GPU does, which shares nothing with the compiler under test.

Run as a program it tries as many cases as asked for: ``python spmd_programs.py --cases 1000 --seed 0``.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

import numpy as np
from spmd_kernels import code, pack

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, config, to_device
from hip_runtime.drivers.cpu.analyses import loops_left_late
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.drivers.cpu.strategies import kernel_graph, region
from hip_runtime.drivers.cpu.vectorize import gang_function

INTEGERS = ("a", "b", "c", "d")
FLOATS = ("x", "y")
PRIVATE = 4
BLOCKS = 3
OPERATIONS = """
declare i32 @spmd.lane(ptr)
declare i32 @spmd.wave_size(ptr)
declare void @spmd.barrier(ptr) convergent
declare i32 @spmd.barrier_count(ptr, i1) convergent
declare void @spmd.wave_barrier(ptr) convergent
declare i64 @spmd.active_lanes(ptr) convergent
declare i64 @spmd.ballot(ptr, i1) convergent
declare i32 @spmd.shuffle.i32(ptr, i32, i32) convergent
declare i64 @spmd.shuffle.i64(ptr, i64, i32) convergent
declare float @spmd.shuffle.float(ptr, float, i32) convergent
declare double @spmd.shuffle.double(ptr, double, i32) convergent
declare ptr @spmd.dynamic_shared(ptr)
declare i64 @spmd.dynamic_shared_bytes(ptr)
"""

PARAMETERS = [("out", "ptr"), ("n", "i32")]


@dataclass
class Statement:
    """One statement: what it does, names and numbers that it needs, and the statements inside of it."""

    kind: str
    words: tuple[Any, ...] = ()
    body: list[Statement] = field(default_factory=list)
    other: list[Statement] = field(default_factory=list)


class Generator:
    """Makes programs; the same seed makes the same. With *bounds* there are also branches and loops that compare where
    a thread is with a bound, as ``if i < n`` does, with *sums* such that some lanes of a wave use what its lanes
    combined by shuffles. *alone*, threads do not tell their blocks and waves."""

    def __init__(self, seed: int, bounds: bool = False, alone: bool = False, sums: bool = False) -> None:
        self.random = random.Random(seed)
        self._bounds = bounds
        self._sums = sums
        self._alone = alone
        self._loops = 0

    def program(self) -> list[Statement]:
        """A program of a dozen statements or so."""
        return self.statements(self.random.randint(4, 8), depth=0, together=True)

    def statements(self, count: int, depth: int, together: bool) -> list[Statement]:
        """*count* statements; *together* where all threads that have not returned run them at the same time."""
        return [self.statement(depth, together) for _ in range(count)]

    def statement(self, depth: int, together: bool) -> Statement:
        choose = self.random
        kinds = ["integer"] * 4 + ["float"] * 2 + ["keep", "fetch"]
        kinds += [] if self._alone else ["ballot", "shuffle", "shuffle", "active", "meet"]
        if depth < 3:
            kinds += ["if"] * 3 + ["loop"] * 2 + ["uniform_if", "uniform_loop"]
        if depth < 3 and self._bounds:
            kinds += ["within"] * 4 + ["walk"] * 3 + ["swap"] * 3
        if self._sums:
            kinds += ["sum"] * 8
        if depth < 2:
            kinds += ["return"]
        if together and not self._alone:
            kinds += ["exchange"] * 3 + ["count"] * 2 + ["barrier"]
        kind = choose.choice(kinds)
        make = getattr(self, f"_{kind}", None)
        if make is not None:
            return make(depth, together)
        return Statement(kind, self._words(kind))

    def _words(self, kind: str) -> tuple[Any, ...]:
        choose = self.random
        target, one, two = choose.choice(INTEGERS), choose.choice(INTEGERS), choose.choice(INTEGERS)
        if kind == "integer":
            operations = ("add", "sub", "mul", "xor", "and", "or", "shl3", *(() if self._alone else ("lane", "block")))
            return target, choose.choice(operations), one, two
        if kind == "float":
            operation = choose.choice(("fadd", "fsub", "fmul", "of_integer"))
            return choose.choice(FLOATS), operation, choose.choice((*FLOATS,)), choose.choice((*FLOATS,)), one
        if kind == "shuffle":
            return target, choose.choice(("i32", "float")), choose.choice(FLOATS), one, choose.choice((1, 2, 5, 31))
        if kind == "sum":
            steps = [
                (choose.choice(SOURCES), choose.choice((1, 2, 4, 8, 16, 32, 3))) for _ in range(choose.randint(1, 6))
            ]
            users = (
                choose.choice(("lane", "place")),
                choose.choice(("eq", "eq", "ult", "ne")),
                choose.choice((0, 0, 1, 4, 9, 37)),
            )
            return target, one, choose.choice(("add", "sub", "xor", "udiv")), steps, users
        return target, one, two, choose.randint(0, 7)

    def _if(self, depth: int, together: bool) -> Statement:
        words = (self.random.choice(INTEGERS), self.random.randint(1, 7))
        count = self.random.randint(1, 3)
        other = self.statements(self.random.randint(0, 2), depth + 1, False)
        return Statement("if", words, self.statements(count, depth + 1, False), other)

    def _place(self) -> tuple[int, ...]:
        """Factors of the indices of a thread and of its block, and a number to add."""
        choose = self.random.choice
        return choose((1, 1, 2, -1)), choose((0, 3, 16)), choose((0, 1)), choose((0, 8)), choose((0, 0, -5, 20))

    def _within(self, depth: int, together: bool) -> Statement:
        choose = self.random
        predicate = choose.choice(("slt", "sle", "sgt", "sge", "ult", "uge"))
        words = (self._place(), predicate, choose.choice((0, 7, 30, 60, 1000)), choose.choice((0, 20)))
        body, other = (self.statements(choose.randint(0, 2), depth + 1, False) for _ in range(2))
        return Statement("within", words, self._swaps() + body, other)

    def _swaps(self) -> list[Statement]:
        """In half of all cases, a statement that loads and stores what is next to its neighbours' places."""
        return [Statement("swap", self._words("swap"))] * self.random.randint(0, 1)

    def _walk(self, depth: int, together: bool) -> Statement:
        choose = self.random
        self._loops += 1
        limit = choose.choice((0, 10, 60, 100))
        words = (self._place(), limit, choose.randint(0, 9), limit // 4 + 9, f"w{self._loops}", choose.choice(INTEGERS))
        return Statement("walk", words, self._swaps() + self.statements(choose.randint(1, 2), depth + 1, False))

    def _loop(self, depth: int, together: bool) -> Statement:
        self._loops += 1
        words = (self.random.choice(INTEGERS), 3, f"i{self._loops}")
        return Statement("loop", words, self.statements(self.random.randint(1, 3), depth + 1, False))

    def _uniform_if(self, depth: int, together: bool) -> Statement:
        words = (self.random.randint(0, 3),)
        other = self.statements(self.random.randint(0, 2), depth + 1, together)
        return Statement("uniform_if", words, self.statements(2, depth + 1, together), other)

    def _uniform_loop(self, depth: int, together: bool) -> Statement:
        self._loops += 1
        words = (self.random.randint(1, 3), f"i{self._loops}", self.random.choice(INTEGERS))
        return Statement("uniform_loop", words, self.statements(self.random.randint(1, 3), depth + 1, together))

    def _return(self, depth: int, together: bool) -> Statement:
        return Statement("return", (self.random.choice(INTEGERS), self.random.choice((7, 15, 31))))


SOURCES = ("add", "add", "xor", "sub", "lane")
"""How the lane that a number is from follows from a lane and a number; as it is, for ``lane``."""


# LLVM IR


class Writer:
    """Writes the body of a kernel; every variable is an alloca, which LLVM makes registers of."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self.lines: list[str] = []
        self.loops: list[str] = []
        self.walks: list[str] = []
        self._number = 0

    def new(self, text: str) -> str:
        """A line that defines a new value."""
        self._number += 1
        self.lines.append(f"  %v{self._number} = {text}")
        return f"%v{self._number}"

    def say(self, *lines: str) -> None:
        """Lines without a result; labels begin at the left."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def label(self) -> str:
        """A new label."""
        self._number += 1
        return f"l{self._number}"

    def load(self, name: str) -> str:
        """The value of a variable."""
        return self.new(f"load {'float' if name in FLOATS else 'i32'}, ptr %{name}")

    def store(self, name: str, value: str) -> None:
        """Set a variable."""
        self.say(f"store {'float' if name in FLOATS else 'i32'} {value}, ptr %{name}")

    def write(self, statements: list[Statement]) -> None:
        """All of *statements*."""
        for statement in statements:
            getattr(self, f"_{statement.kind}")(statement)

    def call(self, kind: str, name: str, *arguments: str) -> str:
        """A call of an operation that gives something."""
        return self.new(f"call {kind} @spmd.{name}({', '.join(['ptr %item', *arguments])})")

    def _integer(self, statement: Statement) -> None:
        target, operation, one, two = statement.words
        if operation == "lane":
            value = self.call("i32", "lane")
        elif operation == "block":
            value = self.call("i32", "block_idx.x")
        elif operation == "shl3":
            value = self.new(f"shl i32 {self.load(one)}, 3")
        else:
            value = self.new(f"{operation} i32 {self.load(one)}, {self.load(two)}")
        self.store(target, value)

    def _float(self, statement: Statement) -> None:
        target, operation, one, two, integer = statement.words
        if operation == "of_integer":
            value = self.new(f"sitofp i32 {self.new(f'and i32 {self.load(integer)}, 255')} to float")
        else:
            value = self.new(f"{operation} float {self.load(one)}, {self.load(two)}")
        self.store(target, value)

    def _slot(self, index: str) -> str:
        low = self.new(f"and i32 {self.load(index)}, {PRIVATE - 1}")
        return self.new(f"getelementptr i32, ptr %private, i32 {low}")

    def _keep(self, statement: Statement) -> None:
        target, one, _, _ = statement.words
        self.say(f"store i32 {self.load(one)}, ptr {self._slot(target)}")

    def _fetch(self, statement: Statement) -> None:
        target, one, _, _ = statement.words
        self.store(target, self.new(f"load i32, ptr {self._slot(one)}"))

    def _swap(self, statement: Statement) -> None:
        """A number of the thread's own in global memory, behind what the kernel writes in the end."""
        target, one, _, _ = statement.words
        wide = [self.new(f"zext i32 %{name} to i64") for name in ("tx", "ty", "tz", "block", "dx", "dy")]
        x, y, z, block, width, height = wide
        row = self.new(f"add nsw i64 {self.new(f'mul nsw i64 {z}, {height}')}, {y}")
        within = self.new(f"add nsw i64 {self.new(f'mul nsw i64 {row}, {width}')}, {x}")
        first = self.new(f"mul nsw i64 {block}, {self.threads}")
        behind = self.new(f"add nsw i64 {first}, {BLOCKS * self.threads * (len(INTEGERS) + len(FLOATS))}")
        address = self.new(f"getelementptr i32, ptr %out, i64 {self.new(f'add nsw i64 {behind}, {within}')}")
        kept = self.new(f"load i32, ptr {address}")
        self.say(f"store i32 {self.load(one)}, ptr {address}")
        self.store(target, kept)

    def _ballot(self, statement: Statement) -> None:
        target, one, two, _ = statement.words
        vote = self.new(f"icmp slt i32 {self.load(one)}, {self.load(two)}")
        self._store_bits(target, self.call("i64", "ballot", f"i1 {vote}"))

    def _active(self, statement: Statement) -> None:
        self._store_bits(statement.words[0], self.call("i64", "active_lanes"))

    def _store_bits(self, target: str, bits: str) -> None:
        low, high = self.new(f"trunc i64 {bits} to i32"), self.new(f"lshr i64 {bits}, 32")
        self.store(target, self.new(f"xor i32 {low}, {self.new(f'trunc i64 {high} to i32')}"))

    def _shuffle(self, statement: Statement) -> None:
        target, kind, source, one, distance = statement.words
        lane = self.new(f"add i32 {self.call('i32', 'lane')}, {distance}")
        name = source if kind == "float" else one
        value = self.call(kind, f"shuffle.{kind}", f"{kind} {self.load(name)}", f"i32 {lane}")
        self.store(source if kind == "float" else target, value)

    def _sum(self, statement: Statement) -> None:
        """What lanes combine, which some of them keep."""
        target, one, operation, steps, (index, predicate, number) = statement.words
        total, lane = self.load(one), self.call("i32", "lane")
        for how, distance in steps:
            source = str(distance) if how == "lane" else self.new(f"{how} i32 {lane}, {distance}")
            moved = self.call("i32", "shuffle.i32", f"i32 {total}", f"i32 {source}")
            moved = self.new(f"or i32 {moved}, 1") if operation == "udiv" else moved
            total = self.new(f"{operation} i32 {total}, {moved}")
        where = lane if index == "lane" else self.new("and i32 %tx, 31")
        keep, after = self.label(), self.label()
        is_user = self.new(f"icmp {predicate} i32 {where}, {number}")
        self.say(f"br i1 {is_user}, label %{keep}, label %{after}", f"{keep}:")
        self.store(target, total)
        self.say(f"br label %{after}", f"{after}:")

    def _meet(self, statement: Statement) -> None:
        self.say("call void @spmd.wave_barrier(ptr %item)")

    def _barrier(self, statement: Statement) -> None:
        self.say("call void @spmd.barrier(ptr %item)")

    def _count_of(self, one: str, number: int) -> str:
        vote = self.new(f"icmp eq i32 {self.new(f'and i32 {self.load(one)}, 3')}, {number & 3}")
        return self.call("i32", "barrier_count", f"i1 {vote}")

    def _count(self, statement: Statement) -> None:
        target, one, _, number = statement.words
        self.store(target, self._count_of(one, number))

    def _exchange(self, statement: Statement) -> None:
        """Each thread writes its place in shared memory and reads another's."""
        target, one, _, number = statement.words
        base = self.new(f"call ptr @spmd.shared.values.{4 * self.threads}.4(ptr %item)")
        own = self.new(f"getelementptr i32, ptr {base}, i32 %thread")
        self.say(f"store i32 {self.load(one)}, ptr {own}", "call void @spmd.barrier(ptr %item)")
        index = self.new(f"add i32 %thread, {number}")
        other = self.new(f"getelementptr i32, ptr {base}, i32 {self.new(f'urem i32 {index}, {self.threads}')}")
        self.store(target, self.new(f"load i32, ptr {other}"))
        self.say("call void @spmd.barrier(ptr %item)")

    def _return(self, statement: Statement) -> None:
        one, mask = statement.words
        low = self.new(f"and i32 {self.load(one)}, {mask}")
        leave = self.new(f"icmp eq i32 {low}, {mask}")
        stay = self.label()
        self.say(f"br i1 {leave}, label %end, label %{stay}", f"{stay}:")

    def _branch(self, condition: str, statement: Statement) -> None:
        then, other, after = self.label(), self.label(), self.label()
        self.say(f"br i1 {condition}, label %{then}, label %{other}", f"{then}:")
        self.write(statement.body)
        self.say(f"br label %{after}", f"{other}:")
        self.write(statement.other)
        self.say(f"br label %{after}", f"{after}:")

    def _if(self, statement: Statement) -> None:
        one, mask = statement.words
        self._branch(self.new(f"icmp eq i32 {self.new(f'and i32 {self.load(one)}, {mask}')}, 0"), statement)

    def _uniform_if(self, statement: Statement) -> None:
        (number,) = statement.words
        self._branch(self.new(f"icmp sgt i32 %n, {number}"), statement)

    def _place(self, factors: tuple[int, ...]) -> str:
        """What *factors* make of the indices of the thread and of its block: none of this overflows."""
        total = str(factors[-1])
        for factor, index in zip(factors, ("tx", "ty", "tz", "block"), strict=False):
            wide = self.new(f"zext i32 %{index} to i64")
            total = self.new(f"add nsw i64 {self.new(f'mul nsw i64 {wide}, {factor}')}, {total}")
        return total

    def _bound(self, number: int, factor: int) -> str:
        wide = self.new("zext i32 %n to i64")
        return self.new(f"add nsw i64 {self.new(f'mul nsw i64 {wide}, {factor}')}, {number}")

    def _within(self, statement: Statement) -> None:
        factors, predicate, number, factor = statement.words
        self._branch(self.new(f"icmp {predicate} i64 {self._place(factors)}, {self._bound(number, factor)}"), statement)

    def _walk(self, statement: Statement) -> None:
        factors, number, factor, step, variable, target = statement.words
        self.walks.append(variable)
        limit = self._bound(number, factor)
        head, inside, after = self.label(), self.label(), self.label()
        self.say(f"store i64 {self._place(factors)}, ptr %{variable}", f"br label %{head}", f"{head}:")
        more = self.new(f"icmp slt i64 {self.new(f'load i64, ptr %{variable}')}, {limit}")
        self.say(f"br i1 {more}, label %{inside}, label %{after}", f"{inside}:")
        self.write(statement.body)
        place = self.new(f"load i64, ptr %{variable}")
        self.store(target, self.new(f"add i32 {self.load(target)}, {self.new(f'trunc i64 {place} to i32')}"))
        following = self.new(f"add nsw i64 {place}, {step}")
        self.say(f"store i64 {following}, ptr %{variable}", f"br label %{head}", f"{after}:")

    def _rounds(self, limit: str, variable: str, body: list[Statement], after_round: str = "") -> None:
        self.loops.append(variable)
        head, inside, after = self.label(), self.label(), self.label()
        self.say(f"store i32 0, ptr %{variable}", f"br label %{head}", f"{head}:")
        turn = self.new(f"load i32, ptr %{variable}")
        more = self.new(f"icmp slt i32 {turn}, {limit}")
        self.say(f"br i1 {more}, label %{inside}, label %{after}", f"{inside}:")
        self.write(body)
        if after_round:
            count = self.new(f"load i32, ptr %{variable}")
            self.store(after_round, self.new(f"add i32 {self.load(after_round)}, {count}"))
        following = self.new(f"add i32 {self.new(f'load i32, ptr %{variable}')}, 1")
        self.say(f"store i32 {following}, ptr %{variable}", f"br label %{head}", f"{after}:")

    def _loop(self, statement: Statement) -> None:
        one, mask, variable = statement.words
        self._rounds(self.new(f"and i32 {self.load(one)}, {mask}"), variable, statement.body)

    def _uniform_loop(self, statement: Statement) -> None:
        number, variable, target = statement.words
        limit = self.new(f"add i32 {self.new('and i32 %n, 1')}, {number}")
        self._rounds(limit, variable, statement.body, target)


def uses_shared(program: list[Statement]) -> bool:
    """Whether threads exchange values through shared memory."""
    return any(
        statement.kind == "exchange" or uses_shared(statement.body) or uses_shared(statement.other)
        for statement in program
    )


def write_kernel(
    program: list[Statement], threads: int, wave_size: int, along: str = "", checked: int | None = None
) -> CodeObject:
    """The code object of a kernel ``k`` that runs *program* and writes the variables of each thread, which has a number
    in its block or, in a grid *along* an axis, in the grid. Threads whose number *checked* words behind the start of
    the output is 0 return at once."""
    writer = Writer(threads)
    if uses_shared(program):  # threads read what others, which may have returned, never wrote
        base = writer.new(f"call ptr @spmd.shared.values.{4 * threads}.4(ptr %item)")
        own = writer.new(f"getelementptr i32, ptr {base}, i32 %thread")
        writer.say(f"store i32 0, ptr {own}", "call void @spmd.barrier(ptr %item)")
    writer.write(program)
    lines = [f"  %{name} = alloca i32" for name in dict.fromkeys([*INTEGERS, *writer.loops])]
    lines += [f"  %{name} = alloca i64" for name in dict.fromkeys(writer.walks)]
    lines += [f"  %{name} = alloca float" for name in FLOATS]
    names = (*INTEGERS, *FLOATS)
    stores = []
    for column, name in enumerate(names):
        kind = "float" if name in FLOATS else "i32"
        stores += [
            f"  %e{column} = load {kind}, ptr %{name}",
            f"  %q{column} = getelementptr [{len(names)} x i32], ptr %out, i32 %number, i32 {column}",
            f"  store {kind} %e{column}, ptr %q{column}",
        ]
    text = "\n".join(
        [
            OPERATIONS,
            f"declare ptr @spmd.shared.values.{4 * threads}.4(ptr)",
            "define void @k(ptr noalias %item, ptr %out, i32 %n) {",
            *lines,
            f"  %private = alloca [{PRIVATE} x i32]",
            f"  store [{PRIVATE} x i32] zeroinitializer, ptr %private",
            *(_prologue_along(along) if along else _prologue()),
            *([] if checked is None else _check(checked)),
            *writer.lines,
            "  br label %end",
            "end:",
            *stores,
            "  br label %leave",
            "leave:",
            "  ret void",
            "}",
        ]
    )
    return code(text, "k", PARAMETERS, shared_bytes=4 * threads, wave_size=wave_size)


def _prologue() -> Iterator[str]:
    for axis in "xyz":
        yield f"  %t{axis} = call i32 @spmd.thread_idx.{axis}(ptr %item)"
        yield f"  %d{axis} = call i32 @spmd.block_dim.{axis}(ptr %item)"
    yield from (
        "  %block = call i32 @spmd.block_idx.x(ptr %item)", "  %zy = mul i32 %tz, %dy", "  %row = add i32 %zy, %ty",
        "  %rows = mul i32 %row, %dx", "  %thread = add i32 %rows, %tx", "  %area = mul i32 %dx, %dy",
        "  %volume = mul i32 %area, %dz", "  %first = mul i32 %block, %volume", "  %number = add i32 %first, %thread",
        "  store i32 %number, ptr %a", "  %odd = mul i32 %number, 40503", "  store i32 %odd, ptr %b",
        "  store i32 %n, ptr %c", "  store i32 %thread, ptr %d", "  %fx = sitofp i32 %thread to float",
        "  store float %fx, ptr %x", "  store float 1.0, ptr %y",
    )  # fmt: skip


def _check(offset: int) -> Iterator[str]:
    yield f"  %mark.at = add nuw nsw i32 %number, {offset}"
    yield "  %mark.place = getelementptr i32, ptr %out, i32 %mark.at"
    yield "  %mark = load i32, ptr %mark.place"
    yield "  %marked = icmp ne i32 %mark, 0"
    yield "  br i1 %marked, label %passed, label %leave"
    yield "passed:"


def _prologue_along(axis: str) -> Iterator[str]:
    """The number of a thread of a grid along *axis*, from its global index there."""
    other, last = (name for name in "xyz" if name != axis)
    for name in "xyz":
        yield f"  %t{name} = call i32 @spmd.thread_idx.{name}(ptr %item)"
        yield f"  %d{name} = call i32 @spmd.block_dim.{name}(ptr %item)"
    yield from (
        f"  %block = call i32 @spmd.block_idx.{axis}(ptr %item)", f"  %start = mul i32 %block, %d{axis}",
        f"  %global = add i32 %start, %t{axis}", f"  %across = mul i32 %global, %d{other}",
        f"  %row = add i32 %across, %t{other}", f"  %rows = mul i32 %row, %d{last}",
        f"  %number = add i32 %rows, %t{last}",
        "  store i32 %number, ptr %a", "  %odd = mul i32 %number, 40503", "  store i32 %odd, ptr %b",
        "  store i32 %n, ptr %c", "  store i32 %number, ptr %d", "  %fx = sitofp i32 %number to float",
        "  store float %fx, ptr %x", "  store float 1.0, ptr %y",
    )  # fmt: skip


WAVE_STATEMENTS = frozenset({"ballot", "shuffle", "active", "meet", "sum"})
"""Statements that programs without waves do not have."""


class WithoutWaves(Generator):
    """Makes programs without operations of waves."""

    def statement(self, depth: int, together: bool) -> Statement:
        while True:
            found = super().statement(depth, together)
            if found.kind not in WAVE_STATEMENTS:
                return found


class OfMarked(Generator):
    """Makes programs for threads that have passed a check, each for itself, with many loops and no private arrays."""

    def statement(self, depth: int, together: bool) -> Statement:
        if depth < 2 and self.random.randint(0, 2) == 0:
            return self._loop(depth, together)
        while True:
            found = super().statement(depth, together)
            if found.kind not in WAVE_STATEMENTS | {"exchange", "count", "barrier", "keep", "fetch"}:
                return found


class LeftApart(Generator):
    """Makes programs each thread of which runs for itself, with many loops that threads leave one after another."""

    def statement(self, depth: int, together: bool) -> Statement:
        if depth < 2 and self.random.randint(0, 2) == 0:
            return self._loop(depth, together)
        while True:
            found = super().statement(depth, together)
            if found.kind not in WAVE_STATEMENTS | {"exchange", "count", "barrier"}:
                return found

    def _loop(self, depth: int, together: bool) -> Statement:
        found = super()._loop(depth, together)
        name, _, counter = found.words
        found.words = name, (15, 7, 3)[min(depth, 2)], counter
        return found


# evaluation


class Block:
    """The threads of one block, evaluated together: every variable is an array with a value for each."""

    def __init__(self, number: int, shape: tuple[int, int, int], wave_size: int, n: int) -> None:
        self.threads = threads = shape[0] * shape[1] * shape[2]
        self.number, self.wave_size, self.n = number, wave_size, np.int32(n)
        self.indices = np.stack(np.unravel_index(np.arange(threads), shape[::-1])[::-1]).astype(np.int64)
        self.thread = np.arange(threads, dtype=np.int32)
        self.lane = self.thread % wave_size
        self.returned = np.zeros(threads, bool)
        self.shared = np.zeros(threads, np.int32)
        self.swapped = np.zeros(threads, np.int32)
        self.private = np.zeros((threads, PRIVATE), np.int32)
        first = np.int32(number * threads) + self.thread
        self.values: dict[str, Any] = {
            "a": first, "b": first * np.int32(40503), "c": np.full(threads, n, np.int32), "d": self.thread.copy(),
            "x": self.thread.astype(np.float32), "y": np.ones(threads, np.float32),
        }  # fmt: skip

    def run(self, statements: list[Statement], mask: Any) -> None:
        """Run *statements* for the threads of *mask* that have not returned."""
        for statement in statements:
            active = mask & ~self.returned
            if not active.any():
                return
            getattr(self, f"_{statement.kind}")(statement, active)

    def set(self, name: str, value: Any, active: Any) -> None:
        """Set a variable for the threads that are active."""
        self.values[name] = np.where(active, value, self.values[name]).astype(self.values[name].dtype)

    def waves(self) -> Iterator[slice]:
        """The threads of each wave."""
        for first in range(0, self.threads, self.wave_size):
            yield slice(first, min(first + self.wave_size, self.threads))

    def _integer(self, statement: Statement, active: Any) -> None:
        target, operation, one, two = statement.words
        left, right = self.values[one], self.values[two]
        results = {
            "add": lambda: left + right, "sub": lambda: left - right, "mul": lambda: left * right,
            "xor": lambda: left ^ right, "and": lambda: left & right, "or": lambda: left | right,
            "shl3": lambda: left << np.int32(3), "lane": lambda: self.lane,
            "block": lambda: np.full(self.threads, self.number, np.int32),
        }  # fmt: skip
        self.set(target, results[operation](), active)

    def _float(self, statement: Statement, active: Any) -> None:
        target, operation, one, two, integer = statement.words
        left, right = self.values[one], self.values[two]
        results = {
            "fadd": lambda: left + right, "fsub": lambda: left - right, "fmul": lambda: left * right,
            "of_integer": lambda: (self.values[integer] & 255).astype(np.float32),
        }  # fmt: skip
        self.set(target, results[operation](), active)

    def _keep(self, statement: Statement, active: Any) -> None:
        target, one, _, _ = statement.words
        index = self.values[target] & (PRIVATE - 1)
        self.private[self.thread[active], index[active]] = self.values[one][active]

    def _fetch(self, statement: Statement, active: Any) -> None:
        target, one, _, _ = statement.words
        self.set(target, self.private[self.thread, self.values[one] & (PRIVATE - 1)], active)

    def _swap(self, statement: Statement, active: Any) -> None:
        target, one, _, _ = statement.words
        kept, given = self.swapped.copy(), self.values[one].copy()
        self.swapped = np.where(active, given, kept)
        self.set(target, kept, active)

    def _bits(self, votes: Any) -> Any:
        result = np.zeros(self.threads, np.uint64)
        for wave in self.waves():
            lanes = np.flatnonzero(votes[wave])
            result[wave] = sum(1 << int(lane) for lane in lanes)
        return ((result ^ (result >> np.uint64(32))) & np.uint64(0xFFFFFFFF)).astype(np.uint32).view(np.int32)

    def _ballot(self, statement: Statement, active: Any) -> None:
        target, one, two, _ = statement.words
        self.set(target, self._bits(active & (self.values[one] < self.values[two])), active)

    def _active(self, statement: Statement, active: Any) -> None:
        self.set(statement.words[0], self._bits(active), active)

    def _shuffle(self, statement: Statement, active: Any) -> None:
        target, kind, source, one, distance = statement.words
        name = source if kind == "float" else one
        values = self.values[name].copy()
        result = values.copy()
        for wave in self.waves():
            for thread in range(wave.start, wave.stop):
                other = thread + distance
                if other < wave.stop and active[other]:
                    result[thread] = values[other]
        self.set(source if kind == "float" else target, result, active)

    def _sum(self, statement: Statement, active: Any) -> None:
        target, one, operation, steps, (index, predicate, number) = statement.words
        total = self.values[one].copy()
        for how, distance in steps:
            lane = {"add": self.lane + distance, "sub": self.lane - distance, "xor": self.lane ^ distance}.get(
                how, np.full(self.threads, distance)
            )
            source = self.thread - self.lane + lane
            exists = (lane >= 0) & (lane < self.wave_size) & (source < self.threads)
            exists &= active[np.where(exists, source, 0)]
            moved = np.where(exists, total[np.where(exists, source, 0)], total)
            if operation == "udiv":
                total = (total.view(np.uint32) // (moved | 1).view(np.uint32)).view(np.int32)
            else:
                total = {"add": np.add, "sub": np.subtract, "xor": np.bitwise_xor}[operation](total, moved)
        where = self.lane if index == "lane" else self.indices[0] & 31
        users = {"eq": where == number, "ult": where < number, "ne": where != number}[predicate]
        self.set(target, total, active & users)

    def _meet(self, statement: Statement, active: Any) -> None:
        pass

    def _barrier(self, statement: Statement, active: Any) -> None:
        pass

    def _count(self, statement: Statement, active: Any) -> None:
        target, one, _, number = statement.words
        self.set(target, np.sum(active & ((self.values[one] & 3) == (number & 3))), active)

    def _exchange(self, statement: Statement, active: Any) -> None:
        target, one, _, number = statement.words
        self.shared[active] = self.values[one][active]
        self.set(target, self.shared[(self.thread + number) % self.threads], active)

    def _return(self, statement: Statement, active: Any) -> None:
        one, mask = statement.words
        self.returned |= active & ((self.values[one] & mask) == mask)

    def _if(self, statement: Statement, active: Any) -> None:
        one, mask = statement.words
        taken = (self.values[one] & mask) == 0
        self.run(statement.body, active & taken)
        self.run(statement.other, active & ~taken)

    def _uniform_if(self, statement: Statement, active: Any) -> None:
        self.run(statement.body if self.n > statement.words[0] else statement.other, active)

    def _loop(self, statement: Statement, active: Any) -> None:
        one, mask, _ = statement.words
        limits = self.values[one] & mask
        for turn in range(int(limits.max()) + 1):
            self.run(statement.body, active & (turn < limits))

    def _place(self, factors: tuple[int, ...]) -> Any:
        indices = [*self.indices, np.full(self.threads, self.number)]
        return sum(factor * index for factor, index in zip(factors, indices, strict=False)) + factors[-1]

    def _within(self, statement: Statement, active: Any) -> None:
        factors, predicate, number, factor = statement.words
        place, bound = self._place(factors), np.int64(number + factor * int(self.n))
        if predicate[0] == "u":
            place, bound = place.view(np.uint64), bound.view(np.uint64)
        taken = {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}[predicate[1:]](
            place, bound
        )
        self.run(statement.body, active & taken)
        self.run(statement.other, active & ~taken)

    def _walk(self, statement: Statement, active: Any) -> None:
        factors, number, factor, step, _, target = statement.words
        place, bound = self._place(factors), number + factor * int(self.n)
        while (inside := active & ~self.returned & (place < bound)).any():
            self.run(statement.body, inside)
            self.set(target, self.values[target] + place.astype(np.int32), inside & ~self.returned)
            place = place + step

    def _uniform_loop(self, statement: Statement, active: Any) -> None:
        number, _, target = statement.words
        for turn in range((int(self.n) & 1) + number):
            self.run(statement.body, active)
            self.set(target, self.values[target] + np.int32(turn), active & ~self.returned)


def evaluate(
    program: list[Statement], blocks: int, shape: tuple[int, int, int], wave_size: int, n: int, marked: Any = None
) -> Any:
    """What the kernel of *program* writes: a row of 32-bit words for each thread of the grid; zeros for those that are
    not *marked*, if it says which are."""
    rows = []
    with np.errstate(all="ignore"):
        for number in range(blocks):
            block = Block(number, shape, wave_size, n)
            first = number * block.threads
            mask = np.ones(block.threads, bool) if marked is None else marked[first : first + block.threads]
            block.run(program, mask)
            columns = [block.values[name].view(np.int32) for name in (*INTEGERS, *FLOATS)]
            rows.append(np.stack(columns, axis=1) * mask[:, None])
    return np.concatenate(rows)


# cases

SHAPES = ((1, 1, 1), (32, 1, 1), (64, 1, 1), (7, 1, 1), (33, 2, 1), (8, 8, 2), (100, 1, 1), (16, 16, 1), (5, 3, 4))


def check_case(device: Device, seed: int, bounds: bool = False, sums: bool = False) -> None:
    """Run the program of *seed* on *device* in blocks and waves that the seed chooses, and compare it with NumPy. With
    *bounds* or *sums* it is of a generator that has these."""
    choose = random.Random(seed)
    shape, wave_size, n = choose.choice(SHAPES), choose.choice((32, 64)), choose.randint(0, 3)
    threads = shape[0] * shape[1] * shape[2]
    program = Generator(seed, bounds, sums=sums).program()
    rows = BLOCKS * threads
    columns = len(INTEGERS) + len(FLOATS)
    out = to_device(np.zeros(rows * (columns + 1), np.int32), device=device)
    function = device.load(write_kernel(program, threads, wave_size)).function("k")
    with config.cpu_lanes.scope("xyz"[seed % 3]):
        function.launch(BLOCKS, shape, pack(function.kernel, out.address, n))
    found = out.copy_to_host()[: rows * columns].reshape(rows, columns)
    expected = evaluate(program, BLOCKS, shape, wave_size, n)
    _compare(found, expected, f"seed {seed}: blocks of {shape}, waves of {wave_size}, n = {n}, {function.form}")


def check_marked_case(device: Device, seed: int) -> None:
    """Run the program of *seed* for threads that are marked in memory, a few or many of them, and compare it with
    NumPy."""
    choose = random.Random(seed)
    shape, n, width = choose.choice(SHAPES), choose.randint(0, 3), choose.choice((None, None, 8, 16, 64))
    threads = shape[0] * shape[1] * shape[2]
    rows, columns = BLOCKS * threads, len(INTEGERS) + len(FLOATS)
    marked = np.random.default_rng(seed).random(rows) < choose.choice((0.01, 0.05, 0.2, 0.5, 1))
    offset = rows * (columns + 1)
    words = np.zeros(offset + rows, np.int32)
    words[offset:] = marked
    program = OfMarked(seed).program()
    out = to_device(words, device=device)
    function = device.load(write_kernel(program, threads, 64, checked=offset)).function("k")
    with config.cpu_form.scope(choose.choice(("auto", "vectors"))), config.cpu_width.scope(width):
        function.launch(BLOCKS, shape, pack(function.kernel, out.address, n))
    found = out.copy_to_host()[: rows * columns].reshape(rows, columns)
    expected = evaluate(program, BLOCKS, shape, 64, n, marked)
    _compare(found, expected, f"seed {seed}: blocks of {shape}, n = {n}, lanes = {width}, {function.form}")


def check_left_apart_case(device: Device, seed: int) -> int:
    """Run the program of *seed*, in which some number of lanes that remain in a loop is few, and compare it with NumPy.
    Returns how many loops are written for them."""
    choose = random.Random(seed)
    shape, n, width = choose.choice(SHAPES), choose.randint(0, 3), choose.choice((None, 4, 8, 16, 32, 64))
    few = choose.choice((None, 2, 5, 16, 64))
    threads = shape[0] * shape[1] * shape[2]
    rows, columns = BLOCKS * threads, len(INTEGERS) + len(FLOATS)
    program = LeftApart(seed, bounds=seed % 3 == 0).program()
    out = to_device(np.zeros(rows * (columns + 1), np.int32), device=device)
    function = device.load(write_kernel(program, threads, 64)).function("k")
    estimate, write = loops_left_late.lanes_worth_taking_out, gang_function.write_remaining
    with (
        config.cpu_form.scope(choose.choice(("auto", "vectors"))),
        config.cpu_width.scope(width),
        patch.object(
            loops_left_late, "lanes_worth_taking_out", lambda *given: [few or count for count in estimate(*given)]
        ),
        patch.object(gang_function, "write_remaining", side_effect=write) as written,
    ):
        function.launch(BLOCKS, shape, pack(function.kernel, out.address, n))
    found = out.copy_to_host()[: rows * columns].reshape(rows, columns)
    message = f"seed {seed}: blocks of {shape}, n = {n}, lanes = {width}, few = {few}, {function.form}"
    _compare(found, evaluate(program, BLOCKS, shape, 64, n), message)
    return int(written.call_count)


LENGTHS = ((7, 5), (12, 8), (17, 31), (16, 24), (32, 48), (64, 128), (100, 64), (96, 160), (65, 250), (192, 1024))
"""Lengths of blocks: of those that code is made for, and of those that then run it."""


def check_length_case(device: Device, seed: int) -> bool:
    """Run the program of *seed* in blocks of another length than its code was made for, if it serves that, too, and
    compare it with NumPy. Returns whether it does. Code is made for several lengths even where that is slower."""
    choose = random.Random(seed)
    (made, length), n, width = choose.choice(LENGTHS), choose.randint(0, 3), choose.choice((None, None, 4, 8, 16))
    program = WithoutWaves(seed, bounds=seed % 2 == 0).program()
    columns = len(INTEGERS) + len(FLOATS)
    out = to_device(np.zeros(BLOCKS * length * (columns + 1), np.int32), device=device)
    function = device.load(write_kernel(program, length, 64)).function("k")
    form = choose.choice(("auto", "vectors", "vectors", "regions"))
    with (
        config.cpu_form.scope(form),
        config.cpu_width.scope(width),
        patch.object(kernel_graph, "computes_with_extent", lambda *_, **__: False),
        patch.object(region, "_serves_lengths", lambda *_: True),
    ):
        function.handle.worker((made, 1, 1))
        function.launch(BLOCKS, length, pack(function.kernel, out.address, n))
    found = out.copy_to_host()[: BLOCKS * length * columns].reshape(BLOCKS * length, columns)
    message = (
        f"seed {seed}: blocks of {length}, code made for {made}, n = {n}, lanes = {width}, {form}: {function.form}"
    )
    _compare(found, evaluate(program, BLOCKS, (length, 1, 1), 64, n), message)
    return bool(function.handle.workers[length, 1, 1].made_for[0] == made)


JOINED = (
    ("y", (64, 1, 1)),
    ("z", (32, 1, 1)),
    ("z", (16, 2, 2)),
    ("x", (1, 8, 4)),
    ("x", (4, 16, 1)),
    ("y", (33, 3, 1)),
)
"""An axis, and blocks that have few threads along it."""


def check_joined_case(device: Device, seed: int) -> None:
    """Run the program of *seed* in a grid along one axis, whose blocks have so few threads there that they are joined,
    and compare it with NumPy."""
    choose = random.Random(seed)
    along, shape = choose.choice(JOINED)
    blocks, n, width = choose.randint(1, 150), choose.randint(0, 3), choose.choice((None, None, 8, 16))
    threads = shape[0] * shape[1] * shape[2]
    program = Generator(seed, alone=True).program()
    rows, columns = blocks * threads, len(INTEGERS) + len(FLOATS)
    out = to_device(np.zeros((rows, columns), np.int32), device=device)
    function = device.load(write_kernel(program, threads, 64, along)).function("k")
    grid = tuple(blocks if axis == along else 1 for axis in "xyz")
    with config.cpu_lanes.scope(along), config.cpu_width.scope(width):
        for _ in range(2):  # the blocks of a first launch are taken one by one
            out.copy_to_device(np.zeros((rows, columns), np.int32))
            function.launch(grid, shape, pack(function.kernel, out.address, n))
    expected = evaluate(program, 1, (rows, 1, 1), 64, n)
    _compare(out.copy_to_host(), expected, f"seed {seed}: {blocks} blocks of {shape}, n = {n}, {function.form}")


def _compare(found: Any, expected: Any, message: str) -> None:
    integers = slice(len(INTEGERS))
    floats = slice(len(INTEGERS), None)
    np.testing.assert_array_equal(found[:, integers], expected[:, integers], message)
    # Which bits a NaN has is up to the processor.
    np.testing.assert_array_equal(found[:, floats].view(np.float32), expected[:, floats].view(np.float32), message)


def main() -> None:
    """Try as many cases as asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="of the first case; the next has the next")
    parser.add_argument("--bounds", action="store_true", help="with branches on where a thread is")
    parser.add_argument("--sums", action="store_true", help="with sums of waves that some lanes use")
    parser.add_argument("--marked", action="store_true", help="for threads that memory says, which may be few")
    parser.add_argument("--left-apart", action="store_true", help="with loops that threads leave one after another")
    parser.add_argument("--joined", action="store_true", help="in blocks that gangs reach over")
    parser.add_argument("--lengths", action="store_true", help="in blocks of other lengths than code was made for")
    chosen = parser.parse_args()
    device = Device(CpuDriver(1 << 28), 0, 0)
    served = late = 0
    for seed in range(chosen.seed, chosen.seed + chosen.cases):
        if chosen.lengths:
            served += check_length_case(device, seed)
        elif chosen.joined:
            check_joined_case(device, seed)
        elif chosen.marked:
            check_marked_case(device, seed)
        elif chosen.left_apart:
            late += check_left_apart_case(device, seed)
        else:
            check_case(device, seed, chosen.bounds, chosen.sums)
    print(f"{chosen.cases} programs gave what NumPy says")
    if chosen.left_apart:
        print(f"{late} loops that the last lanes run alone")
    if chosen.lengths:
        print(f"{served} with code that was made for another length")


if __name__ == "__main__":
    main()
