"""Makes the child processes of tests serve `numba.cuda` and the tests as well, when they first import it."""

import importlib.util
import os
import sys
from pathlib import Path


class _ServeWhenAsked:
    def find_spec(self, fullname, path=None, target=None):
        if fullname != "numba.cuda" and not fullname.startswith("numba.cuda."):
            return None
        sys.meta_path.remove(self)
        from tools.cuda_suite.plugin_names import TESTS
        from tools.cuda_suite.serve import serve

        serve(Path(os.environ[TESTS]))
        return importlib.util.find_spec(fullname)


sys.meta_path.insert(0, _ServeWhenAsked())
