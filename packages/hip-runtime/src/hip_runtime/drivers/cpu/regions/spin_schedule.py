"""The round-robin schedule of threads in spin loops, which runs until all threads wait for the block or have returned.

A thread that reaches a yield is suspended. Once all threads have run, a pass resumes each thread that waits at a yield
until it reaches its next one, in the order of the yields and then of the threads. Threads that wait for the block are
skipped, and the block continues when no thread is at a yield.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.abi.launch_frame import FRAME
from hip_runtime.drivers.cpu.llvmir import I32
from hip_runtime.drivers.cpu.regions.block_writer import BlockWriter
from hip_runtime.drivers.cpu.regions.formation import Region, SyncPoint


class SpinSchedule:
    """Writes the passes of a block function whose waves need no schedule of their own."""

    def __init__(self, code: BlockWriter) -> None:
        self._code = code
        self._yields = code.graph.yields
        self._end = code.function.append_basic_block("pass.end")
        blocks = [*(code.point_blocks[point] for point in self._yields), self._end]
        self.start = blocks[0]
        """Where a pass begins."""
        self._behind = dict(zip(self._yields, blocks[1:], strict=True))

    def write_transition(self, region: Region) -> bool:
        """If *region* begins or may end at a yield: write the transition to the next yield of a pass; whether it
        does."""
        builder = self._code.builder
        if region.start is not None and region.start.yields:
            builder.branch(self._behind[region.start])
            return True
        if any(point.yields for point in region.exits):
            builder.branch(self.start)
            return True
        return False

    def write_pass_end(self) -> None:
        """Write what follows a pass: another one, or the block's next region."""
        code, builder = self._code, self._code.builder
        builder.position_at_end(self._end)
        exit_after_fault(code)
        go = builder.append_basic_block("nobody.spins")
        extremes = code.find_state_range(code.all_threads)
        builder.cbranch(is_below(code, extremes[0], self._yields), self.start, go)
        builder.position_at_end(go)
        code.write_common_transition([point for point in code.graph.points if point.is_block_wide], True, extremes)


def is_below(code: BlockWriter, number: ir.Value, points: list[SyncPoint]) -> ir.Value:
    """Whether *number* is at most the number of the last of *points*."""
    return code.builder.icmp_unsigned("<=", number, I32(points[-1].number))


def exit_after_fault(code: BlockWriter) -> None:
    """End the block if a thread of the launch has faulted, as others may spin on what it would have written."""
    builder = code.builder
    frame = code.item.layout.load(builder, code.place, "frame")
    launch = FRAME.load(builder, frame, "launch")
    fault = builder.or_(*(FRAME.load_atomic(builder, place, "fault_taken") for place in (frame, launch)))
    go = builder.append_basic_block("no.fault")
    builder.cbranch(builder.icmp_unsigned("==", fault, I32(0)), go, code.finish)
    builder.position_at_end(go)
