"""Collective operations among GPUs, by RCCL: over the stand-in, which answers as two GPUs of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hip_standin import Standin
from hip_standin import driver as make_driver
from hip_standin import standin as find_standin

from hip_runtime import Device, Stream, collectives, device, to_device
from hip_runtime.array import DeviceArray
from hip_runtime.collectives import Communicator, library
from hip_runtime.drivers.cpu.driver import CpuDriver
from hip_runtime.errors import ArrayError, CollectiveError, CopyError, DeviceUnavailableError, UnsupportedError

INVALID_ARGUMENT = 4
"""``ncclInvalidArgument``"""


@pytest.fixture(scope="module")
def standin() -> Standin:
    return find_standin()


@pytest.fixture
def gpus(standin: Standin, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Device, Device]]:
    """Two GPUs, and RCCL for them."""
    driver = make_driver()
    found = Device(driver, 0, 0), Device(driver, 1, 1)
    monkeypatch.setattr(device, "_registry", device._Registry())
    monkeypatch.setattr(device._registry, "devices", found)
    rccl = library.bind(standin._library)
    monkeypatch.setattr(library, "load", lambda: rccl)
    yield found
    standin.recover()


@pytest.fixture
def pair(gpus: tuple[Device, Device]) -> Iterator[list[Communicator]]:
    communicators = collectives.connect()
    yield communicators
    for communicator in communicators:
        communicator.close()


def both(values: object, gpus: tuple[Device, Device]) -> list[DeviceArray]:
    return [to_device(np.asarray(value), device=gpu) for value, gpu in zip(values, gpus, strict=True)]  # type: ignore[call-overload]


def run(work: Callable[[int], None]) -> None:
    """*work* of each rank, in threads; what one raises is raised here."""
    errors: list[BaseException] = []

    def guarded(rank: int) -> None:
        try:
            work(rank)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    if errors:
        raise errors[0]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "float32", "float64"])
def test_sums_and_the_like(pair: list[Communicator], gpus: tuple[Device, Device], kind: str) -> None:
    one, other = np.arange(12, dtype=kind).reshape(3, 4) + 1, np.arange(12, dtype=kind)[::-1].reshape(3, 4)
    expected = {"sum": one + other, "prod": one * other, "max": np.maximum(one, other), "min": np.minimum(one, other)}
    if kind.startswith("float"):
        expected["avg"] = (one + other) / 2
    for op, values in expected.items():
        sources, targets = both((one, other), gpus), both((np.zeros_like(one),) * 2, gpus)
        with collectives.group():
            for rank, communicator in enumerate(pair):
                communicator.all_reduce(sources[rank], targets[rank], op)
        for target in targets:
            np.testing.assert_array_equal(target.copy_to_host(), values.astype(kind))


def test_sums_in_place_follow_the_stream(pair: list[Communicator], gpus: tuple[Device, Device]) -> None:
    streams = [Stream(gpu) for gpu in gpus]
    arrays = both((np.ones(1000), np.full(1000, 2.0)), gpus)
    for rank, communicator in enumerate(pair):  # without a group: each stream waits for the other
        communicator.all_reduce(arrays[rank], arrays[rank], stream=streams[rank])
        communicator.all_reduce(arrays[rank], arrays[rank], "max", stream=streams[rank])
    for array, stream in zip(arrays, streams, strict=True):
        assert set(array.copy_to_host(stream=stream)) == {3.0}
        stream.close()


def test_ranks_in_threads(gpus: tuple[Device, Device]) -> None:
    """As ranks of several processes do it."""
    name = collectives.make_unique_id()
    assert name != collectives.make_unique_id()

    def work(rank: int) -> None:
        device.select_device(rank)
        with Communicator(2, rank, name) as communicator:
            assert (communicator.rank, communicator.size, communicator.device) == (rank, 2, gpus[rank])
            array = to_device(np.full(5, rank + 1.0))
            communicator.all_reduce(array, array)
            assert set(array.copy_to_host()) == {3.0}
            communicator.broadcast(array if rank else to_device(np.arange(5.0)), 0)
            if rank:
                np.testing.assert_array_equal(array.copy_to_host(), np.arange(5.0))

    run(work)


def test_parts_and_wholes(pair: list[Communicator], gpus: tuple[Device, Device]) -> None:
    parts = both((np.arange(3.0), np.arange(3.0) + 10), gpus)
    wholes = both((np.zeros(6), np.zeros(6)), gpus)
    with collectives.group():
        for communicator, part, whole in zip(pair, parts, wholes, strict=True):
            communicator.all_gather(part, whole)
    for whole in wholes:
        np.testing.assert_array_equal(whole.copy_to_host(), [0, 1, 2, 10, 11, 12])
    with collectives.group():
        for communicator, part, whole in zip(pair, parts, wholes, strict=True):
            communicator.reduce_scatter(whole, part)
    np.testing.assert_array_equal(parts[0].copy_to_host(), [0, 2, 4])
    np.testing.assert_array_equal(parts[1].copy_to_host(), [20, 22, 24])


@pytest.mark.parametrize("root", [0, 1])
def test_one_rank_gets_or_gives(pair: list[Communicator], gpus: tuple[Device, Device], root: int) -> None:
    sources, result = both((np.arange(4), np.arange(4) * 2), gpus), to_device(np.zeros(4, int), device=gpus[root])
    with collectives.group():
        for rank, communicator in enumerate(pair):
            communicator.reduce(sources[rank], result if rank == root else None, root)
    np.testing.assert_array_equal(result.copy_to_host(), np.arange(4) * 3)
    given = [array.read_only() if rank == root else array for rank, array in enumerate(sources)]
    with collectives.group():
        for rank, communicator in enumerate(pair):
            communicator.broadcast(given[rank], root)
    for array in given:
        np.testing.assert_array_equal(array.copy_to_host(), np.arange(4) * (root + 1))


@pytest.mark.parametrize("kind", ["bool", "float16", "uint8"])
def test_rows_are_exchanged(pair: list[Communicator], gpus: tuple[Device, Device], kind: str) -> None:
    """What a halo exchange does: each rank sends a row and receives one, in one group."""
    arrays = both([np.full((4, 8), rank).astype(kind) for rank in range(2)], gpus)
    with collectives.group():
        for rank, communicator in enumerate(pair):
            communicator.receive(arrays[rank][0], 1 - rank)
            communicator.send(arrays[rank][1], 1 - rank)
    for rank, array in enumerate(arrays):
        found = array.copy_to_host()
        assert (set(found[0]), set(found[1])) == ({1 - rank}, {rank})


def test_fortran_order(pair: list[Communicator], gpus: tuple[Device, Device]) -> None:
    host = np.asfortranarray(np.arange(6.0).reshape(2, 3))
    sources, targets = both((host, host), gpus), both((np.zeros_like(host),) * 2, gpus)
    with collectives.group():
        for communicator, source, target in zip(pair, sources, targets, strict=True):
            communicator.all_reduce(source, target)
    np.testing.assert_array_equal(targets[1].copy_to_host(), 2 * host)
    with pytest.raises(CollectiveError, match=r"different orders \(C and Fortran\)"):
        pair[0].all_reduce(sources[0], to_device(np.zeros((2, 3)), device=gpus[0]))


def test_what_does_not_fit_is_refused(pair: list[Communicator], gpus: tuple[Device, Device]) -> None:
    one, other = both((np.zeros((4, 4)), np.zeros((4, 4))), gpus)
    short = to_device(np.zeros(2, "int16"), device=gpus[0])
    first = pair[0]
    refusals: list[tuple[Callable[[], None], type[Exception], str]] = [
        (lambda: first.all_reduce(one, other), CollectiveError, "target is .* on device 0"),
        (lambda: first.all_reduce(one, one[:2]), CollectiveError, "target is .*; it must be like source"),
        (lambda: first.all_reduce(one[:, 0], one[:, 1]), CollectiveError, r"not contiguous; pass \w+\.copy\(\)"),
        (lambda: first.all_reduce(one, one, "mean"), CollectiveError, "op is 'mean'; it must be one of sum, prod"),
        (lambda: first.all_reduce(one, one.copy().read_only()), CopyError, "read-only"),
        (lambda: first.broadcast(one, 2), CollectiveError, "root is 2; this group has ranks from 0 to 1"),
        (lambda: first.send(one, -1), CollectiveError, "to is -1"),
        (lambda: first.receive(one, 7), CollectiveError, "source is 7"),
        (lambda: first.reduce(one, None), CollectiveError, "target is None; rank 0 is the root"),
        (lambda: first.all_gather(one, one), CollectiveError, "target is .* 2 times the 16 elements of source"),
        (lambda: first.reduce_scatter(one, one), CollectiveError, "source is .* 2 times the 16 elements of target"),
        (lambda: first.broadcast(one.view("int64").view("complex128")), CollectiveError, "elements are complex128"),
        (
            lambda: first.broadcast(short),
            CollectiveError,
            "elements are int16",
        ),
    ]
    for act, kind, message in refusals:
        with pytest.raises(kind, match=message):
            act()
    flags = to_device(np.ones(3, bool), device=gpus[0])
    with pytest.raises(CollectiveError, match=r"only max \(any\) and min \(all\)"):
        first.all_reduce(flags, flags)
    assert issubclass(CollectiveError, ValueError)
    assert not issubclass(CollectiveError, ArrayError)


def test_ranks_and_names_that_cannot_be(gpus: tuple[Device, Device]) -> None:
    for rank in (-1, 2):
        with pytest.raises(CollectiveError, match=f"rank is {rank}; a group of 2 has ranks from 0 to 1"):
            Communicator(2, rank, bytes(128))
    with pytest.raises(CollectiveError, match="unique_id has 4 bytes"):
        Communicator(2, 0, b"abcd")


def test_what_rccl_reports(pair: list[Communicator], gpus: tuple[Device, Device], standin: Standin) -> None:
    array = to_device(np.zeros(4), device=gpus[0])
    with (
        standin.failing("ncclAllReduce", INVALID_ARGUMENT),
        pytest.raises(CollectiveError, match=r"ncclAllReduce returned 4: invalid argument.*NCCL_DEBUG=WARN"),
    ):
        pair[0].all_reduce(array, array)


def test_a_closed_communicator(gpus: tuple[Device, Device]) -> None:
    first, second = collectives.connect([0, 1])
    assert repr(first) == "<Communicator: rank 0 of 2, device 0>"
    assert first.handle
    first.close()
    first.close()
    second.abort()
    for communicator in (first, second):
        with pytest.raises(CollectiveError, match="is closed"):
            communicator.broadcast(to_device(np.zeros(3), device=communicator.device))


def test_the_cpu_device_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    found = Device(CpuDriver(1 << 20), 0, 0)
    monkeypatch.setattr(device, "_registry", device._Registry())
    monkeypatch.setattr(device._registry, "devices", (found,))
    for act in (collectives.connect, lambda: Communicator(1, 0, bytes(128))):
        with pytest.raises(UnsupportedError, match="device 0 is a CPU device; .* MPI takes arrays of both"):
            act()


def test_without_rccl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(library, "NAMES", ("librccl-that-is-not-there.so",))
    monkeypatch.setattr(library, "find_rocm", lambda: (_ for _ in ()).throw(library.NotFoundError("no ROCm")))
    library.load.cache_clear()
    with pytest.raises(DeviceUnavailableError, match=r"need RCCL, which was not found.*Install ROCm's package rccl"):
        collectives.make_unique_id()
