"""Catalog of the posed modules that duplicate others: copies of Numba's modules, and the simulator's modules.

For a copy, Numba's own module is used, and ours for names that it lacks. The simulator's modules have the names of the
modules that they simulate, as the simulator is a setting here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numba

from numba_hip_cuda.posed_module import PosedModule, from_module

CUDA = "numba.cuda"
TYPING = "numba_hip_cuda.registries:registry"
LOWERING = "numba_hip_cuda.registries:lowering"

LOWERED = """
    cpython.builtins cpython.charseq cpython.enumimpl cpython.iterators cpython.listobj cpython.numbers cpython.rangeobj
    cpython.slicing cpython.tupleobj cpython.unicode np.arraymath np.arrayobj np.npdatetime
    np.polynomial.polynomial_core
""".split()
"""Copies with a ``registry`` for lowering. Numba's modules register elsewhere; here it is the registry of all
kernels."""

TYPED = "arraydecl builtins collections".split()
"""Modules of ``typing`` with a ``registry`` of templates."""

TYPES = "abstract common containers function_type functions iterators misc npytypes scalars".split()
"""Modules of ``types`` that exist twice: with and without ``cuda_`` before the name."""

PACKAGES = {
    "core": "numba.core",
    "cpython": "numba.cpython",
    "datamodel": "numba.core.datamodel",
    "np": "numba.np",
    "np.math": "numba.np.math",
    "typing": "numba.core.typing",
}
"""Packages with submodules that Numba does not have. If Numba's own packages were used for these, importing the
submodules would change them."""

MODULES: Mapping[str, PosedModule] = {
    **{f"{CUDA}.{name}": PosedModule(names={}, rest=source) for name, source in PACKAGES.items()},
    f"{CUDA}.np.polynomial": PosedModule(names={"registry": LOWERING}, rest="numba.np.polynomial"),
    f"{CUDA}.np.math.numbers": PosedModule(names={}, rest="numba.cpython.numbers"),
    **{
        f"{CUDA}.{name}": PosedModule(
            names={
                "registry": LOWERING,
                **from_module("numba_hip_cuda.registries", "lower", "lower_cast", "lower_constant", "lower_setattr"),
                "lower_getattr": "numba_hip_cuda.registries:lower_attr",
            },
            rest=f"numba.{name}",
        )
        for name in LOWERED
    },
    **{
        f"{CUDA}.typing.{name}": PosedModule(names={"registry": TYPING}, rest=f"numba.core.typing.{name}")
        for name in TYPED
    },
    f"{CUDA}.typing.npdatetime": PosedModule(
        names={"registry": TYPING, "infer_global": "numba_hip_cuda.registries:register_global"},
        rest="numba.np.types.datetime" if numba.version_info.short >= (0, 66) else "numba.core.typing.npdatetime",
    ),
    f"{CUDA}.typing.typeof": PosedModule(
        names=from_module("numba_hip_cuda.typeof", "typeof", "typeof_impl"), rest="numba.core.typing.typeof"
    ),
    f"{CUDA}.core.optional": PosedModule(names={"registry": LOWERING}, rest="numba.core.optional"),
    f"{CUDA}.core.callconv": PosedModule(
        names={"CUDACallConv": "numba_hip.targets.callconv:HipCallConv"}, rest="numba.core.callconv"
    ),
    f"{CUDA}.types": PosedModule(
        names={
            "bfloat16": "numba_hip:bfloat16",
            "complex32": "numba_hip._numba.typing:COMPLEX32",  # numba_cuda_mlir has a copy of these types
            "float_": "numba.core.types:float64",
            "GridGroup": "numba_hip.language.cg:GridGroupType",
            "Dim3": "numba_hip.language.thread_index:Dim3Type",
            "grid_group": "numba_hip_cuda.registries:grid_group",
        },
        rest="numba.core.types",
    ),
    f"{CUDA}.types.ext_types": PosedModule(
        names={
            "bfloat16": "numba_hip:bfloat16",
            "Bfloat16": "numba_hip.bfloat:Bfloat16",
            "GridGroup": "numba_hip.language.cg:GridGroupType",
            "Dim3": "numba_hip.language.thread_index:Dim3Type",
            "grid_group": "numba_hip_cuda.registries:grid_group",
            "CUDADispatcher": "numba.core.types:Dispatcher",
        }
    ),
    f"{CUDA}.types.cuda_scalars": PosedModule(
        names=from_module("numba.core.types", "NPDatetime", "NPTimedelta"), rest="numba.core.types.scalars"
    ),
    f"{CUDA}.types.scalars": PosedModule(
        names=from_module("numba.core.types", "NPDatetime", "NPTimedelta"), rest="numba.core.types.scalars"
    ),
}
"""Copies that have names which Numba's modules lack."""

FORWARDED: Mapping[str, str] = {
    **{f"{CUDA}.{name}": source for name, source in PACKAGES.items()},
    **{
        f"{CUDA}.types.{prefix}{name}": f"numba.core.types.{name}"
        for prefix in ("", "cuda_")
        for name in TYPES
        if name != "scalars"
    },
    **{
        f"{CUDA}.datamodel.cuda_{name}": f"numba.core.datamodel.{name}"
        for name in ("manager", "models", "packer", "registry", "testing")
    },
}
"""Submodules of the packages, and copies whose names differ from Numba's."""

SIMULATOR = f"{CUDA}.simulator"

SIMULATED = """
    api args compiler cudadrv.devicearray cudadrv.devices cudadrv.driver cudadrv.drvapi cudadrv.dummyarray
    cudadrv.error cudadrv.linkable_code cudadrv.runtime dispatcher vector_types
""".split()
"""Modules of the simulator with the same names as the modules that they stand for."""

ARRAYS = """
    device_array device_array_like managed_array mapped_array pinned pinned_array pinned_array_like to_device
""".split()
"""The simulator's own names, besides its arrays."""


def simulated(modules: Mapping[str, PosedModule]) -> dict[str, PosedModule]:
    """The modules below ``numba.cuda.simulator``, derived from all others. Its ``jit`` runs kernels in plain Python."""
    found = {f"{SIMULATOR}.{name}": modules[f"{CUDA}.{name}"] for name in SIMULATED}
    api = f"{SIMULATOR}.api"
    found[api] = PosedModule(
        names={
            **found[api].names,
            **from_module("numba_hip_cuda.cuda_only_functions", "is_supported_version"),
            "jit": "numba_hip_cuda.cuda_only_functions:simulated_jit",
        }
    )
    devicearray = f"{SIMULATOR}.cudadrv.devicearray"
    found[devicearray] = PosedModule(names={**found[devicearray].names, **from_module("numba_hip", *ARRAYS)})
    beneath = {
        name: where.replace(f"{CUDA}.cudadrv.", f"{SIMULATOR}.cudadrv.") for name, where in modules[CUDA].names.items()
    }
    found[SIMULATOR] = PosedModule(names={**beneath, "jit": found[api].names["jit"]})
    found[f"{SIMULATOR}.cudadrv"] = PosedModule(names={"config": "numba.core:config"})
    found[f"{SIMULATOR}.bf16"] = PosedModule(names={"bfloat16": "numba_hip:bfloat16"})
    found[f"{SIMULATOR}.reduction"] = PosedModule(names=from_module("numba_hip", "Reduce", "reduce"))
    # In Numba CUDA, importing it turns on the simulator for everything; here the simulator is a setting.
    found[f"{CUDA}.simulator_init"] = PosedModule(names={}, like=SIMULATOR)
    return found
