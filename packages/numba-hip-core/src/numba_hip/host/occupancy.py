"""How many threads a block should have."""

from __future__ import annotations

from typing import Any

import hip_runtime
from numba_hip.compilation.kernel_code import KernelCode
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.errors import NotCompiledError
from numba_hip.host.contexts import Context


def suggest_block_size(kernel: Dispatcher, signature: Any = None, dynamic_shared: int = 0) -> int:
    """Threads of a block with which *kernel* keeps the current device busiest, by the registers and the shared memory
    that it takes, each block with *dynamic_shared* bytes more.

    The kernel is that for *signature*, which is compiled if need be; left out, that which was compiled last, and
    `NotCompiledError` where none was. A grid for *n* elements then has ``(n + size - 1) // size`` blocks.
    """
    device = hip_runtime.current_device()
    code = _last_code(kernel, device.target) if signature is None else kernel.compile(signature)
    function = device.load(code.code_object).function(code.name)
    return Context(device).get_max_potential_block_size(function, None, dynamic_shared, 0)[1]


def _last_code(kernel: Dispatcher, target: str) -> KernelCode:
    """What was compiled of *kernel* last for *target*."""
    codes = [code for code in kernel.overloads.values() if code.target.name == target]
    if not codes:
        raise NotCompiledError(
            f"kernel {kernel.__name__} was not compiled yet: launch it before, or name a signature, such as "
            "'void(float32[:], int64)'"
        )
    return codes[-1]
