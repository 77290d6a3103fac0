"""Forks while other threads compile: the child compiles and launches, and neither process hangs."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")

START = """
import os, signal, sys, threading, time, warnings
import numpy as np
from numba import hip, njit
warnings.filterwarnings("ignore", message=".*multi-threaded.*fork", category=DeprecationWarning)

def add(number):
    @hip.jit
    def kernel(values):
        values[hip.grid(1)] += number
    return kernel

def works(number):
    values = np.zeros(64)
    add(number)[1, 64](values)
    return bool((values == number).all())

def fork(child):
    pid = os.fork()
    if pid == 0:
        signal.alarm(60)  # a child that hangs is a child that failed
        os._exit(0 if child() else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

assert works(-1)
"""


def run(script: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", START + textwrap.dedent(script)], capture_output=True, text=True,
        timeout=400, env={**os.environ, "NUMBA_HIP_DEVICE": "cpu"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.long
@pytest.mark.parametrize("what", ["kernels", "functions of njit"])
def test_children_compile_while_the_parent_does(what: str) -> None:
    forks = 4 if what == "kernels" else 20
    out = run(
        f"""
        stop, rounds = False, 0
        def compile_often():
            global rounds
            while not stop:
                rounds += 1
                if {what == "kernels"}:
                    works(rounds)
                else:
                    njit(lambda x: x + rounds)(1.0)
        compiler = threading.Thread(target=compile_often)
        compiler.start()
        def child():
            # What takes the same locks will do for most: a kernel takes as long as ten of these.
            if {what == "kernels"} or number % 10 == 0:
                return works(1000 + number)
            return njit(lambda x: x + number)(1.0) == 1 + number
        codes = []
        for number in range({forks}):
            time.sleep(0.003 * number)  # at another place in the compiler each time
            codes.append(fork(child))
        stop = True
        compiler.join()
        print(codes, rounds > 1, works(0.5))
        """
    )
    assert out == f"{[0] * forks} True True\n"


@pytest.mark.long
def test_a_fork_within_compiling() -> None:
    """Whoever compiles may fork, as something that Numba calls while it does: the locks are its own."""
    out = run(
        """
        from numba.core import event
        codes = []
        class Forks(event.Listener):
            def on_start(self, event):
                if not codes:
                    codes.append(None)
                    codes[0] = fork(lambda: True)
            def on_end(self, event):
                pass
        with event.install_listener("numba:run_pass", Forks()):
            print(works(3), codes)
        """
    )
    assert out == "True [0]\n"


@pytest.mark.long
def test_a_fork_does_not_wait_for_ever() -> None:
    """What does not come to an end is left behind, with a warning; the child has locks that are free."""
    out = run(
        """
        from hip_devicelib import forking
        from hip_devicelib.errors import ForkWarning
        forking.PATIENCE = 0.2
        holds, go_on = threading.Event(), threading.Event()
        def hold():
            with forking.compiling:
                holds.set()
                go_on.wait()
        holder = threading.Thread(target=hold)
        holder.start()
        holds.wait()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            code = fork(lambda: works(7))
        go_on.set()
        holder.join()
        print(code, [warning.category is ForkWarning for warning in caught if "compiling" in str(warning.message)])
        print(works(8))
        """
    )
    assert out == "0 [True]\nTrue\n"
