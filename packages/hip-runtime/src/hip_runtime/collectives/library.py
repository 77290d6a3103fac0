"""RCCL's C functions. Source of names, types and numbers: ``rccl/rccl.h``, which follows NCCL 2's ``nccl.h``."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_size_t, c_void_p
from functools import cache
from typing import Any

from hip_devicelib.errors import NotFoundError
from hip_devicelib.rocm import find_rocm
from hip_runtime.errors import CollectiveError, DeviceUnavailableError

NAMES = ("librccl.so.1", "librccl.so")
UNIQUE_ID_BYTES = 128
"""``NCCL_UNIQUE_ID_BYTES``"""


class UniqueId(ctypes.Structure):
    """``ncclUniqueId``; RCCL takes it by value."""

    _fields_ = [("internal", ctypes.c_char * UNIQUE_ID_BYTES)]


_DATA = (c_void_p, c_void_p, c_size_t, c_int)
"""Where from, where to, the number of elements and their type."""

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "ncclGetUniqueId": (POINTER(UniqueId),),
    "ncclCommInitRank": (POINTER(c_void_p), c_int, UniqueId, c_int),
    "ncclCommInitAll": (POINTER(c_void_p), c_int, POINTER(c_int)),
    "ncclCommDestroy": (c_void_p,),
    "ncclCommAbort": (c_void_p,),
    "ncclAllReduce": (*_DATA, c_int, c_void_p, c_void_p),
    "ncclReduce": (*_DATA, c_int, c_int, c_void_p, c_void_p),
    "ncclBroadcast": (*_DATA, c_int, c_void_p, c_void_p),
    "ncclAllGather": (*_DATA, c_void_p, c_void_p),
    "ncclReduceScatter": (*_DATA, c_int, c_void_p, c_void_p),
    "ncclSend": (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclRecv": (c_void_p, c_size_t, c_int, c_int, c_void_p, c_void_p),
    "ncclGroupStart": (),
    "ncclGroupEnd": (),
}
"""Types of the parameters of every function in use; all return an ``ncclResult_t``."""

DATA_TYPES = {
    "int8": 0, "bool": 1, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7,
    "float64": 8, "bfloat16": 9,
}  # fmt: skip
"""``ncclDataType_t`` of NumPy's types, by name."""

OPERATIONS = {"sum": 0, "prod": 1, "max": 2, "min": 3, "avg": 4}
"""``ncclRedOp_t``"""


@cache
def load() -> ctypes.CDLL:
    """RCCL of this machine's ROCm, or what the loader finds. `DeviceUnavailableError` if there is none."""
    try:
        found = find_rocm().files.get("rccl")
    except NotFoundError:
        found = None
    reasons = []
    for name in (*([str(found)] if found else []), *NAMES):
        try:
            return bind(ctypes.CDLL(name))
        except OSError as error:
            reasons.append(str(error))
    raise DeviceUnavailableError(
        f"collective operations among GPUs need RCCL, which was not found ({reasons[-1]}). Install ROCm's package "
        "rccl, or use MPI, which also takes arrays of the CPU device"
    )


def bind(library: ctypes.CDLL) -> ctypes.CDLL:
    """*library* with the types of its functions. They return with the interpreter unlocked while they run."""
    for name, parameters in SIGNATURES.items():
        function = getattr(library, name)
        function.argtypes, function.restype = parameters, c_int
    library.ncclGetErrorString.argtypes, library.ncclGetErrorString.restype = (c_int,), c_char_p
    return library


def call(name: str, *arguments: Any) -> None:
    """Call the function *name*. `CollectiveError` if it does not return ``ncclSuccess``."""
    library = load()
    code = getattr(library, name)(*arguments)
    if code:
        text = library.ncclGetErrorString(code) or b"unknown"
        raise CollectiveError(
            f"{name} returned {code}: {text.decode(errors='replace')}. NCCL_DEBUG=WARN in the environment lets RCCL "
            "say more"
        )
