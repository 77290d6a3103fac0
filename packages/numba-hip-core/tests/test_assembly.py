"""Assembly in kernels for the CPU device, and other IR of intrinsics that LLVM would end the process on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from llvmlite import ir
from llvmlite.binding import llvm_version_info
from numba import hip, types
from numba.core.errors import LoweringError
from numba.extending import intrinsic

from hip_runtime import config as runtime_config
from hip_runtime import current_device
from hip_runtime.drivers.cpu import finalise

pytestmark = [
    pytest.mark.skipif(current_device().target != "cpu", reason="assembly of the processor"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="assembly of x86"),
]

I32 = ir.IntType(32)
NEW_LLVM = 22


def written(text: str, constraint: str, side_effect: bool = False) -> Any:
    @intrinsic
    def assembly(context: Any, value: Any) -> Any:
        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.asm(ir.FunctionType(I32, [I32]), text, constraint, args, side_effect)

        return types.int32(types.int32), lower

    return assembly


@pytest.mark.sample(1)
@pytest.mark.parametrize("side_effect", [False, True])
@pytest.mark.parametrize("form", ["auto", "loop", "vectors", "regions"])
def test_assembly_runs_for_each_thread(form: str, side_effect: bool) -> None:
    swap = written("bswapl $0", "=r,0", side_effect)

    @hip.jit
    def kernel(values: Any) -> None:
        i = hip.grid(1)
        if i < values.size and values[i] % 3:
            values[i] = swap(values[i])

    values = np.arange(1000, 1070, dtype=np.int32)
    expected = np.where(values % 3, values.byteswap(), values)
    with runtime_config.cpu_form.scope(form):
        kernel[3, 31](values)
    np.testing.assert_array_equal(values, expected)
    assert re.search("bswap|movbe", kernel.inspect_asm(next(iter(kernel.overloads))))  # the second, if LLVM reads it


def test_assembly_between_barriers() -> None:
    swap = written("bswapl $0", "=r,0", True)

    @hip.jit
    def kernel(values: Any) -> None:
        i = hip.threadIdx.x
        shared = hip.shared.array(64, np.int32)
        shared[i] = swap(values[i])
        hip.syncthreads()
        values[i] = swap(shared[63 - i])

    values = np.arange(64, dtype=np.int32)
    kernel[1, 64](values)
    np.testing.assert_array_equal(values, np.arange(64)[::-1])


reads_constraints = pytest.mark.skipif(
    llvm_version_info[0] < NEW_LLVM, reason="LLVM 20 goes by the letters of a constraint that it knows"
)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("text", "constraint", "message"),
    [
        ("v_mov_b32 $0, $1", "=v,v", "v_mov_b32"),
        ("bswapl $9", "=r,0", "Invalid"),
        pytest.param("bswapl $0", "=zz,0", "constraint", marks=reads_constraints),
    ],
)
def test_foreign_assembly_is_an_error_at_its_line(text: str, constraint: str, message: str) -> None:
    wrong = written(text, constraint)

    @hip.jit
    def kernel(values: Any) -> None:
        values[0] = wrong(values[0])  # this line

    with pytest.raises(LoweringError, match=message) as caught:
        kernel[1, 1](np.zeros(1, np.int32))
    assert "test_assembly.py" in str(caught.value)
    assert "wrong(values[0])" in str(caught.value)
    right = written("bswapl $0", "=r,0")

    @hip.jit
    def after(values: Any) -> None:
        values[0] = right(values[0])

    after[1, 1](np.zeros(1, np.int32))


HOSTILE = {
    "an intrinsic of other types": "declare('llvm.x86.avx512.kand.w', I32, [value])",
    "an intrinsic with a wrong result": "b.trunc(declare('llvm.ctpop.i32', ir.IntType(64), [value]), I32)",
    "an intrinsic of no processor": "b.ptrtoint(declare('llvm.coro.frame', ir.PointerType(), []), I32)",
    "an atomic of odd size": "b.zext(b.atomic_rmw('add', b.alloca(ir.IntType(24)), ir.IntType(24)(1), 'acquire'), I32)",
    "an intrinsic that a pass does not expect": (
        "declare('llvm.vector.reduce.add.nxv4i32', I32, [declare('llvm.stepvector.nxv4i32', scalable, [])])"
    ),
    "an intrinsic of an older LLVM": (
        "[value, declare('llvm.memcpy.p0.p0.i64', ir.VoidType(), "
        "[b.alloca(I32), b.alloca(I32), ir.IntType(64)(4), value, ir.IntType(1)(0)])][0]"
    ),
    "assembly that leaves the section": "b.asm(ir.FunctionType(I32, [I32]), '.section .foo', '=r,0', [value], True)",
}


@pytest.mark.sample(1)
@pytest.mark.parametrize("case", HOSTILE)
def test_what_llvm_would_end_the_process_on_is_an_error(case: str) -> None:
    script = f"""
        import numpy as np
        from llvmlite import ir
        from numba import hip, types
        from numba.extending import intrinsic
        I32 = ir.IntType(32)
        scalable = ir.VectorType(I32, 4)
        scalable._to_string = lambda: "<vscale x 4 x i32>"

        @intrinsic
        def hostile(context, value):
            def lower(context, b, sig, args):
                value, = args
                def declare(name, result, given):
                    kind = ir.FunctionType(result, [one.type for one in given])
                    return b.call(ir.Function(b.module, kind, name), given)
                return {HOSTILE[case]}
            return types.int32(types.int32), lower

        @hip.jit
        def kernel(values):
            values[hip.grid(1)] = hostile(values[hip.grid(1)])

        try:
            kernel[1, 64](np.zeros(64, np.int32))
        except Exception as error:
            print(type(error).__name__)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, timeout=300, check=False,
        env={**os.environ, "NUMBA_HIP_DEVICE": "cpu"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("LoweringError", "ModuleLoadError"), done.stderr


def lowered(lower: Callable[..., Any]) -> Any:
    @intrinsic
    def custom(context: Any, value: Any) -> Any:
        return types.int32(types.int32), lower

    return custom


def ended(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.unreachable()
    return args[0]


def ended_twice(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.ret(ir.Constant(I32, 0))
    builder.unreachable()
    return args[0]


def gone_on(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    builder.unreachable()
    return builder.add(args[0], args[0])


def wide(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    number = builder.zext(args[0], ir.IntType(8388607))
    return builder.trunc(builder.mul(number, number), I32)


def long_vector(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return builder.extract_element(ir.VectorType(I32, 4096)([1] * 4096), args[0])


def long_array(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    memory = builder.alloca(ir.ArrayType(I32, 1 << 20))
    return builder.extract_value(builder.load(memory), 5)


@pytest.mark.parametrize("target", ["cpu", "gfx942"])
@pytest.mark.parametrize(
    ("lower", "message"),
    [
        (ended, r"custom\(\) ends a block with 'unreachable'"),
        (ended_twice, r"custom\(\) ends a block with 'ret i32 0'"),
        (gone_on, r"custom\(\) ends a block with 'unreachable'"),
        (wide, r"custom\(\) writes an integer of 8388607 bits; LLVM is given 512 at most"),
        (long_vector, r"custom\(\) writes a vector of 4096 elements \(i32\); LLVM is given 2048 at most"),
        (long_array, r"custom\(\) writes an array of 1048576 elements as a value; LLVM is given 16384 at most"),
    ],
)
def test_what_no_intrinsic_may_write_is_an_error_at_its_line(
    lower: Callable[..., Any], message: str, target: str
) -> None:
    custom = lowered(lower)

    @hip.jit
    def kernel(values: Any) -> None:
        values[0] = custom(values[0])  # this line

    with pytest.raises(LoweringError, match=message) as caught:
        hip.compile(kernel, (types.int32[::1],), target=target, output="llvm")
    assert "# this line" in str(caught.value)


def test_an_intrinsic_that_ends_a_block_and_begins_another() -> None:
    def leave(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        rest = builder.append_basic_block("rest")
        builder.branch(rest)
        builder.position_at_end(rest)
        return builder.add(args[0], args[0])

    double = lowered(leave)

    @hip.jit
    def kernel(values: Any) -> None:
        values[0] = double(values[0])

    values = np.array([21], np.int32)
    kernel[1, 1](values)
    assert values[0] == 42


def test_an_assertion_of_an_intrinsic_is_its_own() -> None:
    def fail(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        with builder.if_then(builder.trunc(args[0], ir.IntType(1))):
            builder.store(args[0], builder.alloca(I32))
        raise AssertionError("of the program")

    custom = lowered(fail)

    @hip.jit
    def kernel(values: Any) -> None:
        values[0] = custom(values[0])

    with pytest.raises(AssertionError, match="of the program"):
        kernel[1, 1](np.zeros(1, np.int32))


@pytest.mark.long
def test_doubtful_code_is_finalised_in_another_process() -> None:
    """A product of i256: its passes and its machine code are elsewhere, in the form that is asked for here."""
    word = ir.IntType(256)

    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        wide = builder.zext(args[0], word)
        moved = builder.mul(wide, builder.shl(wide, builder.zext(args[0], word)))
        return builder.trunc(builder.lshr(moved, builder.zext(args[0], word)), I32)

    square = lowered(lower)

    @hip.jit
    def kernel(values: Any) -> None:
        i = hip.grid(1)
        values[i] = square(values[i])

    values = np.arange(64, dtype=np.int32)
    with runtime_config.cpu_form.scope("regions"), mock.patch.object(finalise, "finalise_kernel") as made:
        kernel[1, 64](values)
    np.testing.assert_array_equal(values, np.arange(64) ** 2)
    assert not made.called
