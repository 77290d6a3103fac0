"""The host API: devices, streams and events, and compiling without a launch."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TextIO

from numba.core import types

import hip_runtime
from hip_runtime import Device, Event
from hip_runtime.errors import HipRuntimeError
from hip_runtime.event import event_handle
from numba_hip._numba.typing import normalize_signature
from numba_hip.compilation import exported_code
from numba_hip.compilation.device_function import DeviceFunction
from numba_hip.compilation.kernel_code import OUTPUTS, KernelCode, compile_kernel
from numba_hip.compilation.options import CompileOptions
from numba_hip.dispatch.decorated_function import python_function
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.dispatch.function_checks import check_function, check_result
from numba_hip.errors import OutputError, without_own_frames

hip_runtime.device.LAYERS.add("numba_hip")


def is_available() -> bool:
    """Whether there is a device that kernels can run on: an AMD GPU, or the CPU device."""
    try:
        return len(hip_runtime.devices()) > 0
    except HipRuntimeError:
        return False


def list_devices() -> list[Device]:
    """All devices that kernels can run on, in the order of their numbers."""
    return list(hip_runtime.devices())


def get_current_device() -> Device:
    """The device on which this thread's launches run."""
    return hip_runtime.current_device()


def select_device(device_id: int) -> Device:
    """Make device number *device_id* the one on which this thread's launches run; returns it."""
    return hip_runtime.select_device(device_id)


def detect(file: TextIO | None = None) -> bool:
    """Print the list of devices to *file*, standard output by default; returns whether there is one."""
    out = file or sys.stdout
    try:
        found = list_devices()
    except HipRuntimeError as error:
        print(f"No HIP device: {error}", file=out)
        return False
    print(f"Found {len(found)} HIP device{'' if len(found) == 1 else 's'}", file=out)
    for device in found:
        print(f"id {device.id}    {device.name}    [{device.target}]", file=out)
        facts = device.attributes
        print(f"        compute units: {facts.compute_units}, wave size: {facts.wave_size}", file=out)
        print(f"        memory: {facts.total_memory / 2**30:.1f} GiB", file=out)
    return bool(found)


def synchronize() -> None:
    """Wait until the current device has finished all work; raises the errors of kernels."""
    hip_runtime.current_device().synchronize()


def reset() -> None:
    """End all kernels that run on the current device, and drop all work behind them; memory keeps what was written.

    For kernels that do not end, after Ctrl-C has ended the wait for them. Raises `UnsupportedError` on AMD GPUs.
    """
    hip_runtime.current_device().abort()


def event(timing: bool = True) -> Event:
    """A new event on the current device: it marks a point in a stream, to wait for or to measure time between."""
    return hip_runtime.Event(timing=timing)


def event_elapsed_time(evtstart: Event, evtend: Event) -> float:
    """Milliseconds between two recorded events."""
    event_handle("evtstart", evtstart)
    return evtstart.elapsed_time(evtend)


@without_own_frames
def compile(
    function: Callable[..., Any] | Dispatcher,
    signature: Any,
    *,
    target: str | None = None,
    output: str = "asm",
    device: bool = False,
    abi: str | None = None,
    abi_info: Mapping[str, str] | None = None,
    **options: Any,
) -> tuple[str | bytes, types.Type]:
    """Compile *function* for a named target, on any machine: no GPU is needed.

    *signature* gives the argument types: a string, a tuple of types or a Numba signature. *target* is an AMD GPU such
    as ``"gfx942"`` or ``"gfx90a:xnack+"``, or ``"cpu"``; by default that of the current device. *output* is ``"llvm"``
    (LLVM IR, text), ``"bitcode"`` (the same, bytes), ``"asm"`` (assembly, text), ``"object"`` (a relocatable ELF
    object, bytes), or ``"codeobject"`` (bytes that a device can load: linked, together with the functions of ROCm's
    device library that the kernel calls, which needs `ziglang` or ROCm). The other options are those of `jit`; a
    dispatcher has its own.

    The result is a kernel. With *device*, or for a device function, it is a function for other code to link, for
    `declare_device`: *abi* is ``"c"`` (the default) or ``"numba"``, and ``abi_info={"abi_name": ...}`` its name, if not
    that in Python. *output* is then ``"llvm"``, ``"bitcode"``, ``"asm"`` or ``"object"``. See
    `numba_hip.compilation.exported_code`.

    Returns the code and the function's return type, which is ``none`` for a kernel. Raises
    `hip_devicelib.errors.UnknownTargetError`, `OutputError`, and Numba's errors at the user's line.
    """
    is_device = device or (isinstance(function, Dispatcher) and function.is_device_function)
    is_device = is_device or isinstance(function, DeviceFunction)
    possible = exported_code.OUTPUTS if is_device else OUTPUTS
    if output not in possible:
        raise OutputError(f"Unsupported output type: {output}; it can be one of {', '.join(possible)}")
    if not is_device and (abi == "c" or abi_info):
        raise NotImplementedError(
            "The C ABI is not supported for kernels, which have names and parameters of their own"
        )
    if isinstance(function, (Dispatcher, DeviceFunction)):
        chosen, py_func = function.options, function.py_func
        if options:
            chosen = CompileOptions.of_jit({**_as_dict(chosen), **options})
    else:
        chosen, py_func = CompileOptions.of_jit(options), python_function(function)
    check_function(py_func, device=is_device, launched=not is_device)
    args, result = normalize_signature(signature)
    if is_device:
        made = exported_code.compile_device_function(
            py_func, tuple(args), result, chosen, _target(target), abi=abi or "c", name=(abi_info or {}).get("abi_name")
        )
        return made.output(output), made.return_type
    check_result(py_func.__name__, result)
    code = compile_kernel(py_func, tuple(args), chosen, _target(target))
    views: dict[str, Callable[[KernelCode], str | bytes]] = {
        "llvm": KernelCode.llvm, "bitcode": lambda made: made.bitcode,
        "asm": KernelCode.asm, "object": KernelCode.object,
        "codeobject": lambda made: made.code_object.image,
    }  # fmt: skip
    return views[output](code), types.none


def compile_for_current_device(
    function: Callable[..., Any] | Dispatcher, signature: Any, *, output: str = "asm", **options: Any
) -> tuple[str | bytes, types.Type]:
    """`compile` for the current device."""
    return compile(function, signature, output=output, **options)


def compile_all(
    function: Callable[..., Any] | Dispatcher,
    signature: Any,
    *,
    targets: Iterable[str],
    output: str = "asm",
    **options: Any,
) -> tuple[dict[str, str | bytes], types.Type]:
    """`compile` for each of *targets*: the code by the name of the target, and the function's return type."""
    names = [targets] if isinstance(targets, str) else list(targets)
    if not names:
        raise OutputError("targets is empty; name what to compile for, such as ['gfx90a', 'gfx942']")
    made = {name: compile(function, signature, target=name, output=output, **options) for name in names}
    return {name: code for name, (code, _) in made.items()}, made[names[0]][1]


def _target(given: str | None) -> str:
    return hip_runtime.current_device().target if given is None else given


def _as_dict(options: CompileOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


__all__ = [
    "compile", "compile_all", "compile_for_current_device", "detect", "event", "event_elapsed_time",
    "get_current_device", "is_available", "list_devices", "reset", "select_device", "synchronize",
]  # fmt: skip
