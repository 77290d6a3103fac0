"""Loops over arrays around the functions of the CPU device's math, and errors in units in the last place."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from hip_devicelib.cpu import FUNCTIONS, MathFunction, bitcode_of

LINUX_X86 = "x86_64-unknown-linux-gnu"
Array = np.ndarray[Any, Any]

FORMATS: dict[int, Any] = {32: np.float32, 64: np.float64}


def host() -> Any:
    """LLVM's description of this machine, a new one each time: an execution engine takes it over."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=3, jit=True)


@cache
def x86(cpu: str) -> Any:
    """LLVM's description of an x86 processor, on any machine."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(LINUX_X86).create_target_machine(cpu=cpu, opt=3)


def loop_around(entry: MathFunction, finish: Callable[[ir.IRBuilder, Any], Any] | None = None) -> ir.Module:
    """``void loop(i64 n, inputs..., outputs...)`` that calls the function for each element.

    *finish* may compute something more from each result.
    """
    kind = ir.FloatType() if entry.bits == 32 else ir.DoubleType()
    pointer, i64 = kind.as_pointer(), ir.IntType(64)
    types = {"float": kind, "double": kind, "ptr": pointer, "void": ir.VoidType()}
    inputs = sum(p != "ptr" for p in entry.parameters)
    outputs = max(1, len(entry.parameters) - inputs)
    module = ir.Module(context=ir.Context())
    signature = ir.FunctionType(types[entry.result], [types[p] for p in entry.parameters])
    callee = ir.Function(module, signature, entry.symbol)
    loop = ir.Function(module, ir.FunctionType(ir.VoidType(), [i64] + [pointer] * (inputs + outputs)), "loop")
    for argument in loop.args[1:]:
        argument.add_attribute("noalias")
    first, body, last = (loop.append_basic_block(name) for name in ("first", "body", "last"))
    builder = ir.IRBuilder(first)
    builder.cbranch(builder.icmp_signed(">", loop.args[0], i64(0)), body, last)
    builder = ir.IRBuilder(body)
    index = builder.phi(i64)
    values = [builder.load(builder.gep(a, [index])) for a in loop.args[1 : 1 + inputs]]
    places = [builder.gep(a, [index]) for a in loop.args[1 + inputs :]]
    if entry.result == "void":
        builder.call(callee, [*values, *places])
    else:
        result = builder.call(callee, values)
        builder.store(finish(builder, result) if finish else result, places[0])
    following = builder.add(index, i64(1))
    index.add_incoming(i64(0), first)
    index.add_incoming(following, body)
    builder.cbranch(builder.icmp_signed("<", following, loop.args[0]), body, last)
    ir.IRBuilder(last).ret_void()
    return module


def optimised(module: ir.Module, symbols: Sequence[str], machine: Any, fused: bool = True) -> Any:
    """*module* with the functions *symbols* linked in, after LLVM's O3 pipeline for the machine."""
    linked = llvm.parse_assembly(str(module))
    linked.link_in(llvm.parse_bitcode(bitcode_of(symbols, fused=fused)))
    linked.triple, linked.data_layout = machine.triple, str(machine.target_data)
    for function in linked.functions:
        if not function.is_declaration and function.name != "loop":
            function.linkage = "internal"
    options = llvm.create_pipeline_tuning_options(speed_level=3)
    options.loop_vectorization = options.slp_vectorization = True
    builder = llvm.create_pass_builder(machine, options)
    builder.getModulePassManager().run(linked, builder)
    return linked


class Loop:
    """A function over arrays, as machine code for this machine. Without *fused*, the one for processors that have no
    fused multiply-add; its results are the same everywhere."""

    def __init__(self, entry: MathFunction, module: ir.Module | None = None, fused: bool = True) -> None:
        self.entry = entry
        self.fused = fused
        machine = host()
        self._engine = llvm.create_mcjit_compiler(self.link(module or loop_around(entry), machine), machine)
        self._engine.finalize_object()
        inputs = sum(p != "ptr" for p in entry.parameters)
        self._outputs = max(1, len(entry.parameters) - inputs)
        kind = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (inputs + self._outputs))
        self._run = kind(self._engine.get_function_address("loop"))

    def link(self, module: ir.Module, machine: Any) -> Any:
        """The module that is loaded."""
        return optimised(module, [self.entry.symbol], machine, self.fused)

    def over(self, *arrays: Array) -> Callable[[], None]:
        """What evaluates once; arrays are inputs, then outputs, contiguous and of the function's format."""
        addresses = [array.ctypes.data for array in arrays]
        return lambda: self._run(arrays[0].size, *addresses)

    def __call__(self, *inputs: Array) -> list[Array]:
        kind = FORMATS[self.entry.bits]
        arrays = [np.ascontiguousarray(array, kind) for array in inputs]
        results = [np.empty_like(arrays[0]) for _ in range(self._outputs)]
        self.over(*arrays, *results)()
        return results


@cache
def loop(symbol: str, fused: bool = True) -> Loop:
    return Loop(FUNCTIONS[symbol], fused=fused)


def points(bits: int, count: int, seed: int) -> Array:
    """Arguments of all kinds: special ones, random bits, ordinary ranges, around what formulas split at."""
    random = np.random.default_rng(seed)
    kind = FORMATS[bits]
    info = np.finfo(kind)
    edges = [0.0, 1.0, 2.0, 0.5, float(info.max), float(info.tiny), float(info.smallest_subnormal), np.inf, 0.85, 88.7]
    special = np.array([*edges, *(-edge for edge in edges), np.nan], kind)
    unsigned = np.dtype(f"u{bits // 8}")
    anything = random.integers(0, 2**bits - 1, count // 4, unsigned, endpoint=True).view(kind)
    spans = (0.5, 1, 3, 10, 30, 100, 750, 1e4)
    ordinary = [random.uniform(-span, span, count // 16) for span in spans]
    centres = np.array([1, -1, 0.5, -0.5, 0.85, np.pi / 2, np.log(2) / 2, np.sqrt(0.5), np.sqrt(2), -np.log(2) / 2])
    spread = 10.0 ** random.uniform(-16, -1, (count // 80, centres.size))
    near = (centres * (1 + spread * random.choice([-1, 1], spread.shape))).ravel()
    turns = random.integers(1, 2 ** (22 if bits == 32 else 45), count // 8) * (np.pi / 2)
    return np.concatenate([special, anything, *(part.astype(kind) for part in (*ordinary, near, turns))])


def errors(got: Array, high: Array, low: Array) -> Array:
    """Error of *got* against high + low in units in the last place; infinite where class or sign are wrong.

    *high* is float64, *low* what it lacks. A result that overflows may be infinite, one that underflows a signed zero.
    """
    kind = got.dtype.type
    info = np.finfo(kind)
    with np.errstate(all="ignore"):
        _, exponent = np.frexp(high)
        unit = np.maximum(
            np.ldexp(1.0, np.clip(exponent, -1021, 1024) - info.nmant - 1), float(info.smallest_subnormal)
        )
        distance = np.abs((got.astype(np.float64) - high) - low) / unit
        overflow = float(info.max) * (1 + 2.0**-25) if kind is np.float32 else float(info.max)
        infinite = (np.abs(high) > overflow) | np.isinf(high)
        right = np.isinf(got) & (np.signbit(got) == np.signbit(high))
        distance = np.where(infinite, np.where(right, 0.0, np.inf), distance)
        distance = np.where(np.isnan(high), np.where(np.isnan(got), 0.0, np.inf), distance)
        zeros = (got == 0) & (high == 0)
        distance = np.where(zeros, np.where(np.signbit(got) == np.signbit(high), 0.0, np.inf), distance)
        return np.where(np.isnan(distance), np.inf, distance)
