"""The part of the C++ front end that follows calls: into the checkout's functions, or by the table of library names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracer.cpp.tree import Class, Node, TypeRef
from tracer.dataflow.frames import Closure, Frame, Object, Thing, Type
from tracer.dataflow.ir import Formula, Ref, Site, Value, conjunction
from tracer.dataflow.library import CONVERTERS, meaning
from tracer.dataflow.lookup import Callee
from tracer.dataflow.names import constant_of
from tracer.dataflow.ordering import Ordering

MAX_DEPTH = 24


class Calls(Ordering):
    """Calls of the function that is followed."""

    def statement(self, node: Node) -> bool:
        """Follow a statement; tell whether it leaves the function or the loop."""
        raise NotImplementedError

    # -- finding the callee -------------------------------------------------------------------------------------------
    def call(self, node: Node) -> Thing:
        """Follow a call."""
        for number, child in enumerate(node.children[:2]):
            if child.kind == "name" and child.text.startswith("operator") and child.text != "operator":
                return self.operator_call(node, child.text[len("operator") :].strip(), number)
        callee, arguments = node.children[0], node.children[1:]
        site = self.site(node)
        if callee.kind == "name":
            local = self.frame.find(callee.text)
            if local is None and self.frame.this is not None and "::" not in callee.text:
                local = self.field_called(self.frame.this, callee.text)
            if local is not None:
                return self.call_thing(local, arguments, site)
            name = callee.text.rpartition("::")[2]
            found = self.candidates(callee)
            fitting = [c for c in found if c[0].takes(len(arguments)) and c[0].usr not in self.active]
            if fitting and len(self.active) < MAX_DEPTH:
                function, owner, template = fitting[0]
                return self.inline(function, arguments, callee.children, owner, template, site)
            return self.library(name, callee, arguments, None, site)
        if callee.kind == "member":
            return self.call_member(callee, arguments, site)
        if callee.kind in ("call", "index", "lambda", "unary", "cast", "construct", "conditional"):
            return self.call_thing(self.thing(callee), arguments, site)
        for argument in arguments:
            self.thing(argument)
        return self.value("opaque", (), site, callee.text[:40])

    def operator_call(self, node: Node, operator: str, number: int) -> Thing:
        """Follow an operator that is a function: as the operator that it spells."""
        operands = node.children[:number] + node.children[number + 1 :]
        if operator == "()":
            return self.call_thing(self.thing(operands[0]), operands[1:], self.site(node))
        if operator == "[]":
            return self.thing(replace(node, kind="index", children=operands))
        if len(operands) == 1:
            return self.thing(replace(node, kind="unary", text=operator, children=operands))
        is_assignment = operator.endswith("=") and operator not in ("==", "!=", "<=", ">=")
        return self.thing(replace(node, kind="assign" if is_assignment else "binary", text=operator, children=operands))

    def field_called(self, this: Object, name: str) -> Thing:
        """Return the data member that a bare name in a member function means, or None."""
        if any(field == name for field, _ in self.lookup.fields(this.cls)):
            return self.member(this, name, None)
        return None

    def candidates(self, callee: Node) -> list[tuple[Callee, Object | None, dict[str, Any]]]:
        """Return the functions that a written name can mean: (function, its object, its class's template arguments)."""
        found: list[tuple[Callee, Object | None, dict[str, Any]]] = []
        qualifier, _, last = callee.text.rpartition("::")
        if qualifier.endswith(">") or (qualifier and not callee.targets):
            cls = self.class_written(qualifier)
            if cls is not None:
                bound = self.class_arguments(cls[0], cls[1])
                methods = self.lookup.methods(cls[0], last)
                if methods and all(method.usr in self.active for method in methods):
                    # A recursion over a template argument that is not known ends in the explicit specialization.
                    ends = self.lookup.specializations(cls[0])
                    return [(method, None, {}) for end in ends for method in self.lookup.methods(end, last)]
                return [(method, None, bound) for method in methods]
        for usr in callee.targets:
            function = self.lookup.callee(usr)
            if function is not None:
                declaration = self.lookup.tables.declarations.get(usr)
                is_member = declaration is not None and declaration.parent and self.frame.this is not None
                found.append((function, self.frame.this if is_member else None, {}))
        if not found and not callee.targets and not qualifier and self.frame.this is not None:
            this = self.frame.this
            found = [(method, this, dict(this.template)) for method in self.lookup.methods(this.cls, last)]
        return found

    def class_written(self, text: str) -> tuple[Class, tuple[Any, ...]] | None:
        """Return the class that a written qualifier names, with its template arguments."""
        name = text.partition("<")[0]
        alias = self.frame.template.get(name)
        if isinstance(alias, Type) and alias.spelling != text:
            return self.class_written(alias.spelling)
        cls = self.lookup.class_named(name)
        if cls is None:
            return None
        arguments = tuple(self.template_argument(argument) for argument in self.lookup.arguments_of(text))
        written = tuple(as_written(argument) for argument in arguments)
        return self.lookup.specialized(cls, written), arguments

    def template_argument(self, text: str) -> Any:
        """Return what a template argument written as text is: a value, or a type."""
        return self.template_node(self.lookup.expression(text), text)

    def template_node(self, node: Node, text: str = "") -> Any:
        """Return what a template argument is: a value, or a type."""
        spelling = text or (node.type.spelling if node.type is not None else node.text)
        if node.kind in ("type", "raw"):
            known = self.frame.template.get(spelling)
            return known if known is not None else Type(spelling)
        if node.kind == "name":
            known = self.frame.template.get(node.text)
            if known is not None:
                return known
            if node.children or (self.frame.find(node.text) is None and self.lookup.class_named(node.text)):
                return Type(spelling)
        if node.kind in ("literal", "name", "unary", "binary", "conditional", "call", "sizeof", "cast", "member"):
            thing = self.thing(node)
            return self.as_value(thing) if isinstance(thing, Ref | Value) else Type(spelling)
        return Type(spelling)

    def class_arguments(self, cls: Class, arguments: Sequence[Any]) -> dict[str, Any]:
        """Bind the parameters of a class template."""
        return self.bound(self.lookup.parameters_of(cls.declaration.usr), cls.template_parameters, arguments, {})

    def bound(
        self, parameters: Sequence[Node], names: Sequence[str], arguments: Sequence[Any], base: dict[str, Any]
    ) -> dict[str, Any]:
        """Bind template parameters to arguments, and those left out to their defaults."""
        template = dict(base)
        names = [parameter.text for parameter in parameters] or list(names)
        for number, name in enumerate(names):
            if number < len(arguments):
                template[name] = arguments[number]
            elif number < len(parameters) and parameters[number].children and parameters[number].type is not None:
                saved, self.frame = self.frame, Frame(self.frame.id, template)
                template[name] = self.template_node(parameters[number].children[0])
                self.frame = saved
        return template

    # -- calling what a name is bound to ------------------------------------------------------------------------------
    def call_thing(self, thing: Thing, arguments: Sequence[Node], site: Site) -> Thing:
        """Call a local name: a lambda, an object with a call operator, a tensor by its index."""
        if isinstance(thing, Closure):
            return self.call_closure(thing, arguments, site)
        if isinstance(thing, Object):
            methods = [m for m in self.lookup.methods(thing.cls, "operator()") if m.takes(len(arguments))]
            if methods:
                return self.inline(methods[0], arguments, (), thing, dict(thing.template), site)
        if isinstance(thing, Type) and CONVERTERS.search(thing.spelling):
            return self.fresh(self.value("convert", [self.evaluated(arguments[-1])], site))
        if isinstance(thing, Ref | Value):
            return self.indexed(thing, arguments, site)
        return self.value("opaque", [self.evaluated(argument) for argument in arguments], site)

    def call_closure(self, closure: Closure, arguments: Sequence[Node], site: Site) -> Thing:
        """Follow the body of a lambda."""
        return self.call_closure_on(closure, [self.thing(argument) for argument in arguments], site)

    def call_closure_on(self, closure: Closure, things: Sequence[Thing], site: Site) -> Thing:
        """Follow the body of a lambda whose arguments are known."""
        *parameters, body = closure.node.children
        outer = closure.frame
        frame = Frame(outer.id, outer.template, outer.this, len(self.path))
        frame.scopes = [*closure.scopes, {}]
        chain, self.chain = self.chain, (*self.chain, site)
        saved, self.frame = self.frame, frame
        for parameter, thing in zip(parameters, things, strict=False):
            self.bind_parameter(parameter, thing, site)
        result = self.run(body)
        self.frame, self.chain = saved, chain
        return result

    def call_member(self, callee: Node, arguments: Sequence[Node], site: Site) -> Thing:
        """Call a member function."""
        base = self.thing(callee.children[0])
        if isinstance(base, Object):
            field = base.fields.get(callee.text)
            if field is not None:
                return self.call_thing(field, arguments, site)
            methods = [m for m in self.lookup.methods(base.cls, callee.text) if m.takes(len(arguments))]
            usable = [m for m in methods if m.usr not in self.active]
            if usable:
                return self.inline(usable[0], arguments, callee.children[1:], base, dict(base.template), site)
        return self.library(callee.text, callee, arguments, base, site)

    # -- inlining -----------------------------------------------------------------------------------------------------
    def inline(
        self,
        function: Callee,
        arguments: Sequence[Node],
        written: Sequence[Node],
        this: Object | None,
        template: dict[str, Any],
        site: Site,
    ) -> Thing:
        """Follow the body of a function of the checkout in the place of its call."""
        values = [self.template_node(argument) for argument in written]
        things = [self.thing(argument) for argument in arguments]
        base = {**(dict(this.template) if this is not None else {}), **template}
        names = self.source.definition(function.id).template_parameters if not function.template else ()
        return self.enter(function, things, self.bound(function.template, names, values, base), this, site)

    def enter(
        self, function: Callee, things: Sequence[Thing], template: dict[str, Any], this: Object | None, site: Site
    ) -> Thing:
        """Follow a function whose arguments are known."""
        self.inlined += 1
        self.followed.setdefault(function.usr, function)
        frame = Frame(function.id, template, this, len(self.path))
        saved, self.frame = self.frame, frame
        chain, self.chain = self.chain, (*self.chain, site)
        self.active.append(function.usr)
        for number, parameter in enumerate(function.parameters):
            if number < len(things):
                thing = things[number]
            else:
                thing = self.thing(parameter.children[0]) if parameter.children else None
            self.bind_parameter(parameter, thing, site)
        result = self.run(function.body) if function.body is not None else None
        self.forget(frame.scopes[0], result)
        self.active.pop()
        self.frame, self.chain = saved, chain
        return result

    def forget(self, scope: dict[str, Thing], result: Thing) -> None:
        """Forget what the variables of a scope hold that ends: no loop needs a phi for them any more."""
        for thing in scope.values():
            if isinstance(thing, Ref) and thing.declared is not None and thing.storage.declared is thing.declared:
                is_result = isinstance(result, Ref) and result.storage is thing.storage
                if thing.storage.space == "registers" and not is_result:
                    self.state.forget(thing.storage)

    def run(self, body: Node) -> Thing:
        """Follow the body of the innermost frame, and join what its returns leave behind."""
        frame = self.frame
        path, known = self.path, self.known
        left = self.statement(body)
        self.path, self.known = path, known
        leaves = frame.leaves
        if not left:
            leaves = [*leaves, (True, None, self.state)]
        if not leaves:
            return None
        _, result, state = leaves[-1]
        for condition, thing, other in reversed(leaves[:-1]):
            result = self.joined(condition, thing, result)
            merged = state.copy()
            for storage in other.touched(state):
                contents = other.get(storage)
                mine = state.get(storage) or self.before(storage)
                if contents is not None and mine is not contents:
                    merged[storage] = self.select(condition, contents, mine)
            state = merged
        self.state = state
        return result if result is not None else self.undefined

    def joined(self, condition: Formula, then: Thing, other: Thing) -> Thing:
        """Return one thing or the other."""
        if other is None or then is other:
            return then
        if then is None:
            return other
        if isinstance(then, Object) and isinstance(other, Object) and then.cls is other.cls:
            for name, field in then.fields.items():
                theirs = other.fields.get(name)
                if isinstance(field, Ref) and isinstance(theirs, Ref):
                    self.state[theirs.storage] = self.select(condition, self.read(field), self.read(theirs))
            return other
        if isinstance(then, Ref) and isinstance(other, Ref) and then.storage is other.storage:
            return other
        if isinstance(then, Value | Ref) and isinstance(other, Value | Ref):
            return self.select(condition, self.as_value(then), self.as_value(other))
        return other

    def bind_parameter(self, parameter: Node, thing: Thing, site: Site) -> None:
        """Bind a parameter: to the argument itself where that is passed by reference or is a view, else to a copy."""
        declared = self.site(parameter)
        if isinstance(thing, Ref):
            by_reference = parameter.type is not None and parameter.type.form in ("reference", "pointer")
            if by_reference or thing.storage.space != "registers" or thing.is_pointer:
                if thing.storage.space == "argument" and self.lookup.is_scalar(parameter.type):
                    self.bind_copy(parameter, self.read(thing, site), declared)
                    return
                named = thing.view(name=parameter.text, declared=declared)
                named.is_alias = parameter.type is not None and parameter.type.form == "reference"
                if thing.storage.space == "registers" and not thing.is_indexed:
                    self.rename(named, declared)
                self.frame.bind(parameter.text, named)
                return
        if isinstance(thing, Object | Closure | Type):
            self.frame.bind(parameter.text, thing)
            return
        self.bind_copy(parameter, self.as_value(thing, site), declared)

    def bind_copy(self, parameter: Node, contents: Value, declared: Site) -> None:
        """Bind a parameter to a storage of its own."""
        storage = self.store(parameter.text, declared)
        value = self.value("set", [contents], declared)
        value.name, value.declared, value.storage, value.is_view = parameter.text, declared, storage, True
        self.state[storage] = value
        self.frame.bind(parameter.text, Ref(storage, parameter.text, declared))

    # -- construction -------------------------------------------------------------------------------------------------
    def construct(self, type_: TypeRef | None, name: str, arguments: Sequence[Node], site: Site) -> Object | None:
        """Make an object of a class of the checkout and follow its constructor; None for any other type."""
        cls = self.lookup.class_of(type_)
        spelling = type_.spelling if type_ is not None else name
        if cls is None:
            written = self.class_written(spelling.removeprefix("const ").rstrip("& "))
            if written is None:
                return None
            cls = written[0]
        arguments_written = tuple(self.template_argument(text) for text in self.lookup.arguments_of(spelling))
        if arguments_written and not self.lookup.specialized_for(cls):
            cls = self.lookup.specialized(cls, tuple(as_written(argument) for argument in arguments_written))
        made = self.new_object(cls, name, self.class_arguments(cls, arguments_written), site)
        constructors = [m for m in self.lookup.methods(cls, cls.declaration.name.partition("<")[0])]
        fitting = [m for m in constructors if m.takes(len(arguments)) and m.usr not in self.active]
        if fitting:
            self.inline(fitting[0], arguments, (), made, dict(made.template), site)
        else:
            for (field, _), argument in zip(self.lookup.fields(cls), arguments, strict=False):
                target = made.fields.get(field)
                if isinstance(target, Ref):
                    self.write(target, self.evaluated(argument), site)
        return made

    def fresh(self, contents: Value) -> Ref:
        """Return a new storage without a name, holding ``contents``."""
        return Ref(self.store("", contents.site, contents=contents))

    # -- library ------------------------------------------------------------------------------------------------------
    def library(self, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site) -> Thing:
        """Follow a call of a name from outside of the checkout, by the table of library names."""
        found = meaning(name)
        if found is None:
            things = [self.thing(argument) for argument in arguments]
            self.unknown.setdefault(name, site)
            for thing in things:
                is_tensor = isinstance(thing, Ref) and thing.storage.number not in self.scalars
                if is_tensor and thing.storage.space in ("registers", "shared") and not thing.is_indexed:
                    handed = self.value("call", [self.contents(thing.storage)], site, name)
                    handed.storage = thing.storage
                    self.handed_away.append(handed)
            values = [self.as_value(thing, site) for thing in things if isinstance(thing, Ref | Value)]
            if isinstance(base, Ref | Value):
                values.insert(0, self.as_value(base, site))
            return self.value("call", values, site, name)
        if found.does in ("barrier", "wait", "fence"):
            return self.library_order(found, name, callee, arguments, base, site)
        if found.does == "nothing":
            return None
        handler = getattr(self, "_library_" + found.does.replace(" ", "_"))
        result: Thing = handler(found, name, callee, arguments, base, site)
        return result

    def leaf_condition(self) -> Formula:
        """Return under which condition this point of the innermost frame is reached."""
        condition: Formula = True
        for formula in self.path[self.frame.entry :]:
            condition = conjunction(condition, formula)
        return condition


def as_written(argument: Any) -> str:
    """Return a template argument as an explicit specialization writes it."""
    if isinstance(argument, Type):
        return argument.spelling
    if isinstance(argument, Value):
        constant = constant_of(argument)
        if isinstance(constant, bool):
            return "true" if constant else "false"
        return str(constant) if constant is not None else argument.text
    return str(argument)


__all__ = ["Calls", "TypeRef"]
