"""What Python and NumPy may say in kernels, as kernels: ``python -m tools.supported`` writes the guide's page of it.

Each row of the page is a function here. `tests/test_supported.py` compiles a kernel that calls it, runs it, and
compares its results with those of Python running the same function; rows of what is refused have the error instead.
"""
