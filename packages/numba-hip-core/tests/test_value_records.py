"""Dataclasses and jitclasses as arguments of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numba import float32, int64
from numba.core.errors import LoweringError
from numba.experimental import jitclass

import numba_hip as hip
from numba_hip.errors import KernelArgumentError


@dataclass(frozen=True)
class Range:
    low: float
    high: float


@dataclass
class Job:
    inside: Range
    scale: Any
    values: Any
    count: int = 2


@hip.jit
def work(job, out):
    i = hip.grid(1)
    if i < out.size:
        x = job.values[i] * job.scale
        out[i] = min(max(x, job.inside.low), job.inside.high) + job.count
        job.values[i] = -1


def test_dataclasses_are_passed_by_value():
    for values in (np.arange(8.0), hip.to_device(np.arange(8.0))):
        out = np.zeros(8)
        work[1, 8](Job(Range(2.0, 9.0), 3, values), out)
        np.testing.assert_array_equal(out, np.clip(np.arange(8.0) * 3, 2, 9) + 2)
        np.testing.assert_array_equal(
            np.asarray(values if isinstance(values, np.ndarray) else values.copy_to_host()), -1
        )
    assert len(work.signatures) == 1
    work[1, 8](Job(Range(2.0, 9.0), 0.5, np.arange(8.0), count=7), out)  # another type of scale
    np.testing.assert_array_equal(out, np.clip(np.arange(8.0) / 2, 2, 9) + 7)
    assert len(work.signatures) == 2


def test_hints_and_tuples_of_dataclasses():
    @hip.jit
    def kernel(pair, out):
        out[0] = pair[0].low + pair[1].low
        pair[2].values[0] = 9

    values, out = np.zeros(3), np.zeros(1)
    kernel[1, 1]((Range(1.0, 2.0), Range(3.0, 4.0), Job(Range(0.0, 0.0), 1, values)), out)
    assert (out[0], values[0]) == (4, 9)
    values[:] = 0
    job = hip.In(Job(Range(0.0, 9.0), 1, values))
    work[1, 3](job, np.zeros(3))
    np.testing.assert_array_equal(values, 0)


@dataclass
class Guarded:
    first: int
    _hidden: Any
    last: float = 0.5


@jitclass([("_start", int64), ("step", int64)])
class Steps:
    def __init__(self, start, step):
        self._start, self.step = start, step


def test_fields_may_begin_with_an_underscore():
    @hip.jit
    def kernel(guarded, steps, out):
        out[0] = guarded.first + guarded._hidden[1] + guarded.last
        out[1] = steps._start + 2 * steps.step
        guarded._hidden[0] = 9

    out, hidden = np.zeros(2), np.array([3.0, 4.0])
    kernel[1, 1](Guarded(1, hidden), Steps(5, 7), out)
    np.testing.assert_array_equal(out, [5.5, 19])
    np.testing.assert_array_equal(hidden, [9, 4])
    with pytest.raises(KernelArgumentError, match=r"argument 'guarded._hidden' is a object"):
        kernel[1, 1](Guarded(1, object()), Steps(5, 7), out)


def test_an_object_that_contains_itself_is_refused():
    job = Job(Range(1.0, 2.0), 1, np.zeros(1))
    job.scale = job
    with pytest.raises(KernelArgumentError, match="argument 'job' is a Job that contains itself"):
        work[1, 1](job, np.zeros(1))
    inner: list = []
    inner.append(inner)
    with pytest.raises(KernelArgumentError, match="argument 'job' is a tuple of objects that contain themselves"):
        work[1, 1]((1, inner), np.zeros(1))


def test_fields_are_read_only():
    @hip.jit
    def kernel(inside, out):
        inside.low = 3.0
        out[0] = inside.low

    with pytest.raises(LoweringError, match="fields of a Range, which is passed by value, can only be read.*low"):
        kernel[1, 1](Range(1.0, 2.0), np.zeros(1))


@jitclass([("slope", float32), ("steps", int64), ("line", float32[:])])
class Ramp:
    def __init__(self, slope, steps):
        self.slope, self.steps = slope, steps
        self.line = np.arange(steps).astype(np.float32)


def test_jitclasses_are_passed_by_value():
    @hip.jit
    def kernel(ramp, out):
        i = hip.grid(1)
        if i < ramp.steps:
            out[i] = ramp.line[i] * ramp.slope

    out = np.zeros(5, np.float32)
    kernel[1, 5](Ramp(0.5, 5), out)
    np.testing.assert_array_equal(out, np.arange(5) / 2)
    (signature,) = kernel.signatures
    assert [str(kind) for kind in signature[0]][:2] == ["float32", "int64"]


def test_a_field_that_kernels_cannot_take_is_named():
    with pytest.raises(KernelArgumentError, match=r"argument 'job.inside.high' is a str"):
        work[1, 1](Job(Range(1.0, "all"), 1, np.zeros(1)), np.zeros(1))
    with pytest.raises(KernelArgumentError, match=r"argument 'job.count' is a object, which kernels cannot take"):
        work[1, 1](Job(Range(1.0, 2.0), 1, np.zeros(1), object()), np.zeros(1))


def test_the_class_itself_is_no_value():
    with pytest.raises(KernelArgumentError, match="argument 'job'"):
        work[1, 1](Range, np.zeros(1))
