"""Transforms, searches in sorted values, and histograms."""

from __future__ import annotations

from typing import Any

import numpy as np

from numba_hip import algorithms
from numba_hip_cuda.compute.op import function_of
from numba_hip_cuda.compute.operands import array_of, count_of, first_of, run_into, source_of, stream_of
from numba_hip_cuda.compute.prepared import maker


def unary_transform(*, d_in: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Store what *op* makes of each of *num_items* values of *d_in* in *d_out*."""
    _transform(op, {"d_in": d_in}, d_out, num_items, stream)


def binary_transform(*, d_in1: Any, d_in2: Any, d_out: Any, op: Any, num_items: int, stream: Any = None) -> None:
    """Store what *op* makes of the values of *d_in1* and *d_in2* at each of *num_items* places in *d_out*."""
    _transform(op, {"d_in1": d_in1, "d_in2": d_in2}, d_out, num_items, stream)


def _transform(op: Any, sources: dict[str, Any], d_out: Any, num_items: int, stream: Any) -> None:
    number, on, function = count_of(num_items, "num_items"), stream_of(stream), function_of(op, "op")
    inputs = [source_of(source, number, name) for name, source in sources.items()]

    def run(out: Any) -> Any:
        return algorithms.transform(function, *inputs, count=number, out=out, stream=on)

    run_into(d_out, number, "d_out", on, run)


def lower_bound(
    *, d_data: Any, num_items: int, d_values: Any, num_values: int, d_out: Any, comp: Any = None, stream: Any = None
) -> None:
    """Store the first place in *d_data*, sorted by *comp*, where each of *d_values* fits, in *d_out* (unsigned)."""
    _search("left", d_data, num_items, d_values, num_values, d_out, comp, stream)


def upper_bound(
    *, d_data: Any, num_items: int, d_values: Any, num_values: int, d_out: Any, comp: Any = None, stream: Any = None
) -> None:
    """Store the last place in *d_data*, sorted by *comp*, where each of *d_values* fits, in *d_out* (unsigned)."""
    _search("right", d_data, num_items, d_values, num_values, d_out, comp, stream)


def _search(
    side: Any, d_data: Any, num_items: int, d_values: Any, num_values: int, d_out: Any, comp: Any, stream: Any
) -> None:
    number, wanted, on = count_of(num_items, "num_items"), count_of(num_values, "num_values"), stream_of(stream)
    out = array_of(d_out, wanted, "d_out")
    if out.dtype.kind != "u":
        raise TypeError(f"d_out has elements of {out.dtype}; places are unsigned integers: pass an array of uint64")
    less = None if comp is None else function_of(comp, "comp")
    data, values = array_of(d_data, number, "d_data")[:number], first_of(d_values, wanted, "d_values", on)
    algorithms.searchsorted(data, values, side, less, out=out[:wanted], stream=on)


def histogram_even(
    *,
    d_samples: Any,
    d_histogram: Any,
    num_output_levels: int,
    lower_level: Any,
    upper_level: Any,
    num_samples: int,
    stream: Any = None,
) -> None:
    """Count the samples in each of *num_output_levels* - 1 equal intervals from *lower_level*, in it, up to
    *upper_level*, outside of it, in *d_histogram*."""
    number, on = count_of(num_samples, "num_samples"), stream_of(stream)
    bins = count_of(num_output_levels, "num_output_levels") - 1
    samples = first_of(d_samples, number, "d_samples", on)
    out = array_of(d_histogram, bins, "d_histogram")[:bins]
    lower, upper = np.asarray(lower_level)[()].item(), np.asarray(upper_level)[()].item()
    algorithms.histogram_even(samples, bins, lower, upper, out=out, stream=on)


def _histogram_of_levels(
    *,
    d_samples: Any,
    d_histogram: Any,
    h_num_output_levels: Any,
    h_lower_level: Any,
    h_upper_level: Any,
    num_samples: int,
    stream: Any = None,
) -> None:
    histogram_even(
        d_samples=d_samples,
        d_histogram=d_histogram,
        num_output_levels=int(np.asarray(h_num_output_levels).reshape(-1)[0]),
        lower_level=np.asarray(h_lower_level).reshape(-1)[0],
        upper_level=np.asarray(h_upper_level).reshape(-1)[0],
        num_samples=num_samples,
        stream=stream,
    )


def make_histogram_even(*, num_samples: int | None = None, **arguments: Any) -> Any:
    """`histogram_even`, to be called afterwards: see `numba_hip_cuda.compute.prepared.Prepared`."""
    return _make_histogram(**arguments)


_make_histogram = maker(_histogram_of_levels)
make_unary_transform = maker(unary_transform, takes_storage=False)
make_binary_transform = maker(binary_transform, takes_storage=False)
make_lower_bound = maker(lower_bound, "comp", takes_storage=False)
make_upper_bound = maker(upper_bound, "comp", takes_storage=False)
