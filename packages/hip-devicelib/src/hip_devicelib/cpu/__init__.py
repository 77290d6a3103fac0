"""Math of the CPU device: the functions of the C math library as LLVM bitcode that vectorises."""

from hip_devicelib.cpu.catalog import FUNCTIONS as FUNCTIONS
from hip_devicelib.cpu.catalog import MathFunction as MathFunction
from hip_devicelib.cpu.library import bitcode_of as bitcode_of
from hip_devicelib.cpu.library import math_library as math_library
from hip_devicelib.cpu.processor import has_fma as has_fma

__all__ = ["FUNCTIONS", "MathFunction", "bitcode_of", "has_fma", "math_library"]
