"""Links the device library into kernels for AMD GPUs: OCML's math and OCKL's block operations.

hip-devicelib gives each function of HIP's header its own symbol. The lowering of the kernel language calls some of them
by name, and a kernel that uses a function of HIP calls its symbol.
"""

from __future__ import annotations

from collections.abc import Mapping

from llvmlite import binding as llvm

import hip_devicelib
from hip_devicelib import Library
from hip_devicelib.declarations import SYMBOL_PREFIX, FunctionDeclaration
from hip_devicelib.errors import NotFoundError, UnsupportedError
from hip_devicelib.manifest import load_reference
from hip_devicelib.target import Target

LIBRARIES = ("__ocml_", "__ockl_", "__oclc_")
"""What the names of the functions and variables of ROCm's bitcode begin with."""


def link_device_library(bitcode: bytes, target: str | Target) -> bytes:
    """*bitcode* linked with the functions of the device library that it calls, and optimised again; unchanged if it
    calls none.

    Raises `hip_devicelib.errors.NotFoundError` if there is no ROCm to build the library from, or the library lacks a
    function.
    """
    missing = hip_devicelib.undefined_symbols(bitcode)
    if not missing:
        return bitcode
    try:
        library = hip_devicelib.supply_library(target)
    except NotFoundError as error:
        raise NotFoundError(f"the kernel calls {', '.join(missing)} of ROCm's device library: {error}") from error
    types = {function.name: str(function.global_value_type) for function in llvm.parse_bitcode(bitcode).functions}
    forwards = write_forwards({name: types[name] for name in missing}, library)
    return hip_devicelib.optimise(
        [bitcode, forwards], target, libraries=[library.bitcode], keep=_visible_variables(bitcode)
    )


def has_function(target: Target, name: str) -> bool:
    """Whether the device library for *target* has the function *name*: by the declarations that are shipped, or by the
    header of the ROCm of this machine, if there is one."""
    shipped = load_reference()
    if name in shipped.by_name or name in shipped.by_symbol or name.startswith((SYMBOL_PREFIX, *LIBRARIES)):
        return True
    try:
        library = hip_devicelib.supply_library(target)
    except (NotFoundError, UnsupportedError):
        return False
    return any(name in (function.name, function.symbol) for function in library.functions)


def _visible_variables(bitcode: bytes) -> list[str]:
    """Names of the variables that *bitcode* defines with external linkage, as its kernels are."""
    return [
        variable.name
        for variable in llvm.parse_bitcode(bitcode).global_variables
        if not variable.is_declaration and variable.linkage is llvm.Linkage.external
    ]


def write_forwards(types: Mapping[str, str], library: Library) -> str:
    """LLVM IR that defines each name in *types* as a call of the function of *library* with that name and LLVM type.

    Names that are symbols of the library need no definition.
    """
    symbols = {function.symbol for function in library.functions}
    lines: list[str] = []
    for name, wanted in types.items():
        if name in symbols:
            continue
        function = _find_function(library, name, wanted)
        result, parameters = function.result.llvm, [parameter.type.llvm for parameter in function.parameters]
        passed = ", ".join(f"{kind} %{number}" for number, kind in enumerate(parameters))
        gives = result != "void"
        convergent = " convergent" if "convergent" in function.attributes else ""
        lines += [
            f"declare {result} @{function.symbol}({', '.join(parameters)}){convergent}",
            f"define {result} @{name}({passed}) alwaysinline{convergent} {{",
            f"  {'%result = ' if gives else ''}call {result} @{function.symbol}({passed})",
            f"  ret {result}{' %result' if gives else ''}",
            "}",
        ]
    return "\n".join(lines)


def _find_function(library: Library, name: str, wanted: str) -> FunctionDeclaration:
    overloads = [function for function in library.functions if function.name == name]
    if not overloads:
        raise NotFoundError(f"the device library for {library.target} has no function {name!r}")
    for function in overloads:
        if function.llvm_type == wanted:
            return function
    found = ", ".join(function.llvm_type for function in overloads)
    raise NotFoundError(f"the device library for {library.target} has {name!r} as {found}; not as {wanted}")
