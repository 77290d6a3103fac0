"""Names of the environment variables between `tools.cuda_suite.run` and the plugin in the process of a test module."""

TESTS = "CUDA_SUITE_TESTS"
RECORD = "CUDA_SUITE_RECORD"
LEAVE_OUT = "CUDA_SUITE_LEAVE_OUT"
