"""Functions that kernels call and that are defined in linked code: `declare_device`.

A call goes to an adapter, which is created when the kernel is linked and the definition is known: with opaque pointers,
LLVM silently links a call to a function of another type.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from llvmlite import binding as llvm
from llvmlite import ir
from numba.core import cgutils, types, typing
from numba.core.typing.templates import AbstractTemplate
from numba.extending import typeof_impl

from numba_hip._numba.typing import normalize_signature
from numba_hip.errors import LinkedCodeError
from numba_hip.language.registry import lowering
from numba_hip.linked_code import LinkedCode, as_items, read_all

ABIS = ("numba", "c")


class ExternalFunction:
    """A function of linked code; kernels call it by this object. Created by `declare_device`."""

    def __init__(
        self, name: str, signature: Any, link: tuple[Any, ...], abi: str, *, use_cooperative: bool = False
    ) -> None:
        self.__name__ = name
        self.name = name
        self.signature = signature
        self.link = link
        self.abi = abi
        self.use_cooperative = use_cooperative
        """Whether its threads wait for others of the whole grid."""
        kind = hashlib.sha256(f"{abi} {signature}".encode()).hexdigest()[:12]
        self.symbol = f"numba_hip.external.{name}.{kind}"

    @property
    def sig(self) -> Any:
        """The signature, by Numba CUDA's name for it."""
        return self.signature

    def __repr__(self) -> str:
        return f"<external function {self.name}{self.signature}>"

    def __call__(self, *args: Any) -> NoReturn:
        """Raise an error: it only runs on the device."""
        raise TypeError(f"{self.name} is a function of the device: it can be called from a kernel only")

    def add_to_fingerprint(self, fingerprint: Any) -> None:
        """Add what this function is to the fingerprint of a kernel that calls it."""
        fingerprint.add_text("external", self.name, str(self.signature), self.abi, str(self.use_cooperative))
        fingerprint.add_text(*(code.fingerprint for code in read_all(self.link)))


def declare_device(
    name: str, sig: Any, link: Any = None, use_cooperative: bool = False, abi: str = "numba"
) -> ExternalFunction:
    """Declare function *name* of linked code, to be called from kernels.

    *sig* is a Numba signature with a return type, such as ``"int32(int32, CPointer(float32))"``. *link* is what defines
    it (a path, `LinkedCode`, or a list of these), if that is not given to the kernel's own ``link``. With *abi*
    ``"numba"`` the definition is ``int name(result *, parameters...)`` and returns 0; any other number is an error
    that ends the thread. With ``"c"`` it is ``result name(parameters...)``. On the CPU device either may have the work
    item as one more parameter in front, a pointer called ``item``: see ``docs/design/spmd-bitcode.md``.

    With *use_cooperative* kernels that call it are launched cooperatively: all their blocks run at the same time. There
    is no need to say so of linked code that calls a barrier of the grid.

    Raises `TypeError` for a signature without a return type, and `LinkedCodeError`.
    """
    if str(name) != name or not name:
        raise TypeError(f"the name of an external function is {name!r}; pass its name in the linked code as text")
    if abi not in ABIS:
        raise LinkedCodeError(f"abi is {abi!r}; it can be one of {', '.join(ABIS)}")
    args, result = normalize_signature(sig)
    if result is None:
        raise TypeError(f"Return type missing in the declaration of {name}: write 'int32(float32)', or 'void(float32)'")
    signature = typing.signature(result, *args)
    function = ExternalFunction(name, signature, as_items(link), abi, use_cooperative=bool(use_cooperative))

    @lowering.lower(function, *args)
    def _lower(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> ir.Value:
        return _call(function, context, builder, values)

    return function


@typeof_impl.register(ExternalFunction)
def _typeof_external_function(value: ExternalFunction, context: Any) -> types.Function:
    del context

    class Template(AbstractTemplate):
        key = value

        def generic(self, args: Any, kws: Any) -> Any:
            if kws or len(args) != len(value.signature.args):
                return None
            rated = map(self.context.can_convert, args, value.signature.args)
            fits = all(conversion is not None for conversion in rated)
            return value.signature if fits else None

    return types.Function(Template)


def _call(function: ExternalFunction, context: Any, builder: ir.IRBuilder, values: Sequence[ir.Value]) -> ir.Value:
    library = context.active_code_library
    library.externals[function.symbol] = function
    library.add_linked_code(read_all(function.link))
    result, args = function.signature.return_type, function.signature.args
    kind = context.call_conv.get_function_type(result, args)
    adapter = cgutils.get_or_insert_function(builder.module, kind, function.symbol)
    status, value = context.call_conv.call_function(builder, adapter, result, args, values)
    with cgutils.if_unlikely(builder, status.is_error):
        context.call_conv.return_status_propagate(builder, status)
    return value


def build_adapters(
    functions: Iterable[ExternalFunction], modules: Mapping[str, llvm.ModuleRef], context: Any
) -> ir.Module:
    """A module with the adapters of *functions*, which *modules* define (by their names for messages).

    Raises `LinkedCodeError` for a function that none of them defines, or whose type differs from the declaration.
    """
    adapters = context.create_module("externals")
    for function in functions:
        _build_adapter(adapters, function, _definition(function.name, modules), context)
    return adapters


def _definition(name: str, modules: Mapping[str, llvm.ModuleRef]) -> tuple[str, llvm.ValueRef] | None:
    for shown, module in modules.items():
        for function in module.functions:
            if function.name == name and not function.is_declaration:
                return shown, function
    return None


def _build_adapter(
    module: ir.Module, function: ExternalFunction, found: tuple[str, llvm.ValueRef] | None, context: Any
) -> None:
    result, args = function.signature.return_type, function.signature.args
    convention = context.call_conv
    adapter = ir.Function(module, convention.get_function_type(result, args), function.symbol)
    adapter.linkage = "linkonce_odr"
    adapter.attributes.add("alwaysinline")
    convention.decorate_function(adapter, [f"arg{number}" for number in range(len(args))], args)
    builder = ir.IRBuilder(adapter.append_basic_block())
    slot, values = adapter.args[0], list(convention.get_arguments(adapter))
    if function.abi == "numba":
        declared = ir.FunctionType(adapter.function_type.return_type, [slot.type, *(value.type for value in values)])
        values.insert(0, slot)
    else:
        returned = ir.VoidType() if result in (types.void, types.none) else slot.type.pointee
        declared = ir.FunctionType(returned, [value.type for value in values])
    kind, item = _actual_type(function, declared, found, bool(convention.hidden))
    callee = ir.Function(module, kind, function.name)
    passed = [*(convention.hidden_values(builder) if item else ()), *values]
    given = builder.call(
        callee, [_fit(builder, value, wanted) for value, wanted in zip(passed, kind.args, strict=True)]
    )
    if function.abi == "numba":
        builder.ret(given)
        return
    if not isinstance(declared.return_type, ir.VoidType):
        builder.store(_fit(builder, given, slot.type.pointee), slot)
    builder.ret(ir.Constant(ir.IntType(32), 0))


def _fit(builder: ir.IRBuilder, value: ir.Value, kind: ir.Type) -> ir.Value:
    """*value* as *kind*: booleans are a byte here and a bit in C's parameters."""
    if value.type == kind or isinstance(kind, ir.PointerType):
        return value
    narrows = value.type.width > kind.width
    return builder.trunc(value, kind) if narrows else builder.zext(value, kind)


def _actual_type(
    function: ExternalFunction, declared: ir.FunctionType, found: tuple[str, llvm.ValueRef] | None, may_take_item: bool
) -> tuple[ir.FunctionType, bool]:
    """The type of the definition, and whether it takes the work item."""
    if found is None:
        if function.abi == "c":  # the device's own libraries may define it; otherwise loading fails with its name
            return declared, False
        raise LinkedCodeError(f"no linked code defines {function.name!r}; add the code that does to link=")
    where, definition = found
    actual = [str(argument.type) for argument in definition.arguments]
    returned = str(definition.global_value_type).partition(" (")[0]
    first = next(iter(definition.arguments), None)  # only its name distinguishes the work item from other pointers
    item = may_take_item and first is not None and first.name == "item" and actual[0] == "ptr"
    wanted = [_spell(kind) for kind in declared.args]
    given = actual[1:] if item else actual
    fits = len(given) == len(wanted) and all(map(_is_same, given, wanted))
    if not fits or not _is_same(returned, _spell(declared.return_type)):
        raise LinkedCodeError(
            f"{where} defines {function.name!r} as {returned} ({', '.join(actual)}); declared as "
            f"{function.signature} with the {function.abi} ABI it is {_spell(declared.return_type)} "
            f"({', '.join(wanted)})"
        )
    kinds = [ir.IntType(1) if one == "i1" else kind for one, kind in zip(given, declared.args, strict=True)]
    result = ir.IntType(1) if returned == "i1" else declared.return_type
    pointer = ir.PointerType(ir.IntType(8))
    return ir.FunctionType(result, [pointer, *kinds] if item else kinds), item


def _spell(kind: ir.Type) -> str:
    return "ptr" if isinstance(kind, ir.PointerType) else str(kind)


def _is_same(actual: str, declared: str) -> bool:
    """Whether two types are equal, as spelt by LLVM and llvmlite, which differ in blanks within structures."""
    return actual.replace(" ", "") == declared.replace(" ", "") or (actual, declared) == ("i1", "i8")


def link_modules(codes: Iterable[LinkedCode], triple: str, data_layout: str) -> dict[str, llvm.ModuleRef]:
    """The modules of *codes* by their names. Raises `LinkedCodeError` if two define the same function."""
    modules: dict[str, llvm.ModuleRef] = {}
    owners: dict[str, str] = {}
    for number, code in enumerate(codes):
        module = code.parse(triple, data_layout)
        for function in module.functions:
            if function.is_declaration or function.linkage.name not in ("external", "weak_any"):
                continue
            owner = owners.setdefault(function.name, code.name)
            if owner != code.name:
                raise LinkedCodeError(f"link: both {owner} and {code.name} define {function.name!r}")
        modules[code.name if code.name not in modules else f"{code.name} ({number})"] = module
    return modules
