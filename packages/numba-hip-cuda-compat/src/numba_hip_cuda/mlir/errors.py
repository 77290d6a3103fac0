"""Classes of errors of NVIDIA's compiler that programs name, and that nothing here raises."""


class InternalCompilerError(RuntimeError):
    """A fault of NVIDIA's compiler."""
