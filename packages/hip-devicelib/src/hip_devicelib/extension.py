"""Libraries of a user's own device functions, written in HIP C++, like the library of HIP's functions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import get_args

from hip_devicelib.compilers import Compiler
from hip_devicelib.declarations import Declarations, FunctionDeclaration, Intent
from hip_devicelib.errors import HeaderError
from hip_devicelib.header_parser import parse_extension
from hip_devicelib.hip_header import Header
from hip_devicelib.library import Library, build_library
from hip_devicelib.target import Target, parse_target


@dataclass(frozen=True)
class Extension:
    """HIP C++ with ``__device__`` functions.

    ``source`` may include headers from ``include_paths``; ``options`` are further options of clang, such as
    ``-DNAME=1``. ``intents`` gives the purpose of pointers, by the names of the function and the parameter. Other
    pointers are ``in`` if they point to something constant, otherwise ``address``. ``name`` is used in messages.
    """

    source: str = field(repr=False)
    include_paths: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()
    intents: Mapping[str, Mapping[str, Intent]] = field(default_factory=dict)
    name: str = "extension.hip"

    @property
    def flags(self) -> tuple[str, ...]:
        """The options of clang, those for the include paths first."""
        return (*(f"-I{path.resolve()}" for path in self.include_paths), *self.options)

    @property
    def text(self) -> str:
        """The source for a compiler, to be put after HIP's header: messages have the user's line numbers."""
        return f'#define __device__ __attribute__((device))\n#line 1 "{self.name}"\n{self.source}\n'


def build_extension(extension: Extension, header: Header, compiler: Compiler, target: str | Target) -> Library:
    """The library of the functions of *extension* for *target*. Several such libraries can be linked together.

    Raises `CompileError` with the compiler's message and the user's line for source that does not compile, and
    `HeaderError` for source without a device function, or intents for something that does not exist. `supply_extension`
    also caches the library.
    """
    resolved = target if isinstance(target, Target) else parse_target(target)
    # It is compiled alone first, so that a message of the compiler can only be about the user's source.
    compiler.compile(extension.text, resolved, extension.flags)
    declarations, _ = declare_extension(extension, header)
    return build_declared(extension, declarations, compiler, resolved)


def declare_extension(extension: Extension, header: Header) -> tuple[Declarations, tuple[Path, ...]]:
    """The declarations of *extension*, and the files that it includes; `HeaderError` if it cannot be parsed."""
    declarations, included = parse_extension(header, extension.text, extension.flags)
    functions = tuple(_with_intents(function, extension.intents) for function in declarations.functions)
    _check_intents(extension.intents, functions)
    return replace(declarations, functions=functions), included


def build_declared(extension: Extension, declarations: Declarations, compiler: Compiler, target: Target) -> Library:
    """The library of *declarations*, which belong to *extension*."""
    library = build_library(declarations, compiler, target, source=extension.text, options=extension.flags)
    return replace(library, dropped=(*declarations.omissions, *library.dropped))


def _with_intents(function: FunctionDeclaration, intents: Mapping[str, Mapping[str, Intent]]) -> FunctionDeclaration:
    stated = intents.get(function.name, {})
    parameters = tuple(
        replace(parameter, intent=stated.get(parameter.name, parameter.intent)) for parameter in function.parameters
    )
    return replace(function, parameters=parameters)


def _check_intents(intents: Mapping[str, Mapping[str, Intent]], functions: tuple[FunctionDeclaration, ...]) -> None:
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
                raise HeaderError(
                    f"intents: {name}.{parameter} has {intent!r}; it must be 'in', 'out', 'inout' or 'address'"
                )
