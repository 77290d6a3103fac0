"""``debug``: variables by name, type and place, read back from the code by a reader of DWARF that is not ours."""

import io

import numpy as np
import pytest
from elftools.dwarf.dwarf_expr import DWARFExprParser
from elftools.dwarf.locationlists import LocationExpr, LocationParser
from elftools.elf.elffile import ELFFile
from numba.core import types

import numba_hip as hip
from hip_devicelib import find_rocm, kernel_metadata
from hip_devicelib.errors import NotFoundError
from hip_devicelib.linkers import find_linkers


def has_linker():
    try:
        rocm = find_rocm()
    except NotFoundError:
        rocm = None
    return next(find_linkers(rocm), None) is not None


pytestmark = pytest.mark.skipif(not has_linker(), reason="needs ld.lld or ziglang")

TARGETS = ["gfx90a", "gfx1100"]
SIGNATURE = "(float32[::1], int32, boolean, complex64, Tuple((int8, float64)), int16[:, :])"


@hip.jit(device=True, debug=True)
def product_of(a, b):
    product = a * b
    return product


@hip.jit(device=True, lineinfo=True)
def shifted(value):
    moved = value + 1
    return moved


@hip.jit(debug=True)
def kernel(x, n, flag, z, pair, table):
    tile = hip.shared.array((4, 16), np.float32)
    i = hip.grid(1)
    tile[0, i % 16] = x[i]
    hip.syncthreads()
    total = np.float32(0)
    for j in range(n):
        total += product_of(tile[0, j], tile[0, 15 - j])
        if flag:
            total += shifted(pair[1])
    w = z * total
    x[i] = w.real + w.imag + table[0, pair[0]]


class Variables:
    """What an object says about the variables of each function of this file."""

    def __init__(self, image):
        self.dwarf = ELFFile(io.BytesIO(image)).get_dwarf_info()
        self.locations = LocationParser(self.dwarf.location_lists())
        self.found = {}
        for unit in self.dwarf.iter_CUs():
            for die in unit.iter_DIEs():
                if die.tag in ("DW_TAG_formal_parameter", "DW_TAG_variable"):
                    function = self.name(die.get_parent())
                    entry = self.found.setdefault(function, {}).setdefault(self.name(die), {})
                    entry["tag"] = die.tag.removeprefix("DW_TAG_")
                    entry["type"] = self.origin(die).get_DIE_from_attribute("DW_AT_type")
                    entry["operations"] = entry.get("operations", set()) | self.operations(die)

    def origin(self, die):
        if "DW_AT_abstract_origin" in die.attributes:
            return self.origin(die.get_DIE_from_attribute("DW_AT_abstract_origin"))
        return die

    def name(self, die):
        return self.origin(die).attributes["DW_AT_name"].value.decode()

    def operations(self, die):
        """Names of the operations of DWARF that tell where it is."""
        attribute = die.attributes.get("DW_AT_location")
        if attribute is None:
            return set()
        where = self.locations.parse_from_attribute(attribute, die.cu["version"], die)
        expressions = [where] if isinstance(where, LocationExpr) else where
        parser = DWARFExprParser(die.cu.structs)
        return {operation.op_name for one in expressions for operation in parser.parse_expr(one.loc_expr)}


def describe(die):
    """A type, in short: name and bytes; members with their places."""
    attributes = die.attributes
    kind = die.tag.removeprefix("DW_TAG_").removesuffix("_type")
    if kind == "base":
        return attributes["DW_AT_name"].value.decode(), attributes["DW_AT_encoding"].value
    if kind == "pointer":
        return "pointer", describe(die.get_DIE_from_attribute("DW_AT_type"))
    if kind == "array":
        (bounds,) = die.iter_children()
        return bounds.attributes["DW_AT_count"].value, describe(die.get_DIE_from_attribute("DW_AT_type"))
    assert kind == "structure"
    return attributes["DW_AT_byte_size"].value, {
        member.attributes["DW_AT_name"].value.decode(): (
            member.attributes["DW_AT_data_member_location"].value,
            describe(member.get_DIE_from_attribute("DW_AT_type")),
        )
        for member in die.iter_children()
    }


BOOLEAN, FLOAT, SIGNED = 2, 4, 5  # DWARF 5, table 7.11
F32, F64, I64 = ("float32", FLOAT), ("float64", FLOAT), ("int64", SIGNED)


def array_of(element, dimensions):
    places = {"nitems": (16, I64), "itemsize": (24, I64), "data": (32, ("pointer", element))}
    extents = dimensions, I64
    return 40 + 16 * dimensions, {**places, "shape": (40, extents), "strides": (40 + 8 * dimensions, extents)}


PARAMETERS = {
    "x": array_of(F32, 1),
    "n": ("int32", SIGNED),
    "flag": ("bool", BOOLEAN),
    "z": (8, {"real": (0, F32), "imag": (4, F32)}),
    "pair": (16, {"f0": (0, ("int8", SIGNED)), "f1": (8, F64)}),
    "table": array_of(("int16", SIGNED), 2),
}
LOCALS = {"tile": array_of(F32, 2), "i": I64, "total": None, "w": None}


@pytest.mark.sample(1)
@pytest.mark.parametrize("opt", [True, False])
@pytest.mark.parametrize("target", TARGETS)
def test_variables_and_their_types(target, opt):
    image, _ = hip.compile(kernel, SIGNATURE, target=target, output="codeobject", opt=opt)
    variables = Variables(image).found
    own = variables["kernel"]
    for name, expected in PARAMETERS.items():
        assert own[name]["tag"] == "formal_parameter"
        assert describe(own[name]["type"]) == expected
    for name, expected in LOCALS.items():
        assert own[name]["tag"] == "variable"
        assert expected in (None, describe(own[name]["type"]))
    assert {name: describe(one["type"]) for name, one in variables["product_of"].items()} == {
        "a": F32, "b": F32, "product": F32
    }  # fmt: skip
    assert "shifted" not in variables, "its lines are asked for, not its variables"


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", TARGETS)
def test_not_optimised_each_has_its_place_in_memory(target):
    image, _ = hip.compile(kernel, SIGNATURE, target=target, output="codeobject", opt=False)
    found = Variables(image).found
    for name, one in [*found["kernel"].items(), *found["product_of"].items()]:
        assert one["operations"] == {"DW_OP_fbreg"}, name


@pytest.mark.long
def test_optimised_they_are_in_registers_where_they_are_anywhere():
    for target in TARGETS:
        image, _ = hip.compile(kernel, SIGNATURE, target=target, output="codeobject")
        own = Variables(image).found["kernel"]
        assert "DW_OP_regx" in own["total"]["operations"], "all versions of it are one variable"
        assert "DW_OP_regx" in own["i"]["operations"]
        assert not [name for name in own if "$" in name]
        assert not [name for name, one in own.items() if "DW_OP_fbreg" in one["operations"]]


@pytest.mark.sample(1)
@pytest.mark.parametrize("target", TARGETS)
def test_optimised_code_takes_no_more_for_them(target):
    plain, described = (
        kernel_metadata.read_kernels(
            hip.compile(kernel.py_func, SIGNATURE, target=target, output="codeobject", **options)[0]
        )[0]
        for options in ({"exceptions": True, "lineinfo": True}, {"debug": True})
    )
    assert described.private_bytes == plain.private_bytes == 0
    assert described.vector_registers <= plain.vector_registers + 2
    assert described.shared_bytes == plain.shared_bytes == 256


def test_the_same_every_time():
    first, second = (hip.compile(kernel, SIGNATURE, target="gfx942", output="codeobject")[0] for _ in range(2))
    assert first == second


def test_whatever_was_compiled_before():
    def multiply(z):
        z[0] = z[1] * z[2]  # by a function of Numba's own

    images = [
        [hip.compile(multiply, "(complex64[::1],)", target="gfx90a:xnack+", output="object", **{option: True})[0]
         for option in order]
        for order in (("lineinfo", "debug", "opt"), ("opt", "debug", "lineinfo"))
    ]  # fmt: skip
    assert images[0] == images[1][::-1]


def test_lines_alone_describe_no_variable():
    image, _ = hip.compile(kernel.py_func, SIGNATURE, target="gfx942", output="codeobject", lineinfo=True)
    assert set(Variables(image).found) <= {"product_of"}, "which asks for its own"


def test_types_that_are_not_numbers():
    @hip.jit(debug=True)
    def show(when, record):
        later = when
        record["seen"] = later == when

    when, record = types.NPDatetime("s"), hip_record()
    code = show.compile((when, record), target="gfx90a")
    (own,) = [found for name, found in Variables(code.code_object.image).found.items() if name.endswith("show")]
    assert describe(own["when"]["type"]) == ("datetime64[s]", SIGNED)
    assert own["later"]["tag"] == "variable"
    assert own["record"]["tag"] == "formal_parameter"


def hip_record():
    from numba import from_dtype

    return from_dtype(np.dtype([("seen", np.bool_), ("value", np.float32)], align=True))
