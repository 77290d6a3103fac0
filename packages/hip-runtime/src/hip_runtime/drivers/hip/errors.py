"""Exceptions for the error codes of the HIP runtime.

Each carries the call that failed, HIP's name of the answer, its number and HIP's text, and is also one of the errors in
`hip_runtime.errors` where one of them says what happened.
"""

from __future__ import annotations

from hip_runtime.errors import (
    CaptureError,
    DeviceUnavailableError,
    HipRuntimeError,
    InvalidAddressError,
    InvalidHandleError,
    LaunchError,
    ModuleLoadError,
    SymbolError,
    UnsupportedError,
)

INVALID_VALUE = 1
OUT_OF_MEMORY = 2
NO_DEVICE = 100
OWN_MEMORY = 201
ILLEGAL_STATE = 401
NOT_FOUND = 500
NOT_READY = 600
PEER_ACCESS_ALREADY_ENABLED = 704
"""Numbers of ``hipError_t`` in ``hip/hip_runtime_api.h``; like those below they are part of HIP's binary interface."""


class HipCallError(HipRuntimeError):
    """A call of the HIP runtime failed: ``call`` is the function, ``name``, ``code`` and ``text`` are HIP's own."""

    advice = ""

    def __init__(self, call: str, name: str, code: int, text: str) -> None:
        super().__init__(call, name, code, text)
        self.call = call
        self.name = name
        self.code = code
        self.text = text

    def __str__(self) -> str:
        return f"{self.call}: {self.name} ({self.code}): {self.text}{self.advice}"


class HipOutOfMemoryError(HipCallError, MemoryError):
    """The runtime had too little memory for something other than an allocation of the caller's."""


class HipLaunchError(HipCallError, LaunchError):
    """A launch that this device cannot do."""


class HipValueError(HipCallError, ValueError):
    """A number that the runtime cannot do anything with."""


class HipStateError(HipCallError):
    """Something that cannot be done in the state that a stream or another object is in."""


class HipHandleError(HipCallError, InvalidHandleError):
    """A stream or event that the runtime does not know."""


class HipAddressError(HipCallError, InvalidAddressError):
    """An address that the runtime does not know."""


class HipModuleError(HipCallError, ModuleLoadError):
    """A code object that the runtime cannot load."""


class HipSymbolError(HipCallError, SymbolError):
    """A kernel or global that a code object does not hold."""


class HipUnsupportedError(HipCallError, UnsupportedError):
    """Something that this device or this release of the runtime cannot do."""


class HipUnavailableError(HipCallError, DeviceUnavailableError):
    """A device that is not there."""


class HipCaptureError(HipCallError, CaptureError):
    """Something that cannot be done while a stream is captured, or that the capture was lost through."""


class DeviceFailure(HipCallError):
    """Work on the device was stopped: by an access outside of memory, an assertion, a time limit, or a defect.

    The runtime gives the same answer to everything else that this process asks of the device.
    """

    advice = "; the device does nothing more for this process, which has to be started again"


_CLASSES: dict[int, type[HipCallError]] = {
    INVALID_VALUE: HipValueError,
    OUT_OF_MEMORY: HipOutOfMemoryError,
    9: HipLaunchError,  # hipErrorInvalidConfiguration
    13: HipSymbolError,  # hipErrorInvalidSymbol
    17: HipAddressError,  # hipErrorInvalidDevicePointer
    98: HipModuleError,  # hipErrorInvalidDeviceFunction
    NO_DEVICE: HipUnavailableError,
    101: HipUnavailableError,  # hipErrorInvalidDevice
    200: HipModuleError,  # hipErrorInvalidImage
    OWN_MEMORY: HipHandleError,  # hipErrorInvalidContext
    209: HipModuleError,  # hipErrorNoBinaryForGpu
    214: DeviceFailure,  # hipErrorECCNotCorrectable
    218: HipModuleError,  # hipErrorInvalidKernelFile
    300: HipModuleError,  # hipErrorInvalidSource
    301: HipModuleError,  # hipErrorFileNotFound
    302: HipModuleError,  # hipErrorSharedObjectSymbolNotFound
    303: HipModuleError,  # hipErrorSharedObjectInitFailed
    400: HipHandleError,  # hipErrorInvalidHandle
    ILLEGAL_STATE: HipStateError,
    NOT_FOUND: HipSymbolError,
    700: DeviceFailure,  # hipErrorIllegalAddress
    701: HipLaunchError,  # hipErrorLaunchOutOfResources
    702: DeviceFailure,  # hipErrorLaunchTimeOut
    709: HipHandleError,  # hipErrorContextIsDestroyed
    710: DeviceFailure,  # hipErrorAssert
    719: DeviceFailure,  # hipErrorLaunchFailure
    720: HipLaunchError,  # hipErrorCooperativeLaunchTooLarge
    801: HipUnsupportedError,  # hipErrorNotSupported
    900: HipCaptureError,  # hipErrorStreamCaptureUnsupported
    901: HipCaptureError,  # hipErrorStreamCaptureInvalidated
    902: HipCaptureError,  # hipErrorStreamCaptureMerge
    903: HipCaptureError,  # hipErrorStreamCaptureUnmatched
    904: HipCaptureError,  # hipErrorStreamCaptureUnjoined
    905: HipCaptureError,  # hipErrorStreamCaptureIsolation
    906: HipCaptureError,  # hipErrorStreamCaptureImplicit
    907: HipCaptureError,  # hipErrorCapturedEvent
    908: HipCaptureError,  # hipErrorStreamCaptureWrongThread
}


_CLASSES_OF_CALLS: dict[str, dict[int, type[HipCallError]]] = {
    "Launch": {INVALID_VALUE: HipLaunchError},  # such as too much shared memory
    "Capture": {ILLEGAL_STATE: HipCaptureError},  # no capture is active, or one is already
}
"""What some numbers say where the name of the function has a certain word."""


def hip_error(call: str, name: str, code: int, text: str) -> HipCallError:
    """The exception for the answer *code* of the function *call*."""
    kind = _CLASSES.get(code, HipCallError)
    for part, codes in _CLASSES_OF_CALLS.items():
        if part in call:
            kind = codes.get(code, kind)
    return kind(call, name, code, text)
