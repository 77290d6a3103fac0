"""Random programs whose threads wait for one another give what NumPy says."""

from __future__ import annotations

import pytest
from spmd_programs import check_case

from hip_runtime import Device


@pytest.mark.parametrize("seed", range(10))
def test_program(device: Device, seed: int) -> None:
    check_case(device, seed)


@pytest.mark.parametrize("seed", [97, 349, 488, 811, 937])
def test_program_whose_lanes_part_in_loops(device: Device, seed: int) -> None:
    check_case(device, seed)


@pytest.mark.parametrize("seed", [1884, 1953])
def test_program_whose_threads_return_in_a_loop_of_barriers(device: Device, seed: int) -> None:
    check_case(device, seed)
