"""What became of a kernel, and why it is slow: forms, memory accesses, conversions, registers and compile time.

Nothing here is imported before it is asked for: by ``kernel.explain``, or by the setting ``performance_warnings``.
"""
