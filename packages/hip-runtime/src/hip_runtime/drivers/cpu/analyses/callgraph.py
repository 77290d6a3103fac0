"""The call graph of a module of SPMD bitcode: what a kernel reaches, and which functions synchronise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from hip_devicelib import spmd
from hip_devicelib.errors import CodeObjectError
from hip_runtime.drivers.cpu.abi import intrinsics
from hip_runtime.drivers.cpu.ir.lexer import TokenKind, tokenize
from hip_runtime.drivers.cpu.ir.module_text import PrintedModule
from hip_runtime.errors import ModuleLoadError, UnsupportedError


@dataclass
class Reach:
    """What a kernel reaches through its calls."""

    functions: set[str] = field(default_factory=set)
    """All functions, including the kernel and declarations."""
    synchronising: set[str] = field(default_factory=set)
    """Defined functions that reach a synchronising operation."""

    @property
    def waiting(self) -> list[str]:
        """The synchronising operations that are called."""
        return sorted(self.functions & spmd.SYNCHRONISING)

    @property
    def shared_arrays(self) -> list[spmd.SharedArray]:
        """The arrays of shared memory, sorted by name; `ModuleLoadError` if a name encodes an impossible array."""
        try:
            return [spmd.read_shared_array(name) for name in sorted(self.functions) if name.startswith(spmd.SHARED)]
        except CodeObjectError as error:
            raise ModuleLoadError(str(error)) from None

    @property
    def uses_dynamic_shared(self) -> bool:
        """Whether the launch decides the size of shared memory."""
        return not self.functions.isdisjoint({spmd.DYNAMIC_SHARED, spmd.DYNAMIC_SHARED_BYTES})

    @property
    def watches_stack(self) -> bool:
        """Whether functions check how much of the stack is left."""
        return spmd.STACK_IS_LOW in self.functions

    @property
    def observed(self) -> bool:
        """Whether threads report what they do to the observer."""
        return spmd.OBSERVE in self.functions


def name_functions(module: Any) -> None:
    """Name every function of *module*: references to an unnamed one print a number that llvmlite does not expose."""
    for number, function in enumerate(module.functions):
        if not function.name:
            function.name = f"unnamed.{number}"


def survey(module: Any, kernel: str) -> Reach:
    """What *kernel* reaches in *module*, whose functions all have names. Raises `ModuleLoadError` for an unknown
    ``spmd.`` function, `UnsupportedError` if a synchronising function cannot be inlined."""
    names: set[str] = set()
    for function in module.functions:
        name = function.name
        names.add(name)
        if not name.startswith(spmd.PREFIX):
            continue
        if not function.is_declaration:
            raise ModuleLoadError(
                f"bitcode that defines {name!r} cannot be linked: names that start with 'spmd.' are the CPU device's"
            )
        if not spmd.is_known(name):
            raise ModuleLoadError(f"the bitcode calls {name!r}, which the CPU device does not have")
    if not any(intrinsics.affects_strategy(name) for name in names):
        return Reach({kernel})
    calls, addressed = _read_calls(module, names)
    reach = Reach(_closure([kernel], calls))
    callers: dict[str, list[str]] = {}
    for caller, callees in calls.items():
        for callee in callees:
            callers.setdefault(callee, []).append(caller)
    reach.synchronising = _closure(spmd.SYNCHRONISING & names, callers) & reach.functions & calls.keys()
    _check_inlining(module, kernel, reach, calls, addressed)
    return reach


def _read_calls(module: Any, names: set[str]) -> tuple[dict[str, set[str]], set[str]]:
    """The direct callees of each defined function, and the functions whose address is taken.

    They are read from the printed module: querying the operands of each instruction takes five times as long.
    """
    calls: dict[str, set[str]] = {}
    addressed: set[str] = set()
    printed = PrintedModule(module)
    for name in printed.functions:
        callees = calls.setdefault(name, set())
        for instruction in printed.instructions(name):
            if "@" in instruction:
                _read_references(instruction, names, callees, addressed)
    for caller in calls:
        calls[caller] |= addressed - {caller}  # a function whose address is taken may be called anywhere
    return calls, addressed


def _read_references(instruction: str, names: set[str], callees: set[str], addressed: set[str]) -> None:
    """Add the functions among *names* that *instruction* calls to *callees*, others that it refers to to
    *addressed*."""
    tokens = tokenize(instruction)
    for token, following in pairwise(tokens):
        if token.kind is TokenKind.GLOBAL and token.text in names:
            called = following.kind is TokenKind.MARK and following.text == "("
            (callees if called else addressed).add(token.text)
    if tokens[-1].kind is TokenKind.GLOBAL and tokens[-1].text in names:
        addressed.add(tokens[-1].text)


def _closure(start: Iterable[str], edges: dict[str, Any]) -> set[str]:
    found = set(start)
    waiting = list(found)
    while waiting:
        for name in edges.get(waiting.pop(), ()):
            if name not in found:
                found.add(name)
                waiting.append(name)
    return found


def _check_inlining(module: Any, kernel: str, reach: Reach, calls: dict[str, set[str]], addressed: set[str]) -> None:
    among = {name: calls[name] & reach.synchronising for name in reach.synchronising}
    for name in sorted(reach.synchronising):
        if name in _closure(among[name], among):
            raise UnsupportedError(
                f"kernel {kernel!r} reaches a barrier or a wave operation in {name!r}, which calls itself; the "
                "CPU device has to inline such functions: synchronise outside of the recursion"
            )
        if name in addressed:
            raise UnsupportedError(
                f"kernel {kernel!r} reaches a barrier or a wave operation in {name!r}, whose address is taken; "
                "the CPU device has to inline such functions: call it by its name"
            )
        attributes = b" ".join(module.get_function(name).attributes).split()
        forbidden = [word.decode() for word in (b"noinline", b"optnone") if word in attributes]
        if forbidden and name != kernel:
            raise UnsupportedError(
                f"kernel {kernel!r} reaches a barrier or a wave operation in {name!r}, which is marked "
                f"{' and '.join(forbidden)}; the CPU device has to inline such functions: remove the attribute"
            )
