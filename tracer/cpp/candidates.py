"""Which functions of a unit a call can mean: by name, by the number of arguments, by the class of the object."""

from __future__ import annotations

from collections.abc import Sequence

from tracer.cpp import spelling
from tracer.cpp.tree import Node
from tracer.cpp.type_reader import TypeReader
from tracer.cpp.types import Instance, Types, unknown
from tracer.cpp.unit import Unit
from tracer.model import Confidence, How, Outcome
from tracer.records import dataclass


@dataclass(frozen=True, slots=True)
class Found:
    """One destination of a call: a USR, how it was found, and where its name was bound on the way."""

    usr: str
    how: How
    confidence: Confidence
    through: tuple[int, int] | None = None
    template_arguments: tuple[str, ...] = ()


class Candidates:
    """The functions of one unit, and which of them fit a call."""

    def __init__(self, unit: Unit) -> None:
        """Index the unit's classes and functions by name."""
        self.unit = unit
        self.functions_by_name: dict[str, list[str]] = {}
        for function in unit.functions:
            usrs = self.functions_by_name.setdefault(function.declaration.name, [])
            if function.declaration.usr not in usrs:
                usrs.append(function.declaration.usr)
        self.method_names = {name for class_ in unit.classes.values() for name, _ in class_.methods}
        self.call_operators = [
            usr for class_ in unit.classes.values() for name, usr in class_.methods if name == "operator()"
        ]
        self.constructors = [
            usr for class_ in unit.classes.values() for name, usr in class_.methods if name == class_.declaration.name
        ]
        self.types = TypeReader(unit, self.functions_by_name)

    def choose(self, callee: Node, count: int) -> tuple[Outcome, list[Found], str]:
        """Decide among the declarations that the compiler looked up."""
        inside = [usr for usr in callee.targets if self.unit.is_inside(usr)]
        declared = [self.unit.declarations.get(usr) for usr in callee.targets]
        callable_ = [d for d in declared if d is not None and d.kind not in ("variable", "field", "enumerator")]
        if not inside:
            return Outcome.EXTERNAL, [], ""
        if not callable_:  # a data member that is called
            field = declared[0]
            owner = field.parent if field is not None else ""
            types = unknown()
            if owner in self.unit.classes:
                types = self.types.field(Instance(owner), callee.text, deep=self.callable_with(count))
            found = self.methods(types, "operator()", count)
            if found:
                return Outcome.RESOLVED, found, ""
            if types.library or types.instances:
                return Outcome.EXTERNAL, [], ""
            return Outcome.UNRESOLVED, [], f"{callee.text} is called, and its type is {types.unknown}"
        read_arguments = spelling.arguments if callee.kind == "name" else spelling.arguments_of_member
        arguments = read_arguments(self.unit, callee)
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

    def in_namespace(self, qualifier: str, name: str, count: int) -> list[Found]:
        """Return the checkout's functions of a namespace that no declaration in sight names."""
        usrs = [
            usr
            for usr in self.functions_by_name.get(name, ())
            if f"::{self.unit.declarations[usr].qualified_name}".endswith(f"::{qualifier}::{name}")
        ]
        fitting = self.fitting(usrs, count)
        confidence = Confidence.INFERRED if len(fitting) == 1 else Confidence.AMBIGUOUS
        return [Found(usr, How.OVERLOAD, confidence) for usr in fitting]

    def fitting(self, usrs: Sequence[str], count: int) -> list[str]:
        """Keep the functions that take ``count`` arguments."""
        return [usr for usr in usrs if self.takes(usr, count)]

    def takes(self, usr: str, count: int) -> bool:
        """Tell whether any declaration of a function takes ``count`` arguments; a function without one may."""
        keys = self.unit.by_usr.get(usr, ())
        for key in keys:
            parameters = self.unit.functions[key].parameters
            required = sum(1 for p in parameters if not p.children and "..." not in (p.type.spelling if p.type else ""))
            variadic = any("..." in (p.type.spelling if p.type else "") for p in parameters)
            if required <= count and (variadic or count <= len(parameters)):
                return True
        return not keys

    def methods(
        self, types: Types, name: str, count: int, arguments: tuple[str, ...] = (), *, deep: bool = False
    ) -> list[Found]:
        """Return the member functions of this name that take so many arguments, of every class that a type can be."""
        usrs: dict[str, None] = {}
        for instance in types.instances:
            for named in self.types.methods(instance, name, deep):
                usrs.update(dict.fromkeys(self.fitting(named, count) or named))
        sure = len(usrs) == 1 and not types.library and not types.unknown
        one = Confidence.INFERRED if deep else Confidence.EXACT
        return [Found(usr, How.MEMBER, one if sure else Confidence.AMBIGUOUS, None, arguments) for usr in usrs]

    def callable_with(self, count: int) -> bool:
        """Tell whether an object of any class of the checkout can be called with so many arguments."""
        return bool(self.fitting(self.call_operators, count))

    def attributes(self, usr: str) -> tuple[str, ...]:
        """Return the CUDA attributes of all declarations of a function."""
        return tuple([a for key in self.unit.by_usr.get(usr, ()) for a in self.unit.functions[key].attributes])
