"""The number of processors that this process may use: those of its affinity, limited by its control groups.

A container sees all processors of the machine, but is paused for the rest of each period once its threads have used up
their quota. Both versions of control groups are supported, as documented by Linux:
https://docs.kernel.org/admin-guide/cgroup-v2.html and https://docs.kernel.org/scheduler/sched-bwc.html.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path, PurePosixPath
from typing import NamedTuple

_ESCAPE = re.compile(r"\\([0-7]{3})")


class _Mount(NamedTuple):
    """A mounted hierarchy of control groups: what of it is mounted, where, and whether it is of version 2."""

    root: PurePosixPath
    place: Path
    unified: bool


def usable_processors(root: Path = Path("/")) -> int:
    """Processors that this process can keep busy, at least 1. *root* is the file system that its limits are read in."""
    allowed = allowed_processors()
    quota = time_quota(root)
    return allowed if quota is None else max(1, min(allowed, ceil(quota)))


def allowed_processors() -> int:
    """Processors that this process may run on; from Python 3.13 on also limited by ``PYTHON_CPU_COUNT``."""
    if hasattr(os, "process_cpu_count"):
        return os.process_cpu_count() or 1
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def time_quota(root: Path = Path("/")) -> float | None:
    """Seconds of processor time per second; ``None`` without a limit.

    It is the minimum over the group of this process and its ancestors. Unreadable limits are ignored.
    """
    quotas = [_read_quota(group, mount.unified) for mount in _mounts(root) for group in _groups(root, mount)]
    return min((quota for quota in quotas if quota is not None), default=None)


def _mounts(root: Path) -> Iterator[_Mount]:
    """The hierarchies that limit processors' time. Fields are those of ``/proc/pid/mountinfo``, see proc(5)."""
    for line in _read(root / "proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(" "), after.split(" ")
        if len(fields) < 6 or len(kinds) < 3:
            continue
        unified = kinds[0] == "cgroup2"
        if unified or (kinds[0] == "cgroup" and "cpu" in kinds[2].split(",")):
            mounted, place = (_ESCAPE.sub(lambda found: chr(int(found[1], 8)), text) for text in fields[3:5])
            yield _Mount(PurePosixPath(mounted), root / place.lstrip("/"), unified)


def _groups(root: Path, mount: _Mount) -> Iterator[Path]:
    """The folders of the group of this process and of those above it, as far as *mount* shows them."""
    for line in _read(root / "proc/self/cgroup").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if controllers if mount.unified else "cpu" not in controllers.split(","):
            continue
        path = PurePosixPath(name)
        # The group may lie elsewhere than what is mounted: then the folder at the top is the container's own.
        inside = path.relative_to(mount.root) if path.is_relative_to(mount.root) else PurePosixPath()
        if ".." in inside.parts or not (mount.place / inside).is_dir():
            inside = PurePosixPath()
        yield mount.place / inside
        yield from (mount.place / above for above in inside.parents)


def _read_quota(group: Path, unified: bool) -> float | None:
    if unified:
        numbers = _read(group / "cpu.max").split()
    else:
        numbers = [_read(group / f"cpu.cfs_{name}_us").strip() for name in ("quota", "period")]
    # "max" and -1 are no limit.
    if len(numbers) != 2 or not all(number.isascii() and number.isdigit() for number in numbers):
        return None
    quota, period = (int(number[:18]) for number in numbers)
    return quota / period if quota and period else None


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
