"""Arrays that nobody could have: random claims of other libraries, of which nothing is ever read."""

from __future__ import annotations

import ctypes
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hip_runtime as rt
from hip_runtime import ArrayError, DeviceArray, capsules, dlpack
from hip_runtime.errors import MaskedArrayError
from hip_runtime.foreign_arrays import MAX_NDIM, shown
from hip_runtime.interop import from_interface

BORDERS = sorted(
    {sign * (1 << bits) + near for sign in (1, -1) for bits in (0, 3, 31, 47, 62, 63, 64) for near in (-8, -1, 0, 1)}
)
INTEGERS = st.one_of(st.sampled_from(BORDERS), st.integers(-4, 8), st.integers(), st.just(10**5000))


class Unspeakable:
    """Nothing can be done with it."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    __eq__ = __bool__ = __iter__ = __len__ = __index__ = __repr__  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]


THINGS = st.one_of(
    st.none(), st.booleans(), st.floats(), st.text(max_size=4), st.binary(max_size=4),
    st.builds(Unspeakable), st.builds(lambda: np.arange(3)), st.builds(np.int64, st.integers(-9, 9)),
)  # fmt: skip
NUMBERS = st.one_of(INTEGERS, INTEGERS, THINGS)
TUPLES = st.one_of(
    st.lists(INTEGERS, max_size=4).map(tuple), st.lists(NUMBERS, max_size=4).map(tuple), st.lists(INTEGERS, max_size=3),
    st.integers(0, 3).map(lambda more: (1,) * (MAX_NDIM - 1 + more)), NUMBERS,
)  # fmt: skip
TYPESTRS = st.one_of(
    st.sampled_from(["<f8", "|u1", ">i4", "|b1", "<c16", "|V16", "<V3", "|O", "<U3", "<M8[ns]", "<M8[qq]", "(3,)f4"]),
    st.builds("{}{}{}".format, st.sampled_from("<>|=! "), st.sampled_from("biufcmMOSUVtaz?"), INTEGERS.map(shown)),
    THINGS,
)
DESCRS = st.one_of(
    st.lists(st.tuples(st.sampled_from(["", "a", "b"]), TYPESTRS), max_size=3),
    st.lists(st.tuples(st.text(max_size=2), TYPESTRS, TUPLES), max_size=2),
    st.recursive(st.lists(THINGS, max_size=2), lambda inner: st.lists(st.tuples(st.just("a"), inner), max_size=2)),
    THINGS,
)
INTERFACES = st.fixed_dictionaries(
    {},
    optional={
        "shape": TUPLES,
        "typestr": TYPESTRS,
        "data": st.one_of(st.tuples(NUMBERS, st.booleans()), st.tuples(NUMBERS, THINGS), TUPLES),
        "version": st.one_of(st.just(3), NUMBERS),
        "strides": st.one_of(st.none(), TUPLES),
        "descr": DESCRS,
        "mask": st.one_of(st.none(), THINGS),
        "stream": st.one_of(st.none(), NUMBERS),
    },
)
GOOD = {"shape": (2, 3), "typestr": "<f8", "data": (4096, False), "version": 3, "strides": (24, 8)}


def check(array: DeviceArray) -> None:
    """What was taken can be packed for a kernel, and begins and ends where memory can be."""
    first, end = array.layout.extent
    struct.pack(f"<{2 * array.ndim + 3}q", array.address, array.size, array.nbytes, *array.shape, *array.strides)
    assert 0 <= array.address + first <= array.address + end <= 2**63
    assert (array.buffer.address, array.buffer.nbytes) == (array.address + first, end - first)
    assert array.address or not array.size
    assert all(extent >= 0 for extent in array.shape)
    assert array.ndim <= MAX_NDIM
    assert not array.dtype.hasobject
    assert array.dtype.subdtype is None


def take_in(interface: Any) -> DeviceArray | None:
    try:
        array = from_interface(interface, None, synchronize=False)
    except ArrayError:
        return None
    check(array)
    return array


@settings(max_examples=400, deadline=None)
@given(st.builds(lambda changes: {**GOOD, **changes}, INTERFACES))
def test_random_interfaces_are_refused_or_lie_in_memory(interface: dict[str, Any]) -> None:
    take_in(interface)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(INTEGERS, INTEGERS), max_size=4), INTEGERS, st.sampled_from(["|u1", "<f8", "<c16", "|V7"]))
def test_random_layouts_are_taken_where_numpy_could_address_them(
    axes: list[tuple[int, int]], address: int, typestr: str
) -> None:
    shape, strides = tuple(extent for extent, _ in axes), tuple(stride for _, stride in axes)
    interface = {"shape": shape, "strides": strides, "typestr": typestr, "data": (address, False), "version": 3}
    taken = take_in(interface) is not None
    itemsize, elements = np.dtype(typestr).itemsize, int(np.prod([*map(object_of, shape), 1], dtype=object))
    small = all(abs(number) < 2**63 for number in (*shape, *strides)) and all(extent >= 0 for extent in shape)
    whole = int(np.prod([object_of(extent) for extent in shape if extent], dtype=object)) * itemsize < 2**63
    ends = [address + sum(min(0, (e - 1) * s) for e, s in axes), address + sum(max(0, (e - 1) * s) for e, s in axes)]
    inside = address > 0 and ends[0] >= 0 and ends[1] + itemsize <= 2**63 if elements else 0 <= address < 2**63
    assert taken == (small and whole and inside)


def object_of(number: int) -> Any:
    return np.array(number, dtype=object)[()]


class Tensor:
    """A library with one tensor, whose fields are what somebody wants, in a capsule of its own."""

    NAMES = (b"dltensor", b"dltensor_versioned")
    new = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
        ("PyCapsule_New", ctypes.pythonapi)
    )

    def __init__(self, shape: Any = (2,), strides: Any = None, versioned: bool = True, **fields: Any) -> None:
        self.numbers = [
            None if given is None else (ctypes.c_int64 * max(len(given), 1))(*given) for given in (shape, strides)
        ]
        tensor = dlpack._Tensor(
            **{"data": 4096, "device_type": 1, "ndim": len(shape or ()), "code": 2, "bits": 64, "lanes": 1,
               **{name: value for name, value in fields.items() if name not in ("major", "flags")}}
        )  # fmt: skip
        for name, numbers in zip(("shape", "strides"), self.numbers, strict=True):
            if numbers is not None:
                setattr(tensor, name, numbers)
        if versioned:
            self.managed: Any = dlpack._ManagedVersioned(fields.get("major", 1), 0, None, None, 0, tensor)
        else:
            self.managed = dlpack._Managed(tensor, None, None)
        self.capsule = self.new(ctypes.addressof(self.managed), self.NAMES[versioned], None)

    def __dlpack__(self, **_: Any) -> object:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


@pytest.fixture(autouse=True)
def on_cpu() -> None:
    if not rt.current_device().is_cpu:
        pytest.skip("tensors are said to be in host memory")


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"ndim": -1}, "ndim .* is -1; an array has 0 to"),
        ({"ndim": 2**31 - 1}, "ndim .* is 2147483647"),
        ({"ndim": MAX_NDIM + 1}, f"ndim .* is {MAX_NDIM + 1}"),
        ({"shape": (3, -2)}, r"shape\[1\] .* is -2, a negative extent"),
        ({"shape": None, "ndim": 2}, "shape .* is a null pointer; ndim is 2"),
        ({"shape": (3, 2), "data": None}, r"data .* is a null pointer for 6 elements, shape \(3, 2\)"),
        ({"data": None, "byte_offset": 64}, "data .* is a null pointer"),
        ({"byte_offset": 2**64 - 8}, r"data \+ byte_offset .* is 18446744073709555704; addresses are from 0"),
        ({"byte_offset": 2**63 - 4104}, "to outside of the address space"),
        ({"strides": (2**62,)}, r"strides\[0\] .* has 66 bits"),
        ({"strides": (-(2**62),)}, r"strides\[0\] .* has 66 bits"),
        ({"strides": (-1024,), "shape": (2,)}, "to outside of the address space"),
        ({"shape": (2**40, 2**40)}, "larger than any address space"),
        ({"shape": (0, 2**62, 2**62)}, "larger than any address space"),
        ({"device_type": 2}, r"device_type .* is 2; __dlpack_device__\(\) says 1"),
        ({"code": 4}, "code 4, 64 bits and 1 lanes"),
        ({"code": 200}, "code 200"),
        ({"bits": 0}, "0 bits"),
        ({"bits": 255}, "255 bits"),
        ({"code": 6, "bits": 64}, "code 6, 64 bits"),
        ({"lanes": 0}, "0 lanes"),
        ({"major": 2}, "version 2.0; only 1.x is supported"),
        ({"major": 0}, "version 0.0; only 1.x is supported"),
    ],
    ids=str,
)
def test_tensors_that_cannot_be(fields: dict[str, Any], says: str) -> None:
    foreign = Tensor(**fields)
    for _ in range(2):  # it stays what it was
        with pytest.raises(ArrayError, match=says):
            rt.from_dlpack(foreign)


def test_capsules_that_are_none() -> None:
    used = Tensor()
    rt.from_dlpack(used)
    with pytest.raises(ArrayError, match="'used_dltensor_versioned'|not an unused DLPack capsule"):
        rt.from_dlpack(used)
    for capsule in (None, 5, Unspeakable(), np.zeros(2)):
        used.capsule = capsule
        with pytest.raises(ArrayError, match="not an unused DLPack capsule"):
            rt.from_dlpack(used)


@pytest.mark.parametrize(
    "where", [(1,), (1, 0, 0), None, (1.5, 0), "cpu", (2**70, 0), (99, 0), (10**5000, 0)], ids=shown
)
def test_devices_that_are_none(where: Any) -> None:
    class Elsewhere(Tensor):
        def __dlpack_device__(self) -> Any:
            return where

    with pytest.raises(ArrayError, match="__dlpack_device__|on DLPack device"):
        rt.from_dlpack(Elsewhere())


WORDS = st.one_of(st.sampled_from(BORDERS), st.integers(-4, 8)).filter(lambda number: -(2**63) <= number < 2**63)


@settings(max_examples=400, deadline=None)
@given(
    st.lists(WORDS, max_size=4), st.one_of(st.none(), st.lists(WORDS, min_size=4, max_size=4)), st.booleans(),
    st.fixed_dictionaries({}, optional={
        "data": st.one_of(st.none(), st.integers(0, 2**64 - 1)), "byte_offset": st.integers(0, 2**64 - 1),
        "code": st.integers(0, 255), "bits": st.one_of(st.sampled_from([8, 16, 32, 64, 128]), st.integers(0, 255)),
        "lanes": st.sampled_from([0, 1, 2, 65535]), "device_type": st.integers(-1, 20), "major": st.integers(0, 3),
        "ndim": st.one_of(st.just(-1), st.integers(MAX_NDIM + 1, 2**31 - 1)),
    }),
)  # fmt: skip
def test_random_tensors_are_refused_or_lie_in_memory(
    shape: list[int], strides: list[int] | None, versioned: bool, fields: dict[str, Any]
) -> None:
    foreign = Tensor(shape, strides, versioned, **fields)
    with suppress(ArrayError):
        check(rt.from_dlpack(foreign))


def test_a_capsule_that_goes_leaves_an_exception_alone() -> None:
    """C code that was given a capsule, and fails, lets go of it while its exception is set."""
    get = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    array = rt.to_device(np.zeros(3))
    before = len(dlpack._exported)
    for version in (None, (1, 0)):
        with pytest.raises(ValueError, match="incorrect name") as caught:
            get(array.__dlpack__(max_version=version), b"another")
        assert caught.value.__context__ is None
        assert len(dlpack._exported) == before, "the tensor went with the capsule"


def test_a_deleter_that_is_called_in_passing_leaves_an_exception_alone() -> None:
    """As one that C code calls in a branch for errors; here where the exception is the one of a format string."""
    array = rt.to_device(np.zeros(3))
    capsule = array.__dlpack__()
    address = capsules.pointer(capsule, b"dltensor")
    managed = dlpack._Managed.from_address(address)
    capsules.rename(capsule, b"used_dltensor")
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)(address)
    assert address not in dlpack._exported


class Host:
    """An array of the host that NumPy is told of."""

    def __init__(self, **changes: Any) -> None:
        self.array = np.arange(6.0).reshape(2, 3)
        self.__array_interface__ = {
            "shape": (2, 3), "typestr": "<f8", "data": (self.array.ctypes.data, False), "version": 3, **changes
        }  # fmt: skip


class RaisingHost:
    @property
    def __array_interface__(self) -> dict[str, Any]:
        raise RuntimeError("not today")


def test_arrays_of_the_host_by_their_interface() -> None:
    np.testing.assert_array_equal(rt.to_device(Host()).copy_to_host(), Host().array)
    array = rt.to_device(np.zeros((2, 3)))
    array.copy_to_device(Host())
    np.testing.assert_array_equal(array.copy_to_host(), Host().array)
    assert rt.to_device(Host(shape=(0, 3))).shape == (0, 3)


@pytest.mark.parametrize(
    ("host", "says"),
    [
        (
            Host(data=(0, False)),
            "of __array_interface__ of an object of type Host(: ValueError| is address 0 for 6 elements)",
        ),
        (Host(data=(2**64 - 16, False)), r"data\[0\] .* is 18446744073709551600; addresses are from 0"),
        (Host(strides=(-(2**62), 8), data=(4096, False)), "to outside of the address space"),
        (Host(shape=(-1, 3)), "NumPy makes no array of __array_interface__ of an object of type Host"),
        (Host(typestr="<f7"), "NumPy makes no array .*f7"),
        (Host(data="here"), "NumPy makes no array"),
        (Host(version="x", shape=5), "NumPy makes no array"),
        (RaisingHost(), "__array_interface__ of an object of type RaisingHost raises RuntimeError: .*not today"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_arrays_of_the_host_that_cannot_be(host: Any, says: str) -> None:
    array = rt.to_device(np.ones((2, 3)))

    def store() -> None:
        array[:] = host

    for take_in in (rt.to_device, rt.device_array_like, array.copy_to_device, lambda _: store()):
        with pytest.raises(ArrayError, match=says):
            take_in(host)
    np.testing.assert_array_equal(array.copy_to_host(), np.ones((2, 3)))


def test_masks_are_not_lost() -> None:
    masked, array = np.ma.array([[1.0, 2.0]], mask=[[False, True]]), rt.to_device(np.ones((1, 2)))

    def store() -> None:
        array[:] = masked

    for take_in in (rt.to_device, array.copy_to_device, lambda _: store()):
        with pytest.raises(MaskedArrayError, match=r"an array of type MaskedArray has a mask.*filled\(value\)"):
            take_in(masked)
    np.testing.assert_array_equal(array.copy_to_host(), np.ones((1, 2)))
    assert rt.device_array_like(masked).shape == (1, 2)
