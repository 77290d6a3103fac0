"""How many threads a block should have."""

from __future__ import annotations

from typing import Any

import hip_runtime
from numba_hip.dispatch.dispatcher import Dispatcher
from numba_hip.host.contexts import Context
from numba_hip.host.loaded_functions import function_of


def suggest_block_size(kernel: Dispatcher, signature: Any = None, dynamic_shared: int = 0) -> int:
    """Threads of a block with which *kernel* keeps the current device busiest, by the registers and the shared memory
    that it takes, each block with *dynamic_shared* bytes more.

    The kernel is that for *signature*, which is compiled if need be; left out, that which was compiled last, and
    `NotCompiledError` where none was. A grid for *n* elements then has ``(n + size - 1) // size`` blocks.
    """
    device = hip_runtime.current_device()
    function = function_of(kernel, device, signature)
    return Context(device).get_max_potential_block_size(function, None, dynamic_shared, 0)[1]
