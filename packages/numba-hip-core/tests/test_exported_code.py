"""Device functions compiled for others to link: by both ABIs, for every device, and back into kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from llvmlite import binding as llvm
from numba import hip, types
from numba.core.errors import TypingError

from hip_runtime.errors import KernelFault
from numba_hip.errors import OutputError


def blend(x: Any, y: Any) -> Any:
    return x * 2 + y


def definitions(ir: str) -> list[str]:
    module = llvm.parse_assembly(ir)
    return [function.name for function in module.functions if not function.is_declaration]


@pytest.mark.cpu_device("links code for the CPU device")
@pytest.mark.parametrize("abi", ["c", "numba"])
@pytest.mark.parametrize("name", [None, "_Z5blendff"])
@pytest.mark.sample(1)
def test_a_function_is_linked_into_a_kernel(abi: str, name: str | None) -> None:
    info = None if name is None else {"abi_name": name}
    code, result = hip.compile(
        blend, "(float32, int32)", target="cpu", device=True, abi=abi, abi_info=info, output="bitcode"
    )
    assert result == types.float64
    signature = types.float64(types.float32, types.int32)
    linked = hip.declare_device(name or "blend", signature, link=hip.LinkedCode(code), abi=abi)

    @hip.jit
    def kernel(values: Any) -> None:
        i = hip.grid(1)
        values[i] = linked(values[i], i)

    values = np.arange(8.0)
    kernel[2, 4](values)
    np.testing.assert_array_equal(values, 3 * np.arange(8.0))


@pytest.mark.cpu_device("links code for the CPU device")
def test_what_a_function_does_with_its_thread_is_done() -> None:
    def where() -> int:
        return hip.threadIdx.x + 10 * hip.blockIdx.x

    code, result = hip.compile(where, (), target="cpu", device=True, output="bitcode")
    linked = hip.declare_device("where", result(), link=hip.LinkedCode(code), abi="c")

    @hip.jit
    def kernel(values: Any) -> None:
        values[hip.grid(1)] = linked()

    values = np.zeros(4, np.int64)
    kernel[2, 2](values)
    assert values.tolist() == [0, 1, 10, 11]


@pytest.mark.cpu_device("links code for the CPU device")
def test_an_exception_ends_the_thread_by_numbas_abi() -> None:
    def positive(x: Any) -> Any:
        if x < 0:
            raise ValueError("below zero")
        return x

    made = {}
    for abi in ("c", "numba"):
        code, result = hip.compile(positive, "(int64,)", target="cpu", device=True, abi=abi, output="bitcode")
        linked = hip.declare_device("positive", result(types.int64), link=hip.LinkedCode(code), abi=abi)

        @hip.jit
        def kernel(values: Any, linked: Any = linked) -> None:
            values[0] = linked(values[0])

        made[abi] = linked

    @hip.jit
    def by_numba(values: Any) -> None:
        values[0] = numbas(values[0])

    @hip.jit
    def by_c(values: Any) -> None:
        values[0] = cs(values[0])

    numbas, cs = made["numba"], made["c"]
    values = np.array([5])
    by_numba[1, 1](values)
    assert values[0] == 5
    values[0] = -5
    with pytest.raises(KernelFault):
        by_numba[1, 1](values)
    by_c[1, 1](values)
    assert values[0] == 0, "C has no way to say so"


@pytest.mark.parametrize("target", ["cpu", "gfx90a", "gfx1100"])
def test_each_kind_of_output(target: str) -> None:
    ir, result = hip.compile(blend, "float64(float32, float32)", target=target, device=True, output="llvm")
    assert result == types.float64
    assert definitions(str(ir)) == ["blend"]
    bitcode, _ = hip.compile(blend, "(int32, int32)", target=target, device=True, output="bitcode", abi="numba")
    assert definitions(str(llvm.parse_bitcode(bytes(bitcode)))) == ["blend"]  # type: ignore[arg-type]
    assert "blend:" in str(hip.compile(blend, "(int32, int32)", target=target, device=True)[0])
    if target == "cpu":
        with pytest.raises(OutputError, match="ask for 'bitcode'"):
            hip.compile(blend, "(int32, int32)", target=target, device=True, output="object")
    else:
        image, _ = hip.compile(blend, "(int32, int32)", target=target, device=True, output="object")
        assert bytes(image).startswith(b"\x7fELF")  # type: ignore[arg-type]
    codes, result = hip.compile_all(blend, "(int32, int32)", targets=[target], device=True, output="llvm")
    assert (list(codes), result) == ([target], types.int64)


def test_device_functions_are_compiled_as_such() -> None:
    function = hip.jit(device=True)(blend)
    ir, result = hip.compile(function, "(int16, int16)", target="cpu", output="llvm")
    assert (definitions(str(ir)), result) == (["blend"], types.int64)
    nothing, result = hip.compile(
        lambda: None, "void()", target="cpu", device=True, abi_info={"abi_name": "f"}, output="llvm"
    )
    assert "define void @f(" in str(nothing)
    assert result == types.none


@pytest.mark.cpu_device("links code for the CPU device")
def test_results_that_c_has_no_type_for() -> None:
    def maybe(x: Any) -> Any:
        return x + 1 if x > 0 else None

    def half(x: Any) -> Any:
        return x / 2

    ir, result = hip.compile(maybe, "(int32,)", target="cpu", device=True, output="llvm")
    assert definitions(str(ir)) == ["maybe"]
    assert result == types.Optional(types.int64)
    code, result = hip.compile(half, "complex128(complex128)", target="cpu", device=True, output="bitcode")
    linked = hip.declare_device("half", result(types.complex128), link=hip.LinkedCode(code), abi="c")

    @hip.jit
    def kernel(values: Any) -> None:
        values[0] = linked(values[0])

    values = np.array([3 + 4j])
    kernel[1, 1](values)
    assert values[0] == 1.5 + 2j


def test_what_cannot_be_compiled_so() -> None:
    with pytest.raises(NotImplementedError, match="Unsupported ABI: fastcall; there are numba and c"):
        hip.compile(blend, "(int32, int32)", device=True, abi="fastcall")
    with pytest.raises(NotImplementedError, match="The C ABI is not supported for kernels"):
        hip.compile(blend, "(int32, int32)", abi="c")
    for device in (False, True):
        with pytest.raises(OutputError, match="Unsupported output type: ptx; it can be one of llvm"):
            hip.compile(blend, "(int32, int32)", device=device, output="ptx")
    with pytest.raises(TypingError):
        hip.compile(blend, "(int32, none)", target="cpu", device=True)
