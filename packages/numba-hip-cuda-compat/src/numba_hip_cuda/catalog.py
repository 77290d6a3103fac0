"""Catalog of the modules of `numba.cuda` and their names, read by `numba_hip_cuda.name_lookup` and
`numba_hip_cuda.pose`."""

from __future__ import annotations

from collections.abc import Mapping

from numba_hip_cuda import catalog_of_drivers, catalog_of_duplicates
from numba_hip_cuda.catalog_of_drivers import ERRORS
from numba_hip_cuda.posed_module import PosedModule, from_module

CUDA = "numba.cuda"
PACKAGE = "numba_cuda"
"""The package of the distribution numba-cuda, in which `numba.cuda` is ``numba_cuda.numba.cuda``."""

VERSION = "0.30.4"
"""The release of numba-cuda whose names are posed."""

SAME = """
    grid gridsize threadIdx blockIdx blockDim gridDim laneid warpsize
    syncthreads syncthreads_and syncthreads_or syncthreads_count syncwarp
    threadfence threadfence_block threadfence_system
    shared local const atomic cg fp16 bf16 random
    ldca ldcg ldcs ldlu ldcv stcg stcs stwb stwt
    all_sync any_sync eq_sync shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync
    popc clz ffs fma cbrt selp nanosleep
    jit declare_device reduce Reduce In Out InOut
    is_available gpus list_devices select_device get_current_device current_context require_context close
    synchronize stream default_stream legacy_default_stream per_thread_default_stream external_stream
    event event_elapsed_time profile_start profile_stop profiling
    to_device device_array device_array_like pinned pinned_array pinned_array_like mapped mapped_array
    mapped_array_like managed_array from_cuda_array_interface defer_cleanup open_ipc_array
    set_memory_manager BaseCUDAMemoryManager HostOnlyCUDAMemoryManager GetIpcHandleMixin MemoryInfo MemoryPointer
    MappedMemory PinnedMemory IpcHandle bfloat16
""".split()
"""Names that mean the same in `numba_hip`."""

NARROWED = from_module(
    "numba_hip_cuda.lane_masks", *"activemask lanemask_lt ballot_sync match_all_sync match_any_sync brev".split()
)
"""Functions whose results have other types in `numba_hip`."""

VECTOR_TYPES = [
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

TYPES = """
    none void boolean bool_ byte char uchar short ushort int_ uint long_ ulong longlong ulonglong intp uintp intc uintc
    size_t ssize_t int8 int16 int32 int64 uint8 uint16 uint32 uint64 i1 i2 i4 i8 u1 u2 u4 u8 b1
    float16 float32 float64 double f2 f4 f8 complex64 complex128 c8 c16 optional ffi_forced_object ffi
    deferred_type
""".split()
"""Names of Numba's types that are also in `numba.cuda`."""

RENAMED = {
    "as_cuda_array": "numba_hip:as_device_array",
    "is_cuda_array": "numba_hip:is_device_array",
}
"""Names that are different in `numba_hip`."""

ASKED = "detect is_float16_supported is_bfloat16_supported is_fp8_supported".split()
"""Functions of `numba.cuda.api` for devices."""

SHIMS = """
    implementation is_supported_version cuda_error HAS_NUMBA config_default_cc numba_cuda_default_ptx_cc
""".split()

CACHED = "ldca ldcg ldcs ldlu ldcv stcg stcs stwb stwt".split()

WARP = """
    grid gridsize syncthreads syncthreads_and syncthreads_or syncthreads_count all_sync any_sync eq_sync
    shfl_sync shfl_up_sync shfl_down_sync shfl_xor_sync
""".split()

REGISTRATIONS = "lower lower_attr lower_cast lower_constant lower_setattr lower_setattr_generic".split()

COMPILE = "compile compile_all compile_for_current_device compile_ptx compile_ptx_for_current_device".split()

CODE = "PTXSource LTOIR Cubin Fatbin CUSource Archive Object".split()

ADDED = {
    "Event": "numba_hip:Event",
    "prepare_shape_strides_dtype": "numba_hip_cuda.normalization:prepare_shape_strides_dtype",
    "reset": "numba_hip:close",
    "GridGroup": "numba_hip.language.cg:GridGroupType",
    "grid_group": "numba_hip_cuda.registries:grid_group",
    "Dim3": "numba_hip.language.thread_index:Dim3",
    "float_": "numba.core.types:float64",
    "auto_device": "numba_hip_cuda.arrays:auto_device",
    "is_signature": "numba.core.sigutils:is_signature",
    "literal": "numba.core.types:literal",
}
"""Names that are in `numba.cuda` because it imports them, or because a submodule has the name."""

_MODULES: Mapping[str, PosedModule] = {
    PACKAGE: PosedModule(names={"__version__": f"{__name__}:VERSION"}),
    f"{PACKAGE}._version": PosedModule(names={"__version__": f"{__name__}:VERSION"}),
    f"{PACKAGE}.numba": PosedModule(names={}),
    CUDA: PosedModule(
        names={
            **from_module("numba_hip", *SAME, *VECTOR_TYPES),
            **NARROWED,
            **from_module("numba.core.types", *TYPES),
            **from_module("numba_hip_cuda.cuda_only_functions", *SHIMS, *ASKED),
            **ADDED,
            **from_module("numba_hip_cuda.toolkit", *COMPILE, *CODE),
            **from_module("numba_hip_cuda.ufuncs", "vectorize", "guvectorize"),
            **RENAMED,
            "LinkableCode": "numba_hip:LinkedCode",
            "CudaSupportError": ERRORS["CudaSupportError"],
            "KernelRuntimeError": "hip_runtime.errors:KernelFault",
            "config": "numba.core:config",
            "literal_unroll": "numba.misc.special:literal_unroll",
            "runtime": "numba_hip_cuda.devices:runtime",
            "reduction": f"{CUDA}.kernels.reduction:",
            **catalog_of_drivers.SUBMODULES,
        },
        beyond="numba_hip_cuda.amd.extra_names",
    ),
    f"{CUDA}.api": PosedModule(
        names={
            **from_module("numba_hip", *SAME),
            **NARROWED,
            **from_module("numba_hip_cuda.cuda_only_functions", *ASKED),
            **ADDED,
            **RENAMED,
        },
    ),
    f"{CUDA}.api_util": PosedModule(
        names=from_module("numba_hip_cuda.normalization", "prepare_shape_strides_dtype", "normalize_indices")
    ),
    f"{CUDA}.args": PosedModule(
        names=from_module("numba_hip.arguments.transfer_hints", "In", "Out", "InOut", "ArgHint", "wrap_arg")
    ),
    f"{CUDA}.cache_hints": PosedModule(names=from_module("numba_hip", *CACHED)),
    f"{CUDA}.cg": PosedModule(names={"GridGroup": "numba_hip.language.cg:GridGroupType"}, rest="numba_hip.language.cg"),
    f"{CUDA}.compiler": PosedModule(
        names={
            **from_module("numba_hip_cuda.toolkit", *COMPILE),
            "CUDACompiler": "numba_hip.compilation.compiler:HipCompiler",
            "CUDAFlags": "numba_hip.compilation.debug_lowering:HipFlags",
            "CUDACompileResult": "numba_hip.compilation.compiler:HipCompileResult",
            "CUDANativeLowering": "numba_hip.compilation.compiler:HipLowering",
            "ExternFunction": "numba_hip.language.external_functions:ExternalFunction",
        },
        rest="numba.core.compiler",
    ),
    f"{CUDA}.cudadecl": PosedModule(
        names=from_module("numba_hip_cuda.registries", "registry", "register", "register_attr", "register_global")
    ),
    f"{CUDA}.cudaimpl": PosedModule(
        names={
            "registry": "numba_hip_cuda.registries:lowering",
            "lower_getattr_generic": "numba_hip_cuda.registries:lower_attr_generic",
            **from_module("numba_hip_cuda.registries", *REGISTRATIONS),
        }
    ),
    f"{CUDA}.cudamath": PosedModule(
        names={
            "registry": "numba_hip_cuda.registries:registry",
            "infer_global": "numba_hip_cuda.registries:register_global",
        }
    ),
    f"{CUDA}.decorators": PosedModule(names=from_module("numba_hip", "jit", "declare_device")),
    f"{CUDA}.cudadrv.linkable_code": PosedModule(
        names={"LinkableCode": "numba_hip:LinkedCode", **from_module("numba_hip_cuda.toolkit", *CODE)},
    ),
    f"{CUDA}.vector_types": PosedModule(
        names={
            **from_module("numba_hip_cuda.vector_types", "VectorType", "vector_types"),
            "typing_registry": "numba_hip_cuda.registries:registry",
            "impl_registry": "numba_hip_cuda.registries:lowering",
            **from_module("numba_hip_cuda.registries", "register", "register_attr", "register_global", "lower"),
        }
    ),
    f"{CUDA}.vectorizers": PosedModule(
        names={
            **from_module("numba_hip_cuda.ufuncs", "CUDAVectorize", "CUDAGUFuncVectorize"),
            "CUDAUFuncDispatcher": "numba_hip.array_functions.vectorize:HipUFunc",
            "CUDAGeneralizedUFunc": "numba_hip.array_functions.guvectorize:HipGUFunc",
        }
    ),
    f"{CUDA}.descriptor": PosedModule(
        names={
            "cuda_target": "numba_hip_cuda.registries:cuda_target",
            "CUDATarget": "numba_hip_cuda.registries:CudaTarget",
        }
    ),
    f"{CUDA}.dispatcher": PosedModule(
        names={
            "CUDADispatcher": "numba_hip.dispatch.dispatcher:Dispatcher",
            "ForAll": "numba_hip.dispatch.forall:ForAll",
            **from_module(
                "numba.core.dispatcher", "LiftedCode", "LiftedLoop", "LiftedWith", "ObjModeLiftedWith", "OmittedArg"
            ),
        },
        beyond="numba.hip.dispatcher",
    ),
    f"{CUDA}.errors": PosedModule(
        names={
            "KernelRuntimeError": "hip_runtime.errors:KernelFault",
            "CudaLoweringError": "numba.core.errors:LoweringError",
            **from_module("numba_hip_cuda.normalization", "missing_launch_config_msg", "normalize_kernel_dimensions"),
        },
        rest="numba.core.errors",
    ),
    f"{CUDA}.extending": PosedModule(
        names={
            **from_module(
                "numba_hip_cuda.extending",
                "overload",
                "overload_method",
                "overload_attribute",
                "overload_classmethod",
                "intrinsic",
            ),
            "typeof_impl": "numba_hip_cuda.typeof:typeof_impl",
            "core_models": "numba.core.datamodel:models",
            "_Intrinsic": "numba.core.extending:_Intrinsic",
        },
        rest="numba.extending",
    ),
    f"{CUDA}.flags": PosedModule(
        names={"CUDAFlags": "numba_hip.compilation.debug_lowering:HipFlags"}, rest="numba.core.compiler"
    ),
    f"{CUDA}.initialize": PosedModule(names=from_module("numba_hip_cuda.devices", "initialize_all")),
    f"{CUDA}.intrinsics": PosedModule(
        names={**from_module("numba_hip", *WARP), "ballot_sync": NARROWED["ballot_sync"]}
    ),
    f"{CUDA}.kernels": PosedModule(names={}),
    f"{CUDA}.kernels.transpose": PosedModule(names=from_module("numba_hip_cuda.arrays", "transpose")),
    f"{CUDA}.kernels.reduction": PosedModule(names=from_module("numba_hip", "Reduce")),
    f"{CUDA}.launchconfig": PosedModule(
        names=from_module(
            "numba_hip.dispatch.launch_context",
            "capture_compile_config",
            "current_launch_config",
            "ensure_current_launch_config",
        )
    ),
    f"{CUDA}.models": PosedModule(
        names={
            "register_model": "numba.extending:register_model",
            "cuda_data_manager": "numba.core.datamodel:default_manager",
        }
    ),
    **{
        f"{CUDA}.{name}": PosedModule(
            names={
                "registry": "numba_hip_cuda.registries:lowering",
                "lower": "numba_hip_cuda.registries:lower",
            }
        )
        for name in ("libdeviceimpl", "mathimpl", "printimpl")
    },
    f"{CUDA}.libdevicedecl": PosedModule(names=from_module("numba_hip_cuda.registries", "registry", "register_global")),
    f"{CUDA}.random": PosedModule(
        names={
            "TWO_PI_FLOAT32": "numba_hip.random:TWO_PI_32",
            "TWO_PI_FLOAT64": "numba_hip.random:TWO_PI_64",
            "init_xoroshiro128p_states_cpu": "numba_hip.random:fill_states",
        },
        rest="numba_hip.random",
    ),
    f"{CUDA}.stubs": PosedModule(
        names={
            **from_module("numba_hip", *SAME),
            **NARROWED,
            "Stub": "numba_hip.language.stub:Stub",
            "Dim3": "numba_hip.language.thread_index:Dim3",
        }
    ),
    f"{CUDA}.target": PosedModule(
        names={
            "CUDATargetContext": "numba_hip.targets.context:HipContext",
            "CUDATypingContext": "numba_hip.targets.typing:HipTypingContext",
        }
    ),
    f"{CUDA}.utils": PosedModule(
        names={"cached_file_read": "numba_hip_cuda.cached_files:cached_file_read"}, rest="numba.core.utils"
    ),
    f"{CUDA}.testing": PosedModule(names={}, rest="numba_hip_cuda.testing", beyond="numba_hip_cuda.amd.testing"),
}
"""The modules that numba-cuda uses from Numba rather than copying them."""

_ALL = {**_MODULES, **catalog_of_drivers.MODULES, **catalog_of_duplicates.MODULES}

MODULES: Mapping[str, PosedModule] = {
    **_ALL,
    **catalog_of_duplicates.simulated(_ALL),
    f"{CUDA}.device_init": PosedModule(names={}, like=CUDA),
}
"""The modules that are posed name by name, by their full names."""

FORWARDED: Mapping[str, str] = {
    **catalog_of_duplicates.FORWARDED,
    f"{PACKAGE}.numba.cuda": CUDA,
    f"{CUDA}.bf16": "numba_hip.language.bf16",
    f"{CUDA}.fp16": "numba_hip.language.fp16",
    f"{CUDA}.libdevice": "numba_hip.libdevice",
    f"{CUDA}.cgutils": "numba.core.cgutils",
    f"{CUDA}.cloudpickle": "numba.cloudpickle",
    f"{CUDA}.debuginfo": "numba.core.debuginfo",
    f"{CUDA}.itanium_mangler": "numba.core.itanium_mangler",
    f"{CUDA}.lowering": "numba.core.lowering",
    f"{CUDA}.misc": "numba.misc",
    f"{CUDA}.serialize": "numba.core.serialize",
    f"{CUDA}.typeconv": "numba.core.typeconv",
}
"""Modules of `numba.cuda` that are replaced as a whole by a module of `numba_hip` or Numba, with their submodules."""
