"""Code from elsewhere that is linked into a kernel: LLVM bitcode, or LLVM IR as text."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm

from hip_devicelib.cached_property import cached_property
from hip_devicelib.errors import UnsupportedError
from hip_runtime.module import Module
from numba_hip.errors import LinkedCodeError, LinkedFileNotFoundError

SOURCES = frozenset({".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hip", ".hpp"})
MACHINE_CODE = frozenset({".a", ".co", ".cubin", ".fatbin", ".hsaco", ".lib", ".o", ".obj", ".so"})
NVIDIA_CODE = frozenset({".ltoir", ".ptx"})

Callback = Callable[[Module], object]

_INTRINSIC = re.compile(r"@\"?llvm\.(\w+)")


@dataclass(frozen=True)
class LinkedCode:
    """LLVM bitcode (``data`` is bytes) or LLVM IR (text, also as bytes). ``name`` stands in messages.

    ``setup_callback`` is called with each `hip_runtime.Module` that this code is part of, when it was loaded and before
    anything of it runs, ``teardown_callback`` just before that is unloaded, at the latest when the process ends. On
    AMD GPUs ``module.global_variable(name)`` finds the variables of this code then.
    """

    data: bytes = field(repr=False)
    name: str = "linked code"
    setup_callback: Callback | None = None
    teardown_callback: Callback | None = None

    def __post_init__(self) -> None:
        """`LinkedCodeError` for callbacks that cannot be called."""
        for name in ("setup_callback", "teardown_callback"):
            callback = getattr(self, name)
            if callback is not None and not callable(callback):
                raise LinkedCodeError(f"{name} of {self.name} is {callback!r}; it has to be callable, or None")

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
        callbacks = (getattr(item, name, None) for name in ("setup_callback", "teardown_callback"))
        return cls(data, str(getattr(item, "name", None) or cls.name), *callbacks)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the contents."""
        return hashlib.sha256(self.data).hexdigest()

    @property
    def has_callbacks(self) -> bool:
        """Whether there is anything to call when it is loaded or unloaded."""
        return self.setup_callback is not None or self.teardown_callback is not None

    @property
    def fingerprint(self) -> str:
        """Text that is another one for other contents, and where there are callbacks."""
        return f"{self.digest} with callbacks" if self.has_callbacks else self.digest

    @property
    def identity(self) -> tuple[str, Callback | None, Callback | None]:
        """What two have in common that are the same: contents and callbacks."""
        return self.digest, self.setup_callback, self.teardown_callback

    def parse(self, triple: str, data_layout: str) -> llvm.ModuleRef:
        """A module for the machine *triple*; `LinkedCodeError` where it is none, or one for another machine."""
        from hip_devicelib.isolated_codegen import BITCODE_MAGICS
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
            from hip_devicelib.isolated_codegen import optimise_apart

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
    """`LinkedCode.of` each, the same one once."""
    return list({code.identity: code for code in map(LinkedCode.of, items)}.values())


def set_up(module: Module, codes: Iterable[LinkedCode]) -> None:
    """Call what *codes* want to be called of *module*, which was just loaded, and see to it that they are told of its
    end."""
    for code in codes:
        if code.setup_callback is not None:
            code.setup_callback(module)
        if code.teardown_callback is not None:
            module.before_unload(code.teardown_callback)
