"""The fingerprint of a kernel: a hash of its code, everything that it refers to, and its argument types.

It is computed from contents: the bytecode of the function and of the functions that it calls, constants, captured
arrays, defaults, options. Code that a function uses without naming it, such as overloads, counts in the same way
(`extension_code`). Files have separate fingerprints, by `fingerprint_files`.
"""

from __future__ import annotations

import builtins
import dis
import enum
import hashlib
import importlib
import inspect
import os
import sys
import types as python_types
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numpy as np
from numba.core import types

from hip_devicelib.codeobject import CPU_TARGET
from hip_runtime import config as runtime_config
from numba_hip._numba.identity import definition_of, dump, load_extensions, python_identity
from numba_hip._numba.ufuncs import host_ufunc
from numba_hip.arguments.argument_types import is_on_device
from numba_hip.caching.extension_code import reachable_code
from numba_hip.caching.versioned_modules import is_covered, module_of
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import NotCacheableError
from numba_hip.installed_packages import version
from numba_hip.linked_code import read_all

PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
PACKAGES = ("numba-hip-core", "hip-devicelib", "hip-runtime", "numba", "llvmlite", "numpy")


LEFT_OUT = frozenset(
    "__dict__ __weakref__ __doc__ __module__ __qualname__ __annotations__ __annotate_func__ __annotations_cache__ "
    "__firstlineno__ __static_attributes__ __slots__ __hash__ __abstractmethods__ _abc_impl".split()
)
"""What a class has that says nothing of what it does."""

SAME_CODE = ("cache", "lto")
"""Options that change nothing of the code."""

ENVIRONMENT = "the environment (os.environ), from which code that runs while a kernel is compiled takes what it likes"


class NoFingerprintError(Exception):
    """A value that cannot be compared between processes."""


class Fingerprint:
    """A SHA-256 that is updated with each added value, and the files that the added functions come from."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []  # visited objects stay alive, so that their ids stay unique
        self.files: set[str] = set()
        self.words: set[str] = set()
        """Names and texts in the code that was added: attributes are read by these."""

    def hexdigest(self) -> str:
        """The fingerprint of all that was added."""
        return self._digest.hexdigest()

    def add_text(self, *parts: str) -> None:
        """Add *parts*, so that two different lists never give the same bytes."""
        for part in parts:
            data = part.encode("utf-8", "surrogatepass")
            self._digest.update(len(data).to_bytes(8, "little") + data)

    def add_bytes(self, data: bytes) -> None:
        """Add raw bytes."""
        self._digest.update(len(data).to_bytes(8, "little") + data)

    def add(self, value: Any) -> None:
        """Add any *value* that a kernel can refer to. Raises `NoFingerprintError`."""
        if isinstance(value, PLAIN):
            self.add_text(type(value).__name__, repr(value))
        elif isinstance(value, (np.ndarray, np.generic)):
            self._add_array(np.asarray(value))
        elif isinstance(value, types.Type):
            self._add_type(value)
        elif isinstance(value, (tuple, list)):
            self.add_text(type(value).__qualname__, str(len(value)))
            for member in value:
                self.add(member)
        elif isinstance(value, (set, frozenset)):
            self.add_text("set", *sorted(map(_fingerprint_of, value)))
        elif not isinstance(value, type) and is_on_device(value):
            raise NotCacheableError(
                "a kernel that refers to global device arrays, by their addresses, cannot be kept in the cache for "
                "another process: pass the arrays as arguments, or leave out cache=True"
            )
        elif isinstance(value, dict):
            self.add_text("dict", *(_fingerprint_of(item) for item in value.items()))
        else:
            self._add_object(value)

    def _add_array(self, array: np.ndarray[Any, Any]) -> None:
        if array.dtype.hasobject:
            raise NoFingerprintError(f"an array of dtype {array.dtype}")
        self.add_text("array", repr(np.lib.format.dtype_to_descr(array.dtype)), repr(array.shape))
        self.add_text(repr((array.flags.c_contiguous, array.flags.f_contiguous, array.flags.writeable)))
        self.add_bytes(array.tobytes())

    def _add_type(self, kind: types.Type) -> None:
        self.add_text(type(kind).__name__, str(kind))
        if not is_covered(module_of(type(kind))):
            self.add(type(kind))
        for part in ("instance_class", "dtype"):
            inner = getattr(kind, part, None)
            if isinstance(inner, (type, types.Type)):
                self.add(inner)
        if isinstance(kind, types.BaseTuple):
            for member in kind:
                self._add_type(member)

    def _add_object(self, value: Any) -> None:
        if id(value) in self._seen:
            self.add_text("again", str(self._seen[id(value)]))
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        definition = definition_of(value)
        if isinstance(value, python_types.FunctionType):
            self._add_function(value)
        elif definition is not None:
            source = host_ufunc(value) or value
            self.add_text(type(value).__qualname__, _options_of(source))
            self.add(getattr(source, "device_signatures", None))
            self.add(definition)
        elif isinstance(value, python_types.ModuleType):
            self.add_text("module", value.__name__)
        elif isinstance(value, type):
            self._add_class(value)
        elif value is os.environ:
            raise NoFingerprintError(ENVIRONMENT)
        elif isinstance(value, enum.Enum):
            self.add_text("member", value.name)
            self._add_object(type(value))
        elif hasattr(value, "add_to_fingerprint"):
            value.add_to_fingerprint(self)
        elif hasattr(value, "__qualname__") and hasattr(value, "__module__"):
            self.add_text("name", str(value.__module__), value.__qualname__)
        else:
            self._add_pickled(value)

    def _add_pickled(self, value: Any) -> None:
        try:
            data = dump(value)
        except Exception as error:
            raise NoFingerprintError(f"{value!r}, which cannot be pickled: {error}") from error
        self.add_bytes(data)
        self.add(type(value))

    def add_extensions(self) -> None:
        """Add the extension code that can be reached from the values added so far."""
        load_extensions()
        found = True
        while found:
            codes = [code for code in reachable_code(self.words, self._has) if not self._has(code)]
            for code in codes:
                self._add_object(code)
            found = bool(codes)

    def _has(self, value: Any) -> bool:
        return id(value) in self._seen

    def _add_class(self, kind: type) -> None:
        self.add_text("class", kind.__module__, kind.__qualname__)
        if issubclass(kind, enum.Enum):
            for member in kind:
                self.add_text(member.name)
                self.add(member.value)
        if not (is_covered(module_of(kind)) or issubclass(kind, enum.Enum)):
            self._add_namespace(kind)

    def _add_namespace(self, kind: type) -> None:
        """Add the attributes of a class: code that runs while a kernel is compiled can use any of them."""
        for name, member in sorted(vars(kind).items()):
            if name not in LEFT_OUT and not inspect.ismemberdescriptor(member):
                self.add_text("member", name, type(member).__qualname__)
                parts = [getattr(member, part, None) for part in ("__func__", "fget", "fset", "func")]
                functions = [part for part in parts if isinstance(part, python_types.FunctionType)]
                for part in functions or [member]:
                    self.add(part)
        for base in kind.__bases__:
            self.add(base)

    def _add_function(self, function: python_types.FunctionType) -> None:
        code = function.__code__
        self.add_text("function", function.__qualname__)
        if function is os.getenv:
            raise NoFingerprintError(ENVIRONMENT)
        if is_covered(module_of(function)):
            self.add_text(str(module_of(function)))
            self.add(getattr(function, "made_from", None))  # what a function of ours has of the program
            return
        self._add_code(code)
        self.add(function.__defaults__)
        self.add(function.__kwdefaults__)
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            self.add_text("cell", name)
            try:
                self.add(cell.cell_contents)
            except ValueError:
                self.add_text("empty")
        names = sorted(_names_in(code))
        self.words.update(names)
        for name in names:
            if name in function.__globals__:
                self.add_text("global", name)
                self._add_reached(function.__globals__[name], names)
            elif not hasattr(builtins, name):
                self.add_text("no global", name)
            elif name == "open":
                raise NoFingerprintError("open, by which code that runs while a kernel is compiled reads files")
        for module in _imported_by(code, function.__globals__):
            self._add_reached(module, names)

    def _add_reached(self, value: Any, names: Iterable[str]) -> None:
        """Add a global; of a module only the attributes that the function may use, by their *names*."""
        self.add(value)
        if not isinstance(value, python_types.ModuleType):
            return
        if value is os and not {"environ", "getenv"}.isdisjoint(names):
            raise NoFingerprintError(ENVIRONMENT)
        if is_covered(value.__name__):
            return
        for name in names:
            member = value.__dict__.get(name)
            if member is not None and member is not value:
                self.add_text("member", name)
                self._add_reached(member, names if id(member) not in self._seen else ())

    def _add_code(self, code: python_types.CodeType) -> None:
        if os.path.isfile(code.co_filename):
            self.files.add(code.co_filename)
            self.add_text(code.co_filename)
        counts = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags, code.co_firstlineno)
        self.add_text(code.co_name, repr(counts), repr((code.co_varnames, code.co_names)))
        self.add_text(repr((code.co_freevars, code.co_cellvars)), repr(list(code.co_lines())))
        self.add_bytes(code.co_code)
        for constant in code.co_consts:
            if isinstance(constant, python_types.CodeType):
                self._add_code(constant)
            else:
                self.add(constant)


def _fingerprint_of(value: Any) -> str:
    fingerprint = Fingerprint()
    fingerprint.add(value)
    return fingerprint.hexdigest()


def fingerprint_options(options: CompileOptions) -> str:
    """Text that differs for *options* that lead to different code."""
    chosen = {field.name: getattr(options, field.name) for field in fields(options) if field.name not in SAME_CODE}
    chosen["boundscheck"], chosen["races"] = options.checked, options.observed
    if callable(options.inline):
        chosen["inline"] = _fingerprint_of(options.inline)
    chosen["link"] = [code.fingerprint for code in read_all(options.link)]
    return repr({name: sorted(value) if isinstance(value, set) else value for name, value in chosen.items()})


def _names_in(code: python_types.CodeType) -> set[str]:
    """Names of globals and attributes in *code* and in the functions that are defined in it."""
    inner = (constant for constant in code.co_consts if isinstance(constant, python_types.CodeType))
    return set(code.co_names).union(*map(_names_in, inner))


def _options_of(dispatcher: Any) -> str:
    options = getattr(dispatcher, "options", None) or getattr(dispatcher, "targetoptions", None) or {}
    if getattr(options, "rewrite", None) is not None:
        raise NoFingerprintError(f"{dispatcher!r}, which is rewritten when it is compiled")
    if isinstance(options, CompileOptions):
        return fingerprint_options(options)
    if isinstance(options, dict):
        return repr(sorted((name, _shown(value)) for name, value in options.items()))
    return _shown(options)


def _shown(value: Any) -> str:
    return repr(sorted(value)) if isinstance(value, (set, frozenset)) else repr(value)


def _imported_by(code: python_types.CodeType, namespace: dict[str, Any]) -> list[python_types.ModuleType]:
    """The modules that *code* and the functions defined in it import when they run."""
    found, level = [], 0
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IMPORT_NAME":
            name = "." * level + instruction.argval
            try:
                found.append(importlib.import_module(name, namespace.get("__package__")))
            except ImportError as error:
                raise NoFingerprintError(f"the module {name}: {error}") from error
        elif isinstance(instruction.argval, int):  # the last constant before an import is its level
            level = instruction.argval
        elif isinstance(instruction.argval, python_types.CodeType):
            found += _imported_by(instruction.argval, namespace)
    return found


@cache
def _package_roots() -> tuple[str, ...]:
    modules = [sys.modules[name] for name in ("numba", "numba_hip", "hip_devicelib")]
    return tuple(os.path.dirname(str(module.__file__)) + os.sep for module in modules)


@cache
def fingerprint_toolchain() -> str:
    """Versions of Python and of the packages that compile, and fingerprints of the files of those that are installed in
    editable mode."""
    fingerprint = Fingerprint()
    fingerprint.add_text(python_identity(), *(f"{package} {version(package)}" for package in PACKAGES))
    fingerprint.add_text(repr(llvmlite.binding.llvm_version_info))
    for root in _package_roots()[1:]:
        for path in sorted(Path(root).rglob("*.py")):
            status = path.stat()
            fingerprint.add_text(str(path), str(status.st_mtime_ns), str(status.st_size))
    return fingerprint.hexdigest()


def fingerprint_target(target: str) -> str:
    """*target*; for the CPU device also the processor, its features and the size of waves."""
    if target != CPU_TARGET:
        return target
    # The types of programs for Numba CUDA depend on the size of waves.
    return f"{target} {runtime_config.cpu_wave_size()} {processor()}"


@cache
def processor() -> str:
    """The processor of this machine and its features."""
    binding = llvmlite.binding
    return f"{binding.get_host_cpu_name()} {binding.get_host_cpu_features().flatten()}"


def fingerprint_files(files: Iterable[str]) -> dict[str, str]:
    """SHA-256 of each of *files* that exists; those of Numba and of this package are left out."""
    found = {}
    for name in files:
        if not name.startswith(_package_roots()) and os.path.isfile(name):
            found[name] = hashlib.sha256(Path(name).read_bytes()).hexdigest()
    return found


def fingerprint_kernel(
    py_func: Callable[..., Any], args: Iterable[types.Type], options: str, target: str
) -> tuple[str, set[str]]:
    """The fingerprint of a kernel for argument types *args*, and the files of the functions that it names.

    Raises `NoFingerprintError` if it refers to something without a fingerprint.
    """
    fingerprint = Fingerprint()
    fingerprint.add_text("kernel 1", fingerprint_toolchain(), fingerprint_target(target), options)
    for kind in args:
        fingerprint.add(kind)
    try:
        fingerprint.add(py_func)
        fingerprint.add_extensions()
    except RecursionError:
        raise NoFingerprintError("a value that holds itself") from None
    return fingerprint.hexdigest(), fingerprint.files
