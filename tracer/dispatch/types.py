"""Types of the host code: names evaluated to types, and classes of the checkout instantiated with their constants.

A kernel's traits class is where tiles, warps and shared memory are computed. Its members are evaluated one by one, when
something asks for them, from the initialisers in the source.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracer.cpp.tree import Node, TypeRef
from tracer.dispatch.answers import Unsupported
from tracer.dispatch.host_code import ClassCode, HostCode, bare
from tracer.dispatch.numbers import Number, arithmetic_type, convert
from tracer.dispatch.scope import Scope
from tracer.dispatch.values import Cell, NamedType, PointerType, Value, ValueType, written

if TYPE_CHECKING:
    from tracer.dispatch.engine import Engine


class ClassType:
    """A class of the checkout with its template arguments.

    Attributes:
        usr: of the class or class template.
        name: qualified name.
        arguments: all template arguments, defaults filled in; empty for what is no template.
    """

    def __init__(self, reader: TypeReader, usr: str, code: ClassCode, arguments: tuple[Value, ...]) -> None:
        """Keep the arguments; members are evaluated when they are asked for."""
        self._reader, self._code = reader, code
        self.usr, self.arguments = usr, arguments
        self.name = code.class_.declaration.qualified_name
        parameters = {p.text: Cell(a) for p, a in zip(code.template_parameters, arguments, strict=True)}
        self._parameters = Scope(names=parameters)
        self._scope = Scope(self._parameters, class_=self)
        self._members: dict[str, Cell | None] = {}
        self._evaluating: set[str] = set()

    def __str__(self) -> str:
        """Return it as a demangler writes it."""
        return f"{self.name}<{written(self.arguments)}>" if self.arguments else self.name

    def __eq__(self, other: object) -> bool:
        """Two instantiations with the same arguments are one type."""
        return isinstance(other, ClassType) and self.usr == other.usr and self.arguments == other.arguments

    def __hash__(self) -> int:
        """Return a hash that goes with equality."""
        return hash((self.usr, self.arguments))

    @property
    def is_template(self) -> bool:
        """Tell whether the class has template parameters."""
        return bool(self._code.template_parameters)

    def member(self, name: str) -> Cell | None:
        """Return a static constant or a member type, own or inherited; None where there is none of that name."""
        if name in self._members:
            return self._members[name]
        if name in self._evaluating:
            raise Unsupported(f"{self.name}::{name}, which is made from itself")
        self._evaluating.add(name)
        try:
            cell = self._members[name] = self._evaluated(name)
        finally:
            self._evaluating.discard(name)
        return cell

    def _evaluated(self, name: str) -> Cell | None:
        class_ = self._code.class_
        for error in self._code.errors:
            raise Unsupported(f"source that the parser does not understand ({error.message})", error.location)
        for (constant, initialiser), type_ in zip(class_.constants, class_.constant_types, strict=True):
            if constant == name:
                with self._reader.engine.inside(self._code.owner):
                    value = self._reader.engine.evaluate(initialiser, self._scope)
                    return Cell(self._reader.engine.coerced(value, type_, self._scope))
        for alias, type_ in class_.aliases:
            if alias == name:
                with self._reader.engine.inside(self._code.owner):
                    return Cell(self._reader.of(type_, self._scope))
        for base in self.bases():
            cell = base.member(name)
            if cell is not None:
                return cell
        return None

    def bases(self) -> list[ClassType]:
        """Return the base classes that are classes of the checkout."""
        found = [self._reader.of(base, self._parameters) for base in self._code.class_.bases]
        return [base for base in found if isinstance(base, ClassType)]

    def numbers(self) -> list[tuple[str, int]]:
        """Return the integer constants of the class itself, in source order; what cannot be evaluated is left out.

        Leaving out is safe here: these are shown to a reader, and whatever decides a launch is evaluated on its own.
        """
        found = []
        for name, _ in self._code.class_.constants:
            try:
                cell = self.member(name)
            except Unsupported:
                continue
            if cell is not None and isinstance(cell.value, Number) and isinstance(cell.value.value, int):
                found.append((name, cell.value.value))
        return found

    def fields(self) -> list[tuple[str, TypeRef]]:
        """Return name and type of the data members, inherited ones first."""
        inherited = [field for base in self.bases() for field in base.fields()]
        return inherited + list(self._code.class_.fields)


class TypeReader:
    """Evaluates type expressions."""

    def __init__(self, engine: Engine, host: HostCode) -> None:
        """Share the engine's scopes and the front end."""
        self.engine, self.host = engine, host
        self._classes: dict[tuple[str, tuple[Value, ...]], ClassType] = {}
        self._library_names: dict[str, str] = {}

    def of(self, type_: TypeRef, scope: Scope) -> Value:
        """Return the type that a declaration writes.

        Raises:
            Unsupported: the type is written in a way that no rule reads.
        """
        if type_.form in ("pointer", "array"):
            mark = "*" if type_.form == "pointer" else "[]"
            return PointerType(NamedType(bare(type_.canonical)), mark)
        spelling = bare(type_.spelling)
        number = arithmetic_type(type_.canonical) or arithmetic_type(spelling)
        if number:
            return NamedType(number)
        if type_.class_usr and "<" not in spelling and scope.find(spelling) is None:
            if self.host.class_(type_.class_usr):
                return self.class_type(type_.class_usr, ())
            return NamedType(bare(type_.canonical))
        if "<" not in spelling and "type-parameter" not in type_.canonical:
            if scope.find(spelling.partition("::")[0]) is None:
                spelling = bare(type_.canonical)  # an alias of a library: what it stands for
        return self.of_node(self.host.parse(spelling), scope)

    def of_node(self, node: Node, scope: Scope) -> Value:
        """Return the type that an expression of the tree names."""
        if node.kind == "type":
            if node.children:
                return PointerType(self.of_node(node.children[0], scope), node.text[-1])
            return NamedType(arithmetic_type(node.text) or node.text)
        if node.kind == "raw" and node.text == "decltype":
            return ValueType(self.engine.evaluate(node.children[0], scope))
        if node.kind == "name":
            return self._named(node, scope)
        raise Unsupported(f"a type written as {node.text or node.kind}")

    def _named(self, node: Node, scope: Scope) -> Value:
        first, _, rest = node.text.partition("::")
        cell = scope.find(first)
        if cell is not None and not (node.children and not rest):
            return self.path(cell.value, rest, node)
        if ">::" in node.text:
            outer, _, member = node.text.rpartition(">::")
            return self.path(self.of_node(self.host.parse(f"{outer}>"), scope), member, node)
        number = arithmetic_type(node.text)
        if number:
            return NamedType(number)
        arguments = tuple([self.argument(child, scope) for child in node.children])
        usr = next((usr for usr in node.targets if self.host.class_(usr)), "") or self.host.class_named(node.text)
        if usr:
            return self.class_type(usr, arguments)
        alias = self.host.alias(node.text)
        if alias is not None and not arguments:
            return self.of(alias, Scope())
        simple = node.text.rpartition("::")[2]
        if simple == "conditional_t" and len(arguments) == 3:
            return arguments[1] if self.engine.truth(arguments[0]) else arguments[2]
        name = self._qualified(node)
        return NamedType(name, arguments if node.children else None)

    def path(self, value: Value, rest: str, node: Node) -> Value:
        """Follow ``::member`` from a class; ``node`` is where it is written."""
        for part in filter(None, rest.split("::")):
            if not isinstance(value, ClassType):
                raise Unsupported(f"{node.text}: {value} is no class of the checkout")
            cell = value.member(part)
            if cell is None:
                raise Unsupported(f"{node.text}: {value} has no member {part}")
            value = cell.value
        return value

    def _qualified(self, node: Node) -> str:
        """Return the whole name of a library type, however much of it is written."""
        for usr in node.targets:
            name = self.host.declaration(usr, self.engine.owner).qualified_name
            self._library_names[name.rpartition("::")[2]] = name
            return name
        return self._library_names.get(node.text, node.text)

    def argument(self, node: Node, scope: Scope) -> Value:
        """Return what a template argument is: a type or a value."""
        if node.kind == "name":
            first, separator, _ = node.text.partition("::")
            cell = scope.find(first)
            if cell is not None and not separator and not node.children:
                return cell.value
            if node.targets and self.host.declaration(node.targets[0], self.engine.owner).kind in (
                "function", "function template", "variable", "enumerator",
            ):  # fmt: skip
                return self.engine.evaluate(node, scope)
            return self.of_node(node, scope)
        if node.kind == "type" or (node.kind == "raw" and node.text == "decltype"):
            return self.of_node(node, scope)
        return self.engine.evaluate(node, scope)

    def class_type(self, usr: str, arguments: tuple[Value, ...]) -> ClassType:
        """Instantiate a class of the checkout.

        Raises:
            Unsupported: an argument is missing that has no default.
        """
        key = (usr, arguments)
        known = self._classes.get(key)
        if known is None:
            code = self.host.class_(usr)
            assert code is not None
            with self.engine.inside(code.owner):
                full = self.bound(code.template_parameters, arguments, code.class_.declaration.qualified_name)
            known = self._classes[key] = ClassType(self, usr, code, tuple(full))
        return known

    def bound(self, parameters: tuple[Node, ...], arguments: tuple[Value, ...], name: str) -> list[Value]:
        """Return one argument per template parameter: converted to its type, or its default.

        Raises:
            Unsupported: too many arguments, or one is missing that has no default.
        """
        if len(arguments) > len(parameters):
            raise Unsupported(f"{len(arguments)} template arguments for the {len(parameters)} parameters of {name}")
        scope = Scope()
        full: list[Value] = []
        for number, parameter in enumerate(parameters):
            if number < len(arguments):
                value = arguments[number]
            elif parameter.children:
                value = self.argument(parameter.children[0], scope)
            else:
                raise Unsupported(f"deduction of template argument {parameter.text} of {name}")
            type_ = arithmetic_type(parameter.type.canonical) if parameter.type else ""
            if type_ and isinstance(value, Number):
                value = convert(value, type_)
            full.append(value)
            scope.names[parameter.text] = Cell(value)
        return full
