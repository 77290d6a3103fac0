"""Calls and operations without an implementation for the types of their operands."""

from __future__ import annotations

import math
import re

from numba_hip.compilation.diagnosis.failure import Failure
from numba_hip.compilation.diagnosis.unsupported_python import (
    OPERATORS,
    TEXT,
    cannot_launch,
    construct_in,
    is_device_function,
    plain,
    split_arguments,
)


def no_implementation(failure: Failure) -> str:
    """The explanation for when none of the implementations that were tried says more."""
    call = failure.message.call
    name, args = call.partition("(")[0], split_arguments(call)
    shown = [plain(argument) for argument in args]
    if args and name in ("getitem", "static_getitem") and is_device_function(args[0]):
        return cannot_launch(args[0])
    if (construct := construct_in(call)) is not None:
        return construct
    if name == "setitem" and len(args) == 3:
        return _assignment(*args)
    if name == "delitem":
        return f"elements of {shown[0]} cannot be deleted: arrays keep their size"
    if name in ("getitem", "static_getitem") and re.match(r"(?:u?int|float|complex|bool)\d*$", shown[0]):
        return f"{shown[0]} has no elements and no fields, and this asks for {shown[1]}: it is one number"
    said = f"No implementation of function {name} for ({', '.join(shown)})"
    if name in OPERATORS and len(args) == 2:
        said = f"No implementation of function {OPERATORS[name]} for {shown[0]} and {shown[1]}"
    if any("unicode" in argument or "Literal[str]" in argument for argument in args):
        return f"{said}: {TEXT}"
    reasons = [reason.text for reason in failure.message.reasons if not reason.text.startswith("Untyped")]
    if not reasons:
        takes_numbers = "array(" in call and hasattr(math, name)
        return f"{said}: it takes one number, as one element of an array is" if takes_numbers else said
    return plain(reasons[0]) if name in reasons[0] else f"{said}: {plain(reasons[0])}"


def _assignment(array: str, index: str, value: str) -> str:
    """What is wrong with ``array[index] = value``."""
    said = f"{plain(value)} cannot be assigned to an element of {plain(array)}"
    if array.startswith("readonly"):
        return f"Cannot modify readonly array of type: {array}"
    if array.startswith("Record(") and not index.startswith("Tuple"):
        return f"{plain(value)} cannot be assigned to the field {plain(index)} of a record"
    if not re.match(r"(readonly )?array\(", array):
        return f"{plain(array)} cannot be changed: No implementation of setitem for it; use an array"
    if value.startswith(("UniTuple", "Tuple")):
        return f"{said}; assign its parts one by one"
    if value.startswith(("datetime64[", "timedelta64[")) and value.partition("[")[0] in array:
        return f"{said}, which counts in another unit: pass one of the same unit, as array.astype('{value}') gives"
    if value.startswith("complex"):
        return f"{said}: take its .real or .imag"
    if "unicode" in value or "Literal[str]" in value:
        return f"{said}: it is text"
    if value.startswith(("array(", "readonly array(")):
        return f"{said}: one index is missing on the left, or one too few on the right"
    return said if "slice" not in index else f"{said} by the index {plain(index)}"
