"""What is bound to which name while a function is followed: variables, objects, closures, template arguments."""

from __future__ import annotations

from typing import Any

from tracer.cpp.tree import Class, Node
from tracer.dataflow.ir import Formula, Ref
from tracer.dataflow.state import State


class Object:
    """An object of a class of the checkout: its data members are storages of their own.

    Attributes:
        cls: the class.
        name: of the variable; for an argument of the kernel the prefix of its members' names.
        template: the class's template arguments.
        fields: the data members that were made so far.
        is_argument: the host passes it, so that its members are inputs.
    """

    __slots__ = ("cls", "fields", "is_argument", "name", "template")

    def __init__(self, cls: Class, name: str, template: dict[str, Any], is_argument: bool = False) -> None:
        """Make an object without members."""
        self.cls, self.name, self.template, self.is_argument = cls, name, template, is_argument
        self.fields: dict[str, Any] = {}


class Closure:
    """A lambda and the names that it sees."""

    __slots__ = ("frame", "node", "scopes")

    def __init__(self, node: Node, frame: Frame) -> None:
        """Capture the names of ``frame``."""
        self.node, self.frame, self.scopes = node, frame, list(frame.scopes)


class Type:
    """A type that a template argument or an alias names, as text."""

    __slots__ = ("spelling",)

    def __init__(self, spelling: str) -> None:
        """Keep the text."""
        self.spelling = spelling


#: What an expression can be.
Thing = Any  # Value | Ref | Object | Closure | Type | None


class Frame:
    """One call of a function.

    Attributes:
        id: the function's id, to which the sites of its nodes belong.
        scopes: the blocks that are open, innermost last.
        template: its template arguments and those of its class.
        this: the object whose member it is.
        entry: length of the path when it was entered.
        leaves: for each ``return``: the formula under which it is reached, what is returned, the state left behind.
        is_root: it is the function whose flow is asked for.
    """

    __slots__ = ("entry", "id", "is_root", "leaves", "scopes", "template", "this")

    def __init__(self, id: str, template: dict[str, Any], this: Object | None = None, entry: int = 0) -> None:
        """Open a frame with one empty scope."""
        self.id, self.template, self.this, self.entry = id, template, this, entry
        self.scopes: list[dict[str, Thing]] = [{}]
        self.leaves: list[tuple[Formula, Thing, State]] = []
        self.is_root = False

    def find(self, name: str) -> Thing:
        """Return what a local name is bound to, or None."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def bind(self, name: str, thing: Thing) -> None:
        """Bind a name in the innermost scope."""
        self.scopes[-1][name] = thing

    def rebind(self, name: str, thing: Thing) -> None:
        """Bind a name in the scope that has it."""
        for scope in reversed(self.scopes):
            if name in scope:
                scope[name] = thing
                return
        self.scopes[-1][name] = thing


__all__ = ["Closure", "Frame", "Object", "Ref", "Thing", "Type"]
