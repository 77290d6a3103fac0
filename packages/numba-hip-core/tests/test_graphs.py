"""Graphs of kernels: what is put on a stream, recorded and launched again as one."""

import gc
import weakref

import numpy as np
import pytest

import numba_hip as hip
from hip_runtime.errors import CaptureError


@hip.jit
def add(values, step):
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


@hip.jit
def scale(target, source, factor):
    i = hip.grid(1)
    if i < target.size:
        target[i] = source[i] * factor


@hip.jit(boundscheck=True)
def read(target, source, index):
    target[0] = source[index[0]]


@hip.jit
def shout(values):
    print("value", values[0])


@hip.jit
def total(pair, record):
    pair[0][0] += pair[1][0] + record.x


def test_a_chain_of_kernels_and_copies_runs_again_with_what_the_host_holds():
    n = 1000
    host, result = hip.pinned_array(n, np.float64), hip.pinned_array(n, np.float64)
    one, two = hip.device_array(n), hip.to_device(np.zeros(n))
    stream = hip.stream()
    add[4, 256](one, 1.0)
    scale[4, 256](two, one, 1.0)
    with stream.capture() as graph:
        one.copy_to_device(host, stream=stream)
        add[4, 256, stream](one, 1.0)
        scale[4, 256, stream](two, one, 3.0)
        assert two.copy_to_host(result, stream=stream) is result
    result[:] = -1
    executable = graph.instantiate()
    assert isinstance(graph, hip.Graph)
    assert isinstance(executable, hip.ExecutableGraph)
    stream.synchronize()
    assert (result == -1).all()
    for start in (0.0, 10.0, -5.5):
        host[:] = start + np.arange(n)
        executable.launch(stream)
        stream.synchronize()
        np.testing.assert_array_equal(result, (start + np.arange(n) + 1) * 3)
    graph.close()
    executable.launch()
    hip.synchronize()
    np.testing.assert_array_equal(result, (np.arange(n) - 4.5) * 3)


def test_numbers_of_numpy_take_the_code_that_those_of_python_loaded():
    stream, values = hip.stream(), hip.to_device(np.zeros(4))
    add[1, 4](values, 1.0)
    with stream.capture() as graph:  # which refuses to load code
        add[1, 4, stream](values, np.float64(2.0))
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert values.copy_to_host().tolist() == [3.0] * 4


def test_what_the_work_uses_lives_as_long_as_the_graph():
    stream, values = hip.stream(), hip.to_device(np.zeros(4))
    out = np.zeros(4)
    add[1, 4](values, 1.0)
    with stream.capture() as graph:
        add[1, 4, stream](values, 1.0)
        values.copy_to_host(out, stream=stream)
    gone = []
    weakref.finalize(values, gone.append, True)
    executable = graph.instantiate()
    del values, graph
    gc.collect()
    executable.launch(stream)
    executable.launch(stream)
    stream.synchronize()
    assert out.tolist() == [3.0] * 4
    assert not gone
    del executable
    hip.synchronize()
    gc.collect()
    assert gone


@pytest.mark.parametrize("wrap", [lambda array: array, hip.In, lambda array: (array, array)])
def test_arrays_of_the_host_are_refused(wrap):
    stream, values = hip.stream(), hip.to_device(np.zeros(3))
    scale[1, 3](values, values, 1.0)
    message = "argument 'source' is an array or record of the host.*cannot copy it back"
    with pytest.raises(CaptureError, match=message), stream.capture() as graph:
        scale[1, 3, stream](values, wrap(np.ones(3)), 1.0)
    with pytest.raises(CaptureError, match="the graph is not complete"):
        graph.instantiate()
    add[1, 3, stream](values, 2.0)  # the stream works as before
    stream.synchronize()
    assert values.copy_to_host().tolist() == [2.0] * 3


def test_records_of_the_host_are_refused():
    record = np.zeros(1, [("x", np.float64)])[0]
    stream = hip.stream()
    values = hip.to_device(np.zeros(1))
    with pytest.raises(CaptureError, match="argument 'record'"), stream.capture():
        total[1, 1, stream]((values, values), record)


def test_kernels_are_launched_once_before():
    stream, values = hip.stream(), hip.to_device(np.zeros(3, np.int16))
    message = "load code, as the first launch of a kernel does, while this thread"
    with pytest.raises(CaptureError, match=message), stream.capture():
        add[1, 3, stream](values, 2)
    add[1, 3](values, 1)
    with stream.capture() as graph:
        add[1, 3, stream](values, 2)
        add[3, 1, stream](values, 3)  # the same code in other blocks
    graph.instantiate().launch(stream)
    stream.synchronize()
    assert values.copy_to_host().tolist() == [6, 6, 6]


def test_kernels_that_print_are_refused(capsys):
    stream, values = hip.stream(), hip.to_device(np.zeros(1))
    shout[1, 1](values)
    hip.synchronize()
    assert capsys.readouterr().out == "value 0.0\n"
    with pytest.raises(CaptureError, match="prints"), stream.capture():
        shout[1, 1, stream](values)
    hip.synchronize()
    assert capsys.readouterr().out == ""


def test_errors_of_kernels_come_from_each_launch():
    stream = hip.stream()
    source, index, target = hip.to_device(np.arange(4.0)), hip.to_device(np.array([2])), hip.to_device(np.zeros(1))
    read[1, 1](target, source, index)
    with stream.capture() as graph:
        read[1, 1, stream](target, source, index)
    executable = graph.instantiate()
    for place in (9, 7):
        index[0] = place
        executable.launch(stream)
        with pytest.raises(IndexError, match=f"index {place} is out of range.* with extent 4"):
            stream.synchronize()
    index[0] = 3
    executable.launch(stream)
    stream.synchronize()
    assert target.copy_to_host()[0] == 3


def test_waiting_within_the_block_is_refused():
    stream, values = hip.stream(), hip.to_device(np.zeros(1))
    for use in (
        stream.synchronize,
        hip.synchronize,
        lambda: stream.add_callback(print),
        lambda: values.bind(stream).copy_to_host(),
        lambda: hip.to_device(np.zeros(1), stream=stream),
        lambda: add[1, 1](values, 1.0),
    ):
        with pytest.raises(CaptureError, match="captur"), stream.capture():
            use()
    stream.synchronize()
    assert not stream.capturing
