"""Assembly in kernels for the CPU device, and other IR of intrinsics that LLVM would end the process on."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
from llvmlite import ir
from numba import hip, types
from numba.core.errors import LoweringError
from numba.extending import intrinsic

from hip_runtime import config as runtime_config
from hip_runtime import current_device

pytestmark = [
    pytest.mark.skipif(current_device().target != "cpu", reason="assembly of the processor"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="assembly of x86"),
]

I32 = ir.IntType(32)


def written(text: str, constraint: str, side_effect: bool = False) -> Any:
    @intrinsic
    def assembly(context: Any, value: Any) -> Any:
        def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            return builder.asm(ir.FunctionType(I32, [I32]), text, constraint, args, side_effect)

        return types.int32(types.int32), lower

    return assembly


@pytest.mark.sample(3)
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
    assert "bswap" in kernel.inspect_asm(next(iter(kernel.overloads)))


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


@pytest.mark.parametrize(
    ("text", "constraint", "message"),
    [
        ("v_mov_b32 $0, $1", "=v,v", "v_mov_b32"),
        ("bswapl $9", "=r,0", "Invalid"),
        ("bswapl $0", "=zz,0", "constraint"),
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
    assert (done.returncode, done.stdout.strip()) in [(0, "LoweringError"), (0, "ModuleLoadError")], done.stderr
