"""What goes wrong says so: a typed error names the argument and the limit, and nothing of the caller's is changed."""

import gc

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import NumbaError, TypingError

import numba_hip as hip
from hip_devicelib.errors import UnknownTargetError
from hip_runtime.errors import LaunchError, OutOfDeviceMemoryError, UnknownDeviceError
from numba_hip.compilation.options import SWITCHES
from numba_hip.errors import (
    KernelArgumentError,
    KernelSignatureError,
    NotAFunctionError,
    OptionError,
    OutputError,
    SignatureError,
)

TAKEN_BY_HIP = 0 if hip.get_current_device().is_cpu else 2 << 20
"""The HIP runtime takes memory for itself when it comes to it."""


@hip.jit
def add_one(values, step):
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


@pytest.fixture
def values():
    array = np.arange(10.0)
    yield array
    np.testing.assert_array_equal(array, np.arange(10.0), "the caller's array was changed")


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ((0, 64), "griddim has extent 0 along x; each must be at least 1"),
        ((1, 0), "blockdim has extent 0 along x"),
        ((-1, 64), "griddim has extent -1 along x"),
        (((1, 2, 0), 64), "griddim has extent 0 along z"),
        ((1, (8, -8)), "blockdim has extent -8 along y"),
        ((1, 2000), "2000.*at most 1024"),
        ((1, (32, 64)), "2048 threads.*at most 1024"),
        ((1, (1, 1, 2000)), "2000"),
        ((2**40, 1), "grid has extent 1099511627776 along x.*at most"),
        ((1.5, 64), r"griddim must be a sequence of integers, got \[1.5\]; 1.5 is a float: divide with // .* int\("),
        ((1, "64"), r"blockdim must be a sequence of integers, got \['64'\]"),
        ((True, 64), r"griddim must be a sequence of integers, got \[True\]"),
        (((1, 1, 1, 1), 64), r"griddim must be a sequence of 1, 2 or 3 integers, got \[1, 1, 1, 1\]"),
        (((), 64), r"griddim must be a sequence of 1, 2 or 3 integers, got \[\]"),
        ((1, 64, "stream"), "stream is 'stream', of type str; it must be a stream of hip.stream"),
        ((1, 64, 0, -8), "-8"),
        ((1, 64, 0, 2**40), "1099511627776.*at most 65536"),
        ((1, 64, 0, 1.5), "dynamic_shared.*1.5; 1.5 is a float: divide with //"),
        ((1, 64, 0, 0, 0), "cluster has extent 0 along x; each must be at least 1"),
        ((1, 64, 0, 0, 1, 1), r"kernel\[grid, block, stream, dynamic_shared, cluster\].*got .1, 64, 0, 0, 1, 1"),
        (1, r"kernel\[grid, block, stream, dynamic_shared, cluster\], the last three optional; got 1"),
    ],
)
def test_impossible_launches(config, says, values):
    with pytest.raises(LaunchError, match=says):
        add_one[config](values, 1.0)


def test_a_configuration_that_was_seen_before_is_not_mistaken_for_one_that_equals_it(values):
    add_one[1, 64](np.zeros(3), 1.0)
    for config in ((True, 64), (1.0, 64)):
        with pytest.raises(LaunchError):
            add_one[config](values, 1.0)


@pytest.mark.parametrize("more", [(), (1.0, 2.0), (1.0, 2.0, 3)])
def test_too_few_or_too_many_arguments(more, values):
    says = rf"kernel add_one takes 2 arguments \(values, step\); the launch passes {1 + len(more)}"
    with pytest.raises(KernelArgumentError, match=says):
        add_one[1, 64](values, *more)
    with pytest.raises(KernelArgumentError, match=says):
        add_one[1, 64](hip.to_device(values), *more)


@pytest.mark.parametrize(
    "value", ["text", [1, 2], {"a": 1}, object(), lambda: 0], ids=lambda value: type(value).__name__
)
def test_arguments_of_types_that_no_kernel_takes(value, values):
    with pytest.raises(KernelArgumentError, match="argument 'step' is a"):
        add_one[1, 64](values, value)


def test_object_arrays(values):
    for bad in (np.array([object()]), (np.array([1, "a"], dtype=object),)):
        with pytest.raises(KernelArgumentError, match="argument 'step' is an array of dtype object.*astype"):
            add_one[1, 64](values, bad)


def test_a_type_that_does_not_fit_the_kernels_code(values):
    with pytest.raises(TypingError, match="add_one|iadd|float64"):
        add_one[1, 64](values, (1, 2))


def test_a_missing_name():
    @hip.jit
    def kernel(out):
        out[0] = no_such_name  # noqa: F821

    out = np.zeros(1)
    with pytest.raises(NumbaError, match="name 'no_such_name' is not defined") as caught:
        kernel[1, 1](out)
    assert "test_bad_input.py" in str(caught.value), "the place in the user's file"
    assert out[0] == 0


def test_a_failed_compilation_can_be_mended():
    namespace = {"hip": hip}
    exec("def kernel(out):\n    out[hip.grid(1)] = late", namespace)
    kernel = hip.jit(namespace["kernel"])
    for _ in range(2):
        with pytest.raises(NumbaError):
            kernel[1, 1](np.zeros(1))
    namespace["late"] = 5
    out = np.zeros(1)
    kernel[1, 1](out)
    assert out[0] == 5


@pytest.mark.parametrize(
    "source",
    [
        "hip.grid(4)",
        "hip.grid(0)",
        "hip.gridsize(-1)",
        "hip.grid()",
        "hip.grid(1, 2)",
        "hip.grid(n)",
        "hip.threadIdx.w",
    ],
)
def test_misused_indices(source):
    namespace = {"hip": hip}
    exec(f"def kernel(out, n):\n    out[0] = {source}", namespace)
    with pytest.raises(
        NumbaError, match=r"number of axes|takes \(ndim\); this call passes|Unknown attribute 'w'|literal"
    ):
        hip.jit(namespace["kernel"])[1, 1](np.zeros(1, np.int64), 1)


def test_a_kernel_that_returns_a_value(values):
    @hip.jit
    def kernel(values):
        return values[0]

    with pytest.raises(TypingError, match="kernel kernel returns float64; a kernel returns nothing") as caught:
        kernel[1, 1](values)
    assert isinstance(caught.value, KernelSignatureError)


def test_kernels_and_device_functions_are_not_called_from_python(values):
    with pytest.raises(LaunchError, match=r"write add_one\[grid, block\]\(\.\.\.\)"):
        add_one(values, 1.0)

    @hip.jit(device=True)
    def device_function(x):
        return x

    with pytest.raises(TypeError, match="device function: it can be called from a kernel only"):
        device_function(1)
    with pytest.raises(TypeError, match="kernels call device_function, only they are launched"):
        device_function[1, 1]
    with pytest.raises(TypeError, match="hip.grid can be called in kernels only"):
        hip.grid(1)


def test_options():
    with pytest.raises(OptionError, match="no option no_such; it knows .*fastmath"):
        hip.jit(no_such=1)
    for wrong in (0, -1, 1.5, True, "many"):
        with pytest.raises(OptionError, match="max_registers is .*; it has to be a whole number, 1 or more"):
            hip.jit(max_registers=wrong)
    for wrong in ("sometimes", 1, None, ["never"]):
        with pytest.raises(OptionError, match="inline is .*; it can be 'never', 'always', a bool or a cost model"):
            hip.jit(inline=wrong)
    for wrong in (-2, 101, 0.5, True):
        with pytest.raises(OptionError, match="it must be between -1 and 100, or a name"):
            hip.jit(shared_memory_carveout=wrong)
    with pytest.raises(OptionError, match="Invalid carveout value: .* is 'Most'; the names are default, MaxL1"):
        hip.jit(shared_memory_carveout="Most")
    with pytest.raises(OptionError, match="launch_bounds gives 4096"):
        hip.jit(launch_bounds=4096)
    with pytest.raises(TypeError, match="hip.jit takes a Python function"):
        hip.jit(3)
    with pytest.raises(OptionError, match="extensions is 3; it can be a list of objects"):
        hip.jit(extensions=3)


@pytest.mark.parametrize("name", [*sorted(SWITCHES - {"debug"}), "device"])
def test_switches_are_on_or_off(name):
    for wrong in ("no", "", [True], 1.0):
        with pytest.raises(OptionError, match=f"{name} is .*; it can be True or False"):
            hip.jit(**{name: wrong})
    for right in (True, False, 1, 0, np.True_):
        hip.jit(**{name: right})


def test_flags_of_fastmath():
    for wrong in ("fast", {"nan"}, {"nnan": True, "nan": True}, ["nnan"], 0.5):
        with pytest.raises(OptionError, match="fastmath is .*; the only word is 'ulp4', .* a set of 'afn'"):
            hip.jit(fastmath=wrong)
    for right in (1, np.True_, None, {"nnan": True}, frozenset({"nnan"})):
        array = np.ones(1)
        hip.jit(fastmath=right)(add_one.py_func)[1, 1](array, 1.0)
        assert array[0] == 2


@pytest.mark.parametrize(
    ("signature", "says"),
    [
        ("float64[:]", r"'float64\[:\]': array.float64, 1d, A. is a type, and a signature lists those of all"),
        ([types.int32], "int32 is a type, and a signature lists those of all arguments; write it as in 'void"),
        (("int32", types.int32), "'int32' is no type"),
        ("void(int32, 3)", "3 is no type"),
        ("void(int32.x)", "no attribute 'x'; write it as in"),
        ("3", "it is of type int; write it as in"),
    ],
)
def test_what_is_no_signature(signature, says):
    with pytest.raises(SignatureError, match=says):
        hip.jit(signature)(add_one.py_func)


def test_a_signature_of_another_number_of_arguments():
    for signature in ("void()", "void(float64[:])", "void(float64[:], float64, float64)"):
        with pytest.raises(
            KernelSignatureError, match=r"mismatch: kernel add_one takes 2 arguments \(.*, .*\); the sig"
        ):
            hip.jit(signature)(add_one.py_func)
    with pytest.raises(KernelSignatureError, match="at least 1 arguments"):
        hip.jit("void()")(lambda first, *rest: None)


def test_what_is_no_function_to_compile():
    class Counter:
        step = 1

        def count(self, values):
            values[0] += self.step

    with pytest.raises(NumbaError, match="knows no self, the object .*: decorate a function, and pass what it needs"):
        hip.jit(Counter().count)[1, 1](np.zeros(1))
    with pytest.raises(NotAFunctionError, match=r"got int32: a signature is text, .* or a tuple of types"):
        hip.jit(types.int32)
    with pytest.raises(NotAFunctionError, match="takes a Python function"):
        hip.compile(3, "void()", target="gfx942")
    with pytest.raises(KernelSignatureError, match="was given return type float64; it can be void only"):
        hip.compile(lambda values: None, "float64(float64[:])", target="gfx942")
    with pytest.raises(KernelSignatureError, match="is a generator"):
        hip.compile(counts_up, "void(int64)", target="gfx942")


def counts_up(count):
    yield count


RAW = np.zeros(2, "V7")
NESTED = np.zeros(2, [("number", "f4"), ("raw", "V3")])
LONG = np.zeros(2, [("number", np.longdouble)])


def test_elements_that_are_bytes():
    kernel = hip.jit(lambda a: None)
    for array, says in (
        (RAW, "argument 'a' is an array of dtype .*V7, which is bytes without a meaning; .*view"),
        (NESTED, "has the field 'raw' of dtype .*V3, which is bytes without a meaning"),
        (LONG, "has the field 'number' of dtype float128, which has longer numbers"),
    ):
        with pytest.raises(KernelArgumentError, match=says):
            kernel[1, 1](array)


def test_launch_bounds_limit_the_block(values):
    bounded = hip.jit(launch_bounds=128)(add_one.py_func)
    array = np.zeros(200)
    bounded[2, 128](array, 1.0)
    assert (array == 1).all()
    with pytest.raises(LaunchError, match="129 threads; kernel 'add_one' was compiled for at most 128"):
        bounded[1, 129](values, 1.0)


def test_memory_that_is_not_there(values):
    free, total = free_memory(), hip.get_current_device().memory_info()[1]
    with pytest.raises(OutOfDeviceMemoryError, match=f"{total}|{total + 8}"):
        hip.device_array(total // 8 + 1)
    assert abs(free_memory() - free) <= TAKEN_BY_HIP


def test_unknown_devices():
    for number in (7, -1, "no such device"):
        with pytest.raises(UnknownDeviceError, match="there is no device"):
            hip.select_device(number)


def free_memory():
    hip.synchronize()
    gc.collect()  # exceptions hold frames, frames hold arrays
    return hip.get_current_device().memory_info()[0]


def test_a_faulty_launch_leaks_nothing(values):
    @hip.jit(exceptions=True)
    def kernel(values, step):
        if step > 0:
            raise RuntimeError("no")

    kernel[1, 1](values, 0)
    free = free_memory()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="no"):
            kernel[1, 4](values, 1)
        with pytest.raises(KernelArgumentError):
            kernel[1, 4](values, "text")
        with pytest.raises(LaunchError):
            kernel[1, 5000](values, 1)
    assert abs(free_memory() - free) <= TAKEN_BY_HIP


@pytest.mark.parametrize("target", ["gfx9999", "sm_90", "", "gfx942;rm", "x86-64"])
def test_unknown_targets(target):
    with pytest.raises(UnknownTargetError, match="gfx942"):
        hip.compile(add_one, "(float64[:], float64)", target=target)


def test_unknown_outputs():
    with pytest.raises(OutputError, match="output type: ptx; it can be one of llvm, bitcode, asm, object, codeobject"):
        hip.compile(add_one, "(float64[:], float64)", output="ptx")
    with pytest.raises(OutputError, match="the CPU device has no object files"):
        hip.compile(add_one, "(float64[:], float64)", target="cpu", output="object")


def test_elements_that_no_ufunc_and_no_reduction_takes():
    double, add = hip.vectorize(["float64(float64)"])(lambda x: 2 * x), hip.reduce(lambda x, y: x + y)
    for array, says in (
        (np.zeros(2, ">f8"), "dtype >f8 has its bytes in the order of other machines"),
        (np.zeros(2, np.longdouble), "dtype float128 has longer numbers than devices have"),
        (RAW, "is bytes without a meaning"),
        (np.array([1, None]), "holds Python objects"),
    ):
        with pytest.raises(TypeError, match=says):
            double(array)
    with pytest.raises(TypeError, match="dtype >f8 has its bytes in the order of other machines"):
        add(np.zeros(2, ">f8"))
    with pytest.raises(TypeError, match="init is None; it has to be a number that float64 has, 0 by default"):
        add(np.ones(2), init=None)
    assert add([1, 2]) == 3
