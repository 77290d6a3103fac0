"""The registries for the typing and the lowering of the kernel language."""

from __future__ import annotations

from numba.core.typing.templates import Registry as TypingRegistry

from numba_hip._numba.lowering import Registry as LoweringRegistry

typing = TypingRegistry()
lowering = LoweringRegistry("numba_hip.language")
