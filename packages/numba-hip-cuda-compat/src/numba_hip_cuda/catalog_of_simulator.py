"""What the modules of ``numba.cuda.simulator`` stand for: the same as those without the simulator, which is ours."""

from __future__ import annotations

from collections.abc import Mapping

from numba_hip_cuda.posed_module import Module, from_module

CUDA = "numba.cuda"
SIMULATOR = f"{CUDA}.simulator"

SAME = """
    api args compiler cudadrv.devicearray cudadrv.devices cudadrv.driver cudadrv.drvapi cudadrv.error
    cudadrv.linkable_code cudadrv.runtime dispatcher vector_types
""".split()
"""Modules of the simulator that have the names of those that they stand for."""

ARRAYS = """
    device_array device_array_like managed_array mapped_array pinned pinned_array pinned_array_like to_device
""".split()
"""What the simulator defines beside its arrays."""


def simulated(modules: Mapping[str, Module]) -> dict[str, Module]:
    """The modules beneath ``numba.cuda.simulator``, from all the others; kernels of its ``jit`` are left to Python."""
    found = {f"{SIMULATOR}.{name}": modules[f"{CUDA}.{name}"] for name in SAME}
    api = f"{SIMULATOR}.api"
    found[api] = Module(
        names={
            **found[api].names,
            **from_module("numba_hip_cuda.shims", "is_supported_version"),
            "jit": "numba_hip_cuda.shims:simulated_jit",
        }
    )
    devicearray = f"{SIMULATOR}.cudadrv.devicearray"
    found[devicearray] = Module(names={**found[devicearray].names, **from_module("numba_hip", *ARRAYS)})
    beneath = {
        name: where.replace(f"{CUDA}.cudadrv.", f"{SIMULATOR}.cudadrv.") for name, where in modules[CUDA].names.items()
    }
    found[SIMULATOR] = Module(names={**beneath, "jit": found[api].names["jit"]})
    found[f"{SIMULATOR}.cudadrv"] = Module(names={"config": "numba.core:config"})
    found[f"{SIMULATOR}.bf16"] = Module(names={"bfloat16": "numba_hip:bfloat16"})
    found[f"{SIMULATOR}.reduction"] = Module(names=from_module("numba_hip", "Reduce", "reduce"))
    # Importing it is what chooses the simulator in Numba CUDA, as a whole; here it is a setting.
    found[f"{CUDA}.simulator_init"] = Module(names={}, like=SIMULATOR)
    return found
