"""Compiled kernels on disk, from one process to the next: ``cache=True``.

An entry is found by the fingerprint of everything that it depends on, and is used if its source files have not changed.
It consists of a JSON header and LLVM bitcode; nothing in it is pickled, and nothing is run or imported to read it.
`hip_devicelib.cache` is responsible for writing, checksums and the permissions of the directory.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from numba.core import types
from numba.core.errors import NumbaWarning

from hip_devicelib.cache import Cache
from hip_devicelib.codeobject import Parameter
from hip_devicelib.errors import CacheError
from hip_runtime.device import stack_level
from numba_hip import config
from numba_hip.abi.fault import Fault
from numba_hip.caching import fingerprint
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.compilation.options import CompileOptions
from numba_hip.compilation.target_registry import compile_target
from numba_hip.plain_messages import warn_plainly

Types = tuple[types.Type, ...]
LENGTH_BYTES = 8


@dataclass(frozen=True)
class CacheEntry:
    """A kernel's place in the cache: its key, and the source files that it depends on."""

    key: str
    files: frozenset[str]
    options: CompileOptions
    args: Types
    target: str


class KernelCache:
    """The cache of one kernel. Raises `hip_devicelib.errors.CacheError` if the directory cannot be used."""

    def __init__(self) -> None:
        self.path = config.cache_dir().absolute()
        self._cache = Cache(self.path, variable=config.cache_dir.variable)

    def place(
        self, py_func: Callable[..., Any], args: Types, options: CompileOptions, target: str
    ) -> CacheEntry | None:
        """The place of a kernel; ``None``, with a warning, if no fingerprint of something that it refers to can be
        made."""
        try:
            key, files = fingerprint.fingerprint_kernel(py_func, args, fingerprint.fingerprint_options(options), target)
        except fingerprint.NoFingerprintError as error:
            _warn(f"kernel {py_func.__name__} is not kept in the cache: it refers to {error}")
            return None
        return CacheEntry(key, frozenset(files), options, args, target)

    def load(self, place: CacheEntry) -> KernelCode | None:
        """The kernel at *place*; ``None`` if there is none, if its sources have changed, or, with a warning, if it
        cannot be read."""
        try:
            data = self._cache.get(place.key)
        except CacheError as error:
            _warn(f"a kernel is not looked up in the cache: {error}")
            return None
        if data is None:
            return None
        start = LENGTH_BYTES + int.from_bytes(data[:LENGTH_BYTES], "little")
        header = json.loads(data[LENGTH_BYTES:start])
        end = start + header["bitcode"]
        if header["sources"] != fingerprint.fingerprint_files(header["sources"]):
            return None
        faults = [_read_fault(*fault) for fault in header["faults"]]
        if None in faults:
            return None
        return KernelCode(
            name=header["name"],
            target=compile_target(place.target, place.options.variant),
            options=place.options,
            argument_types=place.args,
            parameters=tuple(Parameter(*parameter) for parameter in header["parameters"]),
            argument_bytes=header["argument_bytes"],
            bitcode=data[start:end],
            data=_read_data(header["data"], data[end:]),
            faults={fault.code: fault for fault in faults if fault is not None},
            annotation=header["annotation"],
            sources=frozenset(header["sources"]),
            declared_cooperative=header.get("declared_cooperative", False),  # older entries have none that is
        )

    def making(self, place: CacheEntry) -> AbstractContextManager[bool]:
        """See `hip_devicelib.cache.Cache.making`."""
        return self._cache.making(place.key)

    def save(self, place: CacheEntry, code: KernelCode) -> None:
        """Store *code*, or warn if that is not possible."""
        if code.linked:
            _warn(f"kernel {code.name} is not kept in the cache: {code.linked[0].name}, which it links, has callbacks")
            return
        for fault in code.faults.values():
            if _read_fault(*_write_fault(fault)) != fault:
                _warn(f"kernel {code.name} is not kept in the cache: another process could not raise {fault}")
                return
        header = {
            "name": code.name,
            "parameters": [[part.name, part.type, part.offset, part.size] for part in code.parameters],
            "argument_bytes": code.argument_bytes,
            "faults": [_write_fault(fault) for fault in code.faults.values()],
            "annotation": str(code.annotation),
            "bitcode": len(code.bitcode),
            "data": [[symbol, len(contents)] for symbol, contents in code.data.items()],
            "sources": fingerprint.fingerprint_files(place.files | code.sources),
            "declared_cooperative": code.declared_cooperative,
        }
        text = json.dumps(header).encode()
        try:
            parts = (len(text).to_bytes(LENGTH_BYTES, "little"), text, code.bitcode, *code.data.values())
            self._cache.put(place.key, b"".join(parts))
        except CacheError as error:
            _warn(f"kernel {code.name} is not kept in the cache: {error}")


def _read_data(sizes: list[tuple[str, int]], joined: bytes) -> dict[str, bytes]:
    """Split the concatenated bytes of large constants by their symbols and sizes."""
    found: dict[str, bytes] = {}
    end = 0
    for symbol, size in sizes:
        found[symbol] = joined[end : end + size]
        end += size
    return found


def _warn(message: str) -> None:
    warn_plainly(NumbaWarning, message, stack_level())


def _write_fault(fault: Fault) -> tuple[str, str, str, str | None]:
    return fault.exception.__module__, fault.exception.__qualname__, repr(fault.arguments), fault.location


def _read_fault(module: str, name: str, arguments: str, location: str | None) -> Fault | None:
    """The fault, if its exception is a class of a module that this process has loaded; otherwise ``None``."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return None
    try:
        return Fault(found, ast.literal_eval(arguments), location)
    except (ValueError, SyntaxError):
        return None
