"""Lexical environments: where a name of the source finds its value.

Names are looked up where they stand, not where a parser resolved them: so one body serves every instantiation of a
template, and the one lambda that nested dispatch switches repeat finds the constant of the branch it is called from.
"""

from __future__ import annotations

from typing import Protocol

from tracer.dispatch.values import Cell


class Members(Protocol):
    """What a class offers to the names in its body."""

    def member(self, name: str) -> Cell | None:
        """Return a static member or member type; None where it has none of that name."""


class Scope:
    """One block, parameter list or class body."""

    __slots__ = ("class_", "names", "parent")

    def __init__(
        self, parent: Scope | None = None, names: dict[str, Cell] | None = None, class_: Members | None = None
    ) -> None:
        """Open a scope inside ``parent``."""
        self.parent, self.class_ = parent, class_
        self.names: dict[str, Cell] = {} if names is None else names

    def find(self, name: str) -> Cell | None:
        """Return the cell of the innermost declaration of a name; None where there is none."""
        scope: Scope | None = self
        while scope is not None:
            cell = scope.names.get(name)
            if cell is not None:
                return cell
            if scope.class_ is not None:
                cell = scope.class_.member(name)
                if cell is not None:
                    return cell
            scope = scope.parent
        return None
