import pytest
from devicelib_samples import SAXPY, kernel_around
from hypothesis import given, settings
from hypothesis import strategies as st

import hip_devicelib as hip
from hip_devicelib import CodeObjectError, Parameter
from hip_devicelib.elf import read_elf

IMAGE = hip.object_code(hip.optimise(SAXPY, "gfx90a:xnack+"), "gfx90a:xnack+")
SIGNATURES = {"saxpy": [("out", "ptr"), ("flag", "i8"), ("n", "i64"), ("h", "half"), ("a", "double")]}


def test_kernels_are_read_back() -> None:
    saxpy, small = hip.read_kernels(IMAGE)
    assert saxpy.parameters == (
        Parameter("out", "ptr", 0, 8),
        Parameter("flag", "i8", 8, 1),
        Parameter("n", "i64", 16, 8),
        Parameter("h", "i16", 24, 2),
        Parameter("a", "i64", 32, 8),
    )
    assert (saxpy.argument_bytes, saxpy.shared_bytes, saxpy.private_bytes) == (40, 256, 0)
    assert saxpy.vector_registers is not None
    assert 1 <= saxpy.vector_registers <= 512
    assert saxpy.scalar_registers is not None
    assert 1 <= saxpy.scalar_registers <= 112
    assert (small.name, small.argument_bytes, small.max_block_threads) == ("small", 8, 256)


def test_signatures_give_the_types() -> None:
    saxpy, small = hip.read_kernels(IMAGE, SIGNATURES)
    assert (saxpy.parameters, saxpy.argument_bytes) == hip.lay_out(SIGNATURES["saxpy"])
    assert [parameter.type for parameter in small.parameters] == ["ptr"]


def test_a_signature_that_does_not_fit_is_an_error() -> None:
    with pytest.raises(CodeObjectError, match="'saxpy': its parameters lie at"):
        hip.read_kernels(IMAGE, {"saxpy": [("out", "ptr"), ("flag", "i32")]})


def test_describe_makes_a_code_object() -> None:
    code = hip.describe(IMAGE, SIGNATURES)
    assert (code.target, code.image, len(code.kernels)) == ("gfx90a:xnack+", IMAGE, 2)
    assert code.kernel("saxpy").parameters[4].type == "double"
    with pytest.raises(CodeObjectError, match=r"no kernel 'nobody'.*saxpy, small"):
        code.kernel("nobody")


def test_private_memory_and_structures() -> None:
    source = kernel_around(
        "%a = alloca [100 x i32], addrspace(5)\n %q = getelementptr i32, ptr addrspace(5) %a, i32 %i\n"
        " store volatile i32 %i, ptr addrspace(5) %q",
        parameters="ptr addrspace(4) byref({i32, [3 x double]}) %s, i32 %i, ptr addrspace(1) %p",
    )
    (kernel,) = hip.read_kernels(hip.object_code(hip.optimise(source, "gfx1201"), "gfx1201"))
    assert 400 <= kernel.private_bytes < 500
    assert [(p.name, p.type, p.offset, p.size) for p in kernel.parameters] == [
        ("s", "[32 x i8]", 0, 32),
        ("i", "i32", 32, 4),
        ("p", "ptr", 40, 8),
    ]


@pytest.mark.parametrize("calls_itself", [False, True])
def test_whether_the_stack_of_a_thread_has_a_known_size(calls_itself: bool) -> None:
    rest = "call i32 @down(i32 %less)" if calls_itself else "add i32 %less, 5"
    before = f"""
    define i32 @down(i32 %n) noinline {{
      %end = icmp eq i32 %n, 0
      br i1 %end, label %last, label %more
    more:
      %less = sub i32 %n, 3
      %rest = {rest}
      %sum = add i32 %rest, %n
      %odd = xor i32 %sum, %rest
      ret i32 %odd
    last:
      ret i32 1
    }}"""
    source = kernel_around("%x = call i32 @down(i32 %i)\n store i32 %x, ptr addrspace(1) %p", before=before)
    (kernel,) = hip.read_kernels(hip.object_code(hip.optimise(source, "gfx90a"), "gfx90a"))
    assert kernel.has_dynamic_stack is calls_itself


def test_a_kernel_without_parameters() -> None:
    image = hip.object_code(hip.optimise(kernel_around("", parameters=""), "gfx942"), "gfx942")
    (kernel,) = hip.read_kernels(image)
    assert (kernel.parameters, kernel.argument_bytes) == ((), 0)


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"MZ" * 200, bytes(64), "text", None])
def test_what_is_no_elf_file(data: object) -> None:
    with pytest.raises(CodeObjectError, match="ELF"):
        hip.read_kernels(data)  # type: ignore[arg-type]


def test_an_elf_file_for_another_machine() -> None:
    with pytest.raises(CodeObjectError, match="machine 62"):
        hip.read_kernels(IMAGE[:18] + (62).to_bytes(2, "little") + IMAGE[20:])


def test_an_elf_file_without_metadata() -> None:
    with pytest.raises(CodeObjectError, match="no AMDGPU metadata note"):
        hip.read_kernels(IMAGE.replace(b"AMDGPU\0", b"OTHERS\0"))


def test_metadata_and_descriptor_must_agree() -> None:
    first = IMAGE.index(read_elf(IMAGE).symbol_bytes("saxpy.kd", 64))
    with pytest.raises(CodeObjectError, match=r"descriptor 'saxpy.kd' has 512 and 0"):
        hip.read_kernels(IMAGE[:first] + (512).to_bytes(4, "little") + IMAGE[first + 4 :])


def test_a_target_that_does_not_exist() -> None:
    damaged = IMAGE.replace(b"amdhsa--gfx90a", b"amdhsa--gfx90b")
    with pytest.raises(CodeObjectError, match=r"amdhsa\.target is .*gfx90b"):
        hip.read_target(damaged)


def read_or_refuse(data: bytes) -> bool:
    """Whether *data* could be read. Anything but a `CodeObjectError` fails the test."""
    try:
        hip.describe(data)
    except CodeObjectError:
        return False
    return True


def test_every_truncation_is_refused() -> None:
    # The section table is the last thing in the file: no shorter file is whole.
    assert read_or_refuse(IMAGE)
    assert not any(read_or_refuse(IMAGE[:length]) for length in range(len(IMAGE)))


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(IMAGE) - 1), st.integers(0, 255)), min_size=1, max_size=8))
def test_damage_never_escapes_as_another_error(changes: list[tuple[int, int]]) -> None:
    damaged = bytearray(IMAGE)
    for position, value in changes:
        damaged[position] = value
    read_or_refuse(bytes(damaged))


def test_damage_of_every_byte_of_header_note_and_symbols() -> None:
    refused = 0
    for position in range(len(IMAGE)):
        damaged = bytearray(IMAGE)
        damaged[position] ^= 0xFF
        refused += not read_or_refuse(bytes(damaged))
    assert refused > 200
