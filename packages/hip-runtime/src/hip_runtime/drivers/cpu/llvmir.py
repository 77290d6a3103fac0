"""LLVM types, structs with named fields, and what llvmlite's builder lacks, for everything that writes IR."""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir

I1 = ir.IntType(1)
I8 = ir.IntType(8)
I32 = ir.IntType(32)
I64 = ir.IntType(64)
VOID = ir.VoidType()
PTR = ir.PointerType()


class Struct:
    """A struct of LLVM whose fields have names."""

    def __init__(self, **fields: ir.Type) -> None:
        self.fields = fields
        self.type = ir.LiteralStructType(list(fields.values()))
        self._index = {name: index for index, name in enumerate(fields)}

    def field(self, builder: ir.IRBuilder, base: ir.Value, name: str, element: int | None = None) -> ir.Value:
        """Address of a field of the struct at *base*, or of one element of an array field."""
        indices = [I32(0), I32(self._index[name])] + ([] if element is None else [I32(element)])
        return builder.gep(base, indices, inbounds=True, source_etype=self.type)

    def load(self, builder: ir.IRBuilder, base: ir.Value, name: str, element: int | None = None) -> ir.Value:
        """Value of a field of the struct at *base*, or of one element of an array field."""
        kind = self.fields[name] if element is None else self.fields[name].element
        return builder.load(self.field(builder, base, name, element), typ=kind, name=name)

    def store(
        self, builder: ir.IRBuilder, value: ir.Value, base: ir.Value, name: str, element: int | None = None
    ) -> None:
        """Set a field of the struct at *base*, or one element of an array field."""
        builder.store(value, self.field(builder, base, name, element))

    def load_atomic(self, builder: ir.IRBuilder, base: ir.Value, name: str) -> ir.Value:
        """Value of a field that other threads or signal handlers write to meanwhile."""
        kind = self.fields[name]
        return builder.load_atomic(self.field(builder, base, name), "monotonic", _bytes_of(kind), name=name, typ=kind)

    def store_atomic(self, builder: ir.IRBuilder, value: ir.Value, base: ir.Value, name: str) -> None:
        """Set a field that other threads or signal handlers read meanwhile."""
        store_atomic(builder, value, self.field(builder, base, name))


def store_atomic(builder: ir.IRBuilder, value: ir.Value, place: ir.Value) -> None:
    """Store *value* at *place* atomically. llvmlite's builder only supports this for typed pointers."""
    builder._insert(ir.instructions.StoreAtomicInstr(builder.block, value, place, "monotonic", _bytes_of(value.type)))


def _bytes_of(kind: ir.Type) -> int:
    return kind.width // 8 if isinstance(kind, ir.IntType) else 8


def allocate(builder: ir.IRBuilder, kind: ir.Type, name: str = "") -> ir.Value:
    """Stack memory for a value of *kind*. llvmlite gives it a typed pointer, which LLVM no longer reads."""
    place = builder.alloca(kind, name=name)
    place.type = PTR
    return place


def write_likely(
    builder: ir.IRBuilder, condition: ir.Value, write: Callable[[], ir.Value], otherwise: Callable[[], ir.Value]
) -> ir.Value:  # fmt: skip
    """What *write* writes if *condition* holds, which is likely, else what *otherwise* writes."""
    with builder.if_else(condition, likely=True) as (holds, fails):
        with holds:
            quick = write()
            end_of_quick = builder.block
        with fails:
            slow = otherwise()
            end_of_slow = builder.block
    result = builder.phi(quick.type)
    result.add_incoming(quick, end_of_quick)
    result.add_incoming(slow, end_of_slow)
    return result


def function_address(function: ir.Function) -> ir.Value:
    """Address of a function of the same module, as a value."""
    return ir.FormattedConstant(PTR, function.get_reference())


def allocate_at_entry(builder: ir.IRBuilder, kind: ir.Type, name: str = "") -> ir.Value:
    """Stack memory that is allocated once for each call of the function, even if *builder* writes a loop."""
    with builder.goto_entry_block():
        return allocate(builder, kind, name)


class Callee:
    """A function known only by its address, in a form that ``builder.call`` accepts."""

    def __init__(self, address: ir.Value, function_type: ir.FunctionType) -> None:
        self.type = PTR
        self.function_type = function_type
        self._address = address

    def get_reference(self) -> str:
        """The operand as LLVM spells it."""
        return str(self._address.get_reference())


def declare(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: ir.Type) -> ir.Function:
    """The function *name* of a library, or of LLVM's, declared in the module of *builder*."""
    known = builder.module.globals.get(name)
    return known or ir.Function(builder.module, ir.FunctionType(result, arguments), name)


def new_function(module: ir.Module, name: str, kind: ir.FunctionType, *attributes: str) -> ir.IRBuilder:
    """A builder at the start of a new function."""
    function = ir.Function(module, kind, name)
    for attribute in ("nounwind", *attributes):
        function.attributes.add(attribute)
    return ir.IRBuilder(function.append_basic_block("entry"))


_SPELLED = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def compare(builder: ir.IRBuilder, predicate: str, left: ir.Value, right: ir.Value) -> ir.Value:
    """Whether *left* and *right* are in the order *predicate*, one that `read_order` gave."""
    write = builder.icmp_signed if predicate[0] == "s" else builder.icmp_unsigned
    return write(_SPELLED[predicate[1:]], left, right)


def have_same_sign(builder: ir.IRBuilder, left: ir.Value, right: ir.Value) -> ir.Value:
    """Whether two integers are both negative, or neither: then all between them are in the same order without sign."""
    return builder.icmp_signed(">=", builder.xor(left, right), ir.Constant(left.type, 0))
