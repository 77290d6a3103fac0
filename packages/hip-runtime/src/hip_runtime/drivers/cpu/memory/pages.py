"""Memory of the CPU device in whole pages, which can be shared with other processes.

Pages belong to this process alone until a handle is asked for. Then their contents move into a file that exists in
memory only (``memfd_create``, Linux), and that file is mapped to where the pages were: addresses stay, and another
process finds the file through ``/proc``. The file goes with the last process that has it mapped; nothing has a name
that could be left behind.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import struct
import weakref
from functools import cache
from typing import Any

from hip_runtime.errors import InvalidHandleError, UnsupportedError

PAGE = mmap.PAGESIZE

HANDLE_BYTES = 64
"""As long as ``hipIpcMemHandle_t`` is."""

_HANDLE = struct.Struct("<8sqqQQ")
_MAGIC = b"hip-cpu\2"
_NAME = "hip-runtime"

HUGE_BYTES = 4 << 20
"""Blocks from this size on ask the system for large pages, as arrays of NumPy's do."""

MARGIN = 1024
"""Bytes behind an allocation that instructions under masks reach over, as for 64 lanes of which one is active. That
none of the others accesses memory takes a processor hundreds of cycles to find out if their page is not in place: a
product with 100 numbers in a page that ended behind them took 30 times as long."""

_MAP_FIXED = 0x10  # <bits/mman-map-flags-generic.h>; the module mmap does not have it
_CHUNK = 1 << 30  # the most bytes of one write, below the limit of Linux


class MemoryBlock:
    """*nbytes* bytes from ``address`` on, *start* bytes behind the beginning of a page, which live as long as this
    object."""

    __slots__ = ("__weakref__", "_mapping", "_place", "address", "descriptor", "nbytes", "start")

    def __init__(self, nbytes: int, start: int = 0, descriptor: int | None = None) -> None:
        """New pages, or with *descriptor* those of a file, which is closed by the caller. Raises `OSError`."""
        if descriptor is None:
            margin = MARGIN if nbytes < HUGE_BYTES else 0
            size = -(-(start + nbytes + margin) // PAGE) * PAGE
            self._mapping = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            if nbytes >= HUGE_BYTES and hasattr(mmap, "MADV_HUGEPAGE"):
                self._mapping.madvise(mmap.MADV_HUGEPAGE)
        else:
            self._mapping = mmap.mmap(descriptor, 0)
        self._place = ctypes.c_char.from_buffer(self._mapping, start)
        self.address = ctypes.addressof(self._place)
        self.start = start
        self.nbytes = nbytes
        self.descriptor = -1
        """The file that `share` made, or -1."""

    def place_margin(self, nbytes: int) -> None:
        """Have the page in place that begins less than `MARGIN` behind the first *nbytes*, if one does. Nothing may be
        in use behind these."""
        end = self.start + nbytes
        last = end + MARGIN - 1
        if (end - 1) // PAGE < last // PAGE and last < len(self._mapping):
            self._mapping[last] = 0

    def share(self) -> None:
        """Let other processes open these pages. Nothing may write to them meanwhile; `UnsupportedError`, `OSError`."""
        if self.descriptor >= 0:
            return
        if not hasattr(os, "memfd_create"):
            raise UnsupportedError("memory of the CPU device can be shared with other processes on Linux only")
        descriptor = os.memfd_create(_NAME)
        try:
            contents = memoryview(self._mapping)
            for begin in range(0, len(contents), _CHUNK):
                _write(descriptor, contents[begin : begin + _CHUNK])
            _map_over(self.address - self.start, len(contents), descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        weakref.finalize(self, os.close, descriptor).atexit = False
        self.descriptor = descriptor

    def handle(self) -> bytes:
        """What another process opens these pages with, which `share` then has moved; raises what that does."""
        self.share()
        fields = _HANDLE.pack(_MAGIC, os.getpid(), self.descriptor, os.fstat(self.descriptor).st_ino, self.start)
        return fields.ljust(HANDLE_BYTES, b"\0")


def open_handle(handle: bytes) -> MemoryBlock:
    """The pages of another process that *handle* names, mapped here.

    `InvalidHandleError` where it is no handle of the CPU device, or where the memory is gone, and `UnsupportedError`
    where this process may not open it.
    """
    if len(handle) != HANDLE_BYTES or not handle.startswith(_MAGIC):
        raise InvalidHandleError(f"these {len(handle)} bytes are not an IPC handle of the CPU device")
    _, process, number, inode, start = _HANDLE.unpack_from(handle)
    gone = InvalidHandleError(
        f"the memory behind this IPC handle is gone: process {process}, which it is from, has ended, has given the "
        "memory back, or cannot be seen from here"
    )
    path = f"/proc/{process}/fd/{number}"
    try:
        if not os.readlink(path).startswith(f"/memfd:{_NAME}"):  # opening anything else could block forever
            raise gone
        descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        raise gone from None
    except PermissionError:
        raise UnsupportedError(
            f"this process may not open memory of process {process}: that is another user's"
        ) from None
    try:
        status = os.fstat(descriptor)
        if status.st_ino != inode or start >= PAGE:
            raise gone
        return MemoryBlock(status.st_size - start, start, descriptor)
    finally:
        os.close(descriptor)


def _write(descriptor: int, contents: memoryview) -> None:
    while contents:
        contents = contents[os.write(descriptor, contents) :]


@cache
def _mmap() -> Any:
    """The C function: Python's cannot be told where."""
    function = ctypes.CDLL(None, use_errno=True).mmap
    function.restype = ctypes.c_void_p
    function.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long
    )  # fmt: skip
    return function


def _map_over(address: int, nbytes: int, descriptor: int) -> None:
    """Map the file to the addresses of the pages."""
    access = mmap.PROT_READ | mmap.PROT_WRITE
    place = _mmap()(address, nbytes, access, mmap.MAP_SHARED | _MAP_FIXED, descriptor, 0)
    if place != address:
        code = ctypes.get_errno()
        raise OSError(code, f"cannot share {nbytes} bytes with other processes: {errno.errorcode.get(code, code)}")
