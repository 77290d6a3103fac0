"""The names of `numba.cuda`, and what stands for each: data, and how to read it.

A name means one of three things, which `look_up` keeps apart: it stands for an object (of `numba_hip`, or of
`numba_hip_cuda.shims` where the two behave differently); it is a name of CUDA that HIP has no counterpart for, with the
reason; or `numba.cuda` has no such name at all.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass

CUDA = "numba.cuda"

_SAME = """
    grid gridsize threadIdx blockIdx blockDim gridDim laneid warpsize
    syncthreads syncthreads_and syncthreads_or syncthreads_count syncwarp
    threadfence threadfence_block threadfence_system
    shared local const atomic cg fp16
    activemask lanemask_lt all_sync any_sync eq_sync ballot_sync match_all_sync match_any_sync
    shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync
    popc brev clz ffs fma cbrt selp nanosleep
    jit declare_device reduce Reduce In Out InOut
    is_available detect gpus list_devices select_device get_current_device current_context require_context close
    synchronize stream default_stream legacy_default_stream per_thread_default_stream external_stream
    event event_elapsed_time profile_start profile_stop profiling
    to_device device_array device_array_like pinned pinned_array pinned_array_like mapped mapped_array
    mapped_array_like managed_array from_cuda_array_interface defer_cleanup open_ipc_array
    set_memory_manager BaseCUDAMemoryManager HostOnlyCUDAMemoryManager GetIpcHandleMixin MemoryInfo MemoryPointer
    MappedMemory PinnedMemory IpcHandle is_float16_supported
""".split()
"""Names that mean the same under `numba_hip`."""

_VECTOR_TYPES = [
    *(
        f"{kind}{lanes}"
        for kind in "char uchar short ushort int uint long ulong longlong ulonglong float double".split()
        for lanes in range(1, 5)
    ),
    *(
        f"{kind}x{lanes}"
        for kind in "int8 uint8 int16 uint16 int32 uint32 int64 uint64 float32 float64".split()
        for lanes in range(1, 5)
    ),
]

_RENAMED = {
    "as_cuda_array": "numba_hip:as_device_array",
    "is_cuda_array": "numba_hip:is_device_array",
}
"""Names that `numba_hip` has under another name."""

_SHIMS = "implementation is_supported_version cuda_error".split()

_NO_PTX = "PTX is NVIDIA's assembly language; numba_hip.compile gives LLVM IR, assembly and objects for AMD GPUs"
_NO_NVVM = "NVVM is NVIDIA's compiler; kernels are compiled by LLVM here"
_NO_CUDA_RUNTIME = "there is no CUDA runtime beneath; numba_hip.get_current_device() tells what there is"

_ERRORS = {
    "CudaSupportError": "hip_runtime.errors:DeviceUnavailableError",
    "CudaDriverError": "hip_runtime.errors:HipRuntimeError",
    "CudaAPIError": "hip_runtime.errors:HipRuntimeError",
}


@dataclass(frozen=True)
class Module:
    """One module of `numba.cuda`: what its names stand for, as ``module:name``, and which HIP cannot have, and why."""

    names: Mapping[str, str]
    absent: Mapping[str, str]


def _same(names: list[str]) -> dict[str, str]:
    return {name: f"numba_hip:{name}" for name in names}


MODULES: Mapping[str, Module] = {
    CUDA: Module(
        names={
            **_same(_SAME),
            **_same(_VECTOR_TYPES),
            **_RENAMED,
            **{name: f"numba_hip_cuda.shims:{name}" for name in _SHIMS},
            "CudaSupportError": _ERRORS["CudaSupportError"],
        },
        absent={
            "compile": _NO_PTX,
            "compile_for_current_device": _NO_PTX,
            "compile_ptx": _NO_PTX,
            "compile_ptx_for_current_device": _NO_PTX,
            "runtime": _NO_CUDA_RUNTIME,
            "nvvm": _NO_NVVM,
        },
    ),
    f"{CUDA}.cudadrv": Module(names={}, absent={"nvvm": _NO_NVVM}),
    f"{CUDA}.cudadrv.driver": Module(
        names={"CudaAPIError": _ERRORS["CudaAPIError"]}, absent={"driver": "there is no CUDA driver beneath"}
    ),
    f"{CUDA}.cudadrv.error": Module(names=_ERRORS, absent={}),
    f"{CUDA}.cudadrv.devicearray": Module(
        names={"DeviceNDArray": "numba_hip:DeviceArray", "is_cuda_ndarray": "numba_hip:is_device_array"},
        absent={},
    ),
    f"{CUDA}.cudadrv.devices": Module(
        names={"gpus": "numba_hip:gpus", "get_context": "numba_hip:current_context"}, absent={}
    ),
    f"{CUDA}.args": Module(names=_same(["In", "Out", "InOut"]), absent={}),
}
"""The modules that a posed `numba.cuda` is made of, by their full names."""

FORWARDED: Mapping[str, str] = {
    f"{CUDA}.random": "numba_hip.random",
    f"{CUDA}.cg": "numba_hip.cg",
    f"{CUDA}.libdevice": "numba_hip.libdevice",
}
"""Modules of `numba.cuda` that a whole module of `numba_hip` stands for."""


class UnknownNameError(AttributeError):
    """`numba.cuda` has no such name, as far as this package knows."""


class UnavailableNameError(AttributeError):
    """A name of `numba.cuda` that has no counterpart, or none in the `numba_hip` that is installed."""


def look_up(module: str, name: str) -> object:
    """The object that *name* of *module* (a key of `MODULES`) stands for.

    Raises `UnknownNameError` or `UnavailableNameError`, which say that this is not NVIDIA's module and what it has.
    """
    table = MODULES[module]
    where = table.names.get(name)
    if where is not None:
        return _resolve(module, name, where)
    if name in table.absent:
        raise UnavailableNameError(
            f"{module}.{name} has no counterpart on HIP (numba_hip_cuda poses as {CUDA}): {table.absent[name]}"
        )
    raise UnknownNameError(
        f"module {module!r} has no attribute {name!r}; numba_hip_cuda poses as {CUDA} and here knows "
        f"{', '.join(available(module)) or 'no names'}"
    )


def _resolve(module: str, name: str, where: str) -> object:
    """What *where*, ``module:name``, stands for."""
    source, _, attribute = where.partition(":")
    try:
        return getattr(importlib.import_module(source), attribute)
    except AttributeError:
        raise UnavailableNameError(
            f"{module}.{name} would be {source}.{attribute}, which the installed numba-hip-core does not have "
            f"(numba_hip_cuda poses as {CUDA}); it has {', '.join(available(module)) or 'no name of this module'}"
        ) from None


def available(module: str) -> list[str]:
    """The names of *module* (a key of `MODULES`) that stand for something in the packages that are installed."""
    present: dict[str, set[str]] = {}
    names = []
    for name, where in MODULES[module].names.items():
        source, _, attribute = where.partition(":")
        if source not in present:
            present[source] = set(dir(importlib.import_module(source)))
        if attribute in present[source]:
            names.append(name)
    return sorted(names)
