"""Functions of `numba_cuda_mlir` that need NVIDIA's compiler: they can be imported, and raise an error when called."""

from __future__ import annotations

from numba_hip_cuda.mlir.catalog import NO_MLIR, NO_PTX
from numba_hip_cuda.toolkit import NO_PTX as NO_OUTPUT
from numba_hip_cuda.toolkit import refused, refused_output

PLACE = "numba_cuda_mlir.cuda"

inline_ptx = refused("inline_ptx", NO_PTX, PLACE)
compile = refused_output("compile", device=True, abi="c", place=PLACE)
compile_all = refused_output("compile_all", device=True, abi="c", place=PLACE)
compile_ptx = refused_output("compile_ptx", device=False, abi="numba", place=PLACE)
compile_for = refused("compile_for", NO_OUTPUT, PLACE)
compile_mlir = refused("compile_mlir", NO_MLIR, PLACE)
compile_cubin = refused("compile_cubin", NO_OUTPUT, PLACE)
