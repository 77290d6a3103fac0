"""Records and structured arrays: as arguments, field by field, with arrays inside of them, and under atomics."""

import gc
from collections import namedtuple

import numpy as np
import pytest
from numba import types
from numba.core.errors import NumbaError

import numba_hip as hip
from numba_hip.errors import KernelArgumentError

ALIGNED = np.dtype([("a", np.float64), ("b", np.int32), ("c", np.complex64), ("d", np.uint8, 5)], align=True)
PACKED = np.dtype([("a", np.float64), ("c", np.complex64), ("b", np.int16), ("flag", np.bool_), ("d", np.uint8, 2)])
"""Each field is aligned in the record; the records of an array are not, as one is 21 bytes."""
UNALIGNED = np.dtype([("flag", np.bool_), ("a", np.float64)])
MATRIX = np.dtype([("i", np.int32), ("j", np.float32, (3, 2))])
NESTED = np.dtype([("n", np.int32), ("inner", PACKED)])
DATES = np.dtype([("when", "M8[s]"), ("wait", "m8[s]")])


def sample(dtype, count=5):
    """An array of *dtype* in which no two bytes next to each other are the same."""
    array = np.zeros(count, dtype)
    for number, name in enumerate(dtype.names):
        field = array[name]
        if field.dtype.names is None:
            field[...] = (np.arange(field.size).reshape(field.shape) + number + 1).astype(field.dtype)
    return array


@hip.jit
def set_fields(array, i, a, b, c):
    array[i].a = a
    array[i].b = b
    array[i].c = c


@pytest.mark.parametrize("dtype", [ALIGNED, PACKED], ids=["aligned", "packed"])
@pytest.mark.parametrize("where", ["host", "device"])
def test_fields_of_arrays(dtype, where):
    array = sample(dtype)
    expected = array.copy()
    expected[2]["a"], expected[2]["b"], expected[2]["c"] = 1.25, -3, 2 + 3j
    if where == "host":
        set_fields[1, 1](array, 2, 1.25, -3, 2 + 3j)
        np.testing.assert_array_equal(array, expected)
    else:
        on_device = hip.to_device(array)
        set_fields[1, 1](on_device, 2, 1.25, -3, 2 + 3j)
        np.testing.assert_array_equal(on_device.copy_to_host(), expected)


def test_views_of_structured_arrays():
    @hip.jit
    def double(array):
        i = hip.grid(1)
        array[i]["a"] *= 2

    array = sample(PACKED, 10)
    expected = array.copy()
    expected["a"][1::3] *= 2
    on_device = hip.to_device(array)
    double[1, 3](on_device[1::3])
    np.testing.assert_array_equal(on_device.copy_to_host(), expected)


def test_whole_records_are_copied():
    @hip.jit
    def copy(target, source):
        i = hip.grid(1)
        target[i] = source[source.size - 1 - i]

    for dtype in (ALIGNED, PACKED, MATRIX, NESTED, DATES):
        source = sample(dtype)
        target = np.zeros_like(source)
        copy[1, 5](target, source)
        np.testing.assert_array_equal(target, source[::-1])


@hip.jit
def set_record(record, a, b, c):
    record.a = a
    record.b = b
    record["c"] = c


@pytest.mark.parametrize("dtype", [ALIGNED, PACKED], ids=["aligned", "packed"])
@pytest.mark.parametrize("kind", ["element", "copy", "recarray"])
def test_a_record_as_an_argument(dtype, kind):
    array = sample(dtype)
    record = {"element": lambda: array[1], "copy": lambda: array[1].copy(), "recarray": lambda: np.rec.array(array)[1]}
    chosen = record[kind]()
    set_record[1, 1](chosen, 8.5, 7, 1j)
    assert (chosen["a"], chosen["b"], chosen["c"]) == (8.5, 7, 1j)
    np.testing.assert_array_equal(chosen["d"], array["d"][1])
    assert array["a"][0] == sample(dtype)["a"][0], "its neighbours are as they were"
    assert array["a"][1] == (8.5 if kind == "element" else sample(dtype)["a"][1])


def test_records_with_hints():
    record = sample(ALIGNED)[0]
    before = record.copy()
    set_record[1, 1](hip.In(record), 8.5, 7, 1j)
    assert record == before
    set_record[1, 1](hip.Out(record), 8.5, 7, 1j)
    assert record["a"] == 8.5
    assert (record["d"] == before["d"]).all(), "what the kernel did not write is as it was"


def test_a_record_on_a_stream():
    stream = hip.stream()
    record = sample(ALIGNED)[0]
    set_record[1, 1, stream](record, 8.5, 7, 1j)
    assert record["a"] == 8.5


def test_read_only_records():
    array = sample(ALIGNED)
    array.flags.writeable = False
    record = array[0]
    set_record[1, 1](record, 8.5, 7, 1j)
    assert record["a"] == 1
    with pytest.raises(KernelArgumentError, match="argument 'record' is InOut around an array that is read-only"):
        set_record[1, 1](hip.InOut(record), 8.5, 7, 1j)


def test_records_between_other_arguments():
    @hip.jit
    def mixed(first, record, flag, other, out):
        out[0] = first + record.i
        out[1] = other.b + flag
        out[2] = record.j[2, 1]

    out = np.zeros(3)
    mixed[1, 1](np.int8(3), sample(MATRIX)[1], True, sample(PACKED)[0], out)
    np.testing.assert_array_equal(out, [3 + 2, 3 + 1, sample(MATRIX)[1]["j"][2, 1]])


def test_records_in_tuples():
    Pair = namedtuple("Pair", "record step")

    @hip.jit
    def kernel(pair, out):
        out[0] = pair.record.a + pair.step
        pair.record.b = 9

    record, out = sample(ALIGNED)[1], np.zeros(1)
    kernel[1, 1](Pair(record, 0.5), out)
    assert out[0] == record["a"] + 0.5
    assert record["b"] == 9


def test_records_that_stay_on_the_device():
    record = hip.to_device(sample(ALIGNED)[3])
    set_record[1, 1](record, 8.5, 7, 1j)
    set_record.specialize(record, 8.5, 7, 1j)[1, 1](record, 4.5, 7, 1j)
    host = record.copy_to_host()
    assert host["a"] == 4.5
    assert record["b"] == 7
    np.testing.assert_array_equal(record["d"].copy_to_host(), sample(ALIGNED)[3]["d"])
    record["b"] = 12
    assert record["b"] == 12
    assert record.copy_to_host()["a"] == 4.5


def test_fields_of_arrays_on_the_device():
    array = sample(MATRIX)
    on_device = hip.to_device(array)
    np.testing.assert_array_equal(on_device["i"].copy_to_host(), array["i"])
    np.testing.assert_array_equal(on_device["j"].copy_to_host(), array["j"])
    on_device["i"] = np.arange(5, dtype=np.int32)
    array["i"] = np.arange(5)
    np.testing.assert_array_equal(on_device.copy_to_host(), array)
    from hip_runtime.errors import ArrayError

    with pytest.raises(ArrayError, match="no field 'x'.*i, j"):
        on_device["x"]
    with pytest.raises(ArrayError, match="no field 'x'"):
        hip.to_device(np.zeros(3))["x"]


def test_arrays_in_records():
    @hip.jit
    def kernel(array, out):
        i = hip.grid(1)
        for row in range(3):
            for column in range(2):
                out[i] += array[i].j[row, column]
                array[i].j[row, column] = i
        array[i].i = array[i].j.size

    array = sample(MATRIX)
    sums = array["j"].sum(axis=(1, 2))
    out = np.zeros(5)
    kernel[1, 5](array, out)
    np.testing.assert_array_equal(out, sums)
    np.testing.assert_array_equal(array["j"], np.broadcast_to(np.arange(5.0)[:, None, None], (5, 3, 2)))
    assert (array["i"] == 6).all()


def test_arrays_in_records_are_set_as_a_whole():
    @hip.jit
    def kernel(target, source):
        i = hip.grid(1)
        target[i].j = source[i].j
        target.j[i, 0, 0] = -1
        target[i].j[1] = 5

    source, target = sample(MATRIX), np.zeros(5, MATRIX)
    kernel[1, 5](target, source)
    expected = source["j"].copy()
    expected[:, 0, 0] = -1
    expected[:, 1] = 5
    np.testing.assert_array_equal(target["j"], expected)


def test_records_in_records():
    @hip.jit
    def kernel(array):
        i = hip.grid(1)
        array[i].inner.a = i + 0.5
        array[i].inner.d[1] = i
        array[i].n += array[i].inner.b

    array = sample(NESTED)
    array["inner"] = sample(PACKED)
    expected = array.copy()
    expected["inner"]["a"] = np.arange(5) + 0.5
    expected["inner"]["d"][:, 1] = np.arange(5)
    expected["n"] += expected["inner"]["b"]
    kernel[1, 5](array)
    np.testing.assert_array_equal(array, expected)


def test_dates_in_records():
    @hip.jit
    def kernel(array):
        i = hip.grid(1)
        array[i].when = array[i].when + array[i].wait

    array = sample(DATES)
    expected = array.copy()
    expected["when"] += expected["wait"]
    kernel[1, 5](array)
    np.testing.assert_array_equal(array, expected)


def test_fields_chosen_by_literals():
    @hip.jit
    def kernel(array, out):
        i = hip.grid(1)
        for name in ("a", "b"):
            out[i] += array[i][name]

    @hip.jit
    def unrolled(array, out):
        from numba import literal_unroll

        i = hip.grid(1)
        for name in literal_unroll(("a", "b")):
            out[i] += array[i][name]

    array, out = sample(ALIGNED), np.zeros(5)
    with pytest.raises(NumbaError):
        kernel[1, 5](array, out)
    assert (out == 0).all()


def test_atomics_on_fields():
    @hip.jit
    def kernel(array, totals):
        i = hip.grid(1)
        hip.atomic.add(array["b"], i % array.size, 1)
        hip.atomic.max(array.a, 0, float(i))
        hip.atomic.add(totals["count"], (0, 1), 2)

    array = sample(ALIGNED)
    totals = np.zeros((2, 2), [("count", np.int64), ("rest", np.float64)])
    kernel[10, 100](array, totals)
    np.testing.assert_array_equal(array["b"], sample(ALIGNED)["b"] + 200)
    assert array["a"][0] == 999
    assert totals["count"].tolist() == [[0, 2000], [0, 0]]
    assert (totals["rest"] == 0).all()


def test_local_and_shared_like_arrays_of_records():
    record = types.Record.make_c_struct([("x", types.int32), ("y", types.float64)])

    @hip.jit
    def kernel(out):
        own = hip.local.array(4, record)
        for i in range(4):
            own[i].x = i
            own[i].y = i / 2
        total = 0.0
        for i in range(4):
            total += own[i].x + own[i].y
        out[hip.grid(1)] = total

    out = np.zeros(3)
    kernel[1, 3](out)
    assert (out == 9).all()


def test_captured_records():
    table = sample(PACKED)

    @hip.jit
    def kernel(out):
        i = hip.grid(1)
        out[i] = table[i].a + table[i].b

    out = np.zeros(5)
    kernel[1, 5](out)
    np.testing.assert_array_equal(out, table["a"] + table["b"])


def test_kernels_with_signatures_for_records():
    from numba.np import numpy_support

    @hip.jit((numpy_support.from_dtype(ALIGNED), types.float64))
    def kernel(record, a):
        record.a = a

    record = sample(ALIGNED)[0]
    kernel[1, 1](record, 3)
    assert record["a"] == 3
    with pytest.raises(KernelArgumentError, match="kernel kernel was compiled for"):
        kernel[1, 1](sample(MATRIX)[0], 3.0)


@pytest.mark.parametrize("value", [np.void(b"abc"), np.zeros(1, [("o", object)])[0]], ids=["void", "object"])
def test_records_that_no_kernel_takes(value):
    with pytest.raises(KernelArgumentError, match="argument 'record' is a"):
        set_record[1, 1](value, 1.0, 2, 3j)


def test_a_missing_field():
    @hip.jit
    def kernel(record):
        record.missing = 1

    record = sample(ALIGNED)[0]
    with pytest.raises((NumbaError, KeyError), match="missing"):
        kernel[1, 1](record)
    assert record == sample(ALIGNED)[0]


@hip.jit
def swap_unaligned(records):
    i = hip.grid(1)
    if i < records.size:
        records[i].a, records[i]["b"] = records[i].b, records[i].a + 1


def test_fields_that_are_not_aligned_in_their_record():
    dtype = np.dtype([("x", "u1"), ("a", "f8"), ("y", "i2"), ("b", "f8")])
    records = np.zeros(70, dtype)
    records["a"], records["b"], records["x"] = np.arange(70), -np.arange(70), 7
    before = records.copy()
    swap_unaligned[2, 37](records)
    np.testing.assert_array_equal(records["a"], before["b"])
    np.testing.assert_array_equal(records["b"], before["a"] + 1)
    np.testing.assert_array_equal(records["x"], before["x"])
    np.testing.assert_array_equal(records["y"], before["y"])


def test_fields_of_one_record_that_are_not_aligned():
    @hip.jit
    def kernel(record):
        record.a = record.a + 1

    record = sample(UNALIGNED)[0]
    kernel[1, 1](record)
    assert record["a"] == sample(UNALIGNED)[0]["a"] + 1


ODD = np.dtype([("x", "u1"), ("a", "f8", (3,)), ("m", "i4", (2, 2)), ("b", "f8"), ("c", "c8", (2,))])
"""No element of its arrays is aligned."""


def odd_records():
    records = np.zeros(70, ODD)
    for name, step in (("a", 0.5), ("m", 3), ("b", 2), ("c", 1 - 2j)):
        records[name] = (np.arange(records[name].size) * step).reshape(records[name].shape)
    records["x"] = 7
    return records


def use_odd(records, others, out, i):
    record, other = records[i], others[i]
    out[i] = record["a"][1] + records["a"][i, 2] + records["m"][i, 1, 0] + records["b"][i] + len(record["a"])
    for value in record["a"]:
        out[i] += value
    out[i] += record["a"].sum()
    record["a"][1] = -1.5
    record["m"][1, 1] += 5
    records["c"][i, 1] = record["c"][0] * 2
    records["b"][i] += 1
    record["a"][::2] = other["a"][1:]
    other["m"] = record["m"]


def test_arrays_in_records_that_are_not_aligned():
    inner = hip.jit(use_odd)

    @hip.jit
    def kernel(records, others, out):
        i = hip.grid(1)
        if i < records.size:
            inner(records, others, out, i)
            others[i].c = records[i].c
            others[i].a[0] = records.a[i, 0] + others[i].a[1]

    records, others, out = odd_records(), odd_records()[::-1].copy(), np.zeros(70)
    plain, plain_others, expected = records.copy(), others.copy(), out.copy()
    kernel[2, 37](records, others, out)
    for i in range(70):
        use_odd(plain, plain_others, expected, i)
        plain_others[i]["c"] = plain[i]["c"]
        plain_others[i]["a"][0] = plain["a"][i, 0] + plain_others[i]["a"][1]
    for name in ODD.names:
        np.testing.assert_array_equal(records[name], plain[name])
        np.testing.assert_array_equal(others[name], plain_others[name])
    np.testing.assert_array_equal(out, expected)


def test_a_value_of_another_shape_for_an_array_in_a_record():
    @hip.jit(exceptions=True)
    def kernel(records, value):
        records[0].a = value

    records = odd_records()
    kernel[1, 1](records, np.array([5.0, 6.0, 7.0]))
    np.testing.assert_array_equal(records[0]["a"], [5, 6, 7])
    with pytest.raises(ValueError, match="a different shape"):
        kernel[1, 1](records, np.zeros(2))
    np.testing.assert_array_equal(records[0]["a"], [5, 6, 7])


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_unaligned_fields_on_amd_gpus(target):
    from numba.np import numpy_support

    kind = numpy_support.from_dtype(np.dtype([("x", "u1"), ("a", "f8"), ("y", "i2"), ("b", "f8")]))
    text, _ = hip.compile(swap_unaligned.py_func, (types.Array(kind, 1, "C"),), target=target, output="llvm")
    assert "align 1" in text

    def write(records):
        records[0].a[1] = 1

    kind = numpy_support.from_dtype(np.dtype([("x", "u1"), ("a", "f8", (3,))]))
    text, _ = hip.compile(write, (types.Array(kind, 1, "C"),), target=target, output="llvm")
    assert "store double 1.000000e+00" in text
    assert "align 1" in text


def test_nothing_leaks_where_a_kernel_with_records_raises():
    @hip.jit(exceptions=True)
    def kernel(record, array):
        record.a = 5
        array[0].a = 5
        raise ValueError("no")

    def attempt():
        record, array = sample(ALIGNED)[0], sample(ALIGNED)
        with pytest.raises(ValueError, match="no"):
            kernel[1, 1](record, array)
        assert record["a"] == 1
        assert array["a"][0] == 1
        gc.collect()

    attempt()
    free = hip.get_current_device().memory_info()[0]
    attempt()
    assert hip.get_current_device().memory_info()[0] == free


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_records_on_amd_gpus(target):
    from numba.np import numpy_support

    kind = numpy_support.from_dtype(ALIGNED)
    image, _ = hip.compile(set_record, (kind, types.float64, types.int32, types.complex64), target=target, output="asm")
    assert "global_store" in image
    assert "flat_store" not in image


@pytest.mark.parametrize("dtype", [ALIGNED, PACKED, MATRIX], ids=["aligned", "packed", "matrix"])
def test_whole_records(dtype):
    array, record = sample(dtype), np.zeros((), dtype)

    @hip.jit
    def kernel(record, array):
        record[()] = array[2]
        array[0] = record[()]

    kernel[1, 1](record, array)
    assert record == sample(dtype)[2]
    assert array[0] == array[2]
    assert record[()].tobytes() == sample(dtype)[2].tobytes()


def test_a_record_of_another_type_is_not_assigned():
    @hip.jit
    def kernel(record, array):
        record[()] = array[0]

    with pytest.raises(NumbaError, match="setitem"):
        kernel[1, 1](np.zeros((), ALIGNED), np.zeros(1, DATES))


def test_fields_by_their_numbers():
    @hip.jit
    def kernel(records):
        records[0][1], records[0]["number"], records[1][0] = 7, 2.5, 3.5

    packed = np.zeros(2, [("number", "f4"), ("count", "i8")])
    kernel[1, 1](packed)
    assert packed.tolist() == [(2.5, 7), (3.5, 0)]
    nested = np.zeros(1, [("flag", "i1"), ("values", "f8", 2)])

    @hip.jit
    def assign(records, values):
        records[0][1] = values

    assign[1, 1](nested, np.array([1.0, 2.0]))
    assert nested["values"].tolist() == [[1, 2]]
