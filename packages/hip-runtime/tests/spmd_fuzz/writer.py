"""Writes a program as LLVM IR."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from spmd_kernels import code

from hip_devicelib.codeobject import CodeObject
from spmd_fuzz.nodes import (
    CELLS,
    COMMUTATIVE,
    DTYPES,
    FLOATS,
    PRIVATE,
    SCALARS,
    DeviceFunction,
    Node,
    Program,
    bits_of,
)

OPERATIONS = """
declare i32 @spmd.lane(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @spmd.barrier(ptr) convergent
declare i32 @spmd.barrier_count(ptr, i1) convergent
declare void @spmd.wave_barrier(ptr) convergent
declare i64 @spmd.active_lanes(ptr) convergent
declare i64 @spmd.ballot(ptr, i1) convergent
declare i32 @spmd.shuffle.i32(ptr, i32, i32) convergent
declare i64 @spmd.shuffle.i64(ptr, i64, i32) convergent
declare float @spmd.shuffle.float(ptr, float, i32) convergent
declare double @spmd.shuffle.double(ptr, double, i32) convergent
"""

_WITH_FLAG = frozenset({"ctlz", "cttz", "abs"})
"""Intrinsics with a second operand that says whether some results may be poison."""


def constant(kind: str, value: Any) -> str:
    """*value* as LLVM writes it."""
    if kind == "half":
        return f"0xH{np.float16(value).view(np.uint16):04X}"
    if kind in FLOATS:
        return f"0x{struct.unpack('<Q', struct.pack('<d', float(DTYPES[kind](value))))[0]:016X}"
    return str(value)


def size_of(kind: str) -> int:
    """Bytes of a number of type *kind*."""
    return bits_of(kind) // 8


class ExpressionWriter:
    """Writes expressions and remembers which intrinsics they call."""

    def __init__(self, program: Program, prefix: str) -> None:
        self.program = program
        self.lines: list[str] = []
        self.intrinsics: dict[str, str] = {}
        self._prefix = prefix
        self._number = 0

    def new(self, text: str) -> str:
        """A line that defines a value."""
        self._number += 1
        self.lines.append(f"  %{self._prefix}{self._number} = {text}")
        return f"%{self._prefix}{self._number}"

    def say(self, *lines: str) -> None:
        """Lines without a result; labels begin at the left."""
        self.lines += [line if line.endswith(":") else f"  {line}" for line in lines]

    def label(self) -> str:
        """A new label."""
        self._number += 1
        return f"{self._prefix}l{self._number}"

    def value(self, node: Node) -> str:
        """Write the expression *node*; its name or the constant."""
        written: str = getattr(self, f"_{node.kind}")(node)
        return written

    def typed(self, node: Node) -> str:
        """The same behind its type."""
        return f"{node.type} {self.value(node)}"

    def intrinsic(self, name: str, kind: str, arguments: Sequence[str]) -> str:
        """A call of an intrinsic of LLVM; arguments come with their types."""
        parameters = ", ".join(argument.split()[0] for argument in arguments)
        self.intrinsics[name] = f"declare {kind} @{name}({parameters})"
        return self.new(f"call {kind} @{name}({', '.join(arguments)})")

    def _const(self, node: Node) -> str:
        return constant(node.type, node.words[0])

    def _arg(self, node: Node) -> str:
        return f"%p{node.words[0]}"

    def _n(self, node: Node) -> str:
        return "%n"

    def _index(self, node: Node) -> str:
        return f"%{node.words[0]}"

    def _get(self, node: Node) -> str:
        return self.new(f"load {node.type}, ptr %{node.words[0]}")

    def _binary(self, node: Node) -> str:
        operation, kind = node.words[0], node.type
        one, two = (self.value(part) for part in node.parts)
        if operation in ("sdiv", "srem", "udiv", "urem"):
            return self.new(f"{operation} {kind} {one}, {self._divisor(operation, kind, one, two)}")
        if "max" in operation or "min" in operation or "sat" in operation:
            return self.intrinsic(f"llvm.{operation}.{kind}", kind, (f"{kind} {one}", f"{kind} {two}"))
        return self.new(f"{operation} {kind} {one}, {two}")

    def _divisor(self, operation: str, kind: str, one: str, two: str) -> str:
        """What to divide by: 1 instead of 0, and of -1 where the result would not fit."""
        zero = self.new(f"icmp eq {kind} {two}, 0")
        if operation[0] == "s":
            least = self.new(f"icmp eq {kind} {one}, {-1 << (bits_of(kind) - 1)}")
            both = self.new(f"and i1 {least}, {self.new(f'icmp eq {kind} {two}, -1')}")
            zero = self.new(f"or i1 {zero}, {both}")
        return self.new(f"select i1 {zero}, {kind} 1, {kind} {two}")

    def _unary(self, node: Node) -> str:
        (operation,), kind = node.words, node.type
        if operation == "neg":
            return self.new(f"sub {kind} 0, {self.value(node.parts[0])}")
        value = self.typed(node.parts[0])
        if operation == "fneg":
            return self.new(f"fneg {value}")
        return self.intrinsic(f"llvm.{operation}.{spell(kind)}", kind, (value, *["i1 0"] * (operation in _WITH_FLAG)))

    def _cast(self, node: Node) -> str:
        (how,), (part,) = node.words, node.parts
        value = self.typed(part)
        if how.endswith(".sat"):
            return self.intrinsic(f"llvm.{how}.{node.type}.{spell(part.type)}", node.type, (value,))
        return self.new(f"{how} {value} to {node.type}")

    def _compare(self, node: Node) -> str:
        one, two = node.parts
        opcode = "fcmp" if one.type in FLOATS else "icmp"
        return self.new(f"{opcode} {node.words[0]} {one.type} {self.value(one)}, {self.value(two)}")

    def _both(self, node: Node) -> str:
        one, two = (self.value(part) for part in node.parts)
        if node.words[0] == "select":
            return self.new(f"select i1 {one}, i1 {two}, i1 false")
        return self.new(f"{node.words[0]} i1 {one}, {two}")

    def _select(self, node: Node) -> str:
        return self.new(f"select {', '.join(self.typed(part) for part in node.parts)}")

    def _call(self, node: Node) -> str:
        arguments = ", ".join(self.typed(part) for part in node.parts)
        return self.new(f"call {node.type} @f{node.words[0]}({arguments})")

    def _load(self, node: Node) -> str:
        how, scale, offset = node.words
        size = self.program.input_size
        if how == "uniform":
            place = str(offset)
        elif how == "split":
            low = self.new(f"and i64 %number, {(1 << scale) - 1}")
            high = self.new(f"shl nsw i64 {self.new(f'lshr i64 %number, {scale}')}, 1")
            place = self.new(f"add nsw i64 {self.new(f'add nsw i64 {low}, {high}')}, {offset}")
        else:
            scaled = self.new(f"mul nsw i64 %number, {scale}")
            place = self.new(f"add nsw i64 {scaled}, {offset}")
            if how == "reversed":
                place = self.new(f"sub nsw i64 {size - 1}, {place}")
            elif how == "modulo":
                place = self.new(f"srem i64 {place}, %size")
        return self.new(f"load {node.type}, ptr {self.element(f'in_{node.type}', node.type, place)}")

    def element(self, array: str, kind: str, place: str) -> str:
        """The address of an element."""
        return self.new(f"getelementptr {kind}, ptr %{array}, i64 {place}")

    def own(self, kind: str, column: int) -> str:
        """The address of the element of a column that belongs to the thread."""
        layout = self.program.layouts[kind]
        if layout.known:
            row = self.new(f"mul nsw i64 %number, {layout.rows}")
            place = self.new(f"add nsw i64 {row}, {layout.first + column * layout.columns}")
            return self.element(f"own_{kind}", kind, place)
        row = self.new(f"mul nsw i64 %number, %rows_{kind}")
        across = self.new(f"mul nsw i64 %columns_{kind}, {column}")
        first = self.new(f"getelementptr i8, ptr %own_{kind}, i64 {layout.first * size_of(kind)}")
        return self.new(f"getelementptr i8, ptr {first}, i64 {self.new(f'add nsw i64 {row}, {across}')}")

    def _own(self, node: Node) -> str:
        return self.new(f"load {node.type}, ptr {self.own(node.type, node.words[0])}")

    def _walked(self, node: Node) -> str:
        place = self.new(f"load i64, ptr %{node.words[0]}")
        return self.new(f"load {node.type}, ptr {self.element(f'walked_{node.type}', node.type, place)}")

    def shared(self, name: str, kind: str, count: int) -> str:
        """The address of an array of shared memory."""
        return self.new(f"call ptr @{shared_name(name, kind, count)}(ptr %item)")

    def slot(self, kind: str) -> str:
        """The address of the thread's own element in shared memory."""
        base = self.shared("slot", kind, self.program.threads)
        return self.new(f"getelementptr {kind}, ptr {base}, i64 %thread")

    def _slot(self, node: Node) -> str:
        return self.new(f"load {node.type}, ptr {self.slot(node.type)}")

    def private(self, kind: str, place: Node) -> str:
        """The address of an element of the private array."""
        low = self.new(f"and i32 {self.value(place)}, {PRIVATE - 1}")
        wide = self.new(f"zext i32 {low} to i64")
        return self.element(f"private_{kind}", kind, wide)

    def _fetch(self, node: Node) -> str:
        return self.new(f"load {node.type}, ptr {self.private(node.type, node.parts[0])}")


def spell(kind: str) -> str:
    """*kind* as the names of LLVM's intrinsics have it."""
    return {"half": "f16", "float": "f32", "double": "f64"}.get(kind, kind)


def shared_name(name: str, kind: str, count: int) -> str:
    """The operation that gives an array of shared memory."""
    return f"spmd.shared.{name}_{kind}.{-(-count * size_of(kind) // 16) * 16}.16"


class Writer(ExpressionWriter):
    """Writes the statements of a kernel. Every variable is an alloca, of which LLVM makes registers."""

    def __init__(self, program: Program) -> None:
        super().__init__(program, "s")
        self._loops: list[tuple[str, str]] = []

    def write(self, statements: Sequence[Node]) -> None:
        """All of *statements*."""
        for statement in statements:
            getattr(self, f"_{statement.kind}")(statement)

    def _call_item(self, kind: str, name: str, *arguments: str) -> str:
        return self.new(f"call {kind} @spmd.{name}({', '.join(['ptr %item', *arguments])})")

    def _set(self, node: Node) -> None:
        self.say(f"store {self.typed(node.parts[0])}, ptr %{node.words[0]}")

    def _store(self, node: Node) -> None:
        value = self.typed(node.parts[0])
        self.say(f"store {value}, ptr {self.own(node.type, node.words[0])}")

    def _keep(self, node: Node) -> None:
        place, value = node.parts
        written = self.typed(value)
        self.say(f"store {written}, ptr {self.private(node.type, place)}")

    def _refill(self, node: Node) -> None:
        """Copy the first elements of the private array from neighbours in memory."""
        scale, count = node.words
        source = self.element(f"in_{node.type}", node.type, self.new(f"mul nsw i64 %number, {scale}"))
        copied = f"ptr %private_{node.type}, ptr {source}, i64 {count * size_of(node.type)}, i1 false"
        self.say(f"call void @llvm.memcpy.p0.p0.i64({copied})")

    def _put(self, node: Node) -> None:
        value, place = self.typed(node.parts[0]), self.new(f"load i64, ptr %{node.words[0]}")
        self.say(f"store {value}, ptr {self.element(f'walked_{node.type}', node.type, place)}")

    def _atomic(self, node: Node) -> None:
        (operation,) = node.words
        value = self.typed(node.parts[0])
        cell = COMMUTATIVE.index(operation) if operation in COMMUTATIVE else 0
        self.new(
            f"atomicrmw {operation} ptr {self.element(f'cells_{node.type}', node.type, str(cell))}, {value} monotonic"
        )

    def _own_atomic(self, node: Node) -> None:
        operation, memory, column, target = node.words
        values = [self.typed(part) for part in node.parts]
        address = self.slot(node.type) if memory == "slot" else self.own(node.type, column)
        if operation == "cmpxchg":
            pair = self.new(f"cmpxchg ptr {address}, {', '.join(values)} monotonic monotonic")
            old = self.new(f"extractvalue {{{node.type}, i1}} {pair}, 0")
        else:
            old = self.new(f"atomicrmw {operation} ptr {address}, {values[0]} monotonic")
        self.say(f"store {node.type} {old}, ptr %{target}")

    # Control flow.

    def _branch(self, condition: str, node: Node) -> None:
        then, other, after = self.label(), self.label(), self.label()
        self.say(f"br i1 {condition}, label %{then}, label %{other}", f"{then}:")
        self.write(node.body)
        self.say(f"br label %{after}", f"{other}:")
        self.write(node.other)
        self.say(f"br label %{after}", f"{after}:")

    def _if(self, node: Node) -> None:
        self._branch(self.value(node.parts[0]), node)

    def _uniform_if(self, node: Node) -> None:
        self._branch(self.new(f"icmp sgt i64 %n, {node.words[0]}"), node)

    def _leave(self, node: Node) -> None:
        if not self._loops:
            return
        following, after = self._loops[-1]
        self._depart(self.value(node.parts[0]), after if node.words[0] == "break" else following)

    def _return(self, node: Node) -> None:
        self._depart(self.value(node.parts[0]), "end")

    def _depart(self, condition: str, target: str) -> None:
        stay = self.label()
        self.say(f"br i1 {condition}, label %{target}, label %{stay}", f"{stay}:")

    def _rounds(self, node: Node, kind: str, first: str, limit: str, step: int) -> None:
        variable = node.words[0]
        head, inside, following, after = (self.label() for _ in range(4))
        self.say(f"store {kind} {first}, ptr %{variable}", f"br label %{head}", f"{head}:")
        more = self.new(f"icmp slt {kind} {self.new(f'load {kind}, ptr %{variable}')}, {limit}")
        self.say(f"br i1 {more}, label %{inside}, label %{after}", f"{inside}:")
        self._loops.append((following, after))
        self.write(node.body)
        self._loops.pop()
        self.say(f"br label %{following}", f"{following}:")
        raised = self.new(f"add nsw {kind} {self.new(f'load {kind}, ptr %{variable}')}, {step}")
        self.say(f"store {kind} {raised}, ptr %{variable}", f"br label %{head}", f"{after}:")

    def _repeat(self, node: Node) -> None:
        self._rounds(node, node.type, "0", self.value(node.parts[0]), 1)

    def _uniform_repeat(self, node: Node) -> None:
        low = self.new("trunc i64 %n to i32")
        limit = self.new(f"add i32 {self.new(f'and i32 {low}, 1')}, {node.words[1]}")
        self._rounds(node, "i32", "0", limit, 1)

    def _walk(self, node: Node) -> None:
        limit = walk_limit(self.program, node)
        self._rounds(node, "i64", "%number", str(limit), self.program.rows)

    # Threads that wait for one another.

    def _exchange(self, node: Node) -> None:
        target, distance = node.words
        kind, threads = node.type, self.program.threads
        value, base = self.typed(node.parts[0]), self.shared("exchange", kind, threads)
        own = self.new(f"getelementptr {kind}, ptr {base}, i64 %thread")
        self.say(f"store {value}, ptr {own}", "call void @spmd.barrier(ptr %item)")
        place = self.new(f"urem i64 {self.new(f'add i64 %thread, {distance}')}, {threads}")
        other = self.new(f"getelementptr {kind}, ptr {base}, i64 {place}")
        self.say(f"store {kind} {self.new(f'load {kind}, ptr {other}')}, ptr %{target}")
        self.say("call void @spmd.barrier(ptr %item)")

    def _gather(self, node: Node) -> None:
        (operation, target), kind = node.words, node.type
        condition, given, taken, value = node.parts
        base = self.shared("gather", kind, CELLS)
        then, after = self.label(), self.label()
        self.say(f"br i1 {self.value(condition)}, label %{then}, label %{after}", f"{then}:")
        written, cell = self.typed(value), self._cell(base, kind, given)
        self.new(f"atomicrmw {operation} ptr {cell}, {written} monotonic")
        self.say(f"br label %{after}", f"{after}:", "call void @spmd.barrier(ptr %item)")
        found = self.new(f"load {kind}, ptr {self._cell(base, kind, taken)}")
        self.say(f"store {kind} {found}, ptr %{target}", "call void @spmd.barrier(ptr %item)")

    def _cell(self, base: str, kind: str, place: Node) -> str:
        low = self.new(f"and i32 {self.value(place)}, {CELLS - 1}")
        return self.new(f"getelementptr {kind}, ptr {base}, i32 {low}")

    def _barrier(self, node: Node) -> None:
        self.say("call void @spmd.barrier(ptr %item)")

    def _meet(self, node: Node) -> None:
        self.say("call void @spmd.wave_barrier(ptr %item)")

    def _count(self, node: Node) -> None:
        found = self._call_item("i32", "barrier_count", self.typed(node.parts[0]))
        self.say(f"store i32 {found}, ptr %{node.words[0]}")

    def _ballot(self, node: Node) -> None:
        found = self._call_item("i64", "ballot", self.typed(node.parts[0]))
        self.say(f"store i64 {found}, ptr %{node.words[0]}")

    def _active(self, node: Node) -> None:
        self.say(f"store i64 {self._call_item('i64', 'active_lanes')}, ptr %{node.words[0]}")

    def _shuffle(self, node: Node) -> None:
        target, how = node.words
        value = self.typed(node.parts[0])
        if how == "data":
            lane = self.value(node.parts[1])
        elif how == "xor":
            lane = self.new(f"xor i32 {self._call_item('i32', 'lane')}, 1")
        else:
            lane = self.new(f"add i32 {self._call_item('i32', 'lane')}, {how}")
        found = self._call_item(node.type, f"shuffle.{node.type}", value, f"i32 {lane}")
        self.say(f"store {node.type} {found}, ptr %{target}")


def walk_limit(program: Program, node: Node) -> int:
    """Where the loop *node* through an array ends."""
    return min(program.walked_size, node.words[1] * program.rows // 2)


def shared_arrays(program: Program) -> list[tuple[str, str, int]]:
    """The arrays of shared memory: name, type and number of elements."""
    slots = {node.type for node in program.walk() if node.kind == "own_atomic" and node.words[1] == "slot"}
    exchanged, gathered = program.types_of("exchange"), program.types_of("gather")
    return [
        *(("exchange", kind, program.threads) for kind in exchanged),
        *(("gather", kind, CELLS) for kind in gathered),
        *(("slot", kind, program.threads) for kind in sorted(slots | set(program.types_of("slot")))),
    ]


def parameters(program: Program) -> list[tuple[str, str]]:
    """Names and types of the parameters of the kernel."""
    unknown = [kind for kind in sorted(program.layouts) if not program.layouts[kind].known]
    found = [(f"in_{kind}", "ptr") for kind in program.types_of("load")]
    found += [(f"walked_{kind}", "ptr") for kind in program.types_of("walked", "put")]
    found += [(f"cells_{kind}", "ptr") for kind in program.types_of("atomic")]
    found += [(f"own_{kind}", "ptr") for kind in sorted(program.layouts)]
    found += [(f"{axis}_{kind}", "i64") for kind in unknown for axis in ("rows", "columns")]
    return [*found, ("n", "i64"), ("size", "i64")]


def write_kernel(program: Program) -> str:
    """The LLVM IR of the kernel ``k`` of *program*."""
    writer, functions = Writer(program), []
    intrinsics = writer.intrinsics
    for number, function in enumerate(program.functions):
        functions += _write_function(program, number, function, intrinsics)
    arrays = shared_arrays(program)
    _clear_shared(writer, arrays)
    writer.write(program.statements)
    signature = ", ".join(["ptr noalias %item", *(f"{kind} %{name}" for name, kind in parameters(program))])
    return "\n".join(
        [
            OPERATIONS,
            *(f"declare ptr @{shared_name(*array)}(ptr)" for array in arrays),
            *intrinsics.values(),
            *functions,
            f"define void @k({signature}) {{",
            "entry:",
            *_variables(program),
            *_prologue(program),
            *writer.lines,
            "  br label %end",
            "end:",
            "  ret void",
            "}",
        ]
    )


def _clear_shared(writer: Writer, arrays: Sequence[tuple[str, str, int]]) -> None:
    """Zeros in shared memory, and a barrier behind them."""
    for name, kind, count in arrays:
        base = writer.shared(name, kind, count)
        zero = constant(kind, 0)
        place = "%thread" if name != "gather" else writer.new(f"and i64 %thread, {CELLS - 1}")
        writer.say(f"store {kind} {zero}, ptr {writer.new(f'getelementptr {kind}, ptr {base}, i64 {place}')}")
        if name == "gather":  # a block may have fewer threads than there are cells
            for cell in range(CELLS):
                address = writer.new(f"getelementptr {kind}, ptr {base}, i64 {cell}")
                writer.say(f"store {kind} {zero}, ptr {address}")
    if arrays:
        writer.say("call void @spmd.barrier(ptr %item)")


def _write_function(program: Program, number: int, function: DeviceFunction, intrinsics: dict[str, str]) -> list[str]:
    writer = ExpressionWriter(program, "s")
    writer.intrinsics = intrinsics
    kind = function.then.type
    writer.say(f"br i1 {writer.value(function.condition)}, label %then, label %other", "then:")
    writer.say(f"ret {writer.typed(function.then)}", "other:")
    writer.say(f"ret {writer.typed(function.other)}")
    taken = ", ".join(f"{kind} %p{place}" for place, kind in enumerate(function.parameters))
    attributes = "" if function.inlined else " noinline"
    return [f"define internal {kind} @f{number}({taken}){attributes} {{", *writer.lines, "}"]


def _variables(program: Program) -> Iterator[str]:
    found: dict[str, str] = {}
    for node in program.walk():
        if node.kind in (
            "set",
            "get",
            "repeat",
            "uniform_repeat",
            "walk",
            "exchange",
            "count",
            "ballot",
            "active",
            "shuffle",
        ):
            found.setdefault(node.words[0], node.type)
        elif node.kind == "gather":
            found.setdefault(node.words[1], node.type)
        elif node.kind == "own_atomic":
            found.setdefault(node.words[3], node.type)
    for name, kind in found.items():
        yield f"  %{name} = alloca {kind}"
        yield f"  store {kind} {constant(kind, 0)}, ptr %{name}"
    for kind in SCALARS:
        if kind in program.types_of("keep", "fetch", "refill"):
            yield f"  %private_{kind} = alloca [{PRIVATE} x {kind}]"
            yield f"  store [{PRIVATE} x {kind}] zeroinitializer, ptr %private_{kind}"


def _prologue(program: Program) -> Iterator[str]:
    """Where the thread is."""
    names = {"x": "thread_idx.x", "y": "thread_idx.y", "z": "thread_idx.z", "block": "block_idx.x", "lane": "lane"}
    extents = {"dx": "block_dim.x", "dy": "block_dim.y"}
    for name, operation in (names | extents).items():
        yield f"  %i_{name} = call i32 @spmd.{operation}(ptr %item)"
        yield f"  %{name} = zext i32 %i_{name} to i64"
    yield from (
        "  %zy = mul nsw i64 %z, %dy", "  %row = add nsw i64 %zy, %y", "  %begin = mul nsw i64 %row, %dx",
        "  %thread = add nsw i64 %begin, %x", f"  %first = mul nsw i64 %block, {program.threads}",
        "  %number = add nsw i64 %first, %thread",
    )  # fmt: skip


def compile_program(program: Program) -> CodeObject:
    """The code object of *program*."""
    nbytes = sum(int(shared_name(*array).split(".")[-2]) for array in shared_arrays(program))
    properties = {"shared_bytes": nbytes, "wave_size": program.wave_size}
    return code(write_kernel(program), "k", parameters(program), **properties)
