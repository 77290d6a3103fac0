"""The device library and the declarations for this machine: built once, then read from the cache."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, replace
from pathlib import Path

import llvmlite

from hip_devicelib import __version__
from hip_devicelib.cache import Cache, make_key
from hip_devicelib.compilers import Compiler, find_compiler
from hip_devicelib.declarations import Declarations, Omission
from hip_devicelib.errors import HeaderError, ManifestError, MissingExtraError
from hip_devicelib.extension import Extension, build_declared, declare_extension
from hip_devicelib.header_parser import INSTANCES, parse_header
from hip_devicelib.hip_header import Header, read_header
from hip_devicelib.library import Library, build_library
from hip_devicelib.manifest import load, load_reference, save
from hip_devicelib.rocm import Rocm, find_rocm
from hip_devicelib.target import Target, parse_target

_LENGTH_BYTES = 8


def supply_declarations(rocm: Rocm, cache: Cache | None = None) -> Declarations:
    """The declarations of the header of *rocm*: the shipped ones if they are for this header, otherwise parsed once and
    cached.

    Raises as `read_header` and `parse_header` do, and `CacheError`.
    """
    return _declare(rocm, read_header(rocm), cache)


def _declare(rocm: Rocm, header: Header, cache: Cache | None) -> Declarations:
    """The declarations of *header*, which is that of *rocm*."""
    reference = load_reference()
    if header.digest == reference.header_digest:
        return reference
    store = cache if cache is not None else Cache()
    key = make_key("manifest", __version__, header.digest, header.version or "", repr(sorted(INSTANCES.items())))
    kept = store.get(key)
    if kept is not None:
        try:
            return load(kept)
        except ManifestError:
            pass  # an entry written by another build of this version: it is rebuilt below
    with _saying(f"reading the HIP header of {rocm.root}"):
        declarations = parse_header(header)
    store.put(key, save(declarations))
    return declarations


def _with_shipped(declarations: Declarations) -> Declarations:
    """*declarations*, followed by the shipped ones that are not among them."""
    lacking = [function for function in load_reference().functions if function.symbol not in declarations.by_symbol]
    return replace(declarations, functions=(*declarations.functions, *lacking))


def supply_library(
    target: str | Target, *, rocm: Rocm | None = None, compiler: Compiler | None = None, cache: Cache | None = None
) -> Library:
    """The library of HIP's device functions for *target*, from the cache, or built and cached.

    *rocm* and *compiler* default to the first that are found. The library contains the functions of the header and, for
    callers that use the shipped declarations, those of them that have other types in the header (``__fns32`` takes
    another mask since ROCm 7). If it is another header that cannot be parsed, because libclang is missing or does not
    understand it, the library is built from the shipped declarations alone. Functions that the header lacks are left
    out. Raises as `find_rocm`, `find_compiler` and `build_library` do, and `CacheError`.
    """
    resolved = target if isinstance(target, Target) else parse_target(target)
    found = rocm if rocm is not None else find_rocm()
    chosen = compiler if compiler is not None else find_compiler(found)
    store = cache if cache is not None else Cache()
    header = read_header(found)
    try:
        declarations = _with_shipped(_declare(found, header, store))
    except (MissingExtraError, HeaderError):
        declarations = replace(load_reference(), header_digest=header.digest, version=header.version)
    key = make_key(
        "library",
        __version__,
        llvmlite.__version__,
        hashlib.sha256(save(declarations)).hexdigest(),
        chosen.identity,
        _device_library_digest(chosen.device_libraries),
        resolved.id,
        str(resolved.wave_size),
    )
    kept = store.get(key)
    if kept is not None:
        return _unpack(kept, declarations)
    with store.making(key) as waited:
        kept = store.get(key) if waited else None
        if kept is not None:
            return _unpack(kept, declarations)
        with _saying(f"building the device library for {resolved.id} with {chosen.identity}"):
            library = build_library(declarations, chosen, resolved)
        store.put(key, _pack(library))
    return library


def supply_extension(
    extension: Extension,
    target: str | Target,
    *,
    rocm: Rocm | None = None,
    compiler: Compiler | None = None,
    cache: Cache | None = None,
) -> Library:
    """The library of the functions of *extension* for *target*, from the cache, or built and cached.

    It is rebuilt when the source, an included file, an option, HIP's header or the compiler changes; to find that out,
    the source is parsed each time. *rocm* and *compiler* default to the first that are found. Raises as `find_rocm`,
    `find_compiler` and `build_extension` do, and `CacheError`.
    """
    resolved = target if isinstance(target, Target) else parse_target(target)
    found = rocm if rocm is not None else find_rocm()
    chosen = compiler if compiler is not None else find_compiler(found)
    store = cache if cache is not None else Cache()
    header = read_header(found)
    try:
        declarations, included = declare_extension(extension, header)
    except HeaderError:
        chosen.compile(extension.text, resolved, extension.flags)  # its messages are about the user's own code
        raise
    key = make_key(
        "extension",
        __version__,
        llvmlite.__version__,
        header.digest,
        hashlib.sha256(save(declarations)).hexdigest(),
        chosen.identity,
        _device_library_digest(chosen.device_libraries),
        resolved.id,
        str(resolved.wave_size),
        extension.text,
        repr(extension.flags),
        *(f"{path} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in included),
    )
    kept = store.get(key)
    if kept is not None:
        return _unpack(kept, declarations)
    with _saying(f"building {extension.name} for {resolved.id} with {chosen.identity}"):
        chosen.compile(extension.text, resolved, extension.flags)
        library = build_declared(extension, declarations, chosen, resolved)
    store.put(key, _pack(library))
    return library


def _device_library_digest(folder: Path | None) -> str:
    """An identity of a set of device libraries: names, sizes and times, as reading their contents takes long."""
    if folder is None:
        return ""
    files = sorted(folder.glob("*.bc"))
    return make_key(str(folder), *(f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in files))


def _pack(library: Library) -> bytes:
    head = {
        "target": library.target,
        "compiler": library.compiler,
        "dropped": [astuple(item) for item in library.dropped],
        "functions": [function.symbol for function in library.functions],
    }
    encoded = json.dumps(head).encode()
    return len(encoded).to_bytes(_LENGTH_BYTES, "little") + encoded + library.bitcode


def _unpack(data: bytes, declarations: Declarations) -> Library:
    end = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "little")
    head = json.loads(data[_LENGTH_BYTES:end])
    functions = tuple(declarations.by_symbol[symbol] for symbol in head["functions"])
    dropped = tuple(Omission(*item) for item in head["dropped"])
    return Library(head["target"], data[end:], functions, dropped, head["compiler"])


@contextmanager
def _saying(what: str) -> Iterator[None]:
    """Tell a user at a terminal what takes so long."""
    shown = sys.stderr is not None and sys.stderr.isatty()
    if shown:
        print(f"hip-devicelib: {what} ...", file=sys.stderr, flush=True)
    yield
    if shown:
        print("hip-devicelib: done, and kept for the next time", file=sys.stderr, flush=True)
