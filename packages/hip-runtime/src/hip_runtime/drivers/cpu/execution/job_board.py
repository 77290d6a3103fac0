"""The board on which launching threads post their frames for helpers to take, as LLVM IR.

A frame has a *place* on the board, with as many *tickets* as helpers may run its blocks. Whoever takes a ticket, by one
atomic subtraction, has the frame that is at the place then: it stays there until all who took tickets have left. There
is no lock, as all helpers of a processor with many cores would want it at once, each for less time than it takes to
hand it on.

What launching threads write here is sequentially consistent with the number of helpers that sleep, see `pool`.
"""

from __future__ import annotations

from llvmlite import ir

from hip_runtime.drivers.cpu.llvmir import I1, I32, I64, PTR, Struct

PLACES = 8
"""Launches that can have helpers at a time, a power of two. Where so many threads launch, all processors have work."""

_PLACE = Struct(frame=I64, tickets=I32, padding=ir.ArrayType(I32, 29))
"""The address of a frame, 0 in a place that is free; tickets, 0 or less if none is left. Processors load cache lines in
pairs, so each place has two."""

_ALIGNMENT = 128


class BoardBuilder:
    """Puts the board into a module, which is empty where it is all zeros, and the functions that use it."""

    def __init__(self, module: ir.Module) -> None:
        self._module = module
        self._places = ir.GlobalVariable(module, ir.ArrayType(_PLACE.type, PLACES), "spmd.board")
        self._places.type = PTR
        self._places.align = _ALIGNMENT
        self._places.linkage = "internal"
        self._places.initializer = ir.Constant(self._places.value_type, None)
        self.has_tickets = self._define_has_tickets()
        self.post = self._define_post()
        self.take = self._define_take()
        self.withdraw = self._define_withdraw()

    def clear(self, builder: ir.IRBuilder) -> None:
        """Forget all frames."""
        builder.store(ir.Constant(self._places.value_type, None), self._places)

    def free(self, builder: ir.IRBuilder, place: ir.Value) -> None:
        """Let other launches have *place*. All helpers that took tickets have left."""
        builder.atomic_rmw("xchg", _PLACE.field(builder, place, "frame"), I64(0), "release")

    def _define_has_tickets(self) -> ir.Function:
        """``i1 has_tickets()``: whether there are tickets anywhere."""
        function, builder = self._function("spmd.board.has_tickets", I1, [])
        some: ir.Value = I1(0)
        for number in range(PLACES):
            tickets = self._load_tickets(builder, self._place(builder, I64(number)))
            some = builder.or_(some, builder.icmp_signed(">", tickets, I32(0)))
        builder.ret(some)
        return function

    def _define_post(self) -> ir.Function:
        """``ptr post(frame, tickets)``: post *frame*; gives its place, or null if all are in use."""
        function, builder = self._function("spmd.board.post", PTR, [PTR, I32])
        frame, tickets = function.args
        address = builder.ptrtoint(frame, I64)
        for number in range(PLACES):
            place = self._place(builder, I64(number))
            there = builder.load_atomic(_PLACE.field(builder, place, "frame"), "monotonic", 8, typ=I64)
            with builder.if_then(builder.icmp_unsigned("==", there, I64(0))):
                pair = builder.cmpxchg(_PLACE.field(builder, place, "frame"), I64(0), address, "acq_rel", "monotonic")
                with builder.if_then(builder.extract_value(pair, 1)):
                    builder.atomic_rmw("xchg", _PLACE.field(builder, place, "tickets"), tickets, "seq_cst")
                    builder.ret(place)
        builder.ret(PTR(None))
        return function

    def _define_take(self) -> ir.Function:
        """``ptr take(ptr left, ptr from)``: take a ticket; gives the frame, or null if there is none, and how many are
        *left*. It looks behind the place numbered *from* first, and notes there where it found one: so each frame gets
        help in the end, however often others are posted."""
        function, builder = self._function("spmd.board.take", PTR, [PTR, PTR])
        left, start = function.args
        first = builder.load(start, typ=I32)
        look, taken, behind, none = (builder.append_basic_block(name) for name in ("look", "taken", "behind", "none"))
        entry = builder.block
        builder.branch(look)
        builder.position_at_end(look)
        turn = builder.phi(I32, name="turn")
        turn.add_incoming(I32(1), entry)
        number = builder.and_(builder.add(first, turn), I32(PLACES - 1))
        place = self._place(builder, builder.zext(number, I64))
        with builder.if_then(builder.icmp_signed(">", self._load_tickets(builder, place), I32(0))):
            tickets = builder.atomic_rmw("sub", _PLACE.field(builder, place, "tickets"), I32(1), "acq_rel")
            builder.cbranch(builder.icmp_signed(">", tickets, I32(0)), taken, behind)
        builder.branch(behind)
        builder.position_at_end(taken)
        builder.store(builder.sub(tickets, I32(1)), left)
        builder.store(number, start)
        frame = builder.load_atomic(_PLACE.field(builder, place, "frame"), "monotonic", 8, typ=I64)
        builder.ret(builder.inttoptr(frame, PTR))
        builder.position_at_end(behind)
        following = builder.add(turn, I32(1))
        turn.add_incoming(following, behind)
        builder.cbranch(builder.icmp_unsigned("<=", following, I32(PLACES)), look, none)
        builder.position_at_end(none)
        builder.ret(PTR(None))
        return function

    def _define_withdraw(self) -> ir.Function:
        """``i32 withdraw(place)``: take all tickets of *place*; gives how many there were."""
        function, builder = self._function("spmd.board.withdraw", I32, [PTR])
        tickets = builder.atomic_rmw("xchg", _PLACE.field(builder, function.args[0], "tickets"), I32(0), "acq_rel")
        builder.ret(builder.select(builder.icmp_signed(">", tickets, I32(0)), tickets, I32(0)))
        return function

    def _place(self, builder: ir.IRBuilder, number: ir.Value) -> ir.Value:
        return builder.gep(self._places, [number], inbounds=True, source_etype=_PLACE.type)

    def _load_tickets(self, builder: ir.IRBuilder, place: ir.Value) -> ir.Value:
        return builder.load_atomic(_PLACE.field(builder, place, "tickets"), "seq_cst", 4, typ=I32)

    def _function(self, name: str, result: ir.Type, arguments: list[ir.Type]) -> tuple[ir.Function, ir.IRBuilder]:
        function = ir.Function(self._module, ir.FunctionType(result, arguments), name)
        function.linkage = "internal"
        return function, ir.IRBuilder(function.append_basic_block("entry"))
