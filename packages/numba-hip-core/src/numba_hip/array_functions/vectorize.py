"""``hip.vectorize`` and ``numba.vectorize(..., target="hip")``: functions of numbers that run over whole arrays."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray, Stream, current_device, is_device_array
from hip_runtime.said_names import our
from numba_hip import config
from numba_hip._numba.typing import is_signature, normalize_signature
from numba_hip.advisory_warnings import advise_on_conversion
from numba_hip.arguments.argument_types import element_type
from numba_hip.array_functions.elementwise import (
    WEAK,
    Operand,
    broadcast,
    check_conversion,
    dtype_of,
    elementwise_kernel,
    find_repeated,
    fits,
    flatten,
    keeps_value,
    narrows,
    new_result,
    onto_device,
    take_operands,
)
from numba_hip.compilation.compiler import explained
from numba_hip.compilation.target_registry import compile_target
from numba_hip.decorators import jit
from numba_hip.dispatch import pickling
from numba_hip.language.kernel_callable import KernelCallable

_ELEMENTS = (types.Number, types.Boolean, types.NPDatetime, types.NPTimedelta)
"""Types of what arrays of results have as elements."""


class HipUFunc(KernelCallable):
    """A function of numbers that runs over arrays on the device, and that kernels call for numbers. Made by
    `vectorize`."""

    of_elements = True

    def __init__(self, py_func: Callable[..., Any], identity: Any = None, exceptions: bool = False) -> None:
        self.py_func = py_func
        self.identity = identity
        self.exceptions = exceptions
        self.core = jit(device=True)(py_func)
        self.targetoptions = self.core.targetoptions
        self.nin = len(inspect.signature(py_func).parameters)
        self.signatures: list[tuple[tuple[types.Type, ...], types.Type]] = []
        self._dynamic = True
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__

    def __repr__(self) -> str:
        return f"<hip ufunc {self.__name__!r}>"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"py_func": self.py_func, "identity": self.identity, "exceptions": self.exceptions}
        return pickling.reduce_ufunc(self, {**state, "signatures": self.signatures, "dynamic": self._dynamic})

    @classmethod
    def restore(
        cls, py_func: Callable[..., Any], identity: Any, exceptions: bool, signatures: list[Any], dynamic: bool
    ) -> HipUFunc:
        """The unpickled function; it is compiled when it is called."""
        made = cls(py_func, identity, exceptions)
        made.signatures = signatures
        made._dynamic = dynamic
        return made

    @property
    def device_signatures(self) -> dict[tuple[types.Type, ...], types.Type]:
        """The signatures that it was given: argument types, and the type of the result."""
        return {} if self._dynamic else dict(self.signatures)

    def add(self, signature: Any) -> None:
        """Compile for *signature*: argument types, with or without the type of the result."""
        args, result = normalize_signature(signature)
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arguments; signature {signature} has {len(args)}")
        self._dynamic = False
        self._compile(tuple(args), result)

    def _compile(self, args: tuple[types.Type, ...], result: types.Type | None) -> types.Type:
        target = compile_target(current_device().target)
        with explained(self.py_func, args, target.name):
            returned = target.typing_context.device_function(self.core).compile(args).signature.return_type
        if isinstance(returned, types.IntEnumMember):
            returned = returned.dtype
        if not isinstance(returned, _ELEMENTS):
            what = "nothing" if returned == types.none else str(returned)
            raise TypeError(f"{self.__name__} returns {what}; a vectorized function returns one number")
        if result is not None and target.typing_context.can_convert(returned, result) is None:
            raise TypeError(
                f"{self.__name__} returns {returned}, which does not convert to {result}, the result in the signature"
            )
        chosen = returned if result is None else result
        self.signatures.append((args, chosen))
        return chosen

    def __call__(self, *args: Any, out: Any = None, stream: Stream | int | None = None) -> Any:
        """Apply the function to every element of *args*, broadcast against each other.

        The arguments are numbers, host arrays and device arrays; so is *out*, which can be the last argument, too. The
        result is *out*, or a new array: on the device if any argument is there, otherwise on the host; a number if all
        arguments are numbers. With a *stream*, work on the device is not waited for.
        """
        if len(args) == self.nin + 1 and out is None:
            *args, out = args  # type: ignore[assignment]
        if len(args) != self.nin:
            raise TypeError(f"{self.__name__} takes {self.nin} arrays or numbers, and optionally out; got {len(args)}")
        args = tuple(take_operands(self.__name__, args))
        (out,) = take_operands(self.__name__, (out,), "out")
        on = stream if isinstance(stream, Stream) else None
        kinds, result_type = self._choose(args)
        wanted = [dtype_of(kind) for kind in kinds]
        shape = broadcast(self.__name__, [np.shape(value) for value in args])
        _check_out(self.__name__, out, shape, dtype_of(result_type))
        passed = [onto_device(value, dtype, on) for value, dtype in zip(args, wanted, strict=True)]
        given_out = out if isinstance(out, DeviceArray) else None
        target = given_out if given_out is not None else new_result(shape, dtype_of(result_type))
        self._launch(shape, passed, kinds, target, on)
        if given_out is not None:
            return out
        if out is None and any(is_device_array(value) for value in args):
            return target
        host = target.copy_to_host(
            out if isinstance(out, np.ndarray) and out.dtype == target.dtype else None, stream=on
        )
        if on is not None:
            on.synchronize()
        if out is not None:
            if host is not out:
                out[...] = host
            return out
        return host[()] if shape == () else host

    def _launch(
        self, shape: tuple[int, ...], passed: list[Any], kinds: tuple[types.Type, ...], target: DeviceArray, on: Any
    ) -> None:
        *passed, target = arrays = flatten([*passed, target], shape)
        shape = target.shape
        inputs = tuple(
            Operand(find_repeated(value.shape, shape), convert_to=None if value.dtype == dtype_of(kind) else kind)
            if isinstance(value, DeviceArray)
            else Operand(None, convert_to=kind if isinstance(kind, types.Number) else None)
            for value, kind in zip(passed, kinds, strict=True)
        )
        output = Operand(find_repeated(shape, shape))
        kernel = elementwise_kernel(self.core, inputs, (output,), self.exceptions)
        kernel.forall(target.size, stream=on)(shape, *arrays)

    def _choose(self, args: tuple[Any, ...]) -> tuple[tuple[types.Type, ...], types.Type]:
        """The first signature that all *args* convert to without loss, of those that have the types of the arrays if
        there are any; without signatures, one for exactly these types."""
        exact = tuple(_type_of(value) for value in args)
        for kinds, result in self.signatures:
            if kinds == exact:
                return kinds, result
        weak = [type(value) in WEAK for value in args]  # as in NumPy, Python's numbers go with the arrays
        for kinds, result in self.signatures if not all(weak) else ():
            if all(
                fits(value, dtype_of(kind)) if is_weak else kind == own
                for value, kind, own, is_weak in zip(args, kinds, exact, weak, strict=True)
            ):
                return kinds, result
        if self._dynamic:
            return exact, self._compile(exact, None)
        ways = (fits, keeps_value, _number_narrows) if config.truncate_arguments() else (fits, keeps_value)
        for can_become in ways:
            for kinds, result in self.signatures:
                wanted = [dtype_of(kind) for kind in kinds]
                if all(map(can_become, args, wanted)):
                    if can_become is _number_narrows:
                        advise_on_conversion(self.__name__, list(map(dtype_of, exact)), wanted)
                    return kinds, result
        shown = "; ".join(", ".join(map(str, kinds)) for kinds, _ in self.signatures)
        passed = ", ".join(map(str, exact))
        raise TypeError(f"{self.__name__} was compiled for ({shown}); ({passed}) does not convert to it without loss")

    def reduce(self, array: Any, stream: Stream | int | None = None) -> Any:
        """Combine all elements of *array*, which has one axis, by this function of two numbers.

        The function has to be associative and commutative: it is applied to halves of the array until one is left.
        """
        if self.nin != 2:
            raise TypeError(f"{self.__name__} takes {self.nin} numbers; only a function of two can reduce an array")
        if len(np.shape(array)) != 1:
            raise TypeError(f"{self.__name__}.reduce takes an array of one axis, got shape {np.shape(array)}")
        count = int(np.shape(array)[0])
        if count == 0:
            raise TypeError(f"{self.__name__}.reduce: the array has no elements")
        on = stream if isinstance(stream, Stream) else None
        (array,) = take_operands(f"{self.__name__}.reduce", (array,))
        rest = onto_device(array, np.dtype(array.dtype), on)
        while count > 1:
            half = count // 2
            reduced = self(rest[:half], rest[count - half : count], stream=on)
            if count % 2:  # the one in the middle has no partner
                self(reduced[:1], rest[half : half + 1], out=reduced[:1], stream=on)
            rest, count = reduced, half
        host = rest[:1].copy_to_host(stream=on)
        if on is not None:
            on.synchronize()
        return host[0]


def _number_narrows(value: Any, wanted: np.dtype[Any]) -> bool:
    """Whether *value* fits *wanted*, or is a single number of the host, which Numba CUDA converts in any case."""
    return fits(value, wanted) or (np.shape(value) == () and not is_device_array(value) and narrows(value, wanted))


def _type_of(value: Any) -> types.Type:
    return _of_elements(np.dtype(value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype))


_of_elements = lru_cache(64)(element_type)


def _check_out(function: str, out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
    if out is None:
        return
    if not isinstance(out, (np.ndarray, DeviceArray)):
        raise TypeError(f"{function}: out is a {type(out).__name__}; it has to be an array of the host or the device")
    if tuple(out.shape) != tuple(shape):
        raise ValueError(f"{function}: out has shape {tuple(out.shape)}; the result has {tuple(shape)}")
    check_conversion(function, dtype, out.dtype)


class VectorizeBuilder:
    """The builder behind ``numba.vectorize(..., target="hip")``: signatures are added, then the ufunc is requested."""

    target = "hip"

    def __init__(
        self, py_func: Callable[..., Any], identity: Any = None, cache: bool = False, targetoptions: Any = None
    ) -> None:
        if cache:
            raise TypeError(f"cache=True: {our('vectorize')} has no cache; leave it out")
        options = dict(targetoptions or {})
        exceptions = bool(options.pop("exceptions", False))
        for option in options:
            if option != "nopython":
                raise KeyError(
                    f"Unrecognized options. {self.target} vectorize target does not support option: {option!r}"
                )
            warnings.warn(f"nopython kwarg for {self.target} target is redundant", RuntimeWarning, stacklevel=3)
        self._ufunc = HipUFunc(py_func, identity, exceptions)

    def add(self, sig: Any) -> None:
        """Compile for signature *sig*."""
        self._ufunc.add(sig)

    def disable_compile(self) -> None:
        """Does nothing: only the added types are allowed once there are any."""

    def build_ufunc(self) -> HipUFunc:
        """The ufunc."""
        return self._ufunc


def vectorize(ftylist_or_function: Any = (), *, identity: Any = None, **options: Any) -> Any:
    """Turn a function of numbers into one that runs over arrays on the device and broadcasts them against each other.

    With signatures (``["float32(float32, float32)", ...]``) it is compiled for these only, and the first one that the
    arguments of a call convert to is used; without, it is compiled for the types of each call. With ``exceptions=True``
    the host learns of exceptions on an AMD GPU when it next waits. See `HipUFunc.__call__`.
    """
    return vectorize_by(VectorizeBuilder, ftylist_or_function, identity=identity, **options)


def vectorize_by(
    make: type[VectorizeBuilder], ftylist_or_function: Any = (), *, identity: Any = None, **options: Any
) -> Any:
    """As `vectorize`, with a builder of class *make*."""
    if inspect.isfunction(ftylist_or_function):
        return make(ftylist_or_function, identity, targetoptions=options).build_ufunc()
    signatures: Iterable[Any] = ftylist_or_function
    if isinstance(ftylist_or_function, str) or is_signature(ftylist_or_function):
        signatures = [ftylist_or_function] if ftylist_or_function else []

    def decorate(py_func: Callable[..., Any]) -> HipUFunc:
        builder = make(py_func, identity, targetoptions=options)
        for signature in signatures:
            builder.add(signature)
        return builder.build_ufunc()

    return decorate
