"""Makes the child processes of tests pose and serve the tests, when they first import a posed package."""

import importlib.util
import os
import sys
from pathlib import Path


class _ServeWhenAsked:
    def find_spec(self, fullname, path=None, target=None):
        if not f"{fullname}.".startswith(("numba.cuda.", "numba_cuda_mlir.")):
            return None
        sys.meta_path.remove(self)
        from tools.cuda_suite.plugin_names import TESTS
        from tools.cuda_suite.serve import serve

        serve(Path(os.environ[TESTS]))
        return importlib.util.find_spec(fullname)


sys.meta_path.insert(0, _ServeWhenAsked())
