"""`hip.autotune`: which configurations are tried, what is chosen, what is kept, and what arrays hold afterwards."""

import io
import sys

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime.errors import LaunchError
from numba_hip import config, tuning
from numba_hip.errors import TuningError


@pytest.fixture(autouse=True)
def folder(tmp_path):
    with config.cache_dir.scope(tmp_path):
        yield tmp_path


@pytest.fixture
def measured(monkeypatch):
    """Seconds by the block and what it was configured with, in place of a clock; filled with what was asked for."""
    asked = []

    class Result:
        def __init__(self, seconds):
            self.median = seconds

    def benchmark(launch, *args, seconds, stream):
        launch(*args)
        asked.append((launch.griddim, launch.blockdim))
        return Result(1.0 / launch.blockdim[0])

    monkeypatch.setattr(tuning, "benchmark", benchmark)
    return asked


def blocks_for(n):
    return lambda block, **constants: -(-n // (block if isinstance(block, int) else block[0]))


def make_adder(add=1.0):
    @hip.autotune(block=[32, (64, 1), 16], TILE=[1, 2])
    def adder(TILE):
        """Add to all elements."""

        @hip.jit
        def kernel(values):
            i = hip.grid(1)
            if i < values.size:
                values[i] += add * TILE

        return kernel

    return adder


def test_the_fastest_is_chosen_and_runs_once(measured):
    adder = make_adder()
    values = np.zeros(100)
    adder[blocks_for(100)](values)
    assert list(values) in ([1.0] * 100, [2.0] * 100)
    assert [(grid[0], block[0]) for grid, block in measured] == [(4, 32), (4, 32), (2, 64), (2, 64), (7, 16), (7, 16)]
    (choice,) = adder.choices.values()
    assert choice.configuration == {"block": (64, 1), "TILE": 1}
    assert choice.seconds == 1 / 64
    assert repr(adder) == "<autotuned adder, 6 configurations>"
    assert adder.__doc__ == "Add to all elements."


def test_other_types_and_shapes_are_tuned_for(measured):
    adder, device = make_adder(), hip.to_device(np.zeros(100))
    for values in (np.zeros(100), np.zeros(100), device, np.zeros(100, np.float32), np.zeros(10)):
        adder[blocks_for(values.size)](values)
    assert len(adder.choices) == 3, "arrays of the host and of the device are the same"
    assert len(measured) == 3 * 6
    assert list(device.copy_to_host()) == [1.0] * 100


def test_a_key_says_what_is_told_apart(measured):
    @hip.autotune(block=[32, 64], key=lambda values, number: number > 10)
    @hip.jit
    def kernel(values, number):
        values[hip.grid(1)] = number

    for number in (1, 2, 11, 12):
        kernel[1](np.zeros(64), number)
    assert len(kernel.choices) == 2
    assert len(measured) == 4


def test_what_was_chosen_is_kept_on_disk_until_something_changes(measured):
    first, second = hip.to_device(np.zeros(100)), hip.stream()
    make_adder()[blocks_for(100)](first)
    del measured[:]
    again = make_adder()
    again.configure(blocks_for(100), second)(first)
    second.synchronize()
    assert measured == []
    assert list(first.copy_to_host()) == [2.0] * 100
    make_adder(add=2.0)[blocks_for(100)](first)
    assert len(measured) == 6, "another constant that the kernel captures is another kernel"


def test_a_damaged_entry_is_measured_anew(measured, folder):
    make_adder()[blocks_for(100)](np.zeros(100))
    for entry in (folder / "autotune").rglob("*"):
        if entry.is_file():
            entry.write_bytes(entry.read_bytes()[:-5])
    del measured[:]
    make_adder()[blocks_for(100)](np.zeros(100))
    assert len(measured) == 6


def test_what_the_device_has_no_room_for_is_left_out(measured):
    @hip.autotune(block=[1 << 20, 32])
    @hip.jit
    def kernel(values):
        values[hip.grid(1)] = 1

    values = np.zeros(32)
    kernel[1](values)
    assert values.sum() == 32
    assert [choice.configuration for choice in kernel.choices.values()] == [{"block": 32}]

    @hip.autotune(block=[1 << 20, 1 << 21])
    @hip.jit
    def too_large(values):
        values[hip.grid(1)] = 1

    with pytest.raises(TuningError, match="none of the 2 configurations of too_large is possible") as caught:
        too_large[1](values)
    assert isinstance(caught.value.__cause__, LaunchError)


def test_real_times():
    """The slower by far is not chosen."""

    @hip.autotune(block=[32], ROUNDS=[20000, 1], seconds=0.001)
    def busy(ROUNDS):
        @hip.jit
        def kernel(values):
            total = 0.0
            for q in range(ROUNDS):
                total += values[q % values.size]
            values[hip.grid(1)] = total * 0 + ROUNDS

        return kernel

    values = np.ones(256)
    busy[8](values)
    assert set(values) == {1.0}


def no_constants():
    return None


@pytest.mark.parametrize(
    ("how", "decorated", "message"),
    [
        ({"block": []}, no_constants, r"block=\[\]: must be a list of the values to try"),
        ({"block": 64}, no_constants, "block=64: must be a list"),
        ({"block": [64], "TILE": "ab"}, no_constants, "TILE='ab': must be a list"),
        ({"block": [64], "TILE": [1]}, no_constants, r"takes \(\), and autotune has values for \(TILE\)"),
        ({"block": [64]}, lambda values: None, r"takes \(values\).*put hip.jit below autotune"),
        ({"block": [64], "TILE": [1]}, hip.jit(no_constants), "is a kernel, which takes no constants"),
        ({"block": [64]}, 5, "not 5"),
    ],
)
def test_what_does_not_fit(how, decorated, message):
    with pytest.raises(TuningError, match=message):
        hip.autotune(**how)(decorated)


def test_a_function_that_makes_no_kernel():
    with pytest.raises(TuningError, match="no_constants returned None"):
        hip.autotune(block=[1])(no_constants)[1](np.zeros(1))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("watched", "shown"), [(Terminal(), True), (io.StringIO(), False)])
def test_a_progress_bar_for_who_watches(measured, monkeypatch, watched, shown):
    monkeypatch.setattr(sys, "stderr", watched)
    make_adder()[blocks_for(100)](np.zeros(100))
    assert ("autotune adder:" in watched.getvalue()) == ("0/6" in watched.getvalue()) == shown


def test_without_tqdm_there_is_no_bar(measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    make_adder()[blocks_for(100)](np.zeros(100))
    assert terminal.getvalue() == ""
    assert len(measured) == 6
