"""What members a type has and which type the value of an expression can have."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from tracer.cpp.library import RETURNS_ARGUMENT
from tracer.cpp.scopes import Local
from tracer.cpp.tree import Node
from tracer.cpp.types import LAMBDA, LIBRARY, MAX_DEPTH, Instance, Types, Where, join, unknown
from tracer.cpp.written_types import WrittenTypes

if TYPE_CHECKING:
    from tracer.cpp.unit import Unit


class TypeReader(WrittenTypes):
    """Types of one unit, by their names, of members and of expressions.

    Attributes:
        result: tells what a call in some place returns.
        handed: tells what the callers of a lambda give it for a parameter.
    """

    def __init__(self, unit: Unit, functions_by_name: Mapping[str, list[str]]) -> None:
        """Index the unit's classes and aliases."""
        super().__init__(unit, functions_by_name)
        self.result: Callable[[Node, Where], Types] = lambda call, where: unknown("the result of a call")
        self.handed: Callable[[Local, Where], Types] = lambda parameter, where: unknown()

    # -- classes ------------------------------------------------------------------------------------------------------
    def methods(self, instance: Instance, name: str, deep: bool, depth: int = 0) -> list[list[str]]:
        """Return the member functions of a name: of the class and its specializations, else of each base that has any.

        What specializations inherit are alternatives of each other, so every list holds the overloads of one class.
        """
        family = (instance.usr, *self.specialized.get(instance.usr, ()))
        own = [usr for member in family for method, usr in self.unit.classes[member].methods if method == name]
        if own or depth > MAX_DEPTH:
            return [own]
        bases = [base for base in self.bases(instance, deep).instances if base.usr != instance.usr]
        return [overloads for base in bases for overloads in self.methods(base, name, deep, depth + 1)]

    def bases(self, instance: Instance, deep: bool) -> Types:
        """Return what the base classes of a class and of its specializations can be."""
        found = [
            self.of_type(base, self._of_instance(instance, deep)) for base in self.unit.classes[instance.usr].bases
        ]
        for usr in self.specialized.get(instance.usr, ()):
            found += [self.of_type(base, Where(None, usr, deep=deep)) for base in self.unit.classes[usr].bases]
        return join(found)

    def field(self, instance: Instance, name: str, deep: bool, depth: int = 0) -> Types:
        """Return what a data member can be."""
        where = self._of_instance(instance, deep)
        own = [self.of_type(type_, where) for field, type_ in self.unit.classes[instance.usr].fields if field == name]
        for usr in self.specialized.get(instance.usr, ()):
            fields = self.unit.classes[usr].fields
            own += [self.of_type(type_, Where(None, usr, deep=deep)) for field, type_ in fields if field == name]
        if not own and depth < MAX_DEPTH:
            bases = [base for base in self.bases(instance, deep).instances if base.usr != instance.usr]
            inherited = [self.field(base, name, deep, depth + 1) for base in bases]
            own = [types for types in inherited if types.decided] or inherited
        return join(own) if own else unknown()

    # -- expressions --------------------------------------------------------------------------------------------------
    def of_node(self, node: Node, where: Where, depth: int = 0) -> Types:
        """Return what an expression's value can be."""
        if depth > MAX_DEPTH:
            return unknown()
        kind = node.kind
        if kind == "name":
            return self._of_name(node, where, depth)
        if kind == "member":
            if not node.children:
                return unknown()
            if node.children[0].kind == "this" and "::" in node.text:
                return self._of_name(node, where, depth)
            base = self.of_node(node.children[0], where, depth + 1)
            return self._field(base, node.text, where)
        if kind == "this":
            return Types((self._own(where),)) if where.class_usr in self.unit.classes else unknown()
        if kind == "construct" or (kind in ("cast", "list") and node.type is not None):
            return self.of_type(node.type, where)
        if kind == "call" and node.children:
            return self._of_call(node, where, depth)
        if kind in ("unary", "index", "assign") and node.children:
            return self.of_node(node.children[0], where, depth + 1)
        if kind in ("binary", "conditional"):
            alternatives = [self.of_node(child, where, depth + 1) for child in node.children[kind == "conditional" :]]
            return next((types for types in alternatives if types.decided), unknown())
        if kind == "lambda":
            return LAMBDA
        return LIBRARY if kind == "literal" else unknown()

    def _own(self, where: Where) -> Instance:
        instance = where.instance
        return instance if instance is not None and instance.usr == where.class_usr else Instance(where.class_usr)

    def _field(self, base: Types, name: str, where: Where) -> Types:
        if not base.instances:
            return base
        found = [self.field(instance, name, where.deep) for instance in base.instances]
        rest = Types((), base.library, False, base.unknown)
        return join([*found, rest])

    def _of_name(self, node: Node, where: Where, depth: int) -> Types:
        local = where.scope.get(node.text)
        if local is not None:
            declared = self.of_type(local.type, where)
            if declared.decided:
                return declared
            if local.taken_by is not None:
                return self.handed(local, where) if where.deep else declared
            if local.node is None:
                return declared
            inferred = self.of_node(local.node, where, depth + 1)
            return inferred if inferred.decided else declared
        if node.targets:
            declarations = [self.unit.declarations.get(usr) for usr in node.targets]
            return unknown() if any(d is not None and d.inside for d in declarations) else LIBRARY
        if "::" in node.text:
            qualifier, _, name = node.text.rpartition("::")
            return self._field(self.of_spelling(qualifier, where, depth + 1), name, where)
        if where.class_usr in self.unit.classes:
            return self.field(self._own(where), node.text, where.deep)
        return unknown()

    def _of_call(self, node: Node, where: Where, depth: int) -> Types:
        callee = node.children[0]
        if callee.kind == "name":
            inside = [usr for usr in callee.targets if self.unit.is_inside(usr)]
            if callee.targets and not inside:
                declaration = self.unit.declarations.get(callee.targets[0])
                returned = RETURNS_ARGUMENT.get(declaration.qualified_name, ()) if declaration is not None else ()
                arguments = [node.children[at + 1] for at in returned if at + 1 < len(node.children)]
                types = join([self.of_node(argument, where, depth + 1) for argument in arguments])
                return types if types.decided else LIBRARY
            if not inside and callee.text in where.scope:
                called = self.of_node(callee, where, depth + 1)
                return self.result(node, where) if called.local and where.deep else called
            if where.deep:
                return self.result(node, where)
            return unknown(f"the result of {callee.text}") if inside else unknown()
        if callee.kind == "member":
            base = self.of_node(callee.children[0], where, depth + 1) if callee.children else unknown()
            if base.library and not base.instances:
                return base
            return self.result(node, where) if where.deep else unknown(f"the result of {callee.text}")
        if callee.kind == "lambda":
            return self.result(node, where) if where.deep else unknown()
        return self.of_node(callee, where, depth + 1)
