"""``hip.guvectorize`` and ``numba.guvectorize(..., target="hip")``: functions of subarrays, over whole arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numba.core import types

from hip_runtime import DeviceArray, Stream, current_device, is_device_array
from hip_runtime.said_names import our
from numba_hip import config
from numba_hip._numba.typing import is_signature, normalize_signature
from numba_hip._numba.ufuncs import parse_gufunc_signature, register_vectorizers
from numba_hip.advisory_warnings import advise_on_conversion
from numba_hip.array_functions.elementwise import (
    Operand,
    broadcast,
    check_conversion,
    dtype_of,
    elementwise_kernel,
    find_repeated,
    fits,
    keeps_value,
    narrows,
    new_result,
    onto_device,
    take_operands,
)
from numba_hip.array_functions.vectorize import VectorizeBuilder
from numba_hip.compilation.compiler import explained
from numba_hip.compilation.target_registry import compile_target
from numba_hip.decorators import jit
from numba_hip.dispatch import pickling

Shape = tuple[int, ...]


def _as_kind(value: Any, kind: types.Type, dims: Sequence[str]) -> Any:
    """A number as an array of one element, for functions that take a single element of the inputs as an array."""
    if isinstance(value, DeviceArray) or dims or not isinstance(kind, types.Array) or np.ndim(value):
        return value
    return np.atleast_1d(value)


class HipGUFunc:
    """A function that fills arrays from arrays, run over all further dimensions. Created by `guvectorize`.

    ``signature`` says which dimensions belong to the function, as in ``"(m,n),(n,p)->(m,p)"``.
    """

    def __init__(
        self, py_func: Callable[..., Any], signature: str, identity: Any = None, exceptions: bool = False
    ) -> None:
        self.py_func = py_func
        self.signature = signature
        self.identity = identity
        self.exceptions = exceptions
        self.core = jit(device=True)(py_func)
        self.inputs, self.outputs = parse_gufunc_signature(signature)
        self.nin, self.nout = len(self.inputs), len(self.outputs)
        self.signatures: list[tuple[types.Type, ...]] = []
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__

    def __repr__(self) -> str:
        return f"<hip gufunc {self.__name__!r} {self.signature}>"

    def __reduce__(self) -> tuple[Any, ...]:
        state = {"py_func": self.py_func, "signature": self.signature, "identity": self.identity}
        return pickling.reduce_ufunc(self, {**state, "exceptions": self.exceptions, "signatures": self.signatures})

    @classmethod
    def restore(
        cls, py_func: Callable[..., Any], signature: str, identity: Any, exceptions: bool, signatures: list[Any]
    ) -> HipGUFunc:
        """The unpickled function; it is compiled when it is called."""
        made = cls(py_func, signature, identity, exceptions)
        made.signatures = signatures
        return made

    def add(self, signature: Any) -> None:
        """Compile for *signature*: the types of inputs and outputs, arrays or numbers."""
        args, result = normalize_signature(signature)
        if result not in (None, types.none, types.void):
            raise TypeError(
                f"guvectorized functions cannot return values: signature {signature} specifies {result} return type"
            )
        if len(args) != self.nin + self.nout:
            raise TypeError(
                f"{self.__name__} {self.signature} has {self.nin} inputs and {self.nout} outputs; "
                f"signature {signature} has {len(args)} types"
            )
        for kind, dims in zip(args, (*self.inputs, *self.outputs), strict=True):
            ndim = kind.ndim if isinstance(kind, types.Array) else 0
            if ndim != len(dims) and not (ndim == 1 and not dims):
                raise TypeError(f"{self.__name__}: type {kind} does not fit dimensions ({','.join(dims)})")
        for kind in args[self.nin :]:
            if not isinstance(kind, types.Array):
                raise TypeError(f"{self.__name__}: output type {kind} must be an array, which the function fills")
        arrays = tuple(kind.copy(layout="A") if isinstance(kind, types.Array) else kind for kind in args)
        target = compile_target(current_device().target)
        with explained(self.py_func, arrays, target.name):
            target.typing_context.device_function(self.core).compile(arrays)
        self.signatures.append(tuple(args))

    def __call__(self, *args: Any, out: Any = None, stream: Stream | int | None = None) -> Any:
        """Run the function over *args*: the inputs, then optionally the outputs, which can be given as *out*, too.

        The dimensions before those of the signature are broadcast. The result is the output, or a tuple of outputs: the
        given arrays, or new ones, on the device if any input is there, otherwise on the host.
        """
        inputs, given = self._split(args, out)
        on = stream if isinstance(stream, Stream) else None
        kinds = self._choose(inputs)
        extents, loop = self._extents(inputs)
        shapes = [self._shape_of_output(n, loop, extents, given[n]) for n in range(self.nout)]
        dtypes = [dtype_of(kind) for kind in kinds]
        for value, dtype in zip(given, dtypes[self.nin :], strict=True):
            if value is not None:
                check_conversion(self.__name__, dtype, value.dtype)
        inputs = [_as_kind(value, kind, dims) for value, kind, dims in zip(inputs, kinds, self.inputs, strict=False)]
        passed = [onto_device(value, dtype, on) for value, dtype in zip(inputs, dtypes, strict=False)]
        targets = [
            value if isinstance(value, DeviceArray) else new_result(shape, dtype)
            for value, shape, dtype in zip(given, shapes, dtypes[self.nin :], strict=True)
        ]
        for value, target in zip(given, targets, strict=True):
            if isinstance(value, np.ndarray):
                real = value.real if target.dtype.kind != "c" else value
                target.copy_to_device(real.astype(target.dtype, copy=False), stream=on)
        self._launch(loop, passed, targets, kinds, on)
        on_device = any(is_device_array(value) for value in inputs)
        results = [self._result(value, target, on_device, on) for value, target in zip(given, targets, strict=True)]
        if on is not None and not (on_device or all(isinstance(value, DeviceArray) for value in given)):
            on.synchronize()
        return results[0] if self.nout == 1 else tuple(results)

    def _split(self, args: Sequence[Any], out: Any) -> tuple[list[Any], list[Any]]:
        if len(args) not in (self.nin, self.nin + self.nout):
            raise TypeError(
                f"{self.__name__}: gufunc accepts {self.nin} positional arguments (the inputs) or "
                f"{self.nin + self.nout} positional arguments (with the outputs). Got {len(args)} positional "
                f"argument{'' if len(args) == 1 else 's'}."
            )
        positional = list(args[self.nin :])
        if positional and out is not None:
            raise ValueError("cannot specify argument 'out' as both positional and keyword")
        given = positional or (
            list(out) if isinstance(out, tuple) else [out] if out is not None else [None] * self.nout
        )
        if len(given) != self.nout:
            raise TypeError(f"{self.__name__} has {self.nout} outputs; out gives {len(given)}")
        given = take_operands(self.__name__, given, "out")
        for value in given:
            if value is not None and not isinstance(value, (np.ndarray, DeviceArray)):
                raise TypeError(f"{self.__name__}: out is a {type(value).__name__}; it has to be an array")
        return take_operands(self.__name__, args[: self.nin]), given

    def _choose(self, inputs: Sequence[Any]) -> tuple[types.Type, ...]:
        """The first signature that has the types of the *inputs*; otherwise the first that they convert to without
        loss; or, where arguments are truncated, with one."""
        dtypes = [np.dtype(value.dtype) if hasattr(value, "dtype") else np.asarray(value).dtype for value in inputs]
        wanted = [[dtype_of(kind) for kind in kinds[: self.nin]] for kinds in self.signatures]
        if dtypes in wanted:
            return self.signatures[wanted.index(dtypes)]
        ways = (fits, keeps_value, narrows) if config.truncate_arguments() else (fits, keeps_value)
        for can_become in ways:
            for kinds, to in zip(self.signatures, wanted, strict=True):
                if self._convertible(inputs, dtypes, to, can_become):
                    if can_become is narrows:
                        advise_on_conversion(self.__name__, dtypes, to)
                    return kinds
        shown = "; ".join(", ".join(map(str, kinds)) for kinds in self.signatures)
        raise TypeError(
            f"{self.__name__} was compiled for ({shown}); inputs of {', '.join(map(str, dtypes))} do not fit. A device "
            "array does not support .astype(): convert it in a kernel, or on the host"
        )

    @staticmethod
    def _convertible(
        inputs: Sequence[Any],
        dtypes: Sequence[Any],
        wanted: Sequence[Any],
        can_become: Callable[[Any, np.dtype[Any]], bool],
    ) -> bool:
        return all(
            dtype == to or (can_become(value, to) and not is_device_array(value))
            for value, dtype, to in zip(inputs, dtypes, wanted, strict=True)
        )

    def _extents(self, inputs: Sequence[Any]) -> tuple[dict[str, int], Shape]:
        """The extent of each name in the signature, and the shape of the space to run over."""
        extents: dict[str, int] = {}
        loops = []
        for number, (value, dims) in enumerate(zip(inputs, self.inputs, strict=True)):
            shape = np.shape(value)
            if len(shape) < len(dims):
                raise ValueError(
                    f"{self.__name__}: input {number} has {len(shape)} dimensions; ({','.join(dims)}) asks for "
                    f"{len(dims)} at least"
                )
            split = len(shape) - len(dims)
            loops.append(shape[:split])
            for name, extent in zip(dims, shape[split:], strict=True):
                if extents.setdefault(name, extent) != extent:
                    raise ValueError(
                        f"{self.__name__}: dimension {name} of {self.signature} has extent {extents[name]}, but input "
                        f"{number} has {extent}"
                    )
        return extents, broadcast(self.__name__, loops)

    def _shape_of_output(self, number: int, loop: Shape, extents: dict[str, int], given: Any) -> Shape:
        dims = self.outputs[number]
        if given is not None:
            shape = tuple(given.shape)
            own = shape[len(shape) - len(dims) :] if dims else ()
            fits = len(own) == len(dims) and all(
                extents.setdefault(name, extent) == extent for name, extent in zip(dims, own, strict=True)
            )
            own_loop = shape[: len(shape) - len(dims)]
            missing = max(len(loop) - len(own_loop), 0)
            if not fits or own_loop != loop[missing:] or any(extent != 1 for extent in loop[:missing]):
                raise ValueError(f"{self.__name__}: output {number} has shape {shape}, which does not fit the inputs")
            return shape
        return (*loop, *(extents[name] for name in dims))

    def _launch(
        self, loop: Shape, passed: list[Any], targets: list[DeviceArray], kinds: tuple[types.Type, ...], on: Any
    ) -> None:
        operands = [
            Operand(
                find_repeated(value.shape[: value.ndim - len(dims)], loop) if isinstance(value, DeviceArray) else None,
                len(dims),
                as_array=isinstance(kind, types.Array),
            )
            for value, dims, kind in zip((*passed, *targets), (*self.inputs, *self.outputs), kinds, strict=True)
        ]
        inputs, outputs = tuple(operands[: self.nin]), tuple(operands[self.nin :])
        kernel = elementwise_kernel(self.core, inputs, outputs, self.exceptions)
        count = int(np.prod(loop, dtype=np.int64))
        kernel.forall(count, stream=on)(loop, *passed, *targets)

    @staticmethod
    def _result(given: Any, target: DeviceArray, on_device: bool, on: Stream | None) -> Any:
        if isinstance(given, DeviceArray) or (given is None and on_device):
            return target
        if given is None:
            return target.copy_to_host(stream=on)
        if given.dtype == target.dtype:
            return target.copy_to_host(given, stream=on)
        host = target.copy_to_host(stream=on)
        if on is not None:
            on.synchronize()
        given[...] = host
        return given


class GUVectorizeBuilder:
    """The builder behind ``numba.guvectorize(..., target="hip")``: signatures are added, then the gufunc is
    requested."""

    def __init__(
        self,
        py_func: Callable[..., Any],
        signature: str,
        identity: Any = None,
        cache: bool = False,
        targetoptions: Any = None,
        writable_args: Any = (),
    ) -> None:
        options = dict(targetoptions or {})
        if cache:
            raise TypeError(f"cache=True: {our('guvectorize')} has no cache; leave it out")
        if writable_args:
            raise TypeError(
                f"writable_args={writable_args!r}: {our('guvectorize')} has no writable inputs; make them outputs"
            )
        if not options.pop("nopython", True):
            raise TypeError("nopython flag must be True")
        exceptions = bool(options.pop("exceptions", False))
        if options:
            raise TypeError(f"The following target options are not supported: {', '.join(map(repr, options))}")
        self._gufunc = HipGUFunc(py_func, signature, identity, exceptions)

    def add(self, sig: Any) -> None:
        """Compile for signature *sig*."""
        self._gufunc.add(sig)

    def disable_compile(self) -> None:
        """Does nothing: only the added types are allowed from the start."""

    def build_ufunc(self) -> HipGUFunc:
        """The gufunc."""
        return self._gufunc


def guvectorize(ftylist: Any, signature: str, *, identity: Any = None, **options: Any) -> Any:
    """Turn a function that fills arrays from arrays into one that runs over all further dimensions, on the device.

    *ftylist* has the types of inputs and outputs (``["void(float32[:], float32[:])"]``); *signature* says which
    dimensions the function sees (``"(n)->(n)"``). With ``exceptions=True`` the host learns of exceptions on an AMD GPU
    when it next waits. See `HipGUFunc.__call__`.
    """
    single = isinstance(ftylist, str) or is_signature(ftylist)
    signatures: Iterable[Any] = [ftylist] if single else ftylist

    def decorate(py_func: Callable[..., Any]) -> HipGUFunc:
        builder = GUVectorizeBuilder(py_func, signature, identity, targetoptions=options)
        for each in signatures:
            builder.add(each)
        return builder.build_ufunc()

    return decorate


register_vectorizers("hip", lambda: (VectorizeBuilder, GUVectorizeBuilder))
