"""The only OpenCL platform in the environment: its buffers and launches. Fast arithmetic is allowed, as for ours."""

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

FAST = "-cl-fast-relaxed-math"
SOURCES = {
    "kernels.cl": FAST,
    "family_kernels.cl": FAST,
    "float64_kernels.cl": "-cl-unsafe-math-optimizations",
    "user_kernels.cl": "",
}
"""The files, and which arithmetic is allowed in each. Intel's runtime has no relaxed `sin` of doubles to link, and the
kernels of users have no `fastmath`."""


@cache
def context() -> tuple[cl.Context, cl.CommandQueue]:
    (platform,) = cl.get_platforms()
    made = cl.Context([platform.get_devices()[0]])
    return made, cl.CommandQueue(made)


@cache
def _programs() -> tuple[cl.Program, ...]:
    """One of each file."""
    own, _ = context()
    folder, more = Path(__file__).parent, _subgroup_options(own.devices[0])
    return tuple(
        cl.Program(own, (folder / name).read_text()).build([*flags.split(), *more]) for name, flags in SOURCES.items()
    )


def _subgroup_options(device: cl.Device) -> list[str]:
    """What the kernel with shuffles needs, if the device can run it."""
    if "cl_intel_required_subgroup_size" not in device.extensions:
        return []
    intel = "Intel" in device.platform.name
    shuffle = "intel_sub_group_shuffle_xor" if intel else "sub_group_shuffle_xor"  # PoCL only has Khronos's
    return ["-cl-std=CL2.0" if intel else "-cl-std=CL3.0", f"-DSHUFFLE_XOR={shuffle}"]


def kernel_of(name: str) -> cl.Kernel:
    """The kernel called *name*, without arguments yet."""
    (program,) = (one for one in _programs() if name in one.kernel_names.split(";"))
    return cl.Kernel(program, name)


class OpenCL:
    """Buffers of the platform's device."""

    def __init__(self) -> None:
        self._kinds: dict[int, tuple[tuple[int, ...], np.dtype]] = {}  # by buffer: shape and type of its array

    def upload(self, array: np.ndarray) -> Any:
        made = cl.Buffer(context()[0], cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR, hostbuf=array)
        self._kinds[made.int_ptr] = array.shape, array.dtype
        return made

    def overwrite(self, held: Any, array: np.ndarray) -> None:
        cl.enqueue_copy(context()[1], held, array)

    def download(self, held: Any) -> np.ndarray:
        array = np.empty(*self._kinds[held.int_ptr])
        cl.enqueue_copy(context()[1], array, held)
        return array

    def wait(self) -> None:
        context()[1].finish()

    def device(self) -> str:
        platform = context()[0].devices[0].platform
        return f"{platform.name} {platform.version}"


def launcher(name: str, threads: tuple[int, ...], block: tuple[int, ...], *arguments: Any) -> Callable[[], None]:
    kernel = kernel_of(name)
    kernel.set_args(*arguments)
    _, queue = context()

    def launch() -> None:
        cl.enqueue_nd_range_kernel(queue, kernel, threads, block)

    return launch


def in_order(*launches: Callable[[], None]) -> Callable[[], None]:
    """All of *launches*; the queue keeps their order."""

    def launch() -> None:
        for one in launches:
            one()

    return launch


def round_up(threads: int, block: int) -> int:
    return -(-threads // block) * block


def square(name: str, size: int, block: tuple[int, int], *arguments: Any) -> Callable[[], None]:
    return launcher(name, (round_up(size, block[0]), round_up(size, block[1])), block, *arguments)
