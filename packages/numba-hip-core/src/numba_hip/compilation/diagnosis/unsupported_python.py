"""Messages about Python features that kernels do not support, and what to use instead."""

from __future__ import annotations

import re
from collections.abc import Callable

from hip_runtime.said_names import our
from numba_hip.language.text_values import NO_TEXT

DICTS = "a kernel has no dictionaries: use arrays, a named tuple, or a record"
SETS = "a kernel has no sets: use an array of flags, or a tuple"
TEXT = NO_TEXT
TRY = (
    "a kernel has no try: test what could go wrong before it does (if y != 0: ...); what a thread raises, the launch "
    "raises"
)
WITH = "a kernel has no with: open and close around the launch"
DELETION = "a kernel has no del of a variable, and needs none: it costs nothing to keep one; leave the statement out"
CLASSES = "a kernel has no objects of classes: pass numbers, tuples, named tuples or records"


def lists() -> str:
    """What is said of lists."""
    return (
        "a kernel has no memory to make lists in: use a tuple where the length is fixed, "
        f"{our('local.array')}(n, dtype), or an array that is passed"
    )


UNSUPPORTED: dict[str, Callable[[], str]] = {
    "build_list": lists,
    "list_": lists,
    "build_map": lambda: DICTS,
    "build_set": lambda: SETS,
    "set_try_status": lambda: TRY,
    "unset_try_status": lambda: TRY,
    "check_try_status": lambda: TRY,
    "exc_class": lambda: TRY,
}
"""Names that Numba asks a target for which has none of it, and what is meant."""

OPCODES = {
    "IMPORT": "a kernel cannot import: do that above it, at the top of the file",
    "LOAD_BUILD_CLASS": CLASSES,
    "STORE_GLOBAL": "a kernel cannot assign to global names: write to an array that is passed",
    "DELETE_GLOBAL": "a kernel cannot delete global names",
    "MATCH": "a kernel has no match: write if and elif",
    "GET_LEN": "a kernel has no match: write if and elif",
    "SETUP_WITH": WITH,
    "BEFORE_WITH": WITH,
    "SETUP_FINALLY": TRY,
    "UNPACK_EX": "a kernel takes no rest of a tuple (first, *rest = ...): take parts of it by their indices",
    "FORMAT": TEXT,
    "YIELD": "a kernel yields nothing: write results into an array",
}
"""What is meant by instructions of Python that Numba does not know, by how their names begin."""

OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=", "and_": "&", "or_": "|", "xor": "^",
    "lshift": "<<", "rshift": ">>", "contains": "in",
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "iand": "&=", "ior": "|=", "ixor": "^=", "ilshift": "<<=", "irshift": ">>=", "imatmul": "@=",
}  # fmt: skip

_LITERAL_TEXT = re.compile(r"Literal\[str\]\((.*?)\)(?:\(\{\}\))?")
_DEVICE_FUNCTION = re.compile(r"<device function (?:\S+\.)?(\S+) for ")
_TYPE_OF_OURS = re.compile(r"\bhip\.((?:threadIdx|blockIdx|blockDim|gridDim|laneid|warpsize|cg\.GridGroup)\b)")
_LITERAL = re.compile(r"Literal\[\w+\]\((.*?)\)")


def plain(shown: str) -> str:
    """Types as Numba writes them, with literals and our names as they are in the program."""
    named = _TYPE_OF_OURS.sub(lambda found: our(found[1]), shown)
    return _LITERAL.sub(r"\1", _LITERAL_TEXT.sub(r"'\1'", named)).replace("unicode_type", "text")


def construct_in(shown: str) -> str | None:
    """The message if the types *shown* are those of a list, a dictionary or a set."""
    if re.search(r"\b(reflected )?[lL]ist(Type)?[(\[]", shown):
        return lists()
    if "DictType" in shown or "Dict(" in shown or "LiteralStrKeyDict" in shown:
        return DICTS
    return SETS if re.search(r"\b(reflected )?[sS]et\(", shown) else None


def device_function_in(shown: str) -> str | None:
    """The name of the first function of `jit` among the types *shown*."""
    found = _DEVICE_FUNCTION.search(shown)
    return None if found is None else found[1]


def is_device_function(shown: str) -> bool:
    """Whether the type *shown* is that of a function of `jit`."""
    return shown.startswith("type(<device function ")


def cannot_launch(shown: str) -> str:
    """What is said of a launch in a kernel of the function whose type is *shown*."""
    name = device_function_in(shown)
    instead = f"launch {name} from the host, after this one, or call {name}(...) as a function"
    return f"a kernel cannot launch kernels: {instead}"


def split_arguments(shown: str) -> list[str]:
    """The arguments of a call as Numba writes it, ``f(array(float64, 1d, C), int64)``."""
    inner, depth, parts = shown.partition("(")[2].removesuffix(")"), 0, [""]
    for letter in inner:
        depth += (letter in "([<") - (letter in ")]>")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts if part.strip()]
