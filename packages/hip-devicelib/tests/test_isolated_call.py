"""Calls in a process of their own."""

from __future__ import annotations

import os
from fractions import Fraction

import llvmlite.binding as llvm
import pytest

from hip_devicelib.backend_limits import find_oversized
from hip_devicelib.errors import UnsupportedError
from hip_devicelib.isolated_call import call_apart
from hip_devicelib.isolated_codegen import simplify

SUM = "define i32 @f() {\n  %s = add i32 40, 2\n  ret i32 %s\n}"


def test_a_result_comes_back() -> None:
    assert call_apart(Fraction, 6, 4) == Fraction(3, 2)


def test_an_error_is_raised_here() -> None:
    with pytest.raises(ZeroDivisionError):
        call_apart(Fraction, 1, 0)


def test_the_end_of_the_process_is_an_error() -> None:
    with pytest.raises(UnsupportedError, match="exit status 7"):
        call_apart(os._exit, 7)


def test_simplification_apart_is_that_of_here() -> None:
    bitcode = bytes(llvm.parse_assembly(SUM, llvm.create_context()).as_bitcode())
    there = str(llvm.parse_bitcode(call_apart(simplify, bitcode, 2)))
    here = str(llvm.parse_bitcode(simplify(bitcode, 2)))
    assert there == here
    assert "ret i32 42" in there


def test_what_is_too_large() -> None:
    assert find_oversized("%a = mul i512 %b, %c\n%v = add <2048 x i64> %w, %w") is None
    assert find_oversized("%a = alloca [100000 x i8]") is None
    assert "513 bits" in str(find_oversized("%a = mul i513 %b, %c"))
    assert "2049 elements" in str(find_oversized("%v = add <2049 x i8> %w, %w"))
    assert "512 at most" in str(find_oversized("%v = add <1000 x i256> %w, %w"))
