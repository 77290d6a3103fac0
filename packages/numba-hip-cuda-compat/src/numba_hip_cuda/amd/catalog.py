"""Catalog of the modules below `numba.hip` that exist in AMD's numba-hip and not in numba-hip-core."""

from __future__ import annotations

from collections.abc import Mapping

from numba_hip_cuda.catalog import CUDA, RENAMED
from numba_hip_cuda.catalog_of_drivers import ERRORS
from numba_hip_cuda.posed_module import PosedModule, from_module

HIP = "numba.hip"
HERE = "numba_hip_cuda.amd"

NO_HIPRTC = "hip_devicelib compiles HIP C++, with HIPRTC where there is one: see hip_devicelib.Extension"
NO_INSIDES = "it is an inside of AMD's numba-hip; numba_hip.compile and hip_devicelib make code for AMD GPUs"

COMPILE = "compile_llvm_ir compile_llvm_ir_for_current_device compile_ptx compile_ptx_for_current_device".split()

MANAGERS = {
    "BaseHIPMemoryManager": "numba_hip:BaseMemoryManager",
    "HostOnlyHIPMemoryManager": "numba_hip:HostOnlyMemoryManager",
}

ERROR_NAMES = {
    "HipSupportError": ERRORS["CudaSupportError"],
    "HipRuntimeError": "hip_runtime.errors:HipRuntimeError",
    **{name: f"{HERE}.errors:{name}" for name in ("HiprtcError", "HiprtcCompilationError", "HiprtcSupportError")},
}

TESTING = """
    HIPTestCase CUDATestCase ContextResettingTestCase ForeignArray skip_on_hipsim skip_on_cudasim skip_unless_hipsim
    skip_if_external_memmgr skip_under_hip_memcheck skip_on_arm skip_with_cuda_python skip_if_hip_includes_missing
    skip_if_cuda_includes_missing
""".split()

MODULES: Mapping[str, PosedModule] = {
    HIP: PosedModule(
        names={
            **RENAMED,
            "as_hip_array": RENAMED["as_cuda_array"],
            "is_hip_array": RENAMED["is_cuda_array"],
            "from_hip_array_interface": "numba_hip:from_cuda_array_interface",
            **from_module(
                "numba_hip_cuda.cuda_only_functions", "is_supported_version", "is_float16_supported", "cuda_error"
            ),
            "hip_error": "numba_hip_cuda.cuda_only_functions:cuda_error",
            "CudaSupportError": ERRORS["CudaSupportError"],
            "HipSupportError": ERRORS["CudaSupportError"],
            "KernelRuntimeError": f"{HERE}.errors:KernelRuntimeError",
            **MANAGERS,
            **{
                name: f"{HIP}.{name}:"
                for name in (
                    "api args compiler cudadecl cudadrv cudaimpl descriptor dispatcher hipdecl hipdrv hipimpl kernels "
                    "stubs target testing vector_types vectorizers"
                ).split()
            },
        },
        absent=dict.fromkeys(("amdgcn", "api_util", "codegen", "hipconfig", "typing_lowering", "util"), NO_INSIDES),
    ),
    f"{HIP}.hipdrv": PosedModule(
        names={name: f"{HIP}.hipdrv.{name}:" for name in "devicearray devices driver dummyarray error ndarray".split()},
        absent={"hiprtc": NO_HIPRTC, "nvrtc": NO_HIPRTC},
    ),
    f"{HIP}.hipdrv.devicearray": PosedModule(names={}, like=f"{CUDA}.cudadrv.devicearray"),
    f"{HIP}.hipdrv.devices": PosedModule(names={}, like=f"{CUDA}.cudadrv.devices"),
    f"{HIP}.hipdrv.driver": PosedModule(
        names={
            **MANAGERS,
            "HipAPIError": ERRORS["CudaDriverError"],
            "USE_NV_BINDING": f"{HERE}.driver:USE_NV_BINDING",
            "NumbaHIPMemoryManager": "numba_hip.host.memory_managers:DriverMemory",
        },
        like=f"{CUDA}.cudadrv.driver",
    ),
    f"{HIP}.hipdrv.dummyarray": PosedModule(names={}, like=f"{CUDA}.cudadrv.dummyarray"),
    f"{HIP}.hipdrv.ndarray": PosedModule(names={}, like=f"{CUDA}.cudadrv.ndarray"),
    f"{HIP}.hipdrv.error": PosedModule(names=ERROR_NAMES, like=f"{CUDA}.cudadrv.error"),
    f"{HIP}.api": PosedModule(names={}, like=f"{CUDA}.api"),
    f"{HIP}.args": PosedModule(names={}, like=f"{CUDA}.args"),
    f"{HIP}.compiler": PosedModule(
        names={**from_module("numba_hip", *COMPILE), "declare_device": "numba_hip:declare_device"}
    ),
    f"{HIP}.descriptor": PosedModule(names={"hip_target": "numba_hip_cuda.registries:cuda_target"}),
    f"{HIP}.dispatcher": PosedModule(names={"HIPDispatcher": "numba_hip.dispatch.dispatcher:Dispatcher"}),
    f"{HIP}.hipdecl": PosedModule(names={}, like=f"{CUDA}.cudadecl"),
    f"{HIP}.hipimpl": PosedModule(names={}, like=f"{CUDA}.cudaimpl"),
    f"{HIP}.kernels": PosedModule(names={name: f"{HIP}.kernels.{name}:" for name in ("reduction", "transpose")}),
    f"{HIP}.kernels.reduction": PosedModule(names={}, like=f"{CUDA}.kernels.reduction"),
    f"{HIP}.kernels.transpose": PosedModule(names={}, like=f"{CUDA}.kernels.transpose"),
    f"{HIP}.stubs": PosedModule(names={}, like=f"{CUDA}.stubs"),
    f"{HIP}.target": PosedModule(
        names={
            "HIPTargetContext": "numba_hip.targets.context:HipContext",
            "HIPTypingContext": "numba_hip.targets.typing:HipTypingContext",
        }
    ),
    f"{HIP}.testing": PosedModule(names={**from_module(f"{HERE}.testing", *TESTING), "unittest": "unittest:"}),
    f"{HIP}.vector_types": PosedModule(names={}, like=f"{CUDA}.vector_types"),
    f"{HIP}.vectorizers": PosedModule(names={}, like=f"{CUDA}.vectorizers"),
}
"""The modules, by their full names."""

ALIASES: Mapping[str, str] = {
    f"{HIP}.cudadrv": f"{HIP}.hipdrv",
    f"{HIP}.cudadecl": f"{HIP}.hipdecl",
    f"{HIP}.cudaimpl": f"{HIP}.hipimpl",
}
"""Second names of modules and of everything below them."""
