"""What ``nox -s emulated`` runs on the executor of AMD's machine code, and for which GPUs."""

from __future__ import annotations

EMULATED_TARGETS = ("gfx942", "gfx1100", "gfx1201")
EMULATED = (
    "kernels", "atomics", "shared_memory", "shared_loads", "warp", "records", "reduction", "print", "graphs", "streams",
    "pointers", "private_and_constant_memory", "scalars", "boundscheck", "stack", "wave", "block", "algorithms",
    "histograms", "segmented_sorts", "merges_and_runs", "several_devices", "matrix", "inline_assembly",
    "algorithms_in_place", "algorithms_of_dates", "algorithms_on_streams", "nested_records", "operators",
    "optional_indices", "vector_memory", "named_arguments", "pixels", "ranges", "rest_parameter", "appending",
    "clamped_windows", "rows_by_division", "jit_options", "marked_parts",
    "none_arguments", "enumerations", "dates", "inner_functions",
)  # fmt: skip
EMULATED_WITH_ROCM = (
    "random", "math", "fp16", "bf16", "bits", "vectors", "saturation", "division", "directed_rounding", "fastmath",
    "narrow_casts", "narrowing", "hardware_operations", "device_functions", "array_elements", "external_functions",
    "hip_functions", "hip_extensions", "c_helpers", "numpy_in_kernels", "linear_algebra", "captured_arrays", "ufuncs",
    "vectorize", "cache_hints", "transfer_hints", "special_functions", "fp8", "value_records", "texture",
    "powers", "function_choice", "element_functions",
)  # fmt: skip
EMULATED_QUICK = ("records", "warp", "streams", "graphs", "pointers", "private_and_constant_memory")
"""Modules of core's tests for an emulated GPU: those that need nothing else, those that need ROCm's device library, and
those of the quick run."""
