"""Names that mean something only in a kernel."""

from __future__ import annotations

from typing import Any, NoReturn


class Stub:
    """A name of the kernel language; outside of kernels it only has a name and a docstring."""

    def __init__(self, name: str, meaning: str) -> None:
        self.__name__ = name
        self.__doc__ = meaning

    def __repr__(self) -> str:
        return f"<hip.{self.__name__}, of the kernel language>"

    def __call__(self, *args: Any, **kws: Any) -> NoReturn:
        """Refuse: there is no thread here to answer for."""
        raise TypeError(f"hip.{self.__name__} means something in a kernel only; this is a call from Python")

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.__name__,)


def _find(name: str) -> Any:
    import numba_hip

    return getattr(numba_hip, name)
