"""Kernels read back from an ELF object or a linked code object for an AMD GPU.

The data for a launch is in a note of the ELF file (``NT_AMDGPU_METADATA``, MessagePack) and in a kernel descriptor of
64 bytes for each kernel. LLVM's "User Guide for AMDGPU Backend" describes both, in the sections "Code Object Metadata"
and "Kernel Descriptor". Bytes that do not follow it raise `CodeObjectError`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import msgpack

from hip_devicelib.codeobject import CodeObject, Kernel, Parameter, lay_out
from hip_devicelib.elf import ElfFile, read_elf
from hip_devicelib.errors import CodeObjectError, UnknownTargetError, UnsupportedError
from hip_devicelib.target import parse_target

_NT_AMDGPU_METADATA = 32
_NOTE_OWNER = b"AMDGPU"
_DESCRIPTOR_BYTES = 64
_LARGEST_NUMBER = 1 << 40
_DYNAMIC_STACK = ".uses_dynamic_stack"
_TYPES_BY_SIZE = {1: "i8", 2: "i16", 4: "i32", 8: "i64"}
_POINTER_KINDS = frozenset({"global_buffer", "dynamic_shared_pointer"})

T = TypeVar("T")


def read_target(image: bytes) -> str:
    """The target ID that *image* was made for, such as ``gfx90a:xnack+``. Raises `CodeObjectError`."""
    name = _field(read_metadata(read_elf(image)), "amdhsa.target", str)
    try:
        return parse_target(name).id
    except (UnknownTargetError, UnsupportedError) as error:
        raise CodeObjectError(f"metadata: amdhsa.target is {name!r}: {error}") from None


def read_kernels(image: bytes, signatures: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> tuple[Kernel, ...]:
    """The kernels of *image*, a relocatable object or a linked code object, in the order of its metadata.

    Parameters are the explicit ones. ``argument_bytes`` ends with the last of them, so hidden arguments, which the
    runtime adds, are not counted. Machine code has no parameter types: the type is ``ptr`` if the metadata says so,
    otherwise the integer of that size, or ``[N x i8]`` for a size that no scalar has. For the kernels that *signatures*
    names, it gives the names and LLVM types of the parameters, which are used after a check that their positions match
    the code. Raises `CodeObjectError` for a damaged image or a signature that does not match.
    """
    elf = read_elf(image)
    entries = _field(read_metadata(elf), "amdhsa.kernels", list)
    kernels = tuple(_read_kernel(elf, _checked(entry, dict, "amdhsa.kernels[]")) for entry in entries)
    return tuple(_with_signature(kernel, (signatures or {}).get(kernel.name)) for kernel in kernels)


@dataclass(frozen=True)
class Spills:
    """The numbers of spilled vector and scalar registers, which code without enough registers keeps in memory at times,
    and of accumulation registers, which CDNA GPUs have besides the vector registers."""

    vector: int
    scalar: int
    accumulation_registers: int


def read_spills(image: bytes, name: str) -> Spills:
    """The spills of the kernel *name* of *image*, from its metadata. Raises `CodeObjectError`."""
    for item in _field(read_metadata(read_elf(image)), "amdhsa.kernels", list):
        entry = _checked(item, dict, "amdhsa.kernels[]")
        if _field(entry, ".name", str) == name:
            accumulation = _number(entry, ".agpr_count") if ".agpr_count" in entry else 0
            return Spills(_number(entry, ".vgpr_spill_count"), _number(entry, ".sgpr_spill_count"), accumulation)
    raise CodeObjectError(f"the metadata has no kernel {name!r}")


def describe(image: bytes, signatures: Mapping[str, Sequence[tuple[str, str]]] | None = None) -> CodeObject:
    """The `CodeObject` of a linked *image*: its target and its kernels. Raises as `read_kernels` does."""
    return CodeObject(read_target(image), image, read_kernels(image, signatures))


def read_metadata(elf: ElfFile) -> dict[str, Any]:
    """The metadata of a file that has not been checked. Raises `CodeObjectError`."""
    for owner, kind, description in elf.notes():
        if owner == _NOTE_OWNER and kind == _NT_AMDGPU_METADATA:
            try:
                data = msgpack.unpackb(description, strict_map_key=True, timestamp=0)
            except (ValueError, msgpack.UnpackException) as error:
                raise CodeObjectError(
                    f"the metadata note is not MessagePack: {error or type(error).__name__}"
                ) from None
            return dict(_checked(data, dict, "metadata"))
    raise CodeObjectError("this ELF file has no AMDGPU metadata note: it is not code for an AMD GPU")


def _read_kernel(elf: ElfFile, entry: dict[str, Any]) -> Kernel:
    name = _field(entry, ".name", str)
    parameters = tuple(_read_parameters(entry))
    shared, private = _number(entry, ".group_segment_fixed_size"), _number(entry, ".private_segment_fixed_size")
    _check_descriptor(elf, _field(entry, ".symbol", str), shared, private)
    return Kernel(
        name,
        parameters,
        argument_bytes=max((parameter.offset + parameter.size for parameter in parameters), default=0),
        shared_bytes=shared,
        private_bytes=private,
        wave_size=_number(entry, ".wavefront_size"),
        max_block_threads=_number(entry, ".max_flat_workgroup_size"),
        vector_registers=_number(entry, ".vgpr_count"),
        scalar_registers=_number(entry, ".sgpr_count"),
        has_dynamic_stack=_field(entry, _DYNAMIC_STACK, bool) if _DYNAMIC_STACK in entry else False,
    )


def _read_parameters(entry: dict[str, Any]) -> list[Parameter]:
    parameters = []
    arguments = _field(entry, ".args", list) if ".args" in entry else []
    for number, item in enumerate(arguments):
        argument = _checked(item, dict, ".args[]")
        kind = _field(argument, ".value_kind", str)
        if kind.startswith("hidden_"):
            continue
        size = _number(argument, ".size")
        name = _field(argument, ".name", str) if ".name" in argument else f"arg{number}"
        scalar = "ptr" if kind in _POINTER_KINDS and size == 8 else _TYPES_BY_SIZE.get(size, f"[{size} x i8]")
        parameters.append(Parameter(name, scalar, _number(argument, ".offset"), size))
    return parameters


def _check_descriptor(elf: ElfFile, symbol: str, shared: int, private: int) -> None:
    """Check that the kernel descriptor exists and agrees with the metadata."""
    descriptor = elf.symbol_bytes(symbol, _DESCRIPTOR_BYTES)
    found = struct.unpack_from("<II", descriptor)
    if found != (shared, private):
        raise CodeObjectError(
            f"kernel descriptor {symbol!r} has {found[0]} and {found[1]} bytes of shared and private memory; "
            f"the metadata says {shared} and {private}"
        )


def _with_signature(kernel: Kernel, signature: Sequence[tuple[str, str]] | None) -> Kernel:
    if signature is None:
        return kernel
    parameters, end = lay_out(signature)
    expected = [(parameter.offset, parameter.size) for parameter in parameters]
    found = [(parameter.offset, parameter.size) for parameter in kernel.parameters]
    if expected != found:
        raise CodeObjectError(
            f"kernel {kernel.name!r}: its parameters lie at (offset, size) {found}, the signature says {expected}"
        )
    return replace(kernel, parameters=parameters, argument_bytes=end)


def _checked(value: object, kind: type[T], what: str) -> T:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise CodeObjectError(f"metadata: {what} is a {type(value).__name__}, not a {kind.__name__}")
    return value


def _field(entry: Mapping[str, Any], key: str, kind: type[T]) -> T:
    if key not in entry:
        raise CodeObjectError(f"metadata: {key} is missing")
    return _checked(entry[key], kind, key)


def _number(entry: Mapping[str, Any], key: str) -> int:
    number = _field(entry, key, int)
    if not 0 <= number < _LARGEST_NUMBER:
        raise CodeObjectError(f"metadata: {key} is {number}")
    return number
