"""What the local names of a body stand for, at every place of the body where that matters."""

from __future__ import annotations

from collections.abc import Callable

from tracer.cpp.tree import Function, Node, TypeRef
from tracer.records import dataclass

_RECORDED = frozenset("call construct launch name variable alias cast list return".split())
_OPENS_SCOPE = frozenset("block lambda for for_range if while".split())


@dataclass(slots=True, eq=False)
class Local:
    """What a local name stands for.

    Attributes:
        node: the initialiser of a variable.
        type: the declared type, or what an alias stands for.
        place: (file index, byte offset) of the declaration; None for a parameter.
        alias: it is a type.
        taken_by: the lambda whose parameter it is.
        position: which parameter of that lambda.
    """

    node: Node | None
    type: TypeRef | None
    place: tuple[int, int] | None = None
    alias: bool = False
    taken_by: Node | None = None
    position: int = 0


Scope = dict[str, Local]


@dataclass(frozen=True, slots=True, eq=False)
class Visited:
    """One node of a body, with the names in sight there.

    Attributes:
        node: a call, a launch, a construct, a name, a cast, a list, a return, or a variable or alias declared.
        scope: the local names.
        condition: of the innermost ``if`` around it, as written; negated in the other branch.
        inside: the innermost lambda around it.
    """

    node: Node
    scope: Scope
    condition: str
    inside: Node | None


def visit(function: Function, body: Node, text: Callable[[Node], str]) -> list[Visited]:
    """Return the nodes of a body that say what is called and of which type things are, each shared one once.

    Args:
        function: the function that the body belongs to.
        body: its body.
        text: gives the source text of a condition.
    """
    visitor = _Visitor(text)
    visitor.visit(body, {parameter.text: Local(None, parameter.type) for parameter in function.parameters}, "", None)
    return visitor.found


class _Visitor:
    def __init__(self, text: Callable[[Node], str]) -> None:
        self.text = text
        self.found: list[Visited] = []
        self.seen: set[int] = set()

    def visit(self, node: Node, scope: Scope, condition: str, inside: Node | None) -> None:
        kind = node.kind
        if kind in ("literal", "empty", "this") or (kind == "lambda" and id(node) in self.seen):
            return
        if kind in _RECORDED:
            self.found.append(Visited(node, scope, condition, inside))
        children: tuple[Node, ...] = node.children
        if kind in _OPENS_SCOPE:
            scope = dict(scope)
        if kind == "lambda":
            self.seen.add(id(node))
            for position, parameter in enumerate(children[:-1]):
                scope[parameter.text] = Local(None, parameter.type, None, False, node, position)
            inside = node
        elif kind == "if" and children:
            self.visit(children[0], scope, condition, inside)
            text = self.text(children[0])
            branches = (text, f"not ({text})" if text else "")
            for branch, branch_condition in zip(children[1:], branches, strict=False):
                self.visit(branch, dict(scope), branch_condition or condition, inside)
            return
        elif kind == "variable":
            for child in children:
                self.visit(child, scope, condition, inside)
            scope[node.text] = Local(children[0] if children else None, node.type, (node.file, node.start))
            return
        elif kind == "alias":
            scope[node.text] = Local(None, node.type, (node.file, node.start), True)
            return
        elif kind == "bind":
            for name in node.text.split(","):
                scope[name] = Local(None, None)
        elif kind == "call" and children:
            callee = children[0]  # the callee's own name is part of the call; what it is a member of is not
            below = callee.children if callee.kind in ("name", "member") else (callee,)
            children = (*below, *children[1:])
        elif kind == "launch":
            children = children[1:]
        for child in children:
            self.visit(child, scope, condition, inside)
