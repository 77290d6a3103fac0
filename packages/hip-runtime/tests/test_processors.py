"""How many processors there are to use, with the files of many machines."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hip_runtime import processors
from hip_runtime.processors import allowed_processors, time_quota, usable_processors

UNIFIED = "30 23 0:26 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
DIVIDED = "33 31 0:30 {root} /sys/fs/cgroup/cpu,cpuacct rw,nosuid - cgroup cgroup rw,cpu,cpuacct"
OTHERS = [
    "22 28 0:20 / /proc rw,relatime shared:5 - proc proc rw",
    "35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory",
    "34 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset",
    "what is this",
]


class Machine:
    """Files as a Linux has them, in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, path: str, text: str) -> None:
        file = self.root / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def mount(self, *mounts: str) -> None:
        self.write("proc/self/mountinfo", "\n".join([*OTHERS, *mounts]) + "\n")

    def group(self, *lines: str) -> None:
        self.write("proc/self/cgroup", "\n".join(lines) + "\n")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processors, "allowed_processors", lambda: 64)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("text", "quota", "count"),
    [
        ("max 100000\n", None, 64),
        ("200000 100000\n", 2, 2),
        ("150000 100000\n", 1.5, 2),
        ("1000 100000\n", 0.01, 1),
        ("300000 100000\n", 3, 3),
        ("9900000 100000\n", 99, 64),
        ("0 100000\n", None, 64),
        ("100000 0\n", None, 64),
        ("-1 100000\n", None, 64),
        ("nan nan\n", None, 64),
        ("", None, 64),
        ("100000\n", None, 64),
        ("9" * 5000 + " 1\n", 1e18, 64),
        ("\N{ARABIC-INDIC DIGIT ONE} 1", None, 64),
    ],
    ids=lambda value: str(value)[:16].strip(),
)
def test_a_container_with_version_2(machine: Machine, text: str, quota: float | None, count: int) -> None:
    machine.mount(UNIFIED.format(root="/"))
    machine.group("0::/")
    machine.write("sys/fs/cgroup/cpu.max", text)
    assert time_quota(machine.root) == quota
    assert usable_processors(machine.root) == count


@pytest.mark.usefixtures("many")
def test_the_least_of_all_groups_counts(machine: Machine) -> None:
    machine.mount(UNIFIED.format(root="/"))
    machine.group("0::/user.slice/user-1000.slice/job.scope")
    machine.write("sys/fs/cgroup/user.slice/user-1000.slice/job.scope/cpu.max", "800000 100000")
    machine.write("sys/fs/cgroup/user.slice/user-1000.slice/cpu.max", "500000 100000")
    machine.write("sys/fs/cgroup/user.slice/cpu.max", "max 100000")
    machine.write("sys/fs/cgroup/user.slice/other.slice/cpu.max", "100000 100000")
    assert usable_processors(machine.root) == 5


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", ["/docker/abc", "/", "/docker/abc/inner"])
def test_a_container_with_version_1_sees_its_own_group_at_the_top(machine: Machine, name: str) -> None:
    """Its group has the name that it has outside, and of the hierarchy that group alone is mounted."""
    machine.mount(DIVIDED.format(root="/docker/abc"))
    machine.group("5:cpuset:/docker/abc", f"4:cpu,cpuacct:{name}", "3:memory:/docker/abc", "0::/system.slice")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n")
    assert time_quota(machine.root) == 2.5
    assert usable_processors(machine.root) == 3


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("quota", "count"), [("-1", 64), ("50000", 1), ("400000", 4), ("garbage", 64)])
def test_version_1(machine: Machine, quota: str, count: int) -> None:
    machine.mount(DIVIDED.format(root="/"))
    machine.group("4:cpu,cpuacct:/jobs/mine")
    machine.write("sys/fs/cgroup/cpu,cpuacct/jobs/mine/cpu.cfs_quota_us", quota + "\n")
    machine.write("sys/fs/cgroup/cpu,cpuacct/jobs/mine/cpu.cfs_period_us", "100000\n")
    assert usable_processors(machine.root) == count


@pytest.mark.usefixtures("many")
def test_both_versions_at_once(machine: Machine) -> None:
    machine.mount(DIVIDED.format(root="/"), UNIFIED.format(root="/").replace("/sys/fs/cgroup ", r"/a\040place "))
    machine.group("4:cpu,cpuacct:/one", "0::/two")
    machine.write("sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_quota_us", "700000")
    machine.write("sys/fs/cgroup/cpu,cpuacct/one/cpu.cfs_period_us", "100000")
    machine.write("a place/one/cpu.max", "100000 100000")  # the group of the other version has another name
    machine.write("a place/two/cpu.max", "600000 100000")
    assert usable_processors(machine.root) == 6


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("name", ["/../other", "/gone", "/../..", "nonsense"])
def test_a_group_that_is_not_to_be_seen(machine: Machine, name: str) -> None:
    machine.mount(UNIFIED.format(root="/"))
    machine.group(f"0::{name}")
    machine.write("sys/fs/cgroup/cpu.max", "400000 100000")
    machine.write("sys/fs/other/cpu.max", "100000 100000")
    assert usable_processors(machine.root) == 4


def test_without_control_groups(machine: Machine) -> None:
    assert time_quota(machine.root) is None
    assert usable_processors(machine.root) == allowed_processors()
    machine.group("0::/")
    assert time_quota(machine.root) is None
    machine.mount()
    assert time_quota(machine.root) is None


def test_here() -> None:
    assert 1 <= usable_processors() <= allowed_processors() <= (os.cpu_count() or 1)


def test_affinity() -> None:
    code = (
        "import os; from hip_runtime import config; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "print(config.cpu_threads())"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_HIP_")}
    environment.pop("PYTHON_CPU_COUNT", None)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"
