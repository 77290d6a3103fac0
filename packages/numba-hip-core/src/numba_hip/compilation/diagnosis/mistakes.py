"""Kinds of mistakes: patterns in Numba's messages, and what each means. Numba's own words stay where they are good,
because a search for them finds answers.

Numba's own words stay where they are good: they are what one finds answers with.
"""

from __future__ import annotations

import ast
import builtins
import math
import re
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from numba_hip.compilation.diagnosis.failure import Failure
from numba_hip.compilation.diagnosis.missing_implementations import no_implementation
from numba_hip.compilation.diagnosis.unsupported_python import (
    CLASSES,
    DICTS,
    LISTS,
    OPCODES,
    SETS,
    TEXT,
    TRY,
    UNSUPPORTED,
    WITH,
    construct_in,
    plain,
)
from numba_hip.suggestions import hint

Say = Callable[[Failure, "re.Match[str]"], "str | None"]
"""What a reason means that matches; None where it is of another kind after all."""

_COMPUTE_OTHERWISE = "write a loop over the elements, or call it before the launch and pass what it gives"

KINDS: list[tuple[re.Pattern[str], bool, Say]] = []
"""Patterns of reasons, whether these can be of an implementation that was tried, and what is said; the first that
matches counts."""


def meaning(failure: Failure) -> str:
    """What is wrong, and what to do."""
    reasons = failure.message.reasons
    for pattern, of_tried, say in KINDS:
        for reason in reasons:
            found = pattern.search(reason.text) if of_tried or not reason.tried else None
            said = None if found is None else say(failure, found)
            if said is not None:
                return said
    if failure.message.call:
        return no_implementation(failure)
    return plain(reasons[0].text) if reasons else failure.text


def kind(pattern: str, *, of_tried: bool = False) -> Callable[[Say], Say]:
    """Register the decorated function as the explanation of reasons that match *pattern*."""

    def enter(say: Say) -> Say:
        KINDS.append((re.compile(pattern), of_tried, say))
        return say

    return enter


@kind(r"'\w+' object has no attribute '(\w+)'")
def _what_the_target_lacks(failure: Failure, found: re.Match[str]) -> str | None:
    lacking = found[1]
    if "try_status" in lacking:
        failure.move_to(lambda node: isinstance(node, ast.Try))
    return next((said for word, said in UNSUPPORTED.items() if word in lacking), None)


@kind(r"unsupported opcode \((\w+)\)")
def _opcode(failure: Failure, found: re.Match[str]) -> str | None:
    said = next((said for word, said in OPCODES.items() if found[1].startswith(word)), None)
    shown = f"Use of unsupported opcode ({found[1]})"
    return shown if said is None else f"{shown}: {said}"


@kind(r"format spec in f-strings")
def _format(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(lambda node: isinstance(node, ast.FormattedValue) and node.format_spec is not None)
    return TEXT


@kind(r"'with \(context manager\)|'with'|context manager")
def _with(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(lambda node: isinstance(node, ast.With))
    return WITH


@kind(r"'try'|try .. except|exception handling")
def _try(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(lambda node: isinstance(node, ast.Try))
    return TRY


@kind(r"The use of yield in a closure is unsupported|yield")
def _generator(failure: Failure, found: re.Match[str]) -> str | None:
    if not failure.has(ast.GeneratorExp):
        return None
    return f"{found[0]}, and so are generator expressions: write a loop"


@kind(r"Untyped global name '(\w+)'|Cannot determine Numba type of <class '([\w.]+)'>")
def _value_from_outside(failure: Failure, found: re.Match[str]) -> str | None:
    text = found.string
    named, typed = re.search(r"name '(\w+)'", text), re.search(r"<class '([\w.]+)'>", text)
    if named is None or typed is None:
        return None
    name = named[1]
    return f"{plain(text)}; {_advice_on_value(failure, name, typed[1])}"


def _advice_on_value(failure: Failure, name: str, kind_of_value: str) -> str:
    """What to do instead of using *name*, a value of a type that kernels do not support."""
    value = failure.names.get(name)
    if kind_of_value == "function":
        code = getattr(value, "__code__", None)
        where = "" if code is None else f" ({code.co_filename}:{code.co_firstlineno})"
        return f"a kernel calls functions that are compiled: put @hip.jit(device=True) above {name}{where}"
    if kind_of_value in ("builtin_function_or_method", "type") and hasattr(builtins, name):
        return f"{name} is Python's own and runs on the host: use it before the launch, and pass what it gives"
    advice = {
        "type": CLASSES,
        "dict": f"{DICTS}; constants can be in tuples",
        "set": SETS,
        "str": TEXT,
        "numba_hip.dispatch.dispatcher.Dispatcher": "launch it from the host",
    }
    return advice.get(kind_of_value, CLASSES)


@kind(r"(?:List|reflected list|list)\(|ListType|[Ll]ist")
def _list(failure: Failure, found: re.Match[str]) -> str | None:
    outside = re.search(r"(?:global|freevar)\((\w+): \[", failure.text)
    if outside is not None:
        name = outside[1]
        return (
            f"{name} is a list, which a kernel does not take: make it a tuple, {name} = ({name}[0], ...), or an array, "
            f"np.array({name}), whose values become constants"
        )
    return LISTS if failure.has(ast.List, ast.ListComp) else None


@kind(r".*")
def _construct(failure: Failure, found: re.Match[str]) -> str | None:
    return construct_in(found.string)


@kind(r"wrong tuple length .*expected (\d+), got (\d+)")
def _unpack(failure: Failure, found: re.Match[str]) -> str:
    return f"wrong tuple length: {found[1]} names on the left, {found[2]} values on the right"


@kind(r"Type of variable '.*' cannot be determined")
def _walrus(failure: Failure, found: re.Match[str]) -> str | None:
    named = next((node for node in failure.nodes if isinstance(node, ast.NamedExpr)), None)
    if named is None:
        return None
    name = named.target.id
    return (
        f"Numba does not find the type of what ':=' is a part of here: assign before, in a line of its own "
        f"({name} = {ast.unparse(named.value)}), and use {name}"
    )


@kind(r"name '(\w+)' is not defined")
def _undefined(failure: Failure, found: re.Match[str]) -> str:
    name = found[1]
    failure.move_to(lambda node: isinstance(node, ast.Name) and node.id == name)
    return f"{found.string}{hint(name, [*failure.names, *dir(builtins)])}"


@kind(r"module 'numpy' has no attribute 'Literal\[")
def _text_of_a_constant(failure: Failure, found: re.Match[str]) -> str:
    """A NumPy function of which Numba has only a form that puts a constant into the text of an error."""
    return f"Numba has no form of this call for kernels: {_COMPUTE_OTHERWISE}"


@kind(r"module '([\w.]+)' has no attribute '(\w+)'(.*)")
def _missing_in_module(failure: Failure, found: re.Match[str]) -> str:
    module, name, more = found.groups()
    return f"{_shown_module(module)} has no {name}{more or hint(name, _public(sys.modules.get(module)))}"


@kind(r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'")
def _host_function(failure: Failure, found: re.Match[str]) -> str:
    name, module_name = found.groups()
    module, shown = sys.modules.get(module_name), _shown_module(module_name)
    value = getattr(module, name, None)
    if value is None:
        return f"{shown} has no {name}{hint(name, _public(module))}"
    if module_name.partition(".")[0] == "numba_hip":
        return f"{shown}.{name} is for the host: call it before the launch, and pass what it gives to the kernel"
    known = {"time": "; hip.clock64() counts cycles", "numpy.random": "; hip.random has generators for kernels"}
    advice = known.get(module_name, "")
    return f"{shown}.{name} cannot be used in a kernel: call it before the launch, and pass what it gives{advice}"


@kind(r"Unknown attribute '(\w+)' of type (.*)")
def _unknown_attribute(failure: Failure, found: re.Match[str]) -> str:
    name, owner = found[1], found[2]
    if owner.startswith(("list(", "reflected list")):
        return LISTS
    if "Literal[str]" in owner or "unicode" in owner:
        return f"Unknown attribute '{name}' of text: {TEXT}"
    said = f"Unknown attribute '{name}' of type {plain(owner)}"
    if "array(" in owner:
        if name in ("append", "extend", "insert"):
            return f"{said}: arrays keep their size; pass one that is large enough"
        if name in _public(np.ndarray):
            return f"{said}: kernels have none; {_COMPUTE_OTHERWISE}"
        return said + hint(name, _public(np.ndarray))
    if owner.startswith(("float", "int", "uint")) and hasattr(math, name):
        return f"{said}; math.{name}(...) is a function"
    if owner.startswith(("hip.threadIdx", "hip.block", "hip.gridDim")):
        return f"{said}; there are x, y and z"
    return said


@kind(r"Use of unsupported NumPy function 'numpy\.([\w.]+)' or unsupported use")
def _numpy_function(failure: Failure, found: re.Match[str]) -> str:
    return f"np.{found[1]} cannot be used in a kernel (or not in this way): {_COMPUTE_OTHERWISE}"


@kind(r"Cannot unify (.+) and (.+) for '([^'.]+)(?:\.\d+)*'")
def _unify(failure: Failure, found: re.Match[str]) -> str:
    first, second, name = found.groups()
    if name.startswith("$"):
        return f"Cannot unify {plain(first)} and {plain(second)}: both ways through an expression give one type"
    return (
        f"Cannot unify {plain(first)} and {plain(second)} for '{name}': a variable has one type in all of a kernel; "
        "give what is of another type another name"
    )


@kind(r"Invalid use of getiter with parameters \((.*)\)")
def _iterate(failure: Failure, found: re.Match[str]) -> str:
    return f"{plain(found[1])} cannot be iterated over; range(n) counts from 0 to n - 1"


@kind(r"Cannot bind 'args=\((.*)\) kws=\{(.*)\}' to signature '\((.*)\)' due to \"(?:TypeError: )?(.*?)\"")
def _bind(failure: Failure, found: re.Match[str]) -> str:
    args, keywords, parameters, why = found.groups()
    named = re.search(r"<device function (\w+) ", failure.text)
    name = "the function" if named is None else named[1]
    passed = ", ".join(filter(None, [args.rstrip(","), re.sub(r"'(\w+)': ", r"\1=", keywords)]))
    return f"{name}({parameters}) is called with ({plain(passed)}): {why}"


@kind(r"Int value is too large: (-?\d+)", of_tried=True)
def _large_integer(failure: Failure, found: re.Match[str]) -> str:
    return f"{found[0]}; integers of kernels have up to 64 bits, from -2**63 to 2**64 - 1: use a float"


@kind(r"Cannot cast (.+?) to (\S+?):? (?:%|i\d|\{|double|float|@|<)")
def _cast(failure: Failure, found: re.Match[str]) -> str:
    return f"Cannot cast {plain(found[1])} to {found[2]}"


@kind(r"print in a kernel takes .*", of_tried=True)
def _print(failure: Failure, found: re.Match[str]) -> str:
    if failure.has(ast.List, ast.ListComp):
        return LISTS
    text = ": a kernel makes no text while it runs" if "unicode" in found[0] else ""
    return f"{plain(found[0])}{text}"


@kind(r"^(?:RequireLiteralValue: )?(hip\.|this makes a new array|Cannot modify readonly|cannot index)", of_tried=True)
def _own_words(failure: Failure, found: re.Match[str]) -> str:
    if found[1].startswith("this makes"):
        call = failure.message.call
        return construct_in(call) or (f"{call.partition('(')[0]}: {TEXT}" if "unicode" in call else found.string)
    message, said = failure.message, plain(found.string)
    if found[1] != "hip." or not message.headline or failure.has_callers:
        return said
    return f"{said}\n{message.headline}:\n \n >>> {message.call}"  # in Numba's words, which programs look for


@kind(r"Unsupported array index type (.+) in \[")
@kind(r"Unsupported array index type (.+) in \[", of_tried=True)
def _index(failure: Failure, found: re.Match[str]) -> str:
    advice = ": int(...) makes a whole number of it" if found[1].startswith("float") else ""
    return f"an array has no index {plain(found[1])}; integers, slices and tuples of them are{advice}"


def _shown_module(name: str) -> str:
    """A module by the name that users give it."""
    first, dot, rest = name.partition(".")
    short = {"numpy": "np", "numba_hip": "hip"}.get(first, first)
    return short + dot + rest.removeprefix("language.")


def _public(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]
