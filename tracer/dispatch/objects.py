"""Objects of the host code: how they are made, converted and measured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node, TypeRef
from tracer.dispatch import models, numbers
from tracer.dispatch.host_code import bare
from tracer.dispatch.numbers import Number, arithmetic_type
from tracer.dispatch.scope import Scope
from tracer.dispatch.types import ClassType
from tracer.dispatch.values import (
    NULL,
    UNINITIALISED,
    Cell,
    Closure,
    Function,
    NamedType,
    Optional,
    Pointer,
    PointerType,
    Sequence,
    Struct,
    Unknown,
    Value,
    ValueType,
    copied,
    object_size,
)

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class Objects:
    """Makes and converts objects on behalf of the engine."""

    def __init__(self, engine: Engine) -> None:
        """Share the engine's state."""
        self.engine = engine
        self._fields: dict[ClassType, list[tuple[str, str]]] = {}

    def sizeof(self, node: Node, scope: Scope) -> Value:
        """Evaluate ``sizeof``."""
        if node.children:
            child = node.children[0]
            type_ = self.engine.types.argument(child, scope)
            if isinstance(type_, Struct):
                return object_size(type_)
        elif node.type is not None:
            type_ = self.engine.types.of(node.type, scope)
        else:
            raise self.engine.unsupported(f"{node.text}", node)
        return numbers.integer(self._size_of(type_, node), "unsigned long")

    def _size_of(self, type_: Value, node: Node) -> int:
        if isinstance(type_, Number):
            return numbers.size_of(type_.type)
        if isinstance(type_, PointerType):
            return 8
        if isinstance(type_, NamedType):
            if arithmetic_type(type_.name):
                return numbers.size_of(arithmetic_type(type_.name))
            size = models.SIZES.get(type_.name.rpartition("::")[2])
            if size is not None:
                return size
        raise self.engine.unsupported(f"sizeof {type_}", node)

    def construct(self, node: Node, scope: Scope) -> Value:
        """Evaluate a ``construct`` node."""
        assert node.type is not None
        arguments = node.children
        if len(arguments) == 1 and arguments[0].kind == "list":
            listed = arguments[0].children
            if not listed:
                arguments = ()
        return self.constructed(node.type, tuple(self.engine.evaluate(a, scope) for a in arguments), node, scope)

    def initialised(self, type_: TypeRef, source: Node, scope: Scope) -> Value:
        """Return what a variable of a type holds after ``= source``.

        Raises:
            Unsupported: a list of more values than the class has fields.
        """
        if source.kind == "list" and type_.form == "value" and type_.class_usr:
            class_ = self.engine.types.of(type_, scope)
            if isinstance(class_, ClassType):
                return self._aggregate(class_, source, scope)
        return self.coerced(copied(self.engine.evaluate(source, scope)), type_, scope)

    def _aggregate(self, class_: ClassType, source: Node, scope: Scope) -> Struct:
        made = self.zeroed(class_)
        fields = class_.fields()
        if len(source.children) > len(fields):
            raise self.engine.unsupported(
                f"{len(source.children)} values for the {len(fields)} fields of {class_}", source
            )
        for (name, type_), part in zip(fields, source.children, strict=False):
            made.fields[name].value = self.coerced(copied(self.engine.evaluate(part, scope)), type_, scope)
        return made

    def constructed(self, type_: TypeRef, arguments: tuple[Value, ...], node: Node, scope: Scope) -> Value:
        """Return a new object of a type.

        Raises:
            Unsupported: no constructor of that class with such arguments is known.
        """
        evaluated = self.engine.types.of(type_, scope)
        if isinstance(evaluated, ValueType) and not arguments:
            return evaluated.value
        if isinstance(evaluated, ClassType):
            if not arguments:
                return self._plain(evaluated)
            if len(arguments) == 1 and isinstance(arguments[0], Struct):
                return copied(arguments[0])
            raise self.engine.unsupported(f"a constructor of {evaluated} with arguments", node)
        if isinstance(evaluated, NamedType):
            if arithmetic_type(evaluated.name):
                value = arguments[0] if arguments else numbers.integer(0)
                if isinstance(value, Number):
                    return numbers.convert(value, arithmetic_type(evaluated.name))
                if isinstance(value, Unknown):
                    return value
            constructor = models.constructor(evaluated.name)
            if constructor is not None:
                return constructor(self.engine, arguments, models.Site(node, evaluated.arguments or ()))
        raise self.engine.unsupported(f"an object of {type_.spelling}", node)

    def _plain(self, class_: ClassType) -> Struct:
        """Return an object whose fields nobody has set."""
        known = self._fields.get(class_)
        if known is None:
            known = self._fields[class_] = [
                (name, arithmetic_type(type_.canonical) if type_.form == "value" else "")
                for name, type_ in class_.fields()
            ]
        return Struct(class_.usr, {name: Cell(UNINITIALISED, number) for name, number in known})

    def zeroed(self, class_: ClassType) -> Struct:
        """Return an object whose fields are zero, as ``{}`` and ``memset`` make it."""
        made = self._plain(class_)
        for name, type_ in class_.fields():
            cell = made.fields[name]
            if type_.form == "pointer":
                cell.value = NULL
            elif cell.type:
                cell.value = numbers.convert(numbers.integer(0), cell.type)
            else:
                cell.value = Unknown(f"field {name}, whose type {type_.spelling} is not modelled")
        return made

    def coerced(self, value: Value, type_: TypeRef, scope: Scope) -> Value:
        """Return what initialising an object of a type with a value yields: numbers are converted, optionals filled."""
        if type_.form != "value":
            return value
        if type(value) is Number:
            name = arithmetic_type(type_.canonical)
            if not name and "auto" not in type_.spelling:
                found = scope.find(bare(type_.spelling))
                if found is not None and isinstance(found.value, NamedType):
                    name = arithmetic_type(found.value.name)
            if name:
                return numbers.convert(value, name)
        if isinstance(value, Unknown | Closure | Function | Struct | Pointer):
            if arithmetic_type(type_.canonical) == "bool" and isinstance(value, Pointer):
                return numbers.boolean(value.target is not None)
            return value
        if isinstance(value, Optional) and arithmetic_type(type_.canonical) == "bool":
            return numbers.boolean(self.engine.truth(value))
        if isinstance(value, Sequence) and len(value) == 1 and arithmetic_type(type_.canonical):
            return self.coerced(value[0], type_, scope)
        return models.coerced(value, bare(type_.canonical))
