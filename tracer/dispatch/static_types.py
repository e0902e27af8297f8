"""The arithmetic type of an expression that is not evaluated.

C++ converts both branches of ``?:`` to their common type, so the branch that is not taken has a say. It must not be
evaluated: it may read what only exists on the other side of the condition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch import models, numbers
from tracer.dispatch.answers import Unsupported
from tracer.dispatch.explanation import expression_text
from tracer.dispatch.numbers import Number, arithmetic_type
from tracer.dispatch.run import Refused
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Cell, Function, Optional, Pointer, Symbol, Unknown, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

_TRUTHS = frozenset(("==", "!=", "<", ">", "<=", ">=", "&&", "||"))


def static_type(engine: Engine, node: Node, scope: Scope) -> str:
    """Return the arithmetic type of an expression; empty for an expression of another kind.

    Raises:
        Unsupported: its type cannot be told without evaluating it.
    """
    kind, parts = node.kind, node.children
    if kind == "literal":
        return _of_value(engine.evaluate(node, scope))
    if kind == "cast" and node.type is not None:
        return arithmetic_type(node.type.canonical) if node.type.form == "value" else ""
    if kind in ("name", "member", "index"):
        return _of_place(engine, node, scope)
    if kind == "unary":
        if node.text == "!":
            return "bool"
        if node.text in ("-", "+", "~"):
            inner = static_type(engine, parts[0], scope)
            return numbers.common_type(inner, "int") if inner else ""
        if node.text == "&":
            return ""
    if kind in ("binary", "conditional"):
        if node.text in _TRUTHS and kind == "binary":
            return "bool"
        left, right = (static_type(engine, part, scope) for part in parts[-2:])
        return _common(left, right)
    if kind == "sizeof":
        return "unsigned long"
    if kind == "call":
        return _of_call(engine, node, scope)
    if kind in ("construct", "list", "lambda"):
        return ""
    raise Unsupported(f"the type of {expression_text(node)}, which is not evaluated", engine.location(node))


def _common(a: str, b: str) -> str:
    if not a or not b:
        return ""
    return a if a == b and a == "bool" else numbers.common_type(a, b)


def _of_value(value: Value) -> str:
    return value.type if isinstance(value, Number) else ""


def _of_place(engine: Engine, node: Node, scope: Scope) -> str:
    cell = engine.place(node, scope)
    if cell.type:
        return cell.type
    if isinstance(cell.value, Unknown):
        raise Unsupported(f"the type of {expression_text(node)}, which is not evaluated", engine.location(node))
    return _of_value(cell.value)


def _of_call(engine: Engine, node: Node, scope: Scope) -> str:
    callee = node.children[0]
    if callee.kind == "member":
        base = engine.place(callee.children[0], scope).value
        if isinstance(base, Pointer) and isinstance(base.target, Cell):
            base = base.target.value
        if callee.text in ("value", "value_or") and isinstance(base, Optional):
            if base.cell.value is not None or base.element:
                return base.element or _of_value(base.cell.value)
        result = models.result(base, callee.text)
        if result is not None:
            return result
    elif callee.kind != "lambda":
        function = engine.evaluate(callee, scope)
        if isinstance(function, Function) and len(function.usrs) == 1:
            declared = engine.host.result(function.usrs[0])
            if declared is not None:
                return arithmetic_type(declared.canonical) if declared.form == "value" else ""
        if isinstance(function, Symbol):
            return ""
    with engine.run.aside():
        try:
            return _of_value(engine.evaluate(node, scope))
        except Refused:
            text = expression_text(node)
            raise Unsupported(f"the type of {text}, which is not evaluated", engine.location(node)) from None
