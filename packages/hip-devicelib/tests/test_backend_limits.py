"""What does not compile is an error, and what is said to compile does: in processes of their own, which may die."""

import itertools
from pathlib import Path

import llvmlite.binding as llvm
import pytest
from devicelib_samples import kernel_around, run_python

import hip_devicelib as hip
from hip_devicelib import TARGETS, InvalidIRError, UnsupportedError
from hip_devicelib.backend_limits import (
    AMDGCN_INTRINSICS,
    FLOAT_INTRINSICS,
    FLOAT_INTRINSICS_NOT_BFLOAT,
    FLOAT_INTRINSICS_NOT_DOUBLE,
    INTEGER_INTRINSICS,
    MISSING_INTRINSICS,
    PLAIN_INTRINSICS,
    check_module,
)
from hip_devicelib.isolated_codegen import emit_apart

FLOATS = {"f16": "half", "bf16": "bfloat", "f32": "float", "f64": "double"}

# Signatures: what is returned, then what is passed. T is the type that the intrinsic is overloaded on, N its suffix.
FLOAT_SIGNATURES = {
    "ldexp": ("T @llvm.ldexp.N.i32", "T %x, i32 %i"),
    "powi": ("T @llvm.powi.N.i32", "T %x, i32 %i"),
    "frexp": ("{T, i32} @llvm.frexp.N.i32", "T %x"),
    "sincos": ("{T, T} @llvm.sincos.N", "T %x"),
    "is.fpclass": ("i1 @llvm.is.fpclass.N", "T %x, i32 immarg 3"),
    "fptosi.sat": ("i32 @llvm.fptosi.sat.i32.N", "T %x"),
    "fptoui.sat": ("i64 @llvm.fptoui.sat.i64.N", "T %x"),
    **{name: (f"i64 @llvm.{name}.i64.N", "T %x") for name in FLOAT_INTRINSICS_NOT_BFLOAT},
    **{name: (f"T @llvm.{name}.N", "T %x, T %x, T %x") for name in ("fma", "fmuladd")},
    **{
        name: (f"T @llvm.{name}.N", "T %x, T %x")
        for name in "pow copysign minnum maxnum minimum maximum minimumnum maximumnum".split()
    },
}
INTEGER_SIGNATURES = {
    "abs": ("T @llvm.abs.N", "T %x, i1 immarg 0"),
    "ctlz": ("T @llvm.ctlz.N", "T %x, i1 immarg 0"),
    "cttz": ("T @llvm.cttz.N", "T %x, i1 immarg 0"),
    "bitreverse": ("T @llvm.bitreverse.N", "T %x"),
    "bswap": ("T @llvm.bswap.N", "T %x"),
    "ctpop": ("T @llvm.ctpop.N", "T %x"),
    "is.constant": ("i1 @llvm.is.constant.N", "T %x"),
    "fshl": ("T @llvm.fshl.N", "T %x, T %x, T %x"),
    "fshr": ("T @llvm.fshr.N", "T %x, T %x, T %x"),
    **{name: (f"{{T, i1}} @llvm.{name}.N", "T %x, T %x") for name in INTEGER_INTRINSICS if name.endswith(".overflow")},
}
PLAIN_CALLS = {
    "memcpy": "void @llvm.memcpy.p1.p1.i64(ptr addrspace(1) %p, ptr addrspace(1) %p, i64 %l, i1 immarg false)",
    "memmove": "void @llvm.memmove.p1.p1.i64(ptr addrspace(1) %p, ptr addrspace(1) %p, i64 %l, i1 immarg false)",
    "memset": "void @llvm.memset.p1.i64(ptr addrspace(1) %p, i8 0, i64 %l, i1 immarg false)",
    "assume": "void @llvm.assume(i1 true)",
    "invariant.start": "ptr @llvm.invariant.start.p1(i64 immarg 4, ptr addrspace(1) %p)",
    "trap": "void @llvm.trap()",
    "debugtrap": "void @llvm.debugtrap()",
    "readcyclecounter": "i64 @llvm.readcyclecounter()",
    "readsteadycounter": "i64 @llvm.readsteadycounter()",
    "ptrmask": "ptr addrspace(1) @llvm.ptrmask.p1.i64(ptr addrspace(1) %p, i64 %l)",
    "objectsize": "i64 @llvm.objectsize.i64.p1(ptr addrspace(1) %p, i1 immarg false, i1 immarg false, i1 immarg false)",
    "donothing": "void @llvm.donothing()",
    "sideeffect": "void @llvm.sideeffect()",
    "stacksave": "ptr addrspace(5) @llvm.stacksave.p5()",
    "stackrestore": "void @llvm.stackrestore.p5(ptr addrspace(5) %s)",
    "launder.invariant.group": "ptr addrspace(1) @llvm.launder.invariant.group.p1(ptr addrspace(1) %p)",
    "strip.invariant.group": "ptr addrspace(1) @llvm.strip.invariant.group.p1(ptr addrspace(1) %p)",
}
# These go away before code is made, or take metadata; optimised modules have them only around other instructions.
WITHOUT_CODE = frozenset(
    "dbg.declare dbg.value dbg.label lifetime.start lifetime.end invariant.end experimental.noalias.scope.decl".split()
)
INT, FLOAT, DOUBLE = "i32 %i", "float %f", "double %d"
DPP_CONTROL = "i32 immarg 1, i32 immarg 15, i32 immarg 15, i1 immarg false"
AMDGCN_CALLS = {
    **{name: f"i32 @llvm.amdgcn.{name}()" for name in AMDGCN_INTRINSICS if name.startswith(("workitem", "workgroup"))},
    **{
        name: f"ptr addrspace(4) @llvm.amdgcn.{name}()"
        for name in "dispatch.ptr implicitarg.ptr kernarg.segment.ptr queue.ptr".split()
    },
    **{name: f"i64 @llvm.amdgcn.{name}()" for name in ("dispatch.id",)},
    **{name: f"i32 @llvm.amdgcn.{name}()" for name in ("groupstaticsize", "wavefrontsize")},
    **{name: f"void @llvm.amdgcn.{name}()" for name in ("s.barrier", "wave.barrier")},
    "sched.barrier": "void @llvm.amdgcn.sched.barrier(i32 immarg 0)",
    "s.sleep": "void @llvm.amdgcn.s.sleep(i32 immarg 1)",
    "s.getreg": "i32 @llvm.amdgcn.s.getreg(i32 immarg 2177)",
    **{
        name: f"i32 @llvm.amdgcn.{name}({INT}, {INT})" for name in ("mbcnt.lo", "mbcnt.hi", "ds.bpermute", "ds.permute")
    },
    "ds.swizzle": f"i32 @llvm.amdgcn.ds.swizzle({INT}, i32 immarg 1)",
    "readlane": f"i32 @llvm.amdgcn.readlane.i32({INT}, {INT})",
    "readfirstlane": f"i32 @llvm.amdgcn.readfirstlane.i32({INT})",
    "writelane": f"i32 @llvm.amdgcn.writelane.i32({INT}, {INT}, {INT})",
    "ballot": "i64 @llvm.amdgcn.ballot.i64(i1 %c)",
    "icmp": f"i64 @llvm.amdgcn.icmp.i64.i32({INT}, {INT}, i32 immarg 32)",
    "fcmp": f"i64 @llvm.amdgcn.fcmp.i64.f32({FLOAT}, {FLOAT}, i32 immarg 1)",
    "update.dpp": f"i32 @llvm.amdgcn.update.dpp.i32({INT}, {INT}, {DPP_CONTROL})",
    "mov.dpp": f"i32 @llvm.amdgcn.mov.dpp.i32({INT}, {DPP_CONTROL})",
    **{name: f"float @llvm.amdgcn.{name}.f32({FLOAT})" for name in ("rcp", "rsq", "sqrt", "fract", "frexp.mant")},
    **{name: f"float @llvm.amdgcn.{name}.f32({FLOAT})" for name in ("sin", "cos", "log", "exp2")},
    "frexp.exp": f"i32 @llvm.amdgcn.frexp.exp.i32.f32({FLOAT})",
    "class": f"i1 @llvm.amdgcn.class.f32({FLOAT}, {INT})",
    "div.scale": f"{{float, i1}} @llvm.amdgcn.div.scale.f32({FLOAT}, {FLOAT}, i1 immarg true)",
    "div.fmas": f"double @llvm.amdgcn.div.fmas.f64({DOUBLE}, {DOUBLE}, {DOUBLE}, i1 %c)",
    "div.fixup": f"double @llvm.amdgcn.div.fixup.f64({DOUBLE}, {DOUBLE}, {DOUBLE})",
    "trig.preop": f"double @llvm.amdgcn.trig.preop.f64({DOUBLE}, {INT})",
    "fmed3": f"float @llvm.amdgcn.fmed3.f32({FLOAT}, {FLOAT}, {FLOAT})",
    "fmul.legacy": f"float @llvm.amdgcn.fmul.legacy({FLOAT}, {FLOAT})",
    **{name: f"i32 @llvm.amdgcn.{name}.i32({INT}, {INT}, {INT})" for name in ("sbfe", "ubfe")},
    **{
        name: f"i32 @llvm.amdgcn.{name}({INT}, {INT}, {INT})"
        for name in "sad.u8 msad.u8 sad.u16 lerp alignbyte perm".split()
    },
    "cvt.pkrtz": f"<2 x half> @llvm.amdgcn.cvt.pkrtz({FLOAT}, {FLOAT})",
    **{name: f"<2 x i16> @llvm.amdgcn.{name}({FLOAT}, {FLOAT})" for name in ("cvt.pknorm.i16", "cvt.pknorm.u16")},
    **{name: f"<2 x i16> @llvm.amdgcn.{name}({INT}, {INT})" for name in ("cvt.pk.i16", "cvt.pk.u16")},
    **{name: f"i32 @llvm.amdgcn.{name}.i32({INT}, {INT})" for name in ("mul.i24", "mul.u24")},
    "wqm.vote": "i1 @llvm.amdgcn.wqm.vote(i1 %c)",
    **{name: f"i1 @llvm.amdgcn.{name}(ptr %g)" for name in ("is.shared", "is.private")},
}

COMPILE = (
    "import sys, hip_devicelib as hip\n"
    "from hip_devicelib.isolated_codegen import emit\n"
    "source = open(sys.argv[1]).read()\n"
    "for name in sys.argv[2:]:\n"
    "    target = hip.parse_target(name)\n"
    "    image = emit(hip.optimise(source, target, level=0), target, 'object')\n"
    "    print(name, len(hip.read_kernels(image)))\n"
)


def call(text: str, number: int) -> str:
    """A kernel that makes the call *text* and keeps its result."""
    kind, _, rest = text.partition(" @llvm.")
    typed = rest.replace(" immarg", "")
    keep = f"%r = call {kind} @llvm.{typed}\n  store volatile {kind} %r, ptr addrspace(1) %p"
    return (
        f"define amdgpu_kernel void @k{number}(ptr addrspace(1) %p, ptr %g, i32 %i, i64 %l, float %f, double %d,"
        " half %h, bfloat %b, i8 %y, i16 %w, i1 %c, ptr addrspace(5) %s) {\n  "
        + (f"call void @llvm.{typed}" if kind == "void" else keep)
        + "\n  ret void\n}\n"
    )


def declaration(text: str) -> str:
    """What declares the function that the call *text* calls."""
    head, _, arguments = text.rpartition(" @")[2].partition("(")
    kinds = []
    for argument in arguments.removesuffix(")").split(", ") if arguments != ")" else []:
        words = [word for word in argument.split(" ") if not word.startswith("%")]
        kinds.append(" ".join(words[:-1] if words[-1] in ("0", "true", "false") or "immarg" in words else words))
    return f"declare {text.rpartition(' @')[0]} @{head}({', '.join(kinds)})\n"


def all_calls() -> list[str]:
    """Every call that is said to compile for every processor."""
    calls = [*PLAIN_CALLS.values(), *AMDGCN_CALLS.values()]
    floats = FLOAT_INTRINSICS | FLOAT_INTRINSICS_NOT_DOUBLE | FLOAT_INTRINSICS_NOT_BFLOAT
    values = {"half": "%h", "bfloat": "%b", "float": "%f", "double": "%d"}
    for name, (suffix, kind) in itertools.product(sorted(floats), FLOATS.items()):
        missing = (suffix == "f64" and name in FLOAT_INTRINSICS_NOT_DOUBLE) or (
            suffix == "bf16" and name in FLOAT_INTRINSICS_NOT_BFLOAT
        )
        if not missing:
            result, passed = FLOAT_SIGNATURES.get(name, (f"T @llvm.{name}.N", "T %x"))
            text = f"{result}({passed})".replace("N", suffix).replace("T", kind)
            calls.append(text.replace("%x", values[kind]))
    numbers = {"i1": "%c", "i8": "%y", "i16": "%w", "i32": "%i", "i64": "%l"}
    for name, (kind, value) in itertools.product(sorted(INTEGER_INTRINSICS), numbers.items()):
        if name == "bswap" and kind in ("i1", "i8"):
            continue
        result, passed = INTEGER_SIGNATURES.get(name, (f"T @llvm.{name}.N", "T %x, T %x"))
        calls.append(f"{result}({passed})".replace("N", kind).replace("T", kind).replace("%x", value))
    return calls


def test_tables_are_covered() -> None:
    assert set(PLAIN_CALLS) | WITHOUT_CODE == PLAIN_INTRINSICS
    assert set(AMDGCN_CALLS) == AMDGCN_INTRINSICS


def representatives(half: str) -> list[str]:
    """One processor for each group that LLVM treats alike; the rest of a group differs in what kernels do not see."""
    major = llvm.llvm_version_info[0]
    usable = [t for t in TARGETS.values() if t.since_llvm <= major and t.name.startswith(half)]
    return list({(t.generic or t.name, t.lds_bytes, t.name[:6]): t.name for t in usable}.values())


@pytest.mark.long
@pytest.mark.parametrize("half", ["gfx9", "gfx1"])
def test_every_intrinsic_said_to_work_compiles_for_every_processor(half: str, tmp_path: Path) -> None:
    calls = all_calls()
    source = "".join(sorted({declaration(text) for text in calls}))
    source += "".join(call(text, number) for number, text in enumerate(calls))
    path = tmp_path / "all.ll"
    path.write_text(source)
    names = representatives(half)
    done = run_python(COMPILE, str(path), *names)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [f"{name} {len(calls)}" for name in names]


def certain_and_doubtful(body: str, before: str, target: str) -> tuple[str, ...]:
    source = hip.optimise(kernel_around(body, before=before), target, level=0)
    return check_module(llvm.parse_bitcode(source, llvm.create_context()), hip.parse_target(target))


@pytest.mark.parametrize("name", [*sorted(MISSING_INTRINSICS - {"modf", "sincospi", "atan2"}), "sin", "exp", "log10"])
def test_an_intrinsic_without_an_instruction_is_an_error_that_names_ocml(name: str) -> None:
    source = kernel_around(
        f"%x = call double @llvm.{name}.f64(double %d)\n store double %x, ptr addrspace(1) %p",
        before=f"declare double @llvm.{name}.f64(double)",
    )
    bitcode = hip.optimise(source, "gfx90a")
    for emit in (hip.object_code, hip.assembly):
        with pytest.raises(
            UnsupportedError, match=rf"gfx90a has no instruction for llvm.{name}.f64.*__ocml_{name}_f64"
        ):
            emit(bitcode, "gfx90a")


def test_vectors_and_bfloat_are_looked_into() -> None:
    source = kernel_around(
        "%v = load <2 x double>, ptr addrspace(1) %p\n %x = call <2 x double> @llvm.exp.v2f64(<2 x double> %v)\n"
        " store <2 x double> %x, ptr addrspace(1) %p",
        before="declare <2 x double> @llvm.exp.v2f64(<2 x double>)",
    )
    with pytest.raises(UnsupportedError, match=r"llvm\.exp\.v2f64"):
        hip.object_code(hip.optimise(source, "gfx942"), "gfx942")


@pytest.mark.parametrize("name", ["tan", "sin", "pow"])
def test_the_backend_really_dies_of_them(name: str) -> None:
    """The reason for the table: without it, this is how the process of the caller would end."""
    arguments, kinds = ("double %d, double %d", "double, double") if name == "pow" else ("double %d", "double")
    source = kernel_around(
        f"%x = call double @llvm.{name}.f64({arguments})\n store double %x, ptr addrspace(1) %p",
        before=f"declare double @llvm.{name}.f64({kinds})",
    )
    target = hip.parse_target("gfx90a")
    with pytest.raises(
        UnsupportedError, match=r"cannot compile this for gfx90a .a test.: .*(Cannot select|no libcall)"
    ):
        emit_apart(hip.optimise(source, target), target, "object", ["a test"])


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("body", "before", "message"),
    [
        (
            "%g = getelementptr i8, ptr addrspace(3) @big, i32 %i\n store volatile i8 1, ptr addrspace(3) %g",
            "@big = internal addrspace(3) global [70000 x i8] poison",
            r"local memory \(70000\) exceeds limit \(65536\) in function 'k'",
        ),
        (
            "store volatile i32 1, ptr addrspace(3) @set",
            "@set = internal addrspace(3) global i32 5",
            "unsupported initializer",
        ),
        (
            "%x = call <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float 1.0, float 1.0, <4 x float> zeroinitializer,"
            " i32 0, i32 0, i32 0)\n store <4 x float> %x, ptr addrspace(1) %p",
            "declare <4 x float> @llvm.amdgcn.mfma.f32.4x4x1f32(float, float, <4 x float>, i32, i32, i32)",
            "Cannot select: intrinsic %llvm.amdgcn.mfma.f32.4x4x1f32",
        ),
        (
            '%x = atomicrmw add ptr addrspace(1) %p, i32 1 syncscope("block") seq_cst',
            "",
            "'block'.*synchronization scope",
        ),
        (
            "%x = load fp128, ptr addrspace(1) %p\n %y = fadd fp128 %x, %x\n store fp128 %y, ptr addrspace(1) %p",
            "",
            "library call|libcall",
        ),
        ("%x = call cc 1023 i32 @f(i32 %i)", "declare cc 1023 i32 @f(i32)", "unsupported calling convention"),
        ("%x = call swifttailcc i32 @f(i32 %i)", "declare swifttailcc i32 @f(i32)", "nsupported calling convention"),
        (
            "%x = load volatile i32, ptr addrspace(99) null\n store i32 %x, ptr addrspace(1) %p",
            "",
            r"address space 99\): .*Cannot select",
        ),
        (
            "%x = alloca { [300000 x i8] }, addrspace(5)\n %g = getelementptr i8, ptr addrspace(5) %x, i32 %i\n"
            " store volatile i8 1, ptr addrspace(5) %g",
            "",
            r"stack frame size \(\d+\) exceeds limit",
        ),
    ],
)
def test_what_the_backend_dies_of_is_an_error_with_its_message(body: str, before: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        hip.object_code(hip.optimise(kernel_around(body, before=before), "gfx1030"), "gfx1030")


def test_what_is_doubted_and_works_gives_the_same_bytes_from_the_other_process() -> None:
    source = kernel_around("%w = zext i32 %i to i128\n %x = mul i128 %w, %w\n store i128 %x, ptr addrspace(1) %p")
    bitcode = hip.optimise(source, "gfx1100")
    target = hip.parse_target("gfx1100", wave_size=64)
    assert check_module(llvm.parse_bitcode(bitcode, llvm.create_context()), target) == ("an integer of 128 bits",)
    image = hip.object_code(bitcode, target)
    assert image == hip.object_code(bitcode, target)
    assert hip.read_kernels(image)[0].wave_size == 64
    assert ".amdhsa_wavefront_size32 0" in hip.assembly(bitcode, target)


@pytest.mark.parametrize("kind", ["[40000 x i8]", "%pair", "[4 x %pair]"])
def test_much_private_memory_is_doubted(kind: str) -> None:
    body = f"%a = alloca {kind}, addrspace(5)\n store volatile i32 %i, ptr addrspace(5) %a"
    (reason,) = certain_and_doubtful(body, "%pair = type { i32, [3 x i64] }", "gfx90a")
    assert reason == "much private memory in 'k'"


@pytest.mark.parametrize(
    ("kind", "nbytes"),
    [
        ("[8589934592 x i8]", 1 << 33), ("[9223372036854775808 x i8]", 1 << 63), ("i8, i64 8589934592", 1 << 33),
        ("[1099511627776 x [1099511627776 x i64]]", 1 << 83), ("[70000 x half]", 140_000),
    ],
)  # fmt: skip
def test_more_private_memory_than_a_thread_has(kind: str, nbytes: int) -> None:
    """The backend reckons in 32 bits, and takes some of this for little."""
    body = f"%a = alloca {kind}, addrspace(5)\n store volatile i32 %i, ptr addrspace(5) %a"
    with pytest.raises(UnsupportedError, match=f"^{nbytes} bytes of private memory in 'k'; a thread on gfx90a has"):
        certain_and_doubtful(body, "", "gfx90a")


def test_a_plain_kernel_is_not_doubted() -> None:
    body = (
        "%a = alloca [8 x double], addrspace(5)\n %q = getelementptr [8 x double], ptr addrspace(5) %a, i32 0, i32 %i\n"
        " store volatile double %d, ptr addrspace(5) %q\n %r = frem double %d, 3.0\n"
        ' %o = atomicrmw fadd ptr addrspace(1) %p, double %r syncscope("agent-one-as") monotonic'
    )
    assert certain_and_doubtful(body, "", "gfx90a") == ()


def test_printf_is_refused_before_the_pipeline_ends_the_process() -> None:
    source = kernel_around(
        "%x = call i32 (ptr addrspace(1), ...) @printf(ptr addrspace(1) %p, i32 %i)",
        before="declare i32 @printf(ptr addrspace(1), ...)",
    )
    with pytest.raises(UnsupportedError, match="printf"):
        hip.optimise(source, "gfx90a")


def test_an_alloca_in_the_generic_address_space_is_refused_by_every_llvm() -> None:
    with pytest.raises(InvalidIRError, match="alloca"):
        hip.object_code(
            hip.optimise(kernel_around("%x = alloca i32\n store volatile i32 1, ptr %x"), "gfx90a", level=0), "gfx90a"
        )


def test_without_an_interpreter_the_other_process_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "")
    with pytest.raises(UnsupportedError, match=r"sys\.executable is empty"):
        emit_apart(b"", hip.parse_target("gfx90a"), "object", ["a test"])
