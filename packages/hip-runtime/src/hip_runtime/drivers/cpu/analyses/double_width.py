"""Whether gangs of twice as many lanes are better."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.clamps import find_clamps
from hip_runtime.drivers.cpu.analyses.coherent_divisions import shifts_lanes
from hip_runtime.drivers.cpu.analyses.grid_stride_loops import has_grid_stride_loop
from hip_runtime.drivers.cpu.analyses.recurrences import waits_for_results
from hip_runtime.drivers.cpu.analyses.register_pressure import has_registers_left
from hip_runtime.drivers.cpu.analyses.type_sizes import SizeOf
from hip_runtime.drivers.cpu.analyses.uniform_atomics import gives_places
from hip_runtime.drivers.cpu.analyses.vector_shapes import VectorShapes


def gains_by_double_width(
    shapes: VectorShapes, size_of: SizeOf, width: int, rows: int, fills_gangs: bool
) -> bool:  # fmt: skip
    """Whether twice as many lanes than *width* are better for a function with *shapes*, of as many *rows* as run at
    once; *fills_gangs* says whether all of its gangs would then be full."""
    return not shifts_lanes(shapes, width) and (
        has_grid_stride_loop(shapes, size_of, width)
        or waits_for_results(shapes, size_of, width, rows)
        or gives_places(shapes)
        or (fills_gangs and not _has_clamps(shapes) and has_registers_left(shapes, size_of, width, rows))
    )


def _has_clamps(shapes: VectorShapes) -> bool:
    """Whether indices are clamped: of twice the lanes, twice as many run with those at an edge."""
    return any(find_clamps(block, shapes) for block in shapes.order.blocks)
