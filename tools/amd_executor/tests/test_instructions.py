"""The executor against NumPy, group by group of instructions, on each target."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from amd_kernels import TARGETS, elementwise, machine, run

from tools.amd_executor.decoding import UnknownInstruction
from tools.amd_executor.machine import MemoryFault, TrapFault

pytestmark = pytest.mark.parametrize("target", TARGETS)

COUNT = 256
WHOLE = {"i16": np.int16, "i32": np.int32, "i64": np.int64}
REAL: dict[str, type[np.floating[Any]]] = {"half": np.float16, "float": np.float32, "double": np.float64}
SHORT = {"half": "f16", "float": "f32", "double": "f64"}


def whole_numbers(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    limits = np.iinfo(WHOLE[kind])
    left, right = (rng.integers(limits.min, limits.max, COUNT, WHOLE[kind], endpoint=True) for _ in range(2))
    special = np.array([0, 1, -1, limits.min, limits.max, 2, 7, -7], WHOLE[kind])
    left[:64], right[:64] = np.repeat(special, 8), np.tile(special, 8)
    return left, right


def real_numbers(kind: str) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    info = np.finfo(REAL[kind])
    special = np.array(
        [
            0,
            -0.0,
            1,
            -1,
            1.5,
            2.5,
            np.inf,
            -np.inf,
            np.nan,
            info.max,
            info.tiny,
            info.smallest_subnormal,
            info.tiny / 2,
            3,
            0.1,
            -2.5,
        ]
    )
    scale = np.exp2(rng.integers(-12, 13, COUNT))
    left, right = (rng.standard_normal(COUNT) * scale for _ in range(2))
    left, right = left.astype(REAL[kind]), right.astype(REAL[kind])
    left[:256], right[:256] = np.repeat(special, 16), np.tile(special, 16)
    more = rng.permutation(COUNT)
    values = (rng.standard_normal(COUNT) * scale).astype(REAL[kind])
    return np.concatenate([left, values]), np.concatenate([right, values[more]])


@pytest.mark.parametrize("kind", ["i16", "i32", "i64"])
def test_arithmetic_of_whole_numbers(target: str, kind: str) -> None:
    left, right = whole_numbers(kind)
    bits = left.dtype.itemsize * 8
    amount = f"%s = and {kind} %y, {bits - 1}"
    operations = {name: f"%r = {name} {kind} %x, %y" for name in ("add", "sub", "mul", "and", "or", "xor")}
    operations |= {name: f"{amount}\n%r = {name} {kind} %x, %s" for name in ("shl", "lshr", "ashr")}
    for name in ("smin", "smax", "umin", "umax"):
        call = f"{kind} @llvm.{name}.{kind}({kind} %x, {kind} %y)"
        operations[name] = f"declare {kind} @llvm.{name}.{kind}({kind}, {kind})\n%r = call {call}"
    found = elementwise(target, kind, kind, operations, left, right)
    unsigned = f"u{left.dtype.itemsize}"
    shift = right & (bits - 1)
    expected = {
        "add": left + right, "sub": left - right, "mul": left * right, "and": left & right, "or": left | right,
        "xor": left ^ right, "shl": left << shift, "ashr": left >> shift,
        "lshr": (left.view(unsigned) >> shift.view(unsigned)).view(left.dtype),
        "smin": np.minimum(left, right), "smax": np.maximum(left, right),
        "umin": np.minimum(left.view(unsigned), right.view(unsigned)).view(left.dtype),
        "umax": np.maximum(left.view(unsigned), right.view(unsigned)).view(left.dtype),
    }  # fmt: skip
    for name in operations:
        np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_division_of_whole_numbers(target: str, kind: str) -> None:
    left, right = whole_numbers(kind)
    right[right == 0] = 3
    left[right == -1] = 5
    operations = {name: f"%r = {name} {kind} %x, %y" for name in ("sdiv", "srem", "udiv", "urem")}
    found = elementwise(target, kind, kind, operations, left, right)
    one, other = left.view(f"u{left.dtype.itemsize}"), right.view(f"u{left.dtype.itemsize}")
    remainder = np.array([abs(int(a)) % abs(int(b)) * (-1 if a < 0 else 1) for a, b in zip(left, right, strict=True)])
    np.testing.assert_array_equal(found["srem"], remainder)
    np.testing.assert_array_equal(
        found["sdiv"], [(int(a) - int(c)) // int(b) for a, b, c in zip(left, right, remainder, strict=True)]
    )
    np.testing.assert_array_equal(found["udiv"].view(one.dtype), one // other)
    np.testing.assert_array_equal(found["urem"].view(one.dtype), one % other)


@pytest.mark.parametrize("kind", ["i32", "i64"])
def test_bits(target: str, kind: str) -> None:
    left, right = whole_numbers(kind)
    bits = left.dtype.itemsize * 8
    operations = {}
    for name in ("ctpop", "ctlz", "cttz", "bitreverse"):
        more, flag = (", i1", ", i1 false") if name in ("ctlz", "cttz") else ("", "")
        declaration = f"declare {kind} @llvm.{name}.{kind}({kind}{more})"
        operations[name] = f"{declaration}\n%r = call {kind} @llvm.{name}.{kind}({kind} %x{flag})"
    found = elementwise(target, kind, kind, operations, left, right)
    texts = [f"{int(value) & (1 << bits) - 1:0{bits}b}" for value in left]
    np.testing.assert_array_equal(found["ctpop"], [text.count("1") for text in texts])
    np.testing.assert_array_equal(found["ctlz"], [len(text) - len(text.lstrip("0")) for text in texts])
    np.testing.assert_array_equal(found["cttz"], [len(text) - len(text.rstrip("0")) for text in texts])
    np.testing.assert_array_equal(found["bitreverse"].view(f"u{bits // 8}"), [int(text[::-1], 2) for text in texts])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_arithmetic_of_floats(target: str, kind: str) -> None:
    left, right = real_numbers(kind)
    operations = {name: f"%r = {name} {kind} %x, %y" for name in ("fadd", "fsub", "fmul", "fdiv")}
    for name in ("minnum", "maxnum"):
        declaration = f"declare {kind} @llvm.{name}.{SHORT[kind]}({kind}, {kind})"
        operations[name] = f"{declaration}\n%r = call {kind} @llvm.{name}.{SHORT[kind]}({kind} %x, {kind} %y)"
    for name in ("sqrt", "floor", "ceil", "trunc", "rint", "fabs"):
        declaration = f"declare {kind} @llvm.{name}.{SHORT[kind]}({kind})"
        operations[name] = f"{declaration}\n%r = call {kind} @llvm.{name}.{SHORT[kind]}({kind} %x)"
    found = elementwise(target, kind, kind, operations, left, right)
    expected = {
        "fadd": left + right, "fsub": left - right, "fmul": left * right, "fdiv": left / right, "fabs": np.abs(left),
        "minnum": np.fmin(left, right), "maxnum": np.fmax(left, right), "sqrt": np.sqrt(left), "floor": np.floor(left),
        "ceil": np.ceil(left), "trunc": np.trunc(left), "rint": np.rint(left),
    }  # fmt: skip
    for name in operations:
        np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.parametrize("kind", ["half", "float", "double"])
def test_comparisons_of_floats(target: str, kind: str) -> None:
    left, right = real_numbers(kind)
    ordered = {"oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal, "olt": np.less, "ole": np.less_equal}
    names = [*ordered, "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno"]
    found = elementwise(
        target,
        kind,
        "i32",
        {name: f"%s = fcmp {name} {kind} %x, %y\n%r = zext i1 %s to i32" for name in names},
        left,
        right,
    )
    no_number = np.isnan(left) | np.isnan(right)
    expected = {name: compare(left, right) for name, compare in ordered.items()}
    expected |= {"one": ~no_number & (left != right), "ord": ~no_number, "uno": no_number, "une": left != right}
    expected |= {f"u{name[1:]}": expected[name] | no_number for name in ordered}
    for name in names:
        np.testing.assert_array_equal(found[name], expected[name], name)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kind", ["float", "double"])
def test_fractions_and_exponents(target: str, kind: str) -> None:
    left, right = real_numbers(kind)
    left = np.where(np.isfinite(left), left, left.dtype.type(1))
    short = SHORT[kind]
    pair = f"{{ {kind}, i32 }}"
    declaration = f"declare {pair} @llvm.frexp.{short}.i32({kind})"
    call = f"{declaration}\n%s = call {pair} @llvm.frexp.{short}.i32({kind} %x)"
    scaled = (
        f"declare {kind} @llvm.ldexp.{short}.i32({kind}, i32)\n%r = call {kind} @llvm.ldexp.{short}.i32({kind} %x, i32"
    )
    operations = {"fraction": f"{call}\n%r = extractvalue {pair} %s, 0"}
    operations |= {f"ldexp {power}": f"{scaled} {power})" for power in (3, -140, 1500)}
    found = elementwise(target, kind, kind, operations, left, right)
    np.testing.assert_array_equal(found["fraction"], np.frexp(left)[0])
    for power in (3, -140, 1500):
        np.testing.assert_array_equal(found[f"ldexp {power}"], np.ldexp(left, power))
    powers = elementwise(target, kind, "i32", {"power": f"{call}\n%r = extractvalue {pair} %s, 1"}, left, right)
    np.testing.assert_array_equal(powers["power"], np.frexp(left)[1])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_conversions(target: str) -> None:
    left, right = real_numbers("float")
    to_whole = {
        name: f"declare i32 @llvm.{name}.sat.i32.f32(float)\n%r = call i32 @llvm.{name}.sat.i32.f32(float %x)"
        for name in ("fptosi", "fptoui")
    }
    found = elementwise(target, "float", "i32", to_whole, left, right)
    clean = np.nan_to_num(left.astype(np.float64), nan=0, posinf=1e30, neginf=-1e30)
    np.testing.assert_array_equal(found["fptosi"], np.clip(np.trunc(clean), -(2**31), 2**31 - 1).astype(np.int32))
    np.testing.assert_array_equal(
        found["fptoui"].view(np.uint32), np.clip(np.trunc(clean), 0, 2**32 - 1).astype(np.uint32)
    )
    near = {"there and back": "%s = fptrunc float %x to half\n%r = fpext half %s to float"}
    np.testing.assert_array_equal(
        elementwise(target, "float", "float", near, left, right)["there and back"],
        left.astype(np.float16).astype(np.float32),
    )
    wide = {"there and back": "%s = fptrunc double %x to float\n%r = fpext float %s to double"}
    one, other = real_numbers("double")
    np.testing.assert_array_equal(
        elementwise(target, "double", "double", wide, one, other)["there and back"],
        one.astype(np.float32).astype(np.float64),
    )
    one, other = whole_numbers("i64")
    numbers = {"signed": "%r = sitofp i64 %x to double", "unsigned": "%r = uitofp i64 %x to double"}
    found = elementwise(target, "i64", "double", numbers, one, other)
    np.testing.assert_array_equal(found["signed"], one.astype(np.float64))
    np.testing.assert_array_equal(found["unsigned"], one.view(np.uint64).astype(np.float64))


LDS = "@buffer = internal addrspace(3) global [256 x i32] poison, align 16\ndeclare void @llvm.amdgcn.s.barrier()\n"


def test_shared_memory_and_barriers(target: str) -> None:
    """Threads turn their block round: what one wave writes another one reads."""
    body = """
  %pa = getelementptr i32, ptr addrspace(1) %a, i64 %i
  %v = load i32, ptr addrspace(1) %pa
  %pl = getelementptr [256 x i32], ptr addrspace(3) @buffer, i32 0, i32 %lane
  store i32 %v, ptr addrspace(3) %pl
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
  %other = sub i32 255, %lane
  %pr = getelementptr [256 x i32], ptr addrspace(3) @buffer, i32 0, i32 %other
  %r = load i32, ptr addrspace(3) %pr
  %po = getelementptr i32, ptr addrspace(1) %o, i64 %i
  store i32 %r, ptr addrspace(1) %po"""
    kernel = machine(target, "ptr addrspace(1) %a, ptr addrspace(1) %o", body, LDS, 256)
    values = np.arange(1024, dtype=np.int32)
    out = np.zeros_like(values)
    run(kernel, [values, out], 4, 256)
    np.testing.assert_array_equal(out, values.reshape(4, 256)[:, ::-1].ravel())


@pytest.mark.parametrize("space", [1, 3])
def test_atomic_operations(target: str, space: int) -> None:
    names = ("add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "xchg", "uinc_wrap", "udec_wrap")
    body = []
    for number, name in enumerate(names):
        place, both = ("ptr addrspace(3) @buffer", True) if space == 3 else ("ptr addrspace(1) %a", False)
        body.append(f"  %p{number} = getelementptr i32, {place}, i32 {number}")
        if both:
            body.append(f"  %g{number} = getelementptr i32, ptr addrspace(1) %a, i32 {number}")
            body.append(f"  %w{number} = load i32, ptr addrspace(1) %g{number}")
            body.append(f"  store i32 %w{number}, ptr addrspace(3) %p{number}")
        body.append(f"  %o{number} = atomicrmw {name} ptr addrspace({space}) %p{number}, i32 %index monotonic")
        body.append(f"  %q{number} = getelementptr i32, ptr addrspace(1) %o, i64 {number}")
        body.append(f"  store i32 %o{number}, ptr addrspace(1) %q{number}")
        if both:
            body.append(f"  %z{number} = load i32, ptr addrspace(3) %p{number}")
            body.append(f"  store i32 %z{number}, ptr addrspace(1) %g{number}")
    kernel = machine(target, "ptr addrspace(1) %a, ptr addrspace(1) %o", "\n".join(body), LDS if space == 3 else "")
    for start in (0, 5, -9):
        values, out = np.full(len(names), start, np.int32), np.zeros(len(names), np.int32)
        run(kernel, [values, out], 1, 1)
        unsigned = start & 0xFFFFFFFF
        index = 0
        expected = [start, start, start & index, start, start, max(start, index), min(start, index)]
        expected += [max(unsigned, index), min(unsigned, index), index, 0 if unsigned >= index else unsigned + 1]
        expected += [index if unsigned == 0 or unsigned > index else unsigned - 1]
        np.testing.assert_array_equal(out, start)
        np.testing.assert_array_equal(values.view(np.uint32), [number & 0xFFFFFFFF for number in expected])


def test_lanes_that_read_each_other(target: str) -> None:
    wave = 64 if target == "gfx942" else 32
    body = """
  %pa = getelementptr i32, ptr addrspace(1) %a, i64 %i
  %v = load i32, ptr addrspace(1) %pa
  %n = add i32 %lane, 5
  %b = shl i32 %n, 2
  %r0 = call i32 @llvm.amdgcn.ds.bpermute(i32 %b, i32 %v)
  %r1 = call i32 @llvm.amdgcn.readlane.i32(i32 %v, i32 7)
  %r2 = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %v)
  %r3 = call i32 @llvm.amdgcn.update.dpp.i32(i32 -1, i32 %v, i32 273, i32 15, i32 15, i1 false)
  %r4 = call i32 @llvm.amdgcn.update.dpp.i32(i32 -1, i32 %v, i32 27, i32 15, i32 15, i1 false)
  %r5 = call i32 @llvm.amdgcn.ds.swizzle(i32 %v, i32 1055)
  %r6 = call i32 @llvm.amdgcn.update.dpp.i32(i32 -1, i32 %v, i32 320, i32 15, i32 15, i1 false)
"""
    for number in range(7):
        body += f"  %k{number} = add i64 %i, {number * wave}\n"
        body += f"  %q{number} = getelementptr i32, ptr addrspace(1) %o, i64 %k{number}\n"
        body += f"  store i32 %r{number}, ptr addrspace(1) %q{number}\n"
    declarations = """declare i32 @llvm.amdgcn.ds.bpermute(i32, i32)
declare i32 @llvm.amdgcn.readlane.i32(i32, i32)
declare i32 @llvm.amdgcn.readfirstlane.i32(i32)
declare i32 @llvm.amdgcn.ds.swizzle(i32, i32)
declare i32 @llvm.amdgcn.update.dpp.i32(i32, i32, i32, i32, i32, i1)"""
    kernel = machine(target, "ptr addrspace(1) %a, ptr addrspace(1) %o", body, declarations)
    values = np.random.default_rng(3).integers(0, 1000, wave).astype(np.int32)
    out = np.zeros((7, wave), np.int32)
    run(kernel, [values, out], 1, wave)
    lanes = np.arange(wave)
    np.testing.assert_array_equal(out[0], values[(lanes + 5) % wave])
    np.testing.assert_array_equal(out[1], values[7])
    np.testing.assert_array_equal(out[2], values[0])
    np.testing.assert_array_equal(out[3], np.where(lanes % 16, values[lanes - 1], -1))
    np.testing.assert_array_equal(out[4], values[lanes ^ 3])
    np.testing.assert_array_equal(out[5], values[lanes ^ 1])
    np.testing.assert_array_equal(out[6], values[lanes ^ 15])


def test_loops_and_calls(target: str) -> None:
    """Lanes leave a loop one by one; a function that calls itself keeps its numbers in private memory."""
    declarations = """define i32 @fib(i32 %n) noinline {
  %c = icmp ult i32 %n, 2
  br i1 %c, label %end, label %more
more:
  %a = sub i32 %n, 1
  %b = sub i32 %n, 2
  %x = call i32 @fib(i32 %a)
  %y = call i32 @fib(i32 %b)
  %z = add i32 %x, %y
  ret i32 %z
end:
  ret i32 %n
}"""
    body = """
  br label %head
head:
  %n = phi i32 [ %index, %0 ], [ %n1, %head ]
  %s = phi i32 [ 0, %0 ], [ %s1, %head ]
  %s1 = add i32 %s, %n
  %n1 = sub i32 %n, 1
  %d = icmp sgt i32 %n1, 0
  br i1 %d, label %head, label %after
after:
  %small = urem i32 %index, 9
  %f = call i32 @fib(i32 %small)
  %t = add i32 %f, %s1
  %po = getelementptr i32, ptr addrspace(1) %o, i64 %i
  store i32 %t, ptr addrspace(1) %po"""
    kernel = machine(target, "ptr addrspace(1) %o", body, declarations)
    out = np.zeros(128, np.int32)
    run(kernel, [out], 2)
    fib = [0, 1, 1, 2, 3, 5, 8, 13, 21]
    np.testing.assert_array_equal(out, [n * (n + 1) // 2 + fib[n % 9] for n in range(128)])


def test_blocks_that_wait_for_later_ones(target: str) -> None:
    body = """
  %u = atomicrmw add ptr addrspace(1) %a, i32 1 syncscope("agent") acq_rel
  br label %wait
wait:
  %v = load atomic i32, ptr addrspace(1) %a syncscope("agent") acquire, align 4
  %d = icmp eq i32 %v, 6
  br i1 %d, label %done, label %wait
done:"""
    kernel = machine(target, "ptr addrspace(1) %a", body)
    for cooperative in (False, True):
        counter = np.zeros(1, np.int32)
        run(kernel, [counter], 6, 1, cooperative=cooperative)
        assert counter[0] == 6


STORE = "  %p = getelementptr i32, ptr addrspace(1) %o, i64 %i\n  store i32 1, ptr addrspace(1) %p"


def test_stores_past_the_end_are_faults(target: str) -> None:
    kernel = machine(target, "ptr addrspace(1) %o", STORE)
    out = np.zeros(64, np.int32)
    run(kernel, [out])
    assert out.all()
    short = out[:63]
    with pytest.raises(
        MemoryFault, match=rf"kernel: block \(0, 0, 0\), wave [01], at kernel\+.*{short.ctypes.data + short.nbytes:#x}"
    ):
        run(kernel, [short])


def test_shared_memory_has_an_end(target: str) -> None:
    body = """
  %p = getelementptr i32, ptr addrspace(3) @buffer, i32 %index
  store volatile i32 1, ptr addrspace(3) %p"""
    kernel = machine(target, "ptr addrspace(1) %o", body, LDS)
    run(kernel, [np.zeros(1, np.int32)], 4)
    with pytest.raises(MemoryFault, match=r"block \(4, 0, 0\)"):
        run(kernel, [np.zeros(1, np.int32)], 5)


def test_traps_are_faults(target: str) -> None:
    kernel = machine(target, "ptr addrspace(1) %o", "  call void @llvm.trap()", "declare void @llvm.trap()")
    with pytest.raises(TrapFault, match="kernel"):
        run(kernel, [np.zeros(1, np.int32)])


def test_a_trap_for_a_debugger_is_gone_past(target: str) -> None:
    body = "  call void @llvm.debugtrap()\n  store i32 7, ptr addrspace(1) %o"
    kernel = machine(target, "ptr addrspace(1) %o", body, "declare void @llvm.debugtrap()")
    run(kernel, [values := np.zeros(1, np.int32)])
    assert values.tolist() == [7]


def test_unknown_instructions_are_named(target: str) -> None:
    body = """
  %l = load <4 x i32>, ptr addrspace(1) %o
  %v = call float @llvm.amdgcn.raw.buffer.load.f32(<4 x i32> %l, i32 0, i32 0, i32 0)
  store float %v, ptr addrspace(1) %o"""
    declaration = "declare float @llvm.amdgcn.raw.buffer.load.f32(<4 x i32>, i32, i32, i32)"
    kernel = machine(target, "ptr addrspace(1) %o", body, declaration)
    with pytest.raises(UnknownInstruction, match="(?i)buffer|encoding"):
        run(kernel, [np.zeros(4, np.int32)])


@pytest.mark.parametrize("short", ["fp8", "bf8"])
def test_floats_of_8_bits(target: str, short: str) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes, for small floats in NumPy")
    if target == "gfx1100":
        pytest.skip("gfx1100 has no instructions for floats of 8 bits")
    name = {"fp8": "float8_e4m3", "bf8": "float8_e5m2"}[short]
    name += "fnuz" if target == "gfx942" else "fn" * (short == "fp8")
    kind = getattr(ml_dtypes, name)
    everything = np.arange(COUNT, dtype=np.uint8).view(kind)
    exact = everything.astype(np.float32)
    finite = np.sort(exact[np.isfinite(exact)])
    middles = (finite[1:] + finite[:-1]) / 2
    left = np.resize(np.concatenate([middles, [np.inf, -np.inf, np.nan, 1e6, -0.0, 1e-45]]), COUNT).astype(np.float32)
    right = np.resize(np.nextafter(middles, np.float32(np.inf)), COUNT).astype(np.float32)
    narrow, widen = f"llvm.amdgcn.cvt.pk.{short}.f32", f"llvm.amdgcn.cvt.f32.{short}"
    declared = f"declare i32 @{narrow}(float, float, i32, i1)"
    packed = elementwise(target, "float", "i32", {
        "low": f"{declared}\n%r = call i32 @{narrow}(float %x, float %y, i32 0, i1 false)",
        "both": f"{declared}\n%s = call i32 @{narrow}(float %x, float %y, i32 0, i1 false)\n"
                f"%r = call i32 @{narrow}(float %y, float %x, i32 %s, i1 true)",
    }, left, right)  # fmt: skip
    for found, order in ((packed["low"], [left, right]), (packed["both"], [left, right, right, left])):
        wanted = np.stack(order, 1).astype(kind)
        bytes_ = found.view(np.uint8).reshape(COUNT, 4)[:, : len(order)].copy()
        nan = np.isnan(wanted.astype(np.float32))
        np.testing.assert_array_equal(np.isnan(bytes_.view(kind).astype(np.float32)), nan)
        np.testing.assert_array_equal(bytes_[~nan], wanted.view(np.uint8)[~nan])
    words = np.random.default_rng(3).permuted(np.tile(np.arange(COUNT, dtype=np.uint8), (4, 1)), axis=1).T.copy()
    calls = {
        str(byte): f"declare float @{widen}(i32, i32)\n%s = call float @{widen}(i32 %x, i32 {byte})\n"
        "%r = bitcast float %s to i32"
        for byte in range(4)
    }
    found = elementwise(target, "i32", "i32", calls, words.view(np.int32)[:, 0], np.zeros(COUNT, np.int32))
    for byte in range(4):
        np.testing.assert_array_equal(found[str(byte)].view(np.float32), words[:, byte].view(kind).astype(np.float32))
