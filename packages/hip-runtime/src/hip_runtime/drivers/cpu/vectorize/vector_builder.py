"""Vectors of lanes: their types, masks, memory accesses and LLVM intrinsics, written with llvmlite's builder."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from hip_runtime.drivers.cpu.ir.symbol_declarations import Spelled
from hip_runtime.drivers.cpu.ir.writer import Assembled, Part, typed
from hip_runtime.drivers.cpu.llvmir import I1, I8, I32, I64, PTR, VOID, allocate
from hip_runtime.drivers.cpu.object_code.host_machine import has_mask_registers
from hip_runtime.errors import UnsupportedError

_IDLE_WORDS = 4
"""Words that one lane accesses at once, at most."""

_LEAST_GATHERED = 4
"""Bytes of the smallest elements that instructions gather; of others LLVM makes a branch for each lane."""

_FLOATS = {"half": "f16", "float": "f32", "double": "f64"}


class VectorBuilder:
    """Writes vectors of *width* lanes at the position of *builder*; *entry* allocates memory on the stack."""

    def __init__(self, builder: ir.IRBuilder, width: int, entry: ir.IRBuilder | None = None) -> None:
        self.builder = builder
        self.entry = entry
        self.width = width
        self._types: dict[str, ir.VectorType] = {}
        self._constants: dict[tuple[object, ...], ir.Value] = {}
        self._idle_places: dict[bool, ir.AllocaInstr] = {}
        """By whether lanes that are not active store there; else they load."""
        self.has_steady_masks = False
        """Whether masks are those of the same few lanes again and again, so that branches on them are predicted."""

    def type_of(self, kind: ir.Type) -> ir.Type:
        """The type of a vector of *kind*; `UnsupportedError` if there is none."""
        if isinstance(kind, ir.LiteralStructType):
            return ir.LiteralStructType([self.type_of(element) for element in kind.elements])
        found = self._types.get(str(kind))
        if found is None:
            if isinstance(kind, ir.VectorType):
                raise UnsupportedError(f"vectors cannot hold values of type {kind}")
            mangle(kind)
            found = self._types[str(kind)] = ir.VectorType(kind, self.width)
        return found

    def emit(self, kind: ir.Type, parts: Sequence[Part], name: str = "") -> ir.Value:
        """An instruction assembled from *parts*."""
        result = Assembled(self.builder.block, kind, parts, name)
        self.builder._insert(result)
        return result

    def splat(self, value: ir.Value) -> ir.Value:
        """*value* in all lanes."""
        builder = self.builder
        if isinstance(value.type, ir.LiteralStructType):
            whole = self.undefined(self.type_of(value.type))
            for number in range(len(value.type.elements)):
                whole = builder.insert_value(whole, self.splat(builder.extract_value(value, number)), number)
            return whole
        kind = self.type_of(value.type)
        if isinstance(value, ir.Constant):
            return self._constant(kind, f"splat ({value.type} {value.get_reference()})")
        first = builder.insert_element(self.undefined(kind), value, I32(0))
        return self.shuffle(first, self.step_vector(I32, 0))

    def freeze(self, value: ir.Value) -> ir.Value:
        """*value*, with some number in the place of poison."""
        return self.emit(value.type, ["freeze ", *typed(value)])

    def shuffle(self, whole: ir.Value, order: ir.Value) -> ir.Value:
        """The elements of *whole* with the indices *order*, a constant vector."""
        result = ir.VectorType(whole.type.element, order.type.count)
        rest = self.undefined(whole.type)
        return self.emit(result, ["shufflevector ", *typed(whole), ", ", *typed(rest), ", ", *typed(order)])

    def merge(self, one: ir.Value, two: ir.Value, order: ir.Value) -> ir.Value:
        """The elements of *one*, and then of *two*, with the indices *order*, a constant vector."""
        result = ir.VectorType(one.type.element, order.type.count)
        return self.emit(result, ["shufflevector ", *typed(one), ", ", *typed(two), ", ", *typed(order)])

    def undefined(self, kind: ir.Type) -> ir.Value:
        """An undefined value of *kind*."""
        return self._constant(kind, "undef")

    def step_vector(self, kind: ir.IntType, stride: int) -> ir.Value:
        """The index of each lane times *stride*."""
        if not stride:
            return self._constant(self.type_of(kind), "zeroinitializer")
        return self.vector_of(kind, [number * stride for number in range(self.width)])

    def vector_of(self, kind: ir.IntType, numbers: Sequence[int]) -> ir.Value:
        """A constant vector of *numbers*, truncated to *kind*."""
        key = (kind.width, *numbers)
        found = self._constants.get(key)
        if found is None:
            mask = (1 << kind.width) - 1
            text = ", ".join(f"{kind} {number & mask}" for number in numbers)
            found = self._constants[key] = Spelled(ir.VectorType(kind, len(numbers)), f"<{text}>")
        return found

    def _constant(self, kind: ir.Type, text: str) -> ir.Value:
        key = (str(kind), text)
        found = self._constants.get(key)
        if found is None:
            found = self._constants[key] = Spelled(kind, text)
        return found

    def spread(self, value: ir.Value, stride: int) -> ir.Value:
        """All lanes of the value with the base *value* and *stride*."""
        whole = self.splat(value)
        if not stride:
            return whole
        if isinstance(value.type, ir.PointerType):
            return self.emit(
                whole.type, ["getelementptr i8, ", *typed(whole), ", ", *typed(self.step_vector(I64, stride))]
            )
        return self.builder.add(whole, self.step_vector(value.type, stride))

    def step(self, value: ir.Value, distance: int) -> ir.Value:
        """The address or the integer *value* plus *distance*."""
        if not distance:
            return value
        if isinstance(value.type, ir.PointerType):
            return self.builder.gep(value, [I64(distance)], source_etype=I8)
        return self.builder.add(value, ir.Constant(value.type, distance & (1 << value.type.width) - 1))

    def element_addresses(self, base: ir.Value, kind: ir.Type, indices: ir.Value) -> ir.Value:
        """The addresses of elements of an array of *kind* at *base*."""
        result = ir.VectorType(PTR, self.width)
        return self.emit(result, ["getelementptr ", kind, ", ", *typed(base), ", ", *typed(indices)])

    def all_lanes(self) -> ir.Value:
        """The mask of all lanes."""
        return self._constant(self.type_of(I1), "splat (i1 true)")

    def no_lanes(self) -> ir.Value:
        """The empty mask."""
        return self._constant(self.type_of(I1), "zeroinitializer")

    def first_lanes(self, count: ir.Value) -> ir.Value:
        """The mask of the first *count* lanes, which may be more than there are with an ``i32``."""
        if not has_mask_registers():
            limit = self._as_number(self.at_most(count))
            return self.builder.icmp_signed("<", self.step_vector(limit.type, 1), self.splat(limit))
        return self.builder.icmp_unsigned("<", self.step_vector(count.type, 1), self.splat(count))

    def is_lane(self, lane: ir.Value) -> ir.Value:
        """The mask of the lane with the number *lane*, which is at most that of lanes: of none."""
        number = self._as_number(lane)
        return self.builder.icmp_unsigned("==", self.step_vector(number.type, 1), self.splat(number))

    def _as_number(self, lane: ir.Value) -> ir.Value:
        """The number of a lane, or that of lanes, as the smallest integer of which a vector holds as many: masks have
        the size of what was compared, and processors without registers for masks compare all at once."""
        kind = ir.IntType(min(64, max(8, 128 // self.width)))
        if lane.type.width == kind.width:
            return lane
        return self.builder.trunc(lane, kind) if lane.type.width > kind.width else self.builder.zext(lane, kind)

    def at_most(self, count: ir.Value) -> ir.Value:
        """*count*, or the number of lanes if that is less."""
        limit = ir.Constant(count.type, self.width)
        return self.builder.select(self.builder.icmp_unsigned("<", count, limit), count, limit)

    def any(self, mask: ir.Value) -> ir.Value:
        """Whether any lane is in *mask*."""
        bits = ir.IntType(self.width)
        return self.builder.icmp_unsigned("!=", self.builder.bitcast(mask, bits), bits(0))

    def all(self, mask: ir.Value) -> ir.Value:
        """Whether all lanes are in *mask*."""
        bits = ir.IntType(self.width)
        return self.builder.icmp_unsigned("==", self.builder.bitcast(mask, bits), bits((1 << self.width) - 1))

    def count(self, mask: ir.Value) -> tuple[ir.Value, ir.Value]:
        """The bits of *mask*, and how many of them are set."""
        kind = ir.IntType(self.width)
        bits = self.builder.bitcast(mask, kind)
        return bits, self.call(f"llvm.ctpop.i{self.width}", kind, [bits])

    def blend(self, mask: ir.Value, new: ir.Value, old: ir.Value) -> ir.Value:
        """*new* for the lanes of *mask*, *old* for the others."""
        builder = self.builder
        if not isinstance(new.type, ir.LiteralStructType):
            return builder.select(mask, new, old)
        for number in range(len(new.type.elements)):
            part = self.blend(mask, builder.extract_value(new, number), builder.extract_value(old, number))
            old = builder.insert_value(old, part, number)
        return old

    def load(self, kind: ir.Type, place: ir.Value, mask: ir.Value | None, align: int) -> ir.Value:
        """A contiguous load; undefined for lanes that are not in *mask*."""
        vector = self.type_of(kind)
        if mask is None:
            return self.builder.load(place, typ=vector, align=align)
        return self._load_masked(vector, place, mask, align)

    def store(self, value: ir.Value, place: ir.Value, mask: ir.Value | None, align: int) -> None:
        """The reverse of `load`."""
        if mask is None:
            self.builder.store(value, place, align=align)
        else:
            self._store_masked(value, place, mask, align)

    def gather(self, kind: ir.Type, places: ir.Value, mask: ir.Value | None, align: int) -> ir.Value:
        """A gather: a load from an address for each lane.

        If all lanes are active it is made of scalar loads: a gather instruction is not faster, and on some processors
        several times slower if the values are not in the first-level cache. So it is for processors whose instructions
        take no masks, where LLVM would make a branch for each lane, unless that is predicted: see `keep_idle`.
        """
        vector = self.type_of(kind)
        whole = self.undefined(vector)
        if mask is not None and (self._avoids_branches or 0 < size_in_memory(kind) < _LEAST_GATHERED):
            places, mask = self.keep_idle(places, mask, align), None
        if mask is None:
            builder = self.builder
            for lane in map(I32, range(self.width)):
                loaded = builder.load(builder.extract_element(places, lane), typ=kind, align=align)
                whole = builder.insert_element(whole, loaded, lane)
            return whole
        name = f"llvm.masked.gather.{mangle(vector)}.{mangle(places.type)}"
        return self._call_aligned(name, vector, [places, mask, whole], align, 1)

    def scatter(self, value: ir.Value, places: ir.Value, mask: ir.Value | None, align: int) -> None:
        """The reverse of `gather`; of lanes with the same address, the last one's value is stored."""
        if mask is None:
            for lane in map(I32, range(self.width)):
                one, place = (self.builder.extract_element(whole, lane) for whole in (value, places))
                self.builder.store(one, place, align=align)
            return
        bits = self.builder.bitcast(mask, ir.IntType(self.width))
        rest = self.builder.and_(bits, self.builder.sub(bits, bits.type(1)))
        with self.builder.if_else(self.builder.icmp_unsigned("==", rest, bits.type(0))) as (single, several):
            with single:  # a scalar store is cheaper, as in ``if lane == 0``
                lane = self.call(f"llvm.cttz.i{self.width}", bits.type, [bits, I1(1)])
                one, place = (self.builder.extract_element(whole, lane) for whole in (value, places))
                self.builder.store(one, place, align=align)
            with several:
                self._scatter(value, places, mask, align)

    @property
    def _avoids_branches(self) -> bool:
        """Whether LLVM would make a branch for each lane of a mask that is often mispredicted."""
        return not (has_mask_registers() or self.has_steady_masks)

    def keep_idle(self, places: ir.Value, mask: ir.Value, align: int, are_stored: bool = False) -> ir.Value:
        """*places*, but for lanes that are not in *mask* a place on the stack that nothing else uses, which any of them
        may access: a branch around the access would be mispredicted as often as masks change. What is loaded there is
        computed with, so it is zero: a denormal number, as garbage may be, takes processors many times as long."""
        place = self._idle_places.get(are_stored)
        if place is None:
            assert self.entry is not None
            kind = ir.ArrayType(I64, _IDLE_WORDS)
            place = self._idle_places[are_stored] = allocate(self.entry, kind, "idle")
            if not are_stored:
                self.entry.store(ir.Constant(kind, None), place)
        place.align = max(place.align or I64.width // 8, align)
        return self.builder.select(mask, places, self.splat(place))

    def _scatter(self, value: ir.Value, places: ir.Value, mask: ir.Value, align: int) -> None:
        if self._avoids_branches:
            self.scatter(value, self.keep_idle(places, mask, align, are_stored=True), None, align)
            return
        name = f"llvm.masked.scatter.{mangle(value.type)}.{mangle(places.type)}"
        self._call_aligned(name, VOID, [value, places, mask], align, 2)

    def _load_masked(self, vector: ir.VectorType, place: ir.Value, mask: ir.Value, align: int) -> ir.Value:
        """A masked load of a vector. Pointers are loaded as integers: for a processor without masked loads, LLVM gives
        each of them the alignment of the vector (ScalarizeMaskedMemIntrin queries the element size in bits, which is 0
        for pointers), and moves several of them with an instruction that requires it."""
        if isinstance(vector.element, ir.PointerType):
            numbers = self._load_masked(ir.VectorType(I64, vector.count), place, mask, align)
            return self.builder.inttoptr(numbers, vector)
        name = f"llvm.masked.load.{mangle(vector)}.p0"
        return self._call_aligned(name, vector, [place, mask, self.undefined(vector)], align, 1)

    def _store_masked(self, value: ir.Value, place: ir.Value, mask: ir.Value, align: int) -> None:
        """The reverse of `_load_masked`."""
        if isinstance(value.type.element, ir.PointerType):
            value = self.builder.ptrtoint(value, ir.VectorType(I64, value.type.count))
        self._call_aligned(f"llvm.masked.store.{mangle(value.type)}.p0", VOID, [value, place, mask], align, 2)

    def _call_aligned(self, name: str, kind: ir.Type, arguments: list[ir.Value], align: int, where: int) -> ir.Value:
        """Call a masked memory intrinsic, which takes the alignment as an argument; newer versions of LLVM, which have
        an attribute for it, upgrade the call."""
        arguments.insert(where, I32(align))
        return self.call(name, kind, arguments)

    def call(self, name: str, kind: ir.Type, arguments: Sequence[ir.Value], flags: Sequence[str] = ()) -> ir.Value:
        """Declare and call the intrinsic *name*."""
        module = self.builder.module
        function = module.globals.get(name)
        if function is None:
            function = ir.Function(module, ir.FunctionType(kind, [argument.type for argument in arguments]), name)
        return self.builder.call(function, arguments, fastmath=tuple(flags))


def mangle(kind: ir.Type) -> str:
    """A type as the names of intrinsics have it; `UnsupportedError` for a type that vectors cannot hold."""
    if isinstance(kind, ir.VectorType):
        return f"v{kind.count}{mangle(kind.element)}"
    if isinstance(kind, ir.IntType) and kind.width in (1, 8, 16, 32, 64):
        return f"i{kind.width}"
    if isinstance(kind, ir.PointerType) and not kind.addrspace:
        return "p0"
    found = _FLOATS.get(str(kind))
    if found is None:
        raise UnsupportedError(f"vectors cannot hold values of type {kind}")
    return found


def size_in_memory(kind: ir.Type) -> int:
    """The size of a type whose arrays can be loaded as vectors; 0 if they cannot."""
    if kind == I1:
        return 0
    if isinstance(kind, ir.PointerType) or kind == PTR:
        return 8
    name = mangle(kind)
    return int(name[1:]) // 8 if name[1:].isdigit() else I8.width // 8
