"""`hip.profile`, `hip.range` and `hip.benchmark` with kernels that Numba compiles, on any device."""

from collections import Counter

import numpy as np

import numba_hip as hip


@hip.jit
def add(x, y):
    i = hip.grid(1)
    if i < x.size:
        x[i] += y[i]


@hip.jit
def shout(values):
    print("value", values[0])


def test_a_profile_of_kernels(capfd):
    values, stream = np.arange(100.0), hip.stream()
    with hip.profile() as taken:
        with hip.range("host arrays"):
            add[2, 64](values, hip.In(np.ones(100)))
        kept = hip.to_device(values, stream=stream)
        for _ in range(3):
            add[1, 128, stream](kept, kept)
        shout[1, 1](kept[:1])
        hip.synchronize()
    assert list(values) == list(np.arange(100.0) + 1)
    assert list(kept.copy_to_host()) == list(8 * values)
    assert capfd.readouterr().out == "value 8.0\n"
    counts = Counter((span.kind, span.name) for span in taken.spans if span.kind != "compile")
    assert counts["kernel", "add"] == 4
    assert counts["kernel", "shout"] == 1
    assert counts["range", "host arrays"] == 1
    assert counts["copy", "host to device"] >= 3
    assert counts["copy", "device to host"] >= 1
    blocks = [span.block for span in taken.spans if span.name == "add" and span.kind == "kernel"]
    assert blocks == [(64, 1, 1), (128, 1, 1), (128, 1, 1), (128, 1, 1)]
    assert str(taken).startswith("what")


def test_a_benchmark_of_a_kernel():
    kept, stream = hip.to_device(np.zeros(100)), hip.stream()
    measured = hip.benchmark(add[2, 64, stream], kept, kept, seconds=0.01)
    stream.synchronize()
    assert measured.name == "add"
    assert measured.nbytes == 1600
    assert 0 < measured.least <= measured.median
    assert str(measured).startswith("add: median ")
