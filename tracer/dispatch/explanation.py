"""How the interpreter says what it saw: expressions as text, the operands of a condition with their values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch.answers import Unsupported
from tracer.dispatch.numbers import Number
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Function, Optional, Pointer, Symbol, Value

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine

CHECKS = ("flashtracer_torch_check", "flashtracer_cuda_check", "flashtracer_assert")
_PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, ">": 7, "<=": 7, ">=": 7, "<<": 8, ">>": 8,
    "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
_TIGHT = 11


def expression_text(node: Node) -> str:
    """Return an expression as C++ text, made from the tree: so it reads well also where a macro wrote it."""
    kind, parts = node.kind, node.children
    if kind == "name":
        arguments = f"<{', '.join(map(expression_text, parts))}>" if parts else ""
        return node.text + arguments
    if kind == "literal":
        return node.text
    if kind == "member":
        return f"{_operand(parts[0])}{node.text2}{node.text}"
    if kind == "call":
        return f"{_operand(parts[0])}({', '.join(map(expression_text, parts[1:]))})"
    if kind == "construct":
        return f"{node.text}({', '.join(map(expression_text, parts))})"
    if kind == "index":
        return f"{_operand(parts[0])}[{', '.join(map(expression_text, parts[1:]))}]"
    if kind == "unary":
        mark = node.text.removeprefix("p")
        return f"{_operand(parts[0])}{mark}" if node.text.startswith("p") else f"{mark}{_operand(parts[0])}"
    if kind in ("binary", "assign"):
        binding = _PRECEDENCE.get(node.text, 0)
        return f"{_operand(parts[0], binding)} {node.text} {_operand(parts[1], binding + 1)}"
    if kind == "conditional":
        return f"{_operand(parts[0], 1)} ? {_operand(parts[1], 1)} : {_operand(parts[2], 1)}"
    if kind == "list":
        return "{" + ", ".join(map(expression_text, parts)) + "}"
    if kind == "cast" and node.type is not None:
        return f"{node.type.spelling}({expression_text(parts[0])})"
    if kind == "lambda":
        return "a lambda"
    return " ".join(node.text.split()) or kind


def _operand(node: Node, binding: int = _TIGHT) -> str:
    """Return an operand, in parentheses where it binds less than what stands around it."""
    text = expression_text(node)
    own = _PRECEDENCE.get(node.text, 0) if node.kind in ("binary", "conditional", "assign") else _TIGHT
    return f"({text})" if own < binding else text


def decision_kind(node: Node) -> str:
    """Tell what a condition decides: see :class:`tracer.dispatch.answers.Decision`."""
    if node.kind != "if":
        return "choice"
    statements = node.children[1].children
    for statement in statements:
        if statement.kind == "call" and statement.children[0].text in CHECKS:
            return "check"
    # A dispatch switch: the value becomes a constant, and one lambda goes on with it.
    if len(statements) == 2 and statements[0].kind == "declare" and statements[1].kind == "return":
        called = statements[1].children
        if called and called[0].kind == "call" and called[0].children[0].kind == "lambda":
            return "switch"
    return "if"


def operands(engine: Engine, condition: Node, scope: Scope, *, whole: bool = False) -> tuple[tuple[str, str], ...]:
    """Return (operand, value) of what a condition reads; what was not evaluated is left out.

    Args:
        engine: evaluates the operands again.
        condition: the expression.
        scope: where it was evaluated.
        whole: take the expression itself as the operand, not its parts.
    """
    found: dict[str, str] = {}
    waiting = [condition]
    while waiting:
        node = waiting.pop(0)
        if not whole and node.kind in ("binary", "unary", "conditional", "cast") and node.text not in ("&", "*"):
            waiting = [*node.children, *waiting]
            continue
        if node.kind == "literal" and not whole:
            continue
        try:
            text = value_text(engine.evaluate(node, scope))
        except Unsupported:
            continue
        if text:
            found.setdefault(expression_text(node), text)
    return tuple(found.items())


def kind_of(value: Value) -> str:
    """Name what a value is, for a message."""
    if isinstance(value, Number):
        return f"{value.type} {value}"
    if isinstance(value, str):
        return "a string"
    if isinstance(value, Function):
        return f"function {value.name}"
    if isinstance(value, Symbol):
        return value.name
    return type(value).__name__.lower()


def value_text(value: Value) -> str:
    """Return a value as a person reads it; empty for what has no short form."""
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, str):
        return value
    if isinstance(value, Symbol):
        return value.name.rpartition("::")[2]
    if isinstance(value, Pointer):
        return "nullptr" if value.target is None else "not null"
    if isinstance(value, Optional):
        return "absent" if value.cell.value is None else "given"
    return ""
