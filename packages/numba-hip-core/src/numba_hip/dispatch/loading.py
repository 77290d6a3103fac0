"""Loads compiled kernels onto a device, with the functions that pack their arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from numba.core import types

from hip_devicelib.codeobject import CodeObject
from hip_runtime import Device, Function
from hip_runtime.driver import Dim3
from hip_runtime.launches import BlockLaunches
from numba_hip import config
from numba_hip.arguments.packing import NOT_PACKED, Packer, leaf_count, packers
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.dispatch.argument_extensions import StandIn
from numba_hip.dispatch.faults import exception_describer
from numba_hip.dispatch.index_faults import IndexRecord, RecordedLaunch
from numba_hip.dispatch.print_output import PrintingLaunch, is_printing, output_of
from numba_hip.errors import KernelArgumentError
from numba_hip.language.captured_arrays import check_captured
from numba_hip.linked_code import set_up

Types = tuple[types.Type, ...]

LaunchFunction = Callable[[bytes, Dim3, int, object], None]
"""What launches, given packed arguments, the grid, the handle of a stream, and what has to live as long:
`hip_runtime.launches.BlockLaunches.launch`, or what is around it."""


class LoadedKernel(NamedTuple):
    """A kernel on a device, and the function that packs its arguments."""

    function: Function
    packing: Sequence[Packer]
    code: KernelCode
    record: IndexRecord | None
    """Where a kernel with bounds checks notes indices on the CPU device."""
    kinds: Types
    """The types that its arguments are packed as."""
    names: Sequence[str]
    cooperative: bool
    """Whether all blocks have to run at the same time."""
    prints: bool
    observed: bool

    def configure(self, block: Dim3, dynamic_shared: int) -> LaunchFunction:
        """What launches it in blocks of the shape *block*; `LaunchError` where the device does not allow that."""
        launch = BlockLaunches(self.function, block, dynamic_shared, self.cooperative)
        started: LaunchFunction = launch.launch
        if self.prints:
            started = PrintingLaunch(launch, output_of(self.function)).launch
        if self.record is not None:
            started = RecordedLaunch(started, self.record, self.code.parameters).launch
        if self.observed:
            from numba_hip.races.launch import ObservedLaunch

            started = ObservedLaunch(started, launch, self.code, self.names).launch
        return started

    def pack(self, args: Sequence[Any]) -> bytes:
        """The packed arguments, as `pack_exactly` has them."""
        try:
            return b"".join([pack(value) for pack, value in zip(self.packing, args, strict=True)])
        except NOT_PACKED:
            return self.pack_exactly(args)

    def pack_exactly(self, args: Sequence[Any]) -> bytes:
        """The packed arguments; `KernelArgumentError` where one is a number that its type does not have."""
        packing = packers(self.kinds, self.code.parameters, self.names, exact=True)
        return b"".join([pack(value) for pack, value in zip(packing, args, strict=True)])


def load_kernel(
    code: KernelCode,
    device: Device,
    kernel: Callable[..., Any],
    names: Sequence[str],
    stand_ins: Mapping[int, StandIn],
    compile_with_lines: Callable[[], CodeObject],
) -> LoadedKernel:
    """Load *code* of *kernel* onto *device*. Its arguments are called *names*; where there are *stand_ins*, by place,
    those are packed as they say.

    *compile_with_lines* is asked, after a fault, for the code with the lines that it comes from. Raises
    `KernelArgumentError` for stand-ins that make another number of values than the kernel takes, and what loading does.
    """
    if code.granule:
        device.driver.watch_writes()  # type: ignore[attr-defined]
    check_captured(kernel.__name__, code.captured, device)
    module = device.load(code.code_object)
    set_up(module, code.linked)
    function = module.function(code.name)
    record = IndexRecord() if code.target.checked and device.is_cpu else None
    function.describe_fault = exception_describer(code.faults, record, kernel, compile_with_lines)
    packed = packed_types(code, kernel.__name__, names, stand_ins)
    packing = packers(packed, code.parameters, names)
    return LoadedKernel(
        function, packing, code, record, packed, names, code.cooperative, is_printing(function.kernel),
        bool(code.granule),
    )  # fmt: skip


def keep_machine_code(function: Function) -> None:
    """Keep the machine code of *function*, on the CPU device, on disk beside the kernels."""
    function.keep_code(config.cache_dir().absolute() / "machine-code", config.cache_dir.variable)


def packed_types(code: KernelCode, kernel: str, names: Sequence[str], stand_ins: Mapping[int, StandIn]) -> Types:
    """The types that the arguments *names* of *kernel* are packed as; `KernelArgumentError` where that does not fit."""
    kinds = code.argument_types
    packed = tuple(stand_ins[place].packed_as if place in stand_ins else kind for place, kind in enumerate(kinds))
    count = sum(map(leaf_count, packed))
    if stand_ins and count != len(code.parameters):
        shown = ", ".join(f"{names[place]} as {stand_in.packed_as}" for place, stand_in in stand_ins.items())
        raise KernelArgumentError(
            f"kernel {kernel} takes {len(code.parameters)} numbers for ({', '.join(map(str, kinds))}); "
            f"its extensions passed {shown}, which makes {count}"
        )
    return packed
