"""Mistakes in kernels, as new users make them: each is told in a few lines, at the line, with what to do."""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from numba.core import config as numba_config
from numba.core.errors import NumbaError, TypingError, UnsupportedBytecodeError

import numba_hip as hip
from hip_runtime.errors import LaunchError
from numba_hip import config
from numba_hip.errors import (
    KernelArgumentError,
    OptionError,
    SignatureError,
    UnknownNameError,
    UnsupportedCodeError,
    UnsupportedSyntaxError,
)

MOST_LINES = 11
"""Lines that an error may have with its traceback."""

BEFORE = """
import math
import random
import time
from random import uniform
from time import time as now

import numpy as np
from numba import hip

NUMBERS = [1, 2, 3]
TABLE = {"a": 1}
LARGE = 1 << 70


class Point:
    def __init__(self, x):
        self.x = x


POINT = Point(3)


def helper(x):
    return x + 1


@hip.jit
def other(a):
    a[0] = 1


@hip.jit(device=True)
def added(x, y):
    return x + y


@hip.jit(device=True)
def refers(x):
    return x.foo + 1


@hip.jit(device=True)
def misspells(x):
    y = x + 1
    return yy


@hip.jit(device=True)
def allocates(x):
    room = np.zeros(3)
    return room[0] + x

"""


class Mistake(NamedTuple):
    """The body of a kernel, what the error has to say, and the line that it has to show if that is not the first."""

    body: str
    says: str
    line: str | None = None


ALLOCATION = "a kernel cannot allocate memory"
LIST = "a kernel has no memory to make lists in: use a tuple"
DICT = "a kernel has no dictionaries"
SET = "a kernel has no sets"
TEXT = "a kernel makes no text while it runs"
TRY = "a kernel has no try: test what could go wrong"
CONSTANTS = r"must consist of constants.*\n.*<function shared.array of hip>"
OBJECT = "a kernel has no objects of classes"

MISTAKES = [
    Mistake("x = [1, 2]; a[0] = x[0]", LIST),
    Mistake("x = []\nx.append(1)\na[0] = x[0]", LIST, "x.append(1)"),
    Mistake("x = [i for i in range(3)]\na[0] = x[1]", LIST),
    Mistake("for i, x in enumerate([1, 2]):\n    a[i] = x", LIST),
    Mistake("a[0] = max([1, 2])", LIST),
    Mistake("print([1, 2])", LIST),
    Mistake("x = {1: 2}; a[0] = x[1]", DICT),
    Mistake("x = {}\nx[1] = 2\na[0] = x[1]", DICT, "x"),
    Mistake("x = {i: i for i in range(3)}; a[0] = x[1]", DICT),
    Mistake("x = {1, 2}; a[0] = len(x)", SET),
    Mistake("a[0] = sum(i for i in range(3))", "generator expressions: write a loop"),
    Mistake("a[0] = 0\ntry:\n    a[0] = 1 / a[1]\nexcept Exception:\n    a[0] = 0", TRY, "try:"),
    Mistake("try:\n    a[0] = 1 / a[1]\nfinally:\n    a[0] = 0", TRY),
    Mistake("a[0] = 0\nwith open('x') as f:\n    a[0] = 1", "a kernel has no with", "with open('x') as f:"),
    Mistake("p = Point(3)\na[0] = p.x", OBJECT),
    Mistake("a[0] = POINT.x", OBJECT),
    Mistake("class P: pass\na[0] = 1", OBJECT),
    Mistake("x = '%d' % a[0]\nprint(x)", TEXT),
    Mistake("x = f'{a[0]}'\nprint(x)", TEXT, "x = f'{a[0]}'"),
    Mistake("a[0] = 1\nx = f'{a[0]:.2f}'\nprint(x)", TEXT, "x = f'{a[0]:.2f}'"),
    Mistake("print(f'{a[0]:.3q}')", "takes no format '.3q' of a float64: .*; formats are those of Python's numbers"),
    Mistake("print(f'{a[0]:d}')", "takes no format 'd' of a float64"),
    Mistake("print('%d' % a)", "takes no format '%d' of a array"),
    Mistake("print(f'{a}')", "print in a kernel takes numbers"),
    Mistake("print(f'{a[0]!r:>5}')", "takes no conversion .!r, !s, !a. together with a format"),
    Mistake("print(f'{a[0]:{a.size}}')", "takes no format that is made of values that are not constants: .*f'{x:.3f}'"),
    Mistake("print('%(x)d' % a[0])", r"takes no format '%\(x\)d' of the operator %: .*'%d' % i"),
    Mistake("print(a[0], a[1], sep='-')", "print in a kernel takes no sep=, end= and the like: write it into the text"),
    Mistake("print('%d %d' % a[0])", "with fewer values than places"),
    Mistake("print('%d' % (a[0], 1))", "with more values than places"),
    Mistake("print('{} {}'.format(a[0]))", r"'{} {}'.format\(...\) without a value for {}"),
    Mistake("print('{'.format(a[0]))", "Single '{' encountered"),
    Mistake("x = '{}'.format(a[0])\nprint(x)", TEXT),
    Mistake("x = 'abc'.upper()\nprint(x)", TEXT),
    Mistake("a[0] = len(f'{a[0]}')", TEXT),
    Mistake("if str(a[0]) == '1.0':\n    a[0] = 2", TEXT, "if str(a[0]) == '1.0':"),
    Mistake("a[0] = len(repr(a))", TEXT),
    Mistake("a[0] = len(str(a.size))", TEXT),
    Mistake("if 'abc'[a.size - 1] == 'b':\n    a[0] = 2", TEXT, "if 'abc'"),
    Mistake("raise ValueError(f'bad: {a[0]}')", "what it raises has text in quotes; print takes values"),
    Mistake("assert a[0] > 5, f'bad: {a[0]}'", "what it raises has text in quotes; print takes values"),
    Mistake("a[0] = int('x')", TEXT),
    Mistake("x = np.zeros(4)\na[0] = x[0]", ALLOCATION),
    Mistake("x = np.empty(4, np.float32)\na[0] = x[0]", ALLOCATION),
    Mistake("x = np.array([1., 2.])\na[0] = x[0]", LIST),
    Mistake("x = np.arange(4)\na[0] = x[0]", ALLOCATION),
    Mistake("x = a + a\na[0] = x[0]", ALLOCATION),
    Mistake("x = a.copy()\na[0] = x[0]", ALLOCATION),
    Mistake("a[0] = np.sort(a)[0]", ALLOCATION),
    Mistake("if a > 0:\n    a[0] = 1", ALLOCATION),
    Mistake("a[0] = helper(a[0])", "Untyped global name 'helper'.*put @hip.jit.device=True. above helper .*:24"),
    Mistake("a[0] = NUMBERS[0]", "NUMBERS is a list, .*: make it a tuple, .*or an array"),
    Mistake("a[0] = TABLE['a']", f"Untyped global name 'TABLE'.*{DICT}"),
    Mistake("i = hip.gird(1)\na[i] = 0", "hip has no gird; did you mean 'grid'"),
    Mistake("a[hip.threadidx.x] = 0", "hip has no threadidx; did you mean 'threadIdx'"),
    Mistake("hip.threadIdx.x = 3", "hip.threadIdx.x cannot be set: the launch decides which thread is where"),
    Mistake("a[hip.threadIdx.w] = 0", "Unknown attribute 'w' of type hip.threadIdx; there are x, y and z"),
    Mistake("a[0] = math.sqroot(a[0])", "math has no sqroot; did you mean 'sqrt'"),
    Mistake("a[0] = np.sqroot(a[0])", "np has no sqroot; did you mean 'sqrt'"),
    Mistake("a[0] = a[0].sqrt()", r"Unknown attribute 'sqrt' of type float64; math.sqrt\(...\) is a function"),
    Mistake("a[0] = a.cumsum()[1]", ALLOCATION),
    Mistake("a[0] = np.median(a)", ALLOCATION),
    Mistake("a[0] = sorted((3, 1, 2))[0]", r"sorted\(Tuple.*makes a list, .*assign them to a hip.local.array"),
    Mistake(
        "def f(n):\n    for i in range(n):\n        yield i\nfor v in f(3):\n    a[0] += v",
        r"yield in a closure is unsupported: write the generator outside, with @hip.jit\(device=True\)",
        "yield i",
    ),
    Mistake("a[0] = a.siz", "Unknown attribute 'siz' of type array.*did you mean 'size'"),
    Mistake(
        "def f(x):\n    return (n := x * 2) + n\na[0] = f(a[1])",
        r"':=' .*: assign before, in a line of its own \(n = x \* 2\)",
        "return (n := x * 2) + n",
    ),
    Mistake("a[0] = 1\ntry:\n    a[0] = 1 / a[1]\nexcept ZeroDivisionError:\n    a[0] = 0", TRY, "try:"),
    Mistake("try:\n    a[0] = 1 / a[1]\nexcept (ValueError, TypeError):\n    a[0] = 0", TRY),
    Mistake("try:\n    a[0] = 1 / a[1]\nexcept Exception as error:\n    a[0] = 0", TRY),
    Mistake("try:\n    a[0] = 1 / a[1]\nexcept Exception:\n    raise", TRY),
    Mistake("x = a[0]\na[1] = x\ndel x", "a kernel has no del of a variable, and needs none", "del x"),
    Mistake("x = a\ny = x\ndel x\ny[0] = 1", "a kernel has no del of a variable", "del x"),
    Mistake("def f(n):\n    return f(n - 1) if n else 0\na[0] = f(3)", "inside a kernel cannot call itself"),
    Mistake(
        "def f(): return q\nq = int(a[1])\na[0] = f()",
        "nor use a variable that gets its first value after it.*or behind",
    ),
    Mistake("x = 1\ny = [v for v in range(3) if (w := v) > 1]", "a comprehension cannot assign with ':='", "y = [v"),
    Mistake("def f(*p):\n    return len(p)\na[0] = f((1, 2, 3))", r"neither \*args nor \*\*kwargs"),
    Mistake("f = lambda x, *p: len(p)\na[0] = f(1, (1, 2, 3))", r"neither \*args nor \*\*kwargs"),
    Mistake("def f(**p):\n    return 1\na[0] = f()", r"neither \*args nor \*\*kwargs"),
    Mistake(
        "x = 1\nraise ValueError from None", "an exception without a cause: leave out 'from", "raise ValueError from"
    ),
    Mistake("raise a", r"raise ValueError\(...\), not a variable"),
    Mistake("a[0] = 1 << 70", "Int value is too large: 1180591620717411303424; .* up to 64 bits"),
    Mistake("a[0] = 1180591620717411303424", "up to 64 bits"),
    Mistake("a[0] = LARGE", "up to 64 bits"),
    Mistake("d = hip.to_device(a)\nd[0] = 1", "hip.to_device is for the host: call it before the launch"),
    Mistake("hip.synchronize()", "hip.synchronize is for the host"),
    Mistake("a[0] = time.time()", "time.time cannot be used in a kernel: call it before.*hip.clock64"),
    Mistake("a[0] = np.random.rand()", "np.random.rand cannot be used in a kernel.*hip.random"),
    Mistake("a[0] = random.random()", "random.random cannot be used in a kernel.*hip.random has generators"),
    Mistake("a[0] = random.gauss(0, 1)", "random.gauss cannot be used in a kernel"),
    Mistake("a[0] = uniform(0, 1)", "uniform is a function of Python's module random and runs on the host.*hip.random"),
    Mistake("a[0] = now()", "now is a function of Python's module time and runs on the host.*hip.clock64"),
    Mistake("open('x')", "open is Python's own and runs on the host"),
    Mistake("a[0] = eval('1')", "eval is Python's own and runs on the host"),
    Mistake("hip.atomic.add(a, 0, 'x')", "Cannot cast 'x' to float64"),
    Mistake("hip.atomic.add(a, 0)", r"hip.atomic.add takes \(ary, idx, val, scope\); this call passes"),
    Mistake("hip.atomic.add(a[0], 0, 1)", "hip.atomic.add: the first argument has to be an array, got float64"),
    Mistake("hip.atomic.ad(a, 0, 1)", "hip.atomic has no ad; did you mean 'add'"),
    Mistake("a[0] = valeu", "name 'valeu' is not defined"),
    Mistake("a[0] = helpr(1)", "name 'helpr' is not defined; did you mean 'helper'"),
    Mistake("def f(x):\n    return x + y\na[0] = f(1)", "name 'y' is not defined", "return x + y"),
    Mistake("a[0] = misspells(a[0])", "name 'yy' is not defined", "return yy"),
    Mistake("a[0] = added(misspells(a[0]), 1)", "called from .*: a.0. = added.misspells", "return yy"),
    Mistake("a[0, 0] = 1", "cannot index array.float64, 1d, C. with 2 indices"),
    Mistake("a[1.5] = 1", r"no index float64; integers, .*: int\(...\)"),
    Mistake("a['x'] = 1", "an array has no index text"),
    Mistake("a[1] = a[0]['x']", "float64 has no elements and no fields, and this asks for 'x': it is one number"),
    Mistake(
        "for x in (1, 2.5, 1j):\n    a[0] += x.real", "cannot be iterated over, as a variable has one type", "for x"
    ),
    Mistake("x = hip.float32x2(1, 2)\nx.y = 3", "components of a float32x2 can only be read, .*: make another", "x.y"),
    Mistake("a[0] = hip.libdevice.foo(1.0)", "HIP has no counterpart of libdevice.foo"),
    Mistake("a[0] = 'x'", "'x' cannot be assigned to an element of array.*: it is text"),
    Mistake("a[0] = (1, 2)", "assign its parts one by one"),
    Mistake("a[0] = 1j", r"take its \.real or \.imag"),
    Mistake("if a[0] > 1:\n    y = a\nelse:\n    y = 1\na[0] = y", "Cannot unify .* for 'y': .* one type", ""),
    Mistake("y = a if a[0] > 1 else 2\nprint(y)", "Cannot unify .* both ways through an expression"),
    Mistake("for i in 5:\n    a[0] = i", "5 cannot be iterated over; range"),
    Mistake("x, y = (1, 2, 3)\na[0] = x", "2 names on the left, 3 values on the right"),
    Mistake("x, *y = (1, 2, 3)\na[0] = y[0]", "(UNPACK_EX).*no rest of a tuple"),
    Mistake("other[1, 1](a)", "a kernel cannot launch kernels: launch other from the host"),
    Mistake("a[0] = added(1)", r"added\(x, y\) is called with \(1\): missing a required argument: 'y'"),
    Mistake("a[0] = added(1, 2, 3)", r"added\(x, y\) is called with \(1, 2, 3\): too many"),
    Mistake("a[0] = added(x=1, z=2)", r"added\(x, y\) is called with \(x=1, z=2\)"),
    Mistake("a[0] = refers(a[0])", "Unknown attribute 'foo' of type float64", "return x.foo + 1"),
    Mistake("a[0] = allocates(a[0])", ALLOCATION, "room = np.zeros(3)"),
    Mistake(
        "n = a.size\ns = hip.shared.array(n, np.float32)\ns[0] = 1",
        CONSTANTS,
        "s = hip.sh",
    ),
    Mistake("s = hip.shared.array(4)\ns[0] = 1", r"hip.shared.array takes \(shape, dtype, alignment\)"),
    Mistake("s = hip.local.array(4, 'flaot32')\ns[0] = 1", "Invalid NumPy dtype specified: 'flaot32'"),
    Mistake("a[hip.grid(4)] = 0", r"hip.grid\(4\): the number of axes can be 1, 2 or 3"),
    Mistake("a[0] = len(5)", r"No implementation of function len for \(5\)"),
    Mistake("b = sorted(a)\na[0] = b[0]", r"sorted\(array.* makes a list, .*: call its sort\(\) instead"),
    Mistake("a[0] = np.linalg.det(a)", "np.linalg.det cannot be used in a kernel"),
    Mistake("a[0] = math.sin(a)", "No implementation of function sin .*: it takes one number"),
    Mistake("a[0] = np.sum(a, axis=0)[0]", "unexpected keyword argument 'axis'|write a loop over the elem"),
    Mistake("import math as m\na[0] = m.sin(1.0)", "a kernel cannot import: do that above it"),
    Mistake("global LARGE\nLARGE = 3", "a kernel cannot assign to global names", "LARGE = 3"),
    Mistake("match a[0]:\n    case [x, y]:\n        a[0] = 3", "a kernel has no match: write if", "case [x, y]:"),
    Mistake("a.append(1)", "Unknown attribute 'append' of type array.*: arrays keep their size"),
    Mistake("del a[0]", "cannot be deleted: arrays keep their size"),
    Mistake("print(a)", "print in a kernel takes numbers"),
    Mistake("hip.syncthreads(1)", r"hip.syncthreads takes \(\); this call passes \(1\)"),
]


FIELDS = "there is no field 'c' in records with the fields a, bc"


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("a = r[0].c", FIELDS),
        ("a = r.c[0]", FIELDS),
        ("r[0].c = 1", FIELDS),
        ("r[0]['c'] = 1", "Field 'c' was not found in record with fields ..a., .bc.."),
        ("a = r[0]['c']", "Field 'c' was not found in record with fields ..a., .bc.."),
        ("r[0][2] = 1", "Field 2 was not found in record with fields ..a., .bc.."),
        ("r[0]['a'] = 'x'", "'x' cannot be assigned to the field 'a' of a record"),
        ("r[0].bcd = 1", "no field 'bcd' .*; did you mean 'bc'"),
    ],
)
def test_mistakes_with_fields_of_records(folder: Path, statement: str, says: str) -> None:
    launch = "kernel[1, 1](np.zeros(2, [('a', 'f4'), ('bc', 'i4')]))\n"
    error, shown = run(folder, kernel_of(statement, "r") + launch)
    assert isinstance(error, NumbaError)
    check(shown, says)
    assert statement in shown


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mistakes")


def run(folder: Path, source: str) -> tuple[BaseException, str]:
    """The error of the program *source*, and what Python prints of it."""
    path = folder / f"mistake_{abs(hash(source))}.py"
    path.write_text(source)
    with pytest.raises(Exception) as caught:  # noqa: PT011 - which one it is is what is tested
        exec(compile(source, str(path), "exec"), {"__name__": "mistake"})
    own = caught.value.__traceback__
    assert own is not None
    return caught.value, "".join(traceback.format_exception(type(caught.value), caught.value, own.tb_next))


def kernel_of(body: str, parameters: str = "a") -> str:
    indented = "".join(f"    {line}\n" for line in body.split("\n"))
    return f"{BEFORE}\n@hip.jit\ndef kernel({parameters}):\n{indented}\n"


@pytest.mark.sample(30)
# Numba gives a function the code of a generator, which Python 3.14 deprecates.
@pytest.mark.filterwarnings("ignore:Assigning a code object:DeprecationWarning")
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.body.split("\n")[0])
def test_mistakes_in_a_kernel(folder: Path, mistake: Mistake) -> None:
    error, shown = run(folder, kernel_of(mistake.body) + "kernel[1, 1](np.zeros(4))\n")
    expected = mistake.body.split("\n")[0] if mistake.line is None else mistake.line
    assert isinstance(error, (NumbaError, AttributeError)) or "Unsupported" in type(error).__name__
    check(shown, mistake.says)
    assert f"\n    {expected}" in shown, shown
    assert "compiling kernel(array(float64, 1d, C))" in shown
    assert not isinstance(error, UnsupportedBytecodeError) or isinstance(error, UnsupportedSyntaxError)
    assert error.__cause__ is None
    assert error.__context__ is not None, "Numba's own, for who looks for it"


OF_CLOSURES = [
    Mistake("helper(a[0])", "'helper'.*put @hip.jit.device=True. above helper .*py:13"),
    Mistake("child[1, 1](a)", "a kernel cannot launch kernels: launch child from the host"),
    Mistake("started = child[1, 1]; started(a)", "a kernel cannot launch kernels: launch child from the host"),
    Mistake("child.forall(3)(a)", "a kernel cannot launch kernels: launch child from the host"),
    Mistake("a[0] = added(1)", r"added\(x, y\) is called with \(1\): missing"),
    Mistake("a[0] = POINT.x", f"Untyped global name 'POINT'.*{OBJECT}"),
    Mistake("a[0] = TABLE['a']", DICT),
    Mistake("a[0] = NUMBERS[0]", "NUMBERS is a list, .*: make it a tuple, .*or an array"),
]

AROUND = """
def around():
    NUMBERS = [1, 2, 3]
    TABLE = {"a": 1}

    class Point:
        x = 1

    POINT = Point()

    def helper(x):
        return x

    @hip.jit
    def child(a):
        a[0] = 1

    @hip.jit(device=True)
    def added(x, y):
        return x + y

    @hip.jit
    def kernel(a):
        BODY

    return kernel


kernel = around()
"""


@pytest.mark.parametrize("mistake", OF_CLOSURES, ids=lambda mistake: mistake.body)
def test_mistakes_with_variables_of_the_function_around_a_kernel(folder: Path, mistake: Mistake) -> None:
    program = f"import numpy as np\nfrom numba import hip\n{AROUND.replace('BODY', mistake.body)}\n"
    error, shown = run(folder, program + "kernel[1, 1](np.zeros(4))\n")
    assert isinstance(error, (NumbaError, AttributeError))
    check(shown, mistake.says)
    assert f"\n    {mistake.body}" in shown, shown


def check(shown: str, says: str) -> None:
    assert re.search(says, shown), shown
    assert len(shown.splitlines()) <= MOST_LINES, shown
    frames = ("/numba_hip/",) if sys.version_info >= (3, 11) else ()  # before, Python shows the outermost one
    for ours in (*frames, "/hip_runtime/", "/numba/", "candidate implementation", "pipeline (step"):
        assert ours not in shown, shown


LAUNCHES = [
    ("np.zeros(4, '>f8')", KernelArgumentError, r"argument 'a' is an array of dtype >f8, .*\.astype"),
    ("np.zeros(4, np.longdouble)", KernelArgumentError, r"argument 'a' .*longer numbers.*\.astype\(np.float64\)"),
    ("np.zeros(4, np.clongdouble)", KernelArgumentError, r"argument 'a' .*longer numbers.*\.astype\(np.complex128\)"),
    ("np.array([1, 'x'], dtype=object)", KernelArgumentError, "holds Python objects"),
    ("1 << 70", KernelArgumentError, "argument 'a' is 0x4.*integers from -2"),
    ("POINT", KernelArgumentError, "argument 'a' is a Point, which kernels cannot take"),
    ("[1, 2]", KernelArgumentError, r"argument 'a' is a list.*; pass np.array\(a\)"),
    ("[]", KernelArgumentError, r"argument 'a' is a list, which kernels cannot take; pass np.array\(a\)"),
    ("range(3)", KernelArgumentError, r"argument 'a' is a range.*; pass np.array\(a\)"),
    ("None", TypingError, "argument 'a' of kernel kernel is None: ask whether 'a is not None' before it is used"),
    ("{'a': 1}", KernelArgumentError, "argument 'a' is a dict, .*as a named tuple, or its values as an array"),
    ("{1, 2}", KernelArgumentError, r"argument 'a' is a set.*; pass np.array\(list\(a\)\)"),
    ("__import__('numba.typed').typed.List([1])", KernelArgumentError, r"argument 'a' is a List.*; pass np.array\(a\)"),
    ("'text'", KernelArgumentError, r"argument 'a' is a str.*; pass an array, np.array\(\[a\]\)"),
    ("np.ma.array([1, 2], mask=[0, 1])", KernelArgumentError, r"'a' is a masked array, .*: pass a.filled\(value\)"),
    ("(np.ma.array([1, 2], mask=[0, 1]),)", KernelArgumentError, "'a' is a masked array"),
    ("np.broadcast_to(np.zeros(1), (4,))", TypingError, r"writes to an array that is read-only: 'a' .*a.copy\(\)"),
]


@pytest.mark.parametrize(("argument", "kind", "says"), LAUNCHES, ids=lambda value: str(value)[:30])
def test_arguments(folder: Path, argument: str, kind: type[Exception], says: str) -> None:
    error, shown = run(folder, kernel_of("a[0] = 1") + f"kernel[1, 1]({argument})\n")
    assert isinstance(error, kind)
    check(shown, says)


def test_series_and_frames(folder: Path) -> None:
    """By what they can be asked, as pandas need not be there."""

    class Series:
        def to_numpy(self) -> Any:
            return np.zeros(3)

    class DataFrame(Series):
        columns = ("x",)

    @hip.jit
    def kernel(a: Any) -> None:
        a[0] = 1

    with pytest.raises(KernelArgumentError, match=r"argument 'a' is a Series.*; pass a.to_numpy\(\)"):
        kernel[1, 1](Series())
    with pytest.raises(KernelArgumentError, match=r"is a DataFrame.*pass a column of it, a\['...'\].to_numpy\(\)"):
        kernel[1, 1](DataFrame())


DECORATED = [
    ("hip.jit('void(flaot32[:])')", SignatureError, "there is no type flaot32; did you mean 'float32'"),
    ("hip.jit('void(float32[:')", SignatureError, r"'\[' was never closed; write it as in"),
    ("hip.jit(fast_math=True)", OptionError, "no option fast_math; did you mean 'fastmath'"),
    ("hip.jit(restype=None, argtypes=[])", OptionError, r"no option argtypes, restype: .* go first.*hip.jit\('void"),
    ("hip.jit(argtypes=[], fast_math=1)", OptionError, "no option argtypes .a signature goes first., fast_math; did"),
    ("hip.jit(argtypes=[], bind=True)", OptionError, "bind .a kernel is loaded when it is launched."),
    ("hip.jit(parallel=True)", OptionError, r"no option parallel \(a kernel runs in parallel"),
    ("hip.jit(nopython=True)", OptionError, "no option nopython"),
]


@pytest.mark.parametrize(("decorator", "kind", "says"), DECORATED)
def test_decorators(folder: Path, decorator: str, kind: type[Exception], says: str) -> None:
    error, shown = run(folder, f"from numba import hip\n\n@{decorator}\ndef kernel(a):\n    a[0] = 1\n")
    assert isinstance(error, kind)
    check(shown, says)


def test_errors_of_other_ways_to_compile(folder: Path) -> None:
    wrong = kernel_of("a[0] = math.sqroot(a[0])")
    for call in (
        "kernel.forall(1)(np.zeros(1))",
        "kernel.compile('void(float64[:])')",
        "hip.compile(kernel.py_func, 'void(float64[:])')",
        "kernel.specialize(np.zeros(1))",
        "hip.jit('void(float64[:])')(kernel.py_func)",
        "kernel.inspect_llvm('void(float64[:])', target='gfx942')",
    ):
        error, shown = run(folder, wrong + call)
        assert isinstance(error, UnknownNameError)
        check(shown, "math has no sqroot; did you mean 'sqrt'")


def test_an_empty_array_makes_no_blocks() -> None:
    kernel = hip.jit(lambda a: None)
    with pytest.raises(LaunchError, match="extent 0 along x; each must be at least 1; where there is nothing to do"):
        kernel[0, 128](np.zeros(0))


def test_all_of_it_when_it_is_asked_for(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = kernel_of("a[0] = math.sin('x')") + "kernel[1, 1](np.zeros(4))\n"
    with config.full_tracebacks.scope(True):
        error, shown = run(folder, wrong)
    assert isinstance(error, TypingError)
    assert "candidate implementations" in shown
    assert "numba_hip/dispatch/launch.py" in shown
    monkeypatch.setattr(numba_config, "FULL_TRACEBACKS", 1)
    assert "candidate implementations" in run(folder, wrong)[1]


def test_a_fault_of_the_compiler_is_shown_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    from numba_hip.compilation import kernel_code

    def fail(*args: Any) -> None:
        raise AttributeError("'X' object has no attribute 'y'")

    monkeypatch.setattr(kernel_code, "compile_function", fail)
    with pytest.raises(AttributeError, match="'X' object has no attribute 'y'") as caught:
        hip.jit(lambda a: None)[1, 1](np.zeros(1))
    assert "in fail" in "".join(traceback.format_exception(caught.value))


def test_code_without_a_source() -> None:
    namespace: dict[str, Any] = {"hip": hip}
    exec("def kernel(a):\n    x = [1]\n    a[0] = x[0]", namespace)
    with pytest.raises(UnsupportedCodeError, match='File "<string>", line 2:\ncompiling') as caught:
        hip.jit(namespace["kernel"])[1, 1](np.zeros(1))
    assert LIST in str(caught.value)


@pytest.mark.cpu_device("what a kernel raises is known when the host waits for it")
@pytest.mark.parametrize(
    ("body", "launch", "says"),
    [
        ("if a[0] == 0:\n    raise ValueError('too little')", "kernel[1, 1](np.zeros(4))", "too little"),
        ("a[4] = 0", "kernel.forall(1)(np.zeros(4))", "index 4 is out of range"),
    ],
)
def test_what_a_kernel_raises_has_no_frames_of_ours(folder: Path, body: str, launch: str, says: str) -> None:
    decorated = "@hip.jit(exceptions=True, boundscheck=True)"
    error, shown = run(folder, kernel_of(body).replace("@hip.jit\n", decorated + "\n") + launch + "\n")
    check(shown, says)
    assert vars(error)["kernel_fault"].thread == (0, 0, 0)


def test_what_numba_does_not_translate_is_an_error_of_numba(folder: Path) -> None:
    wrong = kernel_of("import math as m\na[0] = 1") + "kernel[1, 1](np.zeros(4))\n"
    error, _ = run(folder, wrong)
    with config.full_tracebacks.scope(True):
        full, _ = run(folder, wrong)
    for one in (error, full, pickle.loads(pickle.dumps(error))):
        assert isinstance(one, UnsupportedSyntaxError)
        assert isinstance(one, NumbaError)
        assert isinstance(one, UnsupportedBytecodeError)
        assert "IMPORT_NAME" in str(one)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert type(full.__cause__) is UnsupportedBytecodeError


def test_an_inner_function_that_is_passed_on_takes_the_rest_of_its_arguments() -> None:
    @hip.jit(device=True)
    def applied(function: Any, x: Any) -> Any:
        return function(x, x, x)

    @hip.jit
    def kernel(a: Any) -> None:
        def added(*rest: Any) -> Any:
            return rest[0] + rest[1] + len(rest)

        a[0] = applied(added, a[1])

    a = np.array([0.0, 5.0])
    kernel[1, 1](a)
    assert a[0] == 13


@pytest.mark.parametrize(("operator", "told"), [
    ("add", "'add' is no function"), (3, "3 is no function"), (None, "a value of type none is no function"),
    (np.ones(2), "array(float64, 1d, C) is no function"), ((1, 2), "Tuple(1, 2) is no function"),
], ids=["text", "number", "None", "array", "tuple"])  # fmt: skip
@pytest.mark.sample(2)
def test_a_value_in_the_place_of_a_function(operator: Any, told: str) -> None:
    @hip.jit
    def kernel(a: Any) -> None:
        a[0] = hip.wave.reduce(a[hip.threadIdx.x], operator)

    with pytest.raises(TypingError, match=re.escape(told)) as caught:
        kernel[1, 64](np.ones(64, np.float32))
    assert "is called with (float32, float32)" in str(caught.value)
    assert "operator.add" in str(caught.value)
    assert "hip.wave.reduce(a[hip.threadIdx.x], operator)" in str(caught.value)


MISTAKES = """
import warnings

import numpy as np
from numba import hip
from numba.core.errors import NumbaWarning

from numba_hip.plain_messages import warn_plainly

@hip.jit
def kernel(a):
    a[0] = hip.local.array(4, 7)[0]

for given in (np.zeros(4), object()):
    try:
        kernel[1, 1](given)
    except Exception as error:
        print(error)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    warn_plainly(NumbaWarning, "mind", 1)
print(caught[0].message)
"""


def test_messages_are_plain_text_where_numba_highlights_its_own() -> None:
    pytest.importorskip("colorama")
    said = subprocess.run(
        [sys.executable, "-c", MISTAKES], capture_output=True, text=True, check=True, timeout=120,
        env={**os.environ, "NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING": "", "NUMBA_HIP_DEVICE": "cpu"},
    ).stdout  # fmt: skip
    assert "the dtype has to be a type of numbers" in said
    assert "argument 'a' is a object, which kernels cannot take" in said
    assert said.endswith("mind\n")
    assert "\x1b" not in said, "begins what highlights"
