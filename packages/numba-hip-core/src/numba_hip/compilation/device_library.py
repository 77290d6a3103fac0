"""What a kernel for an AMD GPU needs of the device library: OCML's math and OCKL's block operations.

hip-devicelib has each function of HIP's header under a symbol of its own. The lowering of the kernel language calls
some by their names, and a kernel that names a function of HIP's calls its symbol.
"""

from __future__ import annotations

from collections.abc import Iterable

from llvmlite import binding as llvm

import hip_devicelib
from hip_devicelib import Library
from hip_devicelib.errors import NotFoundError
from hip_devicelib.target import Target


def link_device_library(bitcode: bytes, target: str | Target) -> bytes:
    """*bitcode* with the functions of the device library that it calls, optimised again; as it is where it calls none.

    Raises `hip_devicelib.errors.NotFoundError` where there is no ROCm to make the library of, and for a function that
    the library lacks.
    """
    missing = hip_devicelib.undefined_symbols(bitcode)
    if not missing:
        return bitcode
    try:
        library = hip_devicelib.supply_library(target)
    except NotFoundError as error:
        raise NotFoundError(f"the kernel calls {', '.join(missing)} of ROCm's device library: {error}") from error
    forwards = write_forwards(missing, library)
    return hip_devicelib.optimise(
        [bitcode, forwards], target, libraries=[library.bitcode], keep=_visible_variables(bitcode)
    )


def _visible_variables(bitcode: bytes) -> list[str]:
    """Names of the variables that *bitcode* defines for others to see, as its kernels are."""
    return [
        variable.name
        for variable in llvm.parse_bitcode(bitcode).global_variables
        if not variable.is_declaration and variable.linkage is llvm.Linkage.external
    ]


def write_forwards(names: Iterable[str], library: Library) -> str:
    """LLVM IR that defines each of *names* as a call of what *library* has under that name.

    Names that are symbols of the library need no such thing.
    """
    functions = {function.name: function for function in library.functions}
    symbols = {function.symbol for function in library.functions}
    lines: list[str] = []
    for name in names:
        if name in symbols:
            continue
        function = functions.get(name)
        if function is None:
            raise NotFoundError(f"the device library for {library.target} has no function {name!r}")
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
