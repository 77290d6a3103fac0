"""What the CPU device's math is as bitcode: complete, the same each time, without calls, without fast-math flags."""

from __future__ import annotations

import hashlib

import llvmlite.binding as llvm
import pytest
from devicelib_samples import run_python

from hip_devicelib import NotFoundError
from hip_devicelib.cpu import FUNCTIONS, bitcode_of, math_library

NAMES = """sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh exp exp2 exp10 expm1 log log2 log10 log1p
pow cbrt rsqrt hypot erf erfc sincos""".split()
VARIANTS = "sin cos tan asin acos atan atan2 tanh exp exp2 log log2 log10 pow erf erfc".split()
BRANCHES = {"asin": 0, "acos": 0, "atan": 0, "tanh": 0, "erf": 0}
"""Of the variants, if it is not one."""


def parse(bitcode: bytes) -> llvm.ModuleRef:
    module = llvm.parse_bitcode(bitcode)
    module.verify()
    return module


def test_every_function_exists_for_both_formats() -> None:
    accurate = {f"__hip_cpu_{name}_f{bits}" for name in NAMES for bits in (32, 64)}
    assert set(FUNCTIONS) == accurate | {f"__hip_cpu_{name}_f64_ulp4" for name in VARIANTS}
    module = parse(math_library())
    assert {f.name for f in module.functions if not f.is_declaration} == set(FUNCTIONS)
    for symbol, entry in FUNCTIONS.items():
        function = module.get_function(symbol)
        assert [str(argument.type) for argument in function.arguments] == list(entry.parameters)
        assert str(function.global_value_type).split(" ")[0] == entry.result
        assert 0.5 <= entry.ulp <= (4 if entry.suffix else {"tan": 3, "erf": 4, "erfc": 4}.get(entry.name, 2))


def test_the_module_fits_any_machine() -> None:
    module = parse(math_library())
    assert module.triple in ("", "unknown-unknown-unknown")
    assert module.data_layout == ""


def test_a_part_holds_only_what_was_asked_for() -> None:
    wanted = ["__hip_cpu_exp_f32", "__hip_cpu_sin_f64", "__hip_cpu_exp_f32"]
    module = parse(bitcode_of(wanted))
    assert {f.name for f in module.functions if not f.is_declaration} == set(wanted)
    assert [v.name for v in module.global_variables] == ["__hip_cpu_two_over_pi"]
    assert not list(parse(bitcode_of(wanted[:1])).global_variables)


def test_linking_brings_only_what_is_called() -> None:
    module = llvm.parse_assembly(
        """
        declare double @__hip_cpu_sin_f64(double)
        define double @caller(double %x) {
            %y = call double @__hip_cpu_sin_f64(double %x)
            ret double %y
        }
        """
    )
    module.link_in(parse(math_library()))
    module.link_in(parse(bitcode_of(["__hip_cpu_sin_f64"])))
    module.verify()
    assert {f.name for f in module.functions if not f.is_declaration} == {"caller", "__hip_cpu_sin_f64"}


def test_functions_that_are_to_be_called_are_not_inlined() -> None:
    often, once, pointers = "__hip_cpu_sin_f64", "__hip_cpu_exp_f64", "__hip_cpu_sincos_f64"
    module = parse(bitcode_of([often, once, pointers], [often, pointers]))
    words = {name: b" ".join(module.get_function(name).attributes).split() for name in (often, once, pointers)}
    assert b"noinline" in words[often]
    assert b"alwaysinline" not in words[often]
    assert b"alwaysinline" in words[once]
    assert b"alwaysinline" in words[pointers]
    assert "noinline" not in str(parse(bitcode_of([often])))


def test_unknown_symbols_are_named() -> None:
    with pytest.raises(NotFoundError, match=r"'__hip_cpu_gamma_f32', 'sin'"):
        bitcode_of(["sin", "__hip_cpu_sin_f32", "__hip_cpu_gamma_f32"])


def test_bitcode_is_the_same_in_every_process() -> None:
    program = "import hashlib, hip_devicelib.cpu as c; print(hashlib.sha256(c.math_library()).hexdigest())"
    assert run_python(program).stdout.strip() == hashlib.sha256(math_library()).hexdigest()
    assert math_library() is math_library()


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("symbol", FUNCTIONS)
def test_functions_call_only_intrinsics_and_carry_no_fast_flags(symbol: str, fused: bool) -> None:
    function = parse(bitcode_of([symbol], fused=fused)).get_function(symbol)
    expected = {f"llvm.{n}" for n in (*(["fma"] if fused else []), "fabs", "sqrt", "rint", "copysign")}
    blocks = 0
    for block in function.blocks:
        blocks += 1
        for instruction in block.instructions:
            words = str(instruction).replace(",", " ").split()
            assert not {"fast", "nnan", "ninf", "nsz", "arcp", "contract", "afn", "reassoc"} & set(words)
            if instruction.opcode == "call":
                *_, callee = instruction.operands
                assert callee.name.rpartition(".")[0] in expected
    entry = FUNCTIONS[symbol]
    branches = symbol in {f"__hip_cpu_{n}_f64" for n in ("sin", "cos", "tan", "sincos")}
    assert blocks == 1 + 2 * (BRANCHES.get(entry.name, 1) if entry.suffix else branches)
