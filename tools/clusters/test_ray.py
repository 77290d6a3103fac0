"""Ray: actors with kernels of their own, and device arrays through its object store."""

import numpy as np
import pytest
import ray
from numba import hip

from tools.clusters import jobs
from tools.clusters.jobs import N


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, configure_logging=False)
    yield
    ray.shutdown()


@ray.remote(num_cpus=1)
class Owner:
    """A process that keeps an array on its device."""

    def __init__(self, n):
        self.array = jobs.make(n)

    def scale(self, factor):
        jobs.scale.forall(self.array.size)(self.array, factor)
        return self.array

    def scaled(self, array, factor):
        return jobs.scaled(array, factor)

    def write_to(self, host):
        jobs.scale.forall(host.size)(host, 2.0)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_actors_and_the_object_store():
    one, other = Owner.remote(N), Owner.remote(10)
    kept = one.scale.remote(2.0)
    found = ray.get(other.scaled.remote(kept, 3.0), timeout=100)
    np.testing.assert_array_equal(found.copy_to_host(), 6.0 * np.arange(N))
    assert not found.readonly, "a device array is a copy of what the store has"
    np.testing.assert_array_equal(ray.get(one.scale.remote(1.0), timeout=100).copy_to_host(), 2.0 * np.arange(N))
    shared = ray.put(hip.to_device(np.asfortranarray(np.ones((3, 4)))))
    assert ray.get(shared).is_f_contiguous()
    with pytest.raises(Exception, match=r"pass values\.copy\(\)"):
        ray.get(one.write_to.remote(ray.put(np.ones(10))), timeout=100)
    ray.kill(other)
    with pytest.raises(ray.exceptions.RayActorError):
        ray.get(other.scale.remote(1.0), timeout=100)
