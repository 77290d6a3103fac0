"""The commands of the command line: each prints its result and returns the exit status."""

from __future__ import annotations

import argparse
import fnmatch
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hip_devicelib.cache import Cache
from hip_devicelib.declarations import SYMBOL_PREFIX, Declarations, FunctionDeclaration
from hip_devicelib.errors import CodeObjectError, DevicelibError, InvalidIRError, NotFoundError

if TYPE_CHECKING:
    from hip_devicelib.rocm import Rocm


class UsageError(DevicelibError):
    """An invalid command line."""


def print_json(value: Any) -> None:
    print(json.dumps(value, indent=2))


def run_doctor(arguments: argparse.Namespace) -> int:
    from hip_devicelib.doctor import examine

    findings = examine(arguments.rocm)
    if arguments.json:
        print_json([asdict(finding) for finding in findings])
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.verdict:8} {finding.name:{width}}  {finding.detail}")
    return 1 if any(finding.verdict == "problem" for finding in findings) else 0


def run_list(arguments: argparse.Namespace) -> int:
    declarations = _declarations(arguments.rocm)
    chosen = [f for f in declarations.functions if fnmatch.fnmatchcase(f.qualified, arguments.pattern)]
    if arguments.json:
        print_json([_as_json(function) for function in chosen])
    else:
        for function in chosen:
            print(function)
    return 0


def run_show(arguments: argparse.Namespace) -> int:
    declarations = _declarations(arguments.rocm)
    functions = declarations.by_name.get(arguments.name, ())
    omissions = [item for item in declarations.omissions if item.name.split("::")[-1] == arguments.name]
    if not functions and not omissions:
        hint = _suggest(arguments.name, declarations)
        raise NotFoundError(f"the HIP header has no device function {arguments.name!r}{hint}")
    if arguments.json:
        print_json({"functions": [_as_json(f) for f in functions], "omissions": [asdict(item) for item in omissions]})
        return 0
    for function in functions:
        print(function)
        print(f"  wrapper     {function.symbol}: {function.llvm_type}")
        if function.parameters:
            print(f"  parameters  {', '.join(f'{p.name} ({p.intent})' for p in function.parameters)}")
        if function.attributes:
            print(f"  attributes  {', '.join(function.attributes)}")
    for item in omissions:
        print(f"{item.name} {item.signature}\n  not declared: {item.reason}")
    return 0


def run_build(arguments: argparse.Namespace) -> int:
    from hip_devicelib.cached_libraries import supply_library
    from hip_devicelib.rocm import find_rocm

    library = supply_library(arguments.arch, rocm=find_rocm(arguments.rocm))
    if arguments.output:
        _write(arguments.output, library.bitcode)
    if arguments.json:
        report = {
            "target": library.target,
            "compiler": library.compiler,
            "bytes": len(library.bitcode),
            "functions": [function.symbol for function in library.functions],
            "dropped": [asdict(item) for item in library.dropped],
        }
        print_json(report)
        return 0
    print(f"{library.target}: {len(library.functions)} functions, {len(library.bitcode)} bytes, by {library.compiler}")
    for item in library.dropped:
        print(f"  without {item.name}: {item.reason}")
    return 0


def run_link(arguments: argparse.Namespace) -> int:
    from hip_devicelib.amdgpu import object_code, optimise, undefined_symbols
    from hip_devicelib.linkers import find_linker, link

    objects, modules = _read_inputs(arguments.files)
    if modules and not arguments.arch:
        raise UsageError("--arch is needed to compile LLVM IR: name the target, such as --arch gfx90a")
    rocm = _rocm_or_none(arguments.rocm)
    if modules:
        bitcode = optimise(modules, arguments.arch, level=arguments.level)
        libraries = [] if arguments.no_library else _libraries_for(undefined_symbols(bitcode), arguments.arch, rocm)
        if libraries:
            bitcode = optimise(modules, arguments.arch, libraries=libraries, level=arguments.level)
        objects.append(object_code(bitcode, arguments.arch))
    code = link(objects, linker=find_linker(rocm))
    _write(arguments.output, code.image)
    print(f"{arguments.output}: {code.target}, {', '.join(kernel.name for kernel in code.kernels)}")
    return 0


def _libraries_for(symbols: Sequence[str], target: str, rocm: Rocm | None) -> list[bytes]:
    """The libraries that define *symbols*, as far as their names tell."""
    from hip_devicelib.cached_libraries import supply_library
    from hip_devicelib.device_libraries import read_device_libraries
    from hip_devicelib.rocm import find_rocm

    libraries: list[bytes] = []
    if any(symbol.startswith(SYMBOL_PREFIX) for symbol in symbols):
        libraries.append(supply_library(target, rocm=rocm).bitcode)
    if any(symbol.startswith(("__ocml_", "__ockl_")) for symbol in symbols):
        folder = (rocm if rocm is not None else find_rocm()).require("device-libraries").parent
        libraries += read_device_libraries(folder, target)
    return libraries


def run_inspect(arguments: argparse.Namespace) -> int:
    from hip_devicelib.kernel_metadata import describe

    code = describe(_read(arguments.file))
    if arguments.json:
        print_json({"target": code.target, "kernels": [asdict(kernel) for kernel in code.kernels]})
        return 0
    print(f"target {code.target}, {len(code.kernels)} kernel(s)")
    for kernel in code.kernels:
        listed = ", ".join(f"{p.type} {p.name} at {p.offset}" for p in kernel.parameters)
        print(f"{kernel.name}({listed})")
        print(
            f"  shared {kernel.shared_bytes} B, private {kernel.private_bytes} B, arguments {kernel.argument_bytes} B, "
            f"wave {kernel.wave_size}, block at most {kernel.max_block_threads}, "
            f"VGPR {kernel.vector_registers}, SGPR {kernel.scalar_registers}"
        )
    return 0


def run_cache(arguments: argparse.Namespace) -> int:
    cache = Cache()
    if arguments.clear:
        print(f"{cache.directory}: {cache.clear()} entries removed")
        return 0
    entries = cache.entries()
    total = sum(entry.size for entry in entries)
    if arguments.json:
        print_json(
            {
                "directory": str(cache.directory),
                "bytes": total,
                "limit": cache.limit,
                "entries": [{"path": str(entry.path), "bytes": entry.size, "used": entry.used} for entry in entries],
            }
        )
    else:
        print(f"{cache.directory}: {len(entries)} entries, {total} bytes of at most {cache.limit}")
    return 0


def _declarations(root: str | None) -> Declarations:
    from hip_devicelib.cached_libraries import supply_declarations
    from hip_devicelib.manifest import load_reference
    from hip_devicelib.rocm import find_rocm

    return load_reference() if root is None else supply_declarations(find_rocm(root))


def _as_json(function: FunctionDeclaration) -> dict[str, Any]:
    return {
        "name": function.qualified,
        "signature": str(function),
        "symbol": function.symbol,
        "llvm_type": function.llvm_type,
        "attributes": list(function.attributes),
        "parameters": [
            {"name": p.name, "type": p.type.spelling, "llvm_type": p.type.llvm, "intent": p.intent}
            for p in function.parameters
        ],
    }


def _suggest(name: str, declarations: Declarations) -> str:
    import difflib

    close = difflib.get_close_matches(name, declarations.by_name, n=3, cutoff=0.7)
    return f"; did you mean {' or '.join(close)}?" if close else "; 'hip-devicelib list' prints all"


def _rocm_or_none(root: str | None) -> Rocm | None:
    from hip_devicelib.rocm import find_rocm

    try:
        return find_rocm(root)
    except NotFoundError:
        if root is not None:
            raise
        return None


def _read_inputs(names: Sequence[str]) -> tuple[list[bytes], list[str | bytes]]:
    """The ELF objects and the modules in the files *names*."""
    from hip_devicelib.isolated_codegen import check_apart

    objects: list[bytes] = []
    modules: list[str | bytes] = []
    for name in names:
        data = _read(name)
        if data.startswith(b"\x7fELF"):
            objects.append(data)
        elif data.startswith(b"BC\xc0\xde"):
            check_apart(data, name)
            modules.append(data)
        else:
            try:
                modules.append(data.decode())
            except UnicodeDecodeError:
                raise InvalidIRError(f"{name} is neither an ELF object nor LLVM bitcode nor text") from None
    return objects, modules


def _read(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CodeObjectError(f"cannot read {name!r}: {error.strerror}") from None


def _write(name: str, data: bytes) -> None:
    try:
        Path(name).write_bytes(data)
    except OSError as error:
        raise UsageError(f"cannot write {name!r}: {error.strerror}") from None
