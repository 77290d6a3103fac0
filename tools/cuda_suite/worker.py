"""The process of a test module."""

from __future__ import annotations

import os
from pathlib import Path


def run_tests(tests: str, module: str, folder: str, variables: dict[str, str]) -> None:
    """Run the tests of *module* in a separate process whose output goes to a file in *folder*.

    *variables* are the environment variables that the plugin reads.
    """
    import pytest

    from tools.cuda_suite.suites import chosen

    os.setsid()  # signals to the group of a test's process reach its children, but no other process
    os.environ.update(variables)
    os.chdir(folder)
    output = os.open("output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    settings = ["-c", os.devnull, "--rootdir", tests, "-o", "consider_namespace_packages=true"]
    plugins = ["-p", "tools.cuda_suite.plugin", "-p", "no:cacheprovider"]
    for plugin in chosen().plugins:
        plugins += ["--noconftest", "-p", plugin]
    options = ["-q", "--import-mode=importlib", "--tb=short"]
    status = pytest.main([*plugins, *options, *settings, str(Path(tests) / module)])
    os._exit(int(status))  # exits as a program would, without waiting for threads that a test left behind
