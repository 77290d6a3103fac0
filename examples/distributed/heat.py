"""Heat in a plate: the same program in one process, on MPI, on Dask and on Ray.

    python examples/distributed/heat.py
    mpiexec -n 4 python -m mpi4py examples/distributed/heat.py --on mpi
    python examples/distributed/heat.py --on dask --processes 4
    python examples/distributed/heat.py --on ray --processes 4

Each process has a strip of the plate on a device of its own, or on its share of the cores, and computes the inner rows
while the outermost ones travel to its neighbours. `python -m mpi4py` ends all ranks if one fails.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

import numpy as np
from numba import hip
from plate import Strip, make_plate, reference, strips

Simulation = Callable[[argparse.Namespace], "tuple[list[np.ndarray], float] | None"]
"""Returns the rows of each strip, none if they are not wanted, and the seconds that the steps took; None in processes
that only help."""


def run_alone(given):
    """One strip in this process."""
    strip = Strip(*strips(given.shape, 1)[0])
    strip.compile()
    start = time.perf_counter()
    for _ in range(given.steps):
        strip.begin_step()
        strip.finish_step()
    seconds = time.perf_counter() - start
    return [strip.result()] if given.wanted else [], seconds


def run_on_mpi(given):
    """A strip for each rank. The ranks of a machine take its devices in turns; CPU devices share its cores."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    given.processes = comm.size
    check_rows(given)
    here = comm.Split_type(MPI.COMM_TYPE_SHARED)
    os.environ.setdefault("NUMBA_HIP_CPU_THREADS", str(cores_for_one(here.size)))
    hip.select_device(here.rank % len(hip.gpus))
    strip = Strip(*strips(given.shape, comm.size)[comm.rank])
    strip.compile()
    above = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    below = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    comm.Barrier()
    start = time.perf_counter()
    for _ in range(given.steps):
        strip.begin_step()
        exchange(comm, strip.new, above, below)
        strip.finish_step()
    seconds = comm.reduce(time.perf_counter() - start, MPI.MAX)
    found = comm.gather(strip.result()) if given.wanted else []
    return (found, seconds) if comm.rank == 0 else None


def exchange(comm, field, above, below):
    """Send the outermost rows of a strip to the ranks *above* and *below*, and receive theirs."""
    if field.device.is_cpu:  # MPI sends from and to memory of the CPU device; of a GPU's only where it was built for it
        comm.Sendrecv(field[1], above, recvbuf=field[-1], source=below)
        comm.Sendrecv(field[-2], below, recvbuf=field[0], source=above)
        return
    row = np.empty(field.shape[1])
    for sent, to, received, source in ((1, above, -1, below), (-2, below, 0, above)):
        comm.Sendrecv(field[sent].copy_to_host(), to, recvbuf=row, source=source)
        if source >= 0:
            field[received].copy_to_device(row)


def run_on_dask(given):
    """An actor for each worker of a cluster on this machine; their rows travel by way of this process."""
    from dask.distributed import Client, LocalCluster

    from numba_hip.dask_workers import DevicePlugin

    check_rows(given)
    threads = cores_for_one(given.processes)
    cluster = LocalCluster(n_workers=given.processes, threads_per_worker=threads, dashboard_address=":0")
    with cluster, Client(cluster) as client:
        client.register_plugin(DevicePlugin())
        workers = sorted(client.scheduler_info(n_workers=-1)["workers"])
        made = [
            client.submit(Strip, *strip, actor=True, workers=[worker], pure=False)
            for strip, worker in zip(strips(given.shape, given.processes), workers, strict=True)
        ]
        actors = [future.result() for future in made]

        def call(method, *rows):
            return method(*[row and row.result() for row in rows])

        return run_actors(actors, given, call, lambda future: future.result())


def run_on_ray(given):
    """An actor for each process. This one has references to the rows, which go from one actor to the other."""
    import ray

    check_rows(given)
    settings = {"env_vars": {"NUMBA_HIP_CPU_THREADS": str(cores_for_one(given.processes))}}
    ray.init(num_cpus=given.processes, include_dashboard=False, log_to_driver=False)
    try:
        actor = ray.remote(num_cpus=1, runtime_env=settings)(Strip)
        actors = [actor.remote(*strip) for strip in strips(given.shape, given.processes)]
        return run_actors(actors, given, lambda method, *rows: method.remote(*rows), ray.get)
    finally:
        ray.shutdown()


def run_actors(actors, given, call, wait):
    """The steps of strips in other processes: *call* begins a method, *wait* returns its result."""

    def wait_for_all(begun):
        return [wait(one) for one in begun]

    wait_for_all([call(actor.compile) for actor in actors])
    start = time.perf_counter()
    for _ in range(given.steps):
        rows = [None, *[call(actor.step) for actor in actors], None]
        wait_for_all([call(actor.receive, rows[n], rows[n + 2]) for n, actor in enumerate(actors)])
    seconds = time.perf_counter() - start
    return wait_for_all([call(actor.result) for actor in actors if given.wanted]), seconds


WAYS: dict[str, Simulation] = {"alone": run_alone, "mpi": run_on_mpi, "dask": run_on_dask, "ray": run_on_ray}


def cores_for_one(processes):
    """How many threads each of the processes of a machine gets."""
    return max((os.cpu_count() or 1) // processes, 1)


def check_rows(given):
    """Each strip has two rows at least."""
    least = 2 * given.processes + 2
    if given.shape[0] < least:
        raise SystemExit(
            f"heat.py: error: {given.shape[0]} rows: {given.processes} processes need {least} at least, two for each"
        )


def parse_arguments():
    parser = argparse.ArgumentParser(prog="heat.py", description="Heat in a plate, in one process or several.")
    parser.add_argument("--on", choices=WAYS, default="alone", help="what connects the processes")
    parser.add_argument("--processes", type=int, default=2, help="for Dask and Ray; MPI is told by mpiexec")
    parser.add_argument("--size", type=int, default=512, help="rows and columns")
    parser.add_argument("--rows", type=int, help="rows, if there are not as many as columns")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--check", action="store_true", help="compare with NumPy, which takes longer")
    parser.add_argument("--output", help="write a picture to this file; needs matplotlib")
    given = parser.parse_args()
    for name, least in (("processes", 1), ("size", 4), ("rows", 4), ("steps", 1)):
        value = getattr(given, name)
        if value is not None and value < least:
            parser.error(f"--{name} {value}: at least {least}")
    given.shape = given.rows or given.size, given.size
    given.wanted = bool(given.check or given.output)
    return given


def main() -> None:
    given = parse_arguments()
    done = WAYS[given.on](given)
    if done is None:
        return
    parts, seconds = done
    rate = given.steps * (given.shape[0] - 2) * (given.shape[1] - 2) / seconds / 1e6
    processes = 1 if given.on == "alone" else given.processes
    print(f"heat: {processes} on {given.on}, {rate:.0f} million points a second")
    if given.wanted:
        plate = make_plate(given.shape)
        plate[1:-1] = np.vstack(parts)
    if given.check:
        np.testing.assert_array_equal(plate, reference(make_plate(given.shape), given.steps))
        print("the same as NumPy's")
    if given.output:
        from matplotlib import pyplot

        pyplot.imsave(given.output, plate, cmap="inferno")


if __name__ == "__main__":
    main()
