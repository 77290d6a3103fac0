"""Parses the text of HIP's header into declarations, with libclang.

The header is parsed for one fixed GPU: its declarations do not depend on it, and PyPI's libclang (LLVM 18) does not
know newer GPUs. It does not know all functions that newer headers call in function bodies either, so errors there are
ignored: only declarations are needed, and bodies are compiled by ROCm. libclang, which the extra `EXTRA` installs, is
loaded when `parse_header` is called, not when this module is imported.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from hip_devicelib.declarations import (
    CType,
    Declarations,
    FunctionDeclaration,
    Intent,
    Omission,
    ParameterDeclaration,
    make_symbol,
)
from hip_devicelib.errors import HeaderError, MissingExtraError
from hip_devicelib.hip_header import Header

Cursor: TypeAlias = Any
ClangType: TypeAlias = Any

EXTRA = "hip-devicelib[headers]"
"""The extra that installs libclang."""

MACROS = ("HIP_ENABLE_WARP_SYNC_BUILTINS",)
"""Macros that are always defined when the header is compiled: it hides ``__shfl_sync`` and the like behind this one."""

FLAGS = (
    "-x", "hip", "--cuda-device-only", "--offload-arch=gfx90a", "-nogpulib", "-nogpuinc", "-nostdinc", "-std=c++17",
    "-ferror-limit=0", "-D__HIPCC_RTC__", *(f"-D{macro}" for macro in MACROS),
)  # fmt: skip

_FILE_NAME = "header.hip"
_ATTRIBUTES = {"CONST_ATTR": "const", "PURE_ATTR": "pure", "CONVERGENT_ATTR": "convergent"}

_WORDS = ("int", "unsigned int", "long long", "unsigned long long", "float", "double")
_MASK = "unsigned long long"
INSTANCES: Mapping[str, tuple[tuple[str, ...], ...]] = {
    **dict.fromkeys(("__ballot_sync", "__all_sync", "__any_sync"), ((_MASK,),)),
    **{
        name: tuple((_MASK, word) for word in _WORDS)
        for name in (
            "__shfl_sync", "__shfl_up_sync", "__shfl_down_sync", "__shfl_xor_sync",
            "__match_any_sync", "__match_all_sync",
        )
    },
    **{name: tuple((word,) for word in _WORDS) for name in ("__match_any", "__match_all")},
}  # fmt: skip
"""Function templates that are declared for some arguments: the arguments of each instance, by name."""

WRITING_FUNCTIONS = frozenset({"frexp", "modf", "remquo", "sincos", "sincospi"})
"""Functions of C's math library whose pointer parameters are written and not read. The same holds with the suffix for
float, and under the names of the device library. Nothing is assumed about other pointers to non-constant targets."""

_REMOVED_PREFIXES = ("__ocml_", "__")
_EXCLUDED = {
    "__cxa_pure_virtual": "called by the C++ runtime only",
    "__cxa_deleted_virtual": "called by the C++ runtime only",
}


def parse_header(header: Header) -> Declarations:
    """The declarations of the device functions in *header*.

    Raises `HeaderError` if libclang reports an error in a declaration or there is no device function, and
    `MissingExtraError` without libclang.
    """
    plain = _collect(_parse(header.text))
    if plain.templates:
        # An instance is parsed as a function of its own, in a namespace in which the template's parameters are types.
        suffix, wanted = _spell_instances(plain.templates)
        instances = _collect(_parse(header.text + suffix)).instances
        plain.functions += [_as_instance(function, *wanted[function.namespace]) for function in instances]
    if not plain.functions:
        raise HeaderError("this header declares no device function")
    functions = _without_twins(plain)
    return Declarations(functions, tuple(plain.omissions), header.digest, header.version)


def parse_extension(header: Header, source: str, options: Sequence[str] = ()) -> tuple[Declarations, tuple[Path, ...]]:
    """The device functions that *source*, HIP C++ after *header*, declares itself or includes, and the files that it
    includes.

    *options* are clang's, such as ``-I`` with an absolute path. Function templates are left out, as programs can only
    call functions. Raises as `parse_header` does; line numbers in messages count from the start of *source*.
    """
    first = header.text.count("\n") + 2
    top = _parse(f"{header.text}\n{source}", options, own_line=first)
    found = _collect(top, lambda cursor: _is_after(cursor, first))
    for cursor, namespace in _device_functions(top, ""):
        if cursor.kind.name == "FUNCTION_TEMPLATE" and _is_after(cursor, first):
            name = "::".join(filter(None, (namespace, cursor.spelling)))
            reason = "is a function template: write a function that calls it with the types that you need"
            found.omissions.append(Omission(name, cursor.type.spelling, reason))
    if not found.functions:
        raise HeaderError("this source declares no device function (__device__) with a type that can be passed")
    functions = _without_twins(found)
    included = sorted({Path(one.include.name) for one in top.translation_unit.get_includes()})
    return Declarations(functions, tuple(found.omissions), header.digest, header.version), tuple(included)


def _is_after(cursor: Cursor, first_line: int) -> bool:
    """Whether *cursor* is in the user's code: in another file than the header, or after it."""
    file = cursor.location.file
    return file is not None and (file.name != _FILE_NAME or cursor.location.line >= first_line)


@dataclass
class _Found:
    functions: list[FunctionDeclaration] = field(default_factory=list)
    instances: list[FunctionDeclaration] = field(default_factory=list)
    omissions: list[Omission] = field(default_factory=list)
    templates: dict[str, list[Cursor]] = field(default_factory=dict)


class _UnfitTypeError(Exception):
    """A type that the wrappers' C ABI does not support; the message is the reason for leaving a function out."""


def _parse(text: str, options: Sequence[str] = (), *, own_line: int | None = None) -> Cursor:
    """libclang's result for *text*: HIP's header and, from *own_line* on if that is given, a user's source."""
    try:
        from clang import cindex
    except ImportError as error:
        raise MissingExtraError(
            f"HIP C++ is read by libclang, which is not installed: pip install '{EXTRA}' ({error})", EXTRA
        ) from None

    def errors_in(unit: Any) -> tuple[list[str], list[str]]:
        """The errors in a user's source, with line numbers that count from its start, and those in the header."""
        own, others = [], []
        for item in unit.diagnostics:
            if item.severity < cindex.Diagnostic.Error:
                continue
            if own_line is not None and _is_after(item, own_line):
                own.append(f"line {item.location.line - own_line + 1}: {item.spelling}")
            else:
                others.append(f"line {item.location.line}: {item.spelling}")
        return own, others

    def parse(flags: int) -> Any:
        return index.parse(_FILE_NAME, [*FLAGS, *options], [(_FILE_NAME, text)], flags)

    try:
        index = cindex.Index.create()
        unit = parse(0)
        own, others = errors_in(unit)
        if others and not own:  # in bodies only?
            _, others = errors_in(parse(cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES))
    except (cindex.LibclangError, cindex.TranslationUnitLoadError) as error:
        raise HeaderError(f"libclang cannot read the header: {error}") from None
    if errors := own or others:
        what = "source" if own else "header"
        raise HeaderError(f"the {what} has {len(errors)} error(s): " + "; ".join(errors[:3]))
    return unit.cursor


def _collect(top: Cursor, is_wanted: Callable[[Cursor], bool] = lambda cursor: True) -> _Found:
    found = _Found()
    last: dict[str, tuple[Cursor, str]] = {}
    defined: set[str] = set()
    for cursor, namespace in _device_functions(top, ""):
        if cursor.kind.name == "FUNCTION_TEMPLATE":
            if cursor.spelling in INSTANCES and not namespace:
                found.templates.setdefault(cursor.spelling, []).append(cursor)
            continue
        if not is_wanted(cursor):
            continue
        usr = cursor.get_usr()
        # A redeclaration may lack parameter names and attributes, so the definition is preferred.
        if usr not in last or (cursor.is_definition() and usr not in defined):
            last[usr] = cursor, namespace
        if cursor.is_definition():
            defined.add(usr)
    for usr, (cursor, namespace) in last.items():
        try:
            function = _read_function(cursor, namespace, usr in defined)
        except _UnfitTypeError as reason:
            name = f"{namespace}::{cursor.spelling}" if namespace else cursor.spelling
            found.omissions.append(Omission(name, cursor.type.spelling, str(reason)))
        else:
            (found.instances if namespace.startswith(_INSTANCE) else found.functions).append(function)
    return found


def _device_functions(cursor: Cursor, namespace: str) -> Iterator[tuple[Cursor, str]]:
    """Device functions and function templates outside of classes, each with its namespace."""
    for child in cursor.get_children():
        kind = child.kind.name
        if kind == "NAMESPACE":
            yield from _device_functions(child, "::".join(filter(None, (namespace, child.spelling))))
        elif kind in ("LINKAGE_SPEC", "UNEXPOSED_DECL"):
            yield from _device_functions(child, namespace)
        elif kind in ("FUNCTION_DECL", "FUNCTION_TEMPLATE") and _is_for_devices(child):
            yield child, namespace


def _is_for_devices(cursor: Cursor) -> bool:
    return any(child.kind.name == "CUDADEVICE_ATTR" for child in cursor.get_children())


def _read_function(cursor: Cursor, namespace: str, defined: bool) -> FunctionDeclaration:
    name = cursor.spelling
    if name in _EXCLUDED:
        raise _UnfitTypeError(_EXCLUDED[name])
    if cursor.type.is_function_variadic():
        raise _UnfitTypeError("takes a variable number of arguments")
    result = read_type(cursor.result_type)
    parameters = []
    for number, argument in enumerate(cursor.get_arguments()):
        kind = read_type(argument.type)
        parameters.append(ParameterDeclaration(argument.spelling or f"arg{number}", kind, _intent(name, kind)))
    attributes = {_ATTRIBUTES.get(item.kind.name) for item in cursor.get_children()} - {None}
    symbol = make_symbol(name, namespace, tuple(parameter.type for parameter in parameters))
    return FunctionDeclaration(
        name, namespace, result, tuple(parameters), symbol, tuple(sorted(map(str, attributes))), defined
    )


def _intent(function: str, kind: CType) -> Intent:
    if kind.kind not in ("pointer", "reference"):
        return "value"
    if kind.const:
        return "in"
    if kind.kind == "reference":
        return "inout"
    base = function
    for prefix in _REMOVED_PREFIXES:
        base = base.removeprefix(prefix)
    base = re.sub(r"_2?f(16|32|64)$", "", base)
    return "out" if base in WRITING_FUNCTIONS or base.removesuffix("f") in WRITING_FUNCTIONS else "address"


_SCALARS: Mapping[str, CType] = {
    "VOID": CType("void", "void"),
    "BOOL": CType("bool", "bool", 8),
    "CHAR_S": CType("char", "integer", 8, True),
    "SCHAR": CType("signed char", "integer", 8, True),
    "UCHAR": CType("unsigned char", "integer", 8),
    "SHORT": CType("short", "integer", 16, True),
    "USHORT": CType("unsigned short", "integer", 16),
    "INT": CType("int", "integer", 32, True),
    "UINT": CType("unsigned int", "integer", 32),
    "LONG": CType("long", "integer", 64, True),
    "ULONG": CType("unsigned long", "integer", 64),
    "LONGLONG": CType("long long", "integer", 64, True),
    "ULONGLONG": CType("unsigned long long", "integer", 64),
    "FLOAT": CType("float", "float", 32),
    "DOUBLE": CType("double", "float", 64),
}
_BY_SPELLING: Mapping[str, CType] = {
    **{kind.spelling: kind for kind in _SCALARS.values()},
    "_Float16": CType("_Float16", "half", 16),
    "__half": CType("__half", "half", 16, native=False),
    "hip_bfloat16": CType("hip_bfloat16", "bfloat16", 16, native=False),
}
_HALF_PAIR = CType("__half2", "vector", element=_BY_SPELLING["_Float16"], count=2, native=False)
_HIP_VECTOR = re.compile(r"HIP_vector_type<([a-z ]+), (\d+)>")
_EXT_VECTOR = re.compile(r"([A-Za-z0-9_ ]+) __attribute__\(\(ext_vector_type\((\d+)\)\)\)")
_ADDRESS_SPACE = re.compile(r"__attribute__\(\(address_space\((\d+)\)\)\) ?")
_SHORT_SPACES = (3, 5)
_PRIVATE = "__private "  # clang's spelling of address space 5 if it knows the name


def read_type(clang_type: ClangType) -> CType:
    """The `CType` of a libclang type. Its spelling is looked at first, as ``.kind`` raises an error for unknown
    kinds."""
    canonical = clang_type.get_canonical()
    spelling = canonical.spelling
    if spelling.endswith(" *"):
        return _read_pointer(canonical, "pointer")
    if spelling.endswith(" &"):
        return _read_pointer(canonical, "reference")
    return _read_value(spelling.removeprefix("const "))


def _read_value(spelling: str) -> CType:
    if spelling in _BY_SPELLING:
        return _BY_SPELLING[spelling]
    if spelling == "__half2":
        return _HALF_PAIR
    for pattern, native in ((_HIP_VECTOR, False), (_EXT_VECTOR, True)):
        found = pattern.fullmatch(spelling)
        if found and found.group(1) in _BY_SPELLING:
            return CType(
                spelling, "vector", element=_BY_SPELLING[found.group(1)], count=int(found.group(2)), native=native
            )
    raise _UnfitTypeError(f"the type {spelling} has no C ABI here")


def _read_pointer(canonical: ClangType, kind: Literal["pointer", "reference"]) -> CType:
    spelling = canonical.get_pointee().spelling.replace(_PRIVATE, "__attribute__((address_space(5))) ")
    found = _ADDRESS_SPACE.search(spelling)
    space = int(found.group(1)) if found else 0
    plain = _ADDRESS_SPACE.sub("", spelling)
    element = _read_value(plain.removeprefix("const "))
    sign = "*" if kind == "pointer" else "&"
    bits = 32 if space in _SHORT_SPACES else 64
    return CType(f"{spelling} {sign}", kind, bits, element=element, const=plain.startswith("const "), space=space)


_INSTANCE = "hipdl_instance_"


def _spell_instances(templates: Mapping[str, list[Cursor]]) -> tuple[str, dict[str, tuple[str, tuple[str, ...]]]]:
    """C++ that declares each instance, and the template and arguments of each namespace in it."""
    lines = [""]
    wanted: dict[str, tuple[str, tuple[str, ...]]] = {}
    for name, cursors in templates.items():
        for cursor in cursors:
            children = list(cursor.get_children())
            names = [child.spelling for child in children if child.kind.name == "TEMPLATE_TYPE_PARAMETER"]
            arguments = [child for child in children if child.kind.name == "PARM_DECL"]
            listed = ", ".join(f"{argument.type.spelling} {argument.spelling}" for argument in arguments)
            for chosen in INSTANCES[name]:
                if len(chosen) != len(names):
                    continue
                namespace = f"{_INSTANCE}{len(wanted)}"
                aliases = " ".join(f"using {word} = {kind};" for word, kind in zip(names, chosen, strict=True))
                result = cursor.result_type.spelling
                function = f"__attribute__((device)) {result} {name}({listed}) {{ __builtin_trap(); }}"
                lines.append(f"namespace {namespace} {{ {aliases} {function} }}")
                wanted[namespace] = name, chosen
    return "\n".join(lines) + "\n", wanted


def _as_instance(function: FunctionDeclaration, name: str, arguments: tuple[str, ...]) -> FunctionDeclaration:
    types = tuple(parameter.type for parameter in function.parameters)
    symbol = make_symbol(name, "", types, arguments)
    # Every template that is instantiated works across the lanes of a wave.
    return FunctionDeclaration(name, "", function.result, function.parameters, symbol, ("convergent",), True, arguments)


def _without_twins(found: _Found) -> tuple[FunctionDeclaration, ...]:
    """The functions with distinct wrapper names; of those with the same name, the first."""
    kept: dict[str, FunctionDeclaration] = {}
    for function in found.functions:
        if function.symbol in kept:
            found.omissions.append(
                Omission(function.qualified, str(function), f"has the C ABI and the name of {kept[function.symbol]}")
            )
        else:
            kept[function.symbol] = function
    return tuple(kept.values())
