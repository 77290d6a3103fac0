"""The C functions of the HIP runtime, as hip-python has loaded them.

hip-python's extension module declares every function of HIP for Cython, and so exports it as a capsule; calling that
by way of ctypes reaches the same library that hip-python found. Why not its Python functions: those of releases up to
7.2.2 keep the interpreter locked while they wait, and their types change between releases. See
``docs/design/hip-driver.md``.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from hip_runtime.drivers.hip.errors import HipCallError, hip_error
from hip_runtime.errors import DeviceUnavailableError, UnsupportedError

HipKernel = Callable[..., int]

IPC_HANDLE_BYTES = 64
"""``HIP_IPC_HANDLE_SIZE``"""


class HipIpcHandle(ctypes.Structure):
    """``hipIpcMemHandle_t``; HIP passes it by value."""

    _fields_ = [("reserved", ctypes.c_char * IPC_HANDLE_BYTES)]


class LaunchExtra(ctypes.Structure):
    """The ``extra`` of ``hipModuleLaunchKernel``: keys and values that hand over a buffer of packed arguments."""

    _fields_ = [
        ("buffer_key", c_size_t),
        ("buffer", c_char_p),
        ("size_key", c_size_t),
        ("size", POINTER(c_size_t)),
        ("end", c_size_t),
    ]


BUFFER_KEY, SIZE_KEY, END_KEY = 1, 2, 3
"""``HIP_LAUNCH_PARAM_BUFFER_POINTER``, ``_BUFFER_SIZE`` and ``_END``"""

_LAUNCH = (c_void_p, *[c_uint] * 7, c_void_p)

SIGNATURES: dict[str, tuple[Any, ...]] = {
    "hipGetDeviceCount": (POINTER(c_int),),
    "hipSetDevice": (c_int,),
    "hipGetDeviceProperties": (c_void_p, c_int),
    "hipDeviceGetAttribute": (POINTER(c_int), c_int, c_int),
    "hipDeviceSynchronize": (),
    "hipDeviceGetLimit": (POINTER(c_size_t), c_int),
    "hipDeviceSetLimit": (c_int, c_size_t),
    "hipDeviceCanAccessPeer": (POINTER(c_int), c_int, c_int),
    "hipDeviceEnablePeerAccess": (c_int, c_uint),
    "hipGetLastError": (),
    "hipMalloc": (POINTER(c_void_p), c_size_t),
    "hipHostMalloc": (POINTER(c_void_p), c_size_t, c_uint),
    "hipMallocManaged": (POINTER(c_void_p), c_size_t, c_uint),
    "hipHostGetDevicePointer": (POINTER(c_void_p), c_void_p, c_uint),
    "hipFree": (c_void_p,),
    "hipHostFree": (c_void_p,),
    "hipMemGetInfo": (POINTER(c_size_t), POINTER(c_size_t)),
    "hipMemGetAddressRange": (POINTER(c_void_p), POINTER(c_size_t), c_void_p),
    "hipPointerGetAttribute": (c_void_p, c_int, c_void_p),
    "hipMemcpyAsync": (c_void_p, c_void_p, c_size_t, c_int, c_void_p),
    "hipMemcpyPeerAsync": (c_void_p, c_int, c_void_p, c_int, c_size_t, c_void_p),
    "hipMemcpy2DAsync": (c_void_p, c_size_t, c_void_p, c_size_t, c_size_t, c_size_t, c_int, c_void_p),
    "hipMemsetAsync": (c_void_p, c_int, c_size_t, c_void_p),
    "hipIpcGetMemHandle": (POINTER(HipIpcHandle), c_void_p),
    "hipIpcOpenMemHandle": (POINTER(c_void_p), HipIpcHandle, c_uint),
    "hipIpcCloseMemHandle": (c_void_p,),
    "hipModuleLoadData": (POINTER(c_void_p), c_char_p),
    "hipModuleUnload": (c_void_p,),
    "hipModuleGetFunction": (POINTER(c_void_p), c_void_p, c_char_p),
    "hipModuleGetGlobal": (POINTER(c_void_p), POINTER(c_size_t), c_void_p, c_char_p),
    "hipModuleLaunchKernel": (*_LAUNCH, c_void_p, POINTER(LaunchExtra)),
    "hipModuleLaunchCooperativeKernel": (*_LAUNCH, c_void_p),
    "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor": (POINTER(c_int), c_void_p, c_int, c_size_t),
    "hipStreamCreateWithPriority": (POINTER(c_void_p), c_uint, c_int),
    "hipStreamDestroy": (c_void_p,),
    "hipStreamGetFlags": (c_void_p, POINTER(c_uint)),
    "hipStreamGetDevice": (c_void_p, POINTER(c_int)),
    "hipStreamQuery": (c_void_p,),
    "hipStreamSynchronize": (c_void_p,),
    "hipStreamWaitEvent": (c_void_p, c_void_p, c_uint),
    "hipEventCreateWithFlags": (POINTER(c_void_p), c_uint),
    "hipEventDestroy": (c_void_p,),
    "hipEventRecord": (c_void_p, c_void_p),
    "hipEventQuery": (c_void_p,),
    "hipEventSynchronize": (c_void_p,),
    "hipEventElapsedTime": (POINTER(c_float), c_void_p, c_void_p),
    "hipStreamBeginCapture": (c_void_p, c_int),
    "hipStreamIsCapturing": (c_void_p, POINTER(c_int)),
    "hipThreadExchangeStreamCaptureMode": (POINTER(c_int),),
    "hipStreamEndCapture": (c_void_p, POINTER(c_void_p)),
    "hipGraphInstantiateWithFlags": (POINTER(c_void_p), c_void_p, c_ulonglong),
    "hipGraphLaunch": (c_void_p, c_void_p),
    "hipGraphExecDestroy": (c_void_p,),
    "hipGraphDestroy": (c_void_p,),
}
"""Types of the parameters of every function in use; all return a ``hipError_t``. Source: ``hip/hip_runtime_api.h``."""


_RELAXED = 2
"""``hipStreamCaptureModeRelaxed``"""

_COSTLY = frozenset(
    f"hip{name}"
    for name in (
        "Malloc", "HostMalloc", "MallocManaged", "Free", "HostFree", "StreamQuery", "StreamSynchronize", "EventQuery",
        "EventSynchronize",
    )
)  # fmt: skip
"""What costs captures in the global mode, whoever's they are, unless the calling thread is in the relaxed one."""


class Calls:
    """HIP's functions as attributes, each returning its ``hipError_t`` as a number; other Python threads run meanwhile.

    *hip* is the module ``hip`` of hip-python, of which at least one function was called: it has found its library.
    """

    def __init__(self, hip: Any) -> None:
        self.hip = hip
        self._capsules = _capsules(hip)
        self._text = self._bind("hipGetErrorString", c_char_p, (c_int,))
        count = c_int()
        self.call("hipGetDeviceCount", byref(count))
        self.device_count = count.value

    def __getattr__(self, name: str) -> HipKernel:
        parameters = SIGNATURES.get(name)
        if parameters is None:
            raise AttributeError(name)
        function: HipKernel = self._bind(name, c_int, parameters)
        if name in _COSTLY:
            function = self._relaxed(function)

        def call_first(*arguments: Any) -> int:
            try:
                code = function(*arguments)
            except SystemError as error:
                # hip-python looks for the symbol now, and says what is wrong in an exception that ctypes runs into.
                raise UnsupportedError(f"the HIP runtime of this machine has no {name}: {error.__cause__}") from error
            setattr(self, name, function)
            return code

        return call_first

    def activate(self, device: int) -> None:
        """Make *device* the current one of this thread. Not remembered: others in the process change it, too."""
        if self.device_count > 1:
            self.call("hipSetDevice", device)

    def call(self, name: str, *arguments: Any) -> None:
        """Call the function *name*; `HipCallError` where it does not answer ``hipSuccess``."""
        code = getattr(self, name)(*arguments)
        if code:
            raise self.error(name, code)

    def error(self, call: str, code: int) -> HipCallError:
        """The exception for the answer *code* of the function *call*. HIP's memory of its last error is cleared, lest
        somebody else in this process should take it for theirs."""
        self.hipGetLastError()
        try:
            name = self.hip.hipError_t(code).name
        except ValueError:
            name = "an error that hip-python does not know"
        text = self._text(code) or b""
        return hip_error(call, name, code, text.decode(errors="replace"))

    def refuse(self, reason: str) -> None:
        """From now on every call raises `DeviceUnavailableError` for *reason*."""

        def refuse(*arguments: object) -> int:
            raise DeviceUnavailableError(reason)

        for name in SIGNATURES:
            setattr(self, name, refuse)

    def _relaxed(self, function: HipKernel) -> HipKernel:
        """*function*, called in a mode of the thread in which it costs captures of others nothing.

        Only for the call: what others do in this thread is checked as before.
        """

        def call(*arguments: Any) -> int:
            mode = byref(c_int(_RELAXED))
            code = self.hipThreadExchangeStreamCaptureMode(mode)
            if code:
                raise self.error("hipThreadExchangeStreamCaptureMode", code)
            try:
                return function(*arguments)
            finally:
                self.hipThreadExchangeStreamCaptureMode(mode)  # back to the previous mode, which HIP accepts

        return call

    def _bind(self, name: str, result: Any, parameters: tuple[Any, ...]) -> Any:
        capsule = self._capsules.get(name)
        if capsule is None:
            raise UnsupportedError(f"this release of hip-python has no {name}; install 6.2 or a later one")
        return ctypes.CFUNCTYPE(result, *parameters)(_address_in(capsule))


def _capsules(hip: Any) -> dict[str, Any]:
    package = hip.__name__.rpartition(".")[0]
    for name in ("chip", "cyhip"):  # up to 7.2, and from 10.0 on
        try:
            module = importlib.import_module(f"{package}.{name}")
        except ModuleNotFoundError:
            continue
        return dict(module.__pyx_capi__)
    raise DeviceUnavailableError(
        f"hip-python at {getattr(hip, '__file__', None)} has none of the modules that declare HIP's functions "
        f"({package}.chip, {package}.cyhip); hip-runtime works with its releases 6.2 to 10.0"
    )


def _address_in(capsule: Any) -> int:
    api = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(c_char_p, ctypes.py_object)(("PyCapsule_GetName", api))
    get_pointer = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", api))
    return int(get_pointer(capsule, get_name(capsule)))
