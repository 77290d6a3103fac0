"""Dask: a plugin that gives each worker process a device of its own, or its share of the cores, and one cache.

from numba_hip.dask_workers import DevicePlugin

client.register_plugin(DevicePlugin())
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import filelock
from distributed import WorkerPlugin  # type: ignore[import-not-found, import-untyped, unused-ignore]

from hip_runtime import device as registry
from hip_runtime.config import cpu_threads
from numba_hip.config import cache_dir
from numba_hip.errors import WorkerError

VISIBLE = "HIP_VISIBLE_DEVICES"
"""By this variable HIP leaves out GPUs: https://rocm.docs.amd.com/en/latest/conceptual/gpu-isolation.html"""

NODES = Path("/sys/class/kfd/kfd/topology/nodes")
"""What Linux's driver of AMD GPUs tells of processors and GPUs; of these, those with SIMD units."""


class DevicePlugin(WorkerPlugin):  # type: ignore[misc, unused-ignore]  # distributed has no types
    """Prepares each worker before its first task: the worker takes a GPU that no other one of this machine has.

    *devices* are the numbers of the GPUs of a machine; by default those that Linux knows, or that `VISIBLE` names. If
    there are more workers than GPUs, they share them. Without GPUs the CPU device of a worker has as many threads as
    the worker. *cache* is a directory for compiled kernels that all workers use, ``NUMBA_HIP_CACHE_DIR``.
    """

    name = "numba-hip-device"

    def __init__(self, devices: Sequence[int] | None = None, cache: str | os.PathLike[str] | None = None) -> None:
        self._devices = None if devices is None else list(devices)
        self._cache = None if cache is None else os.fspath(cache)
        self._claim: Any = None

    def setup(self, worker: Any) -> None:
        """Called by Dask in the worker. Raises `WorkerError` where a device is in use already."""
        if registry.are_found():
            raise WorkerError(
                "this worker has used a device already: register the plugin before the first task, or restart the "
                "workers"
            )
        if self._cache is not None:
            os.environ[cache_dir.variable] = self._cache
        os.environ.setdefault(cpu_threads.variable, str(worker.state.nthreads))
        devices = visible_devices() if self._devices is None else self._devices
        if devices:
            os.environ[VISIBLE] = str(self._take(devices, worker.scheduler.address))

    def _take(self, devices: Sequence[int], scheduler: str) -> int:
        """One of *devices*, if possible one that no other worker has for as long as this process lives."""
        folder = Path(tempfile.gettempdir()) / f"numba-hip-{os.getuid()}-{scheduler.rpartition('/')[2]}"
        folder.mkdir(mode=0o700, exist_ok=True)
        for number in devices:
            self._claim = filelock.FileLock(folder / f"{number}.lock", mode=0o600)
            try:
                self._claim.acquire(timeout=0)
            except filelock.Timeout:
                continue
            return number
        self._claim = None
        return devices[os.getpid() % len(devices)]

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None}


def visible_devices(nodes: Path = NODES) -> list[int]:
    """The numbers of the AMD GPUs that programs see here, without starting HIP."""
    named = os.environ.get(VISIBLE)
    if named is not None:
        return [int(number) for number in named.split(",") if number.strip().isdigit()]
    count = 0
    for properties in sorted(nodes.glob("*/properties")):
        words = dict(line.split(maxsplit=1) for line in properties.read_text().splitlines() if " " in line)
        count += int(words.get("simd_count", 0)) > 0
    return list(range(count))
