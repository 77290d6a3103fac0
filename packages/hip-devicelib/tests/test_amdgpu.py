import threading

import pytest
from devicelib_samples import SAXPY, kernel_around, run_python

import hip_devicelib as hip
from hip_devicelib import TARGETS, InvalidIRError, UnknownTargetError, UnsupportedError
from hip_devicelib.amdgpu import TRIPLE


def usable_targets() -> list[str]:
    import llvmlite.binding as llvm

    return [target.name for target in TARGETS.values() if target.since_llvm <= llvm.llvm_version_info[0]]


@pytest.mark.parametrize("name", usable_targets())
@pytest.mark.sample(8)
def test_every_target_gets_its_own_code(name: str) -> None:
    target = TARGETS[name]
    bitcode = hip.optimise(SAXPY, name)
    assert hip.optimise(SAXPY, name) == bitcode
    image = hip.object_code(bitcode, name)
    assert hip.object_code(bitcode, name) == image
    assert hip.read_target(image) == name
    kernels = {kernel.name: kernel for kernel in hip.read_kernels(image)}
    assert set(kernels) == {"saxpy", "small"}
    assert {kernel.wave_size for kernel in kernels.values()} == {target.wave_size}
    assert (kernels["saxpy"].shared_bytes, kernels["small"].shared_bytes) == (256, 0)
    assert (kernels["saxpy"].max_block_threads, kernels["small"].max_block_threads) == (1024, 256)
    text = hip.assembly(bitcode, name)
    assert ".amdhsa_kernel saxpy" in text
    assert f'.amdgcn_target "{TRIPLE}--{name}"' in text
    assert hip.assembly(bitcode, name) == text


@pytest.mark.parametrize("name", ["gfx90a:xnack+", "gfx90a:sramecc-:xnack-", "gfx942:xnack-", "gfx9-4-generic:xnack+"])
def test_features_reach_the_code(name: str) -> None:
    assert hip.read_target(hip.object_code(hip.optimise(SAXPY, name), name)) == name


def test_wave_size_reaches_the_code() -> None:
    target = hip.parse_target("gfx1100", wave_size=64)
    kernel, _ = hip.read_kernels(hip.object_code(hip.optimise(SAXPY, target), target))
    assert kernel.wave_size == 64


def test_only_what_kernels_need_is_left() -> None:
    text = hip.llvm_text(hip.optimise(SAXPY, "gfx90a", level=0))
    assert "nobody_calls_this" not in text
    assert "protected amdgpu_kernel void @saxpy" in text
    assert '!"amdhsa_code_object_version", i32 500' in text
    assert hip.data_layout("gfx90a") in text
    assert TRIPLE in text


def test_keep_leaves_a_symbol_visible() -> None:
    source = SAXPY + "@counter = addrspace(1) global i32 0\n@other = addrspace(1) global i32 0\n"
    text = hip.llvm_text(hip.optimise(source, "gfx90a", keep=["counter"]))
    assert "@counter = " in text
    assert "@other" not in text
    with pytest.raises(InvalidIRError, match="keep: no module defines or declares nothing_like_it"):
        hip.optimise(source, "gfx90a", keep=["nothing_like_it"])


def test_modules_and_libraries_are_linked() -> None:
    caller = kernel_around(
        "%x = call double @helper(double %d)\n store double %x, ptr addrspace(1) %p",
        before="declare double @helper(double)",
    )
    library = (
        '@llvm.compiler.used = appending global [1 x ptr] [ptr @unneeded], section "llvm.metadata"\n'
        "define linkonce_odr hidden double @helper(double %x) { %y = fadd double %x, 3.0\n ret double %y }\n"
        "define double @unneeded(double %x) { ret double %x }\n"
        "define amdgpu_kernel void @library_kernel() { ret void }\n"
    )
    assert hip.undefined_symbols(hip.optimise(caller, "gfx90a")) == ("helper",)
    for form in (library, hip.optimise(library, "gfx90a", keep=["helper", "unneeded", "library_kernel"])):
        bitcode = hip.optimise(caller, "gfx90a", libraries=[form])
        assert hip.undefined_symbols(bitcode) == ()
        text = hip.llvm_text(bitcode)
        assert "fadd double" in text
        assert not any(name in text for name in ("unneeded", "library_kernel", "llvm.compiler.used", "@helper"))
    both = hip.optimise([caller, SAXPY], "gfx90a", libraries=[library])
    assert {kernel.name for kernel in hip.read_kernels(hip.object_code(both, "gfx90a"))} == {"k", "saxpy", "small"}


def test_an_undefined_function_is_left_for_the_linker() -> None:
    source = kernel_around(
        "%x = call double @__ocml_sin_f64(double %d)\n store double %x, ptr addrspace(1) %p",
        before="declare double @__ocml_sin_f64(double)\n@dynamic = external addrspace(3) global [0 x i8]",
    )
    bitcode = hip.optimise(source, "gfx1100")
    assert hip.undefined_symbols(bitcode) == ("__ocml_sin_f64",)
    assert b"__ocml_sin_f64\0" in hip.object_code(bitcode, "gfx1100")


def test_earlier_work_does_not_change_the_bytes() -> None:
    source = "%pair = type { i32, float }\n" + kernel_around(
        "%g = getelementptr %pair, ptr addrspace(1) %p, i32 %i, i32 1\n store float 1.0, ptr addrspace(1) %g"
    )
    first = hip.optimise(source, "gfx942", level=0)
    hip.optimise(source.replace("{ i32, float }", "{ i64, float }"), "gfx942", level=0)
    assert hip.optimise(source, "gfx942", level=0) == first


def test_many_threads_and_targets_give_the_bytes_of_one() -> None:
    names = ["gfx90a", "gfx1100", "gfx950", "gfx12-generic"]
    expected = {name: hip.object_code(hip.optimise(SAXPY, name), name) for name in names}
    found: list[tuple[str, bytes]] = []

    def work(name: str) -> None:
        found.append((name, hip.object_code(hip.optimise(SAXPY, name), name)))

    threads = [threading.Thread(target=work, args=(name,)) for name in names * 4]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 16
    assert all(image == expected[name] for name, image in found)


@pytest.mark.parametrize("function", [hip.data_layout, lambda name: hip.optimise(SAXPY, name)])
def test_an_unknown_target_never_reaches_llvm(function: object, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UnknownTargetError, match="did you mean"):
        function("gfx90b")  # type: ignore[operator]
    assert capfd.readouterr().err == ""


def test_a_target_newer_than_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding as llvm

    target = hip.parse_target("gfx90a")
    object.__setattr__(target, "since_llvm", 99)
    with pytest.raises(UnsupportedError, match=f"needs LLVM 99; llvmlite has LLVM {llvm.llvm_version_info[0]}"):
        hip.optimise(SAXPY, target)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("define void @k() {", "module 0 does not parse"),
        ("", "no kernel"),
        ("define void @f() { ret void }", "no kernel"),
        (b"", "does not parse"),
        (b"BC\xc0\xde rubbish", "does not parse"),
        (3, "must be LLVM IR text"),
        ([], "at least one module"),
        ([SAXPY, SAXPY], "do not link: .*multiply defined"),
        ('target triple = "x86_64-linux"\n' + SAXPY, "is for 'x86_64-linux'"),
        (SAXPY.replace("define amdgpu_kernel", "define internal amdgpu_kernel"), "internal linkage"),
        (SAXPY.replace(" #0 {", ' "target-cpu"="gfx906" {'), "'small' was compiled for gfx906, not for gfx90a"),
        (kernel_around("%x = alloca i32\n store volatile i32 1, ptr %x"), "alloca"),
        (kernel_around("%x = add i32 %y, 1\n %y = add i32 %x, 1"), "does not verify"),
    ],
)
def test_modules_that_are_wrong(source: object, message: str) -> None:
    with pytest.raises(InvalidIRError, match=message):
        hip.object_code(hip.optimise(source, "gfx90a"), "gfx90a")  # type: ignore[arg-type]


def test_a_module_flag_that_is_too_old_for_a_generic_target() -> None:
    flag = '\n!llvm.module.flags = !{!0}\n!0 = !{i32 1, !"amdhsa_code_object_version", i32 500}\n'
    assert hip.optimise(SAXPY + flag, "gfx1100")
    with pytest.raises(InvalidIRError, match="is 500; gfx11-generic needs 600"):
        hip.optimise(SAXPY + flag, "gfx11-generic")


@pytest.mark.parametrize("level", [-1, 4, "3", None])
def test_levels_that_do_not_exist(level: object) -> None:
    with pytest.raises(ValueError, match="level="):
        hip.optimise(SAXPY, "gfx90a", level=level)  # type: ignore[arg-type]


def test_bitcode_for_something_else_is_refused() -> None:
    host = hip.optimise(SAXPY, "gfx90a")
    assert hip.object_code(host, "gfx90a")
    import llvmlite.binding as llvm

    plain = llvm.parse_assembly(SAXPY).as_bitcode()
    for emit in (hip.object_code, hip.assembly):
        with pytest.raises(InvalidIRError, match="pass it through optimise"):
            emit(plain, "gfx90a")
    with pytest.raises(InvalidIRError, match="must be bytes"):
        hip.object_code(SAXPY, "gfx90a")  # type: ignore[arg-type]


def test_truncated_bitcode_is_refused() -> None:
    bitcode = hip.optimise(SAXPY, "gfx90a")
    for length in range(0, len(bitcode), 101):
        with pytest.raises(InvalidIRError):
            hip.object_code(bitcode[:length], "gfx90a")


def test_importing_the_package_is_cheap() -> None:
    done = run_python(
        "import sys, time, llvmlite.binding\n"
        "start = time.perf_counter(); import hip_devicelib; spent = time.perf_counter() - start\n"
        "assert 'clang' not in sys.modules and 'msgpack' not in sys.modules, 'too much was imported'\n"
        "import hip_devicelib.amdgpu\n"
        "assert 'clang' not in sys.modules\n"
        "print(spent)"
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 0.02


def test_every_public_name_is_there() -> None:
    for name in hip.__all__:
        assert getattr(hip, name) is not None
    assert set(hip.__all__) <= set(dir(hip))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        hip.nothing  # noqa: B018
