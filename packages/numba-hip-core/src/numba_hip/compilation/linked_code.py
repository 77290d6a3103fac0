"""Code from elsewhere that is linked into a kernel: LLVM bitcode, or LLVM IR as text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm

from hip_devicelib.errors import UnsupportedError
from numba_hip.errors import LinkedCodeError, LinkedFileNotFoundError

SOURCES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hip", ".hpp"})
MACHINE_CODE = frozenset({".a", ".co", ".cubin", ".fatbin", ".hsaco", ".lib", ".o", ".obj", ".so"})
NVIDIA_CODE = frozenset({".ltoir", ".ptx"})

_INTRINSIC = re.compile(r"@\"?llvm\.(\w+)")


@dataclass(frozen=True)
class LinkedCode:
    """LLVM bitcode (``data`` is bytes) or LLVM IR (text, also as bytes). ``name`` stands in messages."""

    data: bytes = field(repr=False)
    name: str = "linked code"

    @classmethod
    def of(cls, item: Any) -> LinkedCode:
        """What *item* of a ``link=`` option stands for: the path of a file, or something with ``data`` and ``name``.

        Raises `LinkedFileNotFoundError`, and `LinkedCodeError` for what cannot be linked.
        """
        if isinstance(item, (str, PathLike)):
            path = Path(item)
            _refuse_source(path)
            if not path.exists():
                raise LinkedFileNotFoundError(f"{path} not found")
            _refuse_machine_code(path)
            try:
                return cls(path.read_bytes(), str(path))
            except OSError as error:
                raise LinkedCodeError(f"link: {str(path)!r} cannot be read: {error.strerror}") from None
        data = item if isinstance(item, bytes) else getattr(item, "data", None)
        if isinstance(data, str):
            data = data.encode()
        if not isinstance(data, bytes):
            raise LinkedCodeError(
                f"link: {item!r} is a {type(item).__name__}; it takes paths of LLVM bitcode (.bc) or LLVM IR (.ll), "
                "hip.LinkedCode objects, or lists of these"
            )
        return cls(data, str(getattr(item, "name", None) or cls.name))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents."""
        return hashlib.sha256(self.data).hexdigest()

    def parse(self, triple: str, data_layout: str) -> llvm.ModuleRef:
        """A module for the machine *triple*; `LinkedCodeError` where it is none, or one for another machine."""
        from hip_devicelib.emission import BITCODE_MAGICS
        from hip_runtime.drivers.cpu.backend_limits import MACHINES

        try:
            if self.data.startswith(BITCODE_MAGICS):
                self._check()
                module = llvm.parse_bitcode(self.data)
            else:
                text = self.data.decode()
                if any(machine in MACHINES for machine in _INTRINSIC.findall(text)):
                    self._check()
                module = llvm.parse_assembly(text)
            module.verify()
        except (RuntimeError, UnicodeDecodeError, UnsupportedError) as error:
            raise LinkedCodeError(f"link: {self.name} is neither LLVM bitcode nor LLVM IR: {error}") from None
        found, wanted = module.triple.partition("-")[0], triple.partition("-")[0]
        if found not in ("", "unknown", wanted):
            raise LinkedCodeError(f"link: {self.name} is code for {module.triple!r}; this kernel is for {triple!r}")
        module.triple, module.data_layout = triple, data_layout
        return module

    def _check(self) -> None:
        """`UnsupportedError` where LLVM does not survive what is in it: damaged bitcode, and text with intrinsics of a
        machine that have other types than there."""
        if self.digest not in _survived:
            from hip_devicelib.emission import optimise_apart

            optimise_apart(self.data)
            _survived.add(self.digest)


_survived: set[str] = set()
"""Digests of what was found to do no harm."""


def _refuse_source(path: Path) -> None:
    """Say what to do with a file of source code, by its suffix."""
    if path.suffix.lower() in SOURCES:
        raise LinkedCodeError(
            f"link: Don't know how to link file with extension {path.suffix}: {str(path)!r} is source code; compile it "
            "to LLVM bitcode first (clang -c -emit-llvm, with --offload-arch and --cuda-device-only for an AMD GPU)"
        )


def _refuse_machine_code(path: Path) -> None:
    """Say what a file is that is neither bitcode nor source code, by its suffix."""
    suffix = path.suffix.lower()
    if suffix in MACHINE_CODE:
        raise LinkedCodeError(f"link: {str(path)!r} is machine code; what can be linked is LLVM bitcode or LLVM IR")
    if suffix in NVIDIA_CODE:
        raise LinkedCodeError(f"link: {str(path)!r} is code for NVIDIA GPUs; what can be linked is LLVM bitcode")


def as_items(link: Any) -> tuple[Any, ...]:
    """The items of a ``link=`` option: one, or several in a list, tuple or set."""
    if link is None:
        return ()
    return tuple(link) if isinstance(link, (list, tuple, set, frozenset)) else (link,)


def read_all(items: Iterable[Any]) -> list[LinkedCode]:
    """`LinkedCode.of` each, the same contents once."""
    return list({code.digest: code for code in map(LinkedCode.of, items)}.values())
