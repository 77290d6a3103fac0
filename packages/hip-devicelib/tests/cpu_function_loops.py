"""HIP's functions of the CPU device, compiled into loops over NumPy arrays; and arguments that are worth trying."""

from __future__ import annotations

import ctypes
import ctypes.util
from functools import cache
from itertools import product

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir

from hip_devicelib.cpu import functions
from hip_devicelib.cpu.functions.function_builder import llvm_type

I64 = ir.IntType(64)


def numpy_type(kind) -> np.dtype:
    """The NumPy type of the elements that stand for *kind*."""
    if kind.kind in ("integer", "bfloat16"):
        return np.dtype(f"{'i' if kind.signed else 'u'}{(kind.bits or 16) // 8}")
    return np.dtype({"bool": "u1", "half": "f2"}.get(kind.kind, f"f{kind.bits // 8}"))


class Loops:
    """Every function of `functions.FUNCTIONS`, callable with arrays; *fused* as for `functions.bitcode_of`."""

    def __init__(self, fused=True):
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        llvm.load_library_permanently(ctypes.util.find_library("m"))
        context = llvm.create_context()
        module = llvm.parse_bitcode(functions.bitcode_of(functions.FUNCTIONS, fused=fused), context)
        module.link_in(llvm.parse_assembly(str(self._drivers()), context))
        module.verify()
        features = llvm.get_host_cpu_features().flatten()
        machine = llvm.Target.from_default_triple().create_target_machine(
            cpu=llvm.get_host_cpu_name(), features=features, opt=1, jit=True
        )
        options = llvm.create_pipeline_tuning_options(speed_level=0)
        llvm.create_pass_builder(machine, options).getModulePassManager().run(
            module, llvm.create_pass_builder(machine, options)
        )
        self.engine = llvm.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()

    @staticmethod
    def _drivers() -> ir.Module:
        module = ir.Module(context=ir.Context())
        byte = ir.IntType(8).as_pointer()
        for symbol, declaration in functions.FUNCTIONS.items():
            kinds = [parameter.type for parameter in declaration.parameters]
            callee = ir.Function(
                module, ir.FunctionType(llvm_type(declaration.result), [llvm_type(k) for k in kinds]), symbol
            )
            loop = ir.Function(
                module, ir.FunctionType(ir.VoidType(), [I64] + [byte] * (1 + len(kinds))), f"loop_{symbol}"
            )
            count, out, *arrays = loop.args
            entry, body, end = (loop.append_basic_block(name) for name in ("entry", "body", "end"))
            ir.IRBuilder(entry).branch(body)
            builder = ir.IRBuilder(body)
            index = builder.phi(I64)
            index.add_incoming(I64(0), entry)

            def element(array, kind, builder=builder, index=index):
                scalar = ir.IntType(8) if kind.kind == "bool" else llvm_type(kind)
                return builder.gep(builder.bitcast(array, scalar.as_pointer()), [index], source_etype=scalar)

            arguments = []
            for array, kind in zip(arrays, kinds, strict=True):
                if kind.kind == "pointer":
                    arguments.append(builder.bitcast(element(array, kind.element), byte))
                    continue
                value = builder.load(
                    element(array, kind), typ=ir.IntType(8) if kind.kind == "bool" else llvm_type(kind)
                )
                arguments.append(builder.trunc(value, ir.IntType(1)) if kind.kind == "bool" else value)
            result = builder.call(callee, arguments)
            if declaration.result.kind != "void":
                wide = builder.zext(result, ir.IntType(8)) if declaration.result.kind == "bool" else result
                builder.store(wide, element(out, declaration.result))
            following = builder.add(index, I64(1))
            index.add_incoming(following, body)
            builder.cbranch(builder.icmp_signed("<", following, count), body, end)
            ir.IRBuilder(end).ret_void()
        return module

    def call(self, declaration, *arrays: np.ndarray) -> np.ndarray:
        """The results for each element; what pointers lead to is changed in place."""
        count = len(arrays[0])
        result = declaration.result
        out = np.zeros(count, np.uint8 if result.kind == "void" else numpy_type(result))
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (1 + len(arrays)))
        native = prototype(self.engine.get_function_address(f"loop_{declaration.symbol}"))
        native(count, out.ctypes.data, *(array.ctypes.data for array in arrays))
        return out


@cache
def numbers(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Special numbers of the format *kind* (``f2``, ``f4``, ``f8``), and ordinary ones of all magnitudes."""
    dtype = np.dtype(kind)
    info = np.finfo(dtype)
    specials = [0.0, 1.0, 0.5, 1.5, 2.5, 3.0, 0.7, 100.25, float(info.max), float(info.tiny), np.inf]
    specials += [float(info.smallest_subnormal), float(info.tiny) / 2, float(info.eps)]
    if kind != "f2":
        specials += [2.0**31 - 1, 2.0**31, 2.0**32, 2.0**63, 2.0**64, 8388607.5]
    positive = np.array(specials, dtype)
    both = np.concatenate([positive, -positive, np.array([np.nan], dtype)])
    random = np.random.default_rng(3)
    bits = random.integers(0, 1 << (8 * dtype.itemsize), 300, dtype=np.uint64).astype(f"u{dtype.itemsize}").view(dtype)
    ordinary = [random.normal(size=300) * scale for scale in (0.3, 4.0, 60.0, 3000.0)]
    return both, np.concatenate([bits, *(values.astype(dtype) for values in ordinary)])


@cache
def integers(kind: str) -> tuple[np.ndarray, np.ndarray]:
    """Special and random integers of the type *kind*."""
    info = np.iinfo(kind)
    ends = [info.max, info.max - 1, info.min, info.min + 1]
    near = [0, 1, 2, 3, 7, 23, 31, 32, 33, 63, 64, 255, 2047, 2049, 65519, 65520, -1, -2, -7, -32, -2049]
    powers = [2**24 + 1, 2**31, 2**53 + 1, 2**53 + 3]
    specials = np.array([n for n in ends + near + powers if info.min <= n <= info.max], kind)
    random = np.random.default_rng(4)
    wide = random.integers(info.min, info.max, 600, dtype=kind, endpoint=True)
    shifts = random.integers(0, info.bits - 1, 600).astype(kind)
    return specials, wide >> shifts


def samples(kinds) -> list[np.ndarray]:
    """Arguments for parameters of *kinds*: combinations of the special ones, and random ones."""
    pools = []
    for kind in kinds:
        dtype = numpy_type(kind).str[1:]
        if kind.kind == "bool":
            pools.append((np.array([0, 1], "u1"),) * 2)
        else:
            pools.append(numbers(dtype) if dtype[0] == "f" else integers(dtype))
    limit = {1: 1000, 2: 30, 3: 9}.get(len(pools), 5)
    random = np.random.default_rng(5)
    special = [random.permutation(pool[0])[:limit] for pool in pools]
    combined = [np.array(column) for column in zip(*product(*special), strict=True)] if len(pools) > 1 else special
    count = 500
    return [
        np.ascontiguousarray(np.concatenate([column, random.choice(pool[1], count)])).astype(pool[0].dtype)
        for column, pool in zip(combined, pools, strict=True)
    ]
