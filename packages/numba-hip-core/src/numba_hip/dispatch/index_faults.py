"""Which index was out of range: the record that kernels with bounds checks write in host memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from hip_devicelib.codeobject import Parameter
from hip_runtime.driver import Dim3
from hip_runtime.errors import KernelFault
from numba_hip.abi.index_record import RECORD, SLOT, SLOTS


class IndexRecord:
    """The indices that threads of one kernel found out of range, the first `SLOTS` of them since `find` last found one.

    In memory: a slot of which the first 8 bytes count, then the slots that were filled.
    """

    def __init__(self) -> None:
        self._slots = np.zeros(1 + SLOTS, SLOT)
        self.address = int(self._slots.ctypes.data)

    def find(self, fault: KernelFault) -> str | None:
        """What the thread that *fault* names found: the dimension, the index and the extent, in words."""
        noted = self._slots[1 : 1 + min(int(self._slots[:1].view(np.int64)[0]), SLOTS)]
        same = noted["code"] == fault.code
        for name in ("block", "thread"):
            same &= (noted[name] == getattr(fault, name)).all(axis=1)
        if not same.any():
            return None
        slot = noted[same][0]
        self._slots[:1] = 0
        return describe_index(*(int(slot[name]) for name in ("dimension", "index", "extent")))


def describe_index(dimension: int, index: int, extent: int) -> str:
    """What was out of range, in words; *dimension* is -1 if it is not known."""
    shown = index - extent if index < 0 else index  # a negative index had the extent added before it was checked
    where = f" of dimension {dimension}" if dimension >= 0 else ""
    return f"index {shown} is out of range{where} with extent {extent}"


class RecordedLaunch:
    """A launch of a kernel that has, behind its arguments, the address of *record* as a parameter."""

    __slots__ = ("_address", "_launch", "_offset", "_record")

    def __init__(
        self, launch: Callable[[bytes, Dim3, int, object], None], record: IndexRecord, parameters: Sequence[Parameter]
    ) -> None:
        self._launch = launch
        self._record = record
        self._offset = next(parameter.offset for parameter in parameters if parameter.name == RECORD)
        self._address = record.address.to_bytes(8, "little")

    def launch(self, arguments: bytes, grid: Dim3, stream: int, owners: object) -> None:
        """Launch over *grid* on *stream*, with *arguments*, packed without the address."""
        self._launch(arguments.ljust(self._offset, b"\0") + self._address, grid, stream, (owners, self._record))
