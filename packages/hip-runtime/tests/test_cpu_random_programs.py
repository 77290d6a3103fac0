"""Random programs whose threads wait for each other, evaluated with NumPy."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from spmd_programs import check_case, check_joined_case, check_left_apart_case, check_marked_case

from hip_runtime import Device, config


@pytest.fixture(params=["regions", "vectors"], autouse=True)
def form(request: pytest.FixtureRequest) -> Iterator[None]:
    """Threads one after another, and as lanes where that can be."""
    with config.cpu_form.scope(request.param):
        yield


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(6))
def test_program(device: Device, seed: int) -> None:
    check_case(device, seed)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [97, 349, 488, 811, 937])
def test_program_whose_lanes_part_in_loops(device: Device, seed: int) -> None:
    check_case(device, seed)


@pytest.mark.parametrize("seed", [1884, 1953])
@pytest.mark.sample(2)
def test_program_whose_threads_return_in_a_loop_of_barriers(device: Device, seed: int) -> None:
    check_case(device, seed)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(8))
def test_program_in_blocks_that_gangs_reach_over(device: Device, seed: int) -> None:
    check_joined_case(device, seed)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(6))
def test_program_that_compares_where_threads_are(device: Device, seed: int) -> None:
    check_case(device, seed, bounds=True)


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(12))
def test_program_in_which_some_lanes_use_sums(device: Device, seed: int) -> None:
    check_case(device, seed, sums=True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(12))
def test_program_of_marked_threads(device: Device, seed: int) -> None:
    check_marked_case(device, seed)


@pytest.mark.sample(3)
@pytest.mark.parametrize("seed", range(20))
def test_program_whose_loops_threads_leave_apart(device: Device, seed: int) -> None:
    check_left_apart_case(device, seed)
