"""The description of a posed module in a catalog."""

from __future__ import annotations

from collections.abc import Mapping


class PosedModule:
    """A posed module: the object that each name stands for, as ``module:name``, and the names that HIP cannot have,
    with the reasons.

    Names that are in neither are looked up in the posed module *like* and then in the module *rest*, if given. Names of
    the module *beyond* can be used but are not listed: programs for AMD's numba-hip find them in `numba.cuda`. The
    reasons for omitted names of `numba.cuda` are in `numba_hip_cuda.omitted_names`.
    """

    __slots__ = (
        "absent",
        "beyond",
        "like",
        "names",
        "rest",
    )  # creating a dataclass would take longer than creating all the modules

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
    """Each of *names* as the name of the same object in *module*."""
    return {name: f"{module}:{name}" for name in names}
