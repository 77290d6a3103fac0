"""What Numba's messages mean: mistakes with names, values, types and calls; those with statements are in `statements`.

Numba's own words stay where they are good, because a search for them finds answers.
"""

from __future__ import annotations

import ast
import builtins
import math
import re
import sys
from itertools import chain
from pathlib import Path
from types import MethodType
from typing import Any

import numpy as np

from hip_runtime.said_names import is_ours, our
from numba_hip.compilation.diagnosis.failure import Failure
from numba_hip.compilation.diagnosis.kinds import Kinds
from numba_hip.compilation.diagnosis.missing_implementations import no_implementation
from numba_hip.compilation.diagnosis.statements import STATEMENTS
from numba_hip.compilation.diagnosis.unsupported_python import (
    CLASSES,
    DICTS,
    SETS,
    TEXT,
    cannot_launch,
    construct_in,
    device_function_in,
    is_device_function,
    lists,
    plain,
)
from numba_hip.language.thread_index import IS_THE_LAUNCHES
from numba_hip.suggestions import hint

MISTAKES = Kinds()

_OF_TEXT = str(Path("numba", "cpython", "unicode.py"))
"""How the path of Numba's functions of text ends: what they allocate is text."""

_EXCEPTIONS = (
    "a kernel makes no text while it runs: what it raises has text in quotes; print takes values, and "
    "error.kernel_fault has the thread"
)

_BEFORE = "call it before the launch, and pass what it gives"

_COMPUTE_OTHERWISE = "write a loop over the elements, or call it before the launch and pass what it gives"


def meaning(failure: Failure) -> str:
    """What is wrong, and what to do."""
    reasons = failure.message.reasons
    for one in chain(STATEMENTS, MISTAKES):
        for reason in reasons:
            found = one.pattern.search(reason.text) if one.of_tried or not reason.tried else None
            said = None if found is None else one.say(failure, found)
            if said is not None:
                return said
    if failure.message.call:
        return no_implementation(failure)
    return plain(reasons[0].text) if reasons else failure.text


@MISTAKES.enter(r"Untyped global name '(\w+)'|Cannot determine Numba type of <class '([^']+)'>")
def _value_from_outside(failure: Failure, found: re.Match[str]) -> str | None:
    text = found.string
    named, typed = re.search(r"name '(\w+)'", text), re.search(r"<class '([^']+)'>", text)
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
        return f"a kernel calls functions that are compiled: put @{our('jit')}(device=True) above {name}{where}"
    if kind_of_value in ("builtin_function_or_method", "type") and hasattr(builtins, name):
        return f"{name} is Python's own and runs on the host: use it before the launch, and pass what it gives"
    if kind_of_value in ("builtin_function_or_method", "method"):
        module = getattr(value, "__module__", None) or type(getattr(value, "__self__", None)).__module__
        return f"{name} is a function of Python's module {module} and runs on the host: {_BEFORE}{_instead(module)}"
    if kind_of_value == "numpy.ufunc":
        return (
            f"{name} is machine code of the host's: {_BEFORE}; if it has a function in Python, put "
            f"@{our('jit')}(device=True) above that for kernels"
        )
    if kind_of_value.endswith((".GUFunc", ".HipGUFunc")):
        return (
            f"{name} takes whole arrays, and is called from the host: for kernels, put @{our('jit')}(device=True) "
            "above a function of its own, and pass that the arrays"
        )
    if kind_of_value == "numba_hip.array_functions.reduction.Reduce":
        return f"{name} reduces an array from the host: {_BEFORE}; {our('block')} has reductions for kernels"
    advice = {
        "type": CLASSES,
        "dict": f"{DICTS}; constants can be in tuples",
        "set": SETS,
        "str": TEXT,
        "numba_hip.dispatch.dispatcher.Dispatcher": "launch it from the host",
    }
    return advice.get(kind_of_value, CLASSES)


@MISTAKES.enter(r"(?:List|reflected list|list)\(|ListType|[Ll]ist")
def _list(failure: Failure, found: re.Match[str]) -> str | None:
    outside = re.search(r"(?:global|freevar)\((\w+): \[", failure.text)
    if outside is not None:
        name = outside[1]
        return (
            f"{name} is a list, which a kernel does not take: make it a tuple, {name} = ({name}[0], ...), or an array, "
            f"np.array({name}), whose values become constants"
        )
    return lists() if failure.has(ast.List, ast.ListComp) else None


@MISTAKES.enter(r".*")
def _construct(failure: Failure, found: re.Match[str]) -> str | None:
    return construct_in(found.string)


@MISTAKES.enter(r"wrong tuple length .*expected (\d+), got (\d+)")
def _unpack(failure: Failure, found: re.Match[str]) -> str:
    return f"wrong tuple length: {found[1]} names on the left, {found[2]} values on the right"


@MISTAKES.enter(r"No definition for lowering (\w+)(?:\(.*\))?\.(\w+) = ")
def _field_that_is_set(failure: Failure, found: re.Match[str]) -> str:
    kind, field = found.groups()
    if re.fullmatch(r"\w+\dx[1-4]", kind):
        return f"the components of a {kind} can only be read, and this sets {field}: make another vector"
    return (
        f"the fields of a {kind}, which is passed by value, can only be read, and this sets {field}: pass an array, "
        "and set its elements"
    )


@MISTAKES.enter(r"No definition for lowering hip\.(\w+)\.(\w+) = ")
def _index_that_is_set(failure: Failure, found: re.Match[str]) -> str:
    return f"{our(found[1])}.{found[2]} cannot be set: {IS_THE_LAUNCHES}"


@MISTAKES.enter(r"name '(\w+)' is not defined")
def _undefined(failure: Failure, found: re.Match[str]) -> str:
    name = found[1]
    failure.enter_innermost()
    failure.move_to(lambda node: isinstance(node, ast.Name) and node.id == name)
    return f"{found.string}{hint(name, [*failure.names, *dir(builtins)])}"


@MISTAKES.enter(r"Variable '(\w+)' is not defined")
def _object_of_a_method(failure: Failure, found: re.Match[str]) -> str | None:
    if not isinstance(failure.function, MethodType):
        return None
    return (
        f"a kernel knows no {found[1]}, the object that its method is of: decorate a function, and pass what it needs "
        "of the object"
    )


@MISTAKES.enter(r"module 'numpy' has no attribute 'Literal\[")
def _text_of_a_constant(failure: Failure, found: re.Match[str]) -> str:
    """A NumPy function of which Numba has only a form that puts a constant into the text of an error."""
    return f"Numba has no form of this call for kernels: {_COMPUTE_OTHERWISE}"


@MISTAKES.enter(r"module '([\w.]+)' has no attribute '(\w+)'(.*)")
def _missing_in_module(failure: Failure, found: re.Match[str]) -> str:
    module, name, more = found.groups()
    return f"{_shown_module(module)} has no {name}{more or hint(name, _public(sys.modules.get(module)))}"


@MISTAKES.enter(r"Unknown attribute '(\w+)' of type Module\(<module '([\w.]+)'")
def _host_function(failure: Failure, found: re.Match[str]) -> str:
    name, module_name = found.groups()
    module, shown = sys.modules.get(module_name), _shown_module(module_name)
    value = getattr(module, name, None)
    if value is None:
        return f"{shown} has no {name}{hint(name, _public(module))}"
    if module_name.partition(".")[0] == "numba_hip":
        return f"{shown}.{name} is for the host: call it before the launch, and pass what it gives to the kernel"
    return f"{shown}.{name} cannot be used in a kernel: {_BEFORE}{_instead(module_name)}"


def _instead(module: str) -> str:
    """What kernels have instead of the functions of a *module* of the host's."""
    if module == "time":
        return f"; {our('clock64')}() counts cycles"
    return f"; {our('random')} has generators for kernels" if module in ("random", "_random", "numpy.random") else ""


@MISTAKES.enter(r"Unknown attribute '(\w+)' of type (.*)")
def _unknown_attribute(failure: Failure, found: re.Match[str]) -> str:
    name, owner = found[1], found[2]
    if owner.startswith(("list(", "reflected list")):
        return lists()
    if "Literal[str]" in owner or "unicode" in owner:
        return f"Unknown attribute '{name}' of text: {TEXT}"
    if name in ("forall", "configure") and is_device_function(owner):
        return cannot_launch(owner)
    if (missing := _missing_field(name, owner)) is not None:
        return missing
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


def _missing_field(name: str, shown: str) -> str | None:
    """What is said of a field that records have not, if *shown* is their type or has them as elements."""
    record = re.match(r"(?:readonly |unaligned )*(?:array\()?Record\((.*?);\d+;", shown)
    if record is None:
        return None
    fields = re.findall(r"(?:^|,)(\w+)\[type=", record[1])
    return f"there is no field {name!r} in records with the fields {', '.join(fields)}{hint(name, fields)}"


@MISTAKES.enter(r"Cannot resolve setattr: \((.*)\)\.(\w+) = ")
def _missing_field_that_is_set(failure: Failure, found: re.Match[str]) -> str | None:
    return _missing_field(found[2], found[1])


@MISTAKES.enter(r"Use of unsupported NumPy function 'numpy\.([\w.]+)' or unsupported use")
def _numpy_function(failure: Failure, found: re.Match[str]) -> str:
    return f"np.{found[1]} cannot be used in a kernel (or not in this way): {_COMPUTE_OTHERWISE}"


@MISTAKES.enter(r"Cannot unify (.+) and (.+) for '([^'.]+)(?:\.\d+)*'")
def _unify(failure: Failure, found: re.Match[str]) -> str:
    first, second, name = found.groups()
    if name.startswith("$"):
        return f"Cannot unify {plain(first)} and {plain(second)}: both ways through an expression give one type"
    return (
        f"Cannot unify {plain(first)} and {plain(second)} for '{name}': a variable has one type in all of a kernel; "
        "give what is of another type another name"
    )


@MISTAKES.enter(r"Invalid use of getiter with parameters \((.*)\)")
def _iterate(failure: Failure, found: re.Match[str]) -> str:
    if found[1].startswith("Tuple("):
        return (
            f"{plain(found[1])} cannot be iterated over, as a variable has one type in all of a kernel: make all "
            "members of one type, or take them by their indices"
        )
    return f"{plain(found[1])} cannot be iterated over; range(n) counts from 0 to n - 1"


@MISTAKES.enter(r"Cannot bind 'args=\((.*)\) kws=\{(.*)\}' to signature '\((.*)\)' due to \"(?:TypeError: )?(.*?)\"")
def _bind(failure: Failure, found: re.Match[str]) -> str:
    args, keywords, parameters, why = found.groups()
    name = device_function_in(failure.text) or "the function"
    passed = ", ".join(filter(None, [args.rstrip(","), re.sub(r"'(\w+)': ", r"\1=", keywords)]))
    return f"{name}({parameters}) is called with ({plain(passed)}): {why}"


@MISTAKES.enter(r"Int value is too large: (-?\d+)", of_tried=True)
def _large_integer(failure: Failure, found: re.Match[str]) -> str:
    return f"{found[0]}; integers of kernels have up to 64 bits, from -2**63 to 2**64 - 1: use a float"


@MISTAKES.enter(r"Cannot cast (.+?) to (\S+?):? (?:%|i\d|\{|double|float|@|<)")
def _cast(failure: Failure, found: re.Match[str]) -> str:
    return f"Cannot cast {plain(found[1])} to {found[2]}"


@MISTAKES.enter(r"print\(\) function implementation does not support keyword arguments")
def _print_with_keywords(failure: Failure, found: re.Match[str]) -> str:
    return "print in a kernel takes no sep=, end= and the like: write it into the text, print(f'{i}-{x}')"


@MISTAKES.enter(r"print in a kernel takes .*", of_tried=True)
def _print(failure: Failure, found: re.Match[str]) -> str:
    if failure.has(ast.List, ast.ListComp):
        return lists()
    text = ": a kernel makes no text while it runs" if "unicode" in found[0] else ""
    return f"{plain(found[0])}{text}"


@MISTAKES.enter(
    r"^(?:RequireLiteralValue: )?"
    r"(np\.datetime64|np\.timedelta64|this makes a new array|a kernel makes no text|Cannot modify readonly|cannot index"
    r"|\w+\.)",
    of_tried=True,
)
def _own_words(failure: Failure, found: re.Match[str]) -> str | None:
    makes_text = any(function.filename.endswith(_OF_TEXT) for function in failure.message.functions)
    if makes_text or found[0].startswith("a kernel makes no text"):
        return _EXCEPTIONS if failure.has(ast.Raise, ast.Assert) else TEXT
    if found[1].startswith("this makes"):
        call = failure.message.call
        return construct_in(call) or (f"{call.partition('(')[0]}: {TEXT}" if "unicode" in call else found.string)
    names_function = found[1].endswith(".")
    if names_function and not is_ours(found[1]):
        return None
    message, said = failure.message, plain(found.string)
    if not (names_function and message.headline) or failure.has_callers:
        return said
    return f"{said}\n{message.headline}:\n \n >>> {message.call}"  # in Numba's words, which programs look for


@MISTAKES.enter(r"Unsupported array index type (.+) in \[")
@MISTAKES.enter(r"Unsupported array index type (.+) in \[", of_tried=True)
def _index(failure: Failure, found: re.Match[str]) -> str:
    advice = ": int(...) makes a whole number of it" if found[1].startswith("float") else ""
    return f"an array has no index {plain(found[1])}; integers, slices and tuples of them are{advice}"


def _shown_module(name: str) -> str:
    """A module by the name that users give it."""
    first, dot, rest = name.partition(".")
    if first == "numba_hip":
        return our(rest.removeprefix("language."))
    return ("np" if first == "numpy" else first) + dot + rest


def _public(owner: Any) -> list[str]:
    return [name for name in dir(owner) if not name.startswith("_")]
