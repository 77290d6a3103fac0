"""``hip.asm``: assembly of AMD GPUs in kernels, and its body in Python on the CPU device."""

from unittest import mock

import numpy as np
import pytest
from numba.core.errors import LoweringError, TypingError

import numba_hip as hip
from hip_devicelib import NotFoundError, assemblers
from numba_hip import config
from numba_hip.caching import fingerprint
from numba_hip.errors import AssemblyError, DeviceFunctionError, SignatureError

TARGETS = ["gfx90a", "gfx942", "gfx1100", "gfx1201"]


@hip.asm("uint32(uint32, uint32, uint32)", "v_bfi_b32 $0, $1, $2, $3", "=v,v,v,v")
def choose(mask, first, second):
    """The bits of *first* where *mask* has them, and those of *second* elsewhere."""
    return (mask & first) | (~mask & second)


@hip.asm("Tuple((uint32, uint32))(uint32, uint32)", "v_mul_lo_u32 $0, $2, $3\nv_mul_hi_u32 $1, $2, $3", "=&v,=v,v,v")
def product(a, b):
    whole = np.uint64(a) * np.uint64(b)
    return np.uint32(whole), np.uint32(whole >> np.uint64(32))


@hip.asm("float64(float64, float64)", "v_max_f64 $0, $1, $2", "=v,v,v")
def larger(a, b):
    return max(a, b)


@hip.jit
def compute(x, y, out, tops):
    i = hip.grid(1)
    if i < x.size:
        out[0, i] = choose(mask=np.uint32(0xFF00FF), first=x[i], second=y[i])
        out[1, i], out[2, i] = product(x[i], y[i])
        tops[i] = larger(x[i], y[i])


SIGNATURE = "(uint32[::1], uint32[::1], uint32[:, ::1], float64[::1])"


def test_values():
    generator = np.random.default_rng(1)
    x, y = (generator.integers(0, 1 << 32, 100).astype(np.uint32) for _ in range(2))
    out, tops = np.zeros((3, 100), np.uint32), np.zeros(100)
    compute[2, 64](x, y, out, tops)
    mask, whole = np.uint32(0xFF00FF), x.astype(np.uint64) * y
    np.testing.assert_array_equal(out[0], (mask & x) | (~mask & y))
    np.testing.assert_array_equal(out[1], whole.astype(np.uint32))
    np.testing.assert_array_equal(out[2], whole >> np.uint64(32))
    np.testing.assert_array_equal(tops, np.maximum(x, y))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.sample(1)
def test_amd_gpus_run_the_text(target):
    text, _ = hip.compile(compute, SIGNATURE, target=target, output="asm")
    for instruction in ("v_bfi_b32 v", "v_mul_hi_u32 v", "v_max_f64 v"):
        assert instruction in text.replace("_e64", "")
    code, _ = hip.compile(compute, SIGNATURE, target=target, output="object")
    assert code.startswith(b"\x7fELF")


@hip.asm("int32(int32)", {"gfx9": "v_not_b32 $0, $1", "gfx942": "v_bfrev_b32 $0, $1"}, "=v,v")
def differs(a):
    return a ^ 0x5A5A


@hip.asm("void()", "s_nop 3", "", side_effects=True)
def pause():
    pass


@hip.asm("int32(int32)", "v_not_b32 $0, $1", "=v,v")
def unused(a):
    return ~a


@hip.jit
def by_target(x):
    i = hip.grid(1)
    unused(x[i])
    pause()
    x[i] = differs(x[i])


@pytest.mark.parametrize(
    ("target", "wanted"), [("gfx90a", "v_not_b32"), ("gfx942", "v_bfrev_b32"), ("gfx1100", "0x5a5a")]
)
@pytest.mark.sample(1)
def test_texts_are_chosen_by_the_target_and_kept_for_their_effects(target, wanted):
    text, _ = hip.compile(by_target, "(int32[::1],)", target=target, output="asm")
    assert "s_nop 3" in text
    assert [word for word in ("v_not_b32", "v_bfrev_b32", "0x5a5a") if word in text] == [wanted]


def kernel_of(function, signature="(int32[::1],)"):
    @hip.jit
    def kernel(x):
        x[0] = function(x[0])

    return lambda **options: hip.compile(kernel, signature, target="gfx942", **{"output": "object", **options})


@pytest.mark.parametrize(
    ("text", "constraints", "says"),
    [
        ("v_no_such_thing $0, $1", "=v,v", "'v_no_such_thing \\$0, \\$1'.*invalid instruction"),
        ("v_not_b32 $0", "=v,v", "too few operands"),
        ("v_not_b32 $0, $1", "=q,v", "constraints '=q,v' is not valid"),
        ("v_not_b32 $0, $1", "=v", "constraints '=v' is not valid"),
    ],
)
@pytest.mark.sample(2)
def test_what_the_assembler_refuses_is_told_at_the_call(text, constraints, says):
    wrong = hip.asm("int32(int32)", text, constraints)(lambda a: a)
    with pytest.raises(LoweringError, match=f"(?s){says}"):
        kernel_of(wrong)()


def test_without_an_assembler_the_error_says_what_to_install():
    assemblers.find_assembler.cache_clear()
    with mock.patch.object(assemblers, "find_assemblers", return_value=iter(())):
        other = hip.asm("int32(int32)", "v_not_b32 $0, $1 ; alone", "=v,v")(lambda a: ~a)
        text, _ = kernel_of(other)(output="asm")
        assert "v_not_b32" in text
        with pytest.raises(NotFoundError, match="which kernels with hip.asm need.*'pip install ziglang' is enough"):
            kernel_of(other)()
    assemblers.find_assembler.cache_clear()


def test_arguments_are_checked_and_converted():
    with pytest.raises(TypingError, match="unused: a is array\\(int32, 2d, C\\); this assembly takes int32"):
        hip.compile(by_target, "(int32[:, :, ::1],)", target="gfx942", output="asm")


@pytest.mark.parametrize(
    ("call", "error", "says"),
    [
        (
            lambda: hip.asm("int32(int32, int32)", "", "")(lambda a: a),
            AssemblyError,
            "signature has 2 parameters, <lambda> 1",
        ),
        (lambda: hip.asm("(int32,)", "", ""), AssemblyError, "it has a result, too"),
        (lambda: hip.asm(3, "", ""), SignatureError, "signature 3: it is of type int"),
        (lambda: hip.asm("int8(int32)", "", ""), AssemblyError, "signature has int8; assembly takes and gives"),
        (lambda: hip.asm("int32(int32[:])", "", ""), AssemblyError, "signature has array"),
        (lambda: hip.asm("Tuple((int32, int8))(int32)", "", ""), AssemblyError, "signature has int8"),
        (lambda: hip.asm("void(boolean)", "", ""), AssemblyError, "signature has bool"),
        (lambda: hip.asm("int32(int23)", "", ""), SignatureError, "there is no type int23"),
        (lambda: hip.asm("int32(int32)", 3, ""), AssemblyError, "text is 3; pass assembly"),
        (lambda: hip.asm("int32(int32)", {"gfx9": b"x"}, ""), AssemblyError, "text is {'gfx9': b'x'}"),
        (lambda: hip.asm("int32(int32)", "", ["=v"]), AssemblyError, r"constraints is \['=v'\]"),
        (lambda: hip.asm("int32(int32)", "", "")(lambda *, a: a), DeviceFunctionError, "keyword-only"),
    ],
)
def test_mistakes(call, error, says):
    with pytest.raises(error, match=says):
        call()


def test_the_simulator_runs_the_body():
    with config.simulator.scope(True):
        body = hip.asm("int32(int32)", "v_not_b32 $0, $1", "=v,v")(lambda a: a + 5)

        @hip.jit
        def kernel(x):
            x[hip.grid(1)] = body(x[hip.grid(1)])

        x = np.arange(4, dtype=np.int32)
        kernel[1, 4](x)
    np.testing.assert_array_equal(x, np.arange(5, 9))


def test_several_results_and_named_arguments_of_a_function_that_is_made_here():
    @hip.asm(
        "Tuple((int32, int32))(int32, int32)", {"gfx9": "v_add_u32 $0, $2, $3\nv_sub_u32 $1, $2, $3"}, "=&v,=v,v,v"
    )
    def sum_and_difference(a, b):
        return a + b, a - b

    @hip.jit
    def kernel(x):
        i = hip.grid(1)
        x[i], x[i + 70] = sum_and_difference(b=x[i], a=1000)

    x = np.arange(140, dtype=np.int32)
    kernel[1, 70](x)
    np.testing.assert_array_equal(x, np.concatenate([1000 + np.arange(70), 1000 - np.arange(70)]))
    text, _ = hip.compile(kernel, "(int32[::1],)", target="gfx942", output="asm")
    assert "v_sub_u32" in text


def test_a_default_is_no_argument():
    either = hip.asm("int32(int32, int32)", "v_add_u32 $0, $1, $2", "=v,v,v")(lambda a, b=1: a + b)
    with pytest.raises(TypingError, match="<lambda> takes 2 arguments; this call passes 1"):
        kernel_of(either)()


def test_text_that_may_exchange_values_between_lanes_stays_on_its_side_of_a_branch():
    first = hip.asm("int32(int32)", "v_readfirstlane_b32 $0, $1", "=s,v")(lambda a: a)

    @hip.jit
    def kernel(x):
        i = hip.grid(1)
        if x[i] > 3:
            x[i] = first(x[i]) + 7
        else:
            x[i] = first(x[i]) * 5

    text, _ = hip.compile(kernel, "(int32[::1],)", target="gfx942", output="asm")
    assert text.count("v_readfirstlane_b32") == 2


@pytest.mark.parametrize("side_effects", [True, False])
def test_calls_with_side_effects_are_neither_left_out_nor_merged(side_effects):
    invert = hip.asm("int32(int32)", "v_not_b32 $0, $1", "=v,v", side_effects=side_effects)(lambda a: ~a)

    @hip.jit
    def kernel(x):
        i = hip.grid(1)
        invert(i)
        x[i] = invert(x[i]) + invert(x[i])

    text, _ = hip.compile(kernel, "(int32[::1],)", target="gfx942", output="asm")
    assert (text.count("v_not_b32") == 3) is side_effects


def made(text, body=lambda a: ~a, constraints="=v,v", **options):
    return fingerprint._fingerprint_of(hip.asm("int32(int32)", text, constraints, **options)(body))


def test_kept_kernels_notice_another_text_and_another_body():
    assert made("v_not_b32 $0, $1") == made("v_not_b32 $0, $1")
    assert made("v_not_b32 $0, $1") != made("v_bfrev_b32 $0, $1")
    assert made({"gfx9": "v_not_b32 $0, $1"}) == made({"gfx9": "v_not_b32 $0, $1"})
    assert made({"gfx9": "v_not_b32 $0, $1"}) != made({"gfx11": "v_not_b32 $0, $1"})
    assert made("v_not_b32 $0, $1") != made("v_not_b32 $0, $1", lambda a: -a)
    assert made("v_not_b32 $0, $1") != made("v_not_b32 $0, $1", constraints="=v,s")
    assert made("v_not_b32 $0, $1") != made("v_not_b32 $0, $1", side_effects=True)
