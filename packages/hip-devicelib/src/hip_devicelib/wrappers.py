"""HIP C++ source that gives each declared function a C ABI: one line of ``extern "C"`` for each.

Each is one line, so that a compiler's message about line N is about function N. The C ABI is described in
`hip_devicelib.declarations`; classes (``__half``, HIP's vectors) are copied bit by bit to and from the types of the
ABI.
"""

from __future__ import annotations

from collections.abc import Sequence

from hip_devicelib.declarations import CType, FunctionDeclaration

FILE_NAME = "hip_devicelib_wrappers.hip"
"""The file name of the wrappers in the compiler's messages."""

_HELPERS = """
template <unsigned bytes, typename To, typename From>
__attribute__((device)) inline __attribute__((always_inline)) To hipdl_copy(From from) {
  static_assert(sizeof(To) >= bytes && sizeof(From) >= bytes, "the C ABI has another size");
  To to;
  __builtin_memcpy(&to, &from, bytes);
  return to;
}
"""


def write_wrappers(functions: Sequence[FunctionDeclaration]) -> str:
    """The source of the wrappers of *functions*: the wrapper of ``functions[n]`` is in line n + 1 of `FILE_NAME`."""
    lines = [_wrap(function) for function in functions]
    return "\n".join([_HELPERS, f'#line 1 "{FILE_NAME}"', *lines]) + "\n"


def _wrap(function: FunctionDeclaration) -> str:
    kinds = [parameter.type for parameter in function.parameters]
    listed = ", ".join(f"{spell_abi(kind)} a{number}" for number, kind in enumerate(kinds))
    passed = ", ".join(_pass(kind, f"a{number}") for number, kind in enumerate(kinds))
    # Without a leading "::", which would hide the header's functions in unnamed namespaces.
    call = f"{function.qualified}({passed})"
    head = f'extern "C" __attribute__((device, used)) {spell_abi(function.result)} {function.symbol}({listed})'
    return f"{head} {{ {_return(function.result, call)} }}"


def spell_abi(kind: CType) -> str:
    """The C++ spelling of the C ABI's type for *kind*."""
    if kind.kind in ("pointer", "reference") and kind.element is not None:
        return f"{kind.spelling.rstrip('&* ')} *"
    if kind.kind == "half":
        return "_Float16"
    if kind.kind == "bfloat16":
        return "unsigned short"
    if kind.kind == "vector" and kind.element is not None:
        element = spell_abi(kind.element)
        if kind.count == 1 and not kind.native:
            return element
        return f"{element} __attribute__((ext_vector_type({kind.count})))"
    return kind.spelling


def _is_copied(kind: CType) -> bool:
    return not kind.native


def _bytes(kind: CType) -> int:
    return kind.count * (kind.element.bits if kind.element is not None else kind.bits) // 8


def _pass(kind: CType, name: str) -> str:
    if kind.kind == "reference":
        return f"*{name}"
    return f"hipdl_copy<{_bytes(kind)}, {kind.spelling}>({name})" if _is_copied(kind) else name


def _return(kind: CType, call: str) -> str:
    if kind.kind == "void":
        return f"{call};"
    if kind.kind == "reference":
        return f"return &{call};"
    # An alias, since a type with attributes cannot be written as a template argument.
    alias = f"using R = {spell_abi(kind)}; "
    return f"{alias}return hipdl_copy<{_bytes(kind)}, R>({call});" if _is_copied(kind) else f"return {call};"
