"""``cuda.experimental`` of `numba_cuda_mlir`: what is evaluated when a kernel is compiled."""

import importlib
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba.core import types

from numba_hip import config
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import OptionError
from numba_hip_cuda import posing
from numba_hip_cuda.mlir.experimental import ConstevalError, consteval
from numba_hip_cuda.mlir.rewriting import Rewriter, needs_rewriting, target_options

ARRAY = types.Array(types.float32, 1, "C")
SIZES = [1, 2, 4]
PLACES = {"first": 0, "second": 1}


@pytest.fixture
def cuda() -> Iterator[ModuleType]:
    with posing():
        yield importlib.import_module("numba_cuda_mlir.cuda")


def rewritten(folder: Path, body: str, **options: Any) -> str:
    """The body of a kernel ``kernel(x, n)`` of a float32 array and an int64, as it is compiled."""
    program = folder / "program.py"
    program.write_text("def kernel(x, n):\n" + textwrap.indent(textwrap.dedent(body).strip(), "    ") + "\n")
    names: dict[str, Any] = {"consteval": consteval, "SIZES": SIZES, "PLACES": PLACES, "types": types, "np": np}
    exec(compile(program.read_text(), str(program), "exec"), names)
    rewriter = Rewriter(target_options(options))
    made = rewriter(names["kernel"], (ARRAY, types.int64))
    assert isinstance(made, FunctionType)
    assert made.__code__.co_filename == str(program)
    return textwrap.dedent(rewriter.sources[ARRAY, types.int64].partition("\n")[2])


@pytest.mark.parametrize(
    ("body", "becomes"),
    [
        ("x[0] = consteval(len(SIZES) + 1)", "x[0] = 4"),
        ("a = consteval(SIZES[2])\nx[0] = consteval(a * 2) + a", "a = 4\nx[0] = 8 + a"),
        ("x[0] = consteval((1, 'b', None))[0]", "x[0] = (1, 'b', None)[0]"),
        ("if consteval(x.dtype == types.float32):\n    x[0] = 1\nelse:\n    x[0] = 2", "x[0] = 1"),
        ("if consteval(n == types.float32):\n    x[0] = 1", "pass"),
        ("x[0] = 1 if consteval(x.ndim > 1) else 2", "x[0] = 2"),
        ("for i in consteval(SIZES):\n    x[i] = i", "x[1] = 1\nx[2] = 2\nx[4] = 4"),
        ("for name, place in consteval(PLACES.items()):\n    x[place] = consteval(len(name))", "x[0] = 5\nx[1] = 6"),
        ("for i in consteval(range(0)):\n    x[i] = i\nelse:\n    x[0] = 3", "x[0] = 3"),
        ("for i in consteval(range(2)):\n    for j in range(i):\n        continue",
         "for j in range(0):\n    continue\nfor j in range(1):\n    continue"),
        ("with consteval():\n    total = 0\n    for size in SIZES:\n        total += size\nx[0] = consteval(total)",
         "x[0] = 7"),
        ("kind = consteval(x.dtype)\nif consteval(kind == types.float32):\n    x[0] = 1", "x[0] = 1"),
        ("x[0] = consteval(current_target_options()['chip'] == 'gfx')", "x[0] = True"),
        ("consteval(SIZES.index(1))\nx[0] = 1", "x[0] = 1"),
    ],
)  # fmt: skip
def test_what_becomes_of_the_source(tmp_path: Path, body: str, becomes: str) -> None:
    assert rewritten(tmp_path, body, chip="gfx") == becomes


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("x[0] = consteval(unknown)", "Cannot evaluate consteval argument 'unknown' at compile time: .*not defined"),
        ("with consteval():\n    a = 1 / 0", "Error executing consteval block: division by zero"),
        ("with consteval() as a:\n    pass", "as a:' is not supported"),
        ("for i in consteval(5):\n    pass", "must be iterable, not 5"),
        ("for i in consteval(SIZES):\n    if x[0]:\n        break", "does not support break"),
        ("for i in consteval(SIZES):\n    i = 2", "the body assigns to 'i'"),
        ("for i, j in consteval([(1,)]):\n    pass", r"not enough values to unpack \(expected 2, got 1\)"),
        ("for i, *j in consteval([(1,)]):\n    pass", "starred targets"),
        ("for x[0] in consteval([1]):\n    pass", "assigns to names, not to x"),
        ("a = consteval(1)\na += n\nx[0] = consteval(a)", "Cannot evaluate consteval argument 'a'"),
        ("if n:\n    a = consteval(1)\nelse:\n    a = consteval(2)\nx[0] = consteval(a)", "Cannot evaluate"),
        ("a = consteval(1)\nfor i in range(n):\n    x[i] = consteval(a)\n    a = n", "Cannot evaluate"),
        ("x[0] = consteval(1, 2)", "takes one expression"),
        ("x[0] = local_array_from((i for i in n), np.int32)[0]", "is assigned to one name"),
        ("a = local_array_from((i for i in n if i), np.int32)", "no 'if'"),
    ],
)
def test_what_cannot_be_evaluated(tmp_path: Path, body: str, says: str) -> None:
    with pytest.raises(ConstevalError, match=says):
        rewritten(tmp_path, body)


def test_kernels(cuda: ModuleType) -> None:
    experimental = importlib.import_module("numba_cuda_mlir.cuda.experimental")
    local_array_from = experimental.local_array_from

    @cuda.jit
    def add(x: Any, y: Any) -> Any:
        return x + y if experimental.consteval(x == types.float32) else x - y

    def make(device: Callable[..., Any]) -> Any:
        @cuda.jit
        def kernel(x, indices, by=3):  # type: ignore[no-untyped-def]
            for i in experimental.consteval(range(2)):
                x[i] = experimental.consteval(device)(x[i], by)
            found = local_array_from((2 * i for i in indices), dtype=np.int64)
            x[2] = found[1]

        return kernel

    kernel = make(add)
    x = np.ones(3, np.float32)
    kernel[1, 1](x, (4, 5))
    assert x.tolist() == [4, 4, 10]
    y = np.ones(3)
    kernel[1, 1](y, (4, 5, 6))
    assert y.tolist() == [-2, -2, 10]
    sources = kernel.inspect_transformed_source()
    assert len(sources) == 2
    assert "x[1] = " in next(iter(sources.values()))

    @cuda.jit
    def plain(x: Any) -> None:
        x[0] = 1

    assert not needs_rewriting(plain.py_func)
    plain[1, 1](x)
    assert list(plain.inspect_transformed_source().values()) == [None]


def test_elsewhere_it_is_refused(cuda: ModuleType) -> None:
    for use in (lambda: consteval(1), lambda: consteval().__enter__()):
        with pytest.raises(RuntimeError, match="experimental_ast_transforms=False"):
            use()
    with pytest.raises(OptionError, match="it has to be callable"):
        CompileOptions.of_jit({"rewrite": 1})
    nameless = eval("lambda x: consteval(x)", {"consteval": consteval})
    with pytest.raises(ConstevalError, match="cannot be read"):
        Rewriter({})(nameless, (types.int64,))


def test_simulated(cuda: ModuleType) -> None:
    with config.simulator.scope(True):

        @cuda.jit
        def kernel(x: Any) -> None:
            for i in consteval(range(2)):
                x[i] = consteval(i + 1)

        x = np.zeros(2)
        kernel[1, 1](x)
    assert x.tolist() == [1, 2]
