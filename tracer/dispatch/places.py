"""Places: what names, members, elements and dereferenced pointers denote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch import models
from tracer.dispatch.explanation import expression_text, kind_of
from tracer.dispatch.numbers import Number
from tracer.dispatch.run import Refused
from tracer.dispatch.scope import Scope
from tracer.dispatch.types import ClassType
from tracer.dispatch.values import (
    UNINITIALISED,
    Cell,
    Function,
    Optional,
    Pointer,
    Sequence,
    Struct,
    Symbol,
    Tuple,
    Unknown,
    Value,
)

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Places:
    """Finds the cell that an expression denotes."""

    def __init__(self, engine: Engine) -> None:
        """Share the engine's state."""
        self.engine = engine
        self._nonlocal: dict[Node, Value] = {}

    def place(self, node: Node, scope: Scope) -> Cell:
        """Return the cell that an expression denotes; a new one for a value that lies nowhere."""
        kind = node.kind
        if kind == "name":
            return self._named_place(node, scope)
        if kind == "member":
            return self._member_place(node, scope)
        if kind == "index":
            return self._index_place(node, scope)
        if kind == "unary" and node.text == "*":
            value = self.engine.evaluate(node.children[0], scope)
            if isinstance(value, Optional):
                if value.cell.value is None:
                    raise self.engine.unsupported(f"{expression_text(node)}: the optional is empty", node)
                return value.cell
            if isinstance(value, Pointer) and isinstance(value.target, Cell):
                return value.target
            raise self.engine.unsupported(f"operator * on {kind_of(value)}", node)
        if kind == "unary" and node.text in ("++", "--"):
            self.engine.expressions.unary(node, scope)
            return self.place(node.children[0], scope)
        if kind == "assign":
            self.engine.expressions.assign(node, scope)
            return self.place(node.children[0], scope)
        return Cell(self.engine.evaluate(node, scope))

    def _named_place(self, node: Node, scope: Scope) -> Cell:
        text = node.text
        if not node.children:
            cell = scope.find(text)
            if cell is not None:
                return cell
            if "::" in text:
                first, _, rest = text.partition("::")
                cell = scope.find(first)
                if cell is not None and isinstance(cell.value, ClassType):
                    value = self.engine.types.path(cell.value, rest, node)
                    return Cell(value)
        return Cell(self.not_local(node, scope))

    def not_local(self, node: Node, scope: Scope) -> Value:
        """Return what a name means that no scope declares: a function, a library constant, a type."""
        known = self._nonlocal.get(node)
        if known is not None:
            return known
        arguments = (
            tuple(self.engine.types.argument(child, scope) for child in node.children) if node.children else None
        )
        if node.targets:
            declared = self.engine.host.declaration(node.targets[0], self.engine.owner)
            value: Value
            if arguments is not None:
                computed = models.constant(declared.qualified_name, arguments)
                if computed is not None:
                    return computed
            if declared.kind in ("function", "function template", "method"):
                value = Function(declared.qualified_name, node.targets, arguments)
            elif declared.kind in ("variable", "enumerator"):
                constant = models.constant(declared.qualified_name, arguments)
                if constant is None and declared.kind == "enumerator":
                    constant = Symbol(declared.qualified_name)
                if constant is None:
                    raise self.engine.unsupported(f"variable {declared.qualified_name}", node)
                value = constant
            else:
                value = self.engine.types.of_node(node, scope)
            if arguments is None:
                self._nonlocal[node] = value
            return value
        constant = models.constant(node.text, arguments)
        if constant is not None:
            return constant
        if models.function(node.text) is not None:
            return Function(node.text, (), arguments)
        found = self.engine.host.functions_named(node.text.rpartition("::")[2])
        if found:
            prefix = len(self.engine.host.source.prefix)
            return Function(node.text, tuple(id[prefix:] for id in found), arguments)
        if node.kind == "name" and (node.children or "::" in node.text or self.engine.host.class_named(node.text)):
            return self.engine.types.of_node(node, scope)
        raise self.engine.unsupported(f"the name {node.text}", node)

    def _member_place(self, node: Node, scope: Scope) -> Cell:
        base = self.place(node.children[0], scope).value
        if base is UNINITIALISED:
            raise self.engine.unsupported(
                f"a read of {expression_text(node.children[0])}, which is uninitialised", node
            )
        if isinstance(base, Pointer) and isinstance(base.target, Cell):
            base = base.target.value
        if isinstance(base, Optional) and node.text2 == "->":
            base = base.cell.value
        if isinstance(base, Struct):
            cell = base.fields.get(node.text)
            if cell is None:
                raise self.engine.unsupported(f"field {node.text}", node)
            return cell
        if isinstance(base, Unknown):
            return Cell(base)
        if isinstance(base, Tuple | Sequence):
            raise self.engine.unsupported(f"field {node.text} of {kind_of(base)}", node)
        value = models.attribute(base, node.text)
        if value is None:
            raise self.engine.unsupported(f"field {node.text} of {kind_of(base)}", node)
        return value if isinstance(value, Cell) else Cell(value)

    def _index_place(self, node: Node, scope: Scope) -> Cell:
        base = self.engine.evaluate(node.children[0], scope)
        index = self.engine.evaluate(node.children[1], scope)
        if isinstance(base, Sequence | Tuple) and isinstance(index, Number):
            at = int(index.value)
            if not 0 <= at < len(base):
                raise self.engine.unsupported(f"{expression_text(node)}: index {at} of {len(base)} elements", node)
            return _Element(base, at)
        for value in (base, index):
            if isinstance(value, Unknown):
                return Cell(value)
        if isinstance(base, Pointer):
            if base.target is None:
                message = (
                    f"{expression_text(node)} reads or writes through a null pointer: the process is killed (SIGSEGV)"
                )
                raise Refused(message, self.engine.location(node))
            return Cell(Unknown("memory that host code only has a pointer to"))
        raise self.engine.unsupported(f"a subscript of {kind_of(base)}", node)


class _Element(Cell):
    """An element of a sequence as a place."""

    __slots__ = ("at", "sequence")

    def __init__(self, sequence: list[Value], at: int) -> None:
        self.sequence, self.at = sequence, at
        self.type = sequence[at].type if isinstance(sequence[at], Number) else ""

    @property
    def value(self) -> Value:
        return self.sequence[self.at]

    @value.setter
    def value(self, new: Value) -> None:
        self.sequence[self.at] = new
