"""Names that only have a meaning in kernels, and how it is defined."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.typing.templates import AbstractTemplate, signature

from hip_runtime.said_names import our
from numba_hip._numba.typing import fold_argument_types
from numba_hip.language.registry import lowering, typing

Lower = Callable[[Any, ir.IRBuilder, Any, Any], Any]
"""What makes LLVM IR of a call: of the target context, the builder, the signature and the values of the arguments."""

Definition = Callable[..., "tuple[types.Type, Lower] | None"]
"""What types a call: of the types of the arguments, it gives the type of the result and what lowers the call."""

Operation = Callable[..., ir.Value]
"""Makes LLVM IR of a call: of the target context, the builder and each argument, as the type it is computed with."""

INTERPRETED: dict[str, Callable[..., Any]] = {}
"""What the simulator does for a function of the kernel language, by its name, given the thread first."""

_current = threading.local()


def interpreter() -> Any:
    """The simulated thread that runs in this operating-system thread, or None."""
    return getattr(_current, "thread", None)


@contextmanager
def interpreted_by(thread: Any) -> Iterator[None]:
    """A block in which names of the kernel language refer to *thread*, of the simulator."""
    before, _current.thread = interpreter(), thread
    try:
        yield
    finally:
        _current.thread = before


class _Signature:
    """The signature of a `Stub`, for `inspect.signature`: names and defaults, without types, which depend on the
    call."""

    def __get__(self, stub: Stub | None, owner: type) -> inspect.Signature:
        if stub is None or stub.declared is None:
            raise AttributeError("__signature__")
        declared = stub.declared
        plain = [one.replace(annotation=inspect.Parameter.empty) for one in declared.parameters.values()]
        return declared.replace(parameters=plain, return_annotation=inspect.Signature.empty)


class Stub:
    """A name of the kernel language; outside of kernels it only has a name and a docstring."""

    __signature__ = _Signature()

    def __init__(
        self, name: str, meaning: str | None, module: str = "numba_hip", declared: inspect.Signature | None = None
    ) -> None:
        self.__name__ = name.rpartition(".")[2]
        self.__qualname__ = name
        self.__doc__ = meaning
        self.__module__ = module
        self.declared = declared
        """The signature of the definition, where this is a function."""
        self.define: Definition | None = None
        """The definition, where this is a function, for others that differ a little."""

    @property
    def said(self) -> str:
        """The name in messages."""
        return self.__qualname__ if self.__qualname__.startswith("cuda.") else our(self.__qualname__)

    def __repr__(self) -> str:
        return f"<function {self.__qualname__} of hip>"

    def __call__(self, *args: Any, **kws: Any) -> Any:
        """Raise an error outside the simulator: there is no current thread."""
        thread = interpreter()
        if thread is not None:
            function = INTERPRETED.get(self.__qualname__)
            if function is None:
                raise NotImplementedError(f"the simulator does not have {self.said}; turn it off for this kernel")
            try:
                return function(thread, *args, **kws)
            except TypeError:
                self._check_arguments(args, kws)
                raise
        raise TypeError(f"{self.said} can be called in kernels only, not from Python")

    def _check_arguments(self, args: tuple[Any, ...], kws: dict[str, Any]) -> None:
        """Raise a `TypeError` for a call that the definition does not take, as for a compiled one."""
        if self.declared is None:
            return
        try:
            self.declared.bind(*args, **kws)
        except TypeError:
            passed = (*map(repr, args), *(f"{keyword}={value!r}" for keyword, value in kws.items()))
            shown = ", ".join(self.declared.parameters)
            message = f"{self.said} takes ({shown}); this call passes ({', '.join(passed)})"
            raise TypeError(message) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return _find, (self.__module__, self.__name__)


def _find(module: str, name: str) -> Any:
    __import__(module)
    return getattr(sys.modules[module], name)


def device_function(name: str, *, by_target: bool = False) -> Callable[[Definition], Stub]:
    """Make the decorated definition a function of the kernel language, called ``hip.<name>``; or as *name* says if that
    begins with ``cuda.``, for those that are a little different in Numba CUDA.

    The definition has the parameters that callers see, defaults included, and receives the Numba type of each; a
    literal type if the caller wrote a literal; with *by_target* the compile target before them. It returns the result
    type and the function that lowers the call. For wrong types it raises `TypingError`, or `RequireLiteralValue` for an
    argument that has to be a literal.
    """

    def decorate(define: Definition) -> Stub:
        pysig = inspect.signature(define)
        if by_target:
            pysig = pysig.replace(parameters=list(pysig.parameters.values())[1:])
        stub = Stub(name, define.__doc__, define.__module__, pysig)
        stub.define = define
        shown = f"({', '.join(pysig.parameters)})"

        def target(typing_context: Any) -> tuple[Any, ...]:
            return (typing_context.compile_target,) if by_target else ()

        class Template(AbstractTemplate):
            key = stub
            prefer_literal = True

            def generic(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
                try:
                    folded = fold_argument_types(pysig, args, kws)
                except TypingError:
                    passed = (*map(str, args), *(f"{keyword}={value}" for keyword, value in kws.items()))
                    raise TypingError(f"{stub.said} takes {shown}; this call passes ({', '.join(passed)})") from None
                defined = define(*target(self.context), *folded)
                return None if defined is None else signature(defined[0], *folded).replace(pysig=pysig)

        typing.register(Template)
        typing.register_global(stub, types.Function(Template))

        @lowering.lower(stub, types.VarArg(types.Any))
        def _lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> Any:
            defined = define(*target(context.typing_context), *sig.args)
            if defined is None:
                raise TypingError(f"{stub.said} has no meaning for {sig.args}")
            return defined[1](context, builder, sig, args)

        return stub

    return decorate


def numeric_function(
    name: str,
    parameters: str,
    meaning: str,
    operation: Operation,
    *,
    operand: types.Type,
    result: types.Type,
    accepted: tuple[type[types.Type], ...],
    refusal: str,
    module: str,
) -> Stub:
    """Create a function ``hip.<name>`` of numbers, which are all converted to *operand* before the *operation*.

    Each letter of *parameters* is a parameter. Arguments must have types of the classes *accepted*; the message for any
    other says *refusal* of the function.
    """

    def define(*arguments: types.Type) -> tuple[types.Type, Lower]:
        for kind in map(number_type, arguments):
            if not isinstance(kind, accepted):
                raise TypingError(f"{our(name)} {refusal}, not a {kind}")

        def lower(context: Any, builder: ir.IRBuilder, sig: Any, args: Any) -> ir.Value:
            values = [context.cast(builder, value, kind, operand) for value, kind in zip(args, sig.args, strict=True)]
            return operation(context, builder, *values)

        return result, lower

    named = [inspect.Parameter(letter, inspect.Parameter.POSITIONAL_OR_KEYWORD) for letter in parameters]
    define.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # what inspect.signature() gives
    define.__doc__ = f"``{name}({', '.join(parameters)})``: {meaning}"
    define.__module__ = module
    return device_function(name)(define)


def given(argument: types.Type) -> Any:
    """The value of an argument that is a literal or was left out; `None` if it is only known at run time."""
    if isinstance(argument, types.Omitted):
        return argument.value
    return getattr(argument, "literal_value", None)


def number_type(argument: types.Type) -> types.Type:
    """The type of an argument that is used in arithmetic: that of the value if it is a literal or was left out."""
    if isinstance(argument, types.Omitted):
        return types.literal(argument.value).literal_type
    return types.unliteral(argument)
