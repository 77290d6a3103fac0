"""Streams, contexts and the list of devices, as Numba CUDA has them."""

import asyncio
import threading
from contextlib import contextmanager
from types import SimpleNamespace

import numpy as np
import pytest

import hip_runtime
import numba_hip as hip
from hip_runtime.errors import InvalidHandleError, StreamError, UnknownDeviceError
from numba_hip.errors import OptionError, OutputError


@hip.jit
def add(values, step):
    i = hip.grid(1)
    if i < values.size:
        values[i] += step


@hip.jit
def add_both(one, other):
    i = hip.grid(1)
    if i < one.size:
        one[i] += 1
        other[i] += 1


@hip.jit(exceptions=True)
def fail(values):
    raise ValueError("no")


def test_priorities(monkeypatch):
    asked, driver = [], hip_runtime.current_device().driver
    create = driver.create_stream

    def spy(device, *, blocking, priority):
        asked.append(priority)
        return create(device, blocking=blocking, priority=priority)

    monkeypatch.setattr(driver, "create_stream", spy)
    values = hip.to_device(np.zeros(10))
    for stream in (hip.stream(), hip.stream(-1), hip.stream(priority=1)):
        add[1, 10, stream](values, 1.0)
        stream.synchronize()
    assert asked == [0, -1, 1]
    np.testing.assert_array_equal(values.copy_to_host(), 3)
    for wrong in (1.5, True, "high", 2**31, None):
        with pytest.raises(OptionError, match="priority is .*; it has to be a whole number"):
            hip.stream(priority=wrong)


def test_callbacks():
    stream, seen, done = hip.stream(), [], threading.Event()
    values = hip.to_device(np.zeros(1000))
    add[4, 256, stream](values, 1.0)
    stream.add_callback(lambda *args: seen.append(args), "first")
    stream.add_callback(lambda *args: (seen.append(args), done.set()))
    assert done.wait(60)
    assert seen == [(stream, 0, "first"), (stream, 0, None)]


def test_callbacks_are_told_of_errors():
    stream, seen = hip.stream(), []
    fail[1, 1, stream](hip.to_device(np.zeros(1)))
    stream.add_callback(lambda *args: seen.append(args[1:]), 5)
    with pytest.raises(ValueError, match="no"):
        stream.synchronize()
    assert seen == [(719, 5)]


@pytest.mark.filterwarnings("always")
def test_a_callback_that_raises_is_a_warning(recwarn):
    stream = hip.stream()

    def callback(*_):
        raise KeyError("lost")

    stream.add_callback(callback)
    stream.synchronize()
    (said,) = [str(warning.message) for warning in recwarn if "raised KeyError: 'lost'" in str(warning.message)]
    assert 'in callback\n    raise KeyError("lost")' in said, "with its traceback"
    with pytest.raises(TypeError, match="a callback has to be callable, got a int"):
        stream.add_callback(3)


def test_streams_can_be_awaited():
    async def work(number):
        stream = hip.stream()
        values = hip.to_device(np.zeros(1000), stream=stream)
        add[4, 256, stream](values, number)
        assert await stream.async_done() is stream
        return values.copy_to_host()

    async def main():
        return await asyncio.gather(*(work(float(number)) for number in range(5)))

    for number, values in enumerate(asyncio.run(main())):
        assert (values == number).all()


def test_awaiting_raises_what_a_kernel_raised():
    async def main():
        stream = hip.stream()
        fail[1, 1, stream](hip.to_device(np.zeros(1)))
        with pytest.raises(ValueError, match="no"):
            await stream.async_done()
        with pytest.raises(ValueError, match="no"):
            stream.synchronize()

    asyncio.run(main())


def test_awaitables_that_nobody_awaits():
    stream = hip.stream()

    async def main():
        future = stream.async_done()
        future.cancel()

    asyncio.run(main())
    stream.synchronize()
    with pytest.raises(RuntimeError, match="no running event loop"):
        stream.async_done()


def test_auto_synchronize():
    stream = hip.stream()
    values = hip.to_device(np.zeros(1000))
    with stream.auto_synchronize() as same:
        assert same is stream
        add[4, 256, stream](values, 1.0)
    assert stream.query()


@pytest.mark.parametrize(
    ("make", "handle"),
    [(hip.default_stream, 0), (hip.legacy_default_stream, 1), (hip.per_thread_default_stream, 2)],
)
def test_streams_that_are_always_there(make, handle):
    stream = make()
    assert int(stream) == stream.handle == handle
    values = hip.to_device(np.zeros(1000), stream=stream)
    add[4, 256, stream](values, 1.0)
    stream.synchronize()
    assert (values.copy_to_host() == 1).all()


def test_streams_of_others():
    own = hip.stream()
    same = hip.external_stream(own.handle)
    values = hip.to_device(np.zeros(1000))
    add[4, 256, same](values, 1.0)
    own.synchronize()
    assert (values.copy_to_host() == 1).all()
    del same
    assert own.query(), "it is not given back with the object"
    for wrong in (-1, 1.5, None, "1", True):
        with pytest.raises(InvalidHandleError, match="whole number from 0 on"):
            hip.external_stream(wrong)


def test_devices_and_contexts():
    device = hip.get_current_device()
    assert len(hip.gpus) == len(hip.list_devices()) == len(list(hip.gpus)) == len(hip.gpus.lst)
    assert hip.gpus[0].id == 0
    assert hip.gpus.current.id == device.id
    assert hip.gpus.current.wave_size == device.wave_size
    assert device.name in str(hip.gpus)
    with hip.gpus[0] as context:
        assert context == hip.current_context() == hip.current_context(0)
        assert hash(context) == hash(hip.current_context())
        assert context.device is hip.get_current_device()
        free, total = context.get_memory_info()
        assert (free, total) == context.device.memory_info()
        buffer = context.memalloc(4 << 20)  # HIP counts in blocks of 2 MiB, of which it hands out smaller pieces
        assert context.get_memory_info().free < free
        buffer.free()
        assert context.get_memory_info().free == free
        context.create_stream().synchronize()
        assert context.create_external_stream(context.create_stream().handle + 0) is not None
        assert context.get_default_stream().handle == 0
        assert context.create_event(timing=False).query()
        assert not context.can_access_peer(0)
        context.synchronize()
        context.reset()
    with pytest.raises(IndexError):
        hip.gpus[99]
    with pytest.raises(UnknownDeviceError):
        hip.current_context(99)


def test_nested_scopes_restore_the_device():
    before = hip.get_current_device()
    scope = hip.gpus[0]
    with scope, scope:
        pass
    assert hip.get_current_device() is before


def test_close_and_go_on():
    values = hip.to_device(np.zeros(10))
    add[1, 16, hip.stream()](values, 1.0)
    hip.close()
    assert (values.copy_to_host() == 1).all()
    assert hip.gpus.current is None
    hip.close()
    assert hip.get_current_device().id == 0
    assert hip.gpus.current.id == 0


def test_threads_that_have_not_used_a_device():
    found = []

    def look():
        for act in (lambda: None, hip.current_context, hip.close):
            act()
            found.append(hip.gpus.current and hip.gpus.current.id)

    hip.current_context()
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [None, 0, None]
    assert hip.gpus.current.id == 0


def test_require_context():
    @hip.require_context
    def function(left, right=2):
        """Meaning."""
        return left, right

    assert function(1, right=3) == (1, 3)
    assert (function.__name__, function.__doc__) == ("function", "Meaning.")


def test_cleanup_is_deferred():
    free = hip.get_current_device().memory_info()[0]
    with hip.defer_cleanup():
        hip.device_array(1 << 20)
        assert hip.get_current_device().memory_info()[0] < free
    assert hip.get_current_device().memory_info()[0] == free


def test_profiling_does_nothing():
    hip.profile_start()
    hip.profile_stop()
    with hip.profiling():
        pass
    assert "Does nothing" in hip.profile_start.__doc__


def test_compiling_for_several_targets():
    code, result = hip.compile_all(add, "(float64[::1], float64)", targets=["gfx90a", "gfx1100"])
    assert list(code) == ["gfx90a", "gfx1100"]
    assert all("v_add_f64" in text for text in code.values())
    assert str(result) == "none"
    text, _ = hip.compile_for_current_device(add, "(float64[::1], float64)", output="llvm")
    assert "void @add(" in text
    with pytest.raises(OutputError, match="targets is empty"):
        hip.compile_all(add, "(float64[::1], float64)", targets=[])


@contextmanager
def held(stream):
    """A block in which *stream* does nothing until the event is set, at the latest at the end of the block."""
    gate = threading.Event()
    stream.add_callback(lambda *args: gate.wait(20))
    try:
        yield gate
    finally:
        gate.set()
        stream.synchronize()


def test_pinned_arguments_are_not_waited_for():
    stream = hip.stream()
    values = hip.pinned_array(1000)
    values[:] = 0
    add[4, 256, stream](np.zeros(1000), 1.0)  # compiled before the stream is held
    with held(stream):
        add[4, 256, stream](values, 1.0)
        assert (values == 0).all()
    assert (values == 1).all()


def test_other_arguments_are_there_when_the_launch_returns():
    stream = hip.stream()
    values, pinned = np.zeros(1000), hip.pinned_array(1000)
    pinned[:] = 0
    add_both[4, 256, stream](values, pinned)
    with held(stream) as gate:
        threading.Timer(0.05, gate.set).start()
        add_both[4, 256, stream](values, pinned)
        assert gate.is_set()
        assert (values == 2).all()
    assert (pinned == 2).all()


def test_launches_on_streams_of_other_libraries():
    stream = hip.stream()
    values = hip.to_device(np.zeros(1000))
    add[4, 256, SimpleNamespace(cuda_stream=stream.handle)](values, 1.0)
    add[4, 256, SimpleNamespace(ptr=stream.handle)](values, 1.0)
    add[4, 256, stream.handle](values, 1.0)
    add[4, 256, SimpleNamespace(ptr=0)](values, 1.0)
    assert (values.copy_to_host(stream=stream) == 4).all()
    with pytest.raises(InvalidHandleError, match="does not exist"):
        add[4, 256, 10**9](values, 1.0)
    for wrong in ("stream", True, 1.5, object()):
        with pytest.raises(StreamError, match="hip.stream"):
            add[4, 256, wrong]
