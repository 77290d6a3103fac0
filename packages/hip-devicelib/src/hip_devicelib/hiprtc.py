"""HIPRTC in a separate process: HIP C++ on standard input, bitcode on standard output.

``python -m hip_devicelib.hiprtc LIBRARY OPTION...`` writes the compiler's messages to standard error. The exit status
is 0, or 1 for a program that does not compile. The process is separate since invalid source can crash the compiler, and
to keep a second LLVM out of the user's process.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence

_COMPILATION_FAILED = 6  # HIPRTC_ERROR_COMPILATION, hip/hiprtc.h


def main(arguments: Sequence[str]) -> int:
    """The separate process: see the module's docstring."""
    path, *options = arguments
    library = ctypes.CDLL(path)
    library.hiprtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    source = sys.stdin.buffer.read()
    _check(library, library.hiprtcCreateProgram(ctypes.byref(program), source, b"program.hip", 0, None, None))
    encoded = [option.encode() for option in options]
    status = library.hiprtcCompileProgram(program, len(encoded), (ctypes.c_char_p * len(encoded))(*encoded))
    sys.stderr.buffer.write(_read(library, program, "hiprtcGetProgramLogSize", "hiprtcGetProgramLog").rstrip(b"\0"))
    if status == _COMPILATION_FAILED:
        return 1
    _check(library, status)
    sys.stdout.buffer.write(_read(library, program, "hiprtcGetBitcodeSize", "hiprtcGetBitcode"))
    return 0


def _read(library: ctypes.CDLL, program: ctypes.c_void_p, size_function: str, function: str) -> bytes:
    size = ctypes.c_size_t()
    _check(library, library[size_function](program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(max(size.value, 1))
    _check(library, library[function](program, buffer))
    return buffer.raw[: size.value]


def _check(library: ctypes.CDLL, status: int) -> None:
    if status:
        raise SystemExit(f"HIPRTC: {library.hiprtcGetErrorString(status).decode()} (status {status})")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
