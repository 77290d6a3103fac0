"""Code objects for AMD GPUs, and HIP's device functions, built without a GPU.

The names below are loaded on first use, so that importing this package takes little time.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hip_devicelib.amdgpu import assembly as assembly
    from hip_devicelib.amdgpu import data_layout as data_layout
    from hip_devicelib.amdgpu import llvm_text as llvm_text
    from hip_devicelib.amdgpu import make_library as make_library
    from hip_devicelib.amdgpu import object_code as object_code
    from hip_devicelib.amdgpu import optimise as optimise
    from hip_devicelib.amdgpu import undefined_symbols as undefined_symbols
    from hip_devicelib.cache import Cache as Cache
    from hip_devicelib.cached_libraries import supply_declarations as supply_declarations
    from hip_devicelib.cached_libraries import supply_extension as supply_extension
    from hip_devicelib.cached_libraries import supply_library as supply_library
    from hip_devicelib.codeobject import CPU_TARGET as CPU_TARGET
    from hip_devicelib.codeobject import CodeObject as CodeObject
    from hip_devicelib.codeobject import Kernel as Kernel
    from hip_devicelib.codeobject import Parameter as Parameter
    from hip_devicelib.codeobject import lay_out as lay_out
    from hip_devicelib.compilers import find_compiler as find_compiler
    from hip_devicelib.device_libraries import read_device_libraries as read_device_libraries
    from hip_devicelib.errors import CacheError as CacheError
    from hip_devicelib.errors import CodeObjectError as CodeObjectError
    from hip_devicelib.errors import CompileError as CompileError
    from hip_devicelib.errors import DevicelibError as DevicelibError
    from hip_devicelib.errors import HeaderError as HeaderError
    from hip_devicelib.errors import InvalidIRError as InvalidIRError
    from hip_devicelib.errors import LinkError as LinkError
    from hip_devicelib.errors import ManifestError as ManifestError
    from hip_devicelib.errors import MissingExtraError as MissingExtraError
    from hip_devicelib.errors import NotFoundError as NotFoundError
    from hip_devicelib.errors import UnknownTargetError as UnknownTargetError
    from hip_devicelib.errors import UnsupportedError as UnsupportedError
    from hip_devicelib.extension import Extension as Extension
    from hip_devicelib.extension import build_extension as build_extension
    from hip_devicelib.kernel_metadata import describe as describe
    from hip_devicelib.kernel_metadata import read_kernels as read_kernels
    from hip_devicelib.kernel_metadata import read_target as read_target
    from hip_devicelib.library import Library as Library
    from hip_devicelib.library import build_library as build_library
    from hip_devicelib.linkers import find_linker as find_linker
    from hip_devicelib.linkers import link as link
    from hip_devicelib.manifest import load_reference as load_reference
    from hip_devicelib.rocm import Rocm as Rocm
    from hip_devicelib.rocm import find_rocm as find_rocm
    from hip_devicelib.target import TARGETS as TARGETS
    from hip_devicelib.target import Target as Target
    from hip_devicelib.target import parse_target as parse_target

__version__ = "0.2.0"

_HOMES = {
    "amdgpu": ("assembly", "data_layout", "llvm_text", "make_library", "object_code", "optimise", "undefined_symbols"),
    "cache": ("Cache",),
    "cached_libraries": ("supply_declarations", "supply_extension", "supply_library"),
    "codeobject": ("CPU_TARGET", "CodeObject", "Kernel", "Parameter", "lay_out"),
    "compilers": ("find_compiler",),
    "device_libraries": ("read_device_libraries",),
    "errors": (
        "CacheError",
        "CodeObjectError",
        "CompileError",
        "DevicelibError",
        "HeaderError",
        "InvalidIRError",
        "LinkError",
        "ManifestError",
        "MissingExtraError",
        "NotFoundError",
        "UnknownTargetError",
        "UnsupportedError",
    ),
    "extension": ("Extension", "build_extension"),
    "library": ("Library", "build_library"),
    "linkers": ("find_linker", "link"),
    "manifest": ("load_reference",),
    "kernel_metadata": ("describe", "read_kernels", "read_target"),
    "rocm": ("Rocm", "find_rocm"),
    "target": ("TARGETS", "Target", "parse_target"),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
