"""What a parameter's annotation promises of its value."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from tracer.model import Confidence
from tracer.python.syntax import Scope
from tracer.python.values import Kind, Value

if TYPE_CHECKING:
    from tracer.python.resolve import Resolver

_TRANSPARENT = frozenset({"Optional", "Union", "Annotated", "Final", "ClassVar"})


def promised(node: ast.expr, scope: Scope, resolver: Resolver) -> tuple[Value, ...]:
    """Return the instances that an annotation in a function's head promises; nothing where it says nothing of use."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = ast.parse(node.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return promised(node.left, scope, resolver) + promised(node.right, scope, resolver)
    if isinstance(node, ast.Subscript):
        outer = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
        if outer not in _TRANSPARENT:
            return ()
        inner = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return tuple(value for part in inner for value in promised(part, scope, resolver))
    if not isinstance(node, ast.Name | ast.Attribute) or scope.parent is None:
        return ()
    found: list[Value] = []
    for value in resolver.evaluate(node, resolver.body(scope.parent).env, scope.parent):
        if value.kind is Kind.CLASS:
            found.append(Value(Kind.INSTANCE, value.name, confidence=Confidence.INFERRED))
        elif value.kind is Kind.BUILTIN and value.name != "object":
            found.append(Value(Kind.OBJECT, value.name))
        elif value.kind is Kind.LIBRARY and value.name.rpartition(".")[2] not in ("Callable", "Any"):
            found.append(Value(Kind.OBJECT, value.name))
    return tuple(found)
