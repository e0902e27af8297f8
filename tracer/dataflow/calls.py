"""The part of the C++ front end that follows calls: into the checkout's functions, or by the table of library names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from tracer.cpp.tree import Class, Node, TypeRef
from tracer.dataflow.addresses import Address
from tracer.dataflow.frames import Closure, Frame, Object, Thing, Type
from tracer.dataflow.ir import Dimension, Formula, Layout, Ref, Site, Storage, Value, conjunction
from tracer.dataflow.library import CONVERTERS, WHOLE, Meaning, meaning
from tracer.dataflow.lookup import Callee
from tracer.dataflow.names import constant_of, plain
from tracer.dataflow.ordering import Ordering

MAX_DEPTH = 24
#: Names of functions that make a tensor with the extents of another one.
_LIKE = frozenset(("make_fragment_like", "make_tensor_like"))
#: Names of views that leave the numbering of the elements alone.
_SAME_LAYOUT = frozenset(("data", "data_ptr", "begin"))


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
        written = tuple(_written(argument) for argument in arguments)
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
            cls = self.lookup.specialized(cls, tuple(_written(argument) for argument in arguments_written))
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

    def _library_value(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        if found.op == "infinity" or (not arguments and found.op in ("max", "min")):
            return self.const(float("inf"), site)
        values = [self.evaluated(argument) for argument in arguments]
        if found.op in ("lane", "broadcast"):
            distance = constant_of(values[2]) if len(values) > 2 else None
            made = self.value(found.op, values[1:2], site, str(distance) if isinstance(distance, int) else "")
            made.constant = name if "_xor_" not in name and found.op == "lane" else None
            return made
        if found.op == "fma":
            return self.operation("add", [self.operation("mul", values[:2], site), values[2]], site)
        if found.op == "reciprocal":
            return self.operation("div", [self.const(1.0, site), *values], site)
        return self.operation(found.op, values, site)

    def _library_convert(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        if not arguments:
            return self.const(0, site)
        thing = self.thing(arguments[0])
        if WHOLE.fullmatch(name):
            cut = self.value("convert", [self.as_value(thing, site)], site, name)
            self.whole.add(cut.number)
            return cut
        return thing if isinstance(thing, Ref) and not thing.is_indexed else self.as_value(thing, site)

    def _library_copy(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        if len(things) >= 2 and isinstance(things[-1], Ref):
            contents, tool = self.as_value(things[-2], site), self.as_value(things[0], site)
            if self.events and self.events[-1].kind == "read":
                self.events[-1] = replace(self.events[-1], tool=tool)
            self.write(things[-1], self.value("copy", [contents], site), site)
        return None

    def _library_clear(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        target = self.thing(arguments[0]) if arguments else base
        if isinstance(target, Ref):
            self.write(target, self.const(0.0, site), site)
        return None

    def _library_fill(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        target = self.thing(arguments[0])
        if isinstance(target, Ref):
            self.write(target, self.evaluated(arguments[-1]), site)
        return None

    def _library_product(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        left, right = self.evaluated(arguments[-3]), self.evaluated(arguments[-2])
        target = self.thing(arguments[-1])
        if isinstance(target, Ref):
            product = self.value("matmul", [left, right], site)
            self.write(target, self.value("add", [self.read(target, site), product], site), site)
        return None

    def _library_atomic_add(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        target = self.thing(arguments[0])
        if isinstance(target, Ref):
            self.write(target, self.value("add", [self.read(target, site), self.evaluated(arguments[1])], site), site)
        return None

    def _library_transform(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        *things, function = [self.thing(argument) for argument in arguments]
        target = things[-1] if things else None
        if isinstance(target, Ref) and isinstance(function, Closure):
            given = [self.fresh(self.as_value(thing, site)) for thing in (things[:-1] or things)]
            result = self.call_closure_on(function, given, site)
            changed = result if isinstance(result, Ref | Value) and found.op == "transform" else given[-1]
            self.write(target, self.as_value(changed, site), site)
        return None

    def _library_axpby(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        a, x, b = [self.evaluated(argument) for argument in arguments[:3]]
        target = self.thing(arguments[3])
        if isinstance(target, Ref):
            products = [self.operation("mul", [a, x], site), self.operation("mul", [b, self.read(target, site)], site)]
            self.write(target, self.operation("add", products, site), site)
        return None

    def _library_fresh(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        made = Ref(self.store("", None))
        if name in _LIKE and len(things) == 1 and isinstance(things[0], Ref):
            made.layout = things[0].layout
        else:  # what is made of the same things has the same extents
            written = (name, self.frame.id, *[self.source.text(*self.site(argument)) for argument in arguments])
            made.layout = self.made.setdefault(written, made.layout)
        made.storage.is_identity = name == "make_identity_tensor"
        return made

    def _library_shape(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        if name == "get" and things:
            return things[0]
        numbers = [constant_of(t) for t in things if isinstance(t, Value)]
        written = [self.template_node(node) for node in callee.children if node.kind != "this"]
        text = f"{name}<{', '.join([str(_written(argument)) for argument in written])}>"
        values = [thing for thing in things if isinstance(thing, Value)]
        made = self.value("shape", values, site, text if not numbers or callee.children else name)
        of = things[0] if things else base
        if name == "layout" and isinstance(of, Ref):
            self.extents[made.number] = of.layout, ()
        elif name == "size":
            dimension = _numbers(written[1:] if callee.kind == "member" else written)
            if isinstance(of, Ref) and dimension is not None:
                self.extents[made.number] = of.layout, dimension
        if name == "make_stride":
            self.tuples[made.number] = tuple([self.as_value(thing, site) for thing in things])
        elif name == "make_layout" and len(things) > 1:
            self.layouts[made.number] = self.as_value(things[1], site)
        return made

    def _library_view(
        self, found: Meaning, name: str, callee: Node, arguments: Sequence[Node], base: Thing, site: Site
    ) -> Thing:
        things = [self.thing(argument) for argument in arguments]
        if (
            name == "make_tensor"
            and any(not isinstance(thing, Ref) for thing in things[:1])
            and (callee.children or not any(isinstance(thing, Ref) for thing in things))
        ):
            return Ref(self.store("", None))  # an owning tensor: only an element type and a layout are given
        first = next((thing for thing in things if isinstance(thing, Ref)), None)
        if first is not None and first.storage.is_identity and name == "get" and len(callee.children) == 1:
            whole = first.view()
            whole.component = (_numbers([self.template_node(node) for node in callee.children]) or (-1,))[0]
            coordinate = self.value("element", [self.read(whole, site)], site, callee.children[0].text)
            coordinate.storage, coordinate.indices = first.storage, first.indices
            return coordinate
        if first is not None:
            if first.storage.space == "argument" and (name.startswith("make_") or name == "recast_ptr"):
                first.storage.space = "global"
            if name in ("local_tile", "local_partition", "make_tensor") and len(arguments) >= 2:
                self.note_tile(first.storage, arguments, site)
            result = first.view(is_pointer=first.is_pointer or name.endswith("_ptr"))
            if name == "get":
                result.component = (_numbers([self.template_node(node) for node in callee.children]) or (-1,))[0]
            elif name not in _SAME_LAYOUT:
                of = plain(things[-1]).number if isinstance(things[-1], Value) else -1
                was_of_thread = isinstance(first.layout, Layout) and first.layout.is_of_thread
                own = Layout(is_of_thread=was_of_thread or "partition" in name)
                result.layout = self.extents[of][0] if of in self.extents else own
            if first.storage.space == "global" and not name.endswith("ptr"):
                result.address = self.address_of(first, name, arguments, things)
            return result
        if isinstance(base, Ref):
            return base.view(is_pointer=True) if name in ("data", "get", "data_ptr", "begin") else base
        values = [thing for thing in things if isinstance(thing, Value)]
        return values[0] if values else self.value("opaque", (), site, name)

    def note_tile(self, storage: Storage, arguments: Sequence[Node], site: Site) -> None:
        """Note which tile is cut out of a tensor: its extents, and which of them it is."""
        extents: list[Value] = []
        if arguments[1].kind != "construct":
            return
        for child in arguments[1].children:
            if child.kind in ("name", "literal", "binary", "call"):
                thing = self.thing(child)
                extents += [self.as_value(thing)] if isinstance(thing, Ref | Value) else []
        is_chosen = len(arguments) > 2 and arguments[2].kind == "call" and len(arguments[2].children) > 1
        is_chosen = is_chosen and arguments[2].children[0].text.rpartition("::")[2] == "make_coord"
        coordinates = self.index_values(arguments[2]) if is_chosen else []
        storage.tiles.append((tuple(extents), tuple(coordinates), site))

    def address_of(self, base: Ref, name: str, arguments: Sequence[Node], things: Sequence[Thing]) -> Address:
        """Return the address of a view of a tensor in global memory."""
        address = base.address or Address()
        if name == "make_tensor":
            last = things[-1] if len(things) > 1 else None
            strides = self.as_value(last) if isinstance(last, Ref | Value) else None
            parts = self.components(strides) if strides is not None else ()
            is_tile = len(arguments) > 2 and arguments[1].kind == "construct"
            return address.laid_out(strides, len(parts), is_tile=is_tile)
        if name == "local_tile" and base.storage.tiles:
            extents, coordinates, _ = base.storage.tiles[-1]
            return address.tiled(extents, coordinates)
        if name.startswith("partition_"):
            return address.partitioned()
        return replace(address, modes=()) if address.is_tile else replace(address, modes=(), is_known=False)

    def components(self, value: Value) -> tuple[Value, ...]:
        """Return the components of a tuple of numbers; of a choice between two tuples those of the first."""
        value = plain(value)
        while value.op == "select" or value.number in self.layouts:
            value = plain(value.args[0] if value.op == "select" else self.layouts[value.number])
        return self.tuples.get(value.number, ())

    def leaf_condition(self) -> Formula:
        """Return under which condition this point of the innermost frame is reached."""
        condition: Formula = True
        for formula in self.path[self.frame.entry :]:
            condition = conjunction(condition, formula)
        return condition


def _numbers(arguments: Sequence[Any]) -> Dimension | None:
    """Return the numbers that template arguments are; None where one of them is no number that is known."""
    found = [constant_of(argument) if isinstance(argument, Value) else None for argument in arguments]
    return tuple([n for n in found if isinstance(n, int)]) if all(isinstance(n, int) for n in found) else None


def _written(argument: Any) -> str:
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
