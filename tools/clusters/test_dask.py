"""Dask: device arrays as results of tasks, between worker processes, and what the scheduler knows of them."""

import os
import signal
import time
import urllib.request

import dask.array as da
import numpy as np
import pytest
from dask.base import tokenize
from dask.distributed import Client, LocalCluster, get_task_stream
from dask.sizeof import sizeof
from distributed.protocol import deserialize, serialize
from numba import hip

from numba_hip.dask_workers import DevicePlugin, visible_devices
from numba_hip.errors import WorkerError
from tools.clusters import jobs
from tools.clusters.jobs import N


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("dask"))
    cluster = LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0", local_directory=folder
    )
    with cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        yield client


def workers(client):
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def test_arrays_go_from_worker_to_worker(client):
    one, other = workers(client)
    made = client.submit(jobs.make, N, workers=[one])
    result = client.submit(jobs.scaled, made, 3.0, workers=[other])
    np.testing.assert_array_equal(result.result(timeout=60).copy_to_host(), 3.0 * np.arange(N))
    assert client.who_has(result)[result.key] == (other,)


def test_layouts_and_records(client):
    records = np.zeros(5, [("a", "i4"), ("b", "f8", 3)])
    records["a"] = range(5)
    for host in (np.asfortranarray(np.arange(12.0).reshape(3, 4)), np.empty((0, 3)), np.array(7), records):
        found = client.submit(jobs.same, hip.to_device(host), pure=False).result(timeout=60)
        assert (found.dtype, found.shape) == (host.dtype, host.shape)
        assert found.is_f_contiguous() == host.flags.f_contiguous
        np.testing.assert_array_equal(found.copy_to_host(), host)


def test_many_tasks_and_one_sum(client):
    parts = client.map(jobs.make, range(1, 20))
    done = client.map(jobs.scaled, parts, [2.0] * len(parts))
    assert client.submit(jobs.total, done).result(timeout=60) == sum(n * (n - 1) for n in range(1, 20))


def test_workers_share_the_cache(client):
    found = client.run(jobs.compile_shared)
    assert sorted(found.values()) == [[0, 1], [1, 0]], "compiled once"


def test_what_the_scheduler_is_told():
    array = jobs.make(N)
    assert N * 8 <= sizeof(array) < N * 8 + 1000
    assert tokenize(array) == tokenize(jobs.make(N)) != tokenize(jobs.make(N + 1))


def test_a_worker_that_is_lost(client):
    one, _ = workers(client)
    pids = client.run(os.getpid)
    made = client.submit(jobs.make, N, workers=[one], allow_other_workers=True, pure=False)
    made.result(timeout=60)
    running = client.submit(jobs.slowly_scaled, made, 2.0, workers=[one], allow_other_workers=True, pure=False)
    time.sleep(0.3)
    os.kill(pids[one], signal.SIGKILL)
    np.testing.assert_array_equal(running.result(timeout=60).copy_to_host(), 2.0 * np.arange(N))


def test_an_actor_whose_worker_is_lost(client):
    kept = client.submit(jobs.Kept, N, actor=True).result(timeout=60)
    np.testing.assert_array_equal(kept.scale(2.0).result(timeout=60).copy_to_host(), 2.0 * np.arange(N))
    os.kill(kept.pid().result(timeout=60), signal.SIGKILL)
    with pytest.raises(Exception, match=r"lost|contact|closed|refused"):
        [kept.scale(2.0).result(timeout=60) for _ in range(100)]


def test_arrays_travel_out_of_band(client):
    """Without a copy of their contents in a pickle, and the dashboard's record knows the tasks by name."""
    array = hip.to_device(np.arange(float(N)))
    header, frames = serialize(array)
    assert header["serializer"] == "pickle"
    assert max(memoryview(frame).nbytes for frame in frames) == array.nbytes
    np.testing.assert_array_equal(deserialize(header, frames).copy_to_host(), np.arange(N))
    with get_task_stream(client) as tasks:
        client.submit(jobs.scaled, array, 2.0, pure=False).result(timeout=60)
    assert [key for task in tasks.data if (key := task["key"]).startswith("scaled")]


def test_the_dashboard(client):
    with urllib.request.urlopen(client.dashboard_link, timeout=60) as page:
        assert page.status == 200
        assert b"Dask" in page.read()


def test_blocks_of_dask_arrays():
    """What a block function makes stays on the device, and slices are views; NumPy's functions copy to the host."""
    host = np.arange(1000.0).reshape(10, 100)
    kind = np.empty((0, 0))
    device = da.from_array(host, chunks=(5, 50)).map_blocks(hip.to_device, meta=kind)
    assert hip.is_device_array(device.blocks[1, 1].compute())
    assert hip.is_device_array(device[2:4, 3:7].compute())
    scaled = da.map_blocks(jobs.scaled, device, 2.0, meta=kind)
    assert hip.is_device_array(scaled.blocks[0, 1].compute())
    np.testing.assert_array_equal(scaled.compute(), 2 * host)
    added = da.map_blocks(jobs.add, device, scaled, meta=kind)
    assert hip.is_device_array(added.blocks[0, 0].compute())
    np.testing.assert_array_equal(added.T.compute(), 3 * host.T)
    assert added.sum().compute() == 3 * host.sum()
    np.testing.assert_array_equal(np.sqrt(added).rechunk((10, 10)).compute(), np.sqrt(3 * host))
    with pytest.raises(TypeError, match="a ufunc of vectorize computes on the device"):
        (device + device).compute()


def test_each_worker_has_a_device_and_all_have_one_cache(tmp_path):
    cluster = LocalCluster(n_workers=2, threads_per_worker=3, dashboard_address=":0", local_directory=str(tmp_path))
    with cluster, Client(cluster) as client:
        client.wait_for_workers(2, timeout=60)
        client.register_plugin(DevicePlugin(devices=[4, 7], cache=tmp_path / "kernels"))
        found = client.run(jobs.describe_place)
        assert sorted(place for place, _ in found.values()) == [[n, "3", str(tmp_path / "kernels")] for n in "47"]
        assert {value for _, value in found.values()} == {2.0}
        assert list((tmp_path / "kernels").rglob("*.entry"))
        with pytest.raises(WorkerError, match="this worker has used a device already"):
            client.register_plugin(DevicePlugin(), name="late")


def test_the_gpus_of_a_machine(tmp_path, monkeypatch):
    monkeypatch.delenv("HIP_VISIBLE_DEVICES", raising=False)
    assert visible_devices(tmp_path) == []
    for number, simds in enumerate((0, 304, 304)):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "properties").write_text(f"cpu_cores_count {64 * (not simds)}\nsimd_count {simds}\n")
    assert visible_devices(tmp_path) == [0, 1]
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3,5")
    assert visible_devices(tmp_path) == [3, 5]
