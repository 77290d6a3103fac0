"""The parts of a benchmark."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


class Case(ABC):
    """One implementation, with its data in place. The first `run` compiles what has to be compiled."""

    operations: int = 1
    """The number of operations in a `run`; times are per operation."""

    @abstractmethod
    def run(self) -> None:
        """The timed part."""

    def settle(self) -> None:  # noqa: B027 -- most have nothing left to do
        """Finish work that `run` has left; not timed."""

    @abstractmethod
    def check(self) -> None:
        """Raise `AssertionError` if the results of the runs so far differ from NumPy's."""

    def device(self) -> str:
        """The device that it runs on."""
        return "processor"


@dataclass(frozen=True)
class Benchmark:
    """Implementations of the same computation. Each is made by a function, whose argument tells whether it only has to
    be shown that they run.

    Results are compared with the implementation *peer*. *scale* and *unit* are for printing the time of one operation.
    *aim* is the ratio of processor time to the peer's that `hip` should reach. *unable* gives the reason for each other
    system without an implementation.
    """

    name: str
    description: str
    peer: str
    scale: float
    unit: str
    implementations: Mapping[str, Callable[[bool], Case]]
    aim: float | None = None
    unable: Mapping[str, str] = field(default_factory=dict)
