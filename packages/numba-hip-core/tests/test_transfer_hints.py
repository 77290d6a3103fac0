"""`In`, `Out` and `InOut`: which way the contents of host arrays are copied."""

import gc
from collections import namedtuple

import numpy as np
import pytest
from numba.core import types
from numba.core.errors import TypingError

import numba_hip as hip
from hip_runtime.errors import CopyError
from hip_runtime.protocols import array_interface
from numba_hip import config
from numba_hip.arguments.transfer_hints import wrap_arg
from numba_hip.errors import KernelArgumentError

Pair = namedtuple("Pair", "left right")


@hip.jit
def add(values, step):
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


@hip.jit
def fill(values, value):
    i = hip.grid(1)
    if i < values.size:
        values[i] = value


@hip.jit
def write(values, value):
    if hip.grid(1) == 0:
        values[1] = value


@pytest.mark.parametrize("on_stream", [False, True])
def test_hints(on_stream):
    config = (4, 256, hip.stream()) if on_stream else (4, 256)
    values = np.arange(1000.0)
    add[config](hip.In(values), 1.0)
    np.testing.assert_array_equal(values, np.arange(1000.0))
    add[config](hip.InOut(values), 1.0)
    np.testing.assert_array_equal(values, np.arange(1000.0) + 1)
    fill[config](hip.Out(values), 7.0)
    assert (values == 7).all()


def test_out_copies_nothing_to_the_device(monkeypatch):
    copied = []
    original = hip.DeviceArray.copy_to_device
    monkeypatch.setattr(
        hip.DeviceArray, "copy_to_device", lambda self, *args: (copied.append(self.shape), original(self, *args))[1]
    )
    values = np.zeros(1000)
    fill[4, 256](hip.Out(values), 7.0)
    assert copied == []
    fill[4, 256](values, 8.0)
    assert copied == [(1000,)]
    assert (values == 8).all()


def test_hints_around_what_is_on_the_device_change_nothing():
    values = hip.to_device(np.zeros(10))
    for hint in (hip.In, hip.Out, hip.InOut):
        add[1, 16](hint(values), 1.0)
    assert (values.copy_to_host() == 3).all()


def test_hints_around_tuples():
    @hip.jit
    def move(arrays):
        i = hip.grid(1)
        arrays.right[i] = arrays.left[i]
        arrays.left[i] = -1

    pair = Pair(np.arange(8.0), np.zeros(8))
    move[1, 8](hip.In(pair))
    assert pair.left[1] == 1
    assert (pair.right == 0).all()
    move[1, 8](Pair(hip.In(pair.left), hip.Out(pair.right)))
    np.testing.assert_array_equal(pair.left, np.arange(8.0))
    np.testing.assert_array_equal(pair.right, np.arange(8.0))


def test_read_only_arrays():
    values = np.arange(5.0)
    values.flags.writeable = False
    add[1, 8](hip.In(values), 1.0)
    for hint in (hip.Out, hip.InOut):
        with pytest.raises(KernelArgumentError, match=f"argument 'values' is {hint.__name__}.*read-only.*use In"):
            add[1, 8](hint(values), 1.0)
    np.testing.assert_array_equal(values, np.arange(5.0))


@pytest.mark.parametrize("simulated", [False, True])
def test_read_only_arrays_are_read_only_in_kernels(simulated):
    with config.simulator.scope(simulated):
        write = hip.jit(add.py_func)
        eager = hip.jit("void(float64[:], float64)")(add.py_func)

        @hip.jit
        def read(source, target):
            i = hip.grid(1)
            if i < target.size:
                target[i] = source[i] * 2

    values, target = np.arange(5.0), np.zeros(5)
    values.flags.writeable = False
    read[1, 8](values, target)
    np.testing.assert_array_equal(target, values * 2)
    read[1, 8](np.broadcast_to(3.0, 5), target)
    np.testing.assert_array_equal(target, np.full(5, 6.0))
    says = (
        "read-only" if simulated else r"^kernel add writes to an array that is read-only: 'values' .* values.copy\(\)"
    )
    with pytest.raises(ValueError if simulated else TypingError, match=says):
        write[1, 8](values, 1.0)
    write[1, 8](hip.In(values), 1.0)
    eager[1, 8](hip.In(values), 1.0)
    if not simulated:
        with pytest.raises(KernelArgumentError, match=r"No matching def.* no read-only arrays.*or In\(values\)"):
            eager[1, 8](values, 1.0)
        assert write.specialize(hip.In(values), 1.0).signatures[0][0].mutable
    np.testing.assert_array_equal(values, np.arange(5.0))


def test_read_only_device_arrays():
    @hip.jit
    def read(source, target):
        target[0] = source[1]

    array, target = hip.to_device(np.arange(5.0)), np.zeros(1)
    fixed = array.read_only()
    read[1, 1](fixed[1:], target)
    assert target[0] == 2
    with pytest.raises(TypingError, match="readonly"):
        add[1, 8](fixed, 1.0)
    for change in (lambda: fixed.copy_to_device(np.ones(5)), lambda: fixed.setitem(0, 1.0)):
        with pytest.raises(CopyError, match="read-only"):
            change()
    assert array_interface(fixed)["data"] == (array.address, True)
    add[1, 8](array, 1.0)
    assert fixed.copy_to_host().tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("value", [3, 1.5, "text", None, [1, 2]])
def test_hints_are_for_arrays(value):
    with pytest.raises(KernelArgumentError, match="argument 'step' is In around a"):
        add[1, 8](np.zeros(3), hip.In(value))


def test_arrays_are_as_they_were_when_the_kernel_raises():
    @hip.jit(exceptions=True)
    def kernel(values, record):
        values[hip.grid(1)] = 1
        record.a = 5
        raise ValueError("no")

    record = np.zeros(1, [("a", "f8")])[0]
    values = np.zeros(4)

    def attempt():
        for hint in (hip.Out, hip.InOut):
            with pytest.raises(ValueError, match="no"):
                kernel[1, 4](hint(values), hint(record))

    attempt()
    gc.collect()
    free = hip.get_current_device().memory_info()[0]
    attempt()
    gc.collect()
    assert hip.get_current_device().memory_info()[0] == free
    assert (values == 0).all()
    assert record["a"] == 0


@pytest.mark.parametrize("simulated", [False, True])
def test_the_same_elements_twice_are_one_array(simulated):
    with config.simulator.scope(simulated):

        @hip.jit
        def scale(out, values):
            i = hip.grid(1)
            if i < values.size:
                out[i] = 10 * values[i]

    numbers = np.arange(1.0, 7)
    for view in (lambda a: a, lambda a: a[:], hip.InOut):
        values = numbers.copy()
        scale[1, 8](view(values), values)
        np.testing.assert_array_equal(values, 10 * numbers)
    values = numbers.copy()
    scale[1, 8](values[::2], values[::2])
    np.testing.assert_array_equal(values, [10, 2, 30, 4, 50, 6])
    values = numbers.copy()
    scale[1, 8](values[::2], values[1::2])
    np.testing.assert_array_equal(values, [20, 2, 40, 4, 60, 6])
    scale[1, 8](hip.Out(values), hip.In(values))
    np.testing.assert_array_equal(values, [200, 20, 400, 40, 600, 60])


def test_wrap_arg():
    hint = hip.In(1)
    assert wrap_arg(hint) is hint
    assert isinstance(wrap_arg(2), hip.InOut)
    assert isinstance(wrap_arg(2, hip.In), hip.In)
    assert repr(hint) == "In(1)"


@pytest.mark.parametrize("layout", ["C", "F", "A"])
def test_an_array_of_one_dimension_is_in_both_orders(layout):
    @hip.jit(types.void(types.Array(types.float64, 1, layout)))
    def fill(values):
        values[hip.grid(1)] = 3

    values = np.zeros(8)
    fill[1, 8](values)
    assert (values == 3).all()
    strided = hip.to_device(values)[::2]
    if layout == "A":
        fill[1, 4](strided)
    else:
        with pytest.raises(KernelArgumentError, match="No matching definition"):
            fill[1, 4](strided)
    with pytest.raises(KernelArgumentError, match="No matching definition"):
        fill[1, 8](np.zeros((8, 1), np.float32))
