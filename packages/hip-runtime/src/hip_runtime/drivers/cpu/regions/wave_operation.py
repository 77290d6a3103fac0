"""Wave operations through memory: from the arguments of a wave's active lanes to their results."""

from __future__ import annotations

from llvmlite import ir

from hip_devicelib import spmd
from hip_runtime.drivers.cpu.llvmir import I1, I64, allocate
from hip_runtime.drivers.cpu.regions.block_writer import BlockWriter, Condition
from hip_runtime.drivers.cpu.regions.formation import SyncPoint
from hip_runtime.drivers.cpu.regions.thread_loop import Bounds


class WaveOperation:
    """Writes one wave operation. Without *active*, all lanes are active."""

    def __init__(self, code: BlockWriter, point: SyncPoint, active: Condition | None) -> None:
        self._code = code
        self._builder = code.builder
        self._active = active
        self._operation = point.operation
        self._result = code.ctx.results.get(point)
        self._passed = code.ctx.passed[point]
        self._wave_size = code.item.wave_size

    def write_all(self) -> None:
        """Write it for every wave of the block."""
        code, builder = self._code, self._builder
        threads = code.item.order.threads
        whole, rest = divmod(threads, self._wave_size)
        if whole:
            with code.each_thread((I64(0), I64(whole))) as number:
                first = builder.mul(number, I64(self._wave_size), flags=("nuw", "nsw"))
                self.write((first, builder.add(first, I64(self._wave_size), flags=("nuw", "nsw"))))
        if rest:
            self.write((I64(whole * self._wave_size), I64(threads)))

    def write(self, bounds: Bounds) -> None:
        """Write it for the wave with the threads in *bounds*."""
        if self._result is None:
            return
        if self._operation.startswith(spmd.SHUFFLE):
            self._shuffle(bounds)
        else:
            self._collect(bounds)

    def _is_active(self, linear: ir.Value) -> ir.Value:
        return I1(1) if self._active is None else self._active(linear)

    def _collect(self, bounds: Bounds) -> None:
        """A ballot: a bit for each active lane, or for each that votes."""
        builder, code = self._builder, self._code
        assert self._result is not None
        lanes = allocate(code.entry, I64, "lanes")
        builder.store(I64(0), lanes)
        with code.each_thread(bounds) as linear:
            bit = self._is_active(linear)
            if self._operation == spmd.BALLOT:
                bit = builder.select(bit, self._passed[0].load(builder, linear), I1(0))
            bit = builder.shl(builder.zext(bit, I64), builder.sub(linear, bounds[0]))
            builder.store(builder.or_(builder.load(lanes, typ=I64), bit), lanes)
        found = builder.load(lanes, typ=I64)
        with code.each_thread(bounds) as linear:
            self._result.store(builder, found, linear)

    def _shuffle(self, bounds: Bounds) -> None:
        """The value of another lane if that is active, else the lane's own."""
        builder, code = self._builder, self._code
        assert self._result is not None
        values, sources = self._passed
        with code.each_thread(bounds) as linear, builder.if_then(self._is_active(linear)):
            lane = builder.zext(sources.load(builder, linear), I64)
            exists = builder.icmp_unsigned("<", lane, builder.sub(bounds[1], bounds[0]))
            source = builder.select(exists, builder.add(bounds[0], lane), linear)
            source = builder.select(self._is_active(source), source, linear)
            self._result.store(builder, values.load(builder, source), linear)
