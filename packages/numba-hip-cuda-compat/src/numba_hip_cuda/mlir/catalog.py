"""Catalog of the modules of `numba_cuda_mlir` that differ from the modules of the same names in `numba.cuda`.

The package has a copy of numba-cuda as ``numba_cuda_mlir.numba_cuda``, and ``numba_cuda_mlir.cuda`` builds on it.
"""

from __future__ import annotations

from collections.abc import Mapping

from numba_hip_cuda.catalog import CUDA, VECTOR_TYPES
from numba_hip_cuda.posed_module import PosedModule, from_module

MLIR = "numba_cuda_mlir"
HERE = "numba_hip_cuda.mlir"

NO_MLIR = "it is of NVIDIA's compiler, which goes through MLIR; kernels are compiled by Numba and LLVM here"
NO_TOOLKIT = "there is no CUDA toolkit"
NO_PTX = "PTX is NVIDIA's assembly language"
NO_NARROW_FLOAT = "kernels have the floats of 8 bits float8_e4m3fn, float8_e5m2 and the two of them that end in fnuz"
NO_TENSOR_CORES = "it describes memory to units that NVIDIA's GPUs have and AMD's have not"
NO_EXPERIMENT = "it is an experiment of NVIDIA's, a type with a layout of its own; NumPy's records have fields"

COMPILE = "compile compile_all compile_ptx compile_for compile_mlir compile_cubin".split()

HALF_VECTORS = [f"{kind}{count}" for kind in ("half", "float16x") for count in range(1, 5)]

EXTENDING = """
    ArgumentHandler as_numba_type intrinsic lower_builtin lower_cast lowering_registry make_attribute_wrapper overload
    overload_attribute overload_classmethod overload_method refresh_registries register_jitable register_model
    type_callable typeof_impl typing_registry
""".split()

PLANNERS = "WholeFunctionPlanner register_planner require_launch_config set_required_dynamic_shared_memory".split()

COMPILER_MODULES = """
    _mlir mlir mlir_compiler mlir_debuginfo mlir_lowering mlir_optimization lowering lowering_registry
    lowering_utilities numbair_transforms optimization runtime type_defs linker
""".split()

NARROW_FLOATS = """
    nvfp4 f4E2M1FN f6E2M3FN f6E3M2FN f8E3M4 f8E4M3B11FNUZ f8E4M3 f8E8M0FNU tf32 fp8_e8m0
""".split()

FLOAT8 = {
    "fp8_e4m3": "numba_hip:float8_e4m3fn",
    "fp8_e5m2": "numba_hip:float8_e5m2",
    "f8E4M3FN": "numba_hip:float8_e4m3fn",
    "f8E5M2": "numba_hip:float8_e5m2",
    "f8E4M3FNUZ": "numba_hip:float8_e4m3fnuz",
    "f8E5M2FNUZ": "numba_hip:float8_e5m2fnuz",
}
"""The floats of 8 bits under the names of CUDA's header and of MLIR."""

BY_WIDTH = {
    **{f"i{bits}": f"numba.core.types:int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"numba.core.types:uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"numba.core.types:float{bits}" for bits in (16, 32, 64)},
}
"""Type names that count bits where Numba's count bytes: `i8` has 8 bits in ``numba_cuda_mlir.types``."""

MODULES: Mapping[str, PosedModule] = {
    MLIR: PosedModule(
        names={
            "__version__": f"{HERE}.posed_version:VERSION",
            **from_module("numba", "carray", "farray"),
        },
        absent=dict.fromkeys(COMPILER_MODULES, NO_MLIR),
    ),
    f"{MLIR}.cuda": PosedModule(
        names={
            "jit": f"{HERE}.jit:jit",
            "local_array": "numba_hip.language.local:array",
            "shared_array": "numba_hip.language.shared:array",
            "inline_ptx": f"{HERE}.unsupported_functions:inline_ptx",
            "atomic": f"{HERE}.atomic",
            **from_module(f"{HERE}.unsupported_functions", *COMPILE),
            **from_module("numba", "carray", "farray"),
            **from_module("numba_hip", "vector", *HALF_VECTORS),
            "DeviceNDArray": "numba_hip_cuda.arrays:DeviceNDArray",
        },
        absent={"intrin": NO_MLIR, "tensor_map": NO_TENSOR_CORES},
        like=CUDA,
    ),
    f"{MLIR}.cuda.vector_types": PosedModule(
        names={
            **from_module("numba_hip", *VECTOR_TYPES, *HALF_VECTORS),
            "_vector_types": f"{HERE}.vector_types:VECTOR_TYPES",
            **from_module(f"{HERE}.vector_types", "vector_types_by_alias", "vector_types_by_name"),
        },
        like=f"{CUDA}.vector_types",
    ),
    f"{MLIR}.cuda.experimental": PosedModule(
        names=from_module(
            f"{HERE}.experimental", "consteval", "current_target_options", "inline_ptx", "local_array_from"
        ),
        absent={
            **dict.fromkeys(("struct", "union"), NO_EXPERIMENT),
            "tcgen05_descriptors": NO_TENSOR_CORES,
            "intrin": NO_MLIR,
        },
    ),
    f"{MLIR}.ast_transforms": PosedModule(names=from_module(f"{HERE}.experimental", "ConstevalError")),
    f"{MLIR}.compiler": PosedModule(
        names={**from_module(f"{HERE}.unsupported_functions", *COMPILE), "declare_device": "numba_hip:declare_device"},
        absent=dict.fromkeys(("declare_mlir_library", "CompileResult"), NO_MLIR),
    ),
    f"{MLIR}.descriptor": PosedModule(names={"MLIRDispatcher": "numba_hip.dispatch.dispatcher:Dispatcher"}),
    f"{MLIR}.errors": PosedModule(
        names=from_module(f"{HERE}.errors", "InternalCompilerError"), rest="numba.core.errors"
    ),
    f"{MLIR}.extending": PosedModule(
        names=from_module(f"{HERE}.extending", *EXTENDING),
        absent=dict.fromkeys(PLANNERS, NO_MLIR),
    ),
    f"{MLIR}.extending.argument_handler": PosedModule(names=from_module(f"{HERE}.extending", "ArgumentHandler")),
    f"{MLIR}.models": PosedModule(
        names={
            "register_model": "numba.extending:register_model",
            "mlir_data_manager": "numba.core.datamodel:default_manager",
            **from_module("numba.core.datamodel.models", "PrimitiveModel", "StructModel", "OpaqueModel"),
        },
    ),
    f"{MLIR}.tools": PosedModule(
        names=from_module(f"{HERE}.tools", "format_arch", "get_gpu_compute_capability", "parse_compute_capability"),
        absent=dict.fromkeys(("get_cuda_toolkit_path", "get_cuda_runtime_version", "get_max_ptx_version"), NO_TOOLKIT),
    ),
    f"{MLIR}.types": PosedModule(
        names={
            **BY_WIDTH,
            **FLOAT8,
            "bf16": "numba_hip:bfloat16",
            "ptr_to": "numba.core.types:CPointer",
            **from_module(f"{HERE}.types", "ptr", "alignas", "grid_constant"),
        },
        absent=dict.fromkeys(NARROW_FLOATS, NO_NARROW_FLOAT),
        like=f"{CUDA}.types",
    ),
}
"""The modules of `numba_cuda_mlir` that `numba.cuda` does not have, by their full names."""

FORWARDED: Mapping[str, str] = {
    f"{MLIR}.numba_cuda": CUDA,
    f"{MLIR}.cuda": CUDA,
    f"{MLIR}.cuda.vector": "numba_hip.language.vector",
    f"{MLIR}.typing": "numba.core.typing",
}
"""Modules of `numba_cuda_mlir` that another module replaces as a whole, with submodules that are not in `MODULES`."""
