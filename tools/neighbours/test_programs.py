"""Programs and extensions of other libraries that are for Numba CUDA, while posing; and matrices of SciPy's."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import awkward as ak
import numba
import numpy as np
import pytest
import scipy.sparse
from numba.core import config as numba_config
from numba.core import types
from numba.core.errors import NumbaTypeError

from numba_hip_cuda import posing


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """`numba.cuda`, without its advice on small programs."""
    monkeypatch.setattr(numba_config, "CUDA_LOW_OCCUPANCY_WARNINGS", 0)
    monkeypatch.setattr(numba_config, "CUDA_WARN_ON_IMPLICIT_COPY", 0)
    with posing() as module:
        yield module


def test_sparse_matrices(cuda: ModuleType) -> None:
    @cuda.jit
    def multiply(data: Any, indices: Any, starts: Any, x: Any, y: Any) -> None:
        row = cuda.grid(1)
        if row < y.size:
            total = 0.0
            for k in range(starts[row], starts[row + 1]):
                total += data[k] * x[indices[k]]
            y[row] = total

    rng = np.random.default_rng(5)
    matrix = scipy.sparse.random(200, 150, 0.05, "csr", rng=rng)
    x, y = rng.standard_normal(150), np.zeros(200)
    multiply.forall(200)(matrix.data, matrix.indices, matrix.indptr, x, y)
    np.testing.assert_allclose(y, matrix @ x, rtol=1e-12, atol=1e-12)
    again = scipy.sparse.csr_array((cuda.to_device(matrix.data), matrix.indices, matrix.indptr), matrix.shape)
    np.testing.assert_array_equal(again.toarray(), matrix.toarray())


def test_stumpy(cuda: ModuleType) -> None:
    import stumpy  # which looks for numba.cuda when it is imported

    series, width = np.random.default_rng(3).standard_normal(80), 12
    found = stumpy.gpu_stump(series, width)
    np.testing.assert_allclose(found[:, 0].astype(float), nearest_distances(series, width), atol=1e-7)


def nearest_distances(series: np.ndarray[Any, Any], width: int) -> np.ndarray[Any, Any]:
    """How far the nearest other part of *series* is from each, of *width* numbers that are scaled alike.

    Those of stumpy for the host would have Numba compile for a minute.
    """
    parts = np.lib.stride_tricks.sliding_window_view(series, width)
    scaled = (parts - parts.mean(1, keepdims=True)) / parts.std(1, keepdims=True)
    distances = np.linalg.norm(scaled[:, None] - scaled[None], axis=2)
    places = np.arange(len(parts))
    distances[abs(places[:, None] - places) <= np.ceil(width / 4)] = np.inf
    return distances.min(1)


class OnHost:
    """What awkward's own handler for kernels does for arrays of CuPy's, for those of NumPy's: the CPU device has them
    in its memory."""

    def prepare_args(self, kind: Any, value: Any, **_: Any) -> tuple[Any, Any]:
        if not isinstance(value, ak.Array):
            return kind, value
        view = value._numbaview
        place = view.lookup.arrayptrs.ctypes.data
        return types.UniTuple(types.uint64, 5), (view.pos, view.start, view.stop, place, 0)


def test_awkward(cuda: ModuleType) -> None:
    ak.numba.register_and_check()
    jagged = ak.Array([[1.0, 2.0], [], [3.0, 4.0, 5.0]])

    def add_up(array: Any, out: Any) -> None:
        i = cuda.grid(1)
        if i < len(array):
            for x in array[i]:
                out[i] += x

    out = np.zeros(3)
    cuda.jit(add_up, extensions=[OnHost()])[1, 32](jagged, out)
    assert out.tolist() == ak.sum(jagged, axis=1).tolist() == [3, 0, 12]

    @numba.njit
    def count(array: Any) -> int:
        return sum([len(row) for row in array])

    assert count(jagged) == 5  # the extension goes on working for njit
    with pytest.raises(NumbaTypeError, match='ak.to_backend.*backend="cuda"'):  # which needs CuPy, and so a GPU
        cuda.jit(add_up, extensions=[ak.numba.cuda])[1, 32](jagged, out)
    flat = ak.flatten(jagged)
    doubled = cuda.to_device(ak.to_numpy(flat))
    np.testing.assert_array_equal(ak.from_dlpack(doubled), flat)
