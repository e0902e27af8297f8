"""Call sites of one function body, each with what it can reach.

libclang names the callee of a call whose arguments it could type. In a template it often cannot; then three rules help,
in this order: the overload set that the compiler looked up, the declared type of the object whose member is called, and
the declaration of the variable that is called or launched. What no rule decides stays unresolved, with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tracer.cpp.convert import Unit
from tracer.cpp.tree import Class, Declaration, Function, Node, TypeRef
from tracer.model import Confidence, How, Outcome


@dataclass(frozen=True, slots=True)
class Found:
    """One destination of a call: a USR, how it was found, and where its name was bound on the way."""

    usr: str
    how: How
    confidence: Confidence
    through: tuple[int, int] | None = None
    template_arguments: tuple[str, ...] = ()


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


@dataclass(slots=True)
class _Local:
    """What a local name stands for."""

    node: Node | None
    type: TypeRef | None
    place: tuple[int, int] | None = None


_LIBRARY = "library"  # type_of's answer for a value that a library made
_WORD = re.compile(r"[A-Za-z_]\w*")


class CallReader:
    """Reads the call sites of the functions of one unit."""

    def __init__(self, unit: Unit) -> None:
        """Index the unit's classes and functions by name."""
        self.unit = unit
        self.classes_by_name: dict[str, list[str]] = {}
        for usr, class_ in unit.classes.items():
            self.classes_by_name.setdefault(class_.declaration.name, []).append(usr)
        self.functions_by_name: dict[str, list[str]] = {}
        for function in unit.functions:
            usrs = self.functions_by_name.setdefault(function.declaration.name, [])
            if function.declaration.usr not in usrs:
                usrs.append(function.declaration.usr)
        self.aliases = dict(unit.aliases)
        self.method_names = {name for class_ in unit.classes.values() for name, _ in class_.methods}
        self.member_aliases: dict[str, list[TypeRef]] = {}
        for class_ in unit.classes.values():
            for name, type_ in class_.aliases:
                self.member_aliases.setdefault(name, []).append(type_)

    def calls(self, function: Function, body: Node) -> tuple[Call, ...]:
        """Return the call sites of ``body`` in source order."""
        return tuple(_BodyReader(self, function).read(body))


class _BodyReader:
    """One pass over one body, with the local names in sight."""

    def __init__(self, reader: CallReader, function: Function) -> None:
        self.reader, self.unit, self.function = reader, reader.unit, function
        self.found: dict[tuple[int, int, str], Call] = {}
        self.seen: set[int] = set()
        self.own_class = self.unit.classes.get(function.declaration.parent)
        self.template_parameters = set(function.template_parameters)
        if self.own_class is not None:
            self.template_parameters |= set(self.own_class.template_parameters)

    def read(self, body: Node) -> list[Call]:
        scope = {parameter.text: _Local(None, parameter.type) for parameter in self.function.parameters}
        self.visit(body, scope, "")
        return sorted(self.found.values(), key=lambda call: (call.file, call.offset))

    # -- walking ------------------------------------------------------------------------------------------------------
    def visit(self, node: Node, scope: dict[str, _Local], condition: str) -> None:
        kind = node.kind
        if kind in ("literal", "empty", "this") or (kind == "lambda" and id(node) in self.seen):
            return
        if kind in ("block", "lambda", "for", "for_range", "if", "while"):
            self.seen.add(id(node))
            scope = dict(scope)
        if kind == "lambda":
            for parameter in node.children[:-1]:
                scope[parameter.text] = _Local(None, parameter.type)
        elif kind == "if" and node.children:
            self.visit(node.children[0], scope, condition)
            text = self.text(node.children[0])
            branches = (text, f"not ({text})" if text else "")
            for branch, branch_condition in zip(node.children[1:], branches, strict=False):
                self.visit(branch, dict(scope), branch_condition or condition)
            return
        elif kind == "variable":
            for child in node.children:
                self.visit(child, scope, condition)
            initialiser = node.children[0] if node.children else None
            scope[node.text] = _Local(initialiser, node.type, (node.file, node.start))
            return
        elif kind == "alias":
            scope[node.text] = _Local(None, node.type)
            return
        elif kind == "bind":
            for name in node.text.split(","):
                scope[name] = _Local(None, None)
        elif kind == "call" and node.children:
            self.add_call(node, scope, condition)
            callee = node.children[0]
            below = callee.children if callee.kind in ("name", "member") else (callee,)
            for child in (*below, *node.children[1:]):
                self.visit(child, scope, condition)
            return
        elif kind == "construct":
            self.add_construct(node, condition)
        elif kind == "launch":
            self.add_launch(node, scope, condition)
            for child in node.children[1:]:
                self.visit(child, scope, condition)
            return
        elif kind == "name" and node.targets:
            self.add_kernel_pointer(node, condition)
        for child in node.children:
            self.visit(child, scope, condition)

    def text(self, node: Node, limit: int = 120) -> str:
        text = " ".join(self.unit.slice(node.file, node.start, node.end).replace("\\\n", " ").split())
        return text if len(text) <= limit else text[: limit - 1] + "…"

    def arguments(self, node: Node) -> tuple[str, ...]:
        return tuple([self.text(child) or child.text for child in node.children])

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
    def add_call(self, node: Node, scope: dict[str, _Local], condition: str) -> None:
        callee, count = node.children[0], len(node.children) - 1
        if callee.kind == "lambda":
            return
        if callee.kind == "name":
            self.add_named_call(node, callee, count, scope, condition)
        elif callee.kind == "member":
            self.add_member_call(node, callee, count, scope, condition)
        elif callee.kind in ("call", "index", "construct", "unary", "conditional", "cast"):
            type_ = self.type_of(callee, scope)
            found = self.methods(type_, "operator()", count) if isinstance(type_, Class) else []
            at = (node.file, node.start, node.end)
            if found:
                self.add(self.written(callee), at, Outcome.RESOLVED, found, "", condition)
            elif type_ == _LIBRARY:
                self.add(self.written(callee), at, Outcome.EXTERNAL, (), "", condition)
            else:
                self.add(
                    self.written(callee), at, Outcome.UNRESOLVED, (), "calls the result of an expression", condition
                )
        else:
            self.add(self.text(callee, 60), (node.file, node.start, node.end), Outcome.UNRESOLVED, (),
                     "the callee is no name", condition)  # fmt: skip

    def add_named_call(self, node: Node, callee: Node, count: int, scope: dict[str, _Local], condition: str) -> None:
        at = (callee.file, callee.start, node.end)
        name = callee.text
        if callee.targets:
            outcome, found, reason = self.choose(callee, count)
            self.add(name, at, outcome, found, reason, condition)
            return
        local = scope.get(name)
        if local is not None:
            if local.node is not None and local.node.kind == "lambda":
                return  # its body is part of this function
            pointer = [
                Found(f.usr, How.ALIAS, f.confidence, local.place, f.template_arguments)
                for f in self.function_pointer(local.node, scope)
            ]
            type_ = self.type_of(callee, scope)
            found = pointer or (self.methods(type_, "operator()", count) if isinstance(type_, Class) else [])
            if found:
                self.add(name, at, Outcome.RESOLVED, found, "", condition)
            elif type_ == _LIBRARY or isinstance(type_, Class) or not self.callable_with(count):
                self.add(name, at, Outcome.EXTERNAL, (), "", condition)
            else:
                self.add(name, at, Outcome.UNRESOLVED, (), f"{name} is called, and its type is {type_}", condition)
            return
        last = _WORD.findall(name)[-1] if _WORD.findall(name) else name
        qualifier = re.sub(r"<.*", "", name.rpartition("::")[0]).split("::")[-1] if "::" in name else ""
        if qualifier:
            class_ = self.class_named(qualifier, scope)
            if isinstance(class_, Class):
                found = self.methods(class_, last, count)
                if found:
                    self.add(name, at, Outcome.RESOLVED, found, "", condition)
                    return
        if last in self.template_parameters or qualifier in self.template_parameters:
            self.add(name, at, Outcome.UNRESOLVED, (), f"depends on template parameter {qualifier or last}", condition)
            return
        # Not visible at the definition: only argument-dependent lookup can find it when the template is instantiated.
        candidates = [] if qualifier else self.fitting(self.reader.functions_by_name.get(last, ()), count)
        if candidates:
            confidence = Confidence.INFERRED if len(candidates) == 1 else Confidence.AMBIGUOUS
            arguments = self.arguments(callee)
            found = [Found(usr, How.OVERLOAD, confidence, None, arguments) for usr in candidates]
            self.add(name, at, Outcome.RESOLVED, found, "", condition)
        elif not qualifier and self.own_class is not None and self.methods(self.own_class, last, count):
            self.add(name, at, Outcome.RESOLVED, self.methods(self.own_class, last, count), "", condition)
        else:
            self.add(name, at, Outcome.EXTERNAL if not qualifier else Outcome.UNRESOLVED, (),
                     "" if not qualifier else f"{qualifier} is not known here", condition)  # fmt: skip

    def add_member_call(self, node: Node, callee: Node, count: int, scope: dict[str, _Local], condition: str) -> None:
        name_at = self.member_position(callee)
        at = (callee.file, name_at, node.end)
        written = self.written(callee)
        if callee.targets:
            outcome, found, reason = self.choose(callee, count)
            self.add(written, at, outcome, found, reason, condition)
            return
        base = self.type_of(callee.children[0], scope)
        if isinstance(base, Class):
            found = self.methods(base, callee.text, count, self.arguments_of_member(callee))
            if found:
                self.add(written, at, Outcome.RESOLVED, found, "", condition)
            elif any(base_type.class_usr not in self.unit.classes for base_type in base.bases):
                self.add(written, at, Outcome.EXTERNAL, (), "", condition)
            else:
                reason = f"{base.declaration.name} declares no member {callee.text}"
                self.add(written, at, Outcome.UNRESOLVED, (), reason, condition)
        elif base == _LIBRARY or callee.text not in self.reader.method_names:
            self.add(written, at, Outcome.EXTERNAL, (), "", condition)  # no class of the checkout has such a member
        else:
            self.add(written, at, Outcome.UNRESOLVED, (), f"a member of something whose type is {base}", condition)

    def arguments_of_member(self, callee: Node) -> tuple[str, ...]:
        return tuple([self.text(child) or child.text for child in callee.children[1:]])

    def add_construct(self, node: Node, condition: str) -> None:
        usr = self.class_usr_of(node.type)
        class_ = self.unit.classes.get(usr) if usr else None
        if class_ is None:
            return
        found = self.methods(class_, class_.declaration.name, len(node.children))
        found = [Found(f.usr, How.CONSTRUCTOR, f.confidence, None, f.template_arguments) for f in found]
        if found:
            self.add(node.text or class_.declaration.name, (node.file, node.start, node.end), Outcome.RESOLVED, found,
                     "", condition)  # fmt: skip

    def add_launch(self, node: Node, scope: dict[str, _Local], condition: str) -> None:
        callee = node.children[0]
        at = (callee.file, callee.start, node.end)
        if callee.kind == "name" and callee.targets:
            found = [
                Found(usr, How.LAUNCH, Confidence.EXACT if len(callee.targets) == 1 else Confidence.AMBIGUOUS, None,
                      self.arguments(callee))
                for usr in callee.targets if self.unit.is_inside(usr)
            ]  # fmt: skip
        else:
            local = scope.get(callee.text)
            found = [
                Found(f.usr, How.LAUNCH, f.confidence, local.place if local else None, f.template_arguments)
                for f in self.function_pointer(local.node if local else None, scope)
            ]
        written = callee.text or self.text(callee, 60)
        if found:
            self.add(written, at, Outcome.RESOLVED, found, "", condition)
        else:
            self.add(
                written, at, Outcome.UNRESOLVED, (), "launches something that no declaration here names", condition
            )

    def add_kernel_pointer(self, node: Node, condition: str) -> None:
        kernels = [usr for usr in node.targets if "global" in self.attributes(usr)]
        if kernels:
            confidence = Confidence.EXACT if len(kernels) == 1 else Confidence.AMBIGUOUS
            found = [Found(usr, How.KERNEL_POINTER, confidence, None, self.arguments(node)) for usr in kernels]
            self.add(f"&{node.text}", (node.file, node.start, node.end), Outcome.RESOLVED, found, "", condition)

    def function_pointer(self, node: Node | None, scope: dict[str, _Local]) -> list[Found]:
        """Return the functions that the initialiser of a function-pointer variable names."""
        if node is None:
            return []
        if node.kind in ("unary", "cast") and node.children:
            return self.function_pointer(node.children[0], scope)
        if node.kind == "conditional":
            found = {f.usr: f for child in reversed(node.children[1:]) for f in self.function_pointer(child, scope)}
            if len(found) < 2:  # one template, chosen with other arguments
                return list(found.values())
            return [Found(f.usr, f.how, Confidence.AMBIGUOUS, f.through, f.template_arguments) for f in found.values()]
        if node.kind != "name":
            return []
        if not node.targets and node.text in scope:
            return self.function_pointer(scope[node.text].node, scope)
        inside = [usr for usr in node.targets if self.unit.is_inside(usr)]
        confidence = Confidence.EXACT if len(inside) == 1 else Confidence.AMBIGUOUS
        through = (node.file, node.start)
        return [Found(usr, How.KERNEL_POINTER, confidence, through, self.arguments(node)) for usr in inside]

    # -- choosing among declarations ----------------------------------------------------------------------------------
    def attributes(self, usr: str) -> tuple[str, ...]:
        return tuple([a for key in self.unit.by_usr.get(usr, ()) for a in self.unit.functions[key].attributes])

    def choose(self, callee: Node, count: int) -> tuple[Outcome, list[Found], str]:
        """Decide among the declarations that the compiler looked up."""
        inside = [usr for usr in callee.targets if self.unit.is_inside(usr)]
        declared = [self.unit.declarations.get(usr) for usr in callee.targets]
        callable_ = [d for d in declared if d is not None and d.kind not in ("variable", "field", "enumerator")]
        if not inside:
            return Outcome.EXTERNAL, [], ""
        if not callable_:  # a data member that is called
            field = declared[0]
            owner = self.unit.classes.get(field.parent) if field is not None else None
            type_ = self.field_of(owner, callee.text, {}) if owner is not None else "not known"
            if isinstance(type_, Class):
                found = self.methods(type_, "operator()", count)
                return (Outcome.RESOLVED, found, "") if found else (Outcome.EXTERNAL, [], "")
            if type_ == _LIBRARY:
                return Outcome.EXTERNAL, [], ""
            return Outcome.UNRESOLVED, [], f"{callee.text} is called, and its type is {type_}"
        arguments = self.arguments(callee) if callee.kind == "name" else self.arguments_of_member(callee)
        if len(callee.targets) == 1:
            if callee.text2 != "overloaded":
                return Outcome.RESOLVED, [Found(inside[0], How.CALL, Confidence.EXACT, None, arguments)], ""
            if not self.takes(inside[0], count):
                # The only declaration in sight cannot be called so: the arguments' own namespace has the one that is.
                return Outcome.EXTERNAL, [], ""
            return Outcome.RESOLVED, [Found(inside[0], How.OVERLOAD, Confidence.EXACT, None, arguments)], ""
        fitting = self.fitting(inside, count) or inside
        outside = len(inside) < len(callee.targets)
        confidence = Confidence.EXACT if len(fitting) == 1 and not outside else Confidence.AMBIGUOUS
        return Outcome.RESOLVED, [Found(usr, How.OVERLOAD, confidence, None, arguments) for usr in fitting], ""

    def fitting(self, usrs: Sequence[str], count: int) -> list[str]:
        """Keep the functions that take ``count`` arguments."""
        return [usr for usr in usrs if self.takes(usr, count)]

    def takes(self, usr: str, count: int) -> bool:
        keys = self.unit.by_usr.get(usr, ())
        for key in keys:
            parameters = self.unit.functions[key].parameters
            required = sum(1 for p in parameters if not p.children and "..." not in (p.type.spelling if p.type else ""))
            variadic = any("..." in (p.type.spelling if p.type else "") for p in parameters)
            if required <= count and (variadic or count <= len(parameters)):
                return True
        return not keys

    # -- types --------------------------------------------------------------------------------------------------------
    def methods(self, class_: Class, name: str, count: int, arguments: tuple[str, ...] = ()) -> list[Found]:
        """Return the member functions of a class or of its bases that have this name and take so many arguments."""
        family = [class_, *self.specializations(class_.declaration)]
        usrs = [usr for member in family for method, usr in member.methods if method == name]
        fitting = self.fitting(usrs, count) or usrs
        if fitting:
            confidence = Confidence.EXACT if len(fitting) == 1 else Confidence.AMBIGUOUS
            return [Found(usr, How.MEMBER, confidence, None, arguments) for usr in fitting]
        for base in class_.bases:
            inherited = self.unit.classes.get(self.class_usr_of(base))
            if inherited is not None and inherited is not class_:
                found = self.methods(inherited, name, count, arguments)
                if found:
                    return found
        return []

    def callable_with(self, count: int) -> bool:
        """Tell whether an object of any class of the checkout can be called with so many arguments."""
        operators = [
            usr for class_ in self.unit.classes.values() for name, usr in class_.methods if name == "operator()"
        ]
        return bool(self.fitting(operators, count))

    def specializations(self, declaration: Declaration) -> list[Class]:
        return [class_ for class_ in self.unit.classes.values() if class_.declaration.primary == declaration.usr]

    def class_usr_of(self, type_: TypeRef | None) -> str:
        if type_ is None or not type_.class_usr:
            return ""
        if type_.class_usr in self.unit.classes:
            return type_.class_usr
        declaration = self.unit.declarations.get(type_.class_usr)
        return declaration.primary if declaration is not None and declaration.primary else type_.class_usr

    def class_of_type(self, type_: TypeRef | None, scope: dict[str, _Local], depth: int = 0) -> Class | str:
        """Return the checkout's class that a type names, ``library``, or a description of why it is not known."""
        if type_ is None or depth > 8:
            return "not known"
        usr = self.class_usr_of(type_)
        if usr:
            class_ = self.unit.classes.get(usr)
            if class_ is not None:
                return class_
            declaration = self.unit.declarations.get(usr)
            return _LIBRARY if declaration is None or not declaration.inside else "only declared"
        spelling = re.sub(r"\b(?:const|volatile|typename|struct|class)\b|[&*]", " ", type_.spelling).strip()
        if spelling in ("auto", "") or spelling.startswith("(lambda"):
            return "not known"
        if spelling.startswith("decltype("):
            called = _WORD.search(spelling, len("decltype("))
            known = called is not None and (called.group() in self.reader.functions_by_name or called.group() in scope)
            return "not known" if known else _LIBRARY
        return self.class_named(spelling, scope, depth)

    def class_named(self, spelling: str, scope: dict[str, _Local], depth: int = 0) -> Class | str:
        """Return the class that a written type names, by local and member aliases and by the name itself."""
        head = re.sub(r"<.*", "", spelling, flags=re.DOTALL)
        last = head.split("::")[-1].strip()
        first = head.split("::")[0].strip()
        if "::" not in head:
            local = scope.get(last)
            if local is not None and local.node is None and local.type is not None and local.type.spelling != spelling:
                return self.class_of_type(local.type, scope, depth + 1)
            own = dict(self.own_class.aliases).get(last) if self.own_class is not None else None
            if own is not None and own.spelling != spelling:
                return self.class_of_type(own, scope, depth + 1)
        if last in self.template_parameters and "::" not in head:
            return f"the template parameter {last}"
        if "::" not in head and last in self.reader.aliases:
            return self.class_of_type(self.reader.aliases[last], scope, depth + 1)
        if first in self.template_parameters or (first in scope and "::" in head):
            types = self.reader.member_aliases.get(last, [])
            classes = {id(c): c for c in (self.class_of_type(t, {}, depth + 1) for t in types)}
            if len(classes) == 1:
                return next(iter(classes.values()))
            return f"{last} of the template parameter {first}"
        usrs = self.reader.classes_by_name.get(last, [])
        primary = [usr for usr in usrs if not self.unit.classes[usr].declaration.primary]
        if len(primary) == 1:
            return self.unit.classes[primary[0]]
        return _LIBRARY if not usrs else f"one of {len(usrs)} classes named {last}"

    def type_of(self, node: Node, scope: dict[str, _Local], depth: int = 0) -> Class | str:
        """Return the class of an expression's value, ``library``, or why it is not known."""
        if depth > 12:
            return "not known"
        kind = node.kind
        if kind == "this":
            return self.own_class if self.own_class is not None else "not known"
        if kind == "name":
            local = scope.get(node.text)
            if local is not None:
                declared = self.class_of_type(local.type, scope)
                if isinstance(declared, Class) or local.node is None:
                    return declared
                inferred = self.type_of(local.node, scope, depth + 1)
                return inferred if isinstance(inferred, Class) or inferred == _LIBRARY else declared
            if node.targets:
                declarations = [self.unit.declarations.get(usr) for usr in node.targets]
                return "not known" if any(d is not None and d.inside for d in declarations) else _LIBRARY
            return self.field_of(self.own_class, node.text, scope) if self.own_class is not None else "not known"
        if kind == "member":
            base = self.type_of(node.children[0], scope, depth + 1) if node.children else "not known"
            return self.field_of(base, node.text, scope) if isinstance(base, Class) else base
        if kind == "construct" or (kind in ("cast", "list") and node.type is not None):
            return self.class_of_type(node.type, scope)
        if kind == "call" and node.children:
            callee = node.children[0]
            if callee.kind == "name":
                inside = [usr for usr in callee.targets if self.unit.is_inside(usr)]
                if callee.targets and not inside:
                    return _LIBRARY
                if callee.targets:
                    return "the result of " + callee.text
                return self.type_of(callee, scope, depth + 1) if callee.text in scope else "not known"
            if callee.kind == "member":
                base = self.type_of(callee.children[0], scope, depth + 1)
                return base if base == _LIBRARY else f"the result of {callee.text}"
            return self.type_of(callee, scope, depth + 1)
        if kind in ("unary", "index", "assign") and node.children:
            return self.type_of(node.children[0], scope, depth + 1)
        if kind in ("binary", "conditional"):
            for child in node.children:
                type_ = self.type_of(child, scope, depth + 1)
                if isinstance(type_, Class) or type_ == _LIBRARY:
                    return type_
        if kind == "literal":
            return _LIBRARY
        return "not known"

    def field_of(self, class_: Class | str | None, name: str, scope: dict[str, _Local]) -> Class | str:
        if not isinstance(class_, Class):
            return "not known"
        for field, type_ in class_.fields:
            if field == name:
                return self.class_of_type(type_, scope)
        for base in class_.bases:
            inherited = self.unit.classes.get(self.class_usr_of(base))
            if inherited is not None and inherited is not class_:
                return self.field_of(inherited, name, scope)
        return "not known"

    # -- text ---------------------------------------------------------------------------------------------------------
    def written(self, node: Node) -> str:
        """Return a callee as written, without template arguments."""
        if node.kind == "name":
            return node.text
        if node.kind == "member":
            base = node.children[0] if node.children else None
            if base is None or base.kind == "this":
                return node.text
            return f"{self.written(base)}{node.text2}{node.text}"
        if node.kind == "call" and node.children:
            return f"{self.written(node.children[0])}(…)"
        return self.text(node, 40)

    def member_position(self, callee: Node) -> int:
        base = callee.children[0] if callee.children else None
        start = base.end if base is not None and base.file == callee.file and base.end >= callee.start else callee.start
        at = self.unit.slice(callee.file, start, callee.end).find(callee.text)
        return start + at if at >= 0 else callee.start
