"""What the cheat sheet says of HIP C++ is what HIP's headers declare."""

from __future__ import annotations

import re
from pathlib import Path

from hip_devicelib import load_reference

SHEET = (Path(__file__).parents[1] / "docs" / "guide" / "cheat-sheet.md").read_text()
NOT_IN_THE_HEADER = {"sync", "this_grid", "kernel"}
"""What HIP's cooperative groups declare in a header of their own, and the user's own kernel."""


def test_the_device_functions_are_declared_by_hip() -> None:
    """Each name that is called in the column of HIP C++."""
    rows = re.findall(r"^\| .*? \| .*? \| (.*?) \|$", SHEET.partition("## On the host")[0], re.MULTILINE)
    called = {name for row in rows for name in re.findall(r"(\w+)\(", row)} - NOT_IN_THE_HEADER
    assert called >= {"__syncthreads", "__threadfence", "__shfl_down", "atomicAdd", "rsqrt"}
    assert not called - set(load_reference().by_name), "HIP does not declare them"
