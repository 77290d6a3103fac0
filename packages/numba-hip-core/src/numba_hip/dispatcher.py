"""What ``@hip.jit`` makes of a function: compiled when it is launched or called with types that are new to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from hip_runtime import Device, DeviceArray, Function, current_device, is_device_array, as_device_array, to_device
from numba.core import sigutils, types

from numba_hip._numba import type_code
from numba_hip.arguments import Packer, describe, packers, type_of
from numba_hip.conversion import choose_overload
from numba_hip.errors import KernelArgumentError, KernelSignatureError
from numba_hip.faults import exception_describer
from numba_hip.kernel_code import KernelCode, compile_kernel
from numba_hip.launch import ConfiguredKernel, LaunchConfig
from numba_hip.options import CompileOptions

Types = tuple[types.Type, ...]

CLASS_TYPED = frozenset(
    {float, bool, complex, np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128, np.int8,
     np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64}
)  # fmt: skip
"""Classes of scalars whose Numba type does not depend on the value."""

INT64 = range(-(2**63), 2**63)


class LoadedKernel:
    """A kernel on a device, and how its arguments are packed."""

    __slots__ = ("code", "function", "packers")

    def __init__(self, code: KernelCode, device: Device) -> None:
        self.code = code
        self.function: Function = device.load(code.code_object).function(code.name)
        self.function.describe_fault = exception_describer(code.faults)
        self.packers: list[Packer] = packers(code.argument_types, code.parameters)


class Dispatcher:
    """A function of ``hip.jit``: launched as ``kernel[grid, block](...)``, or called from other kernels.

    Each new tuple of argument types is compiled once for each kind of device. Made by `numba_hip.jit`.
    """

    def __init__(self, py_func: Callable[..., Any], options: CompileOptions, *, device: bool = False) -> None:
        self.py_func = py_func
        self.options = options
        self.is_device_function = device
        self.targetoptions = {"inline": options.inline, "fastmath": options.fastmath, "forceinline": options.forceinline}
        self.overloads: dict[Types, KernelCode] = {}
        self._by_target: dict[tuple[str, Types], KernelCode] = {}
        self._loaded: dict[tuple[Any, ...], LoadedKernel] = {}
        self._explicit: list[Types] = []
        self._signature = inspect.signature(py_func)
        self._parameter_count = len(self._signature.parameters)
        self.__name__ = py_func.__name__
        self.__qualname__ = py_func.__qualname__
        self.__module__ = py_func.__module__
        self.__doc__ = py_func.__doc__
        self.__wrapped__ = py_func

    def __repr__(self) -> str:
        kind = "device function" if self.is_device_function else "kernel"
        return f"<hip {kind} {self.__qualname__}>"

    def __getitem__(self, config: Any) -> ConfiguredKernel:
        """Configure a launch: ``kernel[grid, block]``, ``[grid, block, stream]`` or ``[grid, block, stream, dynamic_shared]``.

        Grid and block are integers or tuples of one to three; raises `hip_runtime.errors.LaunchError`.
        """
        if self.is_device_function:
            raise TypeError(f"{self.__name__} is a device function: kernels call it; only a kernel can be launched")
        return ConfiguredKernel(self, LaunchConfig.of(config))

    def __call__(self, *args: Any, **kws: Any) -> None:
        """Refuse: a kernel needs a grid, a device function a kernel."""
        if self.is_device_function:
            raise TypeError(f"{self.__name__} is a device function: it can be called from a kernel only")
        raise TypeError(
            f"kernel {self.__name__} was called without a launch configuration; write {self.__name__}[grid, block](...)"
        )

    # Compiling.

    @property
    def signatures(self) -> list[Types]:
        """Argument types that this kernel has been compiled for."""
        return list(self.overloads)

    def compile(self, signature: Any, target: str | None = None) -> KernelCode:
        """Compile for *signature* (a string, a tuple of types or a Numba signature) and for *target*, which is the
        current device's when left out."""
        args, return_type = sigutils.normalize_signature(signature)
        if return_type not in (None, types.none, types.void):
            raise KernelSignatureError(f"kernel {self.__name__} was given return type {return_type}; it can be void only")
        return self._compile(tuple(args), target or current_device().target)

    def compile_explicit(self, signatures: Iterable[Any]) -> None:
        """Compile for each of *signatures* now, and for no other types later."""
        for signature in signatures:
            if self.is_device_function:
                self._compile_device(signature)
            else:
                self._explicit.append(self.compile(signature).argument_types)

    def _compile_device(self, signature: Any) -> None:
        from numba_hip.targets.registry import compile_target

        args, return_type = sigutils.normalize_signature(signature)
        target = compile_target(current_device().target)
        result = target.typing_context.device_function(self).compile(tuple(args))
        if return_type is not None and result.signature.return_type != return_type:
            raise KernelSignatureError(
                f"device function {self.__name__} returns {result.signature.return_type}, its signature says {return_type}"
            )

    def _compile(self, args: Types, target: str) -> KernelCode:
        code = self._by_target.get((target, args))
        if code is None:
            code = compile_kernel(self.py_func, args, self.options, target)
            self._by_target[target, args] = self.overloads[args] = code
        return code

    # Launching.

    def launch(self, config: LaunchConfig, args: Sequence[Any]) -> None:
        """Run this kernel over ``config.grid``; see `numba_hip.jit` for what *args* can be.

        Host arrays are copied to the device and, once the kernel is done, back.
        """
        device = current_device()
        key: list[Any] = [device]
        for value in args:
            kind = value.__class__
            if kind is DeviceArray:
                key.append((value.upper or describe(value)).code)
            elif kind in CLASS_TYPED or (kind is int and value in INT64):
                key.append(kind)
            else:
                return self._launch_converted(config, args, device)
        loaded = self._loaded.get(tuple(key)) or self._load(tuple(key), args, device)
        packed = b"".join([pack(value) for pack, value in zip(loaded.packers, args)])  # noqa: B905 - same length by the key
        loaded.function.launch(
            config.grid, config.block, packed, stream=config.stream, dynamic_shared=config.dynamic_shared, keep=args
        )
        return None

    def _load(self, key: tuple[Any, ...], args: Sequence[Any], device: Device) -> LoadedKernel:
        given = tuple(type_of(value, name) for value, name in zip(args, self._names(len(args)), strict=True))
        kinds = choose_overload(self.__name__, self._explicit, given, device.target) if self._explicit else given
        loaded = self._loaded[key] = LoadedKernel(self._compile(kinds, device.target), device)
        return loaded

    def _names(self, count: int) -> list[str]:
        """Names of the first *count* parameters; `KernelArgumentError` where the kernel takes another number."""
        parameters = self._signature.parameters
        names = list(parameters)
        if count != len(names):
            raise KernelArgumentError(
                f"kernel {self.__name__} takes {len(names)} arguments ({', '.join(names)}); the launch passes {count}"
            )
        return names

    def _launch_converted(self, config: LaunchConfig, args: Sequence[Any], device: Device) -> None:
        """Launch with arguments that first have to be brought onto the device, or whose type depends on their value."""
        names = self._names(len(self._bound(args)))
        args = self._bound(args)
        kinds = [type_of(value, name) for value, name in zip(args, names, strict=True)]
        converted: list[Any] = []
        written: list[tuple[np.ndarray[Any, Any], DeviceArray]] = []
        for value in args:
            if isinstance(value, np.ndarray):
                copy = to_device(value, stream=config.stream)
                converted.append(copy)
                if value.flags.writeable:
                    written.append((value, copy))
            elif not isinstance(value, DeviceArray) and is_device_array(value):
                converted.append(as_device_array(value))
            else:
                converted.append(value)
        for value in converted:
            if isinstance(value, DeviceArray):
                describe(value)
        key = (device, *(describe(v).code if isinstance(v, DeviceArray) else type_code(k) for v, k in zip(converted, kinds, strict=True)))
        loaded = self._loaded.get(key) or self._load(key, converted, device)
        packed = b"".join([pack(value) for pack, value in zip(loaded.packers, converted, strict=True)])
        loaded.function.launch(
            config.grid, config.block, packed, stream=config.stream, dynamic_shared=config.dynamic_shared, keep=converted
        )
        for host, copy in written:
            copy.copy_to_host(host, stream=config.stream)

    def _bound(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """*args* with the defaults of the parameters that are left out."""
        if len(args) == self._parameter_count:
            return tuple(args)
        defaults = [parameter.default for parameter in self._signature.parameters.values()][len(args) :]
        if len(args) < self._parameter_count and inspect.Parameter.empty not in defaults:
            return (*args, *defaults)
        self._names(len(args))
        return tuple(args)

    # Looking.

    def inspect_llvm(self, signature: Types | None = None) -> Any:
        """LLVM IR, optimised: of *signature*, or a dictionary of all that are compiled."""
        return self._inspect(signature, KernelCode.llvm)

    def inspect_asm(self, signature: Types | None = None) -> Any:
        """Assembly: of *signature*, or a dictionary of all that are compiled."""
        return self._inspect(signature, KernelCode.asm)

    def inspect_types(self, file: Any = None) -> None:
        """Print the source with the types that Numba inferred to *file*, standard output by default."""
        for args, code in self.overloads.items():
            print(self.__name__, args, file=file)
            print("-" * 80, file=file)
            print(code.annotation, file=file)
            print("=" * 80, file=file)

    def _inspect(self, signature: Types | None, view: Callable[[KernelCode], str]) -> Any:
        if signature is None:
            return {args: view(code) for args, code in self.overloads.items()}
        args, _ = sigutils.normalize_signature(signature)
        return view(self.overloads[tuple(args)])
