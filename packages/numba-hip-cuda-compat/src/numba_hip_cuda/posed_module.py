"""The description of one posed module, for the catalogues."""

from __future__ import annotations

from collections.abc import Mapping


class Module:
    """One posed module: what its names stand for, as ``module:name``, and which HIP cannot have, and why.

    Names that are in neither are those of the posed module *like*, and then of the module *rest*, where they are given.
    Those of the module *beyond* can be used and are not listed: programs for AMD's numba-hip find them in `numba.cuda`.
    Why names of `numba.cuda` are left out is in `numba_hip_cuda.omitted_names`.
    """

    __slots__ = (
        "absent",
        "beyond",
        "like",
        "names",
        "rest",
    )  # a dataclass would take longer to make than all the modules

    def __init__(
        self,
        names: Mapping[str, str],
        absent: Mapping[str, str] | None = None,
        rest: str | None = None,
        like: str | None = None,
        beyond: str | None = None,
    ) -> None:
        self.names = names
        self.absent = absent or {}
        self.rest = rest
        self.like = like
        self.beyond = beyond


def from_module(module: str, *names: str) -> dict[str, str]:
    """Each of *names* as *module* has it."""
    return {name: f"{module}:{name}" for name in names}
