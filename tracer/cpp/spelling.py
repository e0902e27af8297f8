"""How a call is written: its callee and template arguments as source text, for people to find them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node

if TYPE_CHECKING:
    from tracer.cpp.unit import Unit


def text(unit: Unit, node: Node, limit: int = 120) -> str:
    """Return a node's source text in one line, cut where it is longer than ``limit``."""
    text = " ".join(unit.slice(node.file, node.start, node.end).replace("\\\n", " ").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def arguments(unit: Unit, node: Node) -> tuple[str, ...]:
    """Return the template arguments behind a name."""
    return tuple([text(unit, child) or child.text for child in node.children])


def arguments_of_member(unit: Unit, callee: Node) -> tuple[str, ...]:
    """Return the template arguments behind a member's name."""
    return tuple([text(unit, child) or child.text for child in callee.children[1:]])


def written(unit: Unit, node: Node) -> str:
    """Return a callee as written, without template arguments."""
    if node.kind == "name":
        return node.text
    if node.kind == "member":
        base = node.children[0] if node.children else None
        if base is None or base.kind == "this":
            return node.text
        return f"{written(unit, base)}{node.text2}{node.text}"
    if node.kind == "call" and node.children:
        return f"{written(unit, node.children[0])}(…)"
    return text(unit, node, 40)


def member_position(unit: Unit, callee: Node) -> int:
    """Return where a member's name stands, behind the object."""
    base = callee.children[0] if callee.children else None
    start = base.end if base is not None and base.file == callee.file and base.end >= callee.start else callee.start
    at = unit.slice(callee.file, start, callee.end).find(callee.text)
    return start + at if at >= 0 else callee.start
