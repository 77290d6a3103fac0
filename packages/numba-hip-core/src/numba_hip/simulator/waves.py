"""Wave operations in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba_hip.language.stub import INTERPRETED
from numba_hip.language.value_exchange import ROW
from numba_hip.simulator.functions import means
from numba_hip.simulator.schedule import SimulatedThread

Lanes = dict[int, Any]
ALL = (1 << 64) - 1


def _meet(thread: SimulatedThread, value: Any, result: Callable[[Lanes, SimulatedThread], Any], mask: int = -1) -> Any:
    return thread.wait("wave", value, result, int(mask))


def _bits_of(lanes: Lanes, mask: int = -1) -> int:
    return sum(1 << lane for lane in lanes) & int(mask) & ALL


def _votes(lanes: Lanes, mask: int) -> int:
    return _bits_of({lane: vote for lane, vote in lanes.items() if vote}, mask)


VOTES: dict[str, Callable[[int, int], Any]] = {
    "all": lambda votes, active: votes == active,
    "any": lambda votes, active: votes != 0,
    "eq": lambda votes, active: votes in (0, active),
    "ballot": lambda votes, active: votes,
}


def _vote(name: str, result: Callable[[int, int], Any]) -> None:
    def masked(thread: SimulatedThread, mask: int, predicate: Any) -> Any:
        return _meet(thread, bool(predicate), lambda met, one: result(_votes(met, mask), _bits_of(met, mask)), mask)

    INTERPRETED[f"{name}_sync"] = masked
    if name != "eq":
        INTERPRETED[name] = lambda thread, predicate: masked(thread, -1, predicate)


for _name, _result in VOTES.items():
    _vote(_name, _result)

INTERPRETED["activemask"] = lambda thread: _meet(thread, None, lambda met, one: _bits_of(met))
INTERPRETED["lanemask_lt"] = lambda thread: (1 << thread.lane) - 1
INTERPRETED["lanemask_le"] = lambda thread: (2 << thread.lane) - 1
INTERPRETED["lanemask_eq"] = lambda thread: 1 << thread.lane
INTERPRETED["lanemask_ge"] = lambda thread: (1 << thread.block.grid.wave_size) - (1 << thread.lane)
INTERPRETED["lanemask_gt"] = lambda thread: (1 << thread.block.grid.wave_size) - (2 << thread.lane)
INTERPRETED["syncwarp"] = lambda thread, mask=-1: _meet(thread, None, lambda met, one: None, mask)


def _from_group(lane: int, operand: int, width: int) -> int:
    return (lane & ~(width - 1)) | (operand & (width - 1))


def _from_below(lane: int, operand: int, width: int) -> int:
    return lane - operand if lane - operand >= (lane & -width) else lane


def _from_above(lane: int, operand: int, width: int) -> int:
    return lane + operand if lane + operand < (lane & -width) + width else lane


def _from_other(lane: int, operand: int, width: int) -> int:
    return lane ^ operand if (lane ^ operand) < (lane & -width) + width else lane


def _shuffle(name: str, source: Callable[[int, int, int], int], row: int | None = None) -> None:
    def masked(thread: SimulatedThread, mask: int, value: Any, lane: int, width: int | None = row) -> Any:
        lanes = thread.block.grid.wave_size if width is None else int(width)

        def pull(met: Lanes, one: SimulatedThread) -> Any:
            return met.get(source(one.lane, int(lane), lanes), value)

        return _meet(thread, value, pull, mask)

    INTERPRETED[f"{name}_sync"] = masked
    INTERPRETED[name] = lambda thread, value, lane, width=row: masked(thread, -1, value, lane, width)


_shuffle("shfl", _from_group)
_shuffle("shfl_up", _from_below)
_shuffle("shfl_down", _from_above)
_shuffle("shfl_xor", _from_other)
_shuffle("wave.shuffle", _from_group)
_shuffle("wave.shuffle_up", _from_below)
_shuffle("wave.shuffle_down", _from_above)
_shuffle("wave.shuffle_xor", _from_other)
_shuffle("wave.shuffle_up_in_row", _from_below, ROW)
_shuffle("wave.shuffle_down_in_row", _from_above, ROW)


@means("match_any_sync")
def _match_any(thread: SimulatedThread, mask: int, value: Any) -> int:
    return int(_meet(
        thread, value, lambda met, one: _bits_of({n: v for n, v in met.items() if v == met[one.lane]}, mask), mask
    ))  # fmt: skip


@means("match_all_sync")
def _match_all(thread: SimulatedThread, mask: int, value: Any) -> tuple[int, bool]:
    def compare(met: Lanes, one: SimulatedThread) -> tuple[int, bool]:
        taking_part = {lane: given for lane, given in met.items() if int(mask) >> lane & 1}
        same = all(given == met[one.lane] for given in taking_part.values())
        return (_bits_of(taking_part) if same else 0), same

    found: tuple[int, bool] = _meet(thread, value, compare, mask)
    return found


INTERPRETED["match_any"] = lambda thread, value: _match_any(thread, -1, value)
INTERPRETED["match_all"] = lambda thread, value: _match_all(thread, -1, value)


@means("readlane")
def _readlane(thread: SimulatedThread, value: Any, lane: int) -> Any:
    return _meet(thread, value, lambda met, one: met.get(int(lane), value))


@means("readfirstlane")
def _readfirstlane(thread: SimulatedThread, value: Any) -> Any:
    return _meet(thread, value, lambda met, one: met[min(met)])


@means("same_in_wave")
def _same_in_wave(thread: SimulatedThread, value: Any) -> Any:
    return value


@means("mbcnt")
def _mbcnt(thread: SimulatedThread, mask: int, base: int = 0) -> int:
    return bin(int(mask) & ((1 << thread.lane) - 1)).count("1") + int(base)
