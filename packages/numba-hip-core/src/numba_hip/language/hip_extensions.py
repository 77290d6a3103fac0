"""A program's own HIP C++ functions in kernels, by their names: `set_hip_extensions`, as in AMD's numba-hip.

They are compiled for a target when a kernel for it first calls one: by ROCm for AMD GPUs, and by the clang of the wheel
``ziglang`` for the CPU device. A kernel keeps the functions that it was compiled with.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.declarations import FunctionDeclaration
from hip_devicelib.errors import NotFoundError
from hip_devicelib.extension import Extension, declare_extension
from hip_devicelib.hip_header import read_header
from hip_devicelib.rocm import find_rocm
from numba_hip.errors import HipExtensionError
from numba_hip.language.hip_functions import HipFunction
from numba_hip.linked_code import LinkedCode


class UserFunction(HipFunction):
    """A function of *source*, with all of its overloads; what it writes through pointers are further results."""

    def __init__(self, name: str, overloads: tuple[FunctionDeclaration, ...], source: Extension) -> None:
        super().__init__(name, overloads, returns_outputs=True)
        self.source = source

    def provide(self, context: Any) -> None:
        """Link the kernel with the code of *source*."""
        code = code_for(self.source, context.codegen().target)
        context.active_code_library.add_linked_code([code])

    def add_to_fingerprint(self, fingerprint: Any) -> None:
        """Add what this function is to the fingerprint of a kernel that calls it."""
        fingerprint.add_text("HIP C++", self.__name__, self.source.text, repr(self.source.flags))


@dataclass
class _Chosen:
    """The arguments of the last `set_hip_extensions`."""

    code: str = ""
    flags: list[str] = field(default_factory=list)
    functions: dict[str, UserFunction] = field(default_factory=dict)


_chosen = _Chosen()


def set_hip_extensions(
    code: str | None = None, filepath: str | Path | None = None, extra_cflags: Iterable[str] | None = None
) -> None:
    """Let kernels call the ``__device__`` functions of HIP C++, *code* or the file *filepath*, as ``hip.<name>``.

    They replace those of an earlier call; kernels that were compiled before keep theirs. *extra_cflags* are options of
    clang (``-I``, ``-D``); None keeps those of the earlier call. What a function writes through its pointers is
    returned after its own result. On the CPU device, and when reading without ROCm, functions can only take and return
    numbers, and call HIP functions that do.

    Raises `HipExtensionError` unless there is exactly one of *code* and *filepath*. From `hip_devicelib.errors`, raises
    `CompileError` or `HeaderError` for source that cannot be read, and `MissingExtraError` without libclang, which
    ``hip-devicelib[headers]`` installs. Nothing is changed then.
    """
    if (code is None) == (filepath is None):
        given = "both" if code is not None else "neither"
        raise HipExtensionError(f"set_hip_extensions takes either code or filepath; got {given}")
    name = "extension.hip"
    if filepath is not None:
        code, name = Path(filepath).read_text(), str(filepath)
    flags = list(_chosen.flags if extra_cflags is None else extra_cflags)
    source = Extension(code or "", options=tuple(flags), name=name)
    by_name: dict[str, list[FunctionDeclaration]] = {}
    for function in _declare(source):
        by_name.setdefault(function.name, []).append(_with_results(function))
    functions = {name: UserFunction(name, tuple(overloads), source) for name, overloads in by_name.items()}
    _chosen.code, _chosen.flags, _chosen.functions = source.source, flags, functions


def current_hip_extensions() -> str:
    """The HIP C++ of the last `set_hip_extensions`; empty before the first."""
    return _chosen.code


def current_hip_extra_cflags() -> list[str]:
    """The options of clang that `set_hip_extensions` was last given."""
    return list(_chosen.flags)


def find(name: str) -> UserFunction | None:
    """The function *name* of the last `set_hip_extensions`, if it has one."""
    return _chosen.functions.get(name)


def names() -> list[str]:
    """The names of all its functions."""
    return list(_chosen.functions)


def _declare(source: Extension) -> tuple[FunctionDeclaration, ...]:
    """The functions of *source*, read with the header of ROCm where there is one."""
    try:
        header = read_header(find_rocm())
    except NotFoundError:
        from hip_devicelib.cpu.extension import declare_for_cpu

        return declare_for_cpu(source)[0].functions
    return declare_extension(source, header)[0].functions


def _with_results(function: FunctionDeclaration) -> FunctionDeclaration:
    """*function* with everything that its pointers point to as results."""
    parameters = tuple(
        replace(one, intent="out") if one.type.kind in ("pointer", "reference") and not one.type.const else one
        for one in function.parameters
    )
    return replace(function, parameters=parameters)


@cache
def _compiled(text: str, flags: tuple[str, ...], name: str, target: str) -> LinkedCode:
    from hip_devicelib.cached_libraries import supply_extension
    from hip_devicelib.cpu.extension import supply_cpu_extension

    source = Extension(text, options=flags, name=name)
    library = supply_cpu_extension(source) if target == CPU_TARGET else supply_extension(source, target)
    return LinkedCode(library.bitcode, name)


def code_for(source: Extension, target: str) -> LinkedCode:
    """The code of *source* for *target*, compiled once."""
    return _compiled(source.source, source.options, source.name, str(target))


__all__ = ["current_hip_extensions", "current_hip_extra_cflags", "set_hip_extensions"]
