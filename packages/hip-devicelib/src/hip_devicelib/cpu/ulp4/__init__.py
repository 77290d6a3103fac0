"""Variants for float64 within 4 units in the last place, where that is faster by 1.15 or more.

What they leave out: pairs of numbers where one is good enough, the last terms of polynomials, and what only rare
arguments need, such as results that are denormal: that is behind a branch (`Code.rarely`), one for a function.
"""

from hip_devicelib.cpu.ulp4.circular import cos as cos
from hip_devicelib.cpu.ulp4.circular import sin as sin
from hip_devicelib.cpu.ulp4.circular import tan as tan
from hip_devicelib.cpu.ulp4.error_functions import erf as erf
from hip_devicelib.cpu.ulp4.error_functions import erfc as erfc
from hip_devicelib.cpu.ulp4.exponentials import exp as exp
from hip_devicelib.cpu.ulp4.exponentials import exp2 as exp2
from hip_devicelib.cpu.ulp4.exponentials import tanh as tanh
from hip_devicelib.cpu.ulp4.inverse_circular import acos as acos
from hip_devicelib.cpu.ulp4.inverse_circular import asin as asin
from hip_devicelib.cpu.ulp4.inverse_circular import atan as atan
from hip_devicelib.cpu.ulp4.inverse_circular import atan2 as atan2
from hip_devicelib.cpu.ulp4.logarithms import log as log
from hip_devicelib.cpu.ulp4.logarithms import log2 as log2
from hip_devicelib.cpu.ulp4.logarithms import log10 as log10
from hip_devicelib.cpu.ulp4.powers import pow as pow
