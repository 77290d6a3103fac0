"""`DeviceArray`: an N-dimensional array in the memory of a device."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hip_runtime import copying
from hip_runtime import layout as layouts
from hip_runtime.array_methods import ArrayMethods
from hip_runtime.config import transpose_copies
from hip_runtime.cuda_array_names import ArrayNames
from hip_runtime.device import Device
from hip_runtime.driver import DEFAULT_STREAM
from hip_runtime.element_values import fill_record, host_value
from hip_runtime.errors import ArrayError, CopyError, CopyTypeError
from hip_runtime.layout import Layout, Shape
from hip_runtime.memory import Buffer
from hip_runtime.protocols import ArrayProtocols
from hip_runtime.stream import Stream
from hip_runtime.stream_handle import stream_handle

if TYPE_CHECKING:
    from hip_runtime.ipc import IpcArrayHandle

StreamLike = Stream | int | None


class DeviceArray(ArrayNames, ArrayProtocols, ArrayMethods):
    """An array whose elements are on *device*, from *address* on, inside *buffer*.

    Shape, strides, element type and address never change. Slices, transposes and reshapes are views: they share the
    memory and keep it alive. ``stream`` is used by copies that are given no stream. ``upper`` belongs to the layer
    above, which stores there what it derives from the array.
    """

    __slots__ = (
        "__weakref__",
        "address",
        "buffer",
        "device",
        "dtype",
        "layout",
        "readonly",
        "shape",
        "stream",
        "strides",
        "upper",
    )

    address: int
    """Address of element (0, ..., 0)."""
    buffer: Buffer
    device: Device
    dtype: np.dtype[Any]
    layout: Layout
    readonly: bool
    shape: Shape
    strides: Shape
    """Bytes from one element to the next along each axis; they may be negative."""
    stream: StreamLike
    upper: object | None

    def __init__(
        self,
        layout: Layout,
        dtype: np.dtype[Any],
        buffer: Buffer,
        *,
        device: Device,
        address: int | None = None,
        stream: StreamLike = None,
        readonly: bool = False,
    ) -> None:
        place = buffer.address if address is None else address
        first, end = layout.extent
        if layout.itemsize != dtype.itemsize:
            raise ArrayError(f"layout has elements of {layout.itemsize} bytes; {dtype} has {dtype.itemsize}")
        if place + first < buffer.address or place + end > buffer.address + buffer.nbytes:
            raise ArrayError(
                f"an array of shape {layout.shape} and strides {layout.strides} at {place:#x} reaches outside of "
                f"{buffer!r}"
            )
        keep = object.__setattr__
        keep(self, "layout", layout)
        keep(self, "shape", layout.shape)
        keep(self, "strides", layout.strides)
        keep(self, "dtype", dtype)
        keep(self, "buffer", buffer)
        keep(self, "device", device)
        keep(self, "address", place)
        keep(self, "stream", DEFAULT_STREAM if stream is None else stream)
        keep(self, "readonly", readonly)
        keep(self, "upper", None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in ("stream", "upper"):
            raise AttributeError(f"{name!r} of a device array cannot be changed; make a view instead")
        object.__setattr__(self, name, value)

    # what it is

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.layout.size

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.layout.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.layout.nbytes

    def is_c_contiguous(self) -> bool:
        """Whether elements are contiguous, the last axis fastest."""
        return self.layout.is_c_contiguous

    def is_f_contiguous(self) -> bool:
        """Whether elements are contiguous, the first axis fastest."""
        return self.layout.is_f_contiguous

    @property
    def flags(self) -> dict[str, bool]:
        """``C_CONTIGUOUS`` and ``F_CONTIGUOUS``: whether the elements are contiguous in that order."""
        return {"C_CONTIGUOUS": self.is_c_contiguous(), "F_CONTIGUOUS": self.is_f_contiguous()}

    def read_only(self) -> DeviceArray:
        """The same array, but read-only: neither copies nor kernels write to the result."""
        return DeviceArray(
            self.layout, self.dtype, self.buffer, device=self.device, address=self.address, stream=self.stream,
            readonly=True,
        )  # fmt: skip

    def bind(self, stream: StreamLike = None) -> DeviceArray:
        """The same array with another default `stream` for its copies."""
        bound = self._view(self.layout)
        bound.stream = stream
        return bound

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a device array without dimensions")
        return self.shape[0]

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArrayError(f"the truth of a device array of shape {self.shape} is ambiguous; copy it to the host")
        return bool(self.copy_to_host().reshape(()))

    def __repr__(self) -> str:
        from hip_runtime.array_text import represent

        return represent(self)

    def __str__(self) -> str:
        from hip_runtime.array_text import write

        return write(self)

    def get_ipc_handle(self) -> IpcArrayHandle:
        """The handle with which another process opens this array. Raises `UnsupportedError` on a device that cannot
        share it."""
        from hip_runtime.ipc import IpcArrayHandle

        return IpcArrayHandle.of(self)

    # copies

    def copy_to_host(self, ary: Any = None, stream: StreamLike = None) -> Any:
        """Copy to *ary*, which must have the same shape and element type, or to a new array; returns it.

        A record is copied to a record, without asynchrony, or to an array without axes.

        The copy is made in the order of *stream*, by default the array's own, and is done when the call returns. Into
        pinned, mapped or managed memory, on a *stream* that is given, it may be done later: synchronize that stream
        before reading. `CopyError` changes nothing; a kernel on the stream that faulted is reported here.
        """
        if ary is None:
            order = "F" if self.is_f_contiguous() and not self.is_c_contiguous() else "C"
            ary = np.empty(self.shape, self.dtype, order=order)  # type: ignore[call-overload]
        elif isinstance(ary, np.void):
            host = self.copy_to_host(stream=stream)
            self._wait(stream)
            return fill_record(ary, host)
        elif not isinstance(ary, np.ndarray):
            raise CopyTypeError(f"ary must be a NumPy array, not {type(ary).__name__}")
        copying.to_host(ary, self, self._handle(stream))
        if stream is None:
            self._wait(None)
        return ary

    def copy_to_device(self, ary: Any, stream: StreamLike = None) -> None:
        """Copy from *ary*, a host or device array of the same shape and element type, into this array.

        The copy is made in the order of *stream*, by default the array's own. A host array may be changed as soon as
        the call returns, unless it is pinned, mapped or managed memory and a *stream* is given: then the copy may be
        done later. `CopyError` changes nothing.
        """
        self._check_writable()
        if isinstance(ary, DeviceArray):
            copying.on_device(self, ary, self._handle(stream))
            return
        source = ary
        if type(ary) is not np.ndarray:  # which most are
            from hip_runtime.interop import as_device_array, host_source, is_device_array

            if is_device_array(ary):
                copying.on_device(self, as_device_array(ary), self._handle(stream))
                return
            source = host_source(ary)
        if source.dtype.hasobject:
            raise CopyError(f"ary of type {type(ary).__name__} holds Python objects; convert it to {self.dtype}")
        copying.to_device(self, source, self._handle(stream))
        if stream is None:
            self._wait(None)

    def copy(self, order: str = "C", stream: StreamLike = None) -> DeviceArray:
        """A contiguous copy on the device."""
        target = self.empty_like(order)
        copying.on_device(target, self, self._handle(stream))
        return target

    def empty_like(self, order: str = "C") -> DeviceArray:
        """A new contiguous array of the same shape and element type, with undefined contents."""
        layout = layouts.dense(self.shape, self.itemsize, order)
        return DeviceArray(
            layout, self.dtype, self.device.allocate(layout.nbytes), device=self.device, stream=self.stream
        )

    # views

    def reshape(self, *shape: Any, order: str = "C") -> DeviceArray:
        """A view in another shape; the array must be contiguous in *order*. One extent may be -1."""
        extents = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return self._view(layouts.reshape(self.layout, extents, order))

    def ravel(self, order: str = "C", stream: StreamLike = None) -> DeviceArray:
        """All elements along one axis: a view if they are contiguous in *order*, otherwise a copy.

        *order* ``"A"`` is Fortran order for an array that is only contiguous in that order, otherwise C order.
        """
        if order == "A":
            order = "F" if self.is_f_contiguous() and not self.is_c_contiguous() else "C"
        contiguous = self.is_f_contiguous() if order == "F" else self.is_c_contiguous()
        source = self if contiguous else self.copy(order, stream)
        return source.reshape(self.size, order=order)

    def squeeze(self, axis: int | Sequence[int] | None = None) -> DeviceArray:
        """A view without the axes of extent 1, or without those named."""
        return self._view(layouts.squeeze(self.layout, axis))

    def transpose(self, *axes: Any) -> DeviceArray:
        """A view with the axes in another order; reversed by default.

        Swapping two axes makes a new array in C order if `hip_runtime.config.transpose_copies` is set.
        """
        order: Any = axes
        if len(axes) == 1 and (axes[0] is None or isinstance(axes[0], Sequence)):
            order = axes[0]
        layout = layouts.transpose(self.layout, order or None)
        turned = self._view(layout)
        return turned.copy() if self.ndim == 2 and layout != self.layout and transpose_copies() else turned

    @property
    def T(self) -> DeviceArray:
        """The transpose, as `transpose` gives it."""
        return self.transpose()

    def broadcast_to(self, shape: Any) -> DeviceArray:
        """A view of *shape* that repeats the array, by strides of 0, as `numpy.broadcast_to` does."""
        return self._view(layouts.broadcast(self.layout, layouts.normalise_shape(shape)))

    def view(self, dtype: Any) -> DeviceArray:
        """The same bytes as elements of another type; where the size differs, the last axis must be contiguous."""
        kind = copying.check_dtype(dtype)
        return self._view(layouts.reinterpret(self.layout, kind.itemsize), dtype=kind)

    def field(self, name: str) -> DeviceArray:
        """A view of field *name* of structured elements; a field that is an array adds its axes behind the others."""
        if self.dtype.fields is None or name not in self.dtype.fields:
            known = ", ".join(self.dtype.names or ()) or "none"
            raise ArrayError(f"there is no field {name!r} in elements of type {self.dtype}; fields: {known}")
        kind, offset = self.dtype.fields[name][:2]
        element: np.dtype[Any] = kind
        inner: tuple[int, ...] = ()
        while element.subdtype is not None:  # NumPy keeps arrays in arrays apart
            element, more = element.subdtype
            inner += more
        layout = layouts.append(self.layout, inner, element.itemsize)
        return self._view(layout, offset, element)

    def split(self, section: int, stream: StreamLike = None) -> Iterator[DeviceArray]:
        """Views of *section* elements each of an array of one axis; the last may be shorter."""
        if self.ndim != 1 or section < 1:
            raise ArrayError(
                f"split needs an array of one axis, not {self.ndim}, and a section of 1 or more, not {section}"
            )
        for start in range(0, self.size, section):
            part = self[start : start + section]
            if stream is not None:
                part.stream = stream
            yield part

    # elements

    def __getitem__(self, key: Any) -> Any:
        return self.getitem(key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.setitem(key, value)

    def getitem(self, index: Any, stream: StreamLike = None) -> Any:
        """A view for slices, names of fields and records; for an integer on each axis the element, copied to the host.

        A record is an array without axes; its fields that are numbers are copied to the host, too.
        """
        if isinstance(index, str):
            found = self.field(index)
            single = True
        else:
            layout, offset = layouts.index(self.layout, index)
            found = self._view(layout, offset)
            single = _all_integers(index)
        if found.ndim or not single or found.dtype.names is not None:
            return found
        host = found.copy_to_host(stream=stream)
        self._wait(stream)
        return host[()]

    def setitem(self, index: Any, value: Any, stream: StreamLike = None) -> None:
        """Copy *value* to the indexed elements: a number, host array or device array that can be broadcast to their
        shape."""
        self._check_writable()
        target = self.field(index) if isinstance(index, str) else self._view(*layouts.index(self.layout, index))
        from hip_runtime.interop import as_device_array, is_device_array

        if is_device_array(value):
            source = as_device_array(value)
            source = source.broadcast_to(target.shape)
            copying.on_device(target, source, self._handle(stream))
            return
        copying.to_device(target, host_value(value, target), self._handle(stream))

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise TypeError("iteration over a device array without dimensions")
        return (self[number] for number in range(self.shape[0]))

    def __contains__(self, value: Any) -> bool:
        """Whether an element is *value*, in a copy. By iteration rows would be compared, which equal nothing."""
        return value in self.copy_to_host()

    def _view(self, layout: Layout, offset: int = 0, dtype: np.dtype[Any] | None = None) -> DeviceArray:
        return DeviceArray(
            layout,
            self.dtype if dtype is None else dtype,
            self.buffer,
            device=self.device,
            address=self.address + (offset if layout.size else 0),  # nothing is anywhere
            stream=self.stream,
            readonly=self.readonly,
        )

    def _handle(self, stream: StreamLike) -> int:
        return stream_handle(self.stream if stream is None else stream)

    def _wait(self, stream: StreamLike) -> None:
        handle = self._handle(stream)
        if handle:
            self.device.driver.synchronize_stream(handle)

    def _check_writable(self) -> None:
        if self.readonly:
            from hip_runtime.array_text import describe

            raise CopyError(f"{describe(self)} is read-only")


def _all_integers(index: Any) -> bool:
    parts = index if isinstance(index, tuple) else (index,)
    return all(hasattr(part, "__index__") for part in parts)
