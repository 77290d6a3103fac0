"""Debug locations for instructions written with llvmlite's builder, for kernels whose bitcode has them.

All generated code is in functions of ours. Each gets a subprogram, and each instruction a location in it, in whatever
file that is: inlining keeps such locations, as it does those of functions that were not read.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir

DWARF_VERSION = 4
"""That of Numba's line tables, with which these are linked; `line_table` reads it."""

_WARN = 2  # LLVM's behaviour when modules with other flags are linked


def keep_lines(builder: ir.IRBuilder) -> None:
    """Give the function of *builder* debug information. Instructions have no location at first."""
    function, module = builder.function, builder.module
    unit, file = _unit(module), _file(module, module.name)
    kind = module.add_debug_info("DISubroutineType", {"types": module.add_metadata([])})
    subprogram = module.add_debug_info(
        "DISubprogram",
        {
            "name": function.name, "scope": file, "file": file, "line": 0, "type": kind, "scopeLine": 0,
            "isLocal": True, "isDefinition": True, "isOptimized": True, "unit": unit,
        },
        is_distinct=True,
    )  # fmt: skip
    function.set_metadata("dbg", subprogram)
    stand_at(builder, "")


def stand_at(builder: ir.IRBuilder, location: str) -> None:
    """Set the location, ``file:line``, of the instructions that *builder* writes from now on, if its function has debug
    information; an empty one is no location."""
    scope = builder.function.metadata.get("dbg")
    if scope is not None:
        file, _, line = location.rpartition(":")
        if file and line.isdigit():
            fields = {"scope": scope, "file": _file(builder.module, file), "discriminator": 0}
            scope = builder.module.add_debug_info("DILexicalBlockFile", fields)
        number = int(line) if file and line.isdigit() else 0
        fields = {"line": number, "column": 0, "scope": scope}
        builder.debug_metadata = builder.module.add_debug_info("DILocation", fields)


def _file(module: ir.Module, name: str) -> Any:
    return module.add_debug_info("DIFile", {"filename": name, "directory": ""})


def _unit(module: ir.Module) -> Any:
    """The compile unit of *module*, created if it has none yet."""
    known = module.namedmetadata.get("llvm.dbg.cu")
    if known is not None:
        return known.operands[0]
    unit = module.add_debug_info(
        "DICompileUnit",
        {
            "language": ir.DIToken("DW_LANG_C_plus_plus"), "file": _file(module, module.name), "producer": "spmd",
            "runtimeVersion": 0, "isOptimized": True, "emissionKind": ir.DIToken("LineTablesOnly"),
        },
        is_distinct=True,
    )  # fmt: skip
    module.add_named_metadata("llvm.dbg.cu", unit)
    number = ir.IntType(32)
    for name, value in (("Dwarf Version", DWARF_VERSION), ("Debug Info Version", 3)):
        flag = module.add_metadata([number(_WARN), ir.MetaDataString(module, name), number(value)])
        module.add_named_metadata("llvm.module.flags", flag)
    return unit
