"""Device functions of a user, written in HIP C++, as a library like that of HIP's own functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from hip_devicelib.compilers import Compiler
from hip_devicelib.declarations import Function, Intent
from hip_devicelib.errors import HeaderError
from hip_devicelib.header import Header
from hip_devicelib.library import Library, build_library
from hip_devicelib.parse import parse_extension
from hip_devicelib.target import Target, parse_target


@dataclass(frozen=True)
class Extension:
    """HIP C++ with ``__device__`` functions.

    ``source`` may include headers from ``include_paths``; ``options`` are further options of clang, such as
    ``-DNAME=1``. ``intents`` says what pointers are for, by the name of the function and then of the parameter; those
    that it does not name are ``in`` where they lead to something constant, else ``address``. ``name`` stands in
    messages.
    """

    source: str = field(repr=False)
    include_paths: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()
    intents: Mapping[str, Mapping[str, Intent]] = field(default_factory=dict)
    name: str = "extension.hip"


def build_extension(extension: Extension, header: Header, compiler: Compiler, target: str | Target) -> Library:
    """The library of the functions of *extension* for *target*; several such libraries can be linked at once.

    Raises `CompileError`, with the compiler's message and the line of the user, for source that does not compile, and
    `HeaderError` for source without a device function, or for intents of what is not there.
    """
    resolved = target if isinstance(target, Target) else parse_target(target)
    options = (*(f"-I{path.resolve()}" for path in extension.include_paths), *extension.options)
    # Alone first: a message of the compiler is then about the source of the user and nothing else.
    source = f'#define __device__ __attribute__((device))\n#line 1 "{extension.name}"\n{extension.source}\n'
    compiler.compile(source, resolved, options)
    declarations = parse_extension(header, source, options)
    functions = tuple(_with_intents(function, extension.intents) for function in declarations.functions)
    _check_intents(extension.intents, functions)
    library = build_library(
        replace(declarations, functions=functions), compiler, resolved, source=source, options=options
    )
    return replace(library, dropped=(*declarations.omissions, *library.dropped))


def _with_intents(function: Function, intents: Mapping[str, Mapping[str, Intent]]) -> Function:
    stated = intents.get(function.name, {})
    parameters = tuple(
        replace(parameter, intent=stated.get(parameter.name, parameter.intent)) for parameter in function.parameters
    )
    return replace(function, parameters=parameters)


def _check_intents(intents: Mapping[str, Mapping[str, Intent]], functions: tuple[Function, ...]) -> None:
    for name, stated in intents.items():
        overloads = [function for function in functions if function.name == name]
        if not overloads:
            known = ", ".join(sorted({function.name for function in functions}))
            raise HeaderError(f"intents: there is no device function {name!r}; there are: {known}")
        pointers = {
            parameter.name: parameter
            for function in overloads
            for parameter in function.parameters
            if parameter.type.kind in ("pointer", "reference")
        }
        for parameter, intent in stated.items():
            if parameter not in pointers:
                raise HeaderError(
                    f"intents: {name!r} has no pointer parameter {parameter!r}; it has: {', '.join(pointers) or 'none'}"
                )
            if intent == "value" or intent not in get_args(Intent):
                raise HeaderError(f"intents: {intent!r} of {name}.{parameter}: one of in, out, inout, address")
