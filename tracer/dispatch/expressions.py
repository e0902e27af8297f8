"""Expressions of the host code, but for names and members (places) and calls (functions)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tracer.cpp.tree import Node
from tracer.dispatch import models, numbers
from tracer.dispatch.explanation import expression_text, kind_of
from tracer.dispatch.literals import literal_value
from tracer.dispatch.numbers import FALSE, TRUE, Number, arithmetic_type
from tracer.dispatch.run import SPLITS, Refused
from tracer.dispatch.scope import Scope
from tracer.dispatch.static_types import static_type
from tracer.dispatch.values import (
    UNINITIALISED,
    Cell,
    Closure,
    Function,
    Inside,
    NamedType,
    Pointer,
    Sequence,
    Struct,
    Symbol,
    Tuple,
    Unknown,
    Value,
    copied,
)

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Expressions:
    """Evaluates one kind of expression each.

    Attributes:
        table: by kind of node.
    """

    def __init__(self, engine: Engine) -> None:
        """Share the engine's state."""
        self.engine = engine
        self._literals: dict[Node, Value] = {}
        self.table: dict[str, Callable[[Node, Scope], Value]] = {
            "name": self._read,
            "member": self._read,
            "index": self._read,
            "literal": self._literal,
            "unary": self.unary,
            "binary": self._binary,
            "assign": self.assign,
            "conditional": self._conditional,
            "cast": self._cast,
            "list": self._list,
            "lambda": self._lambda,
            "new": self._new,
        }

    def _read(self, node: Node, scope: Scope) -> Value:
        value = self.engine.place(node, scope).value
        if value is UNINITIALISED:
            raise self.engine.unsupported(f"a read of {expression_text(node)}, which is uninitialised", node)
        return value

    def _literal(self, node: Node, scope: Scope) -> Value:
        known = self._literals.get(node)
        if known is None:
            known = self._literals[node] = literal_value(node)
        return known

    def unary(self, node: Node, scope: Scope) -> Value:
        """Evaluate an operator of one operand."""
        operator, operand = node.text, node.children[0]
        if operator in ("++", "--", "p++", "p--"):
            cell = self.engine.place(operand, scope)
            before = self._of_cell(cell, operand)
            changed = self._arithmetic(operator[-1], before, numbers.integer(1), node)
            cell.value = numbers.convert(changed, cell.type or before.type) if isinstance(changed, Number) else changed
            return before if operator.startswith("p") else cell.value
        if operator == "&":
            if operand.kind == "name" and scope.find(operand.text) is None:
                value = self.engine.evaluate(operand, scope)
                if isinstance(value, Function):
                    return value
            return Pointer(self.engine.place(operand, scope))
        if operator == "*":
            return self._read(node, scope)
        value = self.engine.evaluate(operand, scope)
        if isinstance(value, Unknown):
            return value
        if operator == "!":
            return FALSE if self.engine.truth(value) else TRUE
        if isinstance(value, Number):
            if operator == "-":
                return numbers.negative(value)
            if operator == "+":
                return numbers.convert(value, numbers.common_type(value.type, "int"))
            if operator == "~":
                return numbers.inverted(value)
        raise self.engine.unsupported(f"operator {operator} on {kind_of(value)}", node)

    def _of_cell(self, cell: Cell, node: Node) -> Value:
        if cell.value is UNINITIALISED:
            raise self.engine.unsupported(f"a read of {expression_text(node)}, which is uninitialised", node)
        return cell.value

    def _binary(self, node: Node, scope: Scope) -> Value:
        operator = node.text
        left, right = node.children
        if operator == "&&" or operator == "||":
            first = self.engine.evaluate(left, scope)
            if isinstance(first, Unknown):
                second = self.engine.evaluate(right, scope)
                if not isinstance(second, Unknown) and self.engine.truth(second) == (operator == "||"):
                    return numbers.boolean(operator == "||")
                return first
            if self.engine.truth(first) == (operator == "||"):
                return numbers.boolean(operator == "||")
            second = self.engine.evaluate(right, scope)
            return second if isinstance(second, Unknown) else numbers.boolean(self.engine.truth(second))
        if operator == ",":
            self.engine.evaluate(left, scope)
            return self.engine.evaluate(right, scope)
        return self._arithmetic(operator, self.engine.evaluate(left, scope), self.engine.evaluate(right, scope), node)

    def _arithmetic(self, operator: str, a: Value, b: Value, node: Node) -> Value:
        if type(a) is Number and type(b) is Number:
            try:
                return numbers.binary(operator, a, b)
            except numbers.DivisionByZero:
                message = f"integer division by zero in {expression_text(node)}: the process is killed (SIGFPE)"
                raise Refused(message, self.engine.location(node)) from None
            except numbers.Undefined as error:
                return Unknown(f"{error} at {self.engine.location(node)}")
        for operand in (a, b):
            if isinstance(operand, Unknown):
                return operand
        if operator in ("+", "-") and isinstance(a, Pointer) and isinstance(b, Number) and a.target is not None:
            return Pointer(
                (a.target, "at an offset")
            )  # somewhere in the same memory; all that is asked is whether null
        if operator in ("==", "!="):
            return numbers.boolean(self._same(a, b, node) == (operator == "=="))
        raise self.engine.unsupported(f"operator {operator} on {kind_of(a)} and {kind_of(b)}", node)

    def _same(self, a: Value, b: Value, node: Node) -> bool:
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            if isinstance(a.target, Inside) and isinstance(b.target, Inside):
                raise self.engine.unsupported("a comparison of pointers into memory", node)
            return a.target is b.target
        if isinstance(a, Sequence) and isinstance(b, Sequence):
            return len(a) == len(b) and all(
                self.engine.truth(self._arithmetic("==", x, y, node)) for x, y in zip(a, b, strict=True)
            )
        if isinstance(a, Symbol) and isinstance(b, Symbol):
            return a == b
        if isinstance(a, str) and isinstance(b, str):
            return a == b
        equal = models.equal(a, b)
        if equal is None:
            raise self.engine.unsupported(f"comparison of {kind_of(a)} with {kind_of(b)}", node)
        return equal

    def assign(self, node: Node, scope: Scope) -> Value:
        """Assign, and return what was assigned."""
        target, source = node.children
        if node.text == "=":
            if source.kind == "list" and not source.children:
                value = self._empty_like(target, source, scope)
            else:
                value = copied(self.engine.evaluate(source, scope))
        else:
            cell = self.engine.place(target, scope)
            before = self._of_cell(cell, target)
            value = self._arithmetic(node.text[:-1], before, self.engine.evaluate(source, scope), node)
        if self.engine.run.explain and target.text == SPLITS and target.kind == "member" and source.kind == "call":
            self.engine.run.record_value(self.engine, source, scope, str(value), node)
        cell = self.engine.place(target, scope)
        if isinstance(cell.value, Tuple) and isinstance(value, Tuple) and all(isinstance(c, Cell) for c in cell.value):
            if len(cell.value) != len(value):
                raise self.engine.unsupported("std::tie of another number of values", node)
            for part, new in zip(cell.value, value, strict=True):
                part.value = new
            return cell.value
        cell.value = numbers.convert(value, cell.type) if cell.type and type(value) is Number else value
        return cell.value

    def _empty_like(self, target: Node, source: Node, scope: Scope) -> Value:
        """Return what ``target = {}`` assigns: a value-initialised object."""
        old = self.engine.place(target, scope).value
        if isinstance(old, Struct):
            return self.engine.objects.zeroed(self.engine.types.class_type(old.class_usr, ()))
        if source.type is not None and source.type.class_usr:
            return self.engine.constructed(source.type, (), source, scope)
        raise self.engine.unsupported(f"an empty list assigned to {expression_text(target)}", source)

    def _conditional(self, node: Node, scope: Scope) -> Value:
        condition, then, otherwise = node.children
        chosen, other = (then, otherwise) if self.engine.decide(condition, scope, node) else (otherwise, then)
        value = self.engine.evaluate(chosen, scope)
        if type(value) is Number and other.kind != "throw":
            type_ = static_type(self.engine, other, scope)
            if type_ and type_ != value.type:
                return numbers.convert(value, numbers.common_type(value.type, type_))
        return value

    def _cast(self, node: Node, scope: Scope) -> Value:
        assert node.type is not None
        value = self.engine.evaluate(node.children[0], scope)
        if node.type.form == "pointer" or node.type.canonical.endswith("*"):
            if isinstance(value, Pointer | Unknown):
                return value
            if node.children[0].kind == "member" and not isinstance(value, Number):
                return Pointer(self.engine.place(node.children[0], scope))  # an array decays to a pointer
            raise self.engine.unsupported(f"a cast of {kind_of(value)} to {node.type.spelling}", node)
        if node.type.canonical == "void":
            return None
        type_ = self.engine.types.of(node.type, scope)
        if isinstance(type_, NamedType) and arithmetic_type(type_.name):
            if isinstance(value, Number):
                return numbers.convert(value, type_.name)
            if isinstance(value, Unknown):
                return value
            if type_.name == "bool":
                return numbers.boolean(self.engine.truth(value))
        elif node.text in ("functional", "static", "c"):
            return self.engine.constructed(node.type, (value,), node, scope)
        raise self.engine.unsupported(f"a cast of {kind_of(value)} to {node.type.spelling}", node)

    def _list(self, node: Node, scope: Scope) -> Value:
        return Sequence(copied(self.engine.evaluate(child, scope)) for child in node.children)

    def _lambda(self, node: Node, scope: Scope) -> Value:
        return Closure(node, scope, self.engine.owner)

    def _new(self, node: Node, scope: Scope) -> Value:
        """Evaluate a placement ``new``: it makes an object in memory that is there already."""
        if len(node.children) == 2:
            cell = self.engine.place(node.children[0], scope)
            if isinstance(cell.value, Pointer) and isinstance(cell.value.target, Cell):
                cell = cell.value.target
            elif cell.value is not UNINITIALISED and not isinstance(cell.value, Unknown):
                raise self.engine.unsupported(f"new in {expression_text(node.children[0])}", node)
            cell.value = self.engine.evaluate(node.children[1], scope)
            return Pointer(cell)
        raise self.engine.unsupported("new of an object on the heap", node)
