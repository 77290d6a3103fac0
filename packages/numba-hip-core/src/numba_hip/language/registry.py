"""Where the features of the kernel language enter their typing and their lowering."""

from __future__ import annotations

from numba.core.typing.templates import Registry as TypingRegistry

from numba_hip._numba.lowering import Registry as LoweringRegistry

typing = TypingRegistry()
lowering = LoweringRegistry("numba_hip.language")
