"""Stamps: what differs for a kernel has another one, what is the same has the same one, in every process."""

import cmath
import collections
import enum
import functools
import math
import ntpath
import os
import sys
import threading
import types as python_types

import numba
import numpy as np
import pytest
from numba.core import types

import numba_hip as hip
from hip_runtime import config
from numba_hip.caching import fingerprint
from numba_hip.caching.fingerprint import NoFingerprintError
from numba_hip.compilation.options import CompileOptions
from numba_hip.errors import NotCacheableError
from numba_hip.linked_code import LinkedCode

Point = collections.namedtuple("Point", "x y")
Place = collections.namedtuple("Place", "x z")


class Plain:
    """What no stamp knows the kind of is pickled."""

    def __init__(self, number):
        self.number = number


class Other(Plain):
    """Of the same contents, but of another class."""


class Whole(int):
    """A number that is shown as Python's are."""


def stamp(value):
    return fingerprint._fingerprint_of(value)


def build(source, filename="<none>", **names):
    """The function ``f`` of *source*, in a module of its own that no package is."""
    names["__name__"] = "sample_of_a_stamp"
    exec(compile(source, filename, "exec"), names)
    return names["f"]


def module(**names):
    made = python_types.ModuleType("settings_of_a_stamp")
    vars(made).update(names)
    return made


def array(*, dtype="f8", shape=(2, 2), order="C", writeable=True, first=0.0):
    made = np.zeros(shape, dtype, order)
    made.flat[0] = first
    made.flags.writeable = writeable
    return made


def named(module, name):
    made = eval("lambda: 1", {"__name__": module})
    made.__qualname__ = name
    return made


ONE, TWO = build("def f(): return 1"), build("def f(): return 1")

VALUES = {
    "numbers": [1, True, 1.0, 1 + 0j, "1", b"1", 2, None, ..., Whole(1), np.int8(1), np.int16(1), np.float32(1)],
    "sequences": [(), [], (1,), [1], (1, 2), (2, 1), (1, (2,)), ((1,), 2), ((1, 2),), ("ab", "c"), ("a", "bc")],
    "sets": [set(), {1}, {2}, {1, 2}, {"1"}],
    "mappings": [{}, {1: 2}, {2: 1}, {1: 3}, {1: 2, 2: 1}, {2: 1, 1: 2}, {"1": 2}],
    "arrays": [
        array(), array(dtype="i8"), array(shape=4), array(shape=(4, 1)), array(order="F"), array(writeable=False),
        array(first=1.0), array(shape=(1, 4)), array(dtype=[("a", "f8")]), array(dtype=[("b", "f8")]),
    ],
    "types": [
        types.int32, types.int64, types.Array(types.int32, 1, "C"), types.Array(types.int32, 1, "A"),
        types.Array(types.int32, 1, "C", readonly=True), types.Tuple((types.int32, types.int64)),
        types.NamedTuple((types.int32, types.int32), Point), types.NamedTuple((types.int32, types.int32), Place),
        types.NumberClass(types.int32), types.NumberClass(types.int64), types.Opaque("a"), types.Dummy("a"),
        types.NamedTuple((types.int32, types.int32), collections.namedtuple("Point", "x y", module="another")),
    ],
    "modules": [module, os, sys, np],
    "instances": [Plain(1), Plain(2), Other(1), Point(1, 2), (1, 2), Place(1, 2)],
    "functions of Python": [len, max, np.sin, np.cos, os.path.join, os.path.split, ntpath.join, math.sqrt, cmath.sqrt],
    "what is called as another kind": [
        set(), python_types.ModuleType("set"), 1, python_types.SimpleNamespace(__module__="int", __qualname__="1"),
        types.Opaque("numpy"), named("numpy", "Opaque"),
    ],
    "what comes again": [(ONE, TWO, ONE), (ONE, TWO, TWO), (ONE, TWO, build("def f(): return 1"))],
}  # fmt: skip


@pytest.mark.parametrize("kind", VALUES)
def test_values_are_told_apart(kind):
    found = [stamp(value) for value in VALUES[kind]]
    assert len(set(found)) == len(found)
    assert [stamp(value) for value in VALUES[kind]] == found


def test_what_is_equal_has_one_stamp():
    assert stamp({"a", "b", "c"}) == stamp(frozenset("cba"))
    assert stamp(array()) == stamp(array())
    assert stamp(Plain(1)) == stamp(Plain(1))
    assert stamp(ONE) == stamp(TWO)
    assert len(stamp(1)) == 64


FUNCTIONS = [
    ("def f(a): return a", {}),
    ("def f(b): return b", {}),
    ("def f(a, /): return a", {}),
    ("def f(*, a): return a", {}),
    ("def f(*a): return a", {}),
    ("\ndef f(a): return a", {}),
    ("def f(a):\n    return a", {}),
    ("def f(a=1): return a", {}),
    ("def f(a=2): return a", {}),
    ("def f(*, a=1): return a", {}),
    ("def f(*, a=2): return a", {}),
    ("def f(a): return a.real", {}),
    ("def f(a): return a.imag", {}),
    ("def f(a): return a + N", {}),
    ("def f(a): return a + N", {"N": 1}),
    ("def f(a): return a + N", {"N": 2}),
    ("def f(a): return a + abs", {}),
    ("def f(a): return a + abs", {"abs": 1}),
    ("def f(a): return abs(max(a, 1))", {"abs": 1}),
    ("def f(a): return abs(max(a, 1))", {"max": 1}),
    ("def f(a): return a + m.N", {"m": module()}),
    ("def f(a): return a + m.N", {"m": module(N=1)}),
    ("def f(a): return a + m.N", {"m": module(N=2)}),
    ("def f(a): return a + m.N + m.M", {"m": module(N=1)}),
    ("def f(a): return a + m.N + m.M", {"m": module(M=1)}),
    ("def f(a): return a + m.n.N", {"m": module(n=module(N=1))}),
    ("def f(a): return a + m.n.N", {"m": module(n=module(N=2))}),
    ("def f(a): return lambda: N", {"N": 1}),
    ("def f(a): return lambda: N", {"N": 2}),
    ("def f(a): return lambda: 1", {}),
    ("def f(a): return lambda: 2", {}),
    ("def make(n):\n    def f(): return n\n    return f\nf = make(1)", {}),
    ("def make(n):\n    def f(): return n\n    return f\nf = make(2)", {}),
    ("def make():\n    def f(): return n\n    return f\n    n = 1\nf = make()", {}),
    ("def g(a): return a\nf = g", {}),
]


def test_functions_are_told_apart():
    found = [stamp(build(source, **names)) for source, names in FUNCTIONS]
    assert len(set(found)) == len(found)
    assert [stamp(build(source, **names)) for source, names in FUNCTIONS] == found


def test_what_a_function_does_not_reach_does_not_matter():
    def made(**names):
        return stamp(build("def f(a): return a + m.N", **names))

    assert made(m=module(N=1), N=1) == made(m=module(N=1, M=5), N=1)
    assert made(m=module(N=1)) == made(m=module(N=1), unused=3)


def test_modules_that_refer_to_each_other():
    def made(number):
        one, other = module(N=number), module()
        one.other, other.one = other, one
        return stamp(build("def f(): return one.other.one.N", one=one))

    assert made(1) == made(1) != made(2)


def test_code_that_functions_import():
    def made(number, line):
        sys.modules["imported_by_a_stamp"] = module(N=number)
        try:
            return stamp(build(f"def f():\n    {line}\n    return N"))
        finally:
            del sys.modules["imported_by_a_stamp"]

    for line in ("from imported_by_a_stamp import N", "g = lambda: __import__\n    from imported_by_a_stamp import N"):
        assert made(1, line) == made(1, line) != made(2, line)
    inner = "def g():\n        from imported_by_a_stamp import N\n        return N"
    assert made(1, inner) != made(2, inner)
    both = "from imported_by_a_stamp import N\n    def g():\n        import os"
    assert made(1, both) != made(2, both)


def test_relative_imports():
    package = "package_of_a_stamp"
    for name, number in ((package, 0), (f"{package}.inner", 1)):
        sys.modules[name] = module(N=number, __path__=[])
    try:
        source = "def f():\n    from .inner import N\n    return N"
        before = stamp(build(source, __package__=package))
        sys.modules[f"{package}.inner"].N = 2
        assert stamp(build(source, __package__=package)) != before
    finally:
        del sys.modules[package], sys.modules[f"{package}.inner"]


def make_class(body="", bases=(), name="Made"):
    names = {"__name__": "sample_of_a_stamp", "enum": enum, "functools": functools, "Base": bases}
    exec(f"class {name}({'*Base' if bases else ''}):\n    N = 1\n    {body}", names)
    return names[name]


CLASSES = [
    make_class(),
    make_class("M = 1"),
    make_class("M = 2"),
    make_class("L = 1"),
    make_class("def m(self): return 1"),
    make_class("def m(self): return 2"),
    make_class("@staticmethod\n    def m(): return 1"),
    make_class("@staticmethod\n    def m(): return 2"),
    make_class("@classmethod\n    def m(): return 1"),
    make_class("@property\n    def m(self): return 1"),
    make_class("@property\n    def m(self): return 2"),
    make_class("@property\n    def m(self): return 1\n    @m.setter\n    def m(self, value): return 1"),
    make_class("@property\n    def m(self): return 1\n    @m.setter\n    def m(self, value): return 2"),
    make_class("@property\n    def m(self): return 2\n    @m.setter\n    def m(self, value): return 1"),
    make_class("@functools.cached_property\n    def m(self): return 1"),
    make_class("@functools.cached_property\n    def m(self): return 2"),
    make_class(bases=(make_class("M = 1"),)),
    make_class(bases=(make_class("M = 2"),)),
    make_class("def m(self): return 1", (collections.namedtuple("Point", "x y"),)),
    make_class("def m(self): return 2", (collections.namedtuple("Point", "x y"),)),
    make_class(name="Named"),
    enum.Enum("Made", {"A": 1}, module="sample_of_a_stamp"),
    enum.Enum("Made", {"A": 2}, module="sample_of_a_stamp"),
    enum.Enum("Made", {"B": 1}, module="sample_of_a_stamp"),
    Point,
    Place,
    collections.namedtuple("Point", "x z", module=__name__),
    int,
    float,
]


def test_classes_are_told_apart():
    found = [stamp(kind) for kind in CLASSES]
    assert len(set(found)) == len(found)
    assert stamp(make_class("M = 1")) == found[1]
    assert stamp(make_class("'''A word.'''")) == stamp(make_class("'''Another.'''"))
    assert stamp(make_class("__slots__ = ('a',)")) == stamp(make_class("__slots__ = ('a',)"))


def test_instances_are_as_good_as_their_classes(monkeypatch):
    before = stamp(Plain(1))
    monkeypatch.setattr(Plain, "more", 1, raising=False)
    assert stamp(Plain(1)) != before


def test_what_says_itself_what_counts():
    class Held:
        def __init__(self, number):
            self.number, self.lock = number, threading.Lock()

        def add_to_fingerprint(self, into):
            into.add(self.number)

    assert stamp(Held(1)) == stamp(Held(1)) != stamp(Held(2))


def test_texts_of_any_kind_and_functions_of_numba():
    fingerprint.Fingerprint().add_text("\ud800")
    one, other = numba.njit(build("def f(): return 1")), numba.njit(build("def f(): return 2"))
    assert stamp(one) != stamp(other)
    assert stamp(one) != stamp(numba.njit(fastmath=True)(one.py_func))


def test_members_of_enumerations_are_told_apart():
    one, other = (enum.Enum("Made", {"A": 1, "B": number}, module="sample_of_a_stamp") for number in (2, 3))
    found = [stamp(member) for member in (one.A, one.B, other.A, other.B)]
    assert len(set(found)) == 4


def test_classes_of_numba_types_of_others_count():
    def made(text):
        base = {"types": types, "__name__": "sample_of_a_stamp"}
        exec(f"class Made(types.Type):\n    def m(self): return {text}", base)
        made = base["Made"]("made")
        return [stamp(kind) for kind in (made, types.Array(made, 1, "C"), types.Tuple((types.int32, made)))]

    assert made(1) == made(1)
    assert all(one != other for one, other in zip(made(1), made(2), strict=True))
    member = [types.NamedTuple((types.int32,), collections.namedtuple(name, "x")) for name in ("A", "B")]
    assert stamp(types.Tuple(member)) != stamp(types.Tuple(member[::-1]))


def test_options_and_signatures_of_device_functions():
    source = "def f(a): return a"
    made = [
        hip.jit(device=True)(build(source)),
        hip.jit(device=True, fastmath=True)(build(source)),
        hip.jit(device=True, fastmath="ulp4")(build(source)),
        hip.jit(device=True, fastmath={"ulp4"})(build(source)),
        hip.jit(device=True, inline="always")(build(source)),
        hip.jit(device=True, inline=True)(build(source)),
        hip.jit("int32(int32)", device=True)(build(source)),
        hip.jit("int64(int64)", device=True)(build(source)),
        hip.jit(device=True)(build("def f(a): return -a")),
    ]
    found = [stamp(function) for function in made]
    assert len(set(found)) == len(found)
    assert stamp(hip.jit(device=True)(build(source))) == found[0]


def test_functions_are_of_the_decorator_that_was_there():
    class Decorated:
        py_func = staticmethod(build("def f(a): return a"))

    class Other(Decorated):
        pass

    assert stamp(Decorated()) == stamp(Decorated()) != stamp(Other())


def test_functions_of_python_are_not_looked_into():
    assert stamp(os.path.expanduser), "which asks for the environment"


def test_options_that_make_the_same_code():
    def made(**options):
        return fingerprint.fingerprint_options(CompileOptions(**options))

    def cost_model(number):
        return build(f"def f(expr, caller, callee): return {number}")

    assert made(boundscheck=None) == made(boundscheck=False) != made(boundscheck=True)
    with config.cpu_races.scope("1"):
        assert made(races=False) == made(races=True)
    assert made(inline=cost_model(1)) == made(inline=cost_model(1)) != made(inline=cost_model(2))
    assert made(link=(b"; one",)) == made(link=(LinkedCode(b"; one", "named"),)) != made(link=(b"; two",))
    assert len({made(fastmath=value) for value in (False, True, "ulp4", frozenset({"fast"}))}) == 4
    assert made(fastmath={0, 8}) == made(fastmath={8, 0}), "sets of these begin with what was there first"


def test_options_of_other_dispatchers():
    def made(**options):
        return fingerprint._options_of(python_types.SimpleNamespace(**options))

    assert made() == made(options=None) == made(targetoptions={}) == "[]"
    assert made(targetoptions={"b": {2, 1}, "a": 0}) == made(options={"a": 0, "b": {1, 2}})
    assert made(targetoptions={"a": {1, 2}}) == "[('a', '[1, 2]')]"
    assert made(targetoptions={"a": None, "b": 1}) == "[('a', 'None'), ('b', '1')]"
    assert made(options={3, 1}) == "[1, 3]"
    ours = CompileOptions(fastmath={"nnan"})
    assert (
        made(options=ours) == fingerprint.fingerprint_options(ours) != fingerprint.fingerprint_options(CompileOptions())
    )
    assert made(options=ours, rewrite=None) == fingerprint.fingerprint_options(ours)
    with pytest.raises(NoFingerprintError, match="^namespace.*, which is rewritten when it is compiled$"):
        made(options=python_types.SimpleNamespace(rewrite=len))


def holding_itself():
    held = []
    held.append(held)
    return held


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (np.array([None]), "^an array of dtype object$"),
        (os.environ, "^the environment"),
        (os.getenv, "^the environment"),
        (threading.Lock(), r"^<unlocked .*, which cannot be pickled: .*pickle"),
        (build("def f(): return os.environ['A']", os=os), "^the environment"),
        (build("def f(): return os.getenv('A')", os=os), "^the environment"),
        (build("def f(): return open('a')"), "^open, by which code that runs while a kernel is compiled reads files$"),
        (build("def f():\n    import no_such_module"), "^the module no_such_module: No module named"),
    ],
)
def test_what_cannot_be_told_apart(value, says):
    with pytest.raises(NoFingerprintError, match=says):
        stamp(value)
    with pytest.raises(NoFingerprintError, match=says):
        fingerprint.fingerprint_kernel(build("def f(): return value", value=value), (), "", "cpu")


def test_values_that_hold_themselves():
    with pytest.raises(NoFingerprintError, match="^a value that holds itself$"):
        fingerprint.fingerprint_kernel(build("def f(): return held", held=holding_itself()), (), "", "cpu")


def test_what_is_called_open_but_is_not_pythons():
    assert stamp(build("def f(): return open()", open=ONE))
    assert stamp(build("def f(): return os.sep", os=os)) != stamp(build("def f(): return os.name", os=os))


def test_arrays_of_a_device_are_addresses():
    with pytest.raises(NotCacheableError, match="refers to global device arrays, by their addresses"):
        stamp(hip.to_device(np.zeros(1)))
    with pytest.raises(NotCacheableError, match="refers to global device arrays, by their addresses"):
        stamp(Speaker())
    assert stamp(Speaker)


class Speaker:
    """An array of another library, which can be pickled."""

    def __dlpack__(self):
        raise NotImplementedError


def test_whatever_a_kernel_is_compiled_for_is_in_its_stamp(monkeypatch):
    def f(a):
        return a

    def g(a):
        return a

    def key(function=f, args=(types.int32,), options="", target="cpu"):
        return fingerprint.fingerprint_kernel(function, args, options, target)[0]

    keys = [
        key(), key(args=(types.int64,)), key(args=(types.int32,) * 2), key(options="fast"), key(target="gfx942"), key(g)
    ]  # fmt: skip
    assert len(set(keys)) == len(keys)
    assert key() == keys[0]
    monkeypatch.setattr(fingerprint, "fingerprint_toolchain", lambda: "of another release")
    assert key() != keys[0]


def test_files_of_functions(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("def f(a): return g(a)\ndef g(a): return a")
    function = build(path.read_text(), str(path))
    files = fingerprint.fingerprint_kernel(function, (), "", "cpu")[1]
    assert str(path) in files
    assert not any(name.startswith("<") for name in files)
    found = fingerprint.fingerprint_files(
        [str(path), str(tmp_path / "none"), str(tmp_path), hip.__file__, types.__file__]
    )
    assert list(found) == [str(path)]
    path.write_text("")
    assert fingerprint.fingerprint_files([str(path)]) == {
        str(path): "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    }


def test_a_file_that_moved_is_another(tmp_path):
    source, found = "def f(a): return a", []
    for name in ("one.py", "two.py"):
        (tmp_path / name).write_text(source)
        found.append(stamp(build(source, str(tmp_path / name))))
    assert found[0] != found[1]
    assert stamp(build(source, "<one>")) == stamp(build(source, "<two>"))
