"""What arguments and launch configurations become before a launch: types, bytes, and what is refused."""

import collections
import enum
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError

import numba_hip as hip
from hip_devicelib.codeobject import Parameter
from hip_runtime import config
from hip_runtime.errors import LaunchError, LaunchTypeError
from numba_hip._numba.typing import type_code
from numba_hip.arguments import argument_types, packing
from numba_hip.arguments.transfer_hints import In, InOut, Out
from numba_hip.bfloat import bfloat16
from numba_hip.dispatch.launch import LaunchConfig, is_plain
from numba_hip.errors import KernelArgumentError
from numba_hip.float8 import float8_e5m2

NAMES = ""
Pair = collections.namedtuple("Pair", "x y")


class Colour(enum.IntEnum):
    RED = 3


class Span(enum.Enum):
    SHORT = (1, 2)


class Word(enum.Enum):
    HELLO = "hello"


class Mixed(enum.Enum):
    WHOLE, HALF = 1, 0.5


class Bits(enum.Enum):
    FEW = b"12"


SIZES = {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "half": 2, "float": 4, "double": 8, "ptr": 8}


def pack(kinds, leaves, values, **options):
    """The bytes of *values* of *kinds*, whose *leaves* lie in a buffer at their natural alignment."""
    parameters, end = [], 0
    for leaf in leaves.split():
        size = SIZES[leaf]
        offset = -(-end // size) * size
        parameters.append(Parameter(leaf, leaf, offset, size))
        end = offset + size
    names = [f"a{number}" for number in range(len(kinds))]
    packers = packing.packers(kinds, parameters, names, **options)
    assert len(packers) == len(kinds)
    return b"".join(packer(value) for packer, value in zip(packers, values, strict=True))


NUMBERS = [
    ([types.int8], "i8", [-2], b"\xfe"),
    ([types.uint8], "i8", [254], b"\xfe"),
    ([types.int16], "i16", [-2], b"\xfe\xff"),
    ([types.uint16], "i16", [65534], b"\xfe\xff"),
    ([types.int32], "i32", [-2], struct.pack("<i", -2)),
    ([types.uint32], "i32", [2**32 - 2], struct.pack("<i", -2)),
    ([types.int64], "i64", [-2], struct.pack("<q", -2)),
    ([types.uint64], "i64", [2**64 - 2], struct.pack("<q", -2)),
    ([types.boolean], "i8", [True], b"\1"),
    ([types.boolean], "i8", [False], b"\0"),
    ([types.boolean], "i8", [7], b"\1"),
    ([types.float16], "half", [1.5], struct.pack("<e", 1.5)),
    ([types.float32], "float", [1.5], struct.pack("<f", 1.5)),
    ([types.float64], "double", [-0.1], struct.pack("<d", -0.1)),
    ([types.int8, types.float64], "i8 double", [1, 2.0], b"\1" + bytes(7) + struct.pack("<d", 2)),
    ([types.uint8, types.uint64], "i8 i64", [255, 2**63], b"\xff" + bytes(14) + b"\x80"),
    ([types.int8, types.boolean, types.int32], "i8 i8 i32", [1, 5, 2], b"\1\1\0\0\2\0\0\0"),
]

OTHERS = [
    ([types.complex64], "float float", [1 + 2j], struct.pack("<2f", 1, 2)),
    ([types.int8, types.complex128], "i8 double double", [1, 3], b"\1" + bytes(7) + struct.pack("<2d", 3, 0)),
    ([types.NPDatetime("s")], "i64", [np.datetime64(9, "s")], struct.pack("<q", 9)),
    ([types.NPTimedelta("s")], "i64", [np.timedelta64(-9, "s")], struct.pack("<q", -9)),
    ([types.IntEnumMember(Colour, types.int64)], "i64", [Colour.RED], struct.pack("<q", 3)),
    ([types.EnumMember(Span, types.UniTuple(types.int64, 2))], "i64 i64", [Span.SHORT], struct.pack("<2q", 1, 2)),
    ([types.CPointer(types.int8)], "ptr", [2**64 - 1], b"\xff" * 8),
    ([types.CPointer(types.int8)], "ptr", [0], bytes(8)),
    ([bfloat16], "i16", [1.0], b"\x80\x3f"),
    (
        [types.Tuple((types.int8, types.int32)), types.int8], "i8 i32 i8", [(1, 2), 3],
        b"\1\0\0\0\2\0\0\0\3",
    ),
    ([types.Tuple(()), types.int8], "i8", [(), 3], b"\3"),
    ([types.Tuple((types.complex64, types.int8))], "float float i8", [(1j, 2)], struct.pack("<2fb", 0, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("kinds", "leaves", "values", "expected"), NUMBERS + OTHERS)
def test_bytes_of_arguments(kinds, leaves, values, expected):
    for exact in (False, True):
        assert pack(kinds, leaves, values, exact=exact) == expected
    assert sum(map(packing.leaf_count, kinds)) == len(leaves.split())


@pytest.mark.parametrize(
    ("kind", "leaf", "value"),
    [(types.int8, "i8", 128), (types.uint8, "i8", -1), (types.uint8, "i8", 256), (types.float32, "float", 1e300),
     (types.int32, "i32", 2.5), (types.uint64, "i64", 2**64), (types.UniTuple(types.int8, 2), "i8 i8", (1, 128))],
)  # fmt: skip
def test_numbers_that_do_not_fit_are_left_to_the_exact_packer(kind, leaf, value):
    with pytest.raises(packing.NOT_PACKED):
        pack([kind], leaf, [value])
    with pytest.raises(KernelArgumentError, match="^argument 'a0' is "):
        pack([kind], leaf, [value], exact=True)


@pytest.mark.parametrize(
    ("kind", "leaves", "value"),
    [(types.complex64, "float float", 1e300),
     (bfloat16, "i16", 1e300), (types.IntEnumMember(Colour, types.int8), "i8", enum.IntEnum("Large", {"A": 128}).A)],
)  # fmt: skip
def test_parts_that_do_not_fit_are_named_by_the_argument(kind, leaves, value):
    with pytest.raises(KernelArgumentError, match="^argument 'a0' is "):
        pack([kind], leaves, [value], exact=False)


@pytest.mark.parametrize("address", [-1, 2**64])
def test_addresses_that_no_memory_has(address):
    with pytest.raises(
        KernelArgumentError, match=f"^argument 'a0': {address} is not an address: a pointer is passed as"
    ):
        pack([types.CPointer(types.int8)], "ptr", [address], exact=False)


ARRAY = np.zeros((2, 3), np.int16)
RECORD = np.zeros(1, [("a", "i4")])
CONSTANT = np.zeros(2)
CONSTANT.flags.writeable = False


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (types.int8, types.int8),
        (np.float32, types.NumberClass(types.float32)),
        (5, types.int64),
        (2**63, types.uint64),
        (1.5, types.float64),
        (ARRAY, types.Array(types.int16, 2, "C")),
        (ARRAY.T, types.Array(types.int16, 2, "F")),
        (ARRAY[:, :2], types.Array(types.int16, 2, "C")),
        (ARRAY[0], types.Array(types.int16, 1, "C")),
        (CONSTANT, types.Array(types.float64, 1, "C", readonly=True)),
        (InOut(CONSTANT), types.Array(types.float64, 1, "C")),
        ((CONSTANT,), types.UniTuple(types.Array(types.float64, 1, "C", readonly=True), 1)),
        (Out((CONSTANT,)), types.UniTuple(types.Array(types.float64, 1, "C"), 1)),
        (RECORD[0], "Record(a[type=int32;offset=0];4;False)"),
        (RECORD.reshape(()), "Record(a[type=int32;offset=0];4;False)"),
        ((1, 2.0), types.Tuple((types.int64, types.float64))),
        ((1, 2), types.UniTuple(types.int64, 2)),
        (Pair(1, ARRAY), types.NamedTuple((types.int64, types.Array(types.int16, 2, "C")), Pair)),
        (np.zeros((), np.int8), types.Array(types.int8, 0, "C")),
    ],
)
def test_types_of_arguments(value, expected):
    found = argument_types.argument_type(value, "a")
    assert str(found) == expected if isinstance(expected, str) else found == expected


@pytest.mark.parametrize("value", ["a", (1, "a"), In("a"), (1, ("a", 2))])
def test_what_has_no_type_is_named(value):
    with pytest.raises(KernelArgumentError, match=r"^argument 'given[][01]*' is a "):
        argument_types.argument_type(value, "given")


class Speaker:
    """An array of another library, which hands it on by DLPack alone."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_types_of_device_arrays():
    spoken = Speaker(hip.to_device(np.zeros((2, 3), np.int8)))
    assert argument_types.is_on_device(spoken)
    assert argument_types.argument_type(spoken, "a") == types.Array(types.int8, 2, "C")
    argument_types.check_arguments([spoken], ["a"])
    assert not argument_types.is_on_device(np.zeros(1))
    record = hip.to_device(np.zeros((), [("a", "i4")]))
    assert str(argument_types.argument_type(record, "a")).startswith("Record(a[type=int32")
    array = hip.to_device(np.zeros((2, 3)))
    for view, order in ((array, "C"), (array.T, "F"), (array[:, ::2], "A")):
        assert argument_types.argument_type(view, "a") == types.Array(types.float64, 2, order)
        assert argument_types.describe(view) is argument_types.describe(view)
    assert argument_types.argument_type(array.read_only(), "a") == types.Array(types.float64, 2, "C", readonly=True)


def test_bytes_of_device_arrays():
    array = hip.to_device(np.zeros((2, 3), np.int16))
    record = hip.to_device(np.zeros((), [("a", "i4")]))
    expected = [
        (array, (array.address, 2, 3, 6)),
        (array.T, (array.address, 3, 2, 6)),
        (array[1:, ::2], (array.address + 6, 1, 2, 6, 4)),
        (record, (record.address,)),
    ]
    for value, numbers in expected:
        kind = argument_types.argument_type(value, "a")
        leaves = " i64" * len(numbers)
        data = struct.pack(f"<{len(numbers)}q", *numbers)
        for exact in (False, True):
            assert pack([kind], leaves, [value], exact=exact) == data
            assert pack([types.int8, kind], f"i8 {leaves}", [5, value], exact=exact) == b"\5" + bytes(7) + data
            pair = types.Tuple((kind, types.int8))
            assert pack([pair], f"{leaves} i8", [(value, 6)], exact=exact) == data + b"\6"
    any_strides = types.Tuple((types.Array(types.int16, 2, "A"),))
    assert pack([any_strides], "i64" + " i64" * 4, [(array,)]) == struct.pack("<5q", array.address, 2, 3, 6, 2)


def test_what_is_known_of_a_device_array():
    array, record = hip.to_device(np.zeros(2)), hip.to_device(np.zeros((), [("a", "i4")]))
    for value in (array, record):
        assert argument_types.describe(value).code == type_code(argument_types.argument_type(value, "a")) is not None
    with pytest.raises(KernelArgumentError, match="^an array of dtype object holds Python objects; kernels take num"):
        argument_types.ArrayArgument(SimpleNamespace(dtype=np.dtype(object)))


def test_arrays_of_other_libraries(monkeypatch):
    array = hip.to_device(np.zeros(6))
    with config.cpu_array_interface.scope(True):
        other = SimpleNamespace(__cuda_array_interface__=array.__cuda_array_interface__)
    waits = []
    monkeypatch.setattr(
        argument_types, "as_device_array", lambda value, *, synchronize=None: waits.append(synchronize) or array
    )
    assert argument_types.is_on_device(other)
    assert argument_types.argument_type(other, "a") == types.Array(types.float64, 1, "C")
    assert waits == [False]  # a type says nothing of what is in the memory


def test_memory_of_the_host_that_a_kernel_uses_where_it_is():
    mapped = hip.mapped_array(6)
    assert argument_types.argument_type(mapped[::2], "a") == types.Array(types.float64, 1, "A")


def test_elements_of_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes, for small floats in NumPy")
    assert argument_types.element_type(np.dtype(ml_dtypes.bfloat16)) is bfloat16
    assert argument_types.element_type(np.dtype(ml_dtypes.float8_e5m2)) is float8_e5m2
    with pytest.raises(
        KernelArgumentError, match=r"elements of type float8_e4m3b11fnuz; pass array\.view\(np\.uint8\) for"
    ):
        argument_types.element_type(np.dtype(ml_dtypes.float8_e4m3b11fnuz))


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (2**64, "is 0x10000000000000000; kernels take integers from"),
        (
            "a",
            r"is a str \(Numba type unicode_type\); kernels take numbers, arrays and tuples of them; pass an array, ",
        ),
        (object(), "is a object, which kernels cannot take$"),
        (
            Word.HELLO,
            r"is a Word \(Numba type Enum<unicode_type>\(Word\)\); .* members whose values are numbers of one",
        ),
        (Mixed.WHOLE, "is a Mixed, which kernels cannot take; of an enumeration they take members whose values are"),
        (Bits.FEW, "is a Bits .*Numba type Enum<readonly bytes.*; of an enumeration they take members whose values"),
        (
            np.zeros(2, "M8[10Y]"),
            r"is an array of dtype datetime64\[10Y\], which counts in steps of 10 units, and kernels "
            r"in one: pass .astype\('datetime64\[Y\]'\)$",
        ),
        (
            np.timedelta64(5, "7s"),
            r"is a timedelta64, which kernels cannot take: dtype timedelta64\[7s\] counts in steps "
            r"of 7 units, and kernels in one: pass .astype\('timedelta64\[s\]'\)$",
        ),
        ((1, np.zeros(2, "m8[2D]")), r"is an array of dtype timedelta64\[2D\], which counts in steps of 2 units"),
        (np.array([None]), "is an array of dtype object, which holds Python objects"),
        ((1, (2, np.array([None]))), "is an array of dtype object, which holds Python objects"),
        (In(5), "is In around a int; hints are for arrays, records and tuples of them: pass the value itself$"),
        (Out(CONSTANT), "is Out around an array that is read-only, and nothing can be copied back to it; use In$"),
        (InOut(CONSTANT), "is InOut around an array that is read-only"),
        (InOut((np.zeros(1), CONSTANT)), "is InOut around an array that is read-only"),
        (In(np.array([None])), "is an array of dtype object"),
    ],
)
def test_what_has_no_place_in_a_kernel(value, says):
    with pytest.raises(KernelArgumentError, match=f"^argument 'second' {says}"):
        argument_types.check_arguments([1, value], ["first", "second"])


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ((1, "a"), r"'second\[1\]' is a str \(Numba type unicode_type\); kernels take numbers"),
        ((1, (2, object())), r"'second\[1\]\[1\]' is a object, which kernels cannot take$"),
        (Pair((object(), 1), 2), rf"'second\.{Pair._fields[0]}\[0\]' is a object, which kernels cannot take$"),
    ],
)
def test_members_that_have_no_place_in_a_kernel(value, says):
    with pytest.raises(KernelArgumentError, match=f"^argument {says}"):
        argument_types.check_arguments([1, value], ["first", "second"])


@pytest.mark.parametrize("value", [[1, 2], object(), Word.HELLO, np.zeros(2, "M8[10Y]")])
def test_a_type_that_kernels_do_not_support_is_an_error_of_typing_too(value):
    with pytest.raises(TypingError, match="argument 'x' is a") as caught:
        argument_types.check_arguments([value], ["x"])
    assert isinstance(caught.value, KernelArgumentError)
    assert isinstance(caught.value, TypeError)


def test_what_has_a_place_in_a_kernel():
    class Other:
        """Of another library, which makes an array of what is in it."""

        def __array__(self, dtype=None, copy=None):
            return np.zeros(1)

    values = [
        1, 1.5, True, 1j, ARRAY, RECORD[0], (1, 2.0), Pair(1, ARRAY), Colour.RED, np.datetime64(1, "s"), In(CONSTANT),
        Out(ARRAY), InOut((ARRAY, RECORD[0])), In((CONSTANT, 1)), hip.to_device(ARRAY), In(hip.to_device(ARRAY)),
    ]  # fmt: skip
    argument_types.check_arguments(values, [str(number) for number in range(len(values))])
    with pytest.raises(KernelArgumentError, match=r"a Other, which kernels cannot take; np\.asarray gives an array"):
        argument_types.check_arguments([Other()], ["a"])
    with pytest.raises(ValueError, match=r"zip\(\) argument"):
        argument_types.check_arguments([1, 2], ["a"])


def test_launch_configurations():
    assert LaunchConfig.of((2, 3)) == ((2, 1, 1), (3, 1, 1), None, 0)
    assert LaunchConfig.of([(2, 4), (3, 1, 5), None, 8]) == ((2, 4, 1), (3, 1, 5), None, 8)
    stream = hip.stream()
    assert LaunchConfig.of((1, 1, stream))[2:] == (stream, 0)
    assert LaunchConfig.of(((4, 6, 8), 1, 0, 0, (2, 3, 4))) == LaunchConfig.of(((4, 6, 8), 1))
    assert LaunchConfig.of((1, 1, None, None, None)) == LaunchConfig.of((1, 1))
    for given, name in (((0, 1), "griddim"), ((1, 0), "blockdim"), ((1, 1, 0, 0, 0), "cluster")):
        with pytest.raises(LaunchError, match=f"^{name} has extent 0 along x"):
            LaunchConfig.of(given)
    for given in ((), (1,), {1: 2, 3: 4}, "12", (1,) * 6):
        with pytest.raises(
            LaunchTypeError,
            match=r"^a launch is configured as kernel\[grid, block, stream, dynamic_shared, cluster\], .* got ",
        ):
            LaunchConfig.of(given)
    for cluster in ((3, 1, 1), (1, 4, 1), (1, 1, 3), (8, 1, 1)):
        says = rf"griddim \(4, 6, 8\) is not a multiple of the cluster \({cluster[0]}, {cluster[1]}, {cluster[2]}\)"
        with pytest.raises(LaunchError, match=says):
            LaunchConfig.of(((4, 6, 8), 1, 0, 0, cluster))


def test_configurations_of_integers_alone():
    for given in ((1, 2), ((1, 2), 3), (1, (2,), 0, 8), ()):
        assert is_plain(given)
    for given in ([1, 2], (True, 2), (1.0, 2), ((1, 2.0), 3), ((True,), 3), ([1], 2), (1, None), 1):
        assert not is_plain(given)
