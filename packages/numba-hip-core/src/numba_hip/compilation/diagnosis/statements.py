"""Statements and expressions of Python that Numba, or a target, does not translate, and what is said about each."""

from __future__ import annotations

import ast
import re

from hip_runtime.said_names import our
from numba_hip.compilation.diagnosis.failure import Failure
from numba_hip.compilation.diagnosis.kinds import Kinds
from numba_hip.compilation.diagnosis.unsupported_python import DELETION, OPCODES, TEXT, TRY, UNSUPPORTED, WITH

STATEMENTS = Kinds()


@STATEMENTS.enter(r"'\w+' object has no attribute '(\w+)'")
def _what_the_target_lacks(failure: Failure, found: re.Match[str]) -> str | None:
    lacking = found[1]
    if "try_status" in lacking or lacking == "exc_class":
        failure.move_to(lambda node: isinstance(node, ast.Try))
    return next((say() for word, say in UNSUPPORTED.items() if word in lacking), None)


@STATEMENTS.enter(r"unsupported opcode \((\w+)\)")
def _opcode(failure: Failure, found: re.Match[str]) -> str | None:
    said = next((said for word, said in OPCODES.items() if found[1].startswith(word)), None)
    shown = f"Use of unsupported opcode ({found[1]})"
    return shown if said is None else f"{shown}: {said}"


@STATEMENTS.enter(r"format spec in f-strings")
def _format(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(lambda node: isinstance(node, ast.FormattedValue) and node.format_spec is not None)
    return TEXT


@STATEMENTS.enter(r"'with \(context manager\)|'with'|context manager")
def _with(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(lambda node: isinstance(node, ast.With))
    return WITH


@STATEMENTS.enter("Exception matching is limited", of_tried=True)
@STATEMENTS.enter(r"'try'|try .. except|exception handling|re-raising of an exc|Exception object cannot be")
def _try(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(lambda node: isinstance(node, ast.Try))
    return TRY


@STATEMENTS.enter(r"The use of yield in a closure is unsupported|yield")
def _generator(failure: Failure, found: re.Match[str]) -> str | None:
    if failure.has(ast.GeneratorExp):
        return f"{found[0]}, and so are generator expressions: write a loop"
    if "closure" not in found[0]:
        return None
    return f"{found[0]}: write the generator outside, with @{our('jit')}(device=True)"


@STATEMENTS.enter(r"Type of variable '.*' cannot be determined")
def _walrus(failure: Failure, found: re.Match[str]) -> str | None:
    if "unknown location" in failure.text:  # where ways through an expression meet
        failure.move_to(lambda node: isinstance(node, ast.NamedExpr))
    named = next((node for node in failure.nodes if isinstance(node, ast.NamedExpr)), None)
    if named is None:
        return None
    name = named.target.id
    return (
        f"Numba does not find the type of what ':=' is a part of here: assign before, in a line of its own "
        f"({name} = {ast.unparse(named.value)}), and use {name}"
    )


@STATEMENTS.enter(r"Illegal IR, del found at: del (\w+)")
def _deletion(failure: Failure, found: re.Match[str]) -> str:
    failure.move_to(
        lambda node: (
            isinstance(node, ast.Delete)
            and any(isinstance(target, ast.Name) and target.id == found[1] for target in node.targets)
        )
    )
    return DELETION
