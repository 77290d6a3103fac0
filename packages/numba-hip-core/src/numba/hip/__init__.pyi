"""Numba for AMD GPUs: write GPU kernels in Python. ``numba.hip`` is another name of `numba_hip`.

Written by ``python -m tools.editor_stub``, for editors and type checkers.
"""

from typing import Any, Literal, overload

from hip_runtime.array import DeviceArray as DeviceArray
from hip_runtime.arrays import device_array as device_array
from hip_runtime.arrays import device_array_like as device_array_like
from hip_runtime.arrays import full as full
from hip_runtime.arrays import ones as ones
from hip_runtime.arrays import pinned_array as pinned_array
from hip_runtime.arrays import to_device as to_device
from hip_runtime.arrays import zeros as zeros
from hip_runtime.dlpack import from_dlpack as from_dlpack
from hip_runtime.event import Event as Event
from hip_runtime.graph import ExecutableGraph as ExecutableGraph
from hip_runtime.graph import Graph as Graph
from hip_runtime.interop import is_device_array as is_device_array
from hip_runtime.profiling.benchmark import benchmark as benchmark
from hip_runtime.profiling.profile import profile as profile
from hip_runtime.profiling.ranges import range as range
from numba_hip import algorithms as algorithms
from numba_hip import block as block
from numba_hip import config as config
from numba_hip import errors as errors
from numba_hip import extending as extending
from numba_hip import libdevice as libdevice
from numba_hip import random as random
from numba_hip import wave as wave
from numba_hip.arguments.transfer_hints import In as In
from numba_hip.arguments.transfer_hints import InOut as InOut
from numba_hip.arguments.transfer_hints import Out as Out
from numba_hip.array_functions.guvectorize import guvectorize as guvectorize
from numba_hip.array_functions.reduction import Reduce as Reduce
from numba_hip.array_functions.reduction import Reduce as reduce
from numba_hip.array_functions.vectorize import vectorize as vectorize
from numba_hip.bfloat import bfloat16 as bfloat16
from numba_hip.decorators import jit as jit
from numba_hip.float8 import float8_e4m3fn as float8_e4m3fn
from numba_hip.float8 import float8_e4m3fnuz as float8_e4m3fnuz
from numba_hip.float8 import float8_e5m2 as float8_e5m2
from numba_hip.float8 import float8_e5m2fnuz as float8_e5m2fnuz
from numba_hip.host.api import compile as compile
from numba_hip.host.api import compile_all as compile_all
from numba_hip.host.api import compile_for_current_device as compile_for_current_device
from numba_hip.host.api import detect as detect
from numba_hip.host.api import event as event
from numba_hip.host.api import event_elapsed_time as event_elapsed_time
from numba_hip.host.api import get_current_device as get_current_device
from numba_hip.host.api import is_available as is_available
from numba_hip.host.api import list_devices as list_devices
from numba_hip.host.api import reset as reset
from numba_hip.host.api import select_device as select_device
from numba_hip.host.api import synchronize as synchronize
from numba_hip.host.contexts import close as close
from numba_hip.host.contexts import current_context as current_context
from numba_hip.host.contexts import defer_cleanup as defer_cleanup
from numba_hip.host.contexts import gpus as gpus
from numba_hip.host.contexts import profile_start as profile_start
from numba_hip.host.contexts import profile_stop as profile_stop
from numba_hip.host.contexts import profiling as profiling
from numba_hip.host.contexts import require_context as require_context
from numba_hip.host.contexts import set_memory_manager as set_memory_manager
from numba_hip.host.host_memory import MappedArray as MappedArray
from numba_hip.host.host_memory import as_device_array as as_device_array
from numba_hip.host.host_memory import from_cuda_array_interface as from_cuda_array_interface
from numba_hip.host.host_memory import managed_array as managed_array
from numba_hip.host.host_memory import mapped as mapped
from numba_hip.host.host_memory import mapped_array as mapped_array
from numba_hip.host.host_memory import mapped_array_like as mapped_array_like
from numba_hip.host.host_memory import open_ipc_array as open_ipc_array
from numba_hip.host.host_memory import pinned as pinned
from numba_hip.host.host_memory import pinned_array_like as pinned_array_like
from numba_hip.host.ipc import IpcHandle as IpcHandle
from numba_hip.host.llvm_ir import compile_llvm_ir as compile_llvm_ir
from numba_hip.host.llvm_ir import compile_llvm_ir_for_current_device as compile_llvm_ir_for_current_device
from numba_hip.host.llvm_ir import compile_ptx as compile_ptx
from numba_hip.host.llvm_ir import compile_ptx_for_current_device as compile_ptx_for_current_device
from numba_hip.host.memory_managers import BaseMemoryManager as BaseCUDAMemoryManager
from numba_hip.host.memory_managers import BaseMemoryManager as BaseMemoryManager
from numba_hip.host.memory_managers import GetIpcHandleMixin as GetIpcHandleMixin
from numba_hip.host.memory_managers import HostOnlyMemoryManager as HostOnlyCUDAMemoryManager
from numba_hip.host.memory_managers import HostOnlyMemoryManager as HostOnlyMemoryManager
from numba_hip.host.memory_managers import MemoryInfo as MemoryInfo
from numba_hip.host.memory_pointers import MappedMemory as MappedMemory
from numba_hip.host.memory_pointers import MemoryPointer as MemoryPointer
from numba_hip.host.memory_pointers import PinnedMemory as PinnedMemory
from numba_hip.host.occupancy import suggest_block_size as suggest_block_size
from numba_hip.host.streams import Stream as Stream
from numba_hip.host.streams import default_stream as default_stream
from numba_hip.host.streams import external_stream as external_stream
from numba_hip.host.streams import legacy_default_stream as legacy_default_stream
from numba_hip.host.streams import per_thread_default_stream as per_thread_default_stream
from numba_hip.host.streams import stream as stream
from numba_hip.inline_assembly import asm as asm
from numba_hip.language import bf16 as bf16
from numba_hip.language.external_functions import declare_device as declare_device
from numba_hip.language.hip_extensions import current_hip_extensions as current_hip_extensions
from numba_hip.language.hip_extensions import current_hip_extra_cflags as current_hip_extra_cflags
from numba_hip.language.hip_extensions import set_hip_extensions as set_hip_extensions
from numba_hip.linked_code import LinkedCode as LinkedCode
from numba_hip.linked_code import LinkedSource as LinkedSource
from numba_hip.precompilation import precompile as precompile
from numba_hip.races.findings import races as races
from numba_hip.rooflines import roofline as roofline
from numba_hip.tuning import autotune as autotune

def activemask() -> int:
    """``activemask()``: the lanes that are active here, bits of a uint64."""
def all(predicate: Any) -> int:
    """``all(predicate)``: whether *predicate* is true for every active lane."""
def all_sync(mask: Any, predicate: Any) -> int:
    """``all_sync(mask, predicate)``: whether *predicate* is true for every active lane in *mask*."""
def any(predicate: Any) -> int:
    """``any(predicate)``: whether *predicate* is true for any active lane."""
def any_sync(mask: Any, predicate: Any) -> int:
    """``any_sync(mask, predicate)``: whether *predicate* is true for any active lane in *mask*."""
class atomic:
    """``hip.atomic``: atomic operations on array elements.

    Each takes an array in global or shared memory, an index (a number, or a tuple of as many as the array has dimensions;
    the remainder of an unsigned and a signed integer is a float to Numba, so floats are taken, and cut to integers) and
    operands, which are cast to the type of the elements; each returns the element as it was before. The elements are
    integers or floats of 16, 32 or 64 bits; `add` and `sub` take complex numbers, too, whose two parts change one after the
    other. The order of memory operations around it is relaxed, as in CUDA and HIP.

    *scope* is ``"block"``, ``"device"``, or ``"system"``: atomic among the threads of the block, or of the device, or also
    with the host and other devices."""
    @staticmethod
    def add(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.add(ary, idx, val, scope='device')``: ``ary[idx] += val``."""
    @staticmethod
    def and_(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.and_(ary, idx, val, scope='device')``: ``ary[idx] &= val``."""
    @staticmethod
    def cas(ary: Any, idx: Any, old: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.cas(ary, idx, old, val, scope='device')``: ``ary[idx] = val`` if it is *old*; returns the old value."""
    @staticmethod
    def compare_and_swap(ary: Any, old: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.compare_and_swap(ary, old, val, scope='device')``: `cas` on element 0 of an array of one axis."""
    @staticmethod
    def dec(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.dec(ary, idx, val, scope='device')``: ``ary[idx] -= 1``, or *val* where it is 0 or greater than *val*."""
    @staticmethod
    def exch(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.exch(ary, idx, val, scope='device')``: ``ary[idx] = val``."""
    @staticmethod
    def inc(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.inc(ary, idx, val, scope='device')``: ``ary[idx] += 1``, or 0 where it is *val* or more already."""
    @staticmethod
    def max(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.max(ary, idx, val, scope='device')``: ``ary[idx] = max(ary[idx], val)``; where either is NaN, nothing changes."""
    @staticmethod
    def min(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.min(ary, idx, val, scope='device')``: ``ary[idx] = min(ary[idx], val)``; where either is NaN, nothing changes."""
    @staticmethod
    def nanmax(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.nanmax(ary, idx, val, scope='device')``: as `max`, with NaN as a missing value."""
    @staticmethod
    def nanmin(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.nanmin(ary, idx, val, scope='device')``: as `min`, with NaN as a missing value."""
    @staticmethod
    def or_(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.or_(ary, idx, val, scope='device')``: ``ary[idx] |= val``."""
    @staticmethod
    def sub(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.sub(ary, idx, val, scope='device')``: ``ary[idx] -= val``."""
    @staticmethod
    def xor(ary: Any, idx: Any, val: Any, scope: Any = 'device') -> Any:
        """``atomic.xor(ary, idx, val, scope='device')``: ``ary[idx] ^= val``."""
def ballot(predicate: Any) -> int:
    """``ballot(predicate)``: the active lanes for which *predicate* is true, bits of a uint64."""
def ballot_sync(mask: Any, predicate: Any) -> int:
    """``ballot_sync(mask, predicate)``: the active lanes in *mask* for which *predicate* is true, bits of a uint64."""
class _blockDim:
    """Threads of a block along each axis."""
    x: int
    y: int
    z: int
blockDim: _blockDim
"""Threads of a block along each axis."""
class _blockIdx:
    """Index of this thread's block in the grid."""
    x: int
    y: int
    z: int
blockIdx: _blockIdx
"""Index of this thread's block in the grid."""
def brev(x: Any) -> int:
    """``brev(x)``: the bits of the integer *x* in reverse."""
def byte_perm(x: Any, y: Any, s: Any) -> int:
    """``byte_perm(x, y, s)``: four of the eight bytes of *x* (bytes 0 to 3) and *y* (bytes 4 to 7), a uint32.

    Byte i of the result is the one whose number is in the lowest three bits of the hexadecimal digit i of *s*."""
def cbrt(x: Any) -> Any:
    """``cbrt(x)``: the cube root of *x*; float32 where *x* is, else float64."""
class cg:
    """``hip.cg``: cooperative groups. ``hip.cg.this_grid().sync()`` waits for all threads of a grid."""
    @staticmethod
    def this_grid() -> Any:
        """``cg.this_grid()``: the group of all threads of the grid. A kernel that calls its ``sync`` is launched
        cooperatively: all its blocks have to run at the same time; a `LaunchError` reports if they cannot."""
char1 = int8x1
char2 = int8x2
char3 = int8x3
char4 = int8x4
def clock64() -> int:
    """``clock64()``: cycles that a counter of this thread's processor has counted, an int64; modulo 2**20 on RDNA 3."""
def clz(x: Any) -> int:
    """``clz(x)``: how many zeros the integer *x* starts with at its high end, an int32; its width for 0."""
class collectives:
    """Collective operations among AMD GPUs of one or many processes, by RCCL: sums, broadcasts and the like of arrays.

    >>> from hip_runtime import collectives
    >>> communicators = collectives.connect([0, 1])  # two GPUs of this process"""
class const:
    """``hip.const``: host arrays that are part of a kernel."""
    @staticmethod
    def array_like(ndarray: Any) -> Any:
        """``const.array_like(ndarray)``: *ndarray*, a NumPy array that the kernel captured, in constant memory."""
double1 = float64x1
double2 = float64x2
double3 = float64x3
double4 = float64x4
def ds_bpermute(index: Any, src: Any) -> Any:
    """``ds_bpermute(index, src)``: the *src* of lane number *index* / 4, modulo the wave size: each lane pulls."""
def ds_permute(index: Any, src: Any) -> Any:
    """``ds_permute(index, src)``: each lane pushes its *src* to lane number *index* / 4, modulo the wave size.

    The result is what was pushed to this lane: by the highest lane where there were several, 0 where there was none."""
def eq_sync(mask: Any, predicate: Any) -> int:
    """``eq_sync(mask, predicate)``: whether *predicate* is the same for all active lanes in *mask*."""
def ffs(x: Any) -> int:
    """``ffs(x)``: position of the lowest bit of the integer *x* that is set, from 1 on, an int32; 0 for 0."""
float1 = float32x1
class float16x1:
    """A vector of 1 components of type float16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class float16x2:
    """A vector of 2 components of type float16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class float16x3:
    """A vector of 3 components of type float16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class float16x4:
    """A vector of 4 components of type float16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
float2 = float32x2
float3 = float32x3
class float32x1:
    """A vector of 1 components of type float32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class float32x2:
    """A vector of 2 components of type float32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class float32x3:
    """A vector of 3 components of type float32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class float32x4:
    """A vector of 4 components of type float32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
float4 = float32x4
class float64x1:
    """A vector of 1 components of type float64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class float64x2:
    """A vector of 2 components of type float64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class float64x3:
    """A vector of 3 components of type float64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class float64x4:
    """A vector of 4 components of type float64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
def fma(a: Any, b: Any, c: Any) -> Any:
    """``fma(a, b, c)``: a * b + c, rounded once; float32 where all three are, else float64."""
class fp16:
    """Half precision: float16 numbers in kernels, and ``hip.fp16``, with operations under CUDA's and HIP's names.

    Sums, differences, products and quotients of two float16 are float16, rounded once; combined with a number of another
    type, both are converted as usual. `math` functions convert a float16 to a float32. The functions here return a float16."""
    @staticmethod
    def habs(a: Any) -> Any:
        """``fp16.habs(a)``: the magnitude of a."""
    @staticmethod
    def hadd(a: Any, b: Any) -> Any:
        """``fp16.hadd(a, b)``: a + b."""
    @staticmethod
    def hceil(a: Any) -> Any:
        """``fp16.hceil(a)``: the smallest whole number that is not below a."""
    @staticmethod
    def hcos(a: Any) -> Any:
        """``fp16.hcos(a)``: the cosine of a, in radians."""
    @staticmethod
    def hdiv(a: Any, b: Any) -> Any:
        """``fp16.hdiv(a, b)``: a / b."""
    @staticmethod
    def heq(a: Any, b: Any) -> Any:
        """``fp16.heq(a, b)``: a == b, a boolean; false where one is NaN."""
    @staticmethod
    def hexp(a: Any) -> Any:
        """``fp16.hexp(a)``: e to the power of a."""
    @staticmethod
    def hexp10(a: Any) -> Any:
        """``fp16.hexp10(a)``: 10 to the power of a."""
    @staticmethod
    def hexp2(a: Any) -> Any:
        """``fp16.hexp2(a)``: 2 to the power of a."""
    @staticmethod
    def hfloor(a: Any) -> Any:
        """``fp16.hfloor(a)``: the largest whole number that is not above a."""
    @staticmethod
    def hfma(a: Any, b: Any, c: Any) -> Any:
        """``fp16.hfma(a, b, c)``: a * b + c, rounded once."""
    @staticmethod
    def hge(a: Any, b: Any) -> Any:
        """``fp16.hge(a, b)``: a >= b, a boolean; false where one is NaN."""
    @staticmethod
    def hgt(a: Any, b: Any) -> Any:
        """``fp16.hgt(a, b)``: a > b, a boolean; false where one is NaN."""
    @staticmethod
    def hle(a: Any, b: Any) -> Any:
        """``fp16.hle(a, b)``: a <= b, a boolean; false where one is NaN."""
    @staticmethod
    def hlog(a: Any) -> Any:
        """``fp16.hlog(a)``: the natural logarithm."""
    @staticmethod
    def hlog10(a: Any) -> Any:
        """``fp16.hlog10(a)``: the logarithm to base 10."""
    @staticmethod
    def hlog2(a: Any) -> Any:
        """``fp16.hlog2(a)``: the logarithm to base 2."""
    @staticmethod
    def hlt(a: Any, b: Any) -> Any:
        """``fp16.hlt(a, b)``: a < b, a boolean; false where one is NaN."""
    @staticmethod
    def hmax(a: Any, b: Any) -> Any:
        """``fp16.hmax(a, b)``: the larger of a and b; where one is NaN, the other."""
    @staticmethod
    def hmin(a: Any, b: Any) -> Any:
        """``fp16.hmin(a, b)``: the smaller of a and b; where one is NaN, the other."""
    @staticmethod
    def hmul(a: Any, b: Any) -> Any:
        """``fp16.hmul(a, b)``: a * b."""
    @staticmethod
    def hne(a: Any, b: Any) -> Any:
        """``fp16.hne(a, b)``: a != b, a boolean; false where one is NaN."""
    @staticmethod
    def hneg(a: Any) -> Any:
        """``fp16.hneg(a)``: -a."""
    @staticmethod
    def hrcp(a: Any) -> Any:
        """``fp16.hrcp(a)``: 1 / a."""
    @staticmethod
    def hrint(a: Any) -> Any:
        """``fp16.hrint(a)``: the nearest whole number, halves to even."""
    @staticmethod
    def hrsqrt(a: Any) -> Any:
        """``fp16.hrsqrt(a)``: 1 / sqrt(a)."""
    @staticmethod
    def hsin(a: Any) -> Any:
        """``fp16.hsin(a)``: the sine of a, in radians."""
    @staticmethod
    def hsqrt(a: Any) -> Any:
        """``fp16.hsqrt(a)``: the square root."""
    @staticmethod
    def hsub(a: Any, b: Any) -> Any:
        """``fp16.hsub(a, b)``: a - b."""
    @staticmethod
    def htrunc(a: Any) -> Any:
        """``fp16.htrunc(a)``: a without its fraction."""
class fp8:
    """``hip.fp8``: numbers of 8 bits in kernels, and their conversions by name.

    ``hip.float8_e4m3fn(x)`` and its like make one: rounded to the nearest, and to the largest number where *x* is larger or
    infinite, as HIP's and CUDA's types do. A number of 8 bits is a float32 wherever something is computed with it.
    ``float32_to_<type>_nosat`` gives what NumPy's conversion gives, an infinity or NaN; ``<type>_as_uint8`` and
    ``uint8_as_<type>`` are the bits."""
def funnelshift_l(lo: Any, hi: Any, shift: Any) -> Any:
    """``funnelshift_l(lo, hi, shift)``: the high word of the 64 bits hi:lo, shifted by *shift*, modulo 32; a uint32."""
def funnelshift_lc(lo: Any, hi: Any, shift: Any) -> Any:
    """``funnelshift_lc(lo, hi, shift)``: the high word of the 64 bits hi:lo, shifted by *shift*, at most 32; a uint32."""
def funnelshift_r(lo: Any, hi: Any, shift: Any) -> Any:
    """``funnelshift_r(lo, hi, shift)``: the low word of the 64 bits hi:lo, shifted by *shift*, modulo 32; a uint32."""
def funnelshift_rc(lo: Any, hi: Any, shift: Any) -> Any:
    """``funnelshift_rc(lo, hi, shift)``: the low word of the 64 bits hi:lo, shifted by *shift*, at most 32; a uint32."""
@overload
def grid(ndim: Literal[1]) -> int:
    """``grid(ndim)``: index of this thread in the whole grid.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
@overload
def grid(ndim: Literal[2]) -> tuple[int, int]:
    """``grid(ndim)``: index of this thread in the whole grid.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
@overload
def grid(ndim: Literal[3]) -> tuple[int, int, int]:
    """``grid(ndim)``: index of this thread in the whole grid.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
class _gridDim:
    """Blocks of the grid along each axis."""
    x: int
    y: int
    z: int
gridDim: _gridDim
"""Blocks of the grid along each axis."""
@overload
def gridsize(ndim: Literal[1]) -> int:
    """``gridsize(ndim)``: threads of the whole grid along each axis.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
@overload
def gridsize(ndim: Literal[2]) -> tuple[int, int]:
    """``gridsize(ndim)``: threads of the whole grid along each axis.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
@overload
def gridsize(ndim: Literal[3]) -> tuple[int, int, int]:
    """``gridsize(ndim)``: threads of the whole grid along each axis.

    *ndim*, a literal 1, 2 or 3, is the number of axes wanted: an int64 for 1, a tuple of int64 for 2 and 3."""
half1 = float16x1
half2 = float16x2
half3 = float16x3
half4 = float16x4
int1 = int32x1
class int16x1:
    """A vector of 1 components of type int16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class int16x2:
    """A vector of 2 components of type int16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class int16x3:
    """A vector of 3 components of type int16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class int16x4:
    """A vector of 4 components of type int16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
int2 = int32x2
int3 = int32x3
class int32x1:
    """A vector of 1 components of type int32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class int32x2:
    """A vector of 2 components of type int32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class int32x3:
    """A vector of 3 components of type int32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class int32x4:
    """A vector of 4 components of type int32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
int4 = int32x4
class int64x1:
    """A vector of 1 components of type int64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class int64x2:
    """A vector of 2 components of type int64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class int64x3:
    """A vector of 3 components of type int64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class int64x4:
    """A vector of 4 components of type int64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
class int8x1:
    """A vector of 1 components of type int8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class int8x2:
    """A vector of 2 components of type int8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class int8x3:
    """A vector of 3 components of type int8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class int8x4:
    """A vector of 4 components of type int8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
laneid: int
"""``hip.laneid``: index of this thread in its wave, an int32."""
def lanemask_eq() -> int:
    """``lanemask_eq()``: this lane, bits of a uint64."""
def lanemask_ge() -> int:
    """``lanemask_ge()``: the lanes from this one on, bits of a uint64."""
def lanemask_gt() -> int:
    """``lanemask_gt()``: the lanes above this one, bits of a uint64."""
def lanemask_le() -> int:
    """``lanemask_le()``: the lanes up to this one, bits of a uint64."""
def lanemask_lt() -> int:
    """``lanemask_lt()``: the lanes below this one, bits of a uint64."""
def ldca(ary: Any, idx: Any) -> Any:
    """``ldca(ary, idx)``: ``ary[idx]``, which may stay in all caches."""
def ldcg(ary: Any, idx: Any) -> Any:
    """``ldcg(ary, idx)``: ``ary[idx]``, cached for all threads of the device."""
def ldcs(ary: Any, idx: Any) -> Any:
    """``ldcs(ary, idx)``: ``ary[idx]``, which is read once."""
def ldcv(ary: Any, idx: Any) -> Any:
    """``ldcv(ary, idx)``: ``ary[idx]``, read from memory again each time."""
def ldlu(ary: Any, idx: Any) -> Any:
    """``ldlu(ary, idx)``: ``ary[idx]``, which is not read again."""
class local:
    """``hip.local``: arrays that each thread has for itself."""
    @staticmethod
    def array(shape: Any, dtype: Any, alignment: Any = None) -> Any:
        """``local.array(shape, dtype, alignment=None)``: an array of this thread's own. *shape* is a constant, or a tuple
        of constants, *alignment*, in bytes, a constant power of two.

        The array is not initialised."""
long1 = int64x1
long2 = int64x2
long3 = int64x3
long4 = int64x4
longlong1 = int64x1
longlong2 = int64x2
longlong3 = int64x3
longlong4 = int64x4
def match_all(value: Any) -> Any:
    """``match_all(value)``: the active lanes and true where *value* is the same for all of them, else 0 and false."""
def match_all_sync(mask: Any, value: Any) -> Any:
    """``match_all_sync(mask, value)``: the active lanes in *mask* and true where *value* is the same for all of
    them, else 0 and false."""
def match_any(value: Any) -> Any:
    """``match_any(value)``: the active lanes that have the same *value*, bits of a uint64."""
def match_any_sync(mask: Any, value: Any) -> int:
    """``match_any_sync(mask, value)``: the active lanes in *mask* that have the same *value*, bits of a uint64."""
class matrix:
    """``hip.matrix``: products of small matrices, which AMD GPUs with matrix cores compute in one instruction.

    A *fragment* is a small matrix that a wave has together: each lane has some of its elements. All lanes of a wave call
    these functions together, with the same arguments: a wave has to be whole, and its lanes must not be on different sides
    of a branch. A kernel computes ``d = a @ b + c`` for matrices of any size by taking them tile by tile::

        sums = hip.matrix.fragment("accumulator", (16, 16, 16), np.float32)
        left = hip.matrix.fragment("a", (16, 16, 16), np.float16)
        right = hip.matrix.fragment("b", (16, 16, 16), np.float16)
        hip.matrix.fill(sums, 0)
        for k in range(0, a.shape[1], 16):
            hip.matrix.load(left, a, row, k)
            hip.matrix.load(right, b, k, column)
            hip.matrix.mma(sums, left, right, sums)
        hip.matrix.store(sums, product, row, column)

    ``fragment[i]`` is the element number *i* of those that this lane has, of which there are ``len(fragment)``, or none;
    `position` tells its row and column. ``fragment.shape`` is that of the whole matrix. Several lanes may have the same
    element of an *a* or a *b*: assign what depends on the old value and on the position alone, and to all of them."""
    @staticmethod
    def fill(fragment: Any, value: Any) -> None:
        """``fill(fragment, value)``: make all elements *value*."""
    @staticmethod
    def fragment(role: Any, shape: Any, dtype: Any) -> Any:
        """``fragment(role, shape, dtype)``: a new small matrix, not initialised, whose elements the lanes of a wave have
        together.

        *role* is "a", "b" or "accumulator", *shape* the constants (m, n, k) of a product of (m, k) by (k, n), and *dtype*
        the type of the elements. `MatrixError` if the target has no such fragment. A fragment is this call's own, and a
        name for it another name, as with arrays."""
    @staticmethod
    def load(fragment: Any, source: Any, row: Any = 0, column: Any = 0, leading: Any = None, layout: Any = 'row', partial: Any = False) -> None:
        """``load(fragment, source, row=0, column=0, leading=None, layout="row", partial=False)``: the elements of
        *source* from *row* and *column* on, as many as *fragment* has; converted, if they are of another type.

        *source* is a two-dimensional array in any order, or view of one. Or it is an array with one axis, in which
        *leading* elements lie from one row to the next, or with *layout* "col" from one column to the next. The tile has
        to lie within the array, unless *partial* is True, for arrays with two axes: what lies outside, also before the
        beginning, is 0 then."""
    @staticmethod
    def mma(d: Any, a: Any, b: Any, c: Any) -> None:
        """``mma(d, a, b, c)``: ``d = a @ b + c``, of fragments of one shape; *d* may be *c*.

        Products of float16, bfloat16, numbers of 8 bits and float32 are added up in float32, of int8 in int32 with
        wrap-around, and of float64 in float64. In which order, and whether a sum is rounded in between, is up to the
        device. `MatrixError` if the target does not multiply such fragments."""
    @staticmethod
    def position(fragment: Any, index: Any) -> tuple[int, int]:
        """``position(fragment, index)``: row and column, in the whole matrix, of this lane's element number *index*: two
        int64."""
    @staticmethod
    def store(fragment: Any, target: Any, row: Any = 0, column: Any = 0, leading: Any = None, layout: Any = 'row', partial: Any = False) -> None:
        """``store(fragment, target, row=0, column=0, leading=None, layout="row", partial=False)``: write the elements of
        *fragment* to *target*, from *row* and *column* on: the opposite of `load`. If *partial* is True, those that lie
        outside are left out."""
def mbcnt(mask: Any, base: Any = 0) -> int:
    """``mbcnt(mask, base=0)``: how many lanes in the 64 bits of *mask* are below this one, plus *base*; an int32."""
def nanosleep(ns: Any) -> None:
    """``nanosleep(ns)``: pause for about *ns* nanoseconds, an integer. A hint: on the CPU device, which runs the
    threads of a block on one core, it takes no time. What is read before and after it is read twice, so a loop around
    it may wait for another thread."""
def popc(x: Any) -> int:
    """``popc(x)``: how many bits of the integer *x* are set, an int32."""
def readfirstlane(value: Any) -> Any:
    """``readfirstlane(value)``: the *value* of the lowest active lane."""
def readlane(value: Any, lane: Any) -> Any:
    """``readlane(value, lane)``: the *value* of lane number *lane*, which has to be uniform across the active lanes."""
def selp(predicate: Any, a: Any, b: Any) -> Any:
    """``selp(predicate, a, b)``: *a* where *predicate* is true, else *b*, without a branch. Both are numbers."""
class shared:
    """``hip.shared``: arrays that the threads of a block share (LDS)."""
    @staticmethod
    def array(shape: Any, dtype: Any, alignment: Any = None) -> Any:
        """``shared.array(shape, dtype, alignment=None)``: an array in shared memory, one for each block.

        *shape* is a constant, or a tuple of constants. Shape 0 is the dynamic shared memory of the launch, the fourth
        number of its configuration: as many elements as fit, and all such arrays of a kernel lie at the same place.
        *alignment*, in bytes, is a constant power of two. The array is not initialised."""
    @staticmethod
    def load(target: Any, source: Any, start: Any = 0) -> Any:
        """``shared.load(target, source, start=0)``: all threads of the block copy a part of *source* into *target*, an
        array in shared memory of the same type of numbers; both have one axis or two.

        *start* is the index of the part's first element, a number, or a tuple of one for each axis; 0 stands for the
        beginning in all. Elements outside of *source*, also at negative indices, are 0. All threads of the block have to
        call this together, with the same arguments. *target* may be read after the next `syncthreads`, and must not be
        written, nor may what is read of *source*, until then."""
def shfl(value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl(value, lane, width=warpsize)``: the *value* of lane number *lane* of the group. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_down(value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_down(value, lane, width=warpsize)``: the *value* of the lane that is *lane* higher. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_down_sync(mask: Any, value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_down_sync(mask, value, lane, width=warpsize)``: the *value* of the lane that is *lane* higher. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_sync(mask: Any, value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_sync(mask, value, lane, width=warpsize)``: the *value* of lane number *lane* of the group. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_up(value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_up(value, lane, width=warpsize)``: the *value* of the lane that is *lane* lower. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_up_sync(mask: Any, value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_up_sync(mask, value, lane, width=warpsize)``: the *value* of the lane that is *lane* lower. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_xor(value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_xor(value, lane, width=warpsize)``: the *value* of the lane whose number is this lane's exclusive or *lane*. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
def shfl_xor_sync(mask: Any, value: Any, lane: Any, width: Any = None) -> Any:
    """``shfl_xor_sync(mask, value, lane, width=warpsize)``: the *value* of the lane whose number is this lane's exclusive or *lane*. Lanes form groups of *width*, a power of two; where the other lane is not in its group, a lane gets its own value."""
short1 = int16x1
short2 = int16x2
short3 = int16x3
short4 = int16x4
def stcg(ary: Any, idx: Any, val: Any) -> None:
    """``stcg(ary, idx, val)``: ``ary[idx] = val``, cached for all threads of the device."""
def stcs(ary: Any, idx: Any, val: Any) -> None:
    """``stcs(ary, idx, val)``: ``ary[idx] = val``, which is read once."""
def stwb(ary: Any, idx: Any, val: Any) -> None:
    """``stwb(ary, idx, val)``: ``ary[idx] = val``, written back whenever the cache does."""
def stwt(ary: Any, idx: Any, val: Any) -> None:
    """``stwt(ary, idx, val)``: ``ary[idx] = val``, written to memory at once."""
def syncthreads() -> None:
    """``syncthreads()``: wait until every thread of the block is here; what they wrote before is seen by all after."""
def syncthreads_and(predicate: Any) -> int:
    """``syncthreads_and(predicate)``: `syncthreads`, and 1 if *predicate* is true for every thread, else 0."""
def syncthreads_count(predicate: Any) -> int:
    """``syncthreads_count(predicate)``: `syncthreads`, and the number of threads whose *predicate* is true."""
def syncthreads_or(predicate: Any) -> int:
    """``syncthreads_or(predicate)``: `syncthreads`, and 1 if *predicate* is true for any thread, else 0."""
def syncwarp(mask: Any = -1) -> None:
    """``syncwarp(mask=-1)``: wait for the active lanes of the wave; what they wrote before is seen by them after."""
class texture:
    """``hip.texture``: a two-dimensional array read as a texture, at coordinates that are no whole numbers or lie outside.

    The rules are those of HIP's and CUDA's textures: the element ``image[row, column]`` covers the coordinates from
    ``column`` to ``column + 1`` and from ``row`` to ``row + 1``, with its own value in the middle. It is done by ordinary
    instructions, the same on every device, with weights that are not rounded to 8 bits as those of texture units are. The
    function also works on the host."""
class _threadIdx:
    """Index of this thread in its block."""
    x: int
    y: int
    z: int
threadIdx: _threadIdx
"""Index of this thread in its block."""
def threadfence() -> None:
    """``threadfence()``: all threads of the device see what this thread wrote before, before what it writes after."""
def threadfence_block() -> None:
    """``threadfence_block()``: as `threadfence`, for the threads of this block."""
def threadfence_system() -> None:
    """``threadfence_system()``: as `threadfence`, for all threads of all devices and of the host."""
uchar1 = uint8x1
uchar2 = uint8x2
uchar3 = uint8x3
uchar4 = uint8x4
uint1 = uint32x1
class uint16x1:
    """A vector of 1 components of type uint16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class uint16x2:
    """A vector of 2 components of type uint16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class uint16x3:
    """A vector of 3 components of type uint16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class uint16x4:
    """A vector of 4 components of type uint16."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
uint2 = uint32x2
uint3 = uint32x3
class uint32x1:
    """A vector of 1 components of type uint32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class uint32x2:
    """A vector of 2 components of type uint32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class uint32x3:
    """A vector of 3 components of type uint32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class uint32x4:
    """A vector of 4 components of type uint32."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
uint4 = uint32x4
class uint64x1:
    """A vector of 1 components of type uint64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class uint64x2:
    """A vector of 2 components of type uint64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class uint64x3:
    """A vector of 3 components of type uint64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class uint64x4:
    """A vector of 4 components of type uint64."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
class uint8x1:
    """A vector of 1 components of type uint8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    def __getattr__(self, name: str) -> Any: ...
class uint8x2:
    """A vector of 2 components of type uint8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    def __getattr__(self, name: str) -> Any: ...
class uint8x3:
    """A vector of 3 components of type uint8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    def __getattr__(self, name: str) -> Any: ...
class uint8x4:
    """A vector of 4 components of type uint8."""
    def __init__(self, *components: Any) -> None: ...
    x: Any
    y: Any
    z: Any
    w: Any
    def __getattr__(self, name: str) -> Any: ...
ulong1 = uint64x1
ulong2 = uint64x2
ulong3 = uint64x3
ulong4 = uint64x4
ulonglong1 = uint64x1
ulonglong2 = uint64x2
ulonglong3 = uint64x3
ulonglong4 = uint64x4
ushort1 = uint16x1
ushort2 = uint16x2
ushort3 = uint16x3
ushort4 = uint16x4
class vector:
    """``hip.vector``: loads vectors from neighbouring elements of an array, and stores them.

    A vector can have any shape. Its last axis runs along the last axis of the array, and so on. Contiguous elements become
    one access of the device if it supports that many bytes at that alignment."""
    @staticmethod
    def load(array: Any, indices: Any, shape: Any, alignment: Any = None) -> Any:
        """``vector.load(array, indices, shape, alignment=None)``: the vector of *shape*, a constant or a tuple of them,
        that begins at ``array[indices]``.

        *indices* is an integer, or a tuple of one for each axis. An integer counts the elements of an array of more axes,
        too, which has to be in C order. *array* can be a pointer. *alignment* promises that the address of the first
        element is a multiple of that many bytes, and that the elements of a row lie side by side."""
    @staticmethod
    def store(array: Any, index: Any, vector: Any, alignment: Any = None) -> None:
        """``vector.store(array, index, vector, alignment=None)``: writes the components of *vector* to the elements from
        ``array[index]`` on. See `load`, which reads them."""
def wall_clock64() -> int:
    """``wall_clock64()``: ticks of a counter of constant frequency, the same for all threads of a device, an int64."""
warpsize: int
"""``hip.warpsize``: lanes of a wave, 32 or 64, an int32."""

def __getattr__(name: str) -> Any:
    """HIP's own functions, such as ``hip.sinf``, are found when they are asked for."""
