"""Turns ``local_array_from(expression for name in items)`` into statements: a local array and a loop that fills it."""

from __future__ import annotations

import ast
import copy

from numba_hip_cuda.mlir.experimental import ConstevalError

NAME = "local_array_from"


class LocalArrays(ast.NodeTransformer):
    """Inserts the statements before the statement that calls ``local_array_from``."""

    def __init__(self) -> None:
        self.count = 0
        """The number of arrays so far."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST | list[ast.stmt]:
        """``name = local_array_from(...)``."""
        call = node.value
        if not _is_call(call):
            return self.generic_visit(node)
        assert isinstance(call, ast.Call)
        if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            raise ConstevalError(f"{NAME}() is assigned to one name: name = {NAME}(...)")
        made = self._statements(node.targets[0].id, call)
        for statement in made:
            ast.copy_location(statement, node)
            ast.fix_missing_locations(statement)
        return made

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call in any other place."""
        if _is_call(node):
            raise ConstevalError(f"{NAME}() is assigned to one name: name = {NAME}(...)")
        return self.generic_visit(node)

    def _statements(self, name: str, call: ast.Call) -> list[ast.stmt]:
        items, dtype = _arguments(call)
        index = f"__laf_i_{self.count}"
        self.count += 1
        element: ast.expr = ast.Name(id=index, ctx=ast.Load())
        if isinstance(items, ast.GeneratorExp):
            (generator,) = items.generators
            source, target, value = generator.iter, generator.target, items.elt
        else:
            source, target, value = items, None, None
        item = ast.Subscript(value=copy.deepcopy(source), slice=element, ctx=ast.Load())
        assigned: ast.expr = item
        body: list[ast.stmt] = []
        if target is not None and value is not None:
            body.append(ast.Assign(targets=[target], value=item))
            assigned = value
        place = ast.Subscript(value=ast.Name(id=name, ctx=ast.Load()), slice=copy.deepcopy(element), ctx=ast.Store())
        body.append(ast.Assign(targets=[place], value=assigned))
        length = f"len({ast.unparse(source)})"
        made = ast.parse(f"{name} = cuda.local_array({length}, {dtype})\nfor {index} in range({length}):\n    0")
        loop = made.body[1]
        assert isinstance(loop, ast.For)
        loop.body = body
        return made.body


def _is_call(node: ast.expr) -> bool:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    return (isinstance(called, ast.Name) and called.id == NAME) or (
        isinstance(called, ast.Attribute) and called.attr == NAME
    )


def _arguments(call: ast.Call) -> tuple[ast.expr, str]:
    """The items and the source of the dtype of a call."""
    given = dict(zip(("iterable", "dtype"), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
    if given.keys() != {"iterable", "dtype"}:
        raise ConstevalError(f"{NAME}(iterable, dtype) takes these two arguments")
    items = given["iterable"]
    if isinstance(items, ast.GeneratorExp) and (len(items.generators) != 1 or items.generators[0].ifs):
        raise ConstevalError(f"{NAME}() takes a generator expression with one 'for' and no 'if'")
    return items, ast.unparse(given["dtype"])
