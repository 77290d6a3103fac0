"""``consteval`` in a kernel's source: expressions become constants, loops are unrolled, blocks run at compile time."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping
from typing import Any

from numba_hip_cuda.mlir.experimental import ConstevalError, consteval, current_target_options

NAME = consteval.__name__
OPTIONS = current_target_options.__name__

WRITTEN = (int, float, complex, str, bytes, bool, type(None))
"""Types whose values can be written as literals, alone or in tuples."""


class Constants:
    """The compile-time environment of a kernel: globals, closure, parameter types and evaluated variables."""

    def __init__(self, known: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        self._known = {**known, OPTIONS: lambda: dict(options)}
        self._options = options
        self.locals: dict[str, Any] = {}
        """Variables of the kernel with values that are known at this point."""
        self.stored: dict[str, Any] = {}
        """Values that cannot be written as literals, by the names that stand for them."""

    def evaluate(self, node: ast.expr) -> Any:
        """The value of an expression; `ConstevalError` if it cannot be evaluated."""
        source = ast.unparse(node)
        expression = ast.fix_missing_locations(ast.Expression(body=_Plain().visit(copy.deepcopy(node))))
        try:
            return eval(compile(expression, "<consteval>", "eval"), self._surroundings())
        except Exception as error:
            raise ConstevalError(f"Cannot evaluate consteval argument {source!r} at compile time: {error}") from error

    def run(self, body: list[ast.stmt]) -> None:
        """Run statements. The variables that they assign become known."""
        module = _Plain().visit(ast.Module(body=copy.deepcopy(body), type_ignores=[]))
        surroundings = self._surroundings()
        before = dict(surroundings)
        try:
            exec(compile(ast.fix_missing_locations(module), "<consteval>", "exec"), surroundings)
        except Exception as error:
            raise ConstevalError(f"Error executing consteval block: {error}") from error
        self.locals.update(
            {name: value for name, value in surroundings.items() if name not in before or before[name] is not value}
        )
        self.locals.pop("__builtins__", None)

    def write(self, value: Any) -> ast.expr:
        """An expression for *value*: a literal, or a name under which the kernel finds it."""
        if isinstance(value, WRITTEN) and type(value) in WRITTEN:
            return ast.Constant(value=value)
        if type(value) is tuple:
            return ast.Tuple(elts=[self.write(member) for member in value], ctx=ast.Load())
        name = next((name for name, known in self.stored.items() if known is value), f"__consteval_{len(self.stored)}")
        self.stored[name] = value
        return ast.Name(id=name, ctx=ast.Load())

    def _surroundings(self) -> dict[str, Any]:
        known = {**self._known, **self.locals}
        for name, value in self._known.items():  # `cuda.current_target_options()`
            if getattr(value, "__name__", None) in ("numba_cuda_mlir.cuda", "numba.cuda", "numba_hip"):
                known[name] = _WithOptions(value, self._options)
        return known


class _WithOptions:
    """A module of `numba_cuda_mlir` that also knows the options of the kernel."""

    def __init__(self, module: Any, options: Mapping[str, Any]) -> None:
        self._module = module
        self._options = options

    def __getattr__(self, name: str) -> Any:
        return (lambda: dict(self._options)) if name == OPTIONS else getattr(self._module, name)


class _Plain(ast.NodeTransformer):
    """Removes calls of ``consteval`` from code that is evaluated anyway."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        return node.args[0] if is_consteval(node) and len(node.args) == 1 else node

    def visit_With(self, node: ast.With) -> ast.AST | list[ast.stmt]:
        self.generic_visit(node)
        return node.body if len(node.items) == 1 and is_consteval(node.items[0].context_expr) else node


def is_consteval(node: ast.AST) -> bool:
    """Whether *node* is a call of ``consteval``."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (isinstance(called, ast.Name) and called.id == NAME) or (
        isinstance(called, ast.Attribute) and called.attr == NAME
    )


class Folder(ast.NodeTransformer):
    """Visits the statements of a kernel in order and evaluates ``consteval``."""

    def __init__(self, constants: Constants) -> None:
        self._constants = constants

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """The kernel, or a function defined in it."""
        node.body = self._block(node.body)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """An expression in ``consteval``."""
        if not is_consteval(node):
            return self.generic_visit(node)
        return ast.copy_location(self._constants.write(self._evaluate(node)), node)

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """An expression statement. If it is evaluated for its effects, it is removed."""
        if is_consteval(node.value):
            self._evaluate(node.value)
            return None
        return self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """``name = consteval(...)``: later expressions know the value."""
        if len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and is_consteval(node.value):
            name, value = node.targets[0].id, self._evaluate(node.value)
            self._constants.locals[name] = value
            written = self._constants.write(value)
            if isinstance(written, ast.Name):  # kernels have no such variables
                return None
            node.value = ast.copy_location(written, node.value)
            return node
        self.generic_visit(node)
        self._forget(node.targets)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        """``name += ...``: the value is no longer known."""
        self.generic_visit(node)
        self._forget([node.target])
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """A variable with a known value that a variable of a kernel cannot hold."""
        known = self._constants.locals
        if isinstance(node.ctx, ast.Load) and node.id in known:
            written = self._constants.write(known[node.id])
            if isinstance(written, ast.Name):
                return ast.copy_location(written, node)
        return node

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.stmt]:
        """``if consteval(condition)`` keeps one branch."""
        if is_consteval(node.test):
            return self._block(node.body if self._evaluate(node.test) else node.orelse)
        node.test = self.visit(node.test)
        before = dict(self._constants.locals)
        assigned = copy.deepcopy(node)  # also what is known of it alone; the branches no longer contain it
        node.body = self._block(node.body) or [ast.copy_location(ast.Pass(), node)]
        self._constants.locals = before.copy()
        node.orelse = self._block(node.orelse)
        self._constants.locals = before
        self._forget([assigned])
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """``a if consteval(condition) else b`` keeps one of the two."""
        if is_consteval(node.test):
            chosen: ast.AST = self.visit(node.body if self._evaluate(node.test) else node.orelse)
            return chosen
        return self.generic_visit(node)

    def visit_For(self, node: ast.For) -> ast.AST | list[ast.stmt]:
        """``for name in consteval(items)``: the loop is unrolled."""
        if not is_consteval(node.iter):
            return self._loop(node)
        items = self._evaluate(node.iter)
        if not isinstance(items, Iterable):
            raise ConstevalError(f"consteval({ast.unparse(node.iter.args[0])}) must be iterable, not {items!r}")  # type: ignore[attr-defined]
        _refuse_control(node.body)
        made: list[ast.stmt] = []
        for item in items:
            made += self._repeat(node, item)
        return [*made, *self._block(node.orelse)]

    def visit_While(self, node: ast.While) -> ast.AST:
        """An ordinary loop."""
        return self._loop(node)

    def visit_With(self, node: ast.With) -> ast.AST | None:
        """``with consteval()``: the block runs at compile time."""
        if not any(is_consteval(item.context_expr) for item in node.items):
            return self.generic_visit(node)
        if node.items[0].optional_vars is not None:
            name = ast.unparse(node.items[0].optional_vars)
            raise ConstevalError(f"'with consteval() as {name}:' is not supported; assign in the block")
        self._constants.run(node.body)
        return None

    def _evaluate(self, node: ast.AST) -> Any:
        if not isinstance(node, ast.Call) or len(node.args) != 1 or node.keywords:
            raise ConstevalError(f"{ast.unparse(node)}: consteval takes one expression")
        return self._constants.evaluate(node.args[0])

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        made: list[ast.stmt] = []
        for statement in body:
            result = self.visit(statement)
            made += result if isinstance(result, list) else [] if result is None else [result]
        return made

    def _loop(self, node: ast.For | ast.While) -> ast.AST:
        """A loop that stays in the kernel: variables that its body assigns are unknown in every iteration."""
        self._forget([node])
        if isinstance(node, ast.For):
            node.iter = self.visit(node.iter)
        else:
            node.test = self.visit(node.test)
        node.body = self._block(node.body) or [ast.copy_location(ast.Pass(), node)]
        self._forget([node])
        node.orelse = self._block(node.orelse)
        return node

    def _repeat(self, node: ast.For, item: Any) -> list[ast.stmt]:
        """The body of an unrolled loop for one *item*."""
        values = _unpack(node.target, item)
        for name in values:
            if any(
                isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
                for statement in node.body
                for one in ast.walk(statement)
            ):
                raise ConstevalError(f"the body assigns to {name!r}, which is a constant of a consteval loop")
        before = {name: self._constants.locals[name] for name in values if name in self._constants.locals}
        self._constants.locals.update(values)
        body = [copy.deepcopy(statement) for statement in node.body]
        written = {name: self._constants.write(value) for name, value in values.items()}
        made = self._block([_Substitute(written).visit(statement) for statement in body])
        for name in values:
            self._constants.locals.pop(name, None)
        self._constants.locals.update(before)
        return made

    def _forget(self, targets: Iterable[ast.AST]) -> None:
        """Variables that are assigned within *targets* become unknown."""
        for target in targets:
            for one in ast.walk(target):
                if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                    self._constants.locals.pop(one.id, None)


class _Substitute(ast.NodeTransformer):
    """Replaces names by expressions, except within ``consteval``, which uses the values themselves."""

    def __init__(self, expressions: Mapping[str, ast.expr]) -> None:
        self._expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.AST:
        found = self._expressions.get(node.id) if isinstance(node.ctx, ast.Load) else None
        return node if found is None else ast.copy_location(copy.deepcopy(found), node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        return node if is_consteval(node) else self.generic_visit(node)


def _unpack(target: ast.expr, item: Any) -> dict[str, Any]:
    """The values that the names in a loop's *target* get."""
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise ConstevalError(f"a consteval loop assigns to names, not to {ast.unparse(target)}")
    if any(isinstance(member, ast.Starred) for member in target.elts):
        raise ConstevalError(f"a consteval loop does not support starred targets: {ast.unparse(target)}")
    try:
        members = list(item)
    except TypeError as error:
        raise ConstevalError(f"{item!r} cannot be unpacked into {ast.unparse(target)}: {error}") from None
    wanted, got = len(target.elts), len(members)
    if wanted != got:
        problem = "not enough" if got < wanted else "too many"
        raise ConstevalError(f"{problem} values to unpack (expected {wanted}, got {got})")
    found: dict[str, Any] = {}
    for member, value in zip(target.elts, members, strict=True):
        found |= _unpack(member, value)
    return found


def _refuse_control(body: list[ast.stmt]) -> None:
    """`ConstevalError` if the loop to be unrolled has a ``break`` or ``continue``."""
    for statement in body:
        if isinstance(statement, (ast.Break, ast.Continue)):
            kind = "break" if isinstance(statement, ast.Break) else "continue"
            raise ConstevalError(f"a consteval loop does not support {kind} statements")
        if isinstance(statement, (ast.For, ast.While)) and not is_consteval(getattr(statement, "iter", statement)):
            _refuse_control(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.For)):
            for name in ("body", "orelse", "finalbody"):
                _refuse_control(getattr(statement, name, []))
