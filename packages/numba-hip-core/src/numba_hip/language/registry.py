"""Where the features of the kernel language enter their typing and their lowering."""

from __future__ import annotations

from numba.core.imputils import Registry as LoweringRegistry
from numba.core.typing.templates import Registry as TypingRegistry

typing = TypingRegistry()
lowering = LoweringRegistry("numba_hip.language")
