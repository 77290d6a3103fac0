"""Functions of linked LLVM bitcode and LLVM IR, called from kernels."""

import gc

import llvmlite.binding as llvm
import numpy as np
import pytest
from numba import types
from numba.core.errors import NumbaError, NumbaWarning

import numba_hip as hip
from hip_runtime.errors import KernelFault
from numba_hip import config
from numba_hip.errors import LinkedCodeError, LinkedFileNotFoundError

TIMES_TWO = """
define i32 @times_two(ptr %out, i32 %x) {
  %y = mul i32 %x, 2
  store i32 %y, ptr %out
  ret i32 0
}
"""
ADD_C = """
define double @add_c(double %x, double %y) {
  %z = fadd double %x, %y
  ret double %z
}
"""
WITH_ITEM = """
declare i32 @spmd.thread_idx.x(ptr)
define i32 @where(ptr %item, ptr %out, i32 %x) {
  %i = call i32 @spmd.thread_idx.x(ptr %item)
  %y = add i32 %i, %x
  store i32 %y, ptr %out
  ret i32 0
}
"""
BOOLEANS = """
define zeroext i1 @negate(i1 zeroext %x) {
  %y = xor i1 %x, true
  ret i1 %y
}
"""


COUNTED = """
@counter = addrspace(1) global i32 5
@hidden = internal addrspace(1) global i32 6
define i32 @counted(ptr %out) {
  %y = load i32, ptr addrspace(1) @counter
  store i32 %y, ptr %out
  ret i32 0
}
"""


def bitcode(text):
    return bytes(llvm.parse_assembly(text).as_bitcode())


@pytest.fixture(params=["text", "bitcode", "file", "object"])
def make_link(request, tmp_path):
    def make(text):
        if request.param == "text":
            return hip.LinkedCode(text.encode(), "some.ll")
        if request.param == "object":
            return type("Linkable", (), {"data": text, "name": "some"})()
        path = tmp_path / f"{abs(hash(text))}.{'bc' if request.param == 'bitcode' else 'll'}"
        path.write_bytes(bitcode(text) if request.param == "bitcode" else text.encode())
        return str(path) if request.param == "bitcode" else path

    return make


def test_declared_with_what_defines_it(make_link):
    times_two = hip.declare_device("times_two", "int32(int32)", link=make_link(TIMES_TWO))

    @hip.jit
    def kernel(values):
        i = hip.grid(1)
        values[i] = times_two(values[i])

    values = np.arange(8, dtype=np.int32)
    kernel[2, 4](values)
    np.testing.assert_array_equal(values, 2 * np.arange(8))


def test_linked_by_the_kernel(make_link):
    times_two = hip.declare_device("times_two", types.int32(types.int32))
    add_c = hip.declare_device("add_c", "float64(float64, float64)", abi="c")

    @hip.jit(link=[make_link(TIMES_TWO), make_link(ADD_C)])
    def kernel(values):
        i = hip.grid(1)
        values[i] = add_c(times_two(i), 0.5)

    values = np.zeros(8)
    kernel[2, 4](values)
    np.testing.assert_array_equal(values, 2 * np.arange(8) + 0.5)


@pytest.mark.parametrize("cooperative", [False, True])
def test_declared_to_wait_for_the_grid(cooperative):
    code = hip.LinkedCode(TIMES_TWO.encode())
    times_two = hip.declare_device("times_two", "int32(int32)", code, use_cooperative=cooperative)

    @hip.jit(device=True)
    def four_times(x):
        return times_two(times_two(x))

    @hip.jit("void(int32[::1])")
    def kernel(values):
        i = hip.grid(1)
        values[i] = four_times(values[i])

    (made,) = kernel.overloads.values()
    assert made.cooperative == cooperative
    values = np.arange(8, dtype=np.int32)
    kernel[made.max_cooperative_grid_blocks(4), 4](hip.to_device(np.zeros(10**6, np.int32)))
    kernel[2, 4](values)
    np.testing.assert_array_equal(values, 4 * np.arange(8))


def test_linked_by_a_device_function():
    times_two = hip.declare_device("times_two", "int32(int32)")

    @hip.jit(device=True, link=hip.LinkedCode(TIMES_TWO.encode()))
    def four_times(x):
        return times_two(times_two(x))

    @hip.jit
    def kernel(values):
        values[0] = four_times(values[0])

    values = np.array([3])
    kernel[1, 1](values)
    assert values[0] == 12


@pytest.mark.cpu_device("what it runs names the work item in the calling convention of the CPU device")
def test_functions_that_take_the_work_item():
    where = hip.declare_device("where", "int32(int32)", link=hip.LinkedCode(WITH_ITEM.encode()))

    @hip.jit
    def kernel(values):
        values[hip.grid(1)] = where(100)

    values = np.zeros(8, np.int32)
    kernel[2, 4](values)
    assert values.tolist() == [100, 101, 102, 103] * 2


def test_code_that_names_the_processor_that_it_was_made_for():
    triple, layout = "amdgcn-amd-amdhsa", "e-p:64:64-p1:64:64-p5:32:32-A5-G1"
    text = f'target triple = "{triple}"\ndefine i32 @twice(i32 %x) #0 {{\n %y = add i32 %x, %x\n ret i32 %y\n}}\n'
    text += 'attributes #0 = { "target-cpu"="gfx942" "target-features"="+wavefrontsize64" }'
    bitcode = bytes(llvm.parse_assembly(text).as_bitcode())
    assert hip.LinkedCode(bitcode, "made.bc").parse(triple, layout).get_function("twice")


def test_pointers_and_arrays():
    code = """
    define i32 @fill(ptr %out, ptr %data, i64 %n) {
      %end = getelementptr float, ptr %data, i64 %n
      store float 7.0, ptr %data
      ret i32 0
    }
    """
    from numba.core.extending import intrinsic

    @intrinsic
    def address_of(typing_context, array):
        def lower(context, builder, signature, args):
            return context.make_array(array)(context, builder, args[0]).data

        return types.CPointer(array.dtype)(array), lower

    fill = hip.declare_device("fill", "void(CPointer(float32), int64)", link=hip.LinkedCode(code.encode()))

    @hip.jit
    def kernel(values):
        fill(address_of(values), values.size)

    values = np.zeros(4, np.float32)
    kernel[1, 1](values)
    assert values.tolist() == [7, 0, 0, 0]


def test_booleans_by_the_c_abi():
    negate = hip.declare_device("negate", "boolean(boolean)", link=hip.LinkedCode(BOOLEANS.encode()), abi="c")

    @hip.jit
    def kernel(values):
        i = hip.grid(1)
        values[i] = negate(values[i])

    values = np.array([True, False, True])
    kernel[1, 3](values)
    assert values.tolist() == [False, True, False]


def test_functions_of_the_c_math_library():
    lgamma = hip.declare_device("lgamma", "float64(float64)", abi="c")

    @hip.jit
    def kernel(values):
        values[0] = lgamma(values[0])

    values = np.array([5.0])
    kernel[1, 1](values)
    assert values[0] == pytest.approx(np.log(24))


def test_an_error_of_linked_code_stops_the_thread():
    code = "define i32 @fails(ptr %out, i32 %x) {\n  store i32 1, ptr %out\n  ret i32 %x\n}"
    fails = hip.declare_device("fails", "int32(int32)", link=hip.LinkedCode(code.encode()))

    @hip.jit(exceptions=True)
    def kernel(values):
        values[hip.grid(1)] = fails(3 if hip.grid(1) == 2 else 0)

    values = np.zeros(4, np.int32)
    with pytest.raises(KernelFault, match=r"error code 3 in block \(0, 0, 0\), thread \(2, 0, 0\)"):
        kernel[1, 4](values)
    assert (values == 0).all()


def refused(text, signature="int32(int32)", abi="numba", name="times_two", link=None):
    function = hip.declare_device(name, signature, link=hip.LinkedCode(text.encode(), "my.ll"), abi=abi)

    @hip.jit(link=link)
    def kernel(values):
        values[0] = function(1)

    values = np.zeros(1, np.int32)
    try:
        kernel[1, 1](values)
    finally:
        assert values[0] == 0


@pytest.mark.parametrize(
    ("signature", "abi", "says"),
    [
        ("float32(int32)", "c", r"my.ll defines 'times_two' as i32 \(ptr, i32\); declared as .* float \(i32\)"),
        ("int32(int32)", "c", r"it is i32 \(i32\)"),
        ("int32(float32)", "numba", r"it is i32 \(ptr, float\)"),
        ("int32(int64)", "numba", r"it is i32 \(ptr, i64\)"),
    ],
)
def test_declarations_that_are_not_what_is_defined(signature, abi, says):
    with pytest.raises(LinkedCodeError, match=says):
        refused(TIMES_TWO, signature, abi)


def test_what_nothing_defines():
    with pytest.raises(LinkedCodeError, match="no linked code defines 'three_times'; add the code that does to link="):
        refused(TIMES_TWO, name="three_times")
    with pytest.raises(LinkedCodeError, match="calls 'three_times_c', which neither linked code nor the .* library"):
        refused(TIMES_TWO, name="three_times_c", abi="c")


def kernel_that_calls(function):
    @hip.jit
    def kernel(x):
        x[0] = function(x[0])

    return kernel


CALLS_ANOTHER = """
declare i32 @unwritten(i32)
declare i32 @unused(i32)
define i32 @calls_another(i32 %x) {
  %y = call i32 @unwritten(i32 %x)
  ret i32 %y
}
"""


@pytest.mark.parametrize("output", ["llvm", "bitcode", "asm", "codeobject"])
@pytest.mark.parametrize("target", ["cpu", "gfx942", "gfx1100"])
@pytest.mark.sample(5)
def test_what_nothing_defines_is_an_error_in_all_outputs(target, output):
    lacking = hip.declare_device("unwritten_c", "int32(int32)", abi="c")
    calling = hip.declare_device("calls_another", "int32(int32)", abi="c", link=hip.LinkedCode(CALLS_ANOTHER.encode()))
    where = "the C math library" if target == "cpu" else f"the device library for {target}"
    for function, name in ((lacking, "unwritten_c"), (calling, "unwritten")):
        says = f"^kernel kernel calls '{name}', which neither linked code nor {where} defines"
        with pytest.raises(LinkedCodeError, match=says):
            hip.compile(kernel_that_calls(function), "(int32[::1],)", target=target, output=output)


def test_what_the_libraries_of_a_device_define_needs_no_code():
    for target, name in (("cpu", "lgamma"), ("gfx942", "lgamma"), ("gfx942", "__ocml_lgamma_f64")):
        lgamma = hip.declare_device(name, "float64(float64)", abi="c")
        text, _ = hip.compile(kernel_that_calls(lgamma), "(float64[::1],)", target=target, output="asm")
        assert name in text


def test_what_two_files_define():
    with pytest.raises(LinkedCodeError, match="both my.ll and other.ll define 'times_two'|both other.ll and my.ll"):
        refused(TIMES_TWO, link=hip.LinkedCode(TIMES_TWO.replace("2", "3").encode(), "other.ll"))


def test_the_same_code_twice_is_linked_once():
    times_two = hip.declare_device("times_two", "int32(int32)", link=hip.LinkedCode(TIMES_TWO.encode(), "one"))

    @hip.jit(link=hip.LinkedCode(TIMES_TWO.encode(), "two"))
    def kernel(values):
        values[0] = times_two(4)

    values = np.zeros(1)
    kernel[1, 1](values)
    assert values[0] == 8


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"no such language", "my.ll is neither LLVM bitcode nor LLVM IR"),
        (bitcode(TIMES_TWO)[:60], "my.ll is neither LLVM bitcode nor LLVM IR"),
        (b"\xff\xfe\x00", "my.ll is neither LLVM bitcode nor LLVM IR"),
        (b'target triple = "nvptx64-nvidia-cuda"\n' + TIMES_TWO.encode(), "my.ll is code for 'nvptx64-nvidia-cuda'"),
    ],
    ids=["text", "truncated", "bytes", "machine"],
)
def test_code_that_cannot_be_linked(data, says):
    @hip.jit(link=hip.LinkedCode(data, "my.ll"))
    def kernel(values):
        values[0] = 1

    values = np.zeros(1)
    with pytest.raises(LinkedCodeError, match=says):
        kernel[1, 1](values)
    assert values[0] == 0


DAMAGED = [(271, 1), (784, 1), (1255, 64), (500, 255)]
"""Bytes of a module, and what is changed in them: most of LLVM's readers ended the process on the first three."""


def test_damaged_bitcode():
    refused = 0
    for (place, change), target in zip(DAMAGED, ("cpu", "gfx90a", "cpu", "cpu"), strict=True):
        data = bytearray(bitcode(TIMES_TWO))
        data[place % len(data)] ^= change
        kernel = hip.jit(link=hip.LinkedCode(bytes(data), "my.bc"))(lambda values: None)
        try:
            kernel.compile("(float64[::1],)", target)
        except LinkedCodeError as error:
            assert "my.bc" in str(error)  # noqa: PT017 - some damage may be borne
            refused += 1
    assert refused


@pytest.mark.parametrize("target", ["cpu", "gfx90a"])
def test_text_with_an_intrinsic_of_other_types(target):
    """LLVM ends the process that reads it, or makes it a call of something that is not there."""
    text = "declare i64 @llvm.x86.avx512.kand.w(i64)\n" + TIMES_TWO.replace(
        "%y = mul i32 %x, 2",
        """
      %w = zext i32 %x to i64
      %z = call i64 @llvm.x86.avx512.kand.w(i64 %w)
      %y = trunc i64 %z to i32""",
    )
    times_two = hip.declare_device("times_two", "int32(int32)", link=hip.LinkedCode(text.encode(), "my.ll"))

    def kernel(values):
        values[0] = times_two(3)

    with pytest.raises(LinkedCodeError, match="my.ll"):
        hip.jit(kernel).compile("(float64[::1],)", target)


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "code.cuh",
            "Don't know how to link file with extension .cuh: .*is for including; pass the source that includes it",
        ),
        ("code.o", "is machine code"),
        ("code.ptx", "is code for NVIDIA GPUs"),
        ("missing.bc", "^link: .*missing.bc not found$"),
        ("", "cannot be read"),
    ],
)
def test_files_that_cannot_be_linked(name, says, tmp_path):
    if name and not name.startswith("missing"):
        (tmp_path / name).touch()

    @hip.jit(link=str(tmp_path / name))
    def kernel(values):
        values[0] = 1

    with pytest.raises(LinkedCodeError, match=says):
        kernel[1, 1](np.zeros(1))
    with pytest.raises(LinkedCodeError, match="link: 3 is a int"):
        hip.jit(link=3)(kernel.py_func)[1, 1](np.zeros(1))


def test_a_missing_file_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        hip.jit("void(float64[::1])", link=[tmp_path / "missing.ll"])(lambda values: None)
    assert isinstance(caught.value, LinkedFileNotFoundError)
    assert caught.value.args == (f"{tmp_path / 'missing.ll'} not found",)


def test_declarations():
    assert hip.declare_device("f", "int32(float32)").sig == types.int32(types.float32)
    with pytest.raises(TypeError, match="^Return type missing in the declaration of"):
        hip.declare_device("f", "(int32,)")
    with pytest.raises(LinkedCodeError, match="abi is 'fortran'"):
        hip.declare_device("f", "int32(int32)", abi="fortran")
    for name in ("", 5):
        with pytest.raises(TypeError, match=f"the name of an external function is {name!r}; pass its name"):
            hip.declare_device(name, "int32(int32)")
    with pytest.raises(TypeError, match="can be called from a kernel only"):
        hip.declare_device("f", "int32(int32)")(1)


def test_calls_with_the_wrong_arguments():
    times_two = hip.declare_device("times_two", "int32(int32)", link=hip.LinkedCode(TIMES_TWO.encode()))

    @hip.jit
    def kernel(values):
        values[0] = times_two(1, 2)

    with pytest.raises(NumbaError, match="times_two"):
        kernel[1, 1](np.zeros(1))


def test_a_cache_knows_what_was_linked(tmp_path):
    path = tmp_path / "code.ll"

    def kernel(values):
        values[0] = times_two(4)

    with config.cache_dir.scope(tmp_path / "cache"):
        for factor, hit in ((2, False), (3, False), (2, True)):
            path.write_text(TIMES_TWO.replace("%x, 2", f"%x, {factor}"))
            times_two = hip.declare_device("times_two", "int32(int32)")
            dispatcher, values = hip.jit(cache=True, link=path)(kernel), np.zeros(1)
            dispatcher[1, 1](values)
            assert values[0] == 4 * factor
            assert bool(dispatcher.stats.cache_hits) == hit


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
@pytest.mark.sample(1)
def test_linking_for_amd_gpus(target):
    code = f'target triple = "amdgcn-amd-amdhsa"\n{TIMES_TWO}\ndefine amdgpu_kernel void @not_ours() {{ ret void }}'
    times_two = hip.declare_device("times_two", "int32(int32)", link=hip.LinkedCode(code.encode()))
    add_c = hip.declare_device("add_c", "float64(float64, float64)", abi="c", link=hip.LinkedCode(ADD_C.encode()))

    @hip.jit
    def kernel(values):
        values[hip.grid(1)] = add_c(times_two(hip.grid(1)), 0.5)

    text, _ = hip.compile(kernel, "(float64[::1],)", target=target, output="llvm")
    module = llvm.parse_assembly(text)
    assert [function.name for function in module.functions if not function.is_declaration] == ["kernel"]
    assert "v_add_f64" in hip.compile(kernel, "(float64[::1],)", target=target)[0]
    assert kernel.compile("(float64[::1],)", target).max_threads_per_block == 1024


def test_code_for_the_host_is_not_linked_for_a_gpu():
    code = f'target triple = "x86_64-unknown-linux-gnu"\n{TIMES_TWO}'
    times_two = hip.declare_device("times_two", "int32(int32)", link=hip.LinkedCode(code.encode(), "host.ll"))

    @hip.jit
    def kernel(values):
        values[0] = times_two(1)

    with pytest.raises(LinkedCodeError, match=r"host.ll is code for 'x86_64.*'; this kernel is for 'amdgcn"):
        hip.compile(kernel, "(float64[::1],)", target="gfx90a")


def test_callbacks_are_told_of_each_module():
    said = []
    code = hip.LinkedCode(
        TIMES_TWO.encode(), "twice", lambda module: said.append(module), lambda module: said.append(module.handle)
    )
    times_two = hip.declare_device("times_two", "int32(int32)", link=code)

    @hip.jit(link=[code, hip.LinkedCode(ADD_C.encode(), "sums", lambda module: said.append("sums"))])
    def kernel(values):
        values[hip.grid(1)] = times_two(4)

    values = np.zeros(4)
    kernel.compile((types.float64[::1],))
    assert not said
    kernel[1, 1](values)
    kernel[2, 2](values)
    module, other = said
    assert other == "sums"
    assert [function.name for function in module.code.kernels] == ["kernel"]
    handle = module.handle
    kernel[1, 1](np.zeros(4, np.int32))
    assert len(said) == 4
    assert said[2].handle is not handle
    del module, said[:], kernel
    gc.collect()
    assert len(said) == 2
    assert handle in said


def test_a_callback_that_fails_stops_the_launch(tmp_path):
    said = []

    def refuse(module):
        said.append(module.handle)
        if len(said) == 1:
            raise OSError("not yet")

    @hip.jit(link=hip.LinkedCode(b"", "nothing", refuse), cache=True)
    def kernel(values):
        values[0] = 1

    values = np.zeros(1)
    refused = pytest.warns(NumbaWarning, match="kernel kernel is not kept in the cache: nothing, which it links, has")
    with config.cache_dir.scope(tmp_path), refused:
        kernel.compile((types.float64[::1],))
    with pytest.raises(OSError, match="not yet"):
        kernel[1, 1](values)
    assert values[0] == 0
    kernel[1, 1](values)
    assert values[0] == 1
    assert len(said) == 2
    with pytest.raises(LinkedCodeError, match="setup_callback of linked code is 3; it has to be callable, or None"):
        hip.LinkedCode(b"", setup_callback=3)


@pytest.mark.parametrize("told", [False, True])
def test_variables_that_the_host_can_find_on_amd_gpus(told):
    code = hip.LinkedCode(COUNTED.encode(), "counted", (lambda module: None) if told else None)
    counted = hip.declare_device("counted", "int32()", link=code)

    @hip.jit
    def kernel(values):
        values[0] = counted()

    text, _ = hip.compile(kernel, "(float64[::1],)", target="gfx90a", output="llvm")
    variables = [variable.name for variable in llvm.parse_assembly(text).global_variables]
    assert variables == (["counter"] if told else [])
    assert ("load i32, ptr addrspace(1) @counter" in text) == told
