"""Declarations as data: written once, and read without libclang.

The format is JSON compressed with zlib. Types and parameters are in tables, and functions refer to them by number. The
same declarations always give the same bytes with the same zlib. `load_reference` reads the manifest that is shipped in
this package; ``tools/make_manifest.py`` generates it.
"""

from __future__ import annotations

import json
import zlib
from functools import cache
from importlib import resources
from typing import Any

from hip_devicelib.declarations import CType, Declarations, FunctionDeclaration, Omission, ParameterDeclaration
from hip_devicelib.errors import ManifestError

FORMAT = 1
REFERENCE = "hip-reference.manifest"
"""The file name of the shipped manifest in this package's data."""

_LARGEST_TEXT = 64 << 20


def save(declarations: Declarations) -> bytes:
    """The manifest of *declarations*."""
    types: dict[CType, int] = {}
    parameters: dict[ParameterDeclaration, int] = {}
    functions = [
        [
            function.name,
            function.namespace,
            _number_type(function.result, types),
            [_number_parameter(parameter, parameters, types) for parameter in function.parameters],
            function.symbol,
            list(function.attributes),
            function.defined,
            list(function.template_arguments),
        ]
        for function in declarations.functions
    ]
    data = {
        "format": FORMAT,
        "version": declarations.version,
        "digest": declarations.header_digest,
        "types": [_type_row(kind, types) for kind in types],
        "parameters": [[item.name, types[item.type], item.intent] for item in parameters],
        "functions": functions,
        "omissions": [[item.name, item.signature, item.reason] for item in declarations.omissions],
    }
    return zlib.compress(json.dumps(data, separators=(",", ":")).encode(), 9)


def load(data: bytes) -> Declarations:
    """The declarations in the manifest *data*. Raises `ManifestError` for anything else."""
    try:
        decompressor = zlib.decompressobj()
        content = json.loads(decompressor.decompress(data, _LARGEST_TEXT))
        if not decompressor.eof:
            raise ValueError("the data ends too early")
        if content["format"] != FORMAT:
            raise ManifestError(f"this manifest has format {content['format']!r}; this version reads {FORMAT}")
        return _read(content)
    except (zlib.error, ValueError, KeyError, TypeError, IndexError, RecursionError) as error:
        if isinstance(error, ManifestError):
            raise
        raise ManifestError(f"damaged manifest: {type(error).__name__}: {error}") from None


@cache
def load_reference() -> Declarations:
    """The declarations that are shipped in this package."""
    return load((resources.files("hip_devicelib") / "data" / REFERENCE).read_bytes())


def _number_type(kind: CType, types: dict[CType, int]) -> int:
    if kind.element is not None:
        _number_type(kind.element, types)  # a type only refers to types before it
    return types.setdefault(kind, len(types))


def _number_parameter(
    parameter: ParameterDeclaration, parameters: dict[ParameterDeclaration, int], types: dict[CType, int]
) -> int:
    _number_type(parameter.type, types)
    return parameters.setdefault(parameter, len(parameters))


def _type_row(kind: CType, types: dict[CType, int]) -> list[Any]:
    element = -1 if kind.element is None else types[kind.element]
    return [kind.spelling, kind.kind, kind.bits, kind.signed, element, kind.count, kind.const, kind.space, kind.native]


def _read(content: dict[str, Any]) -> Declarations:
    types: list[CType] = []
    for spelling, kind, bits, signed, element, count, const, space, native in content["types"]:
        inner = types[element] if element >= 0 else None
        types.append(CType(spelling, kind, bits, signed, inner, count, const, space, native))
    parameters = [ParameterDeclaration(name, types[kind], intent) for name, kind, intent in content["parameters"]]
    functions = tuple(
        FunctionDeclaration(
            name,
            namespace,
            types[result],
            tuple([parameters[number] for number in numbers]),
            symbol,
            tuple(attributes),
            defined,
            tuple(arguments),
        )
        for name, namespace, result, numbers, symbol, attributes, defined, arguments in content["functions"]
    )
    omissions = tuple(Omission(*row) for row in content["omissions"])
    return Declarations(functions, omissions, content["digest"], content["version"])
