"""The parameters of a kernel: their names, for messages and named arguments, and their defaults."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from numba.core import types

from numba_hip.compilation.rest_parameter import rest_of
from numba_hip.errors import KernelArgumentError, KernelSignatureError
from numba_hip.suggestions import hint

_NEVER_PASSED = (types.UnicodeType, types.List, types.ListType, types.DictType, types.Set, types.PyObject)
"""Types that a signature may name, and no kernel takes."""


class Parameters:
    """The parameters of *function*, in order; ``names`` are without that of ``*args``, which is ``rest``."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._kernel = function.__name__
        self._signature = inspect.signature(function)
        self.rest = rest_of(function)
        self.names = tuple(name for name in self._signature.parameters if name != self.rest)

    @property
    def required(self) -> tuple[str, ...]:
        """The names of those that have no default."""
        parameters = self._signature.parameters
        return tuple(name for name in self.names if parameters[name].default is inspect.Parameter.empty)

    def names_of(self, args: Sequence[Any]) -> tuple[str, ...]:
        """What messages call each of *args*: the names of the parameters, as many as there are at least."""
        more = len(args) - len(self.names)
        if self.rest is None or more <= 0:
            return self.names
        return (*self.names, *(f"{self.rest}[{index}]" for index in range(more)))

    def check_types(self, args: Sequence[types.Type]) -> None:
        """`KernelSignatureError` for a signature with a type that no argument of a launch is of."""
        for name, kind in zip(self.names_of(args), args, strict=False):
            if isinstance(kind, types.Optional):
                raise KernelSignatureError(
                    f"parameter {name!r} of kernel {self._kernel} is {kind} in the signature, and a kernel is compiled "
                    f"either for None or for a value: give it two signatures, with none and with {kind.type}, or none "
                    "at all"
                )
            if isinstance(kind, _NEVER_PASSED):
                raise KernelSignatureError(
                    f"parameter {name!r} of kernel {self._kernel} is {kind} in the signature; kernels take numbers, "
                    "arrays and tuples of them"
                )

    def check_count(self, args: Sequence[Any]) -> None:
        """`KernelSignatureError` for a signature with more or fewer types than there are parameters."""
        if len(args) < len(self.names) or (len(args) > len(self.names) and self.rest is None):
            raise KernelSignatureError(
                f"Signature mismatch: kernel {self._kernel} takes {self._count()} ({', '.join(self.names)}); the "
                f"signature has {len(args)}"
            )

    def place(self, args: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, ...]:
        """*args* and those *named*, in the order of the parameters; `KernelArgumentError` where that cannot be."""
        left = dict(named)
        placed = list(args)
        for name in self.names[len(args) :]:
            if name in left:
                placed.append(left.pop(name))
            elif left and self._signature.parameters[name].default is not inspect.Parameter.empty:
                placed.append(self._signature.parameters[name].default)
            elif left:
                unknown = next((f", and {self._unknown(other)}" for other in left if other not in self.names), "")
                raise KernelArgumentError(f"kernel {self._kernel} is launched without the argument {name!r}{unknown}")
            else:
                break
        for name in left:
            if name in self.names:
                raise KernelArgumentError(f"kernel {self._kernel}: argument {name!r} is passed by position and by name")
            raise KernelArgumentError(f"kernel {self._kernel} {self._unknown(name)}")
        return tuple(placed)

    def _unknown(self, name: str) -> str:
        return f"has no parameter {name!r}{hint(name, self.names)}; it takes ({', '.join(self.names)})"

    def complete(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """*args* with the defaults of the parameters that are left out. Raises `KernelArgumentError` for a wrong number
        of arguments."""
        defaults = [self._signature.parameters[name].default for name in self.names[len(args) :]]
        if (len(args) > len(self.names) and self.rest is None) or inspect.Parameter.empty in defaults:
            raise KernelArgumentError(
                f"kernel {self._kernel} takes {self._count()} ({', '.join(self.names)}); the launch passes {len(args)}"
            )
        return (*args, *defaults)

    def _count(self) -> str:
        return f"{'' if self.rest is None else 'at least '}{len(self.names)} arguments"
