"""Error classes of NVIDIA's compiler that programs name. Nothing here raises them."""


class InternalCompilerError(RuntimeError):
    """An internal error of NVIDIA's compiler."""
