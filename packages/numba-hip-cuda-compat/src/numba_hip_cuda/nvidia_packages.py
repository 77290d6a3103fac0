"""Packages of NVIDIA's that programs import beside `numba.cuda`: an error that says what to use, where nobody has them.

They are not posed: they wrap NVIDIA's driver and tools. Where they are installed, they are imported as always.
"""

from __future__ import annotations

BINDINGS = (
    "there is no CUDA driver beneath. numba.cuda has devices (cuda.gpus, cuda.get_current_device()), streams and "
    "events (cuda.stream(), cuda.event()), memory (cuda.device_array(), cuda.current_context().memalloc()) and kernels"
)

ABSENT = {
    "cuda.core": (
        "it manages NVIDIA's GPUs. numba.cuda has devices (cuda.gpus, cuda.get_current_device()), streams and events "
        "(cuda.stream(), cuda.event()) and arrays (cuda.device_array()), which other libraries take by "
        "__cuda_array_interface__ or DLPack; streams of theirs with __cuda_stream__ are taken here"
    ),
    "cuda.bindings": BINDINGS,
    "cuda.cuda": BINDINGS,
    "cuda.cudart": BINDINGS,
    "cuda.nvrtc": "NVRTC is NVIDIA's compiler for C++; numba.cuda.CUSource takes C++ that is compiled as HIP C++",
    "cuda.pathfinder": "there is no CUDA toolkit, whose libraries it looks for; hip_devicelib finds ROCm",
}
"""What they are, or what to use instead."""


class NvidiaPackageNotFoundError(ModuleNotFoundError):
    """A package of NVIDIA's that is not installed, with what to use instead.

    Its ``name`` stays empty: if it is set and a name is imported from the module, Python replaces the message.
    """


def refuse(fullname: str) -> None:
    """Raise the error for *fullname* if it is one of them."""
    reason = ABSENT.get(fullname)
    if reason is not None:
        raise NvidiaPackageNotFoundError(
            f"No module named {fullname!r}: it is NVIDIA's, and not installed (numba_hip_cuda poses as numba.cuda): "
            f"{reason}"
        )
