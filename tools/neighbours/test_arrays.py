"""Libraries of arrays, tables and plots take device arrays, and kernels theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import joblib
import matplotlib.pyplot as plt
import ml_dtypes
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
import xarray as xr
from numba.core.errors import TypingError

import numba_hip as hip
from hip_runtime import DeviceArray
from numba_hip.errors import KernelArgumentError

plt.switch_backend("Agg")
jax.config.update("jax_enable_x64", True)

KINDS = [np.bool_, np.int8, np.uint8, np.int16, np.int32, np.int64, np.float16, np.float32, np.float64]
SOON = 240.0
"""Seconds after which other processes must have answered."""

SMALL = ["bfloat16", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"]


@hip.jit
def copy(source: Any, target: Any) -> None:
    i = hip.grid(1)
    if i < target.size:
        target[i] = source[i]


@hip.jit
def double(values: Any) -> None:
    i = hip.grid(1)
    if i < values.size:
        values[i] *= 2


def made(kind: Any, *, axes: int = 1) -> tuple[np.ndarray[Any, Any], DeviceArray]:
    host = (np.arange(12) % 5).astype(kind).reshape((12,) if axes == 1 else (3, 4))
    return host, hip.to_device(host)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("axes", [1, 2])
def test_tensors_share_the_memory(kind: type[np.generic], axes: int) -> None:
    host, array = made(kind, axes=axes)
    takes = [torch.as_tensor, torch.asarray, torch.from_dlpack, jnp.from_dlpack]
    for take in takes:
        np.testing.assert_array_equal(np.asarray(take(array)), host)
    np.testing.assert_array_equal(np.asarray(jnp.asarray(array)), host)
    tensor = torch.as_tensor(array.T)
    assert tensor.data_ptr() == array.address
    tensor[0] = 1
    assert array[(0,) * axes] == 1


@pytest.mark.parametrize("name", SMALL)
def test_small_floats(name: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, name))
    host = np.array([0.5, 1, -2, 4]).astype(kind)
    array = hip.to_device(host)
    tensor = torch.as_tensor(array)
    assert str(tensor.dtype) == f"torch.{name}"
    np.testing.assert_array_equal(tensor.float().numpy(), host.astype(np.float32))
    assert jnp.from_dlpack(array).dtype == kind
    for given in (tensor, jnp.asarray(host)):
        shared, copied = hip.as_device_array(given), hip.to_device(given)
        assert shared.dtype == copied.dtype == kind
        for found in (shared, copied):
            np.testing.assert_array_equal(found.copy_to_host(), host)
    out = np.zeros(4, np.float32)
    if name == "bfloat16":
        for source in (tensor, jnp.asarray(host), host):
            copy[1, 8](source, out)
            np.testing.assert_array_equal(out, host.astype(np.float32))
    else:
        with pytest.raises(KernelArgumentError, match=r"pass array.view\(np.uint8\)"):
            copy[1, 8](tensor, out)


def test_kernels_write_to_tensors() -> None:
    tensor = torch.arange(6.0).reshape(2, 3)
    double[1, 8](tensor[:, 1])
    assert tensor.tolist() == [[0, 2, 2], [3, 8, 5]]
    with pytest.raises(BufferError, match="detach"):
        double[1, 8](torch.ones(3, requires_grad=True))


def test_arrays_of_jax_are_read_only() -> None:
    values, out = jnp.arange(5.0), np.zeros(5)
    with pytest.raises(TypingError, match=r"'values' is one, as .* JAX are; .* as_device_array\(values\)"):
        double[1, 8](values)
    copy[1, 8](values, out)
    assert out.tolist() == values.tolist() == [0, 1, 2, 3, 4]
    assert hip.as_device_array(values).readonly
    copied = hip.as_device_array(values).copy()
    double[1, 8](copied)
    assert (copied.copy_to_host().tolist(), values.tolist()) == ([0, 2, 4, 6, 8], [0, 1, 2, 3, 4])


@pytest.mark.parametrize("kind", KINDS)
def test_tables_take_columns(kind: type[np.generic]) -> None:
    host, array = made(kind)
    assert pa.array(array).to_pylist() == host.tolist()
    assert pa.table({"a": array})["a"].to_pylist() == host.tolist()
    assert pl.Series(array).to_list() == host.tolist()
    assert pl.DataFrame({"a": array[::-2]})["a"].to_list() == host[::-2].tolist()
    assert pd.Series(array).tolist() == host.tolist()
    assert pd.DataFrame({"a": array, "b": 1})["a"].tolist() == host.tolist()
    array.copy_to_device(np.zeros_like(host))


def test_columns_of_tables_do_not_change_later() -> None:
    array = hip.to_device(np.arange(3.0))
    columns = [pa.array(array), pl.Series(array)]
    double[1, 8](array)
    assert all(list(map(float, column.to_pylist() if isinstance(column, pa.Array) else column)) == [0, 1, 2]
               for column in columns)  # fmt: skip


def test_missing_times() -> None:
    times = np.array(["2024-02-28", "NaT"], "M8[ms]")
    assert pa.array(hip.to_device(times)).null_count == 1
    assert pl.Series(hip.to_device(times)).to_list() == times.tolist()


def test_columns_as_arguments() -> None:
    frame = pd.DataFrame({"a": np.arange(5.0), "b": np.zeros(5)})
    out = np.zeros(5)
    for column in (frame["a"].to_numpy(), pl.Series(np.arange(5.0)).to_numpy(), pa.array(np.arange(5.0))):
        out[:] = 0
        copy[1, 8](column, out)
        assert out.tolist() == [0, 1, 2, 3, 4]
    eager = hip.jit("void(float64[:])")(double.py_func)
    fixed = frame["a"].to_numpy()
    for kernel, error in ((double, TypingError), (eager, KernelArgumentError)):
        with pytest.raises(error, match=r"'values' is one, as columns of pandas.* pass values.copy\(\)"):
            kernel[1, 8](fixed)
        result = fixed.copy()
        kernel[1, 8](result)
        assert result.tolist() == [0, 2, 4, 6, 8]
    for value in (frame["a"], pl.Series([1.0]), xr.DataArray([1.0])):
        with pytest.raises(KernelArgumentError, match=r"kernels cannot take; pass source.to_numpy\(\)"):
            copy[1, 8](value, out)
        assert hip.to_device(value).dtype == np.float64


def test_labels_and_plots() -> None:
    host, array = made(np.float32, axes=2)
    np.testing.assert_array_equal(xr.DataArray(array, dims=("y", "x")).sum("x"), host.sum(1))
    np.testing.assert_array_equal(xr.Dataset({"a": (("y", "x"), array)})["a"], host)
    figure, axes = plt.subplots()
    (line,) = axes.plot(array[0], array[1])
    np.testing.assert_array_equal(line.get_ydata(), host[1])
    np.testing.assert_array_equal(axes.imshow(array).get_array(), host)
    axes.hist(array[2])
    plt.close(figure)


def test_joblib(tmp_path: Path) -> None:
    host, array = made(np.float64)
    joblib.dump({"a": array}, tmp_path / "kept")
    np.testing.assert_array_equal(joblib.load(tmp_path / "kept")["a"].copy_to_host(), host)
    assert joblib.hash(array) == joblib.hash(hip.to_device(host))
    assert joblib.hash(array) != joblib.hash(hip.to_device(host + 1))


def test_processes_of_joblib() -> None:
    _, array = made(np.float64)

    def add_up(values: DeviceArray, times: int) -> float:
        """Within the test, and so sent as it is: pytest knows this module by a name that other processes do not."""
        for _ in range(times):
            double[1, 16](values)
        return float(values.copy_to_host().sum())

    calls = [joblib.delayed(add_up)(array, times) for times in range(4)]
    expected = [float(array.copy_to_host().sum()) * 2**times for times in range(4)]
    assert joblib.Parallel(n_jobs=2, timeout=SOON)(calls) == expected
    assert joblib.Parallel(n_jobs=2, prefer="threads")(calls[:1]) == expected[:1]
