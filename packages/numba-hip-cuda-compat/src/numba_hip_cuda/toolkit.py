"""Functions of `numba.cuda` that need NVIDIA's toolkit: they can be imported, and raise an error when called.

A program that uses PTX in one place therefore still runs in all others.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from typing import Any, NoReturn

import numba_hip
from hip_runtime.errors import DeviceUnavailableError, UnsupportedError
from numba_hip_cuda.devices import ActiveContext, get_version

NO_PTX = "PTX is NVIDIA's assembly language; numba_hip.compile gives LLVM IR, assembly and objects for AMD GPUs"
NO_CUDA_DRIVER = "there is no CUDA driver beneath; hip_runtime has devices, streams, memory and modules"


def refused(name: str, reason: str, place: str = "numba.cuda") -> Callable[..., NoReturn]:
    """A function *name* of the module *place* that raises an error with *reason* when it is called."""

    def function(*args: Any, **kws: Any) -> NoReturn:
        raise UnsupportedError(f"{place}.{name} has no counterpart on HIP (numba_hip_cuda poses as it): {reason}")

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises `hip_runtime.errors.UnsupportedError`: {reason}."
    return function


def refused_output(name: str, *, device: bool, abi: str, place: str = "numba.cuda") -> Callable[..., NoReturn]:
    """A function that would compile to PTX. Wrong arguments raise the same errors as in CUDA."""

    def function(pyfunc: Any, sig: Any, *args: Any, **kws: Any) -> NoReturn:
        output, chosen = kws.get("output", "ptx"), kws.get("abi", abi)
        if output not in ("ptx", "ltoir"):
            raise NotImplementedError(f"Unsupported output type: {output}")
        if chosen not in ("numba", "c"):
            raise NotImplementedError(f"Unsupported ABI: {chosen}")
        if chosen == "c" and not kws.get("device", device):
            raise NotImplementedError("The C ABI is not supported for kernels")
        refused(name, NO_PTX, place)()

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Raises `hip_runtime.errors.UnsupportedError`: {NO_PTX}."
    return function


compile = refused_output("compile", device=True, abi="c")
compile_all = refused_output("compile_all", device=True, abi="c")
compile_for_current_device = refused_output("compile_for_current_device", device=True, abi="c")
compile_ptx = refused_output("compile_ptx", device=False, abi="numba")
compile_ptx_for_current_device = refused_output("compile_ptx_for_current_device", device=False, abi="numba")


class _Refused:
    """A class that only NVIDIA's tools could use. Programs can refer to it; creating an instance raises an error."""

    reason = "it is code for NVIDIA's GPUs; numba_hip.LinkedCode takes LLVM bitcode and IR, and HIP C++"

    def __init__(self, *args: Any, **kws: Any) -> None:
        raise UnsupportedError(f"numba.cuda's {type(self).__name__} has no counterpart on HIP: {self.reason}")


class _Code:
    """Code for NVIDIA's GPUs. Objects can be created, so that modules with some can be imported, but not linked.

    Objects without code can be linked: their callbacks are called with the modules of kernels. ``nrt`` has no effect.
    """

    default_name: str

    def __init_subclass__(cls) -> None:
        cls.default_name = f"<unnamed-{cls.__name__.lower()}>"

    def __init__(
        self,
        data: Any,
        name: str | None = None,
        setup_callback: Callable[[Any], object] | None = None,
        teardown_callback: Callable[[Any], object] | None = None,
        nrt: bool = False,
    ) -> None:
        for callback, title in ((setup_callback, "setup_callback"), (teardown_callback, "teardown_callback")):
            if callback is not None and not callable(callback):
                raise TypeError(f"{title} must be callable")
        self._data = data
        self.name = name or self.default_name
        self.setup_callback = setup_callback
        self.teardown_callback = teardown_callback
        self.nrt = nrt

    @property
    def data(self) -> Any:
        """The data that it was made of; for a file in memory, its contents now."""
        return self._data.getvalue() if isinstance(self._data, (io.StringIO, io.BytesIO)) else self._data


class PTXSource(_Code):
    """PTX."""


class LTOIR(_Code):
    """NVVM's intermediate code, for linking."""


class Cubin(_Code):
    """Machine code of an NVIDIA GPU."""


class Fatbin(_Code):
    """Machine code of several NVIDIA GPUs."""


class Archive(_Code):
    """A library of machine code of NVIDIA GPUs."""


class Object(_Code):
    """An object file with machine code of an NVIDIA GPU."""


class CUSource(_Code):
    """CUDA C++, which is compiled as HIP C++."""

    def as_linked_code(self) -> numba_hip.LinkedSource:
        """What kernels are linked with."""
        text = self.data.encode() if isinstance(self.data, str) else self.data
        return numba_hip.LinkedSource(text, self.name, self.setup_callback, self.teardown_callback)


class _Linker(_Refused):
    """CUDA's linker."""

    reason = "code is linked by hip_devicelib"


def _have_nvjitlink() -> bool:
    """Whether NVIDIA's linker is available: never."""
    return False


class Driver:
    """``numba.cuda.cudadrv.driver.driver``: information about devices. Functions of CUDA's driver raise errors."""

    @property
    def is_available(self) -> bool:
        """Whether there is a device."""
        return numba_hip.is_available()

    @property
    def initialization_error(self) -> str | None:
        """Why there is no device, or ``None``."""
        try:
            numba_hip.list_devices()
        except DeviceUnavailableError as error:
            return str(error)
        return None

    def get_device_count(self) -> int:
        """The number of devices."""
        return len(numba_hip.list_devices())

    def get_device(self, devnum: int = 0) -> Any:
        """Device number *devnum*."""
        return numba_hip.list_devices()[devnum]

    def list_devices(self) -> list[Any]:
        """All devices."""
        return list(numba_hip.list_devices())

    @property
    def devices(self) -> dict[int, Any]:
        """All devices, by their numbers."""
        return {device.id: device for device in numba_hip.list_devices()}

    @property
    def is_initialized(self) -> bool:
        """Whether the driver is initialised. It is as soon as it is asked."""
        return True

    def ensure_initialized(self) -> None:
        """Find the devices; `hip_runtime.errors.DeviceUnavailableError` with the reason if there is none."""
        numba_hip.list_devices()

    @property
    def pid(self) -> int:
        """The process that initialised the driver: this one."""
        return os.getpid()

    def get_version(self) -> tuple[int, int]:
        """The release of CUDA's interface that is provided."""
        return get_version()

    def get_active_context(self) -> ActiveContext:
        """A ``with`` block for the current device of the thread."""
        return ActiveContext()

    def reset(self) -> None:
        """Wait for all devices. Memory is freed with the objects that own it."""
        for device in numba_hip.list_devices():
            device.reset()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AttributeError(
            f"the CUDA driver has no {name} here (numba_hip_cuda poses as numba.cuda): {NO_CUDA_DRIVER}"
        )


driver = Driver()
