"""Calls as programs that stand by themselves."""

from __future__ import annotations

import base64
import inspect
import zlib
from types import FunctionType
from typing import Any

import numpy as np

from tools.fuzz_algorithms import forms
from tools.fuzz_algorithms.calls import Call
from tools.fuzz_algorithms.operators import Values, unchanged
from tools.fuzz_algorithms.paths import PATHS

PARTS: tuple[Any, ...] = (
    forms.Placed,
    forms.fetch,
    forms.filler,
    forms.place,
    forms.place_between,
    forms._place,
    forms.iterate,
)

HEAD = """from __future__ import annotations

import base64
import operator
import zlib
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

import numba_hip as hip
from hip_runtime import config
from numba_hip import algorithms

Values = Any
"""


def describe(call: Call) -> str:
    """*call* in a line."""
    named = {name: _name_of(value) for name, value in call.options.items()}
    sources = ", ".join(
        f"{name}={one.values.dtype.str if one.values.dtype.names is None else 'pairs'}[{one.values.size}] ({one.form})"
        for name, one in call.sources.items()
    )
    others = ", ".join(f"{name}={value}" for name, value in named.items())
    outs = ", ".join(result.form or "new" for result in call.results)
    around = [*call.paths, *([f"{call.lanes} lanes"] if call.lanes else [])]
    around += ["a stream"] * call.stream + ["a workspace"] * call.workspace
    return f"{call.algorithm}({sources}, {others}) to {outs}" + (f" with {', '.join(around)}" if around else "")


def write_script(call: Call, seed: int, told: str) -> str:
    """A program that makes *call* and prints what it gives and what it has to give, after what was *told*."""
    functions: list[Any] = [value for value in call.options.values() if isinstance(value, FunctionType)]
    used: dict[str, Any] = {function.__name__: function for function in (unchanged, *functions)}
    lines = [f"# seed {seed}: {describe(call)}", *(f"# {line}" for line in told.splitlines()), HEAD]
    lines += [f"CUTS, BETWEEN = {forms.CUTS!r}, {forms.BETWEEN}", *map(inspect.getsource, (*used.values(), *PARTS))]
    lines += [_load_source(), "", *_write_call(call)]
    return "\n".join(lines)


def _load_source() -> str:
    return "def load(text, dtype):\n    return np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype).copy()\n\n"


def _write_call(call: Call) -> list[str]:
    shifted = {result.over for result in call.results if result.form == "shifted"}
    lines, passed = [], {}
    for name, source in call.sources.items():
        lines.append(f"{name} = {_write_array(source.values)}")
        if source.form in forms.ITERATORS:
            passed[name] = f"iterate({name}, {source.form!r})"
            continue
        make = "place_between" if name in shifted else "place"
        lines.append(f"placed_{name} = {make}({name}, {source.form!r})")
        passed[name] = f"placed_{name}.view"
    outs = []
    for which, result in enumerate(call.results):
        size = result.values.size + result.room
        made = f"place(filler({size}, {_write_dtype(result.values)}), {result.form!r})"
        if result.over:
            made = f"placed_{result.over}" + (f".shifted({size})" if result.form == "shifted" else "")
        lines += [f"out_{which} = {made}"] * bool(result.form)
        outs.append(f"out_{which}.view" if result.form else "None")
    options = {name: _name_of(value) for name, value in call.options.items() if not name.startswith("_")}
    positional = [passed.pop(name) for name in call.positional]
    if call.algorithm == "transform":
        positional.insert(0, options.pop("function"))
    options |= passed
    if any(result.form for result in call.results):
        options["out"] = f"({', '.join(outs)})" if call.returns == "pair" else outs[0]
    if call.found:
        lines.append(f"found = place(np.full(1, -1, np.int64), {call.found!r})")
        options["found"] = "found.view"
    lines += ["stream = hip.stream()"] * call.stream
    options |= {"stream": "stream"} if call.stream else {}
    given = ", ".join([*positional, *(f"{name}={value}" for name, value in options.items())])
    workspace = "algorithms.Workspace()" if call.workspace else "nullcontext()"
    lines += [f"with ExitStack() as stack, {workspace}:", *_write_paths(call)]
    lines += [
        f"    returned = algorithms.{call.algorithm}({given})",
        "    hip.synchronize()",
        'print("returned", returned)',
    ]
    for which, result in enumerate(call.results):
        lines += [f'print("out {which}", fetch(out_{which}.view))'] * bool(result.form)
        lines.append(f'print("instead of", {_write_array(result.values)})')
    return [*lines, ""]


def _write_paths(call: Call) -> list[str]:
    enter = "    stack.enter_context({})"
    lines = []
    for path in call.paths:
        for name, value in PATHS[path].items():
            text = f"lambda *given: {value(*[None] * value.__code__.co_argcount)}" if callable(value) else repr(value)
            lines.append(enter.format(f"patch('numba_hip.algorithms.{name}', {text})"))
    return lines + ([enter.format(f"config.cpu_wave_size.scope({call.lanes})")] if call.lanes else [])


def _write_array(values: Values) -> str:
    text = base64.b64encode(zlib.compress(np.ascontiguousarray(values).tobytes())).decode()
    return f'load("{text}", {_write_dtype(values)})'


def _write_dtype(values: Values) -> str:
    dtype = values.dtype
    return f"np.dtype({dtype.descr if dtype.names else dtype.str!r})"


def _name_of(value: Any) -> str:
    if isinstance(value, np.generic):
        return f"np.{value.dtype.name}({value.item()!r})"
    name: str = getattr(value, "__name__", repr(value))
    return f"operator.{name}" if getattr(value, "__module__", "") == "_operator" else name
