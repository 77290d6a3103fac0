"""Code from elsewhere that is linked into a kernel: LLVM bitcode, LLVM IR as text, or source in C, C++ or HIP C++."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from llvmlite import binding as llvm

from hip_devicelib.cached_property import cached_property
from hip_devicelib.errors import CompileError, NotFoundError, UnsupportedError
from hip_runtime.module import Module
from hip_runtime.said_names import our
from numba_hip import config
from numba_hip.errors import LinkedCodeError, LinkedFileNotFoundError

SOURCES = frozenset({".c", ".cc", ".cpp", ".cu", ".cxx", ".hip"})
HEADERS = frozenset({".cuh", ".h", ".hpp"})
MACHINE_CODE = frozenset({".a", ".co", ".cubin", ".fatbin", ".hsaco", ".lib", ".o", ".obj", ".so"})
NVIDIA_CODE = frozenset({".ltoir", ".ptx"})

if TYPE_CHECKING:
    from hip_devicelib.extension import Extension

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
        """What *item* of a ``link=`` option stands for: the path of a file, something with ``data`` and ``name``, or
        with a method ``as_linked_code``.

        Raises `LinkedFileNotFoundError`, and `LinkedCodeError` for what cannot be linked.
        """
        if isinstance(item, (str, PathLike)):
            path = Path(item)
            _refuse_header(path)
            if not path.exists():
                raise LinkedFileNotFoundError(f"{path} not found")
            _refuse_machine_code(path)
            try:
                content = path.read_bytes()
            except OSError as error:
                raise LinkedCodeError(f"link: {str(path)!r} cannot be read: {error.strerror}") from None
            if path.suffix.lower() in SOURCES:
                return LinkedSource(content, str(path), include_paths=(path.parent,))
            return cls(content, str(path))
        if isinstance(item, LinkedCode):
            return item
        if hasattr(item, "as_linked_code"):
            return cast(LinkedCode, item.as_linked_code())
        data: Any = item if isinstance(item, bytes) else getattr(item, "data", None)
        if isinstance(data, str):
            data = data.encode()
        if not isinstance(data, bytes):
            raise LinkedCodeError(
                f"link: {item!r} is a {type(item).__name__}; it takes paths of LLVM bitcode (.bc), LLVM IR (.ll) or "
                f"source (.c, .cpp, .hip), {our('LinkedCode')} and {our('LinkedSource')} objects, or lists of these"
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

    def for_target(self, target: str) -> LinkedCode:
        """The same as bitcode or IR for *target*."""
        del target
        return self

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


@dataclass(frozen=True)
class LinkedSource(LinkedCode):
    """Functions in C, C++ or HIP C++, compiled for each target that a kernel with them is compiled for.

    ``data`` is the text (str, or bytes in UTF-8), ``name`` ends in the suffix of its language (``.c``, ``.cpp``,
    ``.hip``, ``.cu``), ``include_paths`` are the folders of files that it includes, before those of
    ``NUMBA_HIP_INCLUDE_PATHS``, and ``options`` are clang's. Functions that kernels call have C's linkage:
    ``extern "C" __device__``. For the CPU device the clang of the wheel ``ziglang`` compiles them: they have numbers,
    pointers and HIP's functions of numbers, but no ``threadIdx``, barriers and shared memory. For AMD GPUs it is a
    compiler of ROCm, or without ROCm that of ``ziglang``, which then lacks HIP's functions.
    """

    data: Any = field(repr=False)
    name: str = "source.hip"
    include_paths: tuple[Path, ...] = ()
    options: tuple[str, ...] = ()

    @cached_property
    def source(self) -> Extension:
        """The text with what compilers need to know of it."""
        from hip_devicelib.extension import Extension

        text = self.data if isinstance(self.data, str) else self.data.decode(errors="replace")
        paths = tuple(Path(path).resolve() for path in (*self.include_paths, *config.include_paths()))
        return Extension(text, paths, tuple(self.options), name=self.name)

    @property
    def digest(self) -> str:
        """SHA-256 of the text, the options, and of all that it may include."""
        from hip_devicelib.source_functions import digest_of

        return digest_of(self.source)

    def for_target(self, target: str) -> LinkedCode:
        """Its bitcode for *target*; `LinkedCodeError` where there is no compiler, or with what the compiler says."""
        from hip_devicelib.source_functions import supply_functions

        try:
            bitcode = supply_functions(self.source, target)
        except (CompileError, NotFoundError) as error:
            raise LinkedCodeError(f"link: {self.name}: {error}") from None
        return LinkedCode(bitcode, self.name, self.setup_callback, self.teardown_callback)


_survived: set[str] = set()
"""Digests of what was found to do no harm."""


def _refuse_header(path: Path) -> None:
    """Say what to do with a file that others include."""
    if path.suffix.lower() in HEADERS:
        raise LinkedCodeError(
            f"link: Don't know how to link file with extension {path.suffix}: {str(path)!r} is for including; pass the "
            f"source that includes it, or its text as {our('LinkedSource')}"
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
