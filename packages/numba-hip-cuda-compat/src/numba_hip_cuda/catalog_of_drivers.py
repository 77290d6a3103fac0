"""Catalog of the modules of `numba.cuda.cudadrv`: drivers, devices, arrays and errors."""

from __future__ import annotations

from collections.abc import Mapping

from numba_hip_cuda.posed_module import PosedModule, from_module

CUDA = "numba.cuda"

ERRORS = {
    "CudaSupportError": "hip_runtime.errors:DeviceUnavailableError",
    "CudaDriverError": "hip_runtime.errors:HipRuntimeError",
    "CudaRuntimeError": "hip_runtime.errors:HipRuntimeError",
    **{
        name: f"numba_hip_cuda.errors:{name}"
        for name in """
            CCSupportError NvvmError NvvmSupportError NvvmWarning NvrtcError NvrtcCompilationError
            NvrtcBuiltinOperationFailure NvrtcSupportError
        """.split()
    },
}
"""Names of `numba.cuda.cudadrv.error`."""

SUBMODULES = {name: f"{CUDA}.cudadrv.{name}:" for name in ("devicearray", "devices", "driver", "error")}
"""Modules that are also names of `numba.cuda`."""

MODULES: Mapping[str, PosedModule] = {
    f"{CUDA}.cudadrv": PosedModule(
        names={"config": "numba.core:config", **SUBMODULES},
    ),
    f"{CUDA}.cudadrv.dummyarray": PosedModule(
        names=from_module("numba_hip_cuda.dummyarray", "Array", "Element", "Extent", "is_element_indexing")
    ),
    f"{CUDA}.cudadrv.devicearray": PosedModule(
        names={
            "is_cuda_ndarray": "numba_hip:is_device_array",
            **from_module(
                "numba_hip_cuda.arrays",
                "auto_device",
                "from_array_like",
                "from_record_like",
                "DeviceNDArray",
                "DeviceRecord",
                "is_contiguous",
                "array_core",
                "verify_cuda_ndarray_interface",
                "require_cuda_ndarray",
            ),
            **from_module(
                "numba_hip_cuda.devicearray",
                "DeviceNDArrayBase",
                "MappedNDArray",
                "ManagedNDArray",
                "errmsg_contiguous_buffer",
                "sentry_contiguous",
                "check_array_compatibility",
            ),
            "IpcArrayHandle": "hip_runtime.ipc:IpcArrayHandle",
        },
    ),
    f"{CUDA}.cudadrv.devices": PosedModule(
        names={
            **from_module("numba_hip", "gpus", "require_context"),
            "get_context": "numba_hip:current_context",
            "reset": "numba_hip:close",
        },
    ),
    f"{CUDA}.cudadrv.driver": PosedModule(
        names={
            "CudaAPIError": ERRORS["CudaDriverError"],
            "AutoFreePointer": "numba_hip:MemoryPointer",
            "OwnedPointer": "numba_hip:MemoryPointer",
            "MappedOwnedPointer": "numba_hip:MappedMemory",
            "ManagedOwnedPointer": "numba_hip.host.memory_managers:ManagedMemory",
            "ManagedMemory": "numba_hip.host.memory_managers:ManagedMemory",
            "Context": "numba_hip.host.contexts:Context",
            "CudaPythonModule": "hip_runtime.module:Module",
            "CudaPythonFunction": "hip_runtime.module:Function",
            "Function": "hip_runtime.module:Function",
            **from_module(
                "numba_hip_cuda.devices",
                "Device",
                "CU_STREAM_DEFAULT",
                "ERROR_MAP",
                "MIN_REQUIRED_CC",
                "SUPPORTS_IPC",
                "get_version",
                "get_devptr_for_active_ctx",
                "device_memory_depends",
            ),
            **from_module("numba_hip_cuda.c_types", "FuncAttr", "cu_stream_callback_pyobj"),
            **from_module(
                "numba_hip_cuda.devicearray", "device_ctypes_pointer", "device_extents", "memory_size_from_info"
            ),
            "NumbaCUDAMemoryManager": "numba_hip.host.memory_managers:DriverMemory",
            "LinkerError": "numba_hip.errors:LinkedCodeError",
            "DeadMemoryError": "numba_hip.host.memory_pointers:DeadMemoryError",
            **from_module("numba_hip_cuda.toolkit", "driver", "Driver", "_Linker", "_have_nvjitlink"),
            **from_module(
                "numba_hip_cuda.arrays",
                "host_to_device",
                "device_to_host",
                "device_to_device",
                "device_memset",
                "device_pointer",
                "is_device_memory",
                "require_device_memory",
                "host_memory_extents",
                "host_memory_size",
                "host_pointer",
                "device_memory_size",
            ),
            **from_module(
                "numba_hip",
                "Stream",
                "Event",
                "event_elapsed_time",
                "profile_start",
                "profile_stop",
                "profiling",
                "set_memory_manager",
                "BaseCUDAMemoryManager",
                "HostOnlyCUDAMemoryManager",
                "GetIpcHandleMixin",
                "MemoryInfo",
                "MemoryPointer",
                "MappedMemory",
                "PinnedMemory",
                "IpcHandle",
            ),
        },
    ),
    f"{CUDA}.cudadrv.drvapi": PosedModule(names={}, rest="numba_hip_cuda.c_types"),
    f"{CUDA}.cudadrv.error": PosedModule(names=ERRORS),
    f"{CUDA}.cudadrv.ndarray": PosedModule(
        names=from_module("numba_hip_cuda.devicearray", "ndarray_device_allocate_data")
    ),
    f"{CUDA}.cudadrv.runtime": PosedModule(
        names=from_module(
            "numba_hip_cuda.devices", "Runtime", "runtime", "get_version", "SUPPORTED_TOOLKIT_MAJOR_VERSIONS"
        )
    ),
}
