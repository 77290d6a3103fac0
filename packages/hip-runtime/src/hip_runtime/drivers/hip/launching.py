"""Launches of kernels, as the HIP runtime takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hip_runtime.driver import Dim3
from hip_runtime.drivers.hip.calls import BUFFER_KEY, END_KEY, SIZE_KEY, Calls, LaunchExtra
from hip_runtime.drivers.hip.modules import HipKernel
from hip_runtime.drivers.hip.streams import HipStream


def launch(
    calls: Calls,
    stream: HipStream,
    function: HipKernel,
    grid: Dim3,
    block: Dim3,
    dynamic_shared: int,
    arguments: bytes,
    cooperative: bool,
    owners: object,
    describe: Callable[[Any], BaseException] | None,
) -> None:
    """Launch *function* on *stream*, which keeps *owners* until it is done; *describe* explains its faults."""
    calls.activate(function.device)
    if cooperative:
        # HIP takes packed arguments for plain launches only: here it is told where each of them is.
        places = function.addresses(arguments)
        name = "hipModuleLaunchCooperativeKernel"
        code = calls.hipModuleLaunchCooperativeKernel(
            function.handle, *grid, *block, dynamic_shared, stream.handle, places.ctypes.data
        )
    else:
        name = "hipModuleLaunchKernel"
        extra = LaunchExtra(BUFFER_KEY, arguments, SIZE_KEY, function.size_place, END_KEY)
        code = calls.hipModuleLaunchKernel(function.handle, *grid, *block, dynamic_shared, stream.handle, None, extra)
    if code:
        raise calls.error(name, code)
    recording = stream.recording_now
    if recording is not None:
        recording.add_launch(function, describe)
    elif function.record is not None:
        function.record.describe = describe
        stream.suspects.add(function.record)
    if owners is not None:
        stream.keep(owners)
