"""Which way a condition goes when nothing is set up specially.

The assumptions, and nothing else: environment variables are unset, PyTorch was built for CUDA, no type checker runs,
and the file is imported rather than run. A condition that depends on anything more is undecided.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracer.python.flow import Env


class Undecided:
    """The value of what depends on more than the assumptions."""


UNDECIDED = Undecided()
_ASSUMED: dict[str, object] = {
    "torch.version.hip": None,
    "torch.version.xpu": None,
    "torch.cuda.is_available": True,
    "typing.TYPE_CHECKING": False,
    "typing_extensions.TYPE_CHECKING": False,
}


def fold(node: ast.expr, env: Env, outer: Env, depth: int = 0) -> object:
    """Return the value that an expression has under the assumptions, or ``UNDECIDED``.

    Args:
        node: the expression.
        env: what the names in it are bound to.
        outer: what names that are not in ``env`` are bound to.
        depth: how many assignments have been followed.
    """
    if depth > 20:
        return UNDECIDED
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return _name(node, env, outer, depth)
        case ast.Attribute():
            return _ASSUMED.get(outside_name(node, env, outer), UNDECIDED)
        case ast.UnaryOp(op=ast.Not()):
            value = fold(node.operand, env, outer, depth + 1)
            return UNDECIDED if value is UNDECIDED else not value
        case ast.BoolOp():
            values = [fold(part, env, outer, depth + 1) for part in node.values]
            decisive = isinstance(node.op, ast.Or)
            if any(value is not UNDECIDED and bool(value) is decisive for value in values):
                return decisive
            return UNDECIDED if any(value is UNDECIDED for value in values) else values[-1]
        case ast.Compare(ops=[operator], comparators=[right]):
            return _compare(fold(node.left, env, outer, depth + 1), operator, fold(right, env, outer, depth + 1))
        case ast.Call():
            return _call(node, env, outer, depth)
        case ast.Tuple() | ast.List() | ast.Set():
            values = [fold(part, env, outer, depth + 1) for part in node.elts]
            return UNDECIDED if any(value is UNDECIDED for value in values) else tuple(values)
    return UNDECIDED


def outside_name(node: ast.expr, env: Env, outer: Env) -> str:
    """Return the dotted path that a chain of attributes names through an import, or an empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    bindings = env.get(node.id) or outer.get(node.id) or ()
    if len(bindings) != 1 or not bindings[0].source or bindings[0].source.startswith("."):
        return ""
    head = [bindings[0].source] + [bindings[0].attribute] * bool(bindings[0].attribute)
    return ".".join(head + parts[::-1])


def _name(node: ast.Name, env: Env, outer: Env, depth: int) -> object:
    bindings = env.get(node.id) or outer.get(node.id) or ()
    if not bindings:
        return {"__name__": ""}.get(node.id, UNDECIDED)
    if bindings[0].source:
        return _ASSUMED.get(outside_name(node, env, outer), UNDECIDED)
    best = min(binding.rank for binding in bindings)
    values = []
    for binding in bindings:
        if binding.rank == best:
            if not isinstance(binding.node, ast.expr) or binding.env is None:
                return UNDECIDED
            values.append(fold(binding.node, binding.env, outer, depth + 1))
    alike = all(value is values[0] or value == values[0] for value in values)
    return values[0] if alike else UNDECIDED


def _compare(left: object, operator: ast.cmpop, right: object) -> object:
    if left is UNDECIDED or right is UNDECIDED:
        return UNDECIDED
    match operator:
        case ast.Eq():
            return left == right
        case ast.NotEq():
            return left != right
        case ast.Is():
            return left is right
        case ast.IsNot():
            return left is not right
        case ast.In() if isinstance(right, str | tuple):
            return str(left) in right if isinstance(right, str) else left in right
        case ast.NotIn() if isinstance(right, str | tuple):
            return str(left) not in right if isinstance(right, str) else left not in right
    return UNDECIDED


def _call(node: ast.Call, env: Env, outer: Env, depth: int) -> object:
    arguments = [fold(argument, env, outer, depth + 1) for argument in node.args]
    name = outside_name(node.func, env, outer)
    if name in ("os.getenv", "os.environ.get"):
        return arguments[1] if len(arguments) > 1 else None
    if name in _ASSUMED:
        return _ASSUMED[name]
    if isinstance(node.func, ast.Name) and node.func.id not in env and node.func.id not in outer:
        if node.func.id == "getattr" and len(node.args) > 1 and isinstance(node.args[1], ast.Constant):
            attribute = ast.Attribute(node.args[0], str(node.args[1].value), ast.Load())
            return fold(attribute, env, outer, depth + 1)
        if node.func.id in ("int", "bool", "str") and len(arguments) == 1 and isinstance(arguments[0], str | int):
            try:
                return {"int": int, "bool": bool, "str": str}[node.func.id](arguments[0])
            except ValueError:
                return UNDECIDED
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("lower", "upper", "strip") and not arguments:
        text = fold(node.func.value, env, outer, depth + 1)
        if isinstance(text, str):
            return getattr(text, node.func.attr)()
    return UNDECIDED
