"""Brings the output of kernels to Python's standard output: see `numba_hip.abi.print_record`."""

from __future__ import annotations

import struct
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import suppress
from contextvars import copy_context
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from hip_devicelib.codeobject import Kernel
from hip_runtime import Stream
from hip_runtime.driver import DEFAULT_STREAM, Dim3
from hip_runtime.errors import CaptureError, HipRuntimeError
from hip_runtime.launches import BlockLaunches
from hip_runtime.module import Function
from numba_hip import config
from numba_hip.abi.print_record import CAPACITY_WORDS, DROPPED, HEADER_WORDS, PARAMETER, USED, WORD_BYTES, Tag


class OutputWarning(RuntimeWarning):
    """Lines that kernels printed are missing."""


class OutputBuffer:
    """The buffer of one kernel on one device.

    It is read and cleared on a stream of its own that waits for no other: `end` may run in the callback of a stream.
    """

    def __init__(self, function: Function) -> None:
        self._memory = function.device.allocate(WORD_BYTES * (HEADER_WORDS + CAPACITY_WORDS))
        self._stream = Stream(function.device, blocking=False)
        self._driver = function.device.driver
        self._clear(HEADER_WORDS + CAPACITY_WORDS)
        self._kernel = function.kernel.name
        self._lock = threading.Lock()
        self._running = 0
        self._context = copy_context()

    @property
    def address(self) -> int:
        """Where the device sees it."""
        return self._memory.address

    def _read(self, start: int, words: int) -> np.ndarray[Any, np.dtype[np.int64]]:
        found = np.empty(words, np.int64)
        source = self._memory.address + WORD_BYTES * start
        self._driver.copy(found.ctypes.data, source, found.nbytes, self._stream.handle, found)
        self._stream.synchronize()
        return found

    def _clear(self, words: int) -> None:
        self._driver.fill(self._memory.address, 0, WORD_BYTES * words, self._stream.handle)
        self._stream.synchronize()

    def begin(self) -> None:
        """A launch that writes to the buffer is about to be given to the device.

        The settings of its caller say how numbers are written, also where another thread does that.
        """
        with self._lock:
            self._running += 1
            self._context = copy_context()

    def end(self) -> None:
        """Such a launch is done. What it printed goes to standard output once no other is running."""
        with self._lock:
            self._running -= 1
            if self._running:
                return
            header = self._read(0, HEADER_WORDS)
            used, dropped = int(header[USED]), int(header[DROPPED])
            if not used:
                return
            words = self._read(HEADER_WORDS, min(used, CAPACITY_WORDS)).tobytes()
            self._clear(HEADER_WORDS + min(used, CAPACITY_WORDS))
            text = self._context.run(lambda: "".join(f"{line}\n" for line in lines(words)))
        sys.stdout.write(text)
        sys.stdout.flush()
        if dropped:
            warnings.warn(
                f"kernel {self._kernel} printed more than {CAPACITY_WORDS * 8} bytes in one launch; "
                f"{dropped} lines are missing",
                OutputWarning,
                stacklevel=2,
            )


def lines(words: bytes) -> Iterator[str]:
    """The lines that the records in *words* stand for."""
    position = 0
    while position < len(words):
        (size,) = struct.unpack_from("<q", words, position)
        if size == 0:  # there was no room for the record
            return
        yield " ".join(_values(words[position + 8 : position + 8 * size]))
        position += 8 * size


def _values(record: bytes) -> Iterator[str]:
    position = 0
    while position < len(record):
        text, position = _value(record, position)
        yield text


def _value(record: bytes, position: int) -> tuple[str, int]:
    """The value at *position* as Python writes it, and where the next one is."""
    (head,) = struct.unpack_from("<q", record, position)
    tag, size = Tag(head & 0xFF), head >> 8
    position += 8
    if tag is Tag.TEXT:
        return record[position : position + size].decode(), position + -(-size // 8) * 8
    if tag in (Tag.TUPLE, Tag.NAMED_TUPLE):
        return _tuple(record, position, size, named=tag is Tag.NAMED_TUPLE)
    if tag is Tag.JOINED:
        parts = []
        for _ in range(size):
            part, position = _value(record, position)
            parts.append(part)
        return "".join(parts), position
    if tag is Tag.FORMATTED:
        return _formatted(record, position, percent=bool(size))
    text, words = _number(tag, record, position)
    return text, position + 8 * words


def _formatted(record: bytes, position: int, *, percent: bool) -> tuple[str, int]:
    spec, position = _value(record, position)
    (head,) = struct.unpack_from("<q", record, position)
    value, words = _read_number(Tag(head & 0xFF), record, position + 8)
    return spec % value if percent else format(value, spec), position + 8 * (words + 1)


def _tuple(record: bytes, position: int, size: int, *, named: bool) -> tuple[str, int]:
    names, members = [], []
    for _ in range(size + 1 if named else 0):
        name, position = _value(record, position)
        names.append(name)
    for _ in range(size):
        member, position = _value(record, position)
        members.append(member)
    if named:
        fields = (f"{name}={member}" for name, member in zip(names[1:], members, strict=True))
        return f"{names[0]}({', '.join(fields)})", position
    return f"({', '.join(members)}{',' if size == 1 else ''})", position


def _number(tag: Tag, record: bytes, position: int) -> tuple[str, int]:
    """A number as Python and NumPy write it, or a float as C does, and how many words it takes."""
    value, words = _read_number(tag, record, position)
    if tag in (Tag.FLOAT16, Tag.FLOAT32, Tag.FLOAT64) and config.print_six_digits():
        return f"{float(value):f}", words
    return str(value), words


def _read_number(tag: Tag, record: bytes, position: int) -> tuple[Any, int]:
    """A number of Python's or NumPy's, and how many words it takes."""
    if tag in (Tag.COMPLEX64, Tag.COMPLEX128):
        number = complex(*struct.unpack_from("<2d", record, position))
        return (np.complex64(number) if tag is Tag.COMPLEX64 else number), 2
    formats = {Tag.BOOL: "q", Tag.INT: "q", Tag.UINT: "Q"}
    (value,) = struct.unpack_from(f"<{formats.get(tag, 'd')}", record, position)
    kinds: dict[Tag, Any] = {Tag.BOOL: bool, Tag.FLOAT16: np.float16, Tag.FLOAT32: np.float32}
    return (kinds[tag](value) if tag in kinds else value), 1


_buffers: WeakKeyDictionary[Function, OutputBuffer] = WeakKeyDictionary()
_making = threading.Lock()


def is_printing(kernel: Kernel) -> bool:
    """Whether *kernel* prints: then the address of the buffer is its last parameter."""
    return bool(kernel.parameters) and kernel.parameters[-1].name == PARAMETER


def output_of(function: Function) -> OutputBuffer:
    """The buffer that the kernel *function* prints into."""
    with _making:
        buffer = _buffers.get(function)
        if buffer is None:
            buffer = _buffers[function] = OutputBuffer(function)
    return buffer


class PrintingLaunch:
    """A launch of a kernel that prints: it passes the buffer, and makes sure that its contents are printed."""

    def __init__(self, launch: BlockLaunches, buffer: OutputBuffer) -> None:
        function = launch.function
        self._launch = launch.launch
        self._buffer = buffer
        self._kernel = function.kernel.name
        self._driver = function.device.driver
        self._offset = function.kernel.parameters[-1].offset

    def launch(self, arguments: bytes, grid: Dim3, stream: int, owners: object) -> None:
        """As `hip_runtime.launches.BlockLaunches`; *arguments* without the address of the buffer."""
        if self._driver.is_capturing(stream):
            raise CaptureError(
                f"kernel {self._kernel} prints, and a graph does not tell when a launch has ended, so that its output "
                "could be shown: capture a kernel that does not print"
            )
        packed = arguments.ljust(self._offset, b"\0") + struct.pack("<Q", self._buffer.address)
        self._buffer.begin()
        try:
            self._launch(packed, grid, stream, (owners, self._buffer))
            if stream != DEFAULT_STREAM or not self._driver.query_stream(stream):
                self._driver.add_callback(stream, lambda error: self._buffer.end())
                return
        except BaseException:
            with suppress(HipRuntimeError):  # of a failed device; its error is raised below
                self._buffer.end()
            raise
        self._buffer.end()
