"""Products that add up neighbours, by the processor's instructions and without them, against NumPy."""

from __future__ import annotations

import llvmlite.binding as llvm
import numpy as np
import pytest
from spmd_kernels import code, pack

from hip_runtime import Device, ModuleLoadError, to_device

LANES = 16

BFLOATS = "<16 x float>", "spmd.dot.bf16"
BYTES = "<16 x i32>", "spmd.dot.u8.i8"


class Features(dict[str, bool]):
    """What LLVM tells of a processor, without what is left out."""

    def flatten(self) -> str:
        return ",".join(f"{'+' if has else '-'}{name}" for name, has in self.items())


@pytest.fixture(params=[True, False], ids=["as it is", "plain"], autouse=True)
def has_instructions(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    if not request.param:
        features = Features(llvm.get_host_cpu_features())
        features.update(avx512bf16=False, avx512vnni=False)
        monkeypatch.setattr(llvm, "get_host_cpu_features", lambda: features)
    return bool(request.param)


def run(device: Device, dot: tuple[str, str], *values: np.ndarray) -> np.ndarray:
    """The sums that one call gives of sums and two factors."""
    kind, name = dot
    text = f"""
    declare {kind} @{name}({kind}, <16 x i32>, <16 x i32>)
    define void @multiply(ptr %sums, ptr %one, ptr %other) noinline {{
      %s = load {kind}, ptr %sums, align 4
      %a = load <16 x i32>, ptr %one, align 4
      %b = load <16 x i32>, ptr %other, align 4
      %r = call {kind} @{name}({kind} %s, <16 x i32> %a, <16 x i32> %b)
      store {kind} %r, ptr %sums, align 4
      ret void
    }}
    define void @k(ptr noalias %item, ptr %sums, ptr %one, ptr %other) {{
      call void @multiply(ptr %sums, ptr %one, ptr %other)
      ret void
    }}"""
    arrays = [to_device(array, device=device) for array in values]
    function = device.load(code(text, "k", [("sums", "ptr"), ("one", "ptr"), ("other", "ptr")])).function("k")
    function.launch(1, 1, pack(function.kernel, *(array.address for array in arrays)))
    return arrays[0].copy_to_host()


def test_bytes(device: Device) -> None:
    rng = np.random.default_rng(1)
    one, other = rng.integers(0, 256, 4 * LANES).astype(np.uint8), rng.integers(-128, 128, 4 * LANES).astype(np.int8)
    one[:8], other[:8] = 255, -128
    sums = rng.integers(-(2**31), 2**31, LANES).astype(np.int32)
    sums[0] = -(2**31)  # wraps around
    found = run(device, BYTES, sums, one, other)
    products = (one.astype(np.int64) * other.astype(np.int64)).reshape(LANES, 4).sum(1)
    np.testing.assert_array_equal(found, (sums + products).astype(np.int32))


def test_pairs_of_bfloat16(device: Device) -> None:
    rng = np.random.default_rng(2)
    one, other = (rng.standard_normal(2 * LANES, np.float32) for _ in range(2))
    one[:4], other[:4] = [np.inf, 1, np.nan, 1], 1
    bits = [(values.view(np.uint32) >> 16).astype(np.uint16) for values in (one, other)]
    exact = [(half.astype(np.uint32) << 16).view(np.float32).astype(np.float64) for half in bits]
    sums = rng.standard_normal(LANES).astype(np.float32)
    found = run(device, BFLOATS, sums, *bits)
    products = (exact[0] * exact[1]).reshape(LANES, 2)
    scale = np.abs(products).sum(1) + np.abs(sums)
    assert found[0] == np.inf
    assert np.isnan(found[1])
    errors = np.abs(found[2:] - (sums + products.sum(1))[2:])
    assert (errors / scale[2:]).max() < 2.0**-22


def test_the_instruction_flushes_small_numbers_to_zero(device: Device, has_instructions: bool) -> None:
    small = np.full(LANES, 2.0**-70, np.float32).view(np.uint32) >> 16
    found = run(device, BFLOATS, np.zeros(LANES, np.float32), small, small)
    has_one = has_instructions and llvm.get_host_cpu_features().get("avx512bf16")
    np.testing.assert_array_equal(found, np.full(LANES, 0 if has_one else 2.0**-140, np.float32))


def test_another_signature_is_an_error(device: Device) -> None:
    text = """
    declare <8 x i32> @spmd.dot.u8.i8(<8 x i32>, <8 x i32>, <8 x i32>)
    define void @k(ptr noalias %item, ptr %x) {
      %a = load <8 x i32>, ptr %x
      %r = call <8 x i32> @spmd.dot.u8.i8(<8 x i32> %a, <8 x i32> %a, <8 x i32> %a)
      store <8 x i32> %r, ptr %x
      ret void
    }"""
    x = to_device(np.zeros(8, np.int32), device=device)
    function = device.load(code(text, "k", [("x", "ptr")])).function("k")
    with pytest.raises(ModuleLoadError, match="spmd.dot.u8.i8"):
        function.launch(1, 1, pack(function.kernel, x.address))
