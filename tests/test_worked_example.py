"""The worked example of the design notes is what the compiler does."""

from __future__ import annotations

import re

import llvmlite.binding as llvm
import pytest

from tools.worked_example import DOCUMENT, LLVM_RELEASE, write_document

LABEL = re.compile(r"\bB\d+")
"""Blocks of Numba's are named by the place in the bytecode that they come from, which differs among Pythons."""


def number_labels(text: str) -> str:
    """*text* with those names numbered in their order."""
    names = {name: f"B.{number}" for number, name in enumerate(dict.fromkeys(LABEL.findall(text)))}
    return LABEL.sub(lambda match: names[match[0]], text)


@pytest.mark.skipif(llvm.llvm_version_info[0] != LLVM_RELEASE, reason=f"the document is made with LLVM {LLVM_RELEASE}")
def test_it_can_be_made_again() -> None:
    made = number_labels(write_document()).split("\n")
    assert made == number_labels(DOCUMENT.read_text()).split("\n"), "python -m tools.worked_example > the document"
