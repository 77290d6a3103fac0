"""``numba.cuda.cudadrv.drvapi``: the types of CUDA's driver for ctypes, with which programs declare functions."""

from __future__ import annotations

from collections import namedtuple
from ctypes import CFUNCTYPE, Structure, c_byte, c_int, c_size_t, c_uint8, c_void_p, py_object

from hip_runtime.driver import DEFAULT_STREAM, LEGACY_STREAM, PER_THREAD_STREAM

cu_device = cu_device_attribute = cu_jit_option = cu_jit_input_type = cu_function_attribute = c_int
cu_context = cu_module = cu_function = cu_stream = cu_event = cu_link_state = c_void_p
cu_device_ptr = c_size_t
cu_uuid = c_byte * 16

cu_stream_callback_pyobj = CFUNCTYPE(None, c_void_p, c_int, py_object)
cu_occupancy_b2d_size = CFUNCTYPE(c_size_t, c_int)

CU_STREAM_DEFAULT, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD = DEFAULT_STREAM, LEGACY_STREAM, PER_THREAD_STREAM

FuncAttr = namedtuple("FuncAttr", "regs shared local const maxthreads")
"""The resources that a kernel uses, as CUDA's driver reports them."""


class cu_ipc_mem_handle(Structure):
    """The handle with which another process opens memory."""

    _fields_ = [("reserved", c_uint8 * 64)]
