"""Numba for AMD GPUs: write GPU kernels in Python.

``from numba import hip`` and ``import numba_hip as hip`` are the same module. Names follow Numba CUDA's.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from importlib import import_module
from typing import Any

if sys.argv[:1] == ["-m"]:  # Python looks for the module that it is to run, which may be this one
    from numba_hip import _doctor_call as _doctor_call

from numba_hip import _lower_layer as _lower_layer  # before the imports below, which would fail without an explanation

# isort: split
from hip_runtime import (
    DeviceArray,
    Event,
    ExecutableGraph,
    Graph,
    device_array,
    device_array_like,
    from_dlpack,
    full,
    is_device_array,
    ones,
    pinned_array,
    to_device,
    zeros,
)
from numba_hip import _alias
from numba_hip.arguments.transfer_hints import In, InOut, Out
from numba_hip.array_functions.guvectorize import guvectorize
from numba_hip.array_functions.vectorize import vectorize
from numba_hip.decorators import jit
from numba_hip.host.api import (
    compile,
    compile_all,
    compile_for_current_device,
    detect,
    event,
    event_elapsed_time,
    get_current_device,
    is_available,
    list_devices,
    reset,
    select_device,
    synchronize,
)
from numba_hip.host.contexts import (
    close,
    current_context,
    defer_cleanup,
    gpus,
    profile_start,
    profile_stop,
    profiling,
    require_context,
    set_memory_manager,
)
from numba_hip.host.host_memory import (
    MappedArray,
    as_device_array,
    from_cuda_array_interface,
    managed_array,
    mapped,
    mapped_array,
    mapped_array_like,
    open_ipc_array,
    pinned,
    pinned_array_like,
)
from numba_hip.host.ipc import IpcHandle
from numba_hip.host.memory_managers import (
    BaseCUDAMemoryManager,
    BaseMemoryManager,
    GetIpcHandleMixin,
    HostOnlyCUDAMemoryManager,
    HostOnlyMemoryManager,
    MappedMemory,
    MemoryInfo,
    MemoryPointer,
    PinnedMemory,
)
from numba_hip.host.streams import (
    Stream,
    default_stream,
    external_stream,
    legacy_default_stream,
    per_thread_default_stream,
    stream,
)
from numba_hip.installed_packages import entry_points
from numba_hip.language import atomic, cg, const, fp16, local, shared, vector
from numba_hip.language.bits import brev, cbrt, clz, ffs, fma, popc, selp
from numba_hip.language.byte_permutation import byte_perm, funnelshift_l, funnelshift_lc, funnelshift_r, funnelshift_rc
from numba_hip.language.cache_hints import ldca, ldcg, ldcs, ldcv, ldlu, stcg, stcs, stwb, stwt
from numba_hip.language.external_functions import declare_device
from numba_hip.language.lane_operations import ds_bpermute, ds_permute, mbcnt, readfirstlane, readlane
from numba_hip.language.match_operations import match_all, match_all_sync, match_any, match_any_sync
from numba_hip.language.sync import (
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    threadfence,
    threadfence_block,
    threadfence_system,
)
from numba_hip.language.thread_index import blockDim, blockIdx, grid, gridDim, gridsize, threadIdx
from numba_hip.language.timing import clock64, nanosleep, wall_clock64
from numba_hip.language.vector_types import VECTORS
from numba_hip.language.warp import (
    QUERIES,
    activemask,
    all,
    all_sync,
    any,
    any_sync,
    ballot,
    ballot_sync,
    eq_sync,
    lanemask_eq,
    lanemask_ge,
    lanemask_gt,
    lanemask_le,
    lanemask_lt,
    shfl,
    shfl_down,
    shfl_down_sync,
    shfl_sync,
    shfl_up,
    shfl_up_sync,
    shfl_xor,
    shfl_xor_sync,
    syncwarp,
)
from numba_hip.linked_code import LinkedCode, LinkedSource
from numba_hip.races.findings import races

__version__ = "0.2.0"

EXTENSIONS = "numba_hip.extensions"
"""Group of entry points with which packages above this one add names to it."""

LATE = {
    "algorithms": "numba_hip.algorithms",
    "bf16": "numba_hip.language.bf16",
    "block": "numba_hip.block",
    "collectives": "hip_runtime.collectives",
    "extending": "numba_hip.extending",
    "fp8": "numba_hip.language.fp8",
    "libdevice": "numba_hip.libdevice",
    "matrix": "numba_hip.language.matrix",
    "random": "numba_hip.random",
    "texture": "numba_hip.texture",
    "wave": "numba_hip.wave",
}
"""Modules that are loaded when they are first asked for."""

WITH_COMPAT = ("as_cuda_array", "cudadrv", "hipdrv", "is_cuda_array", "pose_as_cuda", "testing")
"""Names that `numba_hip` has where numba-hip-cuda-compat is installed, among others."""

_PROBED_NAMES = ("name", "_name", "_numba_type_")
"""What Numba asks everything for that a kernel refers to by a global name. To find that it is not there would take the
reading of HIP's declarations and of what is installed."""

LATE_NAMES = {
    "Reduce": "numba_hip.array_functions.reduction",
    "reduce": "numba_hip.array_functions.reduction",
    "asm": "numba_hip.inline_assembly",
    "autotune": "numba_hip.tuning",
    "benchmark": "hip_runtime.profiling",
    "suggest_block_size": "numba_hip.host.occupancy",
    "compile_llvm_ir": "numba_hip.host.llvm_ir",
    "compile_llvm_ir_for_current_device": "numba_hip.host.llvm_ir",
    "compile_ptx": "numba_hip.host.llvm_ir",
    "compile_ptx_for_current_device": "numba_hip.host.llvm_ir",
    "current_hip_extensions": "numba_hip.language.hip_extensions",
    "current_hip_extra_cflags": "numba_hip.language.hip_extensions",
    "float8_e4m3fn": "numba_hip.float8",
    "float8_e4m3fnuz": "numba_hip.float8",
    "float8_e5m2": "numba_hip.float8",
    "float8_e5m2fnuz": "numba_hip.float8",
    "precompile": "numba_hip.precompilation",
    "profile": "hip_runtime.profiling",
    "range": "hip_runtime.profiling",
    "roofline": "numba_hip.rooflines",
    "set_hip_extensions": "numba_hip.language.hip_extensions",
}
"""Names of modules that are loaded when one of them is first asked for."""


def __getattr__(name: str) -> Any:
    if name in VECTORS:
        return VECTORS[name]
    if name in QUERIES:
        return QUERIES[name].read()
    # Numba also asks whatever a kernel refers to whether it is an array.
    if name in _PROBED_NAMES or (name.startswith("__") and name.endswith("__")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    for entry_point in entry_points(group=EXTENSIONS, name=name):
        value = globals()[name] = entry_point.load()
        return value
    if name in LATE:
        return globals().setdefault(name, import_module(LATE[name]))
    if name in LATE_NAMES:
        return globals().setdefault(name, getattr(import_module(LATE_NAMES[name]), name))
    if name == "bfloat16":
        return globals().setdefault(name, import_module("numba_hip.bfloat").bfloat16)
    mine = sys.modules.get("numba_hip.language.hip_extensions")
    if mine is not None and (own := mine.find(name)) is not None:
        return own  # not stored: another call of set_hip_extensions removes it
    from numba_hip.language.hip_functions import find  # the declarations are read when the first one is used

    function = find(name)
    if function is not None:
        return globals().setdefault(name, function)
    if name in WITH_COMPAT and next(_alias.namespaces(), None) is None:
        raise AttributeError(f"hip.{name} comes with another package: pip install numba-hip-cuda-compat")
    for namespace in () if name.startswith("__") else _alias.namespaces():
        with suppress(LookupError):
            return namespace.look_up(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{_hint(name)}")


def _hint(name: str) -> str:
    """A hint at a similar name; empty for names that tools look up in every module."""
    if name.startswith("_"):
        return ""
    from numba_hip.suggestions import kept_hint

    return kept_hint(name, tuple(__dir__()))


def __dir__() -> list[str]:
    of_modules = [name for name in globals() if name.startswith("__")]
    return sorted({*of_modules, *__all__, *VECTORS, *LATE, *LATE_NAMES, "bfloat16", "config", "errors"})


__all__ = [
    "BaseCUDAMemoryManager", "BaseMemoryManager", "DeviceArray", "Event", "ExecutableGraph",
    "GetIpcHandleMixin", "Graph",
    "HostOnlyCUDAMemoryManager", "HostOnlyMemoryManager", "In", "InOut", "IpcHandle", "LinkedCode", "LinkedSource",
    "MappedArray",
    "MappedMemory", "MemoryInfo", "MemoryPointer", "Out", "PinnedMemory", "Reduce", "Stream", "activemask", "all",
    "all_sync", "any", "any_sync", "as_device_array", "atomic", "ballot", "ballot_sync", "blockDim", "blockIdx", "brev",
    "byte_perm", "cbrt", "cg", "clock64", "close", "clz", "compile", "compile_all", "compile_for_current_device",
    "const", "current_context", "declare_device", "default_stream", "defer_cleanup", "detect", "device_array",
    "device_array_like", "ds_bpermute", "ds_permute", "eq_sync", "event", "event_elapsed_time", "external_stream",
    "ffs", "fma", "fp16", "from_cuda_array_interface", "from_dlpack", "full", "funnelshift_l", "funnelshift_lc",
    "funnelshift_r", "funnelshift_rc", "get_current_device", "gpus", "grid", "gridDim", "gridsize", "guvectorize",
    "is_available", "is_device_array", "jit", "laneid", "lanemask_eq", "lanemask_ge", "lanemask_gt", "lanemask_le",
    "lanemask_lt", "ldca", "ldcg", "ldcs", "ldcv", "ldlu", "legacy_default_stream", "list_devices", "local",
    "managed_array", "mapped", "mapped_array", "mapped_array_like", "match_all", "match_all_sync", "match_any",
    "match_any_sync", "mbcnt",
    "nanosleep", "ones", "open_ipc_array", "per_thread_default_stream", "pinned", "pinned_array", "pinned_array_like",
    "popc", "profile_start", "profile_stop", "profiling", "races", "readfirstlane", "readlane", "reduce",
    "require_context", "reset",
    "select_device", "selp", "set_memory_manager", "shared", "shfl", "shfl_down", "shfl_down_sync", "shfl_sync",
    "shfl_up", "shfl_up_sync", "shfl_xor", "shfl_xor_sync", "stcg", "stcs", "stream", "stwb", "stwt", "synchronize",
    "syncthreads", "syncthreads_and", "syncthreads_count", "syncthreads_or", "syncwarp", "threadIdx", "threadfence",
    "threadfence_block", "threadfence_system", "to_device", "vector", "vectorize", "wall_clock64", "warpsize", "zeros",
]  # fmt: skip

_alias.install()  # last, so that a failed import leaves no second name behind
