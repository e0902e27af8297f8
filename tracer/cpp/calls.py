"""Call sites of one function body, each with what it can reach.

libclang names the callee of a call whose arguments it could type. In a template it often cannot; then these rules help,
in this order: the overload set that the compiler looked up, the declared type of the object whose member is called, the
declaration of the variable that is called or launched, and at last what the rest of the unit binds a template parameter
to. What no rule decides stays unresolved, with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tracer.cpp import spelling
from tracer.cpp.candidates import Candidates, Found
from tracer.cpp.kernels import Kernels
from tracer.cpp.scopes import Local, Scope, Visited, visit
from tracer.cpp.template_arguments import TemplateArguments
from tracer.cpp.tree import Function, Node, TypeRef
from tracer.cpp.types import Instance, Types, Where, join, unknown
from tracer.cpp.unit import Unit
from tracer.model import Confidence, How, Outcome
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One call site of a body; positions are (file index, byte offset)."""

    written: str
    file: int
    offset: int
    end: int
    outcome: Outcome
    found: tuple[Found, ...] = ()
    reason: str = ""
    condition: str = ""


_MAX_LEVEL = 30  # calls whose types depend on calls whose types depend …


class CallReader:
    """Reads the call sites of the functions of one unit."""

    def __init__(self, unit: Unit, body: Callable[[int], Node | None], *, infer: bool = True) -> None:
        """Index the unit's classes and functions by name.

        Args:
            unit: the unit.
            body: gives the body of a function, by key.
            infer: find out what the unit binds template parameters to, which reads the functions that use a template.
        """
        self.unit, self.body = unit, body
        self.candidates = Candidates(unit)
        self.types = self.candidates.types
        self.missed = False  # an answer would have needed inference
        inference = TemplateArguments(unit, self.types, self.visited, self.reached)
        self.types.bound = inference.bound if infer else self._not_inferred
        self.types.result = self.result
        self.types.handed = self.handed
        self._visited: dict[int, list[Visited]] = {}
        self._results: dict[str, TypeRef] | None = None
        self._level = 0
        self._open: set[int] = set()

    def _not_inferred(self, owner: str, position: int, name: str) -> Types:
        self.missed = True
        return unknown(f"the template parameter {name}")

    def calls(self, function: Function) -> tuple[Call, ...]:
        """Return the call sites of a function's body in source order; sets ``missed`` where inference would help."""
        self.missed = False
        return tuple(_BodyReader(self, function).read())

    def visited(self, key: int) -> list[Visited]:
        """Return the places of a function's body that say what is called and of which type things are."""
        if key not in self._visited:
            body = self.body(key)
            function = self.unit.functions[key]
            text = partial(spelling.text, self.unit)
            self._visited[key] = visit(function, body, text) if body is not None else []
        return self._visited[key]

    def reached(self, place: Visited, function: Function) -> tuple[str, ...]:
        """Return the functions that a call in a function reaches, by all that the unit shows."""
        node = place.node
        if id(node) in self._open or self._level > _MAX_LEVEL:
            return ()
        self._open.add(id(node))
        self._level += 1
        reader = _BodyReader(self, function)
        reader.add_call(node, place.scope, "")
        self._level -= 1
        self._open.discard(id(node))
        at = (node.children[0].file, node.children[0].start) if node.children else ()
        return tuple([found.usr for call in reader.found.values() for found in call.found]) if at else ()

    def result(self, call: Node, where: Where) -> Types:
        """Return what a call returns: the declared type, or for ``auto`` the types of what is returned."""
        callee = call.children[0]
        local = where.scope.get(callee.text) if callee.kind == "name" else None
        closure = callee if callee.kind == "lambda" else local.node if local is not None else None
        if where.function is None:
            return unknown()
        if closure is not None and closure.kind == "lambda":
            return self._returned(where.function, closure)
        usrs = self.reached(Visited(call, dict(where.scope), "", None), where.function)
        if self._results is None:
            self._results = self.unit.results()
        found = []
        for usr in usrs:
            for key in self.unit.by_usr.get(usr, ())[-1:]:
                function = self.unit.functions[key]
                declared = self._results.get(usr)
                inside = Where(function, function.declaration.parent, deep=True)
                if declared is not None and "auto" in declared.spelling.split():
                    found.append(self._returned(function, None))
                else:
                    found.append(self.types.of_type(declared, inside))
        return join(found) if found else unknown()

    def _returned(self, function: Function, closure: Node | None) -> Types:
        if self._level > _MAX_LEVEL:
            return unknown()
        self._level += 1
        found = [
            self.types.of_node(place.node.children[0], _where(function, place.scope, deep=True))
            for place in self.visited(function.key)
            if place.node.kind == "return" and place.node.children and place.inside is closure
        ]
        self._level -= 1
        return join(found) if found else unknown()

    def handed(self, parameter: Local, where: Where) -> Types:
        """Return what the callers of a lambda give it for a parameter."""
        if where.function is None or self._level > _MAX_LEVEL:
            return unknown()
        self._level += 1
        found = []
        for place in self.visited(where.function.key):
            node = place.node
            if node.kind == "call" and node.children and parameter.position + 1 < len(node.children):
                local = place.scope.get(node.children[0].text) if node.children[0].kind == "name" else None
                if local is not None and local.node is parameter.taken_by:
                    argument = node.children[parameter.position + 1]
                    found.append(self.types.of_node(argument, _where(where.function, place.scope, deep=True)))
        self._level -= 1
        return join(found) if found else unknown()


def _where(function: Function, scope: Scope, deep: bool) -> Where:
    return Where(function, function.declaration.parent, scope, deep=deep)


class _BodyReader:
    """One pass over one body, with the local names in sight."""

    def __init__(self, reader: CallReader, function: Function) -> None:
        self.reader, self.unit, self.types, self.function = reader, reader.unit, reader.types, function
        self.candidates = reader.candidates
        self.kernels = Kernels(reader.candidates, function, reader.visited)
        self.found: dict[tuple[int, int, str], Call] = {}
        self.own_class = self.unit.classes.get(function.declaration.parent)

    def read(self) -> list[Call]:
        for place in self.reader.visited(self.function.key):
            node = place.node
            if node.kind == "call" and node.children:
                self.add_call(node, place.scope, place.condition)
            elif node.kind == "construct":
                self.add_construct(node, place.scope, place.condition)
            elif node.kind == "launch":
                self.add_launch(node, place.scope, place.condition)
            elif node.kind == "name" and node.targets:
                self.add_kernel_pointer(node, place.condition)
        return sorted(self.found.values(), key=lambda call: (call.file, call.offset))

    def add(
        self, written: str, at: tuple[int, int, int], outcome: Outcome, found: Sequence[Found], reason: str,
        condition: str,
    ) -> None:  # fmt: skip
        file, offset, end = at
        key = (file, offset, written)
        if key in self.found:  # a second copy of a macro argument: keep every destination that any copy shows
            known = self.found[key]
            more = [new for new in found if new.usr not in {old.usr for old in known.found}]
            if not more:
                return
            found = (*known.found, *more)
        self.found[key] = Call(written, file, offset, end, outcome, tuple(found), reason, condition)

    # -- the kinds of call --------------------------------------------------------------------------------------------
    def add_call(self, node: Node, scope: Scope, condition: str) -> None:
        callee, count = node.children[0], len(node.children) - 1
        if callee.kind == "lambda":
            return
        if callee.kind == "name":
            self.add_named_call(node, callee, count, scope, condition)
        elif callee.kind == "member":
            self.add_member_call(node, callee, count, scope, condition)
        elif callee.kind in ("call", "index", "construct", "unary", "conditional", "cast"):
            at = (node.file, node.start, node.end)
            written = spelling.written(self.unit, callee)
            self.add_object_call(written, at, callee, count, scope, condition, "calls the result of an expression")
        else:
            self.add(spelling.text(self.unit, callee, 60), (node.file, node.start, node.end), Outcome.UNRESOLVED, (),
                     "the callee is no name", condition)  # fmt: skip

    def add_named_call(self, node: Node, callee: Node, count: int, scope: Scope, condition: str) -> None:
        at = (callee.file, callee.start, node.end)
        name = callee.text
        if callee.targets:
            outcome, found, reason = self.candidates.choose(callee, count)
            if outcome is Outcome.EXTERNAL:
                found = self.kernels.started(node, callee, scope)
                outcome = Outcome.RESOLVED if found else outcome
            self.add(name, at, outcome, found, reason, condition)
            return
        local = scope.get(name)
        if local is not None:
            if local.node is not None and local.node.kind == "lambda":
                return  # its body is part of this function
            found = [
                Found(f.usr, How.ALIAS, f.confidence, local.place, f.template_arguments)
                for f in self.kernels.function_pointer(local.node, scope)
            ]
            if found:
                self.add(name, at, Outcome.RESOLVED, found, "", condition)
            else:
                self.add_object_call(name, at, callee, count, scope, condition, "")
            return
        qualifier, _, last = name.rpartition("::")
        if qualifier:
            self.add_qualified_call(qualifier, last, at, callee, count, scope, condition)
            return
        if name in self.template_parameters():
            self.add(name, at, Outcome.UNRESOLVED, (), f"depends on template parameter {name}", condition)
            return
        # Not visible at the definition: only argument-dependent lookup can find it when the template is instantiated.
        candidates = self.candidates.fitting(self.candidates.functions_by_name.get(name, ()), count)
        own = self.candidates.methods(self.own(), name, count) if self.own_class is not None and not candidates else []
        if candidates:
            confidence = Confidence.INFERRED if len(candidates) == 1 else Confidence.AMBIGUOUS
            arguments = spelling.arguments(self.unit, callee)
            found = [Found(usr, How.OVERLOAD, confidence, None, arguments) for usr in candidates]
            self.add(name, at, Outcome.RESOLVED, found, "", condition)
        else:
            self.add(name, at, Outcome.RESOLVED if own else Outcome.EXTERNAL, own, "", condition)

    def add_qualified_call(
        self, qualifier: str, last: str, at: tuple[int, int, int], callee: Node, count: int, scope: Scope,
        condition: str,
    ) -> None:  # fmt: skip
        """Add a call of ``qualifier::last``, whose qualifier is a class or a namespace."""
        name = f"{qualifier}::{last}"
        where = self.where(scope)
        types = self.types.of_spelling(qualifier, where)
        found = self.candidates.methods(types, last, count)
        if not found and (types.unknown or types.instances):
            types = self.types.of_spelling(qualifier, replace(where, deep=True))
            found = self.candidates.methods(types, last, count, deep=True)
        if found:
            self.add(name, at, Outcome.RESOLVED, found, "", condition)
        elif types.library and not types.instances and not types.unknown:
            candidates = self.candidates.in_namespace(qualifier, last, count)
            self.add(name, at, Outcome.RESOLVED if candidates else Outcome.EXTERNAL, candidates, "", condition)
        elif qualifier in self.template_parameters():
            self.add(name, at, Outcome.UNRESOLVED, (), f"depends on template parameter {qualifier}", condition)
        else:
            reason = types.unknown or f"{qualifier} declares no member {last}"
            self.add(name, at, Outcome.UNRESOLVED, (), f"{qualifier} is {types.unknown}" if types.unknown else reason,
                     condition)  # fmt: skip

    def add_object_call(
        self, name: str, at: tuple[int, int, int], callee: Node, count: int, scope: Scope, condition: str, reason: str
    ) -> None:
        """Add a call of an object: of its ``operator()``."""
        where = self.where(scope)
        types = self.types.of_node(callee, where)
        found = self.candidates.methods(types, "operator()", count)
        if (
            not found
            and types.unknown
            and not types.library
            and not types.instances
            and self.candidates.callable_with(count)
        ):
            types = self.types.of_node(callee, replace(where, deep=True))
            found = self.candidates.methods(types, "operator()", count, deep=True)
            if types.local and not found and not types.unknown:
                return  # a lambda: its body is part of the function that writes it
        if found:
            self.add(name, at, Outcome.RESOLVED, found, "", condition)
        elif types.library or types.instances or not self.candidates.callable_with(count):
            self.add(name, at, Outcome.EXTERNAL, (), "", condition)
        else:
            reason = reason or f"{name} is called, and its type is {types.unknown}"
            self.add(name, at, Outcome.UNRESOLVED, (), reason, condition)

    def add_member_call(self, node: Node, callee: Node, count: int, scope: Scope, condition: str) -> None:
        name_at = spelling.member_position(self.unit, callee)
        at = (callee.file, name_at, node.end)
        written = spelling.written(self.unit, callee)
        if callee.targets:
            outcome, found, reason = self.candidates.choose(callee, count)
            self.add(written, at, outcome, found, reason, condition)
            return
        base = callee.children[0]
        if base.kind == "this" and "::" in callee.text:
            qualifier, _, last = callee.text.rpartition("::")
            self.add_qualified_call(qualifier, last, at, callee, count, scope, condition)
            return
        arguments = spelling.arguments_of_member(self.unit, callee)
        where = self.where(scope)
        types = self.types.of_node(base, where)
        found = self.candidates.methods(types, callee.text, count, arguments)
        if not found and callee.text in self.candidates.method_names and not (types.library and not types.instances):
            types = self.types.of_node(base, replace(where, deep=True))
            found = self.candidates.methods(types, callee.text, count, arguments, deep=True)
        if found:
            self.add(written, at, Outcome.RESOLVED, found, "", condition)
        elif callee.text not in self.candidates.method_names or (types.library and not types.unknown):
            self.add(written, at, Outcome.EXTERNAL, (), "", condition)  # no class of the checkout has such a member
        elif types.instances and not types.unknown:
            bases = join([self.types.bases(instance, True) for instance in types.instances])
            class_ = self.unit.classes[types.instances[0].usr].declaration.name
            outcome = Outcome.EXTERNAL if bases.library else Outcome.UNRESOLVED
            self.add(written, at, outcome, (), "" if bases.library else f"{class_} declares no member {callee.text}",
                     condition)  # fmt: skip
        else:
            reason = f"a member of something whose type is {types.unknown}"
            self.add(written, at, Outcome.UNRESOLVED, (), reason, condition)

    def add_construct(self, node: Node, scope: Scope, condition: str) -> None:
        types = self.types.of_type(node.type, self.where(scope))
        deep = not types.decided and bool(self.candidates.fitting(self.candidates.constructors, len(node.children)))
        if deep:
            types = self.types.of_type(node.type, replace(self.where(scope), deep=True))
        usrs: dict[str, Found] = {}
        for usr in types.usrs:
            name = self.unit.classes[usr].declaration.name
            for found in self.candidates.methods(Types((Instance(usr),)), name, len(node.children), deep=deep):
                usrs[found.usr] = replace(found, how=How.CONSTRUCTOR)
        sure = len(usrs) == 1 and not types.library and not types.unknown
        constructors = [f if sure else replace(f, confidence=Confidence.AMBIGUOUS) for f in usrs.values()]
        if constructors:
            written = node.text or self.unit.classes[types.usrs[0]].declaration.name
            at = (node.file, node.start, node.end)
            self.add(written, at, Outcome.RESOLVED, constructors, "", condition)

    # -- kernels ------------------------------------------------------------------------------------------------------
    def add_launch(self, node: Node, scope: Scope, condition: str) -> None:
        callee = node.children[0]
        at = (callee.file, callee.start, node.end)
        local = scope.get(callee.text) if callee.kind == "name" and not callee.targets else None
        found = [
            Found(f.usr, How.LAUNCH, f.confidence, local.place if local else f.through, f.template_arguments)
            for f in self.kernels.function_pointer(local.node if local else callee, scope)
        ]
        if callee.targets:  # the kernel is named where it is launched
            inside = {usr for usr in callee.targets if self.unit.is_inside(usr)}
            found = [replace(f, through=None) if f.usr in inside else f for f in found]
        written = callee.text or spelling.text(self.unit, callee, 60)
        if found:
            self.add(written, at, Outcome.RESOLVED, found, "", condition)
        else:
            reason = "launches something that no declaration here names"
            self.add(written, at, Outcome.UNRESOLVED, (), reason, condition)

    def add_kernel_pointer(self, node: Node, condition: str) -> None:
        kernels = [usr for usr in node.targets if "global" in self.candidates.attributes(usr)]
        if kernels:
            confidence = Confidence.EXACT if len(kernels) == 1 else Confidence.AMBIGUOUS
            arguments = spelling.arguments(self.unit, node)
            found = [Found(usr, How.KERNEL_POINTER, confidence, None, arguments) for usr in kernels]
            self.add(f"&{node.text}", (node.file, node.start, node.end), Outcome.RESOLVED, found, "", condition)

    # -- what the body stands in --------------------------------------------------------------------------------------
    def where(self, scope: Scope) -> Where:
        return _where(self.function, scope, deep=False)

    def own(self) -> Types:
        return Types((Instance(self.function.declaration.parent),))

    def template_parameters(self) -> set[str]:
        own = self.own_class.template_parameters if self.own_class is not None else ()
        return {*self.function.template_parameters, *own}
