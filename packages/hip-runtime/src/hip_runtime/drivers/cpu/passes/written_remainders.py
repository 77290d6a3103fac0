"""Remainders that a program computes from quotients, ``i - i // width * width``."""

from __future__ import annotations

from hip_runtime.drivers.cpu.analyses.divisions import QUOTIENTS, Product, divide, product_of
from hip_runtime.drivers.cpu.ir.model import Instruction, Value
from hip_runtime.drivers.cpu.llvmir import I64


def write_remainder(value: Instruction) -> bool:
    """Have *value* be the remainder that it is, if it is one and written out; whether it is."""
    if value.type != I64 or value.opcode not in ("add", "sub"):
        return False
    left, right = value.operands
    if value.opcode == "sub":
        quotient = _find_quotient(left, right, Product(1))
    else:
        quotient = _find_quotient(left, right, Product(-1)) or _find_quotient(right, left, Product(-1))
    if quotient is None:
        return False
    value.opcode, value.flags, value.operands = f"{quotient.opcode[0]}rem", (), list(quotient.operands)
    return True


def _find_quotient(number: Value, product: Value, sign: Product) -> Instruction | None:
    """The quotient of *number* in *product*, if what that multiplies it by, times *sign*, is what it divides by."""
    quotient, factor = _take_factors(product)
    if not isinstance(quotient, Instruction) or quotient.opcode not in QUOTIENTS:
        return None
    division = divide(quotient, QUOTIENTS)
    is_whole = division is not None and division.divided is number and division.by == factor.times(sign)
    return quotient if is_whole else None


def _take_factors(value: Value) -> tuple[Value, Product]:
    """*value* without the arguments and numbers that it is multiplied by, and these."""
    factor = Product(1)
    while isinstance(value, Instruction) and value.opcode == "mul":
        left, right = value.operands
        taken, rest = (product_of(right), left) if product_of(right) is not None else (product_of(left), right)
        if taken is None:
            break
        factor, value = factor.times(taken), rest
    return value, factor
