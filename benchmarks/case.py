"""What a benchmark is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class Case(ABC):
    """One implementation, with its data in place; what has to be compiled is compiled by the first `run`."""

    operations: int = 1
    """How many operations a `run` does; times are given for one of them."""

    @abstractmethod
    def run(self) -> None:
        """What is timed."""

    def settle(self) -> None:  # noqa: B027 -- most have nothing left to do
        """Finish what `run` may have left to be done; not timed."""

    @abstractmethod
    def check(self) -> None:
        """Raise `AssertionError` if what the runs so far have computed differs from what NumPy computes."""

    def device(self) -> str:
        """What it runs on."""
        return "processor"


@dataclass(frozen=True)
class Benchmark:
    """Implementations of the same thing, each made by a function of whether it is only to be shown that they run.

    Results are compared with the implementation *peer*. *scale* and *unit* say how to write the time of one operation.
    *aim* is the ratio of processor time to the peer's that `hip` is meant to reach. *unable* says, for each other
    system that has no implementation here, why.
    """

    name: str
    description: str
    peer: str
    scale: float
    unit: str
    implementations: Mapping[str, Callable[[bool], Case]]
    aim: float | None = None
    unable: Mapping[str, str] = field(default_factory=dict)
