"""The schedule of a launch's threads: one runs at any time, the lowest that can continue.

A thread that does not wait runs in the same operating-system thread as the one before it, the first in the caller's. If
one has to wait for others, they continue in another operating-system thread; a debugger still sees one thread after
another.
"""

from __future__ import annotations

import contextvars
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hip_runtime.errors import LaunchError
from numba_hip.compilation.kernel_code import a_result
from numba_hip.language import stub
from numba_hip.simulator.divisions import divisions
from numba_hip.simulator.frames import Site, calling_site
from numba_hip.simulator.messages import explain, hide_own_frames

Dim3 = tuple[int, int, int]


class SimulationDeadlock(LaunchError):
    """Threads that wait for others which never reach the same point."""


class _Cancelled(BaseException):
    """Unwinds a thread that waits when another has raised."""


@dataclass
class Wait:
    """What a thread waits for: a scope (``"block"``, ``"wave"`` or ``"grid"``), a place in the program, and its own
    value. *resolve* computes the results of all that met there, by their lanes; *mask* is a set of lanes."""

    scope: str
    site: Site
    value: Any
    resolve: Callable[[dict[int, Any], SimulatedThread], Any]
    mask: int


@dataclass(eq=False)
class SimulatedThread:
    """One thread of a launch."""

    index: Dim3
    number: int
    """Its linear index in the block."""
    block: SimulatedBlock
    started: bool = False
    done: bool = False
    waiting: Wait | None = None
    result: Any = None
    resumed: threading.Event = field(default_factory=threading.Event)

    @property
    def lane(self) -> int:
        """Index in its wave."""
        return self.number % self.block.grid.wave_size

    @staticmethod
    def call(function: Callable[..., Any], raises_divisions: bool, *args: Any, **kws: Any) -> Any:
        """Run a kernel or a device function, in which divisions by zero are errors if *raises_divisions*."""
        with divisions(raises_divisions):
            return function(*args, **kws)

    def wait(
        self, scope: str, value: Any, resolve: Callable[[dict[int, Any], SimulatedThread], Any], mask: int = -1
    ) -> Any:
        """Wait until the threads of *scope* are here; returns this thread's result of *resolve*."""
        self.waiting = Wait(scope, calling_site(), value, resolve, mask)
        self.block.grid.park(self)
        return self.result


@dataclass(eq=False)
class SimulatedBlock:
    """A block of a launch, with its shared arrays by the places in the program that create them."""

    index: Dim3
    grid: Grid
    threads: list[SimulatedThread] = field(default_factory=list)
    shared: dict[tuple[object, ...], Any] = field(default_factory=dict)

    @property
    def live(self) -> list[SimulatedThread]:
        """Threads that have not returned."""
        return [thread for thread in self.threads if not thread.done]


def _indices(extents: Dim3) -> Iterator[Dim3]:
    return ((x, y, z) for z in range(extents[2]) for y in range(extents[1]) for x in range(extents[0]))


class Grid:
    """One launch of *function* with *args*: `run` returns when all threads have, or raises what one of them raised."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        grid: Dim3,
        block: Dim3,
        dynamic_shared: int,
        waves: int,
        raises_divisions: bool,
    ) -> None:
        self.function = function
        self.args = args
        self.grid_dim = grid
        self.block_dim = block
        self.dynamic_shared = dynamic_shared
        self.wave_size = waves
        self.raises_divisions = raises_divisions
        self.error: BaseException | None = None
        self._blocks = _indices(grid)
        self._running: list[SimulatedBlock] = []
        self._ready: deque[SimulatedThread] = deque()
        self._fresh: deque[SimulatedThread] = deque()
        self._helpers: list[threading.Thread] = []
        self._finished = threading.Event()
        self._cancelled = False

    def run(self) -> None:
        """Run all threads of all blocks."""
        try:
            self._work(self._choose())
            self._finished.wait()
        finally:  # also if the user interrupts
            self._cancel()
            for helper in self._helpers:
                helper.join()
        if self.error is not None:
            raise self.error

    def park(self, thread: SimulatedThread) -> None:
        """Let others run until *thread* can continue."""
        if self._cancelled:  # clean-up code of the program, while threads unwind
            raise _Cancelled
        following = self._choose()
        if following is thread:
            return
        if following is not None:
            self._hand_over(following)
        thread.resumed.wait()
        thread.resumed.clear()
        if self._cancelled:
            raise _Cancelled

    def _hand_over(self, thread: SimulatedThread) -> None:
        if thread.started:
            thread.resumed.set()
            return
        context = contextvars.copy_context()  # settings hold in this context
        helper = threading.Thread(target=context.run, args=(self._work, thread), name=self.function.__name__)
        self._helpers.append(helper)
        helper.start()

    def _work(self, thread: SimulatedThread | None) -> None:
        """Run threads one after another, until one that waits elsewhere can continue, or none is left."""
        while thread is not None and not self._cancelled:
            if thread.started:
                thread.resumed.set()
                return
            thread.started = True
            self._execute(thread)
            thread = self._choose()  # after a failure there is none, or the loop has ended
        self._finished.set()

    def _execute(self, thread: SimulatedThread) -> None:
        try:
            with stub.interpreted_by(thread):
                returned = thread.call(self.function, self.raises_divisions, *self.args)
                if returned is not None:
                    raise a_result(self.function.__name__, repr(returned))
        except _Cancelled:
            pass
        except BaseException as error:
            self._fail(_located(error, thread))
        thread.done = True

    def _fail(self, error: BaseException) -> None:
        if self.error is None:
            self.error = error
        self._cancel()

    def _cancel(self) -> None:
        self._cancelled = True
        for block in self._running:
            for thread in block.threads:
                thread.resumed.set()
        self._finished.set()

    # Who is next.

    def _choose(self) -> SimulatedThread | None:
        if self._cancelled:  # threads unwind at the same time, so what they wait for is not to be looked at
            return None
        while True:
            if self._ready:
                return self._ready.popleft()
            if self._fresh:
                return self._fresh.popleft()
            self._running = [block for block in self._running if block.live]
            if any(self._release_wave(block) or self._release_block(block) for block in self._running):
                continue
            index = next(self._blocks, None)
            if index is not None:
                self._begin(index)
            elif not self._running:
                return None
            elif not self._release_grid():
                self._fail(self._deadlock())
                return None

    def _begin(self, index: Dim3) -> None:
        block = SimulatedBlock(index, self)
        block.threads = [SimulatedThread(place, number, block) for number, place in enumerate(_indices(self.block_dim))]
        self._running.append(block)
        self._fresh.extend(block.threads)

    def _release(self, threads: Sequence[SimulatedThread], key: Callable[[SimulatedThread], int]) -> bool:
        met = {key(thread): thread.waiting.value for thread in threads if thread.waiting is not None}
        for thread in threads:
            assert thread.waiting is not None
            thread.result = thread.waiting.resolve(met, thread)
        for thread in threads:
            thread.waiting = None
        self._ready.extend(threads)
        return True

    def _release_wave(self, block: SimulatedBlock) -> bool:
        for start in range(0, len(block.threads), self.wave_size):
            lanes = [thread for thread in block.threads[start : start + self.wave_size] if not thread.done]
            places: dict[Site, list[SimulatedThread]] = {}
            for thread in lanes:
                if thread.waiting is not None and thread.waiting.scope == "wave":
                    places.setdefault(thread.waiting.site, []).append(thread)
            if places:
                first = min(places, key=lambda site: (self._lacks(places[site], lanes), site))
                return self._release(places[first], lambda thread: thread.lane)
        return False

    @staticmethod
    def _lacks(met: Sequence[SimulatedThread], lanes: Sequence[SimulatedThread]) -> int:
        """How many lanes in the mask have not returned and are not here."""
        assert met[0].waiting is not None
        mask = met[0].waiting.mask
        return sum(bool(mask >> lane.lane & 1) for lane in lanes) - sum(bool(mask >> one.lane & 1) for one in met)

    def _release_block(self, block: SimulatedBlock) -> bool:
        waits = [thread.waiting for thread in block.live]
        places = {(wait.scope, wait.site) for wait in waits if wait is not None}
        if len(places) != 1 or next(iter(places))[0] != "block":
            return False
        return self._release(block.live, lambda thread: thread.number)

    def _release_grid(self) -> bool:
        live = [thread for block in self._running for thread in block.live]
        if any(thread.waiting is None or thread.waiting.scope != "grid" for thread in live):
            return False
        return self._release(live, id)

    def _deadlock(self) -> SimulationDeadlock:
        live = [thread for block in self._running for thread in block.live]
        places: dict[Site, int] = {}
        for thread in live:
            if thread.waiting is not None:
                places[thread.waiting.site] = places.get(thread.waiting.site, 0) + 1
        shown = "; ".join(f"{count} at {file}:{line}" for (file, line, _), count in sorted(places.items()))
        return SimulationDeadlock(
            f"kernel {self.function.__name__!r}: threads of block {live[0].block.index} wait for one another for ever: "
            f"{shown}. All threads of a block that have not returned must come to the same barrier"
        )


def _located(error: BaseException, thread: SimulatedThread) -> BaseException:
    """*error* with thread and block in its message, as compiled kernels raise it; caused by the original."""
    if not isinstance(error, Exception):
        return error
    place = f"tid={list(thread.index)} ctaid={list(thread.block.index)}"
    said = explain(error, thread.block.grid.function)
    message = f"{place}: {said}" if said else place
    hide_own_frames(error)
    try:
        located = type(error)(message, *error.args[1:])
    except Exception:  # an exception whose constructor takes other arguments
        error.add_note(message) if hasattr(error, "add_note") else None
        return error
    located.__cause__ = error
    return located
