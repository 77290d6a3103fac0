"""Kernels that are kept are compiled anew when anything changes that extensions of Numba make of them."""

import importlib
import os
import subprocess
import sys
import textwrap
import threading
import types

import numpy as np
import pytest
from numba.core.errors import NumbaWarning

import numba_hip as hip
from numba_hip import config
from numba_hip.caching import fingerprint
from numba_hip.caching.versioned_modules import is_covered

PROGRAM = """
import numpy as np
import numba_hip as hip
import extension

@hip.jit(cache=True)
def kernel(values):
    values[0] = extension.shift(values[0])
    values[1] = extension.times(values[1])
    values[2] = values.offset
    values[3] = extension.made(values[3])

values = np.ones(4)
kernel[1, 1](values)
hits, misses = (sum(counter.values()) for counter in kernel.stats[1:])
print(*values.astype(int), hits, misses)
"""

EXTENSION = """
from numba.core import types
from numba_hip.extending import intrinsic, overload, overload_attribute
import constants
from constants import Settings

def shift(x): ...

@overload(shift)
def _shift(x):
    amount = constants.SHIFT
    return lambda x: x + amount

@intrinsic
def times(context, x):
    from later import FACTOR

    def code(context, builder, sig, args):
        return builder.fmul(args[0], args[0].type(float(FACTOR)))

    return x(x), code

@overload_attribute(types.Array, "offset")
def _offset(array):
    return lambda array: Settings.OFFSET if False else array.size * 0 + OFFSET

OFFSET = Settings().offset()

def made(x): ...

text = "def define(x):\\n    return lambda x: x + POWER"
namespace = {"POWER": 2 ** constants.POWER}
exec(text, namespace)
overload(made)(namespace["define"])
"""

CONSTANTS = """
SHIFT = 10
POWER = 3

class Settings:
    OFFSET = 7

    def offset(self):
        return self.OFFSET + 100
"""


def run(folder):
    environment = {**os.environ, "NUMBA_HIP_CACHE_DIR": str(folder / "cache"), "NUMBA_HIP_DEVICE": "cpu"}
    done = subprocess.run(
        [sys.executable, "-B", "program.py"], cwd=folder, env=environment, text=True, capture_output=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return [int(number) for number in done.stdout.split()]


@pytest.mark.long
def test_constants_behind_extensions_are_noticed(tmp_path):
    files = {"program.py": PROGRAM, "extension.py": EXTENSION, "constants.py": CONSTANTS, "later.py": "FACTOR = 5\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    assert run(tmp_path) == [11, 5, 107, 9, 0, 1]
    assert run(tmp_path) == [11, 5, 107, 9, 1, 0]
    for name, old, new, values in [
        ("constants.py", "SHIFT = 10", "SHIFT = 20", [21, 5, 107, 9]),
        ("later.py", "5", "6", [21, 6, 107, 9]),
        ("constants.py", "OFFSET = 7", "OFFSET = 8", [21, 6, 108, 9]),
        ("constants.py", "POWER = 3", "POWER = 4", [21, 6, 108, 17]),
    ]:
        text = (tmp_path / name).read_text()
        assert old in text
        (tmp_path / name).write_text(text.replace(old, new))
        assert run(tmp_path) == [*values, 0, 1]


NUMBER = [0]


def module_of(text, **names):
    """A new module with *text*, which no file holds."""
    NUMBER[0] += 1
    module = types.ModuleType(f"made_for_test_{NUMBER[0]}")
    sys.modules[module.__name__] = module
    vars(module).update(names)
    exec(textwrap.dedent(text), vars(module))
    return module


def key_of(module):
    return fingerprint.fingerprint_kernel(module.kernel, (), "", "cpu")[0]


USED = """
from numba_hip.extending import overload

def used(x): ...

def kernel(values):
    values[0] = used(values[0])

@overload(used)
def define(x):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ("return lambda x: x + NUMBER", lambda module: vars(module).update(NUMBER=2)),
        ("n = other.NUMBER\n    return lambda x: x + n", lambda module: vars(module.other).update(NUMBER=2)),
        ("n = NAMES['a']\n    return lambda x: x + n", lambda module: module.NAMES.update(a=2)),
        ("n = Holder.number\n    return lambda x: x + n", lambda module: setattr(module.Holder, "number", 2)),
        ("n = holder.number\n    return lambda x: x + n", lambda module: setattr(module.holder, "number", 2)),
        ("n = table[0]\n    return lambda x: x + n", lambda module: module.table.fill(2)),
        ("n = helper()\n    return lambda x: x + n", lambda module: vars(module.other).update(DEPTH=2)),
    ],
)
@pytest.mark.sample(4)
def test_what_an_overload_refers_to_is_part_of_the_key(body, change):
    class Holder:
        number = 1

    other = module_of("NUMBER = DEPTH = 1\ndef helper():\n    return inner()\ndef inner():\n    return DEPTH")
    names = {"other": other, "NAMES": {"a": 1}, "Holder": Holder, "holder": types.SimpleNamespace(number=1)}
    module = module_of(USED.format(body=body), NUMBER=1, table=np.ones(1), helper=other.helper, **names)
    before = key_of(module)
    assert key_of(module) == before
    change(module)
    assert key_of(module) != before


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("n = int(os.environ.get('NUMBER', 1))\n    return lambda x: x + n", "the environment"),
        ("n = int(getenv('NUMBER', 1))\n    return lambda x: x + n", "the environment"),
        ("with open(path) as file:\n        n = int(file.read())\n    return lambda x: x + n", "open, by which"),
        ("n = len(str(lock))\n    return lambda x: x + n", "which cannot be pickled"),
    ],
)
def test_what_cannot_be_told_apart_is_not_kept(tmp_path, body, says):
    path = tmp_path / "number"
    path.write_text("1")
    module = module_of(USED.format(body=body), os=os, getenv=os.getenv, lock=threading.Lock(), path=path)
    with config.cache_dir.scope(tmp_path / "cache"):
        kernel, values = hip.jit(module.kernel, cache=True), np.ones(1)
        with pytest.warns(NumbaWarning, match=f"kernel kernel is not kept in the cache: it refers to .*{says}"):
            kernel[1, 1](values)
    assert values[0] > 1
    assert not kernel.stats.cache_hits


FURTHER = """
from numba.core import types
from numba_hip.extending import overload, overload_attribute

def used(x): ...

def further(x): ...

def kernel(values):
    values[0] = used(values[0]) + values.attribute_of_a_fingerprint

@overload(used)
def define(x):
    return lambda x: further(x)

@overload(further)
def define_further(x):
    return lambda x: x + FURTHER

@overload_attribute(types.Array, "attribute_of_a_fingerprint")
def define_attribute(array):
    return lambda array: ATTRIBUTE
"""


@pytest.mark.parametrize("changed", ["FURTHER", "ATTRIBUTE"])
def test_what_is_reached_by_the_overload_of_another_or_by_a_name_is_part_of_the_key(changed):
    module = module_of(FURTHER, FURTHER=1, ATTRIBUTE=1)
    before = key_of(module)
    assert key_of(module) == before
    setattr(module, changed, 2)
    assert key_of(module) != before


LOWERED = """
from numba.core import types
from numba.extending import lower_getattr

def kernel(values):
    values[0] = values.{attribute}

@lower_getattr(types.Array, "lowered_in_a_fingerprint")
def get(context, builder, kind, value):
    return NUMBER
"""


@pytest.mark.parametrize(("attribute", "counts"), [("lowered_in_a_fingerprint", True), ("size", False)])
def test_what_lowers_an_attribute_is_part_of_the_key_where_its_name_is_used(attribute, counts):
    module = module_of(LOWERED.format(attribute=attribute), NUMBER=1)
    before = key_of(module)
    module.NUMBER = 2
    assert (key_of(module) != before) is counts


def test_overloads_that_a_kernel_cannot_reach_do_not_matter():
    module = module_of("def kernel(values):\n    values[0] = 1")
    before = key_of(module)
    module_of(USED.format(body="n = environ['NUMBER']\n    return lambda x: x + n"), environ=os.environ)
    assert key_of(module) == before


CLOSURES = """
import numpy as np
import numba_hip as hip

def make(number):
    @hip.jit(cache=True)
    def kernel(values):
        values[0] = number
    return kernel

values = np.zeros(2)
make(3)[1, 1](values[:1])
make(4)[1, 1](values[1:])
print(*values.astype(int))
"""


@pytest.mark.long
def test_a_package_of_the_name_of_one_of_pythons_is_not_taken_for_it(tmp_path):
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "__init__.py").touch()
    (tmp_path / "code" / "kernels.py").write_text(CLOSURES)
    (tmp_path / "program.py").write_text("import code.kernels\n")
    assert run(tmp_path) == [3, 4]
    assert run(tmp_path) == [3, 4]


def test_modules_that_stamps_tell_already():
    for name in (
        "math",
        "_ctypes",
        "json.decoder",
        "os",
        "numba.core.types",
        "numba.hip",
        "numpy.linalg",
        "numba_hip.config",
    ):
        importlib.import_module(name)
        assert is_covered(name), name
    module = types.ModuleType("code.kernels")
    module.__file__ = __file__
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, module.__name__, module)
        assert not is_covered(module.__name__)
    assert not is_covered(None)
    assert not is_covered("pytest")
