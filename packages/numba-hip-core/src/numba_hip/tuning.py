"""`hip.autotune`: of several block shapes and constants, the ones that a kernel is fastest with, measured and kept."""

from __future__ import annotations

import inspect
import itertools
import json
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hip_devicelib.cache import Cache, make_key
from hip_devicelib.errors import CacheError
from hip_runtime import DeviceArray, Stream, as_device_array, current_device, is_device_array, to_device
from hip_runtime.errors import LaunchError, UnsupportedError
from hip_runtime.profiling import benchmark
from hip_runtime.said_names import our
from numba_hip import config
from numba_hip._numba.typing import type_code
from numba_hip.arguments.argument_types import argument_type, describe, type_of
from numba_hip.arguments.transfer_hints import ArgHint
from numba_hip.caching import fingerprint
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.errors import SharedMemoryError, TuningError
from numba_hip.progress import with_progress

IMPOSSIBLE = (LaunchError, SharedMemoryError, UnsupportedError)
"""What a launch raises that the device has no room for."""

Configuration = dict[str, Any]
"""A value for each name: ``block``, and the constants."""


@dataclass(frozen=True)
class Choice:
    """A configuration, and the median seconds of a launch with it."""

    configuration: Configuration
    seconds: float


class Tuned:
    """A kernel that is launched with the block shape, and compiled with the constants, that it is fastest with.

    ``tuned[grid](*args)`` launches it; *grid* is what it is for a kernel, or a function that is called with the block
    and the constants by name and returns it. Arguments of other types or shapes are tuned for by themselves. Made by
    `autotune`.
    """

    def __init__(
        self,
        make: Callable[..., Dispatcher] | Dispatcher,
        configurations: Sequence[Configuration],
        key: Callable[..., Any] | None,
        seconds: float,
    ) -> None:
        self._make = make
        self._key = key
        self._seconds = seconds
        self._kernels: dict[str, Dispatcher] = {}
        self._seen: dict[tuple[Any, ...], Choice] = {}  # by the types and sizes of arguments
        self._tuning = threading.Lock()
        self.configurations = configurations
        """Those that are tried."""
        self.choices: dict[tuple[Any, ...], Choice] = {}
        """What was chosen in this process, by the device and what the arguments were told apart by."""
        self.__name__ = make.__name__
        self.__doc__ = make.__doc__

    def __repr__(self) -> str:
        return f"<autotuned {self.__name__}, {len(self.configurations)} configurations>"

    def __getitem__(self, grid: Any) -> Callable[..., None]:
        return self.configure(grid)

    def configure(self, grid: Any, stream: Stream | int = 0, sharedmem: int = 0) -> Callable[..., None]:
        """``tuned[grid]`` on *stream*, with *sharedmem* bytes of dynamic shared memory for each block."""

        def launch(*args: Any) -> None:
            chosen = self.choose(grid, args, stream, sharedmem)
            self._configured(chosen.configuration, grid, stream, sharedmem)(*args)

        return launch

    def choose(self, grid: Any, args: Sequence[Any], stream: Stream | int = 0, sharedmem: int = 0) -> Choice:
        """The configuration for *args*: known, read from the cache on disk, or measured now, on copies of the arrays.

        Raises `TuningError` where none of them is possible, and what the kernel raises.
        """
        if self._key is not None:
            return self._choose(self._tell_apart(args), grid, args, stream, sharedmem)
        seen = current_device(), tuple([_glance(value) for value in args])
        chosen = self._seen.get(seen)
        if chosen is None:
            chosen = self._seen[seen] = self._choose(self._tell_apart(args), grid, args, stream, sharedmem)
        return chosen

    def _choose(
        self, told_apart: tuple[Any, ...], grid: Any, args: Sequence[Any], stream: Any, sharedmem: int
    ) -> Choice:
        chosen = self.choices.get(told_apart)
        if chosen is None:
            with self._tuning:
                chosen = self.choices.get(told_apart) or self._find(grid, args, stream, sharedmem, told_apart)
                self.choices[told_apart] = chosen
        return chosen

    def _tell_apart(self, args: Sequence[Any]) -> tuple[Any, ...]:
        device = current_device()
        if self._key is not None:
            return device.name, device.target, self._key(*args)
        return device.name, device.target, *(_describe(value) for value in args)

    def _find(self, grid: Any, args: Sequence[Any], stream: Any, sharedmem: int, told_apart: tuple[Any, ...]) -> Choice:
        place = self._place(args, told_apart)
        kept = _read(place)
        for configuration in self.configurations:
            if kept is not None and kept[0] == repr(configuration):
                return Choice(configuration, kept[1])
        chosen = self._measure(grid, args, stream, sharedmem)
        _write(place, chosen)
        return chosen

    def _measure(self, grid: Any, args: Sequence[Any], stream: Any, sharedmem: int) -> Choice:
        problem: Exception | None = None
        measured = []
        copies = [_copy(value) for value in args]
        for configuration in with_progress(self.configurations, f"autotune {self.__name__}"):
            try:
                launch = self._configured(configuration, grid, stream, sharedmem)
                seconds = benchmark(launch, *copies, seconds=self._seconds, stream=stream).median
            except IMPOSSIBLE as error:
                problem = error
            else:
                measured.append(Choice(configuration, seconds))
        if not measured:
            raise TuningError(
                f"none of the {len(self.configurations)} configurations of {self.__name__} is possible on "
                f"{current_device().name}: try smaller blocks; the last one fails with: {problem}"
            ) from problem
        return min(measured, key=lambda choice: choice.seconds)

    def _configured(self, configuration: Configuration, grid: Any, stream: Any, sharedmem: int) -> Callable[..., None]:
        extents = grid(**configuration) if callable(grid) else grid
        return self._kernel(configuration).configure(extents, configuration["block"], stream, sharedmem)

    def _kernel(self, configuration: Configuration) -> Dispatcher:
        if isinstance(self._make, Dispatcher):
            return self._make
        constants = {name: value for name, value in configuration.items() if name != "block"}
        kernel = self._kernels.get(repr(constants))
        if kernel is None:
            kernel = self._kernels[repr(constants)] = self._make(**constants)
            if not isinstance(kernel, Dispatcher):
                raise TuningError(
                    f"{self.__name__} returned {kernel!r} for {constants}; it has to return a kernel of {our('jit')}"
                )
        return kernel

    def _place(self, args: Sequence[Any], told_apart: tuple[Any, ...]) -> str | None:
        """The key of the cache: of all that the choice depends on; ``None`` where that cannot be told."""
        target = current_device().target
        kinds = [argument_type(value, f"argument {number}") for number, value in enumerate(args)]
        parts = [repr(told_apart), repr(self.configurations)]
        with suppress(fingerprint.NoFingerprintError):
            for kernel in {id(kernel): kernel for kernel in map(self._kernel, self.configurations)}.values():
                options = fingerprint.fingerprint_options(kernel.options)
                parts.append(fingerprint.fingerprint_kernel(kernel.py_func, kinds, options, target)[0])
            return make_key("autotune 1", *parts)
        return None


def autotune(
    *, block: Sequence[Any], key: Callable[..., Any] | None = None, seconds: float = 0.05, **constants: Sequence[Any]
) -> Callable[[Any], Tuned]:
    """Decorate a kernel, or a function of *constants* that makes one, to be launched with what it is fastest with.

    *block* lists block shapes, each of *constants* values of the argument of that name; all combinations are tried,
    each for about *seconds*, when a launch has arguments of types and shapes that are new, or for which ``key(*args)``
    is new, if *key* is given. What the device has no room for is left out. The arrays of the launch are copied for
    that: their contents are as if the kernel had run once. The choice is kept in the cache on disk, until the kernel,
    the device or a version changes. Raises `TuningError` for lists that are empty, and names that do not fit.
    """
    for name, values in {"block": block, **constants}.items():
        if isinstance(values, str) or not hasattr(values, "__iter__") or not list(values):
            raise TuningError(f"{name}={values!r}: must be a list of the values to try, with at least one")
    names = ["block", *constants]
    combinations = itertools.product(block, *constants.values())
    configurations = [dict(zip(names, values, strict=True)) for values in combinations]

    def decorate(make: Any) -> Tuned:
        _check(make, constants)
        return Tuned(make, configurations, key, seconds)

    return decorate


def _check(make: Any, constants: Mapping[str, Any]) -> None:
    if isinstance(make, Dispatcher):
        if constants:
            raise TuningError(
                f"{make.__name__} is a kernel, which takes no constants ({', '.join(constants)}): decorate a function "
                "of them that returns a kernel"
            )
        return
    if not callable(make):
        raise TuningError(f"autotune decorates a kernel, or a function that makes one, not {make!r}")
    taken = list(inspect.signature(make).parameters)
    if sorted(taken) != sorted(constants):
        raise TuningError(
            f"{make.__name__} takes ({', '.join(taken)}), and autotune has values for ({', '.join(constants)}); put "
            f"{our('jit')} below autotune if this is a kernel"
        )


def _describe(value: Any) -> tuple[Any, ...]:
    """What tells *value* apart from others: its type and, of an array, its shape."""
    given = value.value if isinstance(value, ArgHint) else value
    return str(argument_type(value, "argument")), tuple(getattr(given, "shape", ()))


def _glance(value: Any) -> tuple[Any, ...]:
    """The same as `_describe` tells, sooner: this is asked for at each launch."""
    if isinstance(value, DeviceArray):
        return describe(value).code, value.shape
    if isinstance(value, (int, float, complex, np.generic, np.ndarray)) and not isinstance(value, np.void):
        return type_code(type_of(value, "argument")), getattr(value, "shape", ())
    return _describe(value)


def _copy(value: Any) -> Any:
    """An array of the device with what *value* holds, or *value* itself where that is no array."""
    given = value.value if isinstance(value, ArgHint) else value
    if isinstance(given, np.ndarray):
        return to_device(given)
    return as_device_array(given).copy() if is_device_array(given) else given


def _cache() -> Cache:
    return Cache(config.cache_dir().absolute() / "autotune", variable=config.cache_dir.variable)


def _read(place: str | None) -> tuple[str, float] | None:
    """The configuration that was kept at *place*, as it is shown, and its seconds."""
    if place is None:
        return None
    try:
        data = _cache().get(place)
    except CacheError as error:
        warnings.warn(f"earlier results of tuning cannot be read: {error}", stacklevel=2)
        return None
    if data is None:
        return None
    kept = json.loads(data)
    return kept["configuration"], kept["seconds"]


def _write(place: str | None, chosen: Choice) -> None:
    if place is None:
        return
    try:
        data = {"configuration": repr(chosen.configuration), "seconds": chosen.seconds}
        _cache().put(place, json.dumps(data).encode())
    except CacheError as error:
        warnings.warn(f"the result of tuning cannot be saved: {error}", stacklevel=2)
