import contextlib
import time

import pytest
from devicelib_samples import run_python
from hypothesis import given, settings
from hypothesis import strategies as st

from hip_devicelib import ManifestError, Rocm
from hip_devicelib.declarations import (
    CType,
    Declarations,
    FunctionDeclaration,
    Omission,
    ParameterDeclaration,
    make_symbol,
)
from hip_devicelib.header_parser import parse_header
from hip_devicelib.hip_header import read_header
from hip_devicelib.manifest import load, load_reference, save

FLOAT = CType("float", "float", 32)
POINTER = CType("const float *", "pointer", 64, element=FLOAT, const=True)
SMALL = Declarations(
    (
        FunctionDeclaration(
            "f",
            "",
            FLOAT,
            (ParameterDeclaration("x", FLOAT, "value"), ParameterDeclaration("p", POINTER, "in")),
            "hipdl_f__f32_pf32",
        ),
        FunctionDeclaration("g", "std", FLOAT, (), "hipdl_std__g__v", ("const", "pure"), False, ("int",)),
    ),
    (Omission("h", "int (...)", "variable"),),
    "0" * 64,
    "6.4.1",
)


def test_what_is_saved_is_loaded() -> None:
    data = save(SMALL)
    assert load(data) == SMALL
    assert save(load(data)) == data


def test_the_shipped_manifest_is_whole_and_quick() -> None:
    start = time.process_time()
    declarations = load_reference.__wrapped__()
    assert time.process_time() - start < 0.2  # 6 ms, of this process alone
    assert load_reference() == declarations
    assert load(save(declarations)) == declarations
    assert len(declarations.functions) >= 1300
    assert len(declarations.by_symbol) == len(declarations.functions)
    for function in declarations.functions:
        types = tuple(parameter.type for parameter in function.parameters)
        assert function.symbol == make_symbol(function.name, function.namespace, types, function.template_arguments)
    assert {item.reason for item in declarations.omissions} != set()


def test_loading_needs_no_libclang() -> None:
    done = run_python(
        "import sys, hip_devicelib.manifest as m\n"
        "print(len(m.load_reference().functions)); assert 'clang' not in sys.modules and 'llvmlite' not in sys.modules"
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(load_reference().functions)


def test_another_format_is_refused() -> None:
    import json
    import zlib

    with pytest.raises(ManifestError, match="format 99; this version reads 1"):
        load(zlib.compress(json.dumps({"format": 99}).encode()))


@pytest.mark.parametrize("data", [b"", b"{}", b"\0" * 100])
def test_what_is_no_manifest(data: bytes) -> None:
    with pytest.raises(ManifestError, match="damaged manifest"):
        load(data)


def test_every_truncation_is_refused() -> None:
    data = save(SMALL)
    for length in range(len(data)):
        with pytest.raises(ManifestError):
            load(data[:length])


@settings(max_examples=300, deadline=None)
@given(st.integers(0, len(save(SMALL)) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused(position: int, change: int) -> None:
    data = bytearray(save(SMALL))
    data[position] ^= change
    with contextlib.suppress(ManifestError):
        assert load(bytes(data)) == SMALL, "a few bits mean nothing; a changed declaration is never believed"


@pytest.mark.usefixtures("libclang")
def test_the_shipped_manifest_says_what_the_header_says(real_rocm: Rocm) -> None:
    header = read_header(real_rocm)
    if header.version != load_reference().version:
        pytest.skip(f"the shipped manifest is of ROCm {load_reference().version}, this is {header.version}")
    assert parse_header(header) == load_reference()
