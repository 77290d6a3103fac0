"""Generates machine code in a separate process, for modules that may crash LLVM's code generator.

``python -m hip_devicelib.isolated_codegen TARGET-ID WAVE-SIZE object|assembly`` reads bitcode from standard input and
writes machine code to standard output; the target ``cpu`` is this machine's processor. If it crashes, its last message
becomes the text of an `UnsupportedError`. Without arguments it only reads the bitcode, which can crash LLVM, too.
``... read`` reads the text of LLVM IR; ``... optimise`` reads either, and optimises it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from typing import Literal

import llvmlite.binding as llvm

from hip_devicelib.backend_limits import find_oversized
from hip_devicelib.codeobject import CPU_TARGET
from hip_devicelib.errors import InvalidIRError, UnsupportedError
from hip_devicelib.llvm_context import make_context
from hip_devicelib.target import Target, parse_target

TRIPLE = "amdgcn-amd-amdhsa"
"""The LLVM triple of all code for AMD GPUs."""

BITCODE_MAGICS = (b"BC\xc0\xde", b"\xde\xc0\x17\x0b")
"""The first bytes of bitcode files."""

Form = Literal["object", "assembly"]
_LAST_WORDS = 2000


@cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def make_machine(target: Target, level: int = 3) -> llvm.TargetMachine:
    """LLVM's target machine for *target*. `UnsupportedError` if llvmlite's LLVM is too old for it."""
    major = llvm.llvm_version_info[0]
    if major < target.since_llvm:
        raise UnsupportedError(
            f"target {target.name!r} needs LLVM {target.since_llvm}; llvmlite has LLVM {major}: install a newer one"
        )
    _initialise()
    machine = llvm.Target.from_triple(TRIPLE).create_target_machine(
        cpu=target.name, features=target.llvm_features, opt=level, reloc="pic", codemodel="default"
    )
    machine.set_asm_verbosity(True)
    return machine


def make_host_machine(level: int = 3) -> llvm.TargetMachine:
    """LLVM's target machine for code that is loaded into a process on this machine."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    features = llvm.get_host_cpu_features().flatten()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(cpu=llvm.get_host_cpu_name(), features=features, opt=level, jit=True)


def emit(bitcode: bytes, target: Target | None, form: Form) -> bytes:
    """Machine code of *bitcode* for *target* (``None`` for this processor), generated in this process, which crashes if
    the backend does not support the code."""
    try:
        # Emitting changes a module, and emitting it a second time aborts: hence it is parsed each time.
        module = llvm.parse_bitcode(bitcode, make_context())
        module.verify()
    except RuntimeError as error:
        raise InvalidIRError(f"bitcode for {target.id if target else CPU_TARGET}: {error}") from None
    machine = make_machine(target) if target else make_host_machine()
    if form == "object":
        return bytes(machine.emit_object(module))
    return str(machine.emit_assembly(module)).encode()


def emit_apart(bitcode: bytes, target: Target, form: Form, reasons: Sequence[str]) -> bytes:
    """Machine code of *bitcode*, generated in another process; *reasons* say why that is needed.

    Raises `UnsupportedError` with LLVM's message if that process crashes.
    """
    if not sys.executable:
        raise UnsupportedError(
            f"code for {target.id} with {'; '.join(reasons)} is compiled in another process, as LLVM may crash, and "
            "this Python does not know the path of its interpreter (sys.executable is empty): start Python by its path"
        )
    command = [sys.executable, "-m", "hip_devicelib.isolated_codegen", target.id, str(target.wave_size), form]
    done = subprocess.run(command, input=bitcode, capture_output=True, env=child_environment(), check=False)
    if done.returncode == 0:
        return done.stdout
    words = done.stderr.decode(errors="replace").strip()[-_LAST_WORDS:] or f"exit status {done.returncode}"
    raise UnsupportedError(f"LLVM's AMDGPU backend cannot compile this for {target.id} ({'; '.join(reasons)}): {words}")


def emit_for_host_apart(bitcode: bytes, form: Form, loads: bool = False) -> bytes:
    """Machine code of *bitcode* for this processor, generated in another process, which also loads it if *loads* is
    true. `UnsupportedError` with LLVM's message if that process crashes."""
    command = [
        sys.executable,
        "-m",
        "hip_devicelib.isolated_codegen",
        CPU_TARGET,
        "0",
        form,
        *(["load"] if loads else []),
    ]
    done = subprocess.run(command, input=bitcode, capture_output=True, env=child_environment(), check=False)
    if done.returncode or not done.stdout:
        words = done.stderr.decode(errors="replace").strip()[-_LAST_WORDS:] or f"exit status {done.returncode}"
        raise UnsupportedError(words)
    return done.stdout


def check_apart(bitcode: bytes, what: str) -> None:
    """Check, in another process, that LLVM can read *bitcode*, which may be damaged. Raises `InvalidIRError`."""
    command = [sys.executable, "-m", "hip_devicelib.isolated_codegen"]
    done = subprocess.run(command, input=bitcode, capture_output=True, env=child_environment(), check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"LLVM ended with {done.returncode}"]
        raise InvalidIRError(f"{what} is no bitcode that LLVM can read: {lines[-1]}")


def read_apart(text: str) -> None:
    """Let another process read LLVM IR. `UnsupportedError` with LLVM's message if that process crashes."""
    command = [sys.executable, "-m", "hip_devicelib.isolated_codegen", "read"]
    done = subprocess.run(command, input=text.encode(), capture_output=True, env=child_environment(), check=False)
    if done.returncode:
        raise UnsupportedError(done.stderr.decode(errors="replace").strip()[-_LAST_WORDS:] or "LLVM does not say why")


def optimise_apart(source: bytes) -> None:
    """Let another process read and optimise *source*: bitcode or the text of LLVM IR from elsewhere. Damaged bitcode
    may crash the process that reads it or, if it can be read, the one that optimises it.

    `UnsupportedError` with LLVM's message if that process crashes.
    """
    command = [sys.executable, "-m", "hip_devicelib.isolated_codegen", "optimise"]
    done = subprocess.run(command, input=source, capture_output=True, env=child_environment(), check=False)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"LLVM ended with {done.returncode}"]
        raise UnsupportedError(lines[-1])


def _optimise(source: bytes) -> None:
    context = make_context()
    is_bitcode = source.startswith(BITCODE_MAGICS)
    module = llvm.parse_bitcode(source, context) if is_bitcode else llvm.parse_assembly(source.decode(), context)
    module.verify()
    oversized = find_oversized(str(module))
    if oversized:
        raise SystemExit(oversized)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    builder = llvm.create_pass_builder(_make_machine_of(module), options)
    builder.getModulePassManager().run(module, builder)
    module.verify()


def _make_machine_of(module: llvm.ModuleRef) -> llvm.TargetMachine:
    """The kind of machine that *module* is for, as processor names in its functions can crash the backend of
    another."""
    if module.triple.partition("-")[0] != TRIPLE.partition("-")[0]:
        return make_host_machine()
    _initialise()
    return llvm.Target.from_triple(TRIPLE).create_target_machine()


def simplify(bitcode: bytes, level: int) -> bytes:
    """*bitcode* after LLVM's pipeline of *level* for this processor, without vectorisation and loop unrolling: both
    come later, when more is known of the threads."""
    module = llvm.parse_bitcode(bitcode, make_context())
    run_simplification(module, make_host_machine(), level)
    return bytes(module.as_bitcode())


def run_simplification(module: llvm.ModuleRef, machine: llvm.TargetMachine, level: int) -> None:
    """The same as `simplify`, in place."""
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, tuning)
    builder.getModulePassManager().run(module, builder)
    module.verify()


def _load(image: bytes) -> None:
    """Load the object file *image* into this process, which crashes if that is not possible."""
    with suppress(RuntimeError):  # of a system whose math functions are elsewhere
        llvm.load_library_permanently("libm.so.6")
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), make_host_machine())
    engine.add_object_file(llvm.object_file.ObjectFileRef.from_data(image))
    engine.finalize_object()


def child_environment() -> dict[str, str]:
    """The environment for a child process that has to find the same modules as this process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}


def main(arguments: Sequence[str]) -> int:
    """The separate process: see the module's docstring."""
    if not arguments:
        llvm.parse_bitcode(sys.stdin.buffer.read(), make_context()).verify()
        return 0
    if arguments == ["optimise"]:
        _optimise(sys.stdin.buffer.read())
        return 0
    if arguments == ["read"]:
        llvm.parse_assembly(sys.stdin.read(), make_context()).verify()
        return 0
    name, wave_size, form, *load = arguments
    if form not in ("object", "assembly"):
        raise SystemExit(f"form {form!r}: 'object' or 'assembly'")
    code = emit(
        sys.stdin.buffer.read(),
        None if name == CPU_TARGET else parse_target(name, wave_size=int(wave_size)),
        "object" if form == "object" else "assembly",
    )
    if load:
        _load(code)
    sys.stdout.buffer.write(code)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
